"""Reader of CSV: a header, then rows of numbers, text and a label."""

import csv
from collections.abc import Iterator, Mapping, Sequence
from contextlib import suppress
from io import BytesIO
from itertools import chain
from typing import Any

import numpy as np

from bayesvote.core.checks import Advice, Argument, Array, InputError
from bayesvote.io.chunks import MOST_FEATURES, Chunk, ChunkAssembler, OpenedFile
from bayesvote.io.columns import Choose, ColumnChoice, Header
from bayesvote.io.csv_records import CsvRecords, LateError
from bayesvote.io.faults import BadLines, StatedColumn, fault, shown, stated_columns
from bayesvote.io.labels import LabelReader, is_code, is_label
from bayesvote.io.lines import LONGEST_LINE, LineReader, TooLong
from bayesvote.io.read_options import ReadOptions
from bayesvote.io.values import NumberParser, TextParser, decoded, is_number

_SAMPLE = 100  # lines that decide whether a column holds numbers or text
_CELLS = 2**20  # cells parsed at a time; each is an object or two until then


def read_csv(lines: LineReader, choose: Choose, bad: BadLines, options: ReadOptions) -> OpenedFile:
    """Read the header, choose columns, and read these: as numbers, or else as text."""
    header, kinds, labels = options.header, options.request.stated, options.labels
    first = lines.pop() if lines.fill(wait=True) else b""
    names, delimiter = _header(first, bad, header)
    if header is False:
        lines.put_back([first.removeprefix(b"\xef\xbb\xbf")])
        names = [f"column {j}" for j in range(len(names))]
    columns = choose(Header(names))
    # If columns are separated by commas, numbers have points.
    mark = ("." if delimiter == "," else None) if options.decimal is None else options.decimal
    numbers = NumberParser(mark, learned=columns.label is not None)
    looks = columns.label is not None or any(names[j] not in kinds for j in columns.features)
    sample = [*_readable(lines.peek(_SAMPLE), delimiter, len(names))] if looks else []
    texts = _texts(sample, names, columns, numbers, kinds)
    if kinds or texts:
        _distinct(bad, [names[j] for j in columns.features])
    records = CsvRecords(lines, delimiter, len(names), read=0 if header is False else 1)
    features = [names[j] for j in columns.features]
    label = None if columns.label is None else names[columns.label]
    if columns.label is not None and any(is_code(row[columns.label]) for row in sample):
        labels = "text"
    reader = LabelReader(labels, label, columns.default)
    stated = stated_columns(columns, names, kinds)
    builder = _ChunkBuilder(records, names, columns, numbers, texts if kinds or texts else None, stated, reader)
    return OpenedFile(len(features), features, builder.chunks(options.chunk_size, bad), label, labels=reader)


def _header(first: bytes, bad: BadLines, stated: bool | None) -> tuple[list[str], str]:
    """Return the fields of the first line, and the delimiter; with ``stated`` None, the fields must look like names."""

    def refused(must: str, got: str, do: Advice = "Add a header line.", using: Argument | None = None) -> InputError:
        return InputError(bad.who, "the first line", f"of {bad.source} {must}", got, do, using)

    text = first.decode("utf-8", "surrogateescape").removeprefix("\ufeff").removesuffix("\r")
    if type(first) is TooLong:
        raise refused(f"must have at most {LONGEST_LINE:,} characters", "more", "Is it a CSV file?")
    if "\0" in text:
        raise refused("must be UTF-8 text", "NUL characters", "Save the file as UTF-8.")
    if "\r" in text:
        must = "must end with a newline, not with a carriage return only"
        raise refused(must, shown(text), "Convert the line endings.")
    delimiter = max(",;\t|", key=text.count)
    if text.count(delimiter) >= MOST_FEATURES:
        raise refused(f"must have at most {MOST_FEATURES:,} columns", f"{text.count(delimiter) + 1:,}", "Is it CSV?")
    try:
        fields = [field.strip() for field in next(csv.reader([text], delimiter=delimiter), [])]
    except csv.Error:  # without newlines, only the limit of a field is left
        raise refused(
            f"must have names of at most {csv.field_size_limit():,} characters", "more", "Is it CSV?"
        ) from None
    if not fields:
        raise refused("must name the columns", repr(text))
    if stated is None and _are_values(fields):
        do = "Add a header line, or say that there is none with"
        raise refused("must name the columns", shown(text), do, Argument("header", False))
    return fields, delimiter


def _are_values(fields: list[str]) -> bool:
    """Return True if the first line is a row, not the names of columns: it contains numbers.

    Consecutive whole numbers, such as years, can be names.
    """
    found = [field for field in fields if is_number(field)]
    years = [int(field) for field in found if field.isascii() and field.isdigit() and len(field) < 10]
    named = len(years) == len(found) < len(fields) and all(year == years[0] + i for i, year in enumerate(years))
    return bool(found) and not named


def _texts(
    sample: list[list[str]], names: list[str], columns: ColumnChoice, numbers: NumberParser, kinds: Mapping[str, str]
) -> set[int]:
    """Return the positions of the features to read as text: by their kind, or because most of their first values are.

    In a table with text, a column that starts with missing values is read as text: it may hold anything.
    """
    found = {j for j in columns.features if kinds.get(names[j], "number") != "number"}
    unknown = [j for j in columns.features if names[j] not in kinds]
    if not unknown:
        return found
    of_numbers, of_others = np.zeros((2, len(names)), dtype=np.intp)
    for row in sample:
        for j in unknown:
            is_one = numbers.reads(row[j])
            if is_one is not None:
                (of_numbers if is_one else of_others)[j] += 1
    found |= {j for j in unknown if of_others[j] > of_numbers[j]}
    if found and sample:
        found.update(j for j in unknown if not of_numbers[j])
    return found


def _readable(sample: list[bytes], delimiter: str, width: int) -> Iterator[list[str]]:
    """Yield the rows of some lines, except those that cannot be read."""
    text = b"\n".join(line for line in sample if type(line) is not TooLong)
    records = CsvRecords(LineReader(BytesIO(text)), delimiter, width, read=0)
    row: list[str] | None = []
    while row is not None:
        with suppress(InputError):
            row = records.next(wait=True)
            if row:
                yield row


def _distinct(bad: BadLines, names: list[str]) -> None:
    if len(set(names)) < len(names):
        twice = next(name for name in names if names.count(name) > 1)
        raise InputError(bad.who, f"columns of {bad.source}", "must have unique names", f"{twice!r} twice")


class _RowBuffer:
    """Parsed rows of a chunk."""

    def __init__(self, n_numbers: int) -> None:
        self._n_numbers = n_numbers
        self._blocks: list[Array] = []
        self._single: list[list[float]] = []  # rows after the last block
        self.words: list[Sequence[str]] = []
        self.labels: list[str] = []
        self.lines: list[int] = []

    def add(self, numbers: list[float], line: int) -> None:
        """Add a row of numbers."""
        self._single.append(numbers)
        self.lines.append(line)

    def add_block(self, numbers: Array, lines: range) -> None:
        """Add many rows."""
        self._blocks += [*self._singles(), numbers.reshape(len(lines), self._n_numbers)]
        self._single = []
        self.lines += lines

    def numbers(self) -> Array:
        """Return all numbers (n, d)."""
        return np.concatenate([np.empty((0, self._n_numbers)), *self._blocks, *self._singles()])

    def _singles(self) -> list[Array]:
        n = len(self._single)
        return [np.array(self._single, dtype=np.float64).reshape(n, self._n_numbers)] if n else []


class _ChunkBuilder:
    """Parses records into chunks: of an array or, if some columns are text, of a dictionary."""

    def __init__(
        self,
        records: CsvRecords,
        header: list[str],
        columns: ColumnChoice,
        numbers: NumberParser,
        texts: set[int] | None,
        stated: Mapping[int, StatedColumn],
        labels: LabelReader,
    ) -> None:
        self._records, self._header, self._numbers = records, header, numbers
        self._features, self._label, self._as_dict = columns.features, columns.label, texts is not None
        self._of_numbers = [j for j in columns.features if j not in (texts or ())]
        self._of_texts = [j for j in columns.features if j in (texts or ())]
        self._stated = {j: stated[j] for j in self._of_texts if j in stated}
        self._names = [header[j] for j in self._of_numbers]
        self._labels = labels
        self._texts = TextParser()
        self._slowly = 0  # lines to parse one by one, because a block of them failed
        self._backlog = 1

    def chunks(self, chunk_size: int, bad: BadLines) -> Iterator[Chunk]:
        """Yield all rows."""
        assembler, records = ChunkAssembler(bad, self._labels), self._records
        more = True
        while more:
            rows, faults = _RowBuffer(len(self._names)), dict[int, InputError]()
            records.begin()
            while len(rows.lines) + len(faults) < chunk_size and not records.full:
                if self._read_block(rows, chunk_size - len(rows.lines) - len(faults)):
                    continue
                try:
                    if not self._read_row(rows, faults):
                        more = False
                        break
                except InputError as error:
                    faults[records.number] = error
                except LateError:
                    break
            labels = None if self._label is None else rows.labels
            yield from assembler.chunk(self._made(rows), labels, np.array(rows.lines, dtype=np.int64), faults)

    def _read_block(self, rows: _RowBuffer, most: int) -> bool:
        """Parse all buffered lines at once; return False if they must be parsed one by one."""
        if self._slowly > 0:
            self._slowly -= 1
            return False
        fields = self._records.plain(min(most, max(1, _CELLS // len(self._header))))
        if not fields:
            return False
        width = len(self._header)
        n = len(fields) // width
        mark = self._numbers.mark
        found = self._numbers.block([*chain(*zip(*(fields[j::width] for j in self._of_numbers), strict=True))])
        if found is not None:
            try:
                words = [self._column(j, fields[j::width]) for j in self._of_texts]
            except InputError:
                found = None
        if self._label is not None and self._numbers.mark != mark:
            labels = map(decoded, fields[self._label :: width])
            # A row without a label is a bad row, so it must not decide the decimal mark: parse the rows one by one.
            found = found if all(map(is_label, labels)) else None
        if found is None:
            self._numbers.mark = mark
            # More lines like these are likely: try fewer and fewer blocks.
            self._slowly, self._backlog = n * self._backlog, min(2 * self._backlog, 64)
            return False
        self._backlog = 1
        rows.add_block(found, self._records.passed(n))
        rows.words += zip(*words, strict=True)
        if self._label is not None:
            rows.labels += map(decoded, fields[self._label :: width])
        return True

    def _read_row(self, rows: _RowBuffer, faults: dict[int, InputError]) -> bool:
        """Parse the next row; return False at the end."""
        records = self._records
        row = records.next(wait=not rows.lines and not faults)
        if not row:
            return row is not None
        label = "" if self._label is None else row[self._label]
        if "\n" in label.strip() and not is_label(label):
            raise records.unclosed()  # not a label, but lines that follow a stray quote
        fields = [row[j] for j in self._of_numbers]
        mark = self._numbers.mark
        try:
            found = self._numbers.row(fields, self._names)
            if self._of_texts:
                rows.words.append([self._column(j, [row[j]])[0] for j in self._of_texts])
        except InputError:
            self._numbers.mark = mark  # a bad row does not decide the decimal mark
            if any("\n" in field for field in (*fields, *(row[j] for j in self._stated))):
                raise records.unclosed() from None
            faults |= dict.fromkeys(records.further, fault("it", "belongs to the bad row before it"))
            raise
        rows.add(found, records.number)
        if self._label is not None:
            rows.labels.append(label)
            if self._numbers.mark != mark and not is_label(label):
                self._numbers.mark = mark  # as above: the row is bad
        return True

    def _column(self, j: int, fields: Sequence[bytes | str]) -> list[str]:
        """Return the texts of a column; raise an error for one that does not fit its kind."""
        texts = self._texts.read(self._header[j], fields)
        if j in self._stated:
            for error in self._stated[j].faults(texts).values():
                raise error
        return texts

    def _made(self, rows: _RowBuffer) -> Any:
        X = rows.numbers()
        if not self._as_dict:
            return X
        texts = zip(*rows.words, strict=True) if rows.words else ([] for _ in self._of_texts)
        columns: dict[str, Any] = dict.fromkeys(self._header[j] for j in self._features)  # in their order
        columns |= zip(self._names, X.T, strict=True)
        columns |= zip((self._header[j] for j in self._of_texts), map(list, texts), strict=True)
        return columns
