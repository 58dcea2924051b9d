"""Cells and tables in the form in which every reader returns them: each cell is a number, a text, or missing."""

from collections.abc import Sequence
from datetime import UTC, date, datetime
from enum import IntEnum
from typing import Any, NamedTuple

import numpy as np
from numpy.typing import NDArray

from bayesvote.core.checks import Array, InputError
from bayesvote.tables import exact as _exact
from bayesvote.tables.exact import Exact

Codes = NDArray[np.int32]

MISSING_TEXTS = frozenset({"", "?", "na", "n/a", "nan", "nat", "none", "null"})  # in any case
_LONGEST = 64  # characters of a text that is kept whole
_LARGEST = 1e100  # number, except in a category


class Sort(IntEnum):
    """The meaning of the number of a cell."""

    NUMBER = 0
    BOOLEAN = 1
    DATE = 2


class Cells(NamedTuple):
    """The cells of a column. Each is a number or a text, or is missing."""

    kind: str | None  # from its type: "number", "boolean", "date" or "category"; None if the type does not say
    numbers: Array  # (n,), NaN for other cells; dates are seconds since 1970
    sorts: NDArray[np.int8]  # (n,): the meaning of each number
    codes: Codes  # (n,): the index of its text in texts, or -1
    texts: list[str]
    exact: Exact | None = None  # (n,): the numbers that floats would round, see tables/exact.py; None if there are none

    def part(self, first: int, last: int) -> "Cells":
        """Return cells first to last."""
        return self._taken(slice(first, last))

    def take(self, order: NDArray[np.intp]) -> "Cells":
        """Return the cells in this order."""
        return self._taken(order)

    def _taken(self, cells: slice | NDArray[np.intp]) -> "Cells":
        exact = None if self.exact is None else self.exact[cells]
        numbers, sorts, codes = self.numbers[cells], self.sorts[cells], self.codes[cells]
        return self._replace(numbers=numbers, sorts=sorts, codes=codes, exact=exact)

    @staticmethod
    def concatenate(parts: Sequence["Cells"]) -> "Cells":
        """Return the cells of several parts of a column, in order."""
        known: dict[str, int] = {}
        places = [known.setdefault(text, len(known)) for part in parts for text in part.texts]
        sizes = [len(part.texts) for part in parts]
        starts = np.repeat(np.cumsum([0, *sizes[:-1]]), [len(part.codes) for part in parts])
        codes = np.concatenate([part.codes for part in parts])
        exact, n = parts[0].exact, len(parts[0].numbers)
        for part in parts[1:]:
            exact = _exact.joined(exact, n, part.exact, len(part.numbers))
            n += len(part.numbers)
        return Cells(
            parts[0].kind if len({part.kind for part in parts}) == 1 else None,
            np.concatenate([part.numbers for part in parts]),
            np.concatenate([part.sorts for part in parts]),
            # The index of a missing text, -1, selects the last place.
            np.array([*places, -1], dtype=np.int32)[np.where(codes < 0, -1, codes + starts)],
            list(known),
            exact,
        )

    def followed_by(self, other: "Cells") -> "Cells":
        """Return these cells, then others of the same column."""
        return Cells.concatenate([self, other])

    def missing(self) -> NDArray[np.bool_]:
        """Return a mask of the missing cells."""
        return np.isnan(self.numbers) & (self.codes < 0)

    def as_texts(self) -> "Cells":
        """Return the cells of a category, with numbers converted to text."""
        known, codes = {text: k for k, text in enumerate(self.texts)}, self.codes.copy()
        is_number = ~np.isnan(self.numbers)
        is_exact = is_number & (self.sorts == Sort.NUMBER) & _exact.known(self.exact, len(codes))
        groups: list[tuple[NDArray[np.bool_], Any, Sort]] = []
        if self.exact is not None:
            groups.append((is_exact, self.exact, Sort.NUMBER))
        groups += [(is_number & ~is_exact & (self.sorts == sort), self.numbers, sort) for sort in Sort]
        for cells, values, sort in groups:
            if np.any(cells):
                # Sorting texts would take longer than a dictionary lookup for each of them.
                distinct, places = values[cells], np.arange(np.count_nonzero(cells))
                if values.dtype != object:
                    distinct, places = np.unique(distinct, return_inverse=True)
                texts = [text_of(value, sort) for value in distinct.tolist()]
                codes[cells] = np.array([known.setdefault(text, len(known)) for text in texts])[places]
        return self._replace(numbers=np.full(len(codes), np.nan), codes=codes, texts=list(known), exact=None)

    def without_vast(self, who: str, name: str) -> "Cells":
        """Return the cells of a numeric column as floats, or raise an error if a number is too large."""
        vast = np.abs(self.numbers) > _LARGEST
        if np.any(vast):
            row = int(np.argmax(vast))
            got = f"{self.numbers[row]} in row {row}"
            if _exact.known(self.exact, len(vast))[row] and self.exact is not None:
                text = str(self.exact[row]).lstrip("-").partition(".")[0]
                got = f"a number of {len(text)} digits in row {row}"
            must, do = "must hold finite numbers below 1e100 in size", _LEAVE_OUT
            raise InputError(who, f"column {name!r}", must, got, do)
        return self._replace(exact=None)


_LEAVE_OUT = "Leave missing values out: None or NaN."


class Table(NamedTuple):
    """Rows of named columns."""

    n: int
    columns: dict[str, Cells]

    @property
    def width(self) -> int:
        """Number of columns."""
        return len(self.columns)

    def part(self, first: int, last: int) -> "Table":
        """Return rows first to last."""
        return Table(last - first, {name: cells.part(first, last) for name, cells in self.columns.items()})

    def take(self, order: NDArray[np.intp]) -> "Table":
        """Return the rows in this order."""
        return Table(len(order), {name: cells.take(order) for name, cells in self.columns.items()})

    @staticmethod
    def concatenate(parts: Sequence["Table"]) -> "Table":
        """Return the rows of several tables with the same columns, in order."""
        names = parts[0].columns
        joined = {name: Cells.concatenate([part.columns[name] for part in parts]) for name in names}
        return Table(sum(part.n for part in parts), joined)

    def followed_by(self, other: "Table") -> "Table":
        """Return these rows, then others of the same columns."""
        return Table.concatenate([self, other])

    def dictionaries(self) -> list[dict[str, Any]]:
        """Return the rows as dictionaries of numbers and texts, without missing values."""
        rows: list[dict[str, Any]] = [{} for _ in range(self.n)]
        for name, cells in self.columns.items():
            for row, number, code in zip(rows, cells.numbers.tolist(), cells.codes.tolist(), strict=True):
                if code >= 0:
                    row[name] = cells.texts[code]
                elif number == number:
                    row[name] = number
        return rows


def seconds_of(value: date) -> float:
    """Return the seconds since 1970. A time without a time zone is in UTC."""
    moment = value if isinstance(value, datetime) else datetime(value.year, value.month, value.day)
    if moment.tzinfo is None:
        moment = moment.replace(tzinfo=UTC)
    return moment.timestamp()


def shortened(text: str) -> str:
    """Return a text as it is stored: a long one as its beginning and a hash.

    >>> shortened("short"), len(shortened("long" * 100))
    ('short', 64)
    """
    if len(text) <= _LONGEST:
        return text
    from hashlib import blake2b

    return text[: _LONGEST - 17] + "#" + blake2b(text.encode("utf-8", "replace"), digest_size=8).hexdigest()


def text_of(number: float | str, sort: int = Sort.NUMBER) -> str:
    """Return a number, which may be an exact text, as the text of a category.

    >>> text_of(3.0), text_of(2.5), text_of(1.0, Sort.BOOLEAN), text_of(86400.0, Sort.DATE), text_of(60.0, Sort.DATE)
    ('3', '2.5', 'True', '1970-01-02', '1970-01-01T00:01:00')
    """
    if isinstance(number, str):
        return shortened(number)
    if sort == Sort.DATE:
        moment = np.datetime64(round(number * 1e6), "us")
        return str(moment.astype(f"datetime64[{'us' if number % 1 else 's' if number % 86400 else 'D'}]"))
    if sort == Sort.BOOLEAN:
        return str(bool(number))
    return shortened(str(int(number))) if number == int(number) else repr(number)
