"""The contract of a bank: m weak classifiers over d features, scored and taught many rows at a time."""

from abc import abstractmethod
from typing import Any, final

from numpy.typing import ArrayLike

from bayesvote._checks import Array, Labels
from bayesvote._input import Rows, RowsLike
from bayesvote._parts import S, Stateful


class Bank(Stateful[S]):
    """m weak classifiers over d features.

    Scores are signed, positive for class 1, of shape (n, m); for K > 2 classes one per class, (n, m, K).
    NaN marks a member that abstains on a row.

    The doors, ``start``, ``scores``, ``scores_then_learn`` and ``widen``, check their input; a refused call leaves the
    bank as it was. A kind fills in the rest: what is abstract here and in :class:`Stateful`, and what it does better
    than the default. ``score`` and ``advance`` get rows that are checked.
    """

    @property
    @abstractmethod
    def n_members(self) -> int:
        """How many members the bank holds."""

    @abstractmethod
    def score(self, rows: Rows) -> Array:
        """Score checked rows without learning from them."""

    @abstractmethod
    def advance(self, rows: Rows, y: Labels, w: Array) -> Array:
        """Score checked row t before learning row t; equal to doing so row by row."""

    @property
    def learns(self) -> bool:
        """Whether the members change with the rows they learn."""
        return True

    @property
    def parts(self) -> "tuple[Bank[Any], ...]":
        """The banks that this one is made of."""
        return ()

    def member_names(self) -> list[str]:
        """What each member is."""
        return [type(self).__name__.removesuffix("Bank")] * self.n_members

    @final
    def scores(self, X: RowsLike) -> Array:
        """Score rows without learning from them."""
        return self.score(self.checked(X))

    @final
    def scores_then_learn(self, X: RowsLike, y: ArrayLike, sample_weight: ArrayLike | None = None) -> Array:
        """Score row t before learning row t; equal to doing so row by row."""
        return self.advance(*self.checked_labelled(X, y, sample_weight))


def check_bank(who: str, bank: Any) -> None:
    """Require a bank."""
    if not isinstance(bank, Bank):
        raise TypeError(f"{who}: bank must be a Bank, such as PerceptronBank(), got {bank!r}.")
