"""Conversion of SciPy sparse matrices to checked rows with private index arrays."""

from collections.abc import Callable
from itertools import chain
from operator import index
from typing import Any

import numpy as np
from numpy.typing import NDArray

from bayesvote.core.checks import InputError, InputTypeError, InvalidInputError, unmasked

_MOST_ROWS = 2**63 - 1
MOST_FEATURES = 2**31 - 1  # columns are numbered in 32 bits
_Indices = NDArray[np.integer[Any]]


class _FlawError(Exception):
    """Description of a flaw in a sparse matrix."""


def checked_csr(who: str, X: Any) -> Any:
    """Return the rows of a sparse matrix as a ``csr_array``; inconsistent arrays are an error.

    The compiled code of SciPy and of this library does not check indices. SciPy does not check arrays that were set
    after construction, and another thread may change them. So each index array is copied, and the copy is checked and
    used. Values need no copy, because nothing is looked up by them.
    """
    try:
        shape = tuple(map(index, X.shape))
        if len(shape) != 2:
            must = "must be two-dimensional, rows by features"
            raise InputError(who, "X", must, f"shape {shape}", "Reshape a single row with X.reshape(1, -1).")
        for found, most in zip(shape, (_MOST_ROWS, MOST_FEATURES), strict=True):
            if not 0 <= found <= most:
                raise _FlawError(f"a shape of {shape}")
        return _MADE[X.format](who, X, *shape)
    except InvalidInputError:
        raise
    except _FlawError as error:
        wrong = str(error)
    except (ArithmeticError, AttributeError, LookupError, RuntimeError, TypeError, ValueError) as error:
        wrong = f"one with {type(error).__name__}: {error}"
    raise InputError(who, "X", "must be a valid sparse matrix", wrong, "Construct it again from its values.")


def _own(name: str, given: Any, last: int | None = None) -> _Indices:
    """Copy indices to a plain array: a masked array would hide some of them from the checks."""
    own: NDArray[Any] = np.array(np.asarray(given)[:last], order="C")
    if not isinstance(given, np.ndarray) or own.ndim != 1 or own.dtype.kind not in "iu":
        raise _FlawError(f"{name} that are not a row of whole numbers")
    return own


def _within(name: str, own: _Indices, n: int, least: int = 0) -> _Indices:
    """Require indices from least to n - 1."""
    if len(own) and (own.min() < least or own.max() >= n):
        outside = own[(own < least) | (own >= n)][0]
        raise _FlawError(f"{name} with {outside}, outside {least} to {n - 1}")
    return own


def _values(who: str, given: Any, ndim: int = 1) -> NDArray[Any]:
    """Return the values as a plain array: a view if they are floats, otherwise a copy."""
    values: NDArray[Any] = np.asarray(unmasked(who, "X", given))[...]
    if not isinstance(given, np.ndarray) or values.ndim != ndim:
        raise _FlawError("values that are not an array")
    if values.dtype.kind not in "fiub":
        raise InputTypeError(who, "X", "must hold real numbers", f"{values.dtype} values", "Encode them first.")
    if values.dtype.kind == "f":
        with np.errstate(over="ignore"):  # too large numbers become infinite, and are rejected later
            values = values.astype(np.float64, copy=False)
    return values


def _compressed(who: str, X: Any, n_lines: int, width: int, ndim: int = 1) -> tuple[NDArray[Any], _Indices, _Indices]:
    """Return values, indices and row pointers."""
    pointers, values = _own("row pointers", X.indptr), _values(who, X.data, ndim)
    if len(pointers) != n_lines + 1:
        raise _FlawError(f"{len(pointers)} row pointers for {n_lines} rows")
    n = int(pointers[-1])
    if pointers[0] != 0 or np.any(pointers[1:] < pointers[:-1]) or n > len(values):
        raise _FlawError("row pointers that do not ascend from 0 to the number of values")
    indices = _within("columns", _own("columns", X.indices, n), width)
    if len(indices) != n:
        raise _FlawError(f"{len(indices)} columns for {n} values")
    return values[:n], indices, pointers


def _of_rows(who: str, X: Any, n: int, d: int) -> Any:
    from scipy.sparse import csr_array

    return csr_array(_compressed(who, X, n, d), shape=(n, d))


def _of_columns(who: str, X: Any, n: int, d: int) -> Any:
    from scipy.sparse import csc_array

    return csc_array(_compressed(who, X, d, n), shape=(n, d)).tocsr()


def _of_blocks(who: str, X: Any, n: int, d: int) -> Any:
    from scipy.sparse import bsr_array

    high, wide = X.data.shape[1:]
    if high < 1 or wide < 1 or n % high or d % wide:
        raise _FlawError(f"blocks of {high} by {wide} in a shape of {(n, d)}")
    arrays = _compressed(who, X, n // high, d // wide, ndim=3)
    if arrays[0].shape[1:] != (high, wide):
        raise _FlawError("blocks of other sizes")
    return bsr_array(arrays, shape=(n, d)).tocsr()


def _of_places(who: str, X: Any, n: int, d: int) -> Any:
    return _placed(_values(who, X.data), _own("rows", X.row), _own("columns", X.col), n, d)


def _placed(values: NDArray[Any], row: _Indices, col: _Indices, n: int, d: int) -> Any:
    from scipy.sparse import coo_array

    if not len(row) == len(col) == len(values):
        raise _FlawError(f"{len(row)} rows, {len(col)} columns and {len(values)} values")
    places = _within("rows", row, n), _within("columns", col, d)
    return coo_array((values, places), shape=(n, d)).tocsr()


def _of_diagonals(who: str, X: Any, n: int, d: int) -> Any:
    from scipy.sparse import dia_array

    offsets, values = _own("offsets", X.offsets), _values(who, X.data, 2)
    if len(offsets) != len(values) or len(np.unique(offsets)) != len(offsets):
        raise _FlawError(f"{len(offsets)} offsets for {len(values)} diagonals")
    inside = (offsets > -n) & (offsets < d)  # SciPy keeps the others when it makes a matrix smaller
    return dia_array((values[inside], offsets[inside]), shape=(n, d)).tocsr()


def _of_keys(who: str, X: Any, n: int, d: int) -> Any:
    items = list(X.items())
    places = np.array([place for place, _ in items] or np.empty((0, 2), dtype=np.intp))
    if places.ndim != 2 or places.shape[1] != 2:
        raise _FlawError("places that are not pairs of a row and a column")
    values = _values(who, np.array([value for _, value in items] or np.empty(0)))
    return _placed(values, _own("rows", places[:, 0]), _own("columns", places[:, 1]), n, d)


def _of_lists(who: str, X: Any, n: int, d: int) -> Any:
    rows, data = X.rows.tolist(), X.data.tolist()
    # SciPy accepts only lists, which cannot hide elements as masked arrays can.
    if len(rows) != n or len(data) != n or not all(type(one) is list for one in (*rows, *data)):
        raise _FlawError("rows that are not one list each")
    rows, data = [list(row) for row in rows], [list(row) for row in data]
    lengths = np.array([len(row) for row in rows], dtype=np.intp)
    if lengths.tolist() != [len(row) for row in data]:
        raise _FlawError("lists with not one value for each column")
    places = np.array(list(chain.from_iterable(rows)) or np.empty(0, dtype=np.intp))
    values = _values(who, np.array(list(chain.from_iterable(data)) or np.empty(0)))
    return _placed(values, np.repeat(np.arange(n), lengths), _own("columns", places), n, d)


_MADE: dict[str, Callable[[str, Any, int, int], Any]] = {
    "csr": _of_rows,
    "csc": _of_columns,
    "bsr": _of_blocks,
    "coo": _of_places,
    "dia": _of_diagonals,
    "dok": _of_keys,
    "lil": _of_lists,
}
