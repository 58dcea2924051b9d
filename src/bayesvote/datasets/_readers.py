"""Readers of LIBSVM text, CSV and Parquet: chunks of rows from a file, in memory that does not grow with it."""

import csv
import re
from collections.abc import Callable, Iterator, Sequence
from functools import lru_cache
from itertools import islice
from math import isfinite
from typing import TYPE_CHECKING, Any, BinaryIO, NamedTuple

import numpy as np
from numpy.typing import NDArray

from bayesvote._checks import Argument, Array, InputError, did_you_mean

if TYPE_CHECKING:
    from scipy.sparse import csr_array

_REPORTS = 20  # bad lines that are described; all are counted

_MISSING = {"", "?", "na", "n/a", "nan", "none", "null"}


class Chunk(NamedTuple):
    """Some rows of a stream.

    Attributes
    ----------
    X
        The features, NaN where missing: CSR for LIBSVM text, dense otherwise.
    y
        The labels as they stand in the file: whole numbers, numbers or strings, as the stream's first label is. Empty
        for a stream without labels.
    lines
        The number of each row's line, from 1; of each row in a Parquet file.
    """

    X: "Array | csr_array[np.float64, tuple[int, int]]"
    y: NDArray[Any]
    lines: NDArray[np.int64]


class Columns(NamedTuple):
    """Which columns of a table to read, by their places: the features, and the label unless there is none."""

    features: list[int]
    label: int | None


Choose = Callable[[list[str]], Columns]


class Reading(NamedTuple):
    """A file that is being read: its features, its chunks, and the labels that it announces, if it does."""

    n_features: int
    feature_names: list[str] | None
    chunks: Iterator[Chunk]
    categories: Callable[[], NDArray[Any] | None] = lambda: None
    n_rows: int | None = None


class BadLines:
    """Lines that could not be read: each one an error, or counted."""

    def __init__(self, who: str, source: str, action: str) -> None:
        self.who = who
        self.source = source
        self.action = action
        self.count = 0
        self.reports: list[str] = []

    def report(self, number: int, fault: InputError) -> None:
        """Raise for a bad line, or count it."""
        if self.action == "error":
            raise InputError(
                self.who,
                f"{self.source}, line {number}: {fault.subject}".rstrip(),
                fault.must,
                fault.got,
                "Fix the line, or skip lines like it with",
                Argument("bad_lines", "skip"),
            )
        self.count += 1
        if len(self.reports) < _REPORTS:
            self.reports.append(f"line {number}: {fault.sentence().removesuffix('.')}")


def _fault(subject: str, must: str, got: str = "") -> InputError:
    """What is wrong with a line; ``BadLines`` adds who refuses it, and where it is."""
    return InputError("", subject, must, got)


class LabelReader:
    """Reads labels: all of them as the first is, whole numbers, numbers or strings."""

    def __init__(self) -> None:
        self._kind: type | None = None
        self.read = lru_cache(maxsize=4096)(self._read)

    def _read(self, text: str) -> int | float | str:
        text = text.strip()
        if text.casefold() in _MISSING:
            raise _fault("the label", "is missing")
        try:
            text.encode()
        except UnicodeEncodeError:
            raise _fault("the label", "is not UTF-8 text") from None
        number = float(text) if _is_number(text) else np.nan
        # Beyond 2**53 whole numbers would be rounded, so that two labels could become one.
        kind = str if not abs(number) <= 2**53 else int if number.is_integer() else float
        self._kind = self._kind or kind
        if self._kind is str:
            return text
        if kind is str or (self._kind is int and kind is float):
            what = "a whole number" if self._kind is int else "a number"
            raise _fault("the label", f"must be {what}, as the first label is", repr(text))
        return int(number) if self._kind is int else number


class Assembler:
    """Makes chunks of parsed rows: reads their labels, reports and leaves out the bad rows."""

    def __init__(self, bad: BadLines) -> None:
        self._bad = bad
        self._labels = LabelReader()

    def chunk(
        self,
        X: "Array | csr_array[np.float64, tuple[int, int]]",
        labels: Sequence[str] | None,
        lines: NDArray[np.int64],
        faults: dict[int, InputError],
    ) -> Iterator[Chunk]:
        """Yield the rows without a fault as one chunk, if there are any.

        ``faults`` has the number of each bad line; such lines may be among the rows or not.
        """
        y = []
        for number, label in zip(lines.tolist(), labels, strict=True) if labels is not None else ():
            if number not in faults:
                try:
                    y.append(self._labels.read(label))
                except InputError as fault:
                    faults[number] = fault
        for number in sorted(faults):
            self._bad.report(number, faults[number])
        if faults:
            keep = ~np.isin(lines, list(faults))
            X, lines = X[keep], lines[keep]
        if len(lines):
            yield Chunk(X, np.array(y), lines)


def read_libsvm(file: BinaryIO, chunk_size: int, n_features: int | None, bad: BadLines) -> Iterator[Chunk]:
    """Read lines of a label and index:value pairs, indices rising from 1."""
    from scipy.sparse import csr_array

    from bayesvote.datasets import _libsvm_kernels as kernels

    widest = 2**31 - 1 if n_features is None else n_features

    def fault(line: bytes, code: int) -> InputError:
        if code == kernels.NO_LABEL:
            return _fault("it", "must start with a label", "an index:value pair")
        if code == kernels.NOT_A_PAIR:
            return _fault("after the label", "must come index:value pairs", "something else")
        if code == kernels.NOT_RISING:
            return _fault("feature indices", "must rise, starting at 1 or above")
        largest = max(int(index) for index in re.findall(rb"\s(\d+):", line))
        return _fault("feature indices", f"must be at most {widest}", str(largest))

    assembler = Assembler(bad)
    read = 0
    while batch := list(islice(file, chunk_size)):
        raw = b"".join(batch) + b"\n"
        text = np.frombuffer(raw, dtype=np.uint8)
        n, n_pairs = len(batch), raw.count(b":")
        codes, starts, spans = np.empty(n, np.int8), np.empty(n + 1, np.int64), np.empty((n, 2), np.int64)
        columns, values, odd = np.empty(n_pairs, np.int32), np.empty(n_pairs), np.empty((n_pairs, 4), np.int64)
        n_odd = kernels.parse(text, widest, codes, spans, starts, columns, values, odd)

        faults = {read + 1 + i: fault(batch[i], codes[i]) for i in np.flatnonzero(codes > kernels.GOOD).tolist()}
        for i, k, first, last in odd[:n_odd].tolist():
            try:
                values[k] = _finite(f"feature {columns[k] + 1}", raw[first:last].decode("utf-8", "replace"))
            except InputError as error:
                faults.setdefault(read + 1 + i, error)
        good = np.flatnonzero(codes == kernels.GOOD)
        labels = [raw[first:last].decode("utf-8", "surrogateescape") for first, last in spans[good].tolist()]
        n_pairs = int(starts[n])
        width = n_features if n_features is not None else int(columns[:n_pairs].max(initial=-1)) + 1
        X = csr_array((values[:n_pairs], columns[:n_pairs], starts), shape=(n, width))
        yield from assembler.chunk(X if len(good) == n else X[good], labels, read + 1 + good, faults)
        read += n


def _finite(name: str, text: str) -> float:
    """A number, or NaN for a missing one."""
    if text.strip().casefold() in _MISSING:
        return np.nan
    if not _is_number(text) or not isfinite(float(text)):
        raise _fault(name, "must be a finite number", repr(text))
    return float(text)


def relabelled(lines: Iterator[bytes]) -> Iterator[bytes]:
    """Put a label at the start of lines of LIBSVM text, replacing any: the reader expects one."""
    for line in lines:
        first, *rest = line.split(None, 1) or [b"#"]
        if first.startswith(b"#"):
            yield line
        else:
            yield b"0 " + (line if b":" in first else b"".join(rest) or b"\n")


def _is_number(text: str) -> bool:
    try:
        float(text)
    except ValueError:
        return False
    return "_" not in text  # Python allows 1_000; data files do not


def read_csv(file: BinaryIO, chunk_size: int, choose: Choose, bad: BadLines) -> Reading:
    """Read the header, choose columns by it, then read these."""
    text = (line.decode("utf-8", "surrogateescape") for line in file)
    first = next(text, "").removeprefix("\ufeff")
    delimiter = max(",;\t", key=first.count)
    header = [name.strip() for name in next(csv.reader([first], delimiter=delimiter), [])]
    if not header or all(_is_number(name) for name in header):
        must = f"of {bad.source} must name the columns"
        raise InputError(bad.who, "the first line", must, repr(first.strip()), "Add a header line.")
    columns = choose(header)
    rows = csv.reader(text, delimiter=delimiter, strict=True)
    names = [header[j] for j in columns.features]
    return Reading(len(names), names, _csv_chunks(rows, header, columns, chunk_size, bad))


def _csv_chunks(rows: Any, header: list[str], columns: Columns, chunk_size: int, bad: BadLines) -> Iterator[Chunk]:
    assembler = Assembler(bad)
    features, place = columns
    names = [header[j] for j in features]
    all_others = features == [j for j in range(len(header)) if j != place]
    more = True
    while more:
        values: list[list[float]] = []
        labels: list[str] | None = None if place is None else []
        lines: list[int] = []
        faults: dict[int, InputError] = {}
        while len(values) + len(faults) < chunk_size:
            number = rows.line_num + 2  # lines count from 1, and the header is one
            try:
                row = next(rows, None)
                if row is None:
                    more = False
                    break
                if not row:
                    continue
                if len(row) != len(header):
                    raise _fault("it", f"must have {len(header)} fields, as the header has", str(len(row)))
                fields = row if all_others else [row[j] for j in features]
                label = "" if place is None else row[place]
                if all_others and place is not None:
                    del row[place]
                values.append(_csv_values(fields, names))
                if labels is not None:
                    labels.append(label)
                lines.append(number)
            except InputError as fault:
                faults[number] = fault
            except csv.Error as error:
                faults[number] = _fault("", str(error))
        X = np.array(values).reshape(-1, len(names))
        yield from assembler.chunk(X, labels, np.array(lines, dtype=np.int64), faults)


def _csv_values(row: list[str], names: list[str]) -> list[float]:
    try:
        values = list(map(float, row))
        if isfinite(sum(values)) and "_" not in "".join(row):
            return values
    except ValueError:
        pass
    return [_finite(f"column {name!r}", text) for name, text in zip(names, row, strict=True)]


def read_parquet(file: BinaryIO, chunk_size: int, choose: Choose, bad: BadLines) -> Reading:
    """Read the schema, choose columns by it, then read these and no others."""
    import pyarrow.parquet
    import pyarrow.types as kinds

    try:
        table = pyarrow.parquet.ParquetFile(file)
    except pyarrow.ArrowException as error:
        raise OSError(str(error)) from error
    schema = table.schema_arrow
    features, label = choose(schema.names)
    names = [schema.names[j] for j in features]
    for j, name in zip(features, names, strict=True):
        kind = schema.field(j).type
        if not (kinds.is_integer(kind) or kinds.is_floating(kind) or kinds.is_boolean(kind)):
            subject = f"column {name!r} of {bad.source}"
            raise InputError(bad.who, subject, "must hold numbers", str(kind), "Encode it first.")
    # Columns are asked for by name; where names are not unique, by place among all of them.
    unique = len(set(schema.names)) == len(schema.names)
    read_places = sorted([*features, *([] if label is None else [label])]) if unique else range(len(schema.names))
    asked = [schema.names[j] for j in read_places] if unique else None
    place = {j: k for k, j in enumerate(read_places)}

    def chunks() -> Iterator[Chunk]:
        assembler = Assembler(bad)
        read = 0
        for batch in table.iter_batches(batch_size=chunk_size, columns=asked):
            X = np.empty((batch.num_rows, len(names)))
            for k, j in enumerate(features):
                X[:, k] = batch.column(place[j]).cast(pyarrow.float64(), safe=False).to_numpy(zero_copy_only=False)
            labels = None if label is None else _texts(batch.column(place[label]).to_pylist())
            infinite = np.isinf(X)
            faults = {
                read + 1 + i: _fault(
                    f"column {names[int(infinite[i].argmax())]!r}", "must be a finite number", "infinity"
                )
                for i in np.flatnonzero(infinite.any(axis=1)).tolist()
            }
            yield from assembler.chunk(X, labels, np.arange(read + 1, read + 1 + len(X)), faults)
            read += batch.num_rows

    def categories() -> NDArray[Any] | None:
        if label is None or not unique or not kinds.is_dictionary(schema.field(label).type):
            return None
        reader = LabelReader()
        found: set[Any] = set()
        for group in range(table.num_row_groups):
            # Any row comes with the categories of its whole group. The first label decides whether labels are numbers.
            for batch in table.iter_batches(1, row_groups=[group], columns=[schema.names[label]]):
                column = batch.column(0)
                try:
                    found.update(map(reader.read, _texts(column.to_pylist()) if group == 0 else []))
                    found.update(map(reader.read, _texts(column.dictionary.to_pylist())))
                except InputError:
                    return None  # reading the rows will tell which of them is wrong
                break
        return np.array(sorted(found)) if found else None

    return Reading(len(names), names, chunks(), categories, table.metadata.num_rows)


def _texts(labels: list[object]) -> list[str]:
    return ["" if label is None else str(label) for label in labels]


def labelled_columns(who: str, source: str, names: Sequence[str], target: str | int | None) -> Columns:
    """All columns: the label's by its name or place, the last one for None, and the others as features."""
    place: int | None = None
    if target is None:
        place = len(names) - 1
    elif isinstance(target, str):
        place = names.index(target) if target in names else None
    elif -len(names) <= target < len(names):
        place = target % len(names)
    if place is None:
        must = f"must be a column of {source}, {', '.join(names)}"
        raise InputError(who, "target", must, repr(target), did_you_mean(str(target), names))
    if len(names) < 2:
        raise InputError(who, source, "must have a label and at least one feature", f"only {names[0]!r}")
    return Columns([j for j in range(len(names)) if j != place], place)


def feature_columns(
    who: str,
    source: str,
    names: Sequence[str],
    n_features: int,
    feature_names: Sequence[str] | None,
    target: str | int | None,
) -> Columns:
    """Features only: by their names, or else all columns but that of the label, which may be there or not."""
    if feature_names is not None:
        for name in feature_names:
            if name not in names:
                must = f"must have the column {name!r} of the model"
                raise InputError(who, source, must, do=did_you_mean(name, names))
        return Columns([names.index(name) for name in feature_names], None)
    if target is not None:
        features = labelled_columns(who, source, names, target).features
    else:
        # If there is one column too many, the last one is the label.
        features = list(range(len(names) - 1 if len(names) == n_features + 1 else len(names)))
    if len(features) != n_features:
        must = f"must have the model's {n_features} features, with or without a label"
        raise InputError(who, source, must, f"{len(names)} columns")
    return Columns(features, None)
