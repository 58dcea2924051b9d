"""Reader of Parquet: the columns that are asked for, and no others."""

from collections.abc import Iterator, Mapping
from contextlib import contextmanager
from datetime import time
from importlib import import_module
from json import JSONDecodeError
from typing import Any, BinaryIO

import numpy as np
from numpy.typing import NDArray

from bayesvote.core.checks import Array, InputError
from bayesvote.core.rows import LARGEST
from bayesvote.io.columns import Choose, Header
from bayesvote.io.readers import Assembler, BadLines, Chunk, LabelReader, Reading, Stated, fault, shown, stated

_UNREADABLE = (ValueError, OverflowError)  # what Arrow raises for values that Python cannot hold


def read_parquet(
    file: BinaryIO, chunk_size: int, choose: Choose, bad: BadLines, *, kinds: Mapping[str, str], labels: str
) -> Reading:
    """Read the schema, choose columns by it, then read these and no others."""
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
    # A category identifies its values exactly, so it must not go through floats.
    exact = {j for j in features if kinds.get(schema.names[j]) == "category" and _is_exact(schema.field(j).type)}
    as_floats = [j for j in features if j not in exact]
    of_numbers = [j for j in as_floats if _is_number(schema.field(j).type) or _is_duration(schema.field(j).type)]
    for j in features:
        kind = schema.field(j).type
        if j not in of_numbers and not _is_plain(kind):
            subject = f"column {schema.names[j]!r} of {bad.source}"
            must = "must hold numbers, texts, truth values, dates or times"
            raise InputError(bad.who, subject, must, str(kind), "Drop it.")
    of_label = [] if label is None else [label]
    for j in (*features, *of_label):
        _check_zone(bad, schema.names[j], schema.field(j).type)
    as_table = bool(kinds) or not all(_is_number(schema.field(j).type) for j in features)
    # Columns are asked for by name; where names are not unique, by place among all of them.
    unique = len(set(schema.names)) == len(schema.names)
    read_places = sorted([*features, *of_label]) if unique else range(len(schema.names))
    asked = [schema.names[j] for j in read_places] if unique else None
    of_kind = stated(columns, schema.names, kinds)

    def found_in(batch: Any) -> dict[int, Any]:
        # Arrow reads geo.lat of a column geo, too, for one that is named "geo.lat", so places in a batch may shift.
        place = {name: k for k, name in enumerate(batch.schema.names)}
        return {j: batch.column(place[schema.names[j]] if unique else j) for j in (*features, *of_label)}

    target = None if label is None else schema.names[label]
    # Texts come as codes: a file that says once what stands in all rows must not decide how much memory they take.
    table = opened([schema.names[j] for j in read_places if _is_text(schema.field(j).type)])

    reader = LabelReader(labels, target, default)

    def batches() -> Iterator[Any]:
        with _damage():
            yield from table.iter_batches(batch_size=chunk_size, columns=asked)

    def chunks() -> Iterator[Chunk]:
        assembler = Assembler(bad, reader)
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
            raise OSError(f"it says that it has {table.metadata.num_rows:,} rows, and has {read:,}")

    def categories() -> NDArray[Any] | None:
        if label is None or not unique or not pyarrow.types.is_dictionary(schema.field(label).type):
            return None
        of_groups = LabelReader(labels)
        found: set[Any] = set()
        for group in range(table.num_row_groups):
            # Any row comes with the categories of its whole group. The first label decides whether labels are numbers.
            try:
                with _damage():
                    batch = next(table.iter_batches(1, row_groups=[group], columns=[schema.names[label]]), None)
                if batch is not None:
                    column = batch.column(batch.schema.names.index(schema.names[label]))
                    found.update(map(of_groups.read, _texts(column.to_pylist()) if group == 0 else []))
                    found.update(map(of_groups.read, _texts(column.dictionary.to_pylist())))
            except (InputError, OSError, *_UNREADABLE):
                return None  # reading the rows will tell which of them is wrong
        return np.array(sorted(found)) if found else None

    return Reading(len(names), names, chunks(), target, categories, table.metadata.num_rows, reader)


@contextmanager
def _damage() -> Iterator[None]:
    """Tell what cannot be read as damage: by Arrow or, of names and of the note that pandas leaves, by Python."""
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
    """Whether the values are texts, dates or times, or codes for some, or all missing."""
    types = import_module("pyarrow.types")
    kind = kind.value_type if types.is_dictionary(kind) else kind
    tests = (_is_text, _is_number, _is_duration, types.is_date, types.is_timestamp, types.is_time, types.is_null)
    return any(test(kind) for test in tests)


def _numbers(column: Any) -> Array:
    """Numbers of a column, NaN where they are missing; durations are seconds, as tables in Python have them."""
    from pyarrow import float64

    if not _is_duration(column.type):
        return np.asarray(column.cast(float64(), safe=False).to_numpy(zero_copy_only=False))
    found = column.to_numpy(zero_copy_only=False)
    # Tables in Python have microseconds. Of longer units, these might not go into 64 bits.
    found = found.astype("timedelta64[us]") if column.type.unit == "ns" else found
    return np.asarray(found / np.timedelta64(1, "s"))


def _check_zone(bad: BadLines, name: str, kind: Any) -> None:
    """Refuse times of which nobody here knows what they are in UTC."""
    from pyarrow import types

    kind = kind.value_type if types.is_dictionary(kind) else kind
    if types.is_timestamp(kind) and kind.tz is not None:
        try:
            import_module("pyarrow").array([0], kind).to_pylist()
        except (*_UNREADABLE, LookupError):
            must = "must be in a time zone that is known here"
            raise InputError(
                bad.who, f"column {name!r} of {bad.source}", must, shown(kind.tz), "Convert it to UTC, or drop it."
            ) from None


def _listed(
    column: Any, name: str, first: int, faults: dict[int, InputError], of_kind: Stated | None = None
) -> list[Any]:
    """Values of a column; None for those that cannot be read, with a fault of their row."""
    from pyarrow import ArrowException, types

    if not types.is_dictionary(column.type):
        values, unreadable = _values(column)
        bad = sorted(unreadable)
    else:
        codes, places = np.unique(column.indices.fill_null(-1).to_numpy(zero_copy_only=False), return_inverse=True)
        n_missing = int(codes[:1].sum() < 0)
        try:
            distinct, unreadable = _values(column.dictionary.take(codes[n_missing:]))
        except ArrowException as error:  # a code that is none
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
    """Values of an array, None for those that cannot be read, and the places of these."""
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
    """Places of the columns in which pandas has kept the index of its rows."""
    about = schema.pandas_metadata
    kept = about.get("index_columns") if isinstance(about, dict) else None
    names = {name for name in kept if isinstance(name, str)} if isinstance(kept, list) else set()
    return frozenset(j for j, name in enumerate(schema.names) if name in names)


def _vast(X: NDArray[np.float64], names: list[str], first: int) -> dict[int, InputError]:
    """Faults of the rows with values that no model takes, by their numbers."""
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
