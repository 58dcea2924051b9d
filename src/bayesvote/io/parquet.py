"""Reader of Parquet: only the requested columns are read."""

from collections.abc import Iterator
from contextlib import contextmanager
from datetime import time
from importlib import import_module
from json import JSONDecodeError
from typing import Any, BinaryIO

import numpy as np
from numpy.typing import NDArray

from bayesvote.core.checks import Array, InputError
from bayesvote.core.rows import LARGEST
from bayesvote.io.chunks import Chunk, ChunkAssembler, OpenedFile
from bayesvote.io.columns import Choose, Header
from bayesvote.io.faults import BadLines, StatedColumn, fault, shown, stated_columns
from bayesvote.io.labels import LabelReader
from bayesvote.io.read_options import ReadOptions

_UNREADABLE = (ValueError, OverflowError)  # raised by Arrow for values that Python cannot represent


def read_parquet(file: BinaryIO, choose: Choose, bad: BadLines, options: ReadOptions) -> OpenedFile:
    """Read the schema, choose columns, and read only these."""
    kinds, labels = options.request.stated, options.labels
    import pyarrow.parquet
    import pyarrow.types

    def opened(of_texts: list[str] | None = None) -> Any:
        with _damage():
            return pyarrow.parquet.ParquetFile(file, read_dictionary=of_texts)

    bad.unit = "row"
    with _damage():
        schema = opened().schema_arrow
        header = Header(schema.names, _index(schema))
    columns = choose(header)
    features, label, default = columns
    names = [schema.names[j] for j in features]
    # Categories are compared exactly, so they must not be converted to floats.
    exact = {j for j in features if kinds.get(schema.names[j]) == "category" and _is_exact(schema.field(j).type)}
    as_floats = [j for j in features if j not in exact]
    of_numbers = [j for j in as_floats if _is_number(schema.field(j).type) or _is_duration(schema.field(j).type)]
    for j in features:
        kind = schema.field(j).type
        if j not in of_numbers and not _is_plain(kind):
            subject = f"column {schema.names[j]!r} of {bad.source}"
            must = "must hold numbers, text, booleans, dates or times"
            raise InputError(bad.who, subject, must, str(kind), "Drop it.")
    of_label = [] if label is None else [label]
    for j in (*features, *of_label):
        _check_zone(bad, schema.names[j], schema.field(j).type)
    as_table = bool(kinds) or not all(_is_number(schema.field(j).type) for j in features)
    # Columns are read by name; if names are not unique, all are read and found by position.
    unique = len(set(schema.names)) == len(schema.names)
    read_places = sorted([*features, *of_label]) if unique else range(len(schema.names))
    asked = [schema.names[j] for j in read_places] if unique else None
    of_kind = stated_columns(columns, schema.names, kinds)

    def found_in(batch: Any) -> dict[int, Any]:
        # For a column named "geo.lat", Arrow also reads the field lat of a column geo, so positions may shift.
        place = {name: k for k, name in enumerate(batch.schema.names)}
        return {j: batch.column(place[schema.names[j]] if unique else j) for j in (*features, *of_label)}

    target = None if label is None else schema.names[label]
    # Read text as dictionary codes: a value that is stored once must not take memory for every row.
    table = opened([schema.names[j] for j in read_places if _is_text(schema.field(j).type)])

    reader = LabelReader(labels, target, default)

    def batches() -> Iterator[Any]:
        with _damage():
            yield from table.iter_batches(batch_size=options.chunk_size, columns=asked)

    def chunks() -> Iterator[Chunk]:
        assembler = ChunkAssembler(bad, reader)
        read = 0
        for batch in batches():
            column = found_in(batch)
            values = np.empty((batch.num_rows, len(of_numbers)))
            for k, j in enumerate(of_numbers):
                values[:, k] = _numbers(column[j])
            faults = _vast(values, [schema.names[j] for j in of_numbers], read + 1)
            X: Any = values
            if as_table:
                of_column = {j: values[:, k] for k, j in enumerate(of_numbers)}
                X = {
                    schema.names[j]: of_column[j]
                    if j in of_column
                    else _listed(column[j], schema.names[j], read + 1, faults, of_kind.get(j))
                    for j in features
                }
            of_rows = None
            if label is not None:
                of_rows = _texts(_listed(column[label], schema.names[label], read + 1, faults))
            yield from assembler.chunk(X, of_rows, np.arange(read + 1, read + 1 + len(values)), faults)
            read += batch.num_rows
        if read != table.metadata.num_rows:
            raise OSError(f"its metadata declares {table.metadata.num_rows:,} rows, but it has {read:,}")

    def categories() -> NDArray[Any] | None:
        if label is None or not unique or not pyarrow.types.is_dictionary(schema.field(label).type):
            return None
        of_groups = LabelReader(labels)
        found: set[Any] = set()
        for group in range(table.num_row_groups):
            # One row has the categories of its whole group. The first label decides whether labels are numbers.
            try:
                with _damage():
                    batch = next(table.iter_batches(1, row_groups=[group], columns=[schema.names[label]]), None)
                if batch is not None:
                    column = batch.column(batch.schema.names.index(schema.names[label]))
                    found.update(map(of_groups.read, _texts(column.to_pylist()) if group == 0 else []))
                    found.update(map(of_groups.read, _texts(column.dictionary.to_pylist())))
            except (InputError, OSError, *_UNREADABLE):
                return None  # reading the rows will report the bad one
        return np.array(sorted(found)) if found else None

    return OpenedFile(len(names), names, chunks(), target, categories, table.metadata.num_rows, reader)


@contextmanager
def _damage() -> Iterator[None]:
    """Convert errors of Arrow, and of Python for names and the metadata of pandas, to OSError."""
    from pyarrow import ArrowException

    try:
        yield
    except (ArrowException, UnicodeDecodeError, JSONDecodeError, RecursionError) as error:
        raise OSError(str(error)) from error


def _is_text(kind: Any) -> bool:
    from pyarrow import types

    return bool(types.is_string(kind) or types.is_large_string(kind) or types.is_string_view(kind))


def _is_number(kind: Any) -> bool:
    from pyarrow import types

    return bool(types.is_integer(kind) or types.is_floating(kind) or types.is_boolean(kind) or types.is_decimal(kind))


def _is_exact(kind: Any) -> bool:
    from pyarrow import types

    return bool(types.is_integer(kind) or types.is_boolean(kind) or types.is_decimal(kind))


def _is_duration(kind: Any) -> bool:
    return bool(import_module("pyarrow.types").is_duration(kind))


def _is_plain(kind: Any) -> bool:
    """Return True for text, dates, times and numbers, for dictionary codes of these, and for an empty column."""
    types = import_module("pyarrow.types")
    kind = kind.value_type if types.is_dictionary(kind) else kind
    tests = (_is_text, _is_number, _is_duration, types.is_date, types.is_timestamp, types.is_time, types.is_null)
    return any(test(kind) for test in tests)


def _numbers(column: Any) -> Array:
    """Return the numbers of a column, NaN where missing; durations in seconds, as for tables in Python."""
    from pyarrow import float64

    if not _is_duration(column.type):
        return np.asarray(column.cast(float64(), safe=False).to_numpy(zero_copy_only=False))
    found = column.to_numpy(zero_copy_only=False)
    # Tables in Python have microseconds. Longer units might not fit 64 bits in microseconds.
    found = found.astype("timedelta64[us]") if column.type.unit == "ns" else found
    return np.asarray(found / np.timedelta64(1, "s"))


def _check_zone(bad: BadLines, name: str, kind: Any) -> None:
    """Raise an error for a time zone that Python does not know."""
    from pyarrow import types

    kind = kind.value_type if types.is_dictionary(kind) else kind
    if types.is_timestamp(kind) and kind.tz is not None:
        try:
            import_module("pyarrow").array([0], kind).to_pylist()
        except (*_UNREADABLE, LookupError):
            must = "must be in a known time zone"
            raise InputError(
                bad.who, f"column {name!r} of {bad.source}", must, shown(kind.tz), "Convert it to UTC, or drop it."
            ) from None


def _listed(
    column: Any, name: str, first: int, faults: dict[int, InputError], of_kind: StatedColumn | None = None
) -> list[Any]:
    """Return the values of a column, None for those that cannot be read; add an error for their rows."""
    from pyarrow import ArrowException, types

    if not types.is_dictionary(column.type):
        values, unreadable = _values(column)
        bad = sorted(unreadable)
    else:
        codes, places = np.unique(column.indices.fill_null(-1).to_numpy(zero_copy_only=False), return_inverse=True)
        n_missing = int(codes[:1].sum() < 0)
        try:
            distinct, unreadable = _values(column.dictionary.take(codes[n_missing:]))
        except ArrowException as error:  # an invalid code
            raise OSError(str(error)) from error
        distinct = [None] * n_missing + distinct
        values = [distinct[place] for place in places.tolist()]
        bad = np.flatnonzero(np.isin(places - n_missing, list(unreadable))).tolist()
    if bad:
        kind = column.type.value_type if types.is_dictionary(column.type) else column.type
        is_time = types.is_date(kind) or types.is_timestamp(kind)
        must = "must be a date from year 1 to 9999" if is_time else "is not UTF-8 text"
        must = "must be a duration below a billion days" if _is_duration(kind) else must
        for i in bad:
            faults.setdefault(first + i, fault(f"column {name!r}", must))
    values = [str(value) if type(value) is time else value for value in values]
    if of_kind is not None:
        wrong = of_kind.faults(value for value in values if type(value) is str)
        for i, value in enumerate(values) if wrong else ():
            if type(value) is str and value in wrong:
                faults.setdefault(first + i, wrong[value])
    return values


def _values(column: Any) -> tuple[list[Any], set[int]]:
    """Return the values of an array, None for those that cannot be read, and the positions of these."""
    try:
        return list(column.to_pylist()), set()
    except _UNREADABLE:
        pass
    values: list[Any] = []
    bad = set()
    for i, value in enumerate(column):
        try:
            values.append(value.as_py())
        except _UNREADABLE:
            values.append(None)
            bad.add(i)
    return values, bad


def _index(schema: Any) -> frozenset[int]:
    """Return the positions of the columns in which pandas saved the index."""
    about = schema.pandas_metadata
    kept = about.get("index_columns") if isinstance(about, dict) else None
    names = {name for name in kept if isinstance(name, str)} if isinstance(kept, list) else set()
    return frozenset(j for j, name in enumerate(schema.names) if name in names)


def _vast(X: NDArray[np.float64], names: list[str], first: int) -> dict[int, InputError]:
    """Return the errors of rows with infinite or too large values, by row number."""
    vast = np.abs(X) > LARGEST
    return {
        first + i: fault(
            f"column {names[int(vast[i].argmax())]!r}",
            f"must be a finite number of at most {LARGEST:g} in size",
            str(X[i, int(vast[i].argmax())]),
        )
        for i in np.flatnonzero(vast.any(axis=1)).tolist()
    }


def _texts(labels: list[object]) -> list[str]:
    return ["" if label is None else str(label) for label in labels]
