"""Labels as they are written in files: integers, numbers or text."""

import math
import re
from functools import lru_cache

from bayesvote.core.checks import Advice, Argument
from bayesvote.io.faults import fault, shown
from bayesvote.io.values import is_number
from bayesvote.tables import MISSING_TEXTS

_LONGEST_LABEL = 1024  # characters; every string in a NumPy array takes the room of the longest one
_INTEGER = re.compile(r"[+-]?\d+", re.ASCII)
_CODE = re.compile(r"[+-]?0\d", re.ASCII)  # 01 and 007 are codes, not numbers


class LabelReader:
    """Reads labels with the type of the first one: integer, number or string.

    A text such as 01, or an integer that does not fit 64 bits, is a string. After a number it raises an error, because
    a stream cannot change the labels that it has returned already. ``read_as="text"`` reads strings only.

    Parameters
    ----------
    read_as
        "auto", or "text" to read labels as strings.
    column
        The name of their column; None if it has no name.
    default
        True if it is the last column because no target was given.
    """

    def __init__(self, read_as: str = "auto", column: str | None = None, default: bool = False) -> None:
        self._where = "" if column is None else f" in column {column!r}"
        self._do: Advice = ""
        if default:
            self._do = ("The last column is the label unless another is named with ", Argument("target", "NAME"), ".")
        self._kind: type | None = str if read_as == "text" else None
        self.met_codes = False  # a code came after a number: only read_as="text" keeps them apart
        self.read = lru_cache(maxsize=4096)(self._read)

    def _read(self, text: str) -> int | float | str:
        text = _label_text(text, self._where, self._do)
        number = None if self._kind is str else number_of_label(text)
        self._kind = self._kind or (str if number is None else type(number))
        if self._kind is str:
            return text
        if number is None or (self._kind is int and type(number) is float) or not _fits(self._kind, number):
            what = "a whole number" if self._kind is int else "a number"
            do: Advice = ""
            if is_code(text):
                self.met_codes = True
                do = ("Read all labels as text with ", Argument("labels", "text"), ".")
            raise fault("the label", f"must be {what}, as the first label is", shown(text), do)
        return int(number) if self._kind is int else float(number)


def number_of_label(text: str) -> int | float | None:
    """Return the number that a label stands for, or None if the label is text.

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
    """Return True for a label that is written as a number but read as text, such as 01.

    >>> is_code("01"), is_code("1"), is_code("a")
    (True, False, False)
    """
    text = text.strip()
    if not is_label(text) or not is_number(text) or number_of_label(text) is not None:
        return False
    return bool(_INTEGER.fullmatch(text)) or math.isfinite(float(text))


def is_label(text: str) -> bool:
    """Return True if the text is a valid label."""
    try:
        _label_text(text)
    except ValueError:
        return False
    return True


def _fits(kind: type, number: float) -> bool:
    """Return True if the type of the labels so far holds the number exactly."""
    return kind is int or abs(number) <= 2**53


def _label_text(text: str, where: str = "", do: Advice = "") -> str:
    """Strip a label and check it; ``where`` and ``do`` are parts of the error for a missing one."""
    text = text.strip()
    if text.casefold() in MISSING_TEXTS:
        raise fault("the label", f"is missing{where}", do=do)
    if len(text) > _LONGEST_LABEL:
        raise fault("the label", f"must have at most {_LONGEST_LABEL:,} characters", f"{len(text):,}")
    if "\0" in text:
        # NumPy strips NUL from the end of strings, so that two labels would become one.
        raise fault("the label", "must not contain a NUL character", shown(text))
    try:
        text.encode()
    except UnicodeEncodeError:
        raise fault("the label", "is not UTF-8 text") from None
    return text
