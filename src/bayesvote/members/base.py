"""Base classes of banks: m weak classifiers over d features, which score and learn many rows at a time."""

from abc import abstractmethod
from collections.abc import Callable, Sequence
from typing import Any, ClassVar, final

import numpy as np
from numpy.typing import ArrayLike

from bayesvote.core.checks import Array, InputTypeError, Labels
from bayesvote.core.lock import RWLock
from bayesvote.core.rollback import Chunk, reports_progress
from bayesvote.core.rows import Rows, RowsLike, check_width, started
from bayesvote.core.state import S, Shape, Stateful
from bayesvote.members.attribution import Attribution, nothing

# Passed to kernels, which learn nothing without labels and weights.
NO_LABELS = np.zeros(0, dtype=np.intp)
NO_WEIGHTS = np.zeros(0)


class Bank(Stateful[S]):
    """m weak classifiers over d features.

    Scores are signed, positive for class 1, of shape (n, m). With K > 2 classes there is one score per class, and the
    shape is (n, m, K). A score of NaN means that the member abstains on the row.

    The public methods ``start``, ``scores``, ``scores_then_learn`` and ``widen`` check their input. A call that is
    rejected leaves the bank as it was. A call that fails leaves it as after the number of rows that the error states.
    A subclass implements the abstract methods of this class and of :class:`Stateful`, and overrides the defaults that
    it can improve. ``score`` and ``advance`` get checked rows, and no other thread changes the bank meanwhile.
    """

    _internal = (
        "advance attributions check_names current_state derives_shape draws_features empty_scores frozen_state "
        "kept_rows rebuilt runs_user_code score shaped share wants_scaled"
    )
    draws_features: ClassVar[bool] = False  # True if members see random features, ``max_features`` of them
    derives_shape: ClassVar[bool] = False  # True if ``shape`` depends on the parts
    learns: bool = True  # False if the members do not change with the rows

    @property
    @abstractmethod
    def n_members(self) -> int:
        """Number of members."""

    @abstractmethod
    def score(self, rows: Rows) -> Array:
        """Score checked rows without learning from them."""

    @abstractmethod
    def advance(self, rows: Rows, y: Labels, w: Array) -> Array:
        """Score checked row t before learning row t; the result equals that of a loop over single rows."""

    @property
    def wants_scaled(self) -> bool:
        """True if the members do better on standardised features."""
        return False

    @property
    def parts(self) -> "tuple[Bank[Any], ...]":
        """The banks that this bank is made of."""
        return ()

    @property
    def runs_user_code(self) -> bool:
        """True if the bank calls code of other libraries, which may never return."""
        return any(part.runs_user_code for part in self.parts)

    @property
    def current_state(self) -> S:
        """The state, which must exist."""
        state = self._state
        return state if state is not None else started(self.who, state)

    def frozen_state(self) -> S:
        """Return the state for members that will only score, without what only learning needs."""
        state: S = started(self.who, self.state)
        return state

    def rebuilt(self, change: "Callable[[Bank[Any]], Bank[Any]]") -> "Bank[Any]":  # noqa: ARG002
        """Return this kind of bank made of changed parts, before the start; a bank without parts returns itself."""
        return self

    def member_names(self) -> list[str]:
        """Names of the members."""
        return [type(self).__name__.removesuffix("Bank")] * self.n_members

    def check_names(self, names: Sequence[str]) -> None:
        """Raise an error if a member was fitted on features of other names."""
        for part in self.parts:
            part.check_names(names)

    def attributions(self, rows: Rows, coefficients: Array, shares: Array) -> Attribution:  # noqa: ARG002
        """Attribute the sum of the scores of checked rows, times coefficients, to the features; by default nothing.

        ``coefficients`` have the shape of the scores and are 0 where a member abstains. ``shares`` (n, m) are the
        weights of the members in ``Attribution.looked``. The parts and the start of a member that implements this add
        up to its own sum.
        """
        return nothing(rows)

    def kept_rows(self) -> Any:
        """Return the rows (n, d) of the stream that the bank keeps, the latest last; None if it keeps none.

        They may be sparse.
        """
        return None

    def empty_scores(self, n: int) -> Array:
        """Return an uninitialised array for the scores of n rows, (n, m) or (n, m K), which a kernel fills."""
        k = self._classes()
        return np.empty((n, self.n_members * (1 if k == 2 else k)))

    def shaped(self, out: Array) -> Array:
        """Return the scores that a kernel has filled in, as (n, m) or (n, m, K)."""
        k = self._classes()
        return out if k == 2 else out.reshape(len(out), self.n_members, k)

    def _classes(self) -> int:
        shape = self._shape
        return (shape if shape is not None else started(self.who, shape)).n_classes

    @final
    def scores(self, X: RowsLike) -> Array:
        """Score rows without learning from them."""
        return self._scores(self.checked(X))

    @final
    @reports_progress
    def scores_then_learn(self, X: RowsLike, y: ArrayLike, sample_weight: ArrayLike | None = None) -> Array:
        """Score row t before learning row t; the result equals that of a loop over single rows."""
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
        """Copy what learning changes; None if the members do not learn."""
        return super().snapshot() if self.learns else None

    def returning(self, snapshot: Any) -> Callable[[], None]:
        """Prepare to restore a snapshot."""
        return super().returning(snapshot) if self.learns else lambda: None

    def share(self, lock: RWLock) -> None:
        """Use the lock of another bank, here and in all parts."""
        self._lock = lock
        for part in self.parts:
            part.share(lock)


class CompositeBank(Bank[S]):
    """A bank made of other banks, which see rows of the same shape.

    Each subclass calls ``compose`` in its constructor. Parts are not replaced after that.
    """

    _internal = "compose shape_of_parts"
    derives_shape = True
    _leaves: tuple[
        Bank[Any], ...
    ] = ()  # the innermost banks that see rows of this shape; empty if the parts see others
    _weight_checkers: tuple[Bank[Any], ...] = ()  # the innermost banks that accept some sample weights only

    def compose(self) -> None:
        """Derive what depends on the parts, so that learning a row need not ask each of them."""
        leaves, checkers = list[Bank[Any]](), list[Bank[Any]]()
        for part in self.parts:
            if isinstance(part, CompositeBank):
                leaves.extend(part._leaves or (part,))
                checkers.extend(part._weight_checkers)
            else:
                leaves.append(part)
                if type(part).check_weights is not Stateful.check_weights:
                    checkers.append(part)
        self._leaves, self._weight_checkers = tuple(leaves), tuple(checkers)
        self.learns = any(part.learns for part in self.parts)

    @abstractmethod
    def shape_of_parts(self) -> Shape | None:
        """Return the shape that all parts were started for; None if one was not, or if they differ."""

    @property
    def shape(self) -> Shape | None:
        """Features and classes; None before the start.

        Anyone may start or widen a part by itself. The stored shape holds if it is still that of all leaves.
        """
        shape = self._shape
        if shape is not None:
            for leaf in self._leaves:
                if (leaf.shape if leaf.derives_shape else leaf._shape) != shape:
                    break
            else:
                return shape
        shape = self.shape_of_parts()
        if shape is not None:
            self._shape = shape
        return shape

    def check_weights(self, w: Array) -> None:
        """Raise an error for sample weights that a part cannot learn from, before any part learns."""
        for bank in self._weight_checkers:
            bank.check_weights(w)


def check_bank(who: str, bank: Any) -> None:
    """Raise an error unless the object is a bank."""
    if not isinstance(bank, Bank):
        raise InputTypeError(who, "bank", "must be a Bank, such as PerceptronBank()", repr(bank))
