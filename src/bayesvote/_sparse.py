"""Whether the arrays of a sparse matrix fit together."""

from collections.abc import Callable
from typing import Any

import numpy as np

from bayesvote._checks import InputError


def check_sparse(who: str, X: Any) -> None:
    """Refuse a sparse matrix whose arrays do not fit together: SciPy's compiled code and ours trust its indices.

    A matrix can be so because its arrays were set after it was made, which SciPy does not look at.
    """
    try:
        if len(X.shape) != 2:
            return  # which is said elsewhere
        wrong = _FLAWS[X.format](X)
    except (AttributeError, TypeError, ValueError, IndexError, KeyError) as error:
        wrong = f"one with {type(error).__name__}: {error}"
    if wrong:
        raise InputError(who, "X", "must be a valid sparse matrix", wrong, "Make it anew from its values.")


def _flaw_of_indices(name: str, indices: Any, n: int, least: int = 0) -> str:
    """What is wrong with indices that must be from least to n - 1; empty if nothing."""
    if not isinstance(indices, np.ndarray) or indices.dtype.kind not in "iu" or indices.ndim != 1:
        return f"{name} that are not a row of whole numbers"
    if len(indices) and (indices.min() < least or indices.max() >= n):
        outside = indices[(indices < least) | (indices >= n)][0]
        return f"{name} with {outside}, outside {least} to {n - 1}"
    return ""


def _flaw_of_values(values: Any, ndim: int = 1) -> str:
    if not isinstance(values, np.ndarray) or values.ndim != ndim:
        return "values that are not an array"
    return ""


def _flaw_of_compressed(X: Any, n_lines: int, width: int, block: int = 1) -> str:
    pointers = X.indptr
    flaw = _flaw_of_indices("row pointers", pointers, len(X.indices) + 1)
    flaw = flaw or _flaw_of_indices("columns", X.indices, width) or _flaw_of_values(X.data, 3 if block > 1 else 1)
    if not flaw and len(pointers) != n_lines + 1:
        return f"{len(pointers)} row pointers for {n_lines} rows"
    if not flaw and (pointers[0] != 0 or np.any(pointers[1:] < pointers[:-1]) or pointers[-1] > len(X.data)):
        return "row pointers that do not ascend from 0 to the number of values"
    return flaw


def _flaw_of_blocks(X: Any) -> str:
    high, wide = X.data.shape[1:]
    if X.shape[0] % high or X.shape[1] % wide:
        return f"blocks of {high} by {wide} in a shape of {X.shape}"
    return _flaw_of_compressed(X, X.shape[0] // high, X.shape[1] // wide, block=2)


def _flaw_of_places(X: Any) -> str:
    flaw = _flaw_of_indices("rows", X.row, X.shape[0]) or _flaw_of_indices("columns", X.col, X.shape[1])
    flaw = flaw or _flaw_of_values(X.data)
    if not flaw and not len(X.row) == len(X.col) == len(X.data):
        return f"{len(X.row)} rows, {len(X.col)} columns and {len(X.data)} values"
    return flaw


def _flaw_of_diagonals(X: Any) -> str:
    n, d = X.shape
    flaw = _flaw_of_indices("offsets", X.offsets, d, least=-n + 1) or _flaw_of_values(X.data, 2)
    if not flaw and (len(X.offsets) != len(X.data) or len(np.unique(X.offsets)) != len(X.offsets)):
        return f"{len(X.offsets)} offsets for {len(X.data)} diagonals"
    return flaw


def _flaw_of_keys(X: Any) -> str:
    n, d = X.shape
    within = all(len(key) == 2 and 0 <= key[0] < n and 0 <= key[1] < d for key in X.keys())  # noqa: SIM118 - a matrix gives its rows
    return "" if within else "a place outside its shape"


def _flaw_of_lists(X: Any) -> str:
    rows = X.rows
    if rows.shape != (X.shape[0],) or X.data.shape != rows.shape:
        return "lists that are not one per row"
    within = all(0 <= place < X.shape[1] for row in rows for place in row)
    even = all(len(row) == len(values) for row, values in zip(rows, X.data, strict=True))
    return "" if within and even else "lists with a column outside its shape, or not one value for each"


_FLAWS: dict[str, Callable[[Any], str]] = {
    "csr": lambda X: _flaw_of_compressed(X, X.shape[0], X.shape[1]),
    "csc": lambda X: _flaw_of_compressed(X, X.shape[1], X.shape[0]),
    "bsr": _flaw_of_blocks,
    "coo": _flaw_of_places,
    "dia": _flaw_of_diagonals,
    "dok": _flaw_of_keys,
    "lil": _flaw_of_lists,
}
