"""Records of CSV: rows of fields, also where a quoted field spans several lines."""

import csv
from collections.abc import Iterator

from bayesvote.core.checks import InputError
from bayesvote.io.faults import fault, shown, too_long
from bayesvote.io.lines import LONGEST_LINE, LineReader, TooLong

_LONGEST_FIELD = 2**17  # characters of a field that spans several lines; a quote that is never closed ends there
_PATIENCE = 1.0  # seconds to wait for the next line of a field, if the lines come from a pipe


class LateError(Exception):
    """The next line has not arrived in time."""


class CsvRecords:
    """Rows of fields. A quote that is never closed makes one bad line and leaves the next lines intact."""

    def __init__(self, lines: LineReader, delimiter: str, width: int, read: int) -> None:
        self._lines = lines
        self._delimiter = delimiter
        self._width = width
        self._read = read  # lines before the next one
        self._single = 0  # up to this line, the search for a closing quote has failed before
        self._taken: list[bytes] = []  # continuation lines of the last row
        self.number = read  # line of the last row

    def begin(self) -> None:
        """Start a chunk."""
        self._lines.begin()

    @property
    def full(self) -> bool:
        """True once the chunk has reached its memory limit."""
        return self._lines.full

    def plain(self, most: int) -> list[bytes]:
        """Return the fields of the next buffered lines, row by row; ``passed`` consumes these lines.

        Return an empty list if a line has quotes, or another number of fields than the header.
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
        """Consume ``n`` lines; return their numbers."""
        self._lines.drop(n)
        self._read += n
        self._taken = []
        self.number = self._read
        return range(self._read - n + 1, self._read + 1)

    @property
    def further(self) -> range:
        """Line numbers of the last row's continuation lines."""
        return range(self.number + 1, self.number + 1 + len(self._taken))

    def next(self, wait: bool) -> list[str] | None:
        """Return the fields of the next row: an empty list for an empty line, None at the end.

        Raises an InputError for a bad line, which is consumed, or `LateError` if the line does not arrive in time.
        """
        if not self._lines.fill(wait):
            if wait or self._lines.ended:
                return None
            raise LateError
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
                raise fault("it", "must not contain a carriage return", shown(text))
            self._check_width(text.count(self._delimiter) + 1)  # before millions of fields take memory
            return text.split(self._delimiter)
        self._check_width(len(fields))
        return fields

    def _check_width(self, n_fields: int) -> None:
        if n_fields != self._width:
            raise fault("it", f"must have {self._width} fields, like the header", str(n_fields))

    def _quoted(self, text: str, line: bytes, wait: bool) -> list[str]:
        """Return the fields of a line with quotes, and of the lines on which a field continues."""

        def supply() -> Iterator[str]:
            yield text + "\n"
            size = len(text)
            while self._read >= self._single and size <= _LONGEST_FIELD:
                if wait:
                    self._lines.extend(_PATIENCE)
                if not self._lines.fill(wait=False):
                    if wait or self._lines.ended:
                        return
                    raise LateError
                more = self._lines.pop()
                self._taken.append(more)
                size += len(more) + 1
                if type(more) is TooLong:
                    return
                yield more.decode("utf-8", "surrogateescape") + "\n"

        try:
            fields = next(csv.reader(supply(), delimiter=self._delimiter, strict=True))
        except LateError:
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
                raise fault("it", "must not contain a carriage return outside quotes", shown(text)) from None
            raise fault("it", "must have a delimiter after the quote that closes a field") from None
        if self._taken and len(fields) != self._width:
            raise self.unclosed()
        self._read += len(self._taken)
        return fields

    def unclosed(self) -> InputError:
        """Return the continuation lines to the buffer; return the error of the line that opened the quote."""
        self._read = self.number
        if self._taken:
            self._single = self.number + len(self._taken)
            self._lines.put_back(self._taken)
            self._taken = []
        return fault("it", f"must close the quote that it opens, within {_LONGEST_FIELD:,} characters")
