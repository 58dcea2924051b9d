"""Numbers and text as they are written in tables."""

import re
from collections.abc import Sequence

import numpy as np

from bayesvote.core.checks import Advice, Argument, Array, InputError
from bayesvote.core.rows import LARGEST
from bayesvote.io.faults import category, fault, shown
from bayesvote.tables import MISSING_TEXTS

_SHORT = 64  # characters of texts that are cached
_CACHED = 4096  # texts

_BOOLEANS = {"true": 1.0, "false": 0.0}
_DECIMAL_COMMA = re.compile(r"\s*[+-]?(?:\d{1,3}(?:\.\d{3})+|\d*),\d+(?:[eE][+-]?\d+)?\s*", re.ASCII)


class NumberParser:
    """Parses the numbers of a table.

    Parameters
    ----------
    decimal
        The decimal mark, "." or ",". None for a point, or a comma if the file has 1,5 and never 1.5.
    learned
        True if the columns are learned from, so that the user can state their kinds.
    """

    def __init__(self, decimal: str | None, learned: bool = False) -> None:
        self._learned = learned
        self._open = decimal is None
        self._comma = decimal == ","

    @property
    def mark(self) -> tuple[bool, bool]:
        """The state of the decimal mark: True if it is still unknown, and True if it is a comma."""
        return self._open, self._comma

    @mark.setter
    def mark(self, known: tuple[bool, bool]) -> None:
        self._open, self._comma = known

    def reads(self, text: str) -> bool | None:
        """Return True if a text would be read as a number; None if it is missing."""
        text = text.strip()
        if text.casefold() in MISSING_TEXTS:
            return None
        # A number with a decimal comma counts as a number, also where it is an error: it is not a category.
        return bool(_DECIMAL_COMMA.fullmatch(text)) or text.casefold() in _BOOLEANS or is_number(text)

    def row(self, texts: list[str], names: list[str]) -> list[float]:
        """Parse the numbers of a row."""
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
            self.mark = before  # a bad row does not decide the decimal mark
            raise

    def block(self, fields: list[bytes]) -> Array | None:
        """Parse the fields of many rows, NaN for empty ones; return None if they must be parsed one by one."""
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
        """Parse a number of the named column; NaN if it is missing."""
        column = f"column {name!r}"
        known = _BOOLEANS.get(text.strip().casefold())
        if known is not None:
            return known
        if (self._open or self._comma) and _DECIMAL_COMMA.fullmatch(text):
            self._open, self._comma = False, True
            return finite(column, text.replace(".", "").replace(",", "."))
        if self._comma and "." in text:
            raise fault(column, "must be a number with a decimal comma, like those before it", shown(text))
        do: Advice = ("Read a column of text with ", category(name), ".") if self._learned else ""
        if _DECIMAL_COMMA.fullmatch(text):
            do = ("If the file has decimal commas, read it with ", Argument("decimal", ","), ".")
        value = finite(column, text, do)
        self._open = self._open and "." not in text
        return value


class TextParser:
    """Parses text. Most values repeat: a cache saves their time and memory."""

    def __init__(self) -> None:
        self._cache: dict[bytes | str, str] = {}

    def read(self, name: str, fields: Sequence[bytes | str]) -> list[str]:
        """Return the stripped texts of the named column; missing values are empty."""
        try:
            return [*map(self._cache.__getitem__, fields)]
        except KeyError:
            return [self._cache[field] if field in self._cache else self._new(name, field) for field in fields]

    def _new(self, name: str, field: bytes | str) -> str:
        text = (decoded(field) if isinstance(field, bytes) else field).strip()
        if not text.isascii():
            try:
                text.encode()
            except UnicodeEncodeError:
                raise fault(f"column {name!r}", "is not UTF-8 text") from None
        text = "" if text.casefold() in MISSING_TEXTS else text
        if len(field) <= _SHORT:
            if len(self._cache) == _CACHED:
                self._cache.clear()
            self._cache[field] = text
        return text


def decoded(field: bytes) -> str:
    """Decode UTF-8, keeping invalid bytes as surrogates so that they can be reported."""
    return field.decode("utf-8", "surrogateescape")


def finite(name: str, text: str, do: Advice = "") -> float:
    """Parse a number, NaN for a missing one; ``do`` is the advice in the error for other text."""
    if text.strip().casefold() in MISSING_TEXTS:
        return np.nan
    value = float(text) if is_number(text) else np.inf
    if not abs(value) < np.inf:
        raise fault(name, "must be a finite number", shown(text), do)
    if abs(value) > LARGEST:
        raise fault(name, f"must be a number of at most {LARGEST:g} in size", shown(text))
    return value


def is_number(text: str) -> bool:
    """Return True if a text is a number as data files write them."""
    try:
        float(text)
    except ValueError:
        return False
    return "_" not in text  # Python allows 1_000; data files do not
