"""Members of wide sparse rows, which see only the features that were ever different from 0."""

from collections.abc import Callable
from dataclasses import dataclass
from typing import Any, NamedTuple

import numpy as np
from numpy.typing import NDArray

from bayesvote.core.checks import Array, Labels, integer
from bayesvote.core.rows import Rows, started
from bayesvote.core.state import Shape, require, within
from bayesvote.members.attribution import Attribution
from bayesvote.members.base import NO_WEIGHTS, Bank
from bayesvote.members.wrappers.base import TransformerBank


class SeenColumns(NamedTuple):
    """The columns in which members see the features."""

    column_of: NDArray[np.int32]  # (d,): column of each feature, -1 for a feature without a column
    used: NDArray[np.int64]  # (1,): number of columns that belong to a feature
    capacity: NDArray[np.int64]  # (1,): number of columns that the members were started or widened for
    seed: NDArray[np.uint64]  # (1,): for the random features that members draw when they are widened


@dataclass
class Compact(TransformerBank[SeenColumns]):
    """A bank whose members see only the features that were ever different from 0, in the order of their first value.

    The size of the members' states depends on the number of features seen, not on the width of the rows. When half of
    the columns are in use, the members are widened to twice as many columns. The features of a row that do not fit are
    ignored in this row; they have a column from the next row on.

    Rows of weight 0 change nothing. A missing value counts as different from 0.

    Parameters
    ----------
    bank : Bank
        The members.
    first : int
        Number of columns at the start.
    max_features : int
        Maximum number of columns. Features that are first seen later are ignored.

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

    first: int = 2048  # small next to the width of hashed text, which is where these rows come from
    max_features: int = 2**17  # bounds the memory: 1 MiB per member with a weight of 8 bytes per feature

    own_bytes = 4  # of ``column_of``
    _widening = False  # True while the members already have more columns than ``capacity``

    def __post_init__(self) -> None:
        """Check the bank and the numbers of columns."""
        super().__post_init__()
        integer("Compact", "first", self.first)
        integer("Compact", "max_features", self.max_features, least=self.first)

    def compose(self) -> None:
        """Derive what depends on the wrapped bank, whose shape is not that of the rows."""
        super().compose()
        self._leaves = ()

    def rebuilt(self, change: Callable[[Bank[Any]], Bank[Any]]) -> "Compact":
        """Return the changed bank behind the same numbers of columns."""
        return Compact(change(self.bank), self.first, self.max_features)

    @property
    def shape(self) -> Shape | None:
        """Features of the rows, and classes; None before the start."""
        return self.shape_of_parts()

    def shape_of_parts(self) -> Shape | None:
        """Return the shape of the rows, unless the wrapped bank was started or widened by itself."""
        shape, own = self._shape, self._own
        if shape is None or own is None or self._widening:
            return shape
        return shape if self.bank.shape == (own.capacity[0], shape.n_classes) else None

    def inner_shape(self, own: SeenColumns, shape: Shape) -> Shape:
        """Return the shape of the rows that the members see: one feature per column."""
        return Shape(int(own.capacity[0]), shape.n_classes)

    def blank_own(self, n_features: int) -> SeenColumns:
        """Return a state in which no feature has a column."""
        zero = np.zeros(1, dtype=np.int64)
        return SeenColumns(np.full(n_features, -1, dtype=np.int32), zero, zero.copy(), np.zeros(1, dtype=np.uint64))

    def validate_own(self, own: SeenColumns) -> None:
        """Raise an error unless every column in use belongs to exactly one feature."""
        used, capacity, d = int(own.used[0]), int(own.capacity[0]), len(own.column_of)
        require(1 <= capacity <= d, f"capacity must be from 1 to {d}")
        require(0 <= used <= capacity, f"used must be from 0 to {capacity}")
        require(within(own.column_of, -1, used - 1), f"column_of must be from -1 to {used - 1}")
        columns = np.sort(own.column_of[own.column_of >= 0])
        require(np.array_equal(columns, np.arange(used)), "column_of must have every column once")

    def init(self, n_features: int, n_classes: int, rng: np.random.Generator) -> tuple[SeenColumns, Any]:
        """Return a state without columns in use, and the initial state of the members."""
        capacity = min(self.first, n_features)
        of_bank = self.bank.init(capacity, n_classes, rng)
        return self.blank_own(n_features)._replace(
            capacity=np.array([capacity], dtype=np.int64), seed=rng.integers(2**63, size=1, dtype=np.uint64)
        ), of_bank

    def score(self, rows: Rows) -> Array:
        """Score checked rows."""
        return self.bank.score(self._renumbered(rows)[0])

    def advance(self, rows: Rows, y: Labels, w: Array) -> Array:
        """Score checked row t before learning row t; widen the members after the rows that need it."""
        from bayesvote.members.wrappers._compact_kernels import renumber

        seen = self.own
        weights, limit = w if self.learns else NO_WEIGHTS, self._limit(seen)
        found, top = list[Array](), 0
        while top < rows.n or not found:
            values, columns, _, starts, end, wanted = renumber(rows, weights, seen, limit, top)
            n, capacity = end - top, int(seen.capacity[0])
            part = Rows(n, capacity, None, values, columns, starts, rows.has_nan)
            found.append(self.bank.advance(part, y[top:end], w[top:end]))
            if wanted > capacity:
                self._widen_bank(seen, wanted)
            top = end
        return found[0] if len(found) == 1 else np.concatenate(found)

    def attributions(self, rows: Rows, coefficients: Array, shares: Array) -> Attribution:
        """Attribute scores to features as the members do to columns."""
        seen = self.own
        part, features = self._renumbered(rows)
        found = self.bank.attributions(part, coefficients, shares)
        known, used = self._features(), int(seen.used[0])
        parts, looked = np.zeros((rows.n, rows.width)), np.zeros((rows.n, rows.width))
        parts[:, known], looked[:, known] = found.parts[:, :used], found.looked[:, :used]
        row, new = np.repeat(np.arange(rows.n), np.diff(part.starts)), part.columns >= used
        row, column, features = row[new], part.columns[new], features[new]
        parts[row, features], looked[row, features] = found.parts[row, column], found.looked[row, column]
        rest = found.parts[:, used:].sum(axis=1) - np.bincount(row, found.parts[row, column], minlength=rows.n)
        return Attribution(parts, found.start + rest, looked)

    def kept_rows(self) -> Any:
        """Return the rows that the members keep, as a sparse matrix."""
        from scipy.sparse import csr_array

        kept = self.bank.kept_rows()
        if kept is None:
            return None
        known = self._features()
        row, column = np.nonzero(kept[:, : len(known)])
        return csr_array((kept[row, column], (row, known[column])), shape=(len(kept), len(self.own.column_of)))

    def wider(self, n_features: int, rng: np.random.Generator) -> tuple[SeenColumns, Any]:  # noqa: ARG002
        """Return the state with room for more features, which have no column yet."""
        seen, of_bank = started(self.who, self.state)
        column_of = np.full(n_features, -1, dtype=np.int32)
        column_of[: len(seen.column_of)] = seen.column_of
        return seen._replace(column_of=column_of), of_bank

    def least_bytes(self, n_features: int, n_classes: int) -> int:
        """Size of the column numbers, and of the members' state at the start."""
        return self.own_bytes * n_features + self.bank.least_bytes(min(self.first, n_features), n_classes)

    def _limit(self, seen: SeenColumns) -> int:
        return min(self.max_features, len(seen.column_of))

    def _renumbered(self, rows: Rows) -> tuple[Rows, NDArray[np.int32]]:
        """Return rows as the members see them when nothing is learned, and the feature of every value."""
        from bayesvote.members.wrappers._compact_kernels import renumber

        seen = self.own
        values, columns, features, starts, _, _ = renumber(rows, NO_WEIGHTS, seen, self._limit(seen), 0)
        return Rows(rows.n, int(seen.capacity[0]), None, values, columns, starts, rows.has_nan), features

    def _widen_bank(self, seen: SeenColumns, capacity: int) -> None:
        rng = np.random.default_rng([int(seen.seed[0]), capacity])
        shape = Shape(capacity, started(self.who, self.bank.shape).n_classes)
        self._widening = True  # for other threads that look at the shape meanwhile
        try:
            self.bank.install(self.bank.wider(capacity, rng), shape)
            seen.capacity[0] = capacity
        finally:
            self._widening = False

    def _features(self) -> NDArray[np.intp]:
        """Return the feature of every column in use."""
        column_of = self.own.column_of
        known = np.flatnonzero(column_of >= 0)
        return np.asarray(known[np.argsort(column_of[known])])
