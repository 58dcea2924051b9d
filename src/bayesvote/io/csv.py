"""Reader of CSV: a header, then a row a line, or several where a quoted field goes over them."""

import csv
from collections.abc import Iterator, Mapping, Sequence
from contextlib import suppress
from io import BytesIO
from itertools import chain
from typing import Any

import numpy as np

from bayesvote.core.checks import Argument, Array, InputError
from bayesvote.io.columns import Choose, Columns, Header
from bayesvote.io.lines import LONGEST_LINE, Lines, TooLong
from bayesvote.io.readers import (
    MOST_FEATURES,
    Assembler,
    BadLines,
    Chunk,
    LabelReader,
    Numbers,
    Reading,
    Stated,
    Texts,
    decoded,
    fault,
    is_code,
    is_label,
    is_number,
    shown,
    stated,
    too_long,
)

_SAMPLE = 100  # lines by which a column is taken for numbers or for texts
_LONGEST_FIELD = 2**17  # characters of a field that goes over several lines; a quote that is never closed ends there
_CELLS = 2**20  # that are taken apart at a time; each is an object or two until it is read
_PATIENCE = 1.0  # seconds to wait for the next line of a field, if the lines come from a pipe


class _LateError(Exception):
    """The next line has not come in time."""


def read_csv(
    lines: Lines,
    chunk_size: int,
    choose: Choose,
    bad: BadLines,
    *,
    header: bool | None,
    decimal: str | None,
    kinds: Mapping[str, str],
    labels: str,
) -> Reading:
    """Read the header, choose columns by it, then read these: as numbers, or as texts if they are no numbers."""
    first = lines.pop() if lines.fill(wait=True) else b""
    names, delimiter = _header(first, bad, header)
    if header is False:
        lines.put_back([first.removeprefix(b"\xef\xbb\xbf")])
        names = [f"column {j}" for j in range(len(names))]
    columns = choose(Header(names))
    # Where columns are divided by commas, numbers have points.
    mark = ("." if delimiter == "," else None) if decimal is None else decimal
    numbers = Numbers(mark, learned=columns.label is not None)
    looks = columns.label is not None or any(names[j] not in kinds for j in columns.features)
    sample = [*_readable(lines.peek(_SAMPLE), delimiter, len(names))] if looks else []
    texts = _texts(sample, names, columns, numbers, kinds)
    if kinds or texts:
        _distinct(bad, [names[j] for j in columns.features])
    records = _Records(lines, delimiter, len(names), read=0 if header is False else 1)
    features = [names[j] for j in columns.features]
    label = None if columns.label is None else names[columns.label]
    if columns.label is not None and any(is_code(row[columns.label]) for row in sample):
        labels = "text"
    reader = LabelReader(labels, label, columns.default)
    of_kind = stated(columns, names, kinds)
    table = _Table(records, names, columns, numbers, texts if kinds or texts else None, of_kind, reader)
    return Reading(len(features), features, table.chunks(chunk_size, bad), label, labels=reader)


def _header(first: bytes, bad: BadLines, said: bool | None) -> tuple[list[str], str]:
    """The fields of the first line, which must be names unless the user said that they are not, and the delimiter."""

    def refused(must: str, got: str, do: str = "Add a header line.", using: Argument | None = None) -> InputError:
        return InputError(bad.who, "the first line", f"of {bad.source} {must}", got, do, using)

    text = first.decode("utf-8", "surrogateescape").removeprefix("\ufeff").removesuffix("\r")
    if type(first) is TooLong:
        raise refused(f"must have at most {LONGEST_LINE:,} characters", "more", "Is it a CSV file?")
    if "\0" in text:
        raise refused("must be UTF-8 text", "NUL characters", "Save the file as UTF-8.")
    if "\r" in text:
        must = "must end with a newline, not with a carriage return only"
        raise refused(must, shown(text), "Convert the ends of the lines.")
    delimiter = max(",;\t|", key=text.count)
    if text.count(delimiter) >= MOST_FEATURES:
        raise refused(f"must have at most {MOST_FEATURES:,} columns", f"{text.count(delimiter) + 1:,}", "Is it CSV?")
    try:
        fields = [field.strip() for field in next(csv.reader([text], delimiter=delimiter), [])]
    except csv.Error:  # the one that is left
        raise refused(
            f"must have names of at most {csv.field_size_limit():,} characters", "more", "Is it CSV?"
        ) from None
    if not fields:
        raise refused("must name the columns", repr(text))
    if said is None and _are_values(fields):
        do = "Add a header line, or say that there is none with"
        raise refused("must name the columns", shown(text), do, Argument("header=False"))
    return fields, delimiter


def _are_values(fields: list[str]) -> bool:
    """Whether the first line is a row, not the names of columns: it has numbers.

    A few whole numbers in a row, such as years, can be names.
    """
    found = [field for field in fields if is_number(field)]
    years = [int(field) for field in found if field.isascii() and field.isdigit() and len(field) < 10]
    named = len(years) == len(found) < len(fields) and all(year == years[0] + i for i, year in enumerate(years))
    return bool(found) and not named


def _texts(
    sample: list[list[str]], names: list[str], columns: Columns, numbers: Numbers, kinds: Mapping[str, str]
) -> set[int]:
    """Places of the features to be read as texts: as it was stated, or because most of their first values are.

    In a table with texts, a column without values at first is one of them: it may hold anything.
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
    """Rows of some lines. A line that cannot be read is left out: it says nothing about those after it."""
    text = b"\n".join(line for line in sample if type(line) is not TooLong)
    records = _Records(Lines(BytesIO(text)), delimiter, width, read=0)
    row: list[str] | None = []
    while row is not None:
        with suppress(InputError):
            row = records.next(wait=True)
            if row:
                yield row


def _distinct(bad: BadLines, names: list[str]) -> None:
    if len(set(names)) < len(names):
        twice = next(name for name in names if names.count(name) > 1)
        raise InputError(bad.who, f"columns of {bad.source}", "must have names of their own", f"{twice!r} twice")


class _Records:
    """Rows of fields. A quote that opens a field and does not close it costs its own line only."""

    def __init__(self, lines: Lines, delimiter: str, width: int, read: int) -> None:
        self._lines = lines
        self._delimiter = delimiter
        self._width = width
        self._read = read  # lines before the next one
        self._single = 0  # up to this line, a quote that is not closed was searched for already, in vain
        self._taken: list[bytes] = []  # further lines of the last row
        self.number = read  # line of the last row

    def begin(self) -> None:
        """Begin a chunk."""
        self._lines.begin()

    @property
    def full(self) -> bool:
        """Whether the chunk has taken as much memory as it may."""
        return self._lines.full

    def plain(self, most: int) -> list[bytes]:
        """Fields of the next lines that were read already, one row after the other; ``passed`` takes these lines.

        There are none if some line has quotes, or not as many fields as the header.
        """
        lines = self._lines.ready(most)
        text = b"\n".join(lines)
        if b"\r" in text:
            lines = [line.removesuffix(b"\r") for line in lines]
            text = b"\n".join(lines)
        delimiter = self._delimiter.encode()
        if b'"' in text or b"\r" in text or any(line.count(delimiter) != self._width - 1 for line in lines):
            return []
        if (self._width == 1 and b"" in lines) or TooLong in map(type, lines):
            return []
        return delimiter.join(lines).split(delimiter) if lines else []

    def passed(self, n: int) -> range:
        """Pass over so many lines; return their numbers."""
        self._lines.drop(n)
        self._read += n
        self._taken = []
        self.number = self._read
        return range(self._read - n + 1, self._read + 1)

    @property
    def further(self) -> range:
        """Numbers of the further lines of the last row."""
        return range(self.number + 1, self.number + 1 + len(self._taken))

    def next(self, wait: bool) -> list[str] | None:
        """Fields of the next row; none for an empty line, None at the end.

        Raises an InputError for a bad line, which is passed over, or ``_LateError`` if it has not come in time.
        """
        if not self._lines.fill(wait):
            if wait or self._lines.ended:
                return None
            raise _LateError
        line = self._lines.pop()
        self.number = self._read = self._read + 1
        self._taken = []
        if type(line) is TooLong:
            raise too_long(LONGEST_LINE)
        text = line.decode("utf-8", "surrogateescape")
        if '"' in text:
            fields = self._quoted(text, line, wait)
        else:
            text = text.removesuffix("\r")
            if not text:
                return []
            if "\r" in text:
                raise fault("it", "must not hold a carriage return", shown(text))
            self._check_width(text.count(self._delimiter) + 1)  # before millions of fields take memory
            return text.split(self._delimiter)
        self._check_width(len(fields))
        return fields

    def _check_width(self, n_fields: int) -> None:
        if n_fields != self._width:
            raise fault("it", f"must have {self._width} fields, as the header has", str(n_fields))

    def _quoted(self, text: str, line: bytes, wait: bool) -> list[str]:
        """Fields of a line with quotes, and of further lines if a field goes on there."""

        def supply() -> Iterator[str]:
            yield text + "\n"
            size = len(text)
            while self._read >= self._single and size <= _LONGEST_FIELD:
                if wait:
                    self._lines.extend(_PATIENCE)
                if not self._lines.fill(wait=False):
                    if wait or self._lines.ended:
                        return
                    raise _LateError
                more = self._lines.pop()
                self._taken.append(more)
                size += len(more) + 1
                if type(more) is TooLong:
                    return
                yield more.decode("utf-8", "surrogateescape") + "\n"

        try:
            fields = next(csv.reader(supply(), delimiter=self._delimiter, strict=True))
        except _LateError:
            self._lines.put_back([line, *self._taken])
            self._read -= 1
            raise
        except csv.Error as error:
            if self._taken or "unexpected end" in str(error):
                raise self.unclosed() from None
            if "field limit" in str(error):
                raise fault(
                    "it", f"must have fields of at most {csv.field_size_limit():,} characters", "more"
                ) from None
            if "new-line" in str(error):
                raise fault("it", "must not hold a carriage return outside quotes", shown(text)) from None
            raise fault("it", "must go on with the delimiter after the quote that closes a field") from None
        if self._taken and len(fields) != self._width:
            raise self.unclosed()
        self._read += len(self._taken)
        return fields

    def unclosed(self) -> InputError:
        """Give back the further lines of the last row; return what is wrong with its first one."""
        self._read = self.number
        if self._taken:
            self._single = self.number + len(self._taken)
            self._lines.put_back(self._taken)
            self._taken = []
        return fault("it", f"must close the quote that it opens, within {_LONGEST_FIELD:,} characters")


class _Rows:
    """Rows of a chunk, as they are read."""

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
        """Add many."""
        self._blocks += [*self._singles(), numbers.reshape(len(lines), self._n_numbers)]
        self._single = []
        self.lines += lines

    def numbers(self) -> Array:
        """All numbers (n, d)."""
        return np.concatenate([np.empty((0, self._n_numbers)), *self._blocks, *self._singles()])

    def _singles(self) -> list[Array]:
        n = len(self._single)
        return [np.array(self._single, dtype=np.float64).reshape(n, self._n_numbers)] if n else []


class _Table:
    """Turns lines into chunks: of an array or, if some columns are texts, of a dictionary."""

    def __init__(
        self,
        records: _Records,
        header: list[str],
        columns: Columns,
        numbers: Numbers,
        texts: set[int] | None,
        stated: Mapping[int, Stated],
        labels: LabelReader,
    ) -> None:
        self._records, self._header, self._numbers = records, header, numbers
        self._features, self._label, self._as_dict = columns.features, columns.label, texts is not None
        self._of_numbers = [j for j in columns.features if j not in (texts or ())]
        self._of_texts = [j for j in columns.features if j in (texts or ())]
        self._stated = {j: stated[j] for j in self._of_texts if j in stated}
        self._names = [header[j] for j in self._of_numbers]
        self._labels = labels
        self._texts = Texts()
        self._slowly = 0  # lines to read one by one, since some of them must be
        self._backlog = 1

    def chunks(self, chunk_size: int, bad: BadLines) -> Iterator[Chunk]:
        """All rows."""
        assembler, records = Assembler(bad, self._labels), self._records
        more = True
        while more:
            rows, faults = _Rows(len(self._names)), dict[int, InputError]()
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
                except _LateError:
                    break
            labels = None if self._label is None else rows.labels
            yield from assembler.chunk(self._made(rows), labels, np.array(rows.lines, dtype=np.int64), faults)

    def _read_block(self, rows: _Rows, most: int) -> bool:
        """Read all lines that are at hand, if they are plain; return whether they were."""
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
            # A row without a label will be refused, so it must not decide the decimal mark: see row by row.
            found = found if all(map(is_label, labels)) else None
        if found is None:
            self._numbers.mark = mark
            # Lines like these are probably to come, so fewer and fewer blocks are tried in vain.
            self._slowly, self._backlog = n * self._backlog, min(2 * self._backlog, 64)
            return False
        self._backlog = 1
        rows.add_block(found, self._records.passed(n))
        rows.words += zip(*words, strict=True)
        if self._label is not None:
            rows.labels += map(decoded, fields[self._label :: width])
        return True

    def _read_row(self, rows: _Rows, faults: dict[int, InputError]) -> bool:
        """Read the next row; return False at the end."""
        records = self._records
        row = records.next(wait=not rows.lines and not faults)
        if not row:
            return row is not None
        label = "" if self._label is None else row[self._label]
        if "\n" in label.strip() and not is_label(label):
            raise records.unclosed()  # it is no label, but lines that a stray quote has taken
        fields = [row[j] for j in self._of_numbers]
        mark = self._numbers.mark
        try:
            found = self._numbers.row(fields, self._names)
            if self._of_texts:
                rows.words.append([self._column(j, [row[j]])[0] for j in self._of_texts])
        except InputError:
            self._numbers.mark = mark  # the row is refused, so it decides nothing
            if any("\n" in field for field in (*fields, *(row[j] for j in self._stated))):
                raise records.unclosed() from None
            faults |= dict.fromkeys(records.further, fault("it", "belongs to the bad row before"))
            raise
        rows.add(found, records.number)
        if self._label is not None:
            rows.labels.append(label)
            if self._numbers.mark != mark and not is_label(label):
                self._numbers.mark = mark  # the row will be refused, so it decides nothing
        return True

    def _column(self, j: int, fields: Sequence[bytes | str]) -> list[str]:
        """Texts of a column; raises for one that it cannot hold."""
        texts = self._texts.read(self._header[j], fields)
        if j in self._stated:
            for error in self._stated[j].faults(texts).values():
                raise error
        return texts

    def _made(self, rows: _Rows) -> Any:
        X = rows.numbers()
        if not self._as_dict:
            return X
        texts = zip(*rows.words, strict=True) if rows.words else ([] for _ in self._of_texts)
        columns: dict[str, Any] = dict.fromkeys(self._header[j] for j in self._features)  # in their order
        columns |= zip(self._names, X.T, strict=True)
        columns |= zip((self._header[j] for j in self._of_texts), map(list, texts), strict=True)
        return columns
