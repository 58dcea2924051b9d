"""Matching of columns by name, and names for tables without names."""

from collections.abc import Collection, Mapping, Sequence
from typing import Any

import numpy as np

from bayesvote.core.checks import Argument, Array, InputError
from bayesvote.core.warn import warn
from bayesvote.tables.cells import Cells, Table
from bayesvote.tables.kinds import Kind, as_kind

_MOST_NAMES = 20  # in a message


def matched(who: str, table: Table, names: Sequence[str], optional: Collection[str] = ()) -> Table:
    """Return the columns with these names, in their order. Other columns are ignored with a warning."""
    lacking = [name for name in names if name not in table.columns and name not in optional]
    if lacking:
        wanted = [name for name in names if name not in optional]
        do = "Add the missing columns; a column of None stands for missing values."
        got = f"a table without {_listed(lacking)}"
        raise InputError(who, "X", f"must have the columns {_listed(wanted)}", got, do)
    ignore(who, [name for name in table.columns if name not in names])
    return Table(table.n, {name: table.columns[name] for name in names if name in table.columns})


def named_by_text(who: str, columns: Mapping[Any, str]) -> dict[str, str]:
    """Return the stated kinds by column names converted to text, as tables have them."""
    found = {str(name): kind for name, kind in columns.items()}
    if len(found) < len(columns):
        raise InputError(who, "columns", "must name each column once", str(dict(columns)))
    return found


def ignore(who: str, others: Sequence[str]) -> None:
    """Warn if columns are ignored."""
    if others:
        warn(f"{who}: X has columns that the model was not fitted with; they are ignored: {_listed(others)}.")


def as_numbers(who: str, table: Table) -> Array:
    """Return a table as an array of numbers, with NaN for missing values."""
    columns = []
    for name, cells in table.columns.items():
        found = as_kind(who, name, cells, Kind.NUMBER, strict=False)
        refuse_texts(who, name, found, Kind.NUMBER)
        columns.append(found.numbers)
    return np.stack(columns, axis=1)


def refuse_texts(who: str, name: str, cells: Cells, kind: Kind) -> None:
    """Raise an error for a text in a column that had none when it was learned."""
    rows = np.flatnonzero(cells.codes >= 0)
    if len(rows):
        got = f"{cells.texts[cells.codes[rows[0]]]!r} in row {rows[0]}"
        must = f"must hold a {kind.name.lower()} in every row, as in the rows that were learned"
        do = "Use None, NaN or '' for missing values. If the column holds texts, fit with"
        raise InputError(who, f"column {name!r}", must, got, do, Argument("columns", {name: "category"}))


def usual_names(n: int) -> list[str]:
    """Return the names that scikit-learn gives columns without one.

    >>> usual_names(3)
    ['x0', 'x1', 'x2']
    """
    return [f"x{j}" for j in range(n)]


def holds_text(X: Any) -> bool:
    """Return True for an array with texts that are not numbers, such as bagging makes from a table."""
    if not isinstance(X, np.ndarray) or X.ndim != 2 or X.dtype.kind not in "OU":
        return False
    try:
        X.astype(np.float64)
    except (OverflowError, TypeError, ValueError):
        return any(isinstance(cell, str) for cell in X.flat)
    return False


def named_columns(X: Any) -> dict[str, Any]:
    """Return the columns of an array as a dictionary with the usual names."""
    return dict(zip(usual_names(X.shape[1]), X.T, strict=True))


def _listed(names: Sequence[str]) -> str:
    return str(list(names)) if len(names) <= _MOST_NAMES else f"{list(names[:_MOST_NAMES])} and {len(names)} in all"
