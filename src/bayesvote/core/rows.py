"""Input rows, checked once and held in one form for all banks and boosters."""

import sys
from collections.abc import Iterator, Mapping
from contextlib import contextmanager, suppress
from functools import lru_cache
from typing import TYPE_CHECKING, Any, NamedTuple, TypeVar

import numpy as np
from numpy.typing import ArrayLike, NDArray

from bayesvote.core.checks import (
    Array,
    InputError,
    InputTypeError,
    Labels,
    integer,
    labels,
    overflows,
    unmasked,
    weights,
)
from bayesvote.core.sparse import MOST_FEATURES, checked_csr

if TYPE_CHECKING:
    from scipy.sparse import sparray, spmatrix

_T = TypeVar("_T")

LARGEST = 1e100  # sums of 1e100 squares of such values stay finite; an infinite sum would never leave a member again
TOO_LARGE = "Divide such values by a constant, or mark them as missing with NaN."


class Rows(NamedTuple):
    """Checked rows in compressed sparse row format; all dense rows share one array of column indices.

    Row t has the values ``values[starts[t]:starts[t + 1]]``. Their columns are ``columns[starts[t]:starts[t + 1]]``
    for sparse rows, and all of ``columns`` for dense rows.
    """

    n: int
    width: int
    dense: Array | None  # (n, width), C-contiguous; None for sparse rows
    values: Array
    columns: NDArray[np.int32]
    starts: NDArray[np.int64]
    has_nan: bool

    @property
    def sparse(self) -> bool:
        """True if each row has its own column indices."""
        return self.dense is None

    def part(self, first: int, last: int) -> "Rows":
        """Return rows first to last, as views."""
        if first == 0 and last == self.n:
            return self
        starts = self.starts[first : last + 1]
        at = slice(starts[0], starts[-1])
        dense = None if self.dense is None else self.dense[first:last]
        columns = self.columns[at] if self.sparse else self.columns
        return Rows(last - first, self.width, dense, self.values[at], columns, starts - starts[0], self.has_nan)

    def copy(self) -> "Rows":
        """Return a copy that shares no values."""
        n, width, dense, values, columns, starts, has_nan = self
        if dense is not None:
            dense = dense.copy()
            return Rows(n, width, dense, dense.reshape(-1), columns, starts, has_nan)
        return Rows(n, width, None, values.copy(), columns.copy(), starts.copy(), has_nan)

    def take(self, order: NDArray[np.intp]) -> "Rows":
        """Return the rows with these indices, which may repeat."""
        if self.dense is not None:
            return _dense_rows(self.dense[order], self.has_nan)
        lengths = np.diff(self.starts)[order]
        starts = np.concatenate(([0], np.cumsum(lengths)))
        at = np.repeat(self.starts[order] - starts[:-1], lengths) + np.arange(starts[-1])
        return Rows(len(order), self.width, None, self.values[at], self.columns[at], starts, self.has_nan)

    def followed_by(self, other: "Rows") -> "Rows":
        """Return these rows, then the others, which must have the same width."""
        has_nan = self.has_nan or other.has_nan
        if self.dense is not None and other.dense is not None:
            return _dense_rows(np.concatenate((self.dense, other.dense)), has_nan)
        columns = [rows.columns if rows.sparse else np.tile(rows.columns, rows.n) for rows in (self, other)]
        values = np.concatenate((self.values, other.values))
        starts = np.concatenate((self.starts, other.starts[1:] + self.starts[-1]))
        return Rows(self.n + other.n, self.width, None, values, np.concatenate(columns), starts, has_nan)

    def widened(self, width: int) -> "Rows":
        """Return the rows with further features, which are 0."""
        if self.dense is None:
            return self._replace(width=width)
        return _dense_rows(np.pad(self.dense, ((0, 0), (0, width - self.width))), self.has_nan)

    def tocsr(self) -> Any:
        """Return the rows as a SciPy sparse array."""
        from scipy.sparse import csr_array

        return csr_array((self.values, self.columns, self.starts), shape=(self.n, self.width))

    def todense(self, first: int = 0, last: int | None = None) -> Array:
        """Return rows first to last as a dense array."""
        last = self.n if last is None else min(last, self.n)
        if self.dense is not None:
            return self.dense[first:last]
        edges = self.starts[first : last + 1]
        out = np.zeros((last - first, self.width))
        at = np.repeat(np.arange(last - first), np.diff(edges))
        out[at, self.columns[edges[0] : edges[-1]]] = self.values[edges[0] : edges[-1]]
        return out


if TYPE_CHECKING:
    RowsLike = ArrayLike | sparray | spmatrix | Rows
else:
    RowsLike = Any


def started(who: str, state: _T | None) -> _T:
    """Return the state of a bank or model; an error if it has not been started."""
    if state is None:
        raise InputError(who, "", "must be started before use", do="Call start(n_features, n_classes) first.")
    return state


def check_start(
    who: str, n_features: int, n_classes: int, rng: np.random.Generator | int | None
) -> np.random.Generator:
    """Check the arguments of ``start``; return the random generator."""
    integer(who, "n_features", n_features)
    if n_features > MOST_FEATURES:
        raise InputError(who, "n_features", f"must be at most {MOST_FEATURES}", str(n_features))
    integer(who, "n_classes", n_classes, least=2)
    return np.random.default_rng(rng)


def check_rows(who: str, X: RowsLike, n_features: int) -> Rows:
    """Check dense or sparse rows: two-dimensional, with n_features columns, finite or NaN.

    Of ``Rows``, which are checked already, only the width is compared.
    """
    rows = as_rows(who, X)
    check_width(who, rows, n_features)
    return rows


def check_width(who: str, rows: Rows, n_features: int) -> None:
    """Require rows with n_features columns."""
    if rows.width != n_features:
        raise InputError(
            who,
            "X",
            f"must have {n_features} features, as at the start",
            str(rows.width),
            "Give every row the same columns, with NaN where a value is missing.",
        )


def as_rows(who: str, X: RowsLike) -> Rows:
    """Check rows of any width."""
    if isinstance(X, Rows):
        return X
    if type(X) is np.ndarray:  # neither sparse nor masked
        return _dense(who, X)
    return _sparse(who, X) if is_sparse(X) else _dense(who, plain(who, X))


def plain(who: str, X: Any) -> Any:
    """Reject lists of dictionaries and masked arrays, which NumPy would misread."""
    if isinstance(X, (list, tuple)) and any(isinstance(row, Mapping) for row in X):
        do = "Convert them to columns with bayesvote.tables.columns_of(X)."
        raise InputTypeError(who, "X", "must have rows of numbers, or be a table", "a list of dictionaries", do)
    return unmasked(who, "X", X)


@contextmanager
def within_float64(who: str, X: Any) -> Iterator[None]:
    """Convert an OverflowError to an error that names the row and column of the number, such as 10**400."""
    try:
        yield
    except OverflowError:
        place = next((f" in row {t}, column {j}" for t, j, cell in _cells(X) if overflows(cell)), "")
        must = f"must hold finite numbers below {LARGEST:g} in size"
        raise InputError(who, "X", must, f"a number too large for float64{place}", TOO_LARGE) from None


def _cells(X: Any) -> Iterator[tuple[int, int, Any]]:
    rows = np.asarray(X, dtype=object)
    if rows.ndim == 2:
        yield from ((t, j, cell) for t, row in enumerate(rows) for j, cell in enumerate(row))


def is_sparse(X: Any) -> bool:
    """Return True for SciPy sparse matrices and arrays."""
    # A caller with a sparse matrix has imported scipy.sparse; others should not wait for the import.
    loaded = sys.modules.get("scipy.sparse")
    return loaded is not None and bool(loaded.issparse(X))


def check_labelled(
    who: str,
    X: RowsLike,
    y: ArrayLike,
    sample_weight: ArrayLike | None,
    n_features: int,
    n_classes: int,
) -> tuple[Rows, Labels, Array]:
    """Check rows, labels and sample weights.

    ``Rows`` with labels and weights of the checked types are not checked again.
    """
    if (
        isinstance(X, Rows)
        and X.width == n_features
        and isinstance(y, np.ndarray)
        and y.dtype == np.intp
        and isinstance(sample_weight, np.ndarray)
        and sample_weight.dtype == np.float64
    ):
        return X, y, sample_weight
    rows = check_rows(who, X, n_features)
    return rows, labels(who, y, rows.n, n_classes), weights(who, sample_weight, rows.n)


def _dense(who: str, X: Any) -> Rows:
    given = np.asarray(X)[...]  # a view, whose shape other threads cannot change
    if given.dtype.kind == "O":
        with within_float64(who, given), suppress(TypeError, ValueError):
            given = given.astype(np.float64)
    if given.dtype.kind not in "fiub":
        raise InputTypeError(who, "X", "must hold real numbers", f"{given.dtype} values", "Encode them first.")
    if given.ndim != 2:
        raise InputError(
            who,
            "X",
            "must be two-dimensional, rows by features",
            f"shape {given.shape}",
            "Reshape a single row with X.reshape(1, -1).",
        )
    if given.dtype != np.float64 or not given.flags.carray:
        given = np.array(given, dtype=np.float64, order="C")
    return _dense_rows(given, _has_nan(who, given.reshape(-1)))


def _dense_rows(X: Array, has_nan: bool) -> Rows:
    n, width = X.shape
    starts = _one_row(width) if n == 1 else np.arange(n + 1, dtype=np.int64) * width
    return Rows(n, width, X, X.reshape(-1), _all_columns(width), starts, has_nan)


@lru_cache(maxsize=64)
def _all_columns(width: int) -> NDArray[np.int32]:
    return np.arange(width, dtype=np.int32)


@lru_cache(maxsize=64)
def _one_row(width: int) -> NDArray[np.int64]:
    return np.array([0, width], dtype=np.int64)


def _sparse(who: str, X: Any) -> Rows:
    matrix = checked_csr(who, X)
    n, width = matrix.shape
    if not matrix.has_canonical_format:
        matrix = matrix.copy()  # the caller's values stay as they were
        matrix.sum_duplicates()
    starts, columns = matrix.indptr.astype(np.int64), matrix.indices.astype(np.int32, copy=False)
    values = np.ascontiguousarray(matrix.data, dtype=np.float64)
    if not values.flags.carray:
        values = values.copy()
    return Rows(n, width, None, values, columns, starts, _has_nan(who, values))


def _has_nan(who: str, values: Array) -> bool:
    # Checking for NaN is slow; skip it when all values are of moderate size. For few values, the sum of squares is the
    # fastest test. For many, BLAS would use threads, which then spin on the cores that the kernels need.
    if len(values) < 10_000:
        moderate = np.vdot(values, values) < LARGEST**2
    else:
        moderate = np.minimum.reduce(values) > -LARGEST and np.maximum.reduce(values) < LARGEST
    if moderate:
        return False
    large = values[np.abs(values) > LARGEST]
    if len(large):
        raise InputError(
            who,
            "X",
            f"must hold finite numbers below {LARGEST:g} in size",
            str(large[0]),
            "Mark missing values with NaN.",
        )
    return bool(np.any(np.isnan(values)))
