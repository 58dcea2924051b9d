"""Exact values of numbers that a float would round, stored next to the floats of a column."""

import math
import sys
from decimal import Decimal
from typing import Any

import numpy as np
from numpy.typing import NDArray

# For every cell of a column its exact number: an integer (int64 or uint64), or an object. An object is the number's
# decimal text, or None if the float is exact. Cells without a number may hold anything.
Exact = NDArray[Any]

MOST_DIGITS = 4300  # of a number; Python turns no larger integer into text by default
_FIRST_ROUNDED = 2**53  # floats hold all smaller integers


def of_integers(values: NDArray[Any]) -> Exact | None:
    """Return a copy of an array of integers, or None if floats hold all of them."""
    if values.dtype.itemsize < 8 or len(values) == 0:
        return None
    if int(values.min()) >= -_FIRST_ROUNDED and int(values.max()) <= _FIRST_ROUNDED:
        return None
    return np.array(values, dtype=np.uint64 if values.dtype.kind == "u" else np.int64)


def of_values(values: list[Any]) -> Exact | None:
    """Return the exact texts of numbers, of which None is missing; None if floats hold all of them."""
    texts = [None if value is None else as_float(value)[1] for value in values]
    return of_texts(dict(enumerate(texts)), len(texts))


def of_texts(texts: dict[int, str | None], n: int) -> Exact | None:
    """Return the exact texts by row as an array, or None if there are none."""
    found = np.full(n, None, dtype=object)
    for row, text in texts.items():
        found[row] = text
    return found if any(text is not None for text in texts.values()) else None


def as_float(value: Any) -> tuple[float, str | None]:
    """Return a real number as a float, and its exact decimal text if the float is rounded.

    A number beyond all floats becomes the largest float. Fractions that are no Decimal count as their floats. Raises
    OverflowError for numbers of more than 4,300 digits.

    >>> as_float(7), as_float(2**53 + 1), as_float(Decimal("0.10"))
    ((7.0, None), (9007199254740992.0, '9007199254740993'), (0.1, None))
    """
    if is_plain(value):
        return float(value), None
    whole = int(value) if isinstance(value, np.integer) else value
    try:
        number = float(whole)
    except OverflowError:
        number = math.inf if whole > 0 else -math.inf
    if math.isnan(number) or (math.isinf(number) and whole == number):
        return number, None
    if not isinstance(whole, int | Decimal):  # of fractions and of long floats, integers alone are exact
        if int(whole) != whole:
            return number, None
        whole = int(whole)
    return (number, None) if _holds(number, whole) else (_bounded(number), _decimal_text(whole))


def is_plain(value: Any) -> bool:
    """Return whether a value is a float of Python's, or an integer that floats hold."""
    kind = type(value)
    return kind is float or (kind is int and -_FIRST_ROUNDED <= value <= _FIRST_ROUNDED)


def joined(first: Exact | None, n: int, other: Exact | None, m: int) -> Exact | None:
    """Return the exact numbers of n cells, then those of m others."""
    if first is None and other is None:
        return None
    if first is not None and other is not None and first.dtype == other.dtype:
        return np.concatenate([first, other])
    return np.concatenate([_as_texts(first, n), _as_texts(other, m)])


def known(exact: Exact | None, n: int) -> NDArray[np.bool_]:
    """Return which of n cells have an exact number."""
    if exact is None or exact.dtype != object:
        return np.full(n, exact is not None)
    return np.array([text is not None for text in exact], dtype=np.bool_)


def _as_texts(exact: Exact | None, n: int) -> Exact:
    if exact is None:
        return np.full(n, None, dtype=object)
    return exact if exact.dtype == object else np.array([*map(str, exact.tolist())], dtype=object)


def _holds(number: float, value: int | Decimal) -> bool:
    if math.isinf(number):
        return False
    if isinstance(value, Decimal) and not number.is_integer():
        return Decimal(repr(number)) == value  # the decimal 0.1 is the float whose shortest text is 0.1
    return number == value


def _bounded(number: float) -> float:
    return math.copysign(sys.float_info.max, number) if math.isinf(number) else number


def _decimal_text(value: int | Decimal) -> str:
    if isinstance(value, Decimal):
        if abs(value.adjusted()) > MOST_DIGITS:
            raise OverflowError
        text = format(value, "f")
        return text.rstrip("0").rstrip(".") if "." in text else text
    try:
        return str(int(value))
    except ValueError:
        raise OverflowError from None
