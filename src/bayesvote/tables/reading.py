"""Readers of tables: pandas, polars, pyarrow, and dictionaries of columns."""

import math
from collections.abc import Iterable, Mapping, Sequence
from datetime import date, time, timedelta
from importlib import import_module
from numbers import Real
from typing import Any, NamedTuple

import numpy as np
from numpy.typing import NDArray

from bayesvote.core.checks import Array, InputError, InputTypeError, unmasked
from bayesvote.core.rows import TOO_LARGE
from bayesvote.tables import exact as _exact
from bayesvote.tables.cells import MISSING_TEXTS, Cells, Sort, Table, seconds_of, shortened
from bayesvote.tables.exact import Exact

_MISSING_TYPES = frozenset({"NAType", "NaTType"})
_LIBRARIES = ("pandas", "polars", "pyarrow")
_OTHER_TEXTS = (np.str_, bytes, time)
_FARTHEST = 10**8  # days from 1970; there are microseconds for little more


def columns_of(rows: Iterable[Mapping[str, Any]], names: Iterable[str] = ()) -> dict[str, list[Any]]:
    """Convert rows that are dictionaries, such as those of JSON lines, to columns. Missing keys become None.

    Parameters
    ----------
    rows
        The rows.
    names
        Columns to include even if no row has them.

    Examples
    --------
    >>> columns_of([{"island": "Dream", "mass": 3750}, {"island": None}])
    {'island': ['Dream', None], 'mass': [3750, None]}
    """
    given = list(rows)
    for i, row in enumerate(given):
        if not isinstance(row, Mapping):
            raise InputTypeError("columns_of", f"row {i}", "must be a dictionary of names and values", repr(row))
    found = dict.fromkeys([*names, *(name for row in given for name in row)])
    return {name: [row.get(name) for row in given] for name in found}


def is_table(X: Any) -> bool:
    """Return True for a table of pandas, polars or pyarrow, or a dictionary of columns."""
    if isinstance(X, Mapping):
        return not hasattr(X, "tocsr")  # the dok_matrix of SciPy is a dictionary, too
    return isinstance(X, Table) or (
        type(X).__module__.partition(".")[0] in _LIBRARIES and (hasattr(X, "columns") or hasattr(X, "column_names"))
    )


def not_numbers(X: Any) -> list[str]:
    """Return the names of the columns whose type is not numeric."""
    if isinstance(X, Table):
        flags = [(name, cells.kind in ("number", "boolean")) for name, cells in X.columns.items()]
    elif isinstance(X, Mapping):
        flags = [(name, False) for name in X]
    elif hasattr(X, "column_names"):
        types = import_module("pyarrow.types")
        numeric = (types.is_integer, types.is_floating, types.is_boolean)
        flags = [(field.name, any(is_one(field.type) for is_one in numeric)) for field in X.schema]
    elif hasattr(X, "schema"):
        flags = [(name, dtype.is_numeric() or str(dtype) == "Boolean") for name, dtype in X.schema.items()]
    else:
        flags = [(name, getattr(dtype, "kind", "O") in "iufb") for name, dtype in X.dtypes.items()]
    return [str(name) for name, numeric in flags if not numeric]


def has_text(X: Any) -> bool:
    """Return True if a table has a column whose type is not numeric. A dictionary counts as such a table."""
    return isinstance(X, Mapping) or len(not_numbers(X)) > 0


def read_table(who: str, X: Any) -> Table:
    """Read a table of pandas, polars or pyarrow, or a dictionary of columns."""
    if isinstance(X, Table):
        return X
    library = type(X).__module__.partition(".")[0]
    if hasattr(X, "collect"):
        must = "must be a table in memory"
        raise InputTypeError(who, "X", must, type(X).__name__, "Pass X.collect().")
    if isinstance(X, Mapping):
        given = {str(name): _any(values) for name, values in X.items()}
    elif library == "pandas":
        given = {str(name): _pandas(X.iloc[:, j]) for j, name in enumerate(X.columns)}
    elif library == "polars":
        given = {name: _polars(X[name]) for name in X.columns}
    else:
        given = {name: _arrow(X.column(j)) for j, name in enumerate(X.column_names)}
    names = list(X) if isinstance(X, Mapping) else list(X.column_names if library == "pyarrow" else X.columns)
    if len(given) < len(names):
        raise InputError(who, "X", "must have different names for all columns", str([str(name) for name in names]))
    if not given:
        raise InputError(who, "X", "must have at least one column", "none")
    columns = {name: _cells(who, name, *found) for name, found in given.items()}
    lengths = {name: len(cells.numbers) for name, cells in columns.items()}
    if len(set(lengths.values())) > 1:
        raise InputError(who, "X", "must have columns of the same length", str(lengths))
    return Table(next(iter(lengths.values())), columns)


# Each reader returns an array or a list, and "category" if the column was declared to be one.
_Found = tuple[Any, str | None]


def _any(values: Any) -> _Found:
    library = type(values).__module__.partition(".")[0]
    if library == "pandas" and hasattr(values, "dtype"):
        return _pandas(values)
    if library == "polars" and hasattr(values, "dtype"):
        return _polars(values)
    if library == "pyarrow" and hasattr(values, "type"):
        return _arrow(values)
    return values, None


def _pandas(column: Any) -> _Found:
    dtype = column.dtype
    if str(dtype) == "category":
        return column.astype(object).tolist(), "category"
    kind = getattr(dtype, "kind", "O")
    if kind in "iufb" and not isinstance(dtype, np.dtype):
        numbers = column.to_numpy(dtype=np.float64, na_value=np.nan)
        whole = column.to_numpy(dtype=np.int64 if kind == "i" else np.uint64, na_value=0) if kind in "iu" else None
        return _NumericColumn("boolean" if kind == "b" else "number", numbers, whole), None
    if kind in "Mm":
        unit = f"{'datetime64' if kind == 'M' else 'timedelta64'}[{getattr(dtype, 'unit', 'ns')}]"
        return column.to_numpy(dtype=unit, na_value=np.array("NaT", unit)[()]), None
    return (column.to_numpy() if isinstance(dtype, np.dtype) and kind != "O" else column.tolist()), None


def _polars(column: Any) -> _Found:
    polars, dtype = import_module("polars"), column.dtype
    if dtype.is_numeric() or dtype == polars.Boolean:
        numbers = column.cast(polars.Float64).to_numpy()
        whole: Any = None
        if dtype.is_integer():
            whole = column.to_list() if "128" in str(dtype) else column.fill_null(0).to_numpy()
        elif dtype.is_decimal():
            whole = column.to_list()
        return _NumericColumn("boolean" if dtype == polars.Boolean else "number", numbers, whole), None
    if dtype in (polars.Date, polars.Datetime, polars.Duration):
        return column.to_numpy(), None
    return column.to_list(), "category" if dtype in (polars.Categorical, polars.Enum) else None


def _arrow(column: Any) -> _Found:
    types = import_module("pyarrow.types")
    kind = column.type
    if types.is_integer(kind) or types.is_floating(kind) or types.is_boolean(kind) or types.is_decimal(kind):
        numbers = np.asarray(column.cast("float64", safe=False).to_numpy(zero_copy_only=False), dtype=np.float64)
        whole: Any = None
        if types.is_integer(kind):
            whole = column.fill_null(0).to_numpy(zero_copy_only=False)
        elif types.is_decimal(kind):
            whole = column.to_pylist()
        return _NumericColumn("boolean" if types.is_boolean(kind) else "number", numbers, whole), None
    if types.is_timestamp(kind) or types.is_date(kind) or types.is_duration(kind):
        return column.to_numpy(zero_copy_only=False), None
    return column.to_pylist(), "category" if types.is_dictionary(kind) else None


class _NumericColumn(NamedTuple):
    """A numeric or boolean column of a library: floats, NaN if missing, and the exact integers or decimals."""

    kind: str
    numbers: Array
    whole: Any = None  # an array of integers, or a list of numbers

    def cells(self) -> Cells:
        """Return the cells of the column."""
        exact = _exact.of_values(self.whole) if isinstance(self.whole, list) else None
        if isinstance(self.whole, np.ndarray):
            exact = _exact.of_integers(self.whole)
        return _typed(self.kind, self.numbers, exact)


def _cells(who: str, name: str, values: Any, declared: str | None) -> Cells:
    if isinstance(values, _NumericColumn):
        values = values.cells()
    unmasked(who, f"column {name!r}", values)
    if isinstance(values, np.ndarray) and values.ndim != 1:
        raise InputError(who, f"column {name!r}", "must have one dimension", f"shape {values.shape}")
    if isinstance(values, Cells):
        found = values
    elif isinstance(values, np.ndarray) and values.dtype.kind in "iufbMm":
        found = _of_array(who, name, values)
    elif isinstance(values, str) or not isinstance(values, Sequence | np.ndarray):
        do = "Pass {name: [value, ...]}. Convert rows that are dictionaries with bayesvote.tables.columns_of."
        raise InputTypeError(who, f"column {name!r}", "must be a sequence of values", type(values).__name__, do)
    else:
        found = _of_list(who, name, values.tolist() if isinstance(values, np.ndarray) else values)
    if found.exact is None:
        found.without_vast(who, name)
    elif found.exact.dtype == object:  # a category may hold a number of any size if it is exact
        inexact = ~_exact.known(found.exact, len(found.numbers))
        found._replace(numbers=np.where(inexact, found.numbers, 0.0)).without_vast(who, name)
    return found.as_texts()._replace(kind="category") if declared else found


def _typed(kind: str, numbers: Array, exact: Exact | None = None) -> Cells:
    n = len(numbers)
    given = np.ascontiguousarray(numbers, dtype=np.float64)
    return Cells(kind, given, np.full(n, Sort[kind.upper()], np.int8), np.full(n, -1, np.int32), [], exact)


def _of_array(who: str, name: str, values: NDArray[Any]) -> Cells:
    if values.dtype.kind in "Mm":
        what = "datetime64" if values.dtype.kind == "M" else "timedelta64"
        far = ~np.isnat(values) & (np.abs(values.astype(f"{what}[D]").astype(np.int64)) > _FARTHEST)
        if np.any(far):
            row = int(np.argmax(far))
            must = f"must hold times within {_FARTHEST:,} days of 1970"
            raise InputError(who, f"column {name!r}", must, f"{values[row]} in row {row}")
        micro = values.astype(f"{what}[us]")
        seconds = np.where(np.isnat(micro), np.nan, micro.astype(np.int64) / 1e6)
        return _typed("date" if values.dtype.kind == "M" else "number", seconds)
    kind, exact = values.dtype.kind, None
    if kind in "iu":
        exact = _exact.of_integers(values)
    elif kind == "f" and values.dtype.itemsize > 8:
        exact = _exact.of_values(values.tolist())
    with np.errstate(over="ignore"):  # infinity is refused
        return _typed("boolean" if kind == "b" else "number", values.astype(np.float64), exact)


def _of_list(who: str, name: str, values: Sequence[Any]) -> Cells:
    numbers, codes = np.full(len(values), np.nan), np.full(len(values), -1, np.int32)
    places: dict[str, int] = {}
    known = dict.fromkeys(MISSING_TEXTS, -1)  # index of each text
    sorts, exact = np.zeros(len(values), np.int8), dict[int, str | None]()
    for t, value in enumerate(values):
        if _exact.is_plain(value):  # most numbers are, and need no further checks
            numbers[t] = value
            continue
        if type(value) is not str and (isinstance(value, _OTHER_TEXTS) or type(value).__name__ == "Interval"):
            value = value.decode("utf-8", "replace") if isinstance(value, bytes) else str(value)
        if type(value) is str:
            place = known.get(value)
            if place is None:
                short = shortened(value.strip())
                is_missing = short.casefold() in MISSING_TEXTS
                place = known[value] = -1 if is_missing else places.setdefault(short, len(places))
            codes[t] = place
        elif value is not None:
            sorts[t], numbers[t], text = _number(who, name, t, value)
            if text is not None:
                exact[t] = text
    return Cells(None, numbers, sorts, codes, list(places), _exact.of_texts(exact, len(values)) if exact else None)


def _number(who: str, name: str, row: int, value: Any) -> tuple[Sort, float, str | None]:
    """Return the meaning and the number of a cell that is not a text, and the exact text of a rounded number."""
    if isinstance(value, bool | np.bool_):
        return Sort.BOOLEAN, float(value), None
    if isinstance(value, Real | np.number) or hasattr(value, "as_tuple"):  # Decimal is not a Real
        try:
            return Sort.NUMBER, *_exact.as_float(value)
        except OverflowError:
            must = f"must hold numbers of at most {_exact.MOST_DIGITS:,} digits"
            got = f"a number too large for float64 in row {row}"
            raise InputError(who, f"column {name!r}", must, got, TOO_LARGE) from None
        except ValueError as error:
            raise InputError(who, f"column {name!r}", "must hold numbers", f"{value!r} in row {row}: {error}") from None
    if type(value).__name__ in _MISSING_TYPES:
        return Sort.NUMBER, math.nan, None
    if isinstance(value, np.datetime64):
        value = value.astype("datetime64[us]").item()
        return Sort.DATE, math.nan if value is None else seconds_of(value), None
    if isinstance(value, date):
        return Sort.DATE, seconds_of(value), None
    if isinstance(value, timedelta):
        return Sort.NUMBER, value.total_seconds(), None
    must = "must hold numbers, strings, booleans or dates"
    raise InputTypeError(who, f"column {name!r}", must, f"{value!r} in row {row}")
