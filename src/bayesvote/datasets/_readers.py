"""Readers of LIBSVM text, CSV and Parquet: chunks of rows from a file, in memory that does not grow with it."""

import csv
import re
from collections.abc import Iterator, Sequence
from functools import lru_cache
from itertools import islice
from math import isfinite
from typing import TYPE_CHECKING, Any, BinaryIO, NamedTuple

import numpy as np
from numpy.typing import NDArray

from bayesvote._checks import Array

if TYPE_CHECKING:
    from scipy.sparse import csr_array

# As many bad lines are described; all are counted.
_REPORTS = 20

_MISSING = {"", "?", "na", "n/a", "nan", "none", "null"}


class Chunk(NamedTuple):
    """Some rows of a stream.

    Attributes
    ----------
    X
        The features, NaN where missing: CSR for LIBSVM text, dense otherwise.
    y
        The labels as they stand in the file: whole numbers, numbers or strings, as the stream's first label is.
    lines
        The number of each row's line, from 1; of each row in a Parquet file.
    """

    X: "Array | csr_array[np.float64, tuple[int, int]]"
    y: NDArray[Any]
    lines: NDArray[np.int64]


class BadLines:
    """Lines that could not be read: each one an error, or counted."""

    def __init__(self, source: str, action: str) -> None:
        self.source = source
        self.action = action
        self.count = 0
        self.reports: list[str] = []

    def report(self, number: int, reason: str) -> None:
        """Raise for a bad line, or count it."""
        if self.action == "error":
            raise ValueError(f"stream: {self.source}, line {number}: {reason}. Mend it, or pass bad_lines='skip'.")
        self.count += 1
        if len(self.reports) < _REPORTS:
            self.reports.append(f"line {number}: {reason}")


class Assembler:
    """Makes chunks of parsed rows: reads their labels, reports and leaves out the bad rows."""

    def __init__(self, bad: BadLines) -> None:
        self._bad = bad
        self._kind: type | None = None
        self._label = lru_cache(maxsize=4096)(self._read_label)

    def chunk(
        self,
        X: "Array | csr_array[np.float64, tuple[int, int]]",
        labels: Sequence[str],
        lines: NDArray[np.int64],
        reasons: dict[int, str],
    ) -> Iterator[Chunk]:
        """Yield the rows without a reason against them as one chunk, if there are any.

        ``reasons`` has the number of each bad line; such lines may be among the rows or not.
        """
        y = []
        for number, label in zip(lines.tolist(), labels, strict=True):
            if number not in reasons:
                try:
                    y.append(self._label(label))
                except ValueError as error:
                    reasons[number] = str(error)
        for number in sorted(reasons):
            self._bad.report(number, reasons[number])
        if reasons:
            keep = ~np.isin(lines, list(reasons))
            X, lines = X[keep], lines[keep]
        if y:
            yield Chunk(X, np.array(y), lines)

    def _read_label(self, text: str) -> int | float | str:
        text = text.strip()
        if text.casefold() in _MISSING:
            raise ValueError("the label is missing")
        try:
            text.encode()
        except UnicodeEncodeError:
            raise ValueError("the label is not UTF-8 text") from None
        number = float(text) if _is_number(text) else np.nan
        # Beyond 2**53 whole numbers would be rounded, so that two labels could become one.
        kind = str if not abs(number) <= 2**53 else int if number.is_integer() else float
        self._kind = self._kind or kind
        if self._kind is str:
            return text
        if kind is str or (self._kind is int and kind is float):
            what = "a whole number" if self._kind is int else "a number"
            raise ValueError(f"the label must be {what}, as the first label is, got {text!r}")
        return int(number) if self._kind is int else number


def read_libsvm(file: BinaryIO, chunk_size: int, n_features: int | None, bad: BadLines) -> Iterator[Chunk]:
    """Read lines of a label and index:value pairs, indices rising from 1."""
    from scipy.sparse import csr_array

    from bayesvote.datasets import _libsvm_kernels as kernels

    widest = 2**31 - 1 if n_features is None else n_features

    def why(line: bytes, code: int) -> str:
        if code == kernels.NO_LABEL:
            return "it must start with a label, got an index:value pair"
        if code == kernels.NOT_A_PAIR:
            return "after the label must come index:value pairs, got something else"
        if code == kernels.NOT_RISING:
            return "feature indices must rise, starting at 1 or above"
        largest = max(int(index) for index in re.findall(rb"\s(\d+):", line))
        return f"feature indices must be at most {widest}, got {largest}"

    assembler = Assembler(bad)
    read = 0
    while batch := list(islice(file, chunk_size)):
        raw = b"".join(batch) + b"\n"
        text = np.frombuffer(raw, dtype=np.uint8)
        n, n_pairs = len(batch), raw.count(b":")
        codes, starts, spans = np.empty(n, np.int8), np.empty(n + 1, np.int64), np.empty((n, 2), np.int64)
        columns, values, odd = np.empty(n_pairs, np.int32), np.empty(n_pairs), np.empty((n_pairs, 4), np.int64)
        n_odd = kernels.parse(text, widest, codes, spans, starts, columns, values, odd)

        reasons = {read + 1 + i: why(batch[i], codes[i]) for i in np.flatnonzero(codes > kernels.GOOD).tolist()}
        for i, k, first, last in odd[:n_odd].tolist():
            try:
                values[k] = _finite(raw[first:last].decode("utf-8", "replace"))
            except ValueError as error:
                reasons.setdefault(read + 1 + i, f"feature {columns[k] + 1} {error}")
        good = np.flatnonzero(codes == kernels.GOOD)
        labels = [raw[first:last].decode("utf-8", "surrogateescape") for first, last in spans[good].tolist()]
        n_pairs = int(starts[n])
        width = n_features if n_features is not None else int(columns[:n_pairs].max(initial=-1)) + 1
        X = csr_array((values[:n_pairs], columns[:n_pairs], starts), shape=(n, width))
        yield from assembler.chunk(X if len(good) == n else X[good], labels, read + 1 + good, reasons)
        read += n


def _finite(text: str) -> float:
    """A number, or NaN for a missing one."""
    if text.strip().casefold() in _MISSING:
        return np.nan
    if not _is_number(text) or not isfinite(float(text)):
        raise ValueError(f"must be a finite number, got {text!r}")
    return float(text)


def _is_number(text: str) -> bool:
    try:
        float(text)
    except ValueError:
        return False
    return "_" not in text  # Python allows 1_000; data files do not


def read_csv(
    file: BinaryIO, chunk_size: int, target: str | int | None, bad: BadLines
) -> tuple[list[str], Iterator[Chunk]]:
    """Read the header; return the features' names and the chunks."""
    text = (line.decode("utf-8", "surrogateescape") for line in file)
    first = next(text, "").removeprefix("\ufeff")
    delimiter = max(",;\t", key=first.count)
    names = [name.strip() for name in next(csv.reader([first], delimiter=delimiter), [])]
    if not names or all(_is_number(name) for name in names):
        raise ValueError(
            f"stream: the first line of {bad.source} must name the columns, got {first.strip()!r}. Add a header line."
        )
    place = target_place(bad.source, names, target)
    rows = csv.reader(text, delimiter=delimiter, strict=True)
    names = names[:place] + names[place + 1 :]
    return names, _csv_chunks(rows, names, place, chunk_size, bad)


def _csv_chunks(rows: Any, names: list[str], place: int, chunk_size: int, bad: BadLines) -> Iterator[Chunk]:
    assembler = Assembler(bad)
    more = True
    while more:
        values: list[list[float]] = []
        labels: list[str] = []
        lines: list[int] = []
        reasons: dict[int, str] = {}
        while len(values) + len(reasons) < chunk_size:
            number = rows.line_num + 2  # lines count from 1, and the header is one
            try:
                row = next(rows, None)
                if row is None:
                    more = False
                    break
                if not row:
                    continue
                if len(row) != len(names) + 1:
                    raise ValueError(f"it must have {len(names) + 1} fields, as the header has, got {len(row)}")
                label = row.pop(place)
                values.append(_csv_values(row, names))
                labels.append(label)
                lines.append(number)
            except (ValueError, csv.Error) as error:
                reasons[number] = str(error)
        X = np.array(values).reshape(-1, len(names))
        yield from assembler.chunk(X, labels, np.array(lines, dtype=np.int64), reasons)


def _csv_values(row: list[str], names: list[str]) -> list[float]:
    try:
        values = list(map(float, row))
        if isfinite(sum(values)) and "_" not in "".join(row):
            return values
    except ValueError:
        pass
    values = []
    for name, text in zip(names, row, strict=True):
        try:
            values.append(_finite(text))
        except ValueError as error:
            raise ValueError(f"column {name!r} {error}") from None
    return values


def target_place(source: str, names: Sequence[str], target: str | int | None) -> int:
    """Find the label's column by its name or place; the last one for None."""
    place: int | None = None
    if target is None:
        place = len(names) - 1
    elif isinstance(target, str):
        place = names.index(target) if target in names else None
    elif -len(names) <= target < len(names):
        place = target % len(names)
    if place is None:
        raise ValueError(f"stream: target must be a column of {source}, {', '.join(names)}, got {target!r}.")
    if len(names) < 2:
        raise ValueError(f"stream: {source} must have a label and at least one feature, got only {names[0]!r}.")
    return place


def read_parquet(
    file: BinaryIO, chunk_size: int, target: str | int | None, bad: BadLines
) -> tuple[list[str], Iterator[Chunk]]:
    """Read the schema; return the features' names and the chunks."""
    import pyarrow.parquet
    import pyarrow.types as kinds

    try:
        table = pyarrow.parquet.ParquetFile(file)
    except pyarrow.ArrowException as error:
        raise OSError(str(error)) from error
    schema = table.schema_arrow
    place = target_place(bad.source, schema.names, target)
    places = [j for j in range(len(schema.names)) if j != place]
    names = [schema.names[j] for j in places]
    for j, name in zip(places, names, strict=True):
        kind = schema.field(j).type
        if not (kinds.is_integer(kind) or kinds.is_floating(kind) or kinds.is_boolean(kind)):
            raise ValueError(f"stream: column {name!r} of {bad.source} must hold numbers, got {kind}. Encode it first.")

    def chunks() -> Iterator[Chunk]:
        assembler = Assembler(bad)
        read = 0
        for batch in table.iter_batches(batch_size=chunk_size):
            X = np.empty((batch.num_rows, len(names)))
            for k, j in enumerate(places):
                X[:, k] = batch.column(j).cast(pyarrow.float64(), safe=False).to_numpy(zero_copy_only=False)
            labels = ["" if label is None else str(label) for label in batch.column(place).to_pylist()]
            infinite = np.isinf(X)
            reasons = {
                read + 1 + i: f"column {names[int(infinite[i].argmax())]!r} must be a finite number, got infinity"
                for i in np.flatnonzero(infinite.any(axis=1)).tolist()
            }
            yield from assembler.chunk(X, labels, np.arange(read + 1, read + 1 + len(X)), reasons)
            read += batch.num_rows

    return names, chunks()
