"""The contract of a bank: m weak classifiers over d features, scored and taught many rows at a time."""

from abc import abstractmethod
from collections.abc import Callable, Sequence
from typing import Any, ClassVar, final

import numpy as np
from numpy.typing import ArrayLike

from bayesvote.core.checks import Array, Labels
from bayesvote.core.lock import RWLock
from bayesvote.core.rollback import Chunk, reports_progress
from bayesvote.core.rows import Rows, RowsLike, check_width, started
from bayesvote.core.state import S, Stateful
from bayesvote.members.attribution import Attribution, nothing


class Bank(Stateful[S]):
    """m weak classifiers over d features.

    Scores are signed, positive for class 1, of shape (n, m); for K > 2 classes one per class, (n, m, K).
    NaN marks a member that abstains on a row.

    The doors, ``start``, ``scores``, ``scores_then_learn`` and ``widen``, check their input; a refused call leaves the
    bank as it was, and one that fails leaves it as after the number of rows that its error tells. A kind fills in the
    rest: what is abstract here and in :class:`Stateful`, and what it does better than the default. ``score`` and
    ``advance`` get rows that are checked, and nobody else uses the bank meanwhile.
    """

    _internal = (
        "advance attributions check_names draws_features empty_scores foreign frozen_state kept_rows "
        "rebuilt score shaped share wants_scaled"
    )
    draws_features: ClassVar[bool] = False  # whether each member sees random features, ``max_features`` of them

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
    def wants_scaled(self) -> bool:
        """Whether the members do better on standardised numbers."""
        return False

    @property
    def learns(self) -> bool:
        """Whether the members change with the rows they learn."""
        return True

    @property
    def parts(self) -> "tuple[Bank[Any], ...]":
        """The banks that this one is made of."""
        return ()

    @property
    def runs_user_code(self) -> bool:
        """Whether code of others is run, which may never end; by default the parts are asked."""
        return any(part.runs_user_code for part in self.parts)

    def frozen_state(self) -> S:
        """State for members that will only score: what serves learning alone may be left out."""
        state: S = started(self.who, self.state)
        return state

    def rebuilt(self, change: "Callable[[Bank[Any]], Bank[Any]]") -> "Bank[Any]":  # noqa: ARG002
        """Return a bank whose parts were changed so, before any row; one without parts stays as it is."""
        return self

    def member_names(self) -> list[str]:
        """What each member is."""
        return [type(self).__name__.removesuffix("Bank")] * self.n_members

    def check_names(self, names: Sequence[str]) -> None:
        """Refuse features of other names than those that a member was fitted on; by default the parts are asked."""
        for part in self.parts:
            part.check_names(names)

    def attributions(self, rows: Rows, coefficients: Array, shares: Array) -> Attribution:  # noqa: ARG002
        """Share out the sum of the scores of checked rows, times coefficients, over the features; by default nothing.

        ``coefficients`` are shaped like the scores and 0 where a member abstains; ``shares`` (n, m) say how much each
        member counts in what was looked at. Parts and start of a member that can tell add up to its own sum.
        """
        return nothing(rows)

    def kept_rows(self) -> Any:
        """Rows (n, d) of the stream that the bank keeps for its own ends, the latest last; None if it keeps none.

        They may be sparse.
        """
        return None

    def empty_scores(self, n: int) -> Array:
        """Room for the scores of n rows, (n, m) or (n, m K), for a kernel to fill."""
        n_classes = started(self.who, self.shape).n_classes
        return np.empty((n, self.n_members * (1 if n_classes == 2 else n_classes)))

    def shaped(self, out: Array) -> Array:
        """What a kernel has filled, (n, m) or (n, m, K)."""
        n_classes = started(self.who, self.shape).n_classes
        return out if n_classes == 2 else out.reshape(len(out), self.n_members, n_classes)

    @final
    def scores(self, X: RowsLike) -> Array:
        """Score rows without learning from them."""
        return self._scores(self.checked(X))

    @final
    @reports_progress
    def scores_then_learn(self, X: RowsLike, y: ArrayLike, sample_weight: ArrayLike | None = None) -> Array:
        """Score row t before learning row t; equal to doing so row by row."""
        chunk = Chunk(*self.checked_labelled(X, y, sample_weight))
        return self._rollback.learn(self, chunk) if chunk.rows.n else self._scores(chunk.rows)

    def _scores(self, rows: Rows) -> Array:
        with self.lock.read:
            check_width(self.who, rows, self.n_features)
            return self.score(rows)

    @final
    def step(self, rows: Rows, y: Labels, w: Array) -> Array:
        """Score checked row t before learning row t."""
        return self.advance(rows, y, w)

    def snapshot(self) -> Any:
        """Copy what learning changes: nothing, if the members do not learn."""
        return super().snapshot() if self.learns else None

    def returning(self, snapshot: Any) -> Callable[[], None]:
        """Get ready to take up such a copy."""
        return super().returning(snapshot) if self.learns else lambda: None

    def share(self, lock: RWLock) -> None:
        """Share the lock of another part, together with the parts of this bank."""
        self._lock = lock
        for part in self.parts:
            part.share(lock)


def check_bank(who: str, bank: Any) -> None:
    """Require a bank."""
    if not isinstance(bank, Bank):
        raise TypeError(f"{who}: bank must be a Bank, such as PerceptronBank(), got {bank!r}.")
