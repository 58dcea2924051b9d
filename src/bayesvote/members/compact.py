"""Members of wide sparse rows: they see only the features that were ever other than 0."""

from collections.abc import Callable
from dataclasses import dataclass
from typing import Any, NamedTuple

import numpy as np
from numpy.typing import NDArray

from bayesvote.core.checks import Array, Labels, integer
from bayesvote.core.rows import Rows, started
from bayesvote.core.state import Learned, Shape, like, read_locked, require, restored_shape, within
from bayesvote.members.attribution import Attribution
from bayesvote.members.base import Bank, check_bank

_NO_WEIGHTS = np.zeros(0)


class SeenColumns(NamedTuple):
    """Features that have a column in the rows that the members see."""

    column_of: NDArray[np.int32]  # (d,): -1 for a feature that has none
    used: NDArray[np.int64]  # (1,): columns that belong to a feature
    capacity: NDArray[np.int64]  # (1,): columns that the members were started or widened for
    seed: NDArray[np.uint64]  # (1,): for the random features of members that are widened


@dataclass
class Compact(Bank[tuple[SeenColumns, Any]]):
    """A bank whose members see only the features that were ever other than 0, in the order of their first value.

    The size of the members' states follows the features seen instead of the width of the rows, and the first columns
    hold the most frequent features. The members are widened, to twice as many columns, when half of them are used.
    Features of a row that do not fit are left out of it; after the row, there is room for them.

    Rows of weight 0 leave no trace. A missing value counts as other than 0.

    Parameters
    ----------
    bank : Bank
        The members.
    first : int
        Columns at the start.
    max_features : int
        Columns at most. Features that are first seen later are ignored.

    Examples
    --------
    >>> from scipy.sparse import csr_array
    >>> from bayesvote.members import PerceptronBank
    >>> bank = Compact(PerceptronBank(1, max_features=None), first=4).start(n_features=1_000_000)
    >>> X = csr_array(([1.0, 1.0, 1.0], ([0, 1, 2], [123_456, 7, 123_456])), shape=(3, 1_000_000))
    >>> bank.scores_then_learn(X, [1, 0, 1])
    array([[0.],
           [1.],
           [1.]])
    >>> bank.bank.n_features
    4
    """

    bank: Bank[Any]
    first: int = 2048
    max_features: int = 2**17

    def __post_init__(self) -> None:
        """Check the bank and the numbers of columns."""
        check_bank("Compact", self.bank)
        integer("Compact", "first", self.first)
        integer("Compact", "max_features", self.max_features, least=self.first)
        self.share(self.bank.lock)
        self._seen: SeenColumns | None = None

    @property
    def n_members(self) -> int:
        """Number of members of the bank."""
        return self.bank.n_members

    @property
    def learns(self) -> bool:
        """True if the members learn; only then do features get columns."""
        return self.bank.learns

    @property
    def parts(self) -> tuple[Bank[Any], ...]:
        """The bank."""
        return (self.bank,)

    def rebuilt(self, change: Callable[[Bank[Any]], Bank[Any]]) -> "Compact":
        """Return the changed bank behind the same numbers of columns."""
        return Compact(change(self.bank), self.first, self.max_features)

    @property
    def state(self) -> tuple[SeenColumns, Any] | None:
        """The columns, and what the bank has learned."""
        return None if self._seen is None else (self._seen, self.bank.state)

    @property
    def shape(self) -> Shape | None:
        """Features of the rows, and classes."""
        inner = self.bank.shape
        return None if self._seen is None or inner is None else Shape(len(self._seen.column_of), inner.n_classes)

    def ready(self, state: tuple[SeenColumns, Any], shape: Shape) -> Callable[[], None]:
        """Get the bank ready for its state; the columns are installed with it."""
        seen, of_bank = state
        bank_takes_over = self.bank.ready(of_bank, Shape(int(seen.capacity[0]), shape.n_classes))

        def take_over() -> None:
            bank_takes_over()
            self._seen = seen

        return take_over

    def init(self, n_features: int, n_classes: int, rng: np.random.Generator) -> tuple[SeenColumns, Any]:
        """Return no columns in use, and the bank's state before any row."""
        capacity = min(self.first, n_features)
        of_bank = self.bank.init(capacity, n_classes, rng)
        return _no_columns(n_features)._replace(
            capacity=np.array([capacity], dtype=np.int64), seed=rng.integers(2**63, size=1, dtype=np.uint64)
        ), of_bank

    def score(self, rows: Rows) -> Array:
        """Score checked rows."""
        return self.bank.score(self._renumbered(rows)[0])

    def advance(self, rows: Rows, y: Labels, w: Array) -> Array:
        """Score checked row t before learning row t; widen the bank after the rows that ask for it."""
        from bayesvote.members._compact_kernels import renumber

        seen = started(self.who, self._seen)
        weights = w if self.learns else _NO_WEIGHTS
        found, top = list[Array](), 0
        while top < rows.n or not found:
            values, columns, _, starts, end, wanted = renumber(rows, weights, seen, self._limit, top)
            n, capacity = end - top, int(seen.capacity[0])
            part = Rows(n, capacity, None, values, columns, starts, rows.has_nan)
            found.append(self.bank.advance(part, y[top:end], w[top:end]))
            if wanted > capacity:
                self._widen_bank(seen, wanted)
            top = end
        return found[0] if len(found) == 1 else np.concatenate(found)

    def attributions(self, rows: Rows, coefficients: Array, shares: Array) -> Attribution:
        """Share out scores over the features as the bank does over the columns."""
        seen = started(self.who, self._seen)
        part, features = self._renumbered(rows)
        told = self.bank.attributions(part, coefficients, shares)
        known, used = self._features(), int(seen.used[0])
        parts, looked = np.zeros((rows.n, rows.width)), np.zeros((rows.n, rows.width))
        parts[:, known], looked[:, known] = told.parts[:, :used], told.looked[:, :used]
        row, new = np.repeat(np.arange(rows.n), np.diff(part.starts)), part.columns >= used
        row, column, features = row[new], part.columns[new], features[new]
        parts[row, features], looked[row, features] = told.parts[row, column], told.looked[row, column]
        rest = told.parts[:, used:].sum(axis=1) - np.bincount(row, told.parts[row, column], minlength=rows.n)
        return Attribution(parts, told.start + rest, looked)

    def kept_rows(self) -> Any:
        """Rows that the members keep, as a sparse matrix."""
        from scipy.sparse import csr_array

        kept = self.bank.kept_rows()
        if kept is None:
            return None
        known = self._features()
        row, column = np.nonzero(kept[:, : len(known)])
        shape = (len(kept), len(started(self.who, self._seen).column_of))
        return csr_array((kept[row, column], (row, known[column])), shape=shape)

    def check_weights(self, w: Array) -> None:
        """Refuse weights that the bank cannot learn from."""
        self.bank.check_weights(w)

    def frozen_state(self) -> tuple[SeenColumns, Any]:
        """The columns, and the bank's frozen state."""
        return started(self.who, self._seen), self.bank.frozen_state()

    def wider(self, n_features: int, rng: np.random.Generator) -> tuple[SeenColumns, Any]:  # noqa: ARG002
        """Return the state with room for more features, which have no column yet."""
        seen, of_bank = started(self.who, self.state)
        column_of = np.full(n_features, -1, dtype=np.int32)
        column_of[: len(seen.column_of)] = seen.column_of
        return seen._replace(column_of=column_of), of_bank

    def member_names(self) -> list[str]:
        """Names of the members."""
        return self.bank.member_names()

    def least_bytes(self, n_features: int, n_classes: int) -> int:
        """The size of the columns' numbers, and of the bank's state at the start."""
        return 4 * n_features + self.bank.least_bytes(min(self.first, n_features), n_classes)

    def validate(self, state: tuple[SeenColumns, Any]) -> None:
        """Refuse columns that do not belong to one feature each; check the bank's state."""
        seen, of_bank = state
        used, capacity, d = int(seen.used[0]), int(seen.capacity[0]), len(seen.column_of)
        require(1 <= capacity <= d, f"capacity must be from 1 to {d}")
        require(0 <= used <= capacity, f"used must be from 0 to {capacity}")
        require(within(seen.column_of, -1, used - 1), f"column_of must be from -1 to {used - 1}")
        columns = np.sort(seen.column_of[seen.column_of >= 0])
        require(np.array_equal(columns, np.arange(used)), "column_of must have every column once")
        self.bank.validate(of_bank)

    @read_locked
    def learned(self) -> Learned | None:
        """The columns; the bank's state goes with the bank."""
        if self._seen is None:
            return None
        self.validate((self._seen, self.bank.state))
        facts = {"shape": list(map(int, started(self.who, self.shape))), "version": self.version}
        return Learned(facts, self._seen._asdict())

    def restore(self, learned: Learned, room: int) -> None:
        """Restore the columns from a file; the bank has its state again."""
        shape = restored_shape(learned)
        if 4 * shape.n_features > room:
            raise ValueError(f"{self.who}: columns of {shape.n_features} features in a file of {room} bytes")
        require(learned.facts["version"] == self.version, f"version must be {self.version}")
        seen = like(_no_columns(shape.n_features), learned.arrays)
        if self.bank.shape != Shape(int(seen.capacity[0]), shape.n_classes):
            raise ValueError(f"a bank of {self.bank.shape} features and classes for {seen.capacity[0]} columns")
        self.validate((seen, self.bank.state))
        self._seen = seen

    @property
    def _limit(self) -> int:
        return min(self.max_features, len(started(self.who, self._seen).column_of))

    def _renumbered(self, rows: Rows) -> tuple[Rows, NDArray[np.int32]]:
        """Rows as the members see them when nothing is learned, and the feature of every value."""
        from bayesvote.members._compact_kernels import renumber

        seen = started(self.who, self._seen)
        values, columns, features, starts, _, _ = renumber(rows, _NO_WEIGHTS, seen, self._limit, 0)
        return Rows(rows.n, int(seen.capacity[0]), None, values, columns, starts, rows.has_nan), features

    def _widen_bank(self, seen: SeenColumns, capacity: int) -> None:
        rng = np.random.default_rng([int(seen.seed[0]), capacity])
        shape = Shape(capacity, started(self.who, self.bank.shape).n_classes)
        self.bank.install(self.bank.wider(capacity, rng), shape)
        seen.capacity[0] = capacity

    def _features(self) -> NDArray[np.intp]:
        """The feature of every column in use."""
        column_of = started(self.who, self._seen).column_of
        known = np.flatnonzero(column_of >= 0)
        return np.asarray(known[np.argsort(column_of[known])])


def _no_columns(n_features: int) -> SeenColumns:
    none = np.zeros(1, dtype=np.int64)
    return SeenColumns(np.full(n_features, -1, dtype=np.int32), none, none.copy(), np.zeros(1, dtype=np.uint64))
