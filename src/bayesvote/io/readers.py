"""What the readers of all formats share: chunks, labels, numbers, and lines that cannot be read."""

import math
import re
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from functools import lru_cache
from itertools import compress
from typing import Any, NamedTuple

import numpy as np
from numpy.typing import NDArray

from bayesvote.core.checks import Argument, Array, InputError
from bayesvote.core.rows import LARGEST
from bayesvote.io.columns import Columns
from bayesvote.tables import MISSING_TEXTS
from bayesvote.tables.date_texts import Order
from bayesvote.tables.kinds import NUMERIC, ORDERS, STATED, Kind, demand, unfit

MOST_FEATURES = 2**20  # of a file that nobody has described: one wild index must not decide how large a model is
_REPORTS = 20  # bad lines that are described; all are counted
_SHOWN = 60  # characters of a bad value
_SHORT = 64  # characters of texts that are remembered
_REMEMBERED = 4096  # of them at a time
_LONGEST_LABEL = 1024  # characters; in an array of texts all take the room of the longest

_BOOLEANS = {"true": 1.0, "false": 0.0}
_INTEGER = re.compile(r"[+-]?\d+", re.ASCII)
_CODE = re.compile(r"[+-]?0\d", re.ASCII)  # 01 and 007 are codes, not numbers
_DECIMAL_COMMA = re.compile(r"\s*[+-]?(?:\d{1,3}(?:\.\d{3})+|\d*),\d+(?:[eE][+-]?\d+)?\s*", re.ASCII)


class Chunk(NamedTuple):
    """Some rows of a stream.

    Attributes
    ----------
    X
        The features, NaN where missing: CSR for LIBSVM text, dense for tables of numbers. Of a table with other
        columns, a dictionary by their names: an array of numbers, or a list of values as they stand in the file.
    y
        The labels as they stand in the file: whole numbers, numbers or strings, as the stream's first label is. Empty
        for a stream without labels.
    lines
        The number of each row's line, from 1; of each row in a Parquet file.
    """

    X: Any
    y: NDArray[Any]
    lines: NDArray[np.int64]

    @property
    def n(self) -> int:
        """How many rows there are."""
        return len(self.lines)

    def part(self, rows: slice) -> "Chunk":
        """Some of the rows."""
        return Chunk(_taken(self.X, rows), self.y[rows], self.lines[rows])


def _taken(X: Any, rows: "slice | NDArray[np.bool_]") -> Any:
    """Some rows: those of a slice, or those that are true."""
    if not isinstance(X, dict):
        return X[rows]
    return {
        name: list(compress(values, rows))
        if isinstance(values, list) and isinstance(rows, np.ndarray)
        else values[rows]
        for name, values in X.items()
    }


class BadLines:
    """Lines that could not be read: each one an error, or counted."""

    def __init__(self, who: str, source: str, action: str) -> None:
        self.who = who
        self.source = source
        self.action = action
        self.unit = "line"  # what the numbers count
        self.count = 0
        self.reports: list[str] = []

    def report(self, number: int, fault: InputError) -> None:
        """Raise for a bad line, or count it."""
        if self.action == "error":
            raise InputError(
                self.who,
                f"{self.source}, {self.unit} {number}: {fault.subject}".rstrip(),
                fault.must,
                fault.got,
                f"{fault.do} Fix the {self.unit}, or skip {self.unit}s like it with".lstrip(),
                Argument("bad_lines", "skip"),
            )
        self.count += 1
        if len(self.reports) < _REPORTS:
            said = InputError("", fault.subject, fault.must, fault.got)
            self.reports.append(f"{self.unit} {number}: {said.sentence().removesuffix('.')}")


def fault(subject: str, must: str, got: str = "", do: str = "") -> InputError:
    """What is wrong with a line; ``BadLines`` adds who refuses it, and where it is."""
    return InputError("", subject, must, got, do)


class Stated(NamedTuple):
    """A column of which the user has stated what it holds, so that another text is a fault of its line."""

    name: str
    kind: Kind
    learned: bool
    order: Order  # of day and month in its dates

    def faults(self, texts: Iterable[str]) -> dict[str, InputError]:
        """The texts that it cannot hold, each with what is wrong."""
        do = f"State another kind, for example with columns={{{self.name!r}: 'category'}}." if self.learned else ""
        must, wrong = demand(self.kind, self.order), unfit(self.kind, texts, self.order)
        return {text: fault(f"column {self.name!r}", must, shown(text), do) for text in wrong}


def stated(columns: Columns, names: Sequence[str], kinds: Mapping[str, str]) -> dict[int, Stated]:
    """Columns that are stated to hold only some of all texts, by their places."""
    learned = columns.label is not None
    # A model that is asked takes texts for categories in a column of which it only found that it had numbers.
    strict = NUMERIC if learned else NUMERIC - {Kind.NUMBER}
    found = {j: kinds[names[j]] for j in columns.features if names[j] in kinds}
    return {
        j: Stated(names[j], STATED[kind], learned, ORDERS.get(kind, Order.UNKNOWN))
        for j, kind in found.items()
        if STATED[kind] in strict
    }


def too_long(longest: int) -> InputError:
    """What is wrong with a line that has no end."""
    return fault("it", f"must have at most {longest:,} characters", "more")


def shown(text: str) -> str:
    """A value as errors show it: quoted, without control characters, and not too long."""
    return repr(text if len(text) <= _SHOWN else f"{text[:_SHOWN]}...")


def _label_text(text: str, where: str = "", do: str = "") -> str:
    """A label without blanks around it; ``where`` and ``do`` are for the error about a missing one."""
    text = text.strip()
    if text.casefold() in MISSING_TEXTS:
        raise fault("the label", f"is missing{where}", do=do)
    if len(text) > _LONGEST_LABEL:
        raise fault("the label", f"must have at most {_LONGEST_LABEL:,} characters", f"{len(text):,}")
    if "\0" in text:
        # NumPy's strings lose it at their end, so that two labels would become one.
        raise fault("the label", "must not hold a NUL character", shown(text))
    try:
        text.encode()
    except UnicodeEncodeError:
        raise fault("the label", "is not UTF-8 text") from None
    return text


def is_label(text: str) -> bool:
    """Whether a text can be a label."""
    try:
        _label_text(text)
    except InputError:
        return False
    return True


class LabelReader:
    """Reads labels: all of them as the first is, whole numbers, numbers or strings.

    A text such as 01, or an integer beyond 64 bits, is a string. After a number it is refused, as a stream cannot
    change the labels that it has given already; ``read_as="text"`` reads strings only.

    Parameters
    ----------
    read_as
        "auto", or "text" for labels as they are written.
    column
        The name of their column; None if they have none.
    default
        True if it is the last column because the user named none.
    """

    def __init__(self, read_as: str = "auto", column: str | None = None, default: bool = False) -> None:
        self._where = "" if column is None else f" in column {column!r}"
        self._do = "The last column is the label unless another is named with target='NAME'." if default else ""
        self._kind: type | None = str if read_as == "text" else None
        self.met_codes = False  # among numbers, which only read_as="text" keeps apart
        self.read = lru_cache(maxsize=4096)(self._read)

    def _read(self, text: str) -> int | float | str:
        text = _label_text(text, self._where, self._do)
        number = None if self._kind is str else number_of_label(text)
        self._kind = self._kind or (str if number is None else type(number))
        if self._kind is str:
            return text
        if number is None or (self._kind is int and type(number) is float) or not _fits(self._kind, number):
            what = "a whole number" if self._kind is int else "a number"
            do = ""
            if is_code(text):
                self.met_codes, do = True, "Read all labels as they are written with labels='text'."
            raise fault("the label", f"must be {what}, as the first label is", shown(text), do)
        return int(number) if self._kind is int else float(number)


def number_of_label(text: str) -> int | float | None:
    """Return the number that a label is; None for one that is only identified by its text.

    >>> [number_of_label(text) for text in ("7", "+1", "7.0", "0.5", "07", "9007199254740993", "1" * 20, "one")]
    [7, 1, 7, 0.5, None, 9007199254740993, None, None]
    """
    if _CODE.match(text) or not text.isascii() or not is_number(text):
        return None
    if _INTEGER.fullmatch(text):
        return int(text) if len(text) <= 20 and -(2**63) <= int(text) < 2**63 else None
    number = float(text)
    if not abs(number) < 2**53:  # it may be rounded, so that two labels would become one
        return None
    return int(number) if number.is_integer() else number


def is_code(text: str) -> bool:
    """Return whether a label is written as a number but only identified by its text, such as 01.

    >>> is_code("01"), is_code("1"), is_code("a")
    (True, False, False)
    """
    text = text.strip()
    if not is_label(text) or not is_number(text) or number_of_label(text) is not None:
        return False
    return bool(_INTEGER.fullmatch(text)) or math.isfinite(float(text))


def _fits(kind: type, number: float) -> bool:
    """Return whether a number is exact in the type of the labels before it."""
    return kind is int or abs(number) <= 2**53


class Reading(NamedTuple):
    """A file that is being read: its columns, its chunks, and the labels that it announces, if it does."""

    n_features: int
    feature_names: list[str] | None
    chunks: Iterator[Chunk]
    label_name: str | None = None
    categories: Callable[[], NDArray[Any] | None] = lambda: None
    n_rows: int | None = None
    labels: LabelReader | None = None


class Assembler:
    """Makes chunks of parsed rows: reads their labels, reports and leaves out the bad rows."""

    def __init__(self, bad: BadLines, labels: LabelReader) -> None:
        self._bad = bad
        self._labels = labels

    def chunk(
        self,
        X: Any,
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
                except InputError as error:
                    faults[number] = error
        for number in sorted(faults):
            self._bad.report(number, faults[number])
        if faults:
            keep = ~np.isin(lines, list(faults))
            X, lines = _taken(X, keep), lines[keep]
        if len(lines):
            yield Chunk(X, np.array(y), lines)


class Numbers:
    """Reads the numbers of a table's text.

    Parameters
    ----------
    decimal
        The decimal mark, "." or ",". None for a point, or a comma if the file writes 1,5 and never 1.5.
    learned
        Whether the columns are learned from, so that their kinds can be stated.
    """

    def __init__(self, decimal: str | None, learned: bool = False) -> None:
        self._learned = learned
        self._open = decimal is None
        self._comma = decimal == ","

    @property
    def mark(self) -> tuple[bool, bool]:
        """What is known of the decimal mark: whether nothing is, and whether it is a comma."""
        return self._open, self._comma

    @mark.setter
    def mark(self, known: tuple[bool, bool]) -> None:
        self._open, self._comma = known

    def reads(self, text: str) -> bool | None:
        """Whether a text would be read as a number; None if it is missing."""
        text = text.strip()
        if text.casefold() in MISSING_TEXTS:
            return None
        # A number with a decimal comma is one, even where such are refused: it is no category.
        return bool(_DECIMAL_COMMA.fullmatch(text)) or text.casefold() in _BOOLEANS or is_number(text)

    def row(self, texts: list[str], names: list[str]) -> list[float]:
        """Values of a row."""
        if not self._comma:
            try:
                values = list(map(float, texts))
                if min(values, default=0.0) > -LARGEST and max(values, default=0.0) < LARGEST and sum(values) < np.inf:
                    joined = "".join(texts)
                    if "_" not in joined:
                        self._open = self._open and "." not in joined
                        return values
            except ValueError:
                pass
        before = self.mark
        try:
            return [self.value(name, text) for name, text in zip(names, texts, strict=True)]
        except InputError:
            self.mark = before  # a row that is refused decides nothing
            raise

    def block(self, fields: list[bytes]) -> Array | None:
        """Values of the fields of many rows, NaN for empty ones; None if they must be read one by one."""
        joined = b"".join(fields)
        if self._comma or b"_" in joined:
            return None
        empty = fields.count(b"")
        try:
            values = np.array(list(map(float, (field or b"nan" for field in fields) if empty else fields)))
        except ValueError:
            return None
        if np.count_nonzero(np.abs(values) < LARGEST) + empty < len(values):
            return None
        self._open = self._open and b"." not in joined
        return values

    def value(self, name: str, text: str) -> float:
        """A number of the column with that name, or NaN for a missing one."""
        column = f"column {name!r}"
        known = _BOOLEANS.get(text.strip().casefold())
        if known is not None:
            return known
        if (self._open or self._comma) and _DECIMAL_COMMA.fullmatch(text):
            self._open, self._comma = False, True
            return finite(column, text.replace(".", "").replace(",", "."))
        if self._comma and "." in text:
            raise fault(column, "must be a number with a decimal comma, as those before", shown(text))
        do = f"Read a column of texts with columns={{{name!r}: 'category'}}." if self._learned else ""
        if _DECIMAL_COMMA.fullmatch(text):
            do = "If numbers have decimal commas here, read them with decimal=','."
        value = finite(column, text, do)
        self._open = self._open and "." not in text
        return value


def decoded(field: bytes) -> str:
    """A text of which the bytes that are no UTF-8 can be told."""
    return field.decode("utf-8", "surrogateescape")


class Texts:
    """Reads texts. Most come again and again: these are remembered, so that they take time and memory once."""

    def __init__(self) -> None:
        self._known: dict[bytes | str, str] = {}

    def read(self, name: str, fields: Sequence[bytes | str]) -> list[str]:
        """Texts of the column with that name, without blanks around them, empty if they stand for missing values."""
        try:
            return [*map(self._known.__getitem__, fields)]
        except KeyError:
            return [self._known[field] if field in self._known else self._new(name, field) for field in fields]

    def _new(self, name: str, field: bytes | str) -> str:
        text = (decoded(field) if isinstance(field, bytes) else field).strip()
        if not text.isascii():
            try:
                text.encode()
            except UnicodeEncodeError:
                raise fault(f"column {name!r}", "is not UTF-8 text") from None
        text = "" if text.casefold() in MISSING_TEXTS else text
        if len(field) <= _SHORT:
            if len(self._known) == _REMEMBERED:
                self._known.clear()
            self._known[field] = text
        return text


def finite(name: str, text: str, do: str = "") -> float:
    """A number, or NaN for a missing one; ``do`` says what to do about a text that is neither."""
    if text.strip().casefold() in MISSING_TEXTS:
        return np.nan
    value = float(text) if is_number(text) else np.inf
    if not abs(value) < np.inf:
        raise fault(name, "must be a finite number", shown(text), do)
    if abs(value) > LARGEST:
        raise fault(name, f"must be a number of at most {LARGEST:g} in size", shown(text))
    return value


def is_number(text: str) -> bool:
    """Whether a text is a number as data files write them."""
    try:
        float(text)
    except ValueError:
        return False
    return "_" not in text  # Python allows 1_000; data files do not
