"""Tables of any library in one form: every cell a number, a text, or missing."""

import math
from collections.abc import Iterable, Mapping, Sequence
from datetime import UTC, date, datetime, time, timedelta
from importlib import import_module
from numbers import Real
from typing import Any, NamedTuple

import numpy as np
from numpy.typing import NDArray

from bayesvote._checks import Array, InputError, InputTypeError

Codes = NDArray[np.int32]

# Texts that stand for nothing.
NOTHING = frozenset({"", "NA", "N/A", "NaN", "nan", "null", "NULL", "?"})
_MISSING_TYPES = frozenset({"NAType", "NaTType"})
_LIBRARIES = ("pandas", "polars", "pyarrow")
_LONGEST = 64  # of the texts that are kept whole


class Cells(NamedTuple):
    """The cells of a column. One is a number, a text, or, if it is neither, missing."""

    kind: str | None  # what its numbers are: "number", "boolean" or "date"; "category" if it was declared to be one
    typed: bool  # whether a type says so for all of them
    numbers: Array  # (n,), NaN where there is none; dates are seconds since 1970
    codes: Codes  # (n,): the place of its text among the texts, or -1
    texts: list[str]

    def part(self, first: int, last: int) -> "Cells":
        """Cells first to last."""
        return self._replace(numbers=self.numbers[first:last], codes=self.codes[first:last])

    def take(self, order: NDArray[np.intp]) -> "Cells":
        """Cells in this order."""
        return self._replace(numbers=self.numbers[order], codes=self.codes[order])

    def followed_by(self, other: "Cells") -> "Cells":
        """These cells, then others of the same column."""
        known = {text: k for k, text in enumerate(self.texts)}
        places = np.array([known.setdefault(text, len(known)) for text in other.texts] + [-1], dtype=np.int32)
        return Cells(
            self.kind or other.kind,
            self.typed and other.typed,
            np.concatenate([self.numbers, other.numbers]),
            np.concatenate([self.codes, places[other.codes]]),
            list(known),
        )

    def missing(self) -> NDArray[np.bool_]:
        """Which cells are."""
        return np.isnan(self.numbers) & (self.codes < 0)


class Table(NamedTuple):
    """Rows of named columns."""

    n: int
    columns: dict[str, Cells]

    @property
    def width(self) -> int:
        """How many columns there are."""
        return len(self.columns)

    def part(self, first: int, last: int) -> "Table":
        """Rows first to last."""
        return Table(last - first, {name: cells.part(first, last) for name, cells in self.columns.items()})

    def take(self, order: NDArray[np.intp]) -> "Table":
        """Rows in this order."""
        return Table(len(order), {name: cells.take(order) for name, cells in self.columns.items()})

    def followed_by(self, other: "Table") -> "Table":
        """These rows, then others of the same columns."""
        joined = {name: cells.followed_by(other.columns[name]) for name, cells in self.columns.items()}
        return Table(self.n + other.n, joined)

    def dictionaries(self) -> list[dict[str, Any]]:
        """Rows as dictionaries of numbers and texts; what is missing is left out."""
        rows: list[dict[str, Any]] = [{} for _ in range(self.n)]
        for name, cells in self.columns.items():
            for row, number, code in zip(rows, cells.numbers.tolist(), cells.codes.tolist(), strict=True):
                if code >= 0:
                    row[name] = cells.texts[code]
                elif number == number:
                    row[name] = number
        return rows


def columns_of(rows: Iterable[Mapping[str, Any]], names: Iterable[str] = ()) -> dict[str, list[Any]]:
    """Columns of rows that are dictionaries, such as those of JSON lines; what a row lacks is None.

    Parameters
    ----------
    rows
        The rows.
    names
        Columns that there must be, even if no row has them.

    Examples
    --------
    >>> columns_of([{"island": "Dream", "mass": 3750}, {"island": None}])
    {'island': ['Dream', None], 'mass': [3750, None]}
    """
    given = list(rows)
    found = dict.fromkeys([*names, *(name for row in given for name in row)])
    return {name: [row.get(name) for row in given] for name in found}


def is_table(X: Any) -> bool:
    """Whether this is a table of pandas, polars or pyarrow, or a dictionary of columns."""
    if isinstance(X, Mapping):
        return not hasattr(X, "tocsr")  # SciPy's dictionary of keys is a dictionary, too
    return isinstance(X, Table) or (
        type(X).__module__.partition(".")[0] in _LIBRARIES and (hasattr(X, "columns") or hasattr(X, "column_names"))
    )


def not_numbers(X: Any) -> list[str]:
    """Names of a table's columns that are not of numbers by their type."""
    if isinstance(X, Table):
        flags = [(name, cells.typed and cells.kind in ("number", "boolean")) for name, cells in X.columns.items()]
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
    """Whether a table has a column that is not of numbers by its type; a dictionary is taken to have."""
    return len(not_numbers(X)) > 0


def read_table(who: str, X: Any) -> Table:
    """Read a table: of pandas, polars or pyarrow, or a dictionary of columns by their names."""
    if isinstance(X, Table):
        return X
    library = type(X).__module__.partition(".")[0]
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
        raise InputError(who, "X", "must have a name of its own for every column", str([str(name) for name in names]))
    if not given:
        raise InputError(who, "X", "must have at least one column", "none")
    columns = {name: _cells(who, name, *found) for name, found in given.items()}
    lengths = {name: len(cells.numbers) for name, cells in columns.items()}
    if len(set(lengths.values())) > 1:
        raise InputError(who, "X", "must have columns of one length", str(lengths))
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
        return (_Booleans(numbers) if kind == "b" else numbers), None
    if kind in "Mm":
        unit = "datetime64[us]" if kind == "M" else "timedelta64[us]"
        return column.to_numpy(dtype=unit, na_value=np.array("NaT", unit)[()]), None
    return (column.to_numpy() if isinstance(dtype, np.dtype) and kind != "O" else column.tolist()), None


def _polars(column: Any) -> _Found:
    polars, dtype = import_module("polars"), column.dtype
    if dtype.is_numeric() or dtype == polars.Boolean:
        numbers = column.cast(polars.Float64).to_numpy()
        return (_Booleans(numbers) if dtype == polars.Boolean else numbers), None
    if dtype in (polars.Date, polars.Datetime):
        return column.cast(polars.Datetime("us")).to_numpy(), None
    if dtype == polars.Duration:
        return column.cast(polars.Duration("us")).to_numpy(), None
    return column.to_list(), "category" if dtype in (polars.Categorical, polars.Enum) else None


def _arrow(column: Any) -> _Found:
    types = import_module("pyarrow.types")
    kind = column.type
    if types.is_integer(kind) or types.is_floating(kind) or types.is_boolean(kind) or types.is_decimal(kind):
        numbers = np.asarray(column.cast("float64").to_numpy(zero_copy_only=False), dtype=np.float64)
        return (_Booleans(numbers) if types.is_boolean(kind) else numbers), None
    if types.is_timestamp(kind) or types.is_date(kind):
        return column.cast("timestamp[us]").to_numpy(zero_copy_only=False), None
    if types.is_duration(kind):
        return column.cast("duration[us]").to_numpy(zero_copy_only=False), None
    return column.to_pylist(), "category" if types.is_dictionary(kind) else None


class _Booleans(NamedTuple):
    """Truth values as numbers, NaN where there is none."""

    numbers: Array


def _cells(who: str, name: str, values: Any, declared: str | None) -> Cells:
    if isinstance(values, _Booleans):
        return _typed("boolean", values.numbers)
    if isinstance(values, np.ndarray) and values.ndim != 1:
        raise InputError(who, f"column {name!r}", "must have one dimension", f"shape {values.shape}")
    if isinstance(values, np.ndarray) and values.dtype.kind in "iufbMm":
        found = _of_array(values)
    elif isinstance(values, str) or not isinstance(values, Sequence | np.ndarray):
        do = "Give {name: [value, ...]}; rows that are dictionaries become columns by bayesvote.tables.columns_of."
        raise InputTypeError(who, f"column {name!r}", "must be a sequence of values", type(values).__name__, do)
    else:
        found = _of_list(who, name, values.tolist() if isinstance(values, np.ndarray) else values)
    wrong = np.isinf(found.numbers) | (np.abs(found.numbers) > 1e100)
    if np.any(wrong):
        row = int(np.argmax(wrong))
        must, do = "must hold finite numbers below 1e100 in size", "Leave missing values out: None or NaN."
        raise InputError(who, f"column {name!r}", must, f"{found.numbers[row]} in row {row}", do)
    return found._replace(kind="category", typed=True) if declared else found


def _typed(kind: str, numbers: Array) -> Cells:
    return Cells(kind, True, np.ascontiguousarray(numbers, dtype=np.float64), np.full(len(numbers), -1, np.int32), [])


def _of_array(values: NDArray[Any]) -> Cells:
    if values.dtype.kind in "Mm":
        micro = values.astype("datetime64[us]" if values.dtype.kind == "M" else "timedelta64[us]")
        seconds = np.where(np.isnat(micro), np.nan, micro.astype(np.int64) / 1e6)
        return _typed("date" if values.dtype.kind == "M" else "number", seconds)
    return _typed("boolean" if values.dtype.kind == "b" else "number", values.astype(np.float64))


def _of_list(who: str, name: str, values: Sequence[Any]) -> Cells:
    numbers, codes = np.full(len(values), np.nan), np.full(len(values), -1, np.int32)
    places: dict[str, int] = {}
    known = dict.fromkeys(NOTHING, -1)  # texts to their places
    kinds: dict[str, int] = {}  # of the numbers, and the first row of each
    for t, value in enumerate(values):
        if type(value) is str:
            place = known.get(value)
            if place is None:
                short = shortened(value.strip())
                place = known[value] = -1 if short in NOTHING else places.setdefault(short, len(places))
            codes[t] = place
        elif value is not None:
            kind, number = _number(who, name, t, value)
            if kind == "text":
                codes[t] = places.setdefault(shortened(str(value)), len(places))
            elif number == number:
                numbers[t] = number
                kinds.setdefault(kind, t)
    if len(kinds) > 1 and "date" in kinds:
        row = sorted(kinds.values())[1]
        must = "must not hold both dates and numbers"
        raise InputError(
            who, f"column {name!r}", must, f"{values[row]!r} in row {row}", "State what it is by columns=."
        )
    of_all = "number" if "number" in kinds else next(iter(kinds), None)
    return Cells(of_all, False, numbers, codes, list(places))


def _number(who: str, name: str, row: int, value: Any) -> tuple[str, float]:
    """Say what a cell of no text is, and its number."""
    if isinstance(value, bool | np.bool_):
        return "boolean", float(value)
    if isinstance(value, Real | np.number) or hasattr(value, "as_tuple"):  # Decimal is no Real
        try:
            return "number", float(value)
        except OverflowError:
            must = "must hold numbers below 1e100 in size"
            raise InputError(who, f"column {name!r}", must, f"a larger one in row {row}") from None
    if type(value).__name__ in _MISSING_TYPES:
        return "number", math.nan
    if isinstance(value, np.datetime64):
        value = value.astype("datetime64[us]").item()
        return "date", math.nan if value is None else seconds_of(value)
    if isinstance(value, date):
        return "date", seconds_of(value)
    if isinstance(value, timedelta):
        return "number", value.total_seconds()
    if isinstance(value, np.str_ | bytes | time):
        return "text", 0.0
    must = "must hold numbers, texts, booleans or dates"
    raise InputTypeError(who, f"column {name!r}", must, f"{value!r} in row {row}")


def seconds_of(value: date) -> float:
    """Seconds since 1970; without a time zone it is UTC."""
    moment = value if isinstance(value, datetime) else datetime(value.year, value.month, value.day)
    if moment.tzinfo is None:
        moment = moment.replace(tzinfo=UTC)
    return moment.timestamp()


def shortened(text: str) -> str:
    """Return a text as it is kept: a long one by its beginning and a hash.

    >>> shortened("short"), len(shortened("long" * 100))
    ('short', 64)
    """
    if len(text) <= _LONGEST:
        return text
    from hashlib import blake2b

    return text[: _LONGEST - 17] + "#" + blake2b(text.encode("utf-8", "replace"), digest_size=8).hexdigest()


def text_of(number: float) -> str:
    """Return a number as the text of a category.

    >>> text_of(3.0), text_of(2.5)
    ('3', '2.5')
    """
    return str(int(number)) if number == int(number) else repr(number)
