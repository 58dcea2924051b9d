"""Parser of dates: 2020-12-31, 2020/12/31, 31.12.2020, 31 Dec 2020, Dec 31, 2020 and 12/31/2020."""

import re
from collections.abc import Iterable
from contextlib import suppress
from datetime import datetime
from enum import IntEnum

from bayesvote.tables.cells import seconds_of


class Order(IntEnum):
    """The order of day and month in dates such as 01/02/2020. Model files store the number."""

    UNKNOWN = 0
    MONTH_FIRST = 1
    DAY_FIRST = 2


_LONG = [
    *("january", "february", "march", "april", "may", "june"),
    *("july", "august", "september", "october", "november", "december"),
]
_MONTHS = {name[:size]: k + 1 for k, name in enumerate(_LONG) for size in (3, len(name))} | {"sept": 9}
_TIME = r"(?:(?:,?\s+|T)(?P<hour>\d{1,2}):(?P<minute>\d\d)(?::(?P<second>\d\d)(?:\.\d+)?)?\s*(?P<half>[ap]m)?)?$"
_NAME = r"(?P<name>[a-z]{3,9})\.?"
_FORMS = [
    re.compile(pattern + _TIME, re.IGNORECASE)
    for pattern in (
        r"(?P<year>\d{4})[/.](?P<month>\d{1,2})[/.](?P<day>\d{1,2})",
        r"(?P<day>\d{1,2})\.(?P<month>\d{1,2})\.(?P<year>\d{4})",
        rf"(?:[a-z]{{3,9}},?\s+)?(?P<day>\d{{1,2}})(?:st|nd|rd|th)?[\s-]+{_NAME}[\s,-]+(?P<year>\d{{4}})",
        rf"(?:[a-z]{{3,9}},?\s+)?{_NAME}\s+(?P<day>\d{{1,2}})(?:st|nd|rd|th)?,?\s+(?P<year>\d{{4}})",
    )
]
_EITHER_ORDER = re.compile(
    r"(?P<first>\d{1,2})(?P<mark>[/-])(?P<second_part>\d{1,2})(?P=mark)(?P<year>\d{4})" + _TIME, re.I
)


def parse(text: str, order: Order = Order.UNKNOWN) -> float | None:
    """Return the seconds since 1970 of a date, or None. Without an order, 01/02/2020 is January 2.

    >>> [parse(text) for text in ("2013-01-02", "Jan 02, 2013", "1/2/2013", "2.1.2013", "soon")]
    [1357084800.0, 1357084800.0, 1357084800.0, 1357084800.0, None]
    """
    if "-" in text or len(text) == 8:
        with suppress(ValueError, OverflowError):
            return seconds_of(datetime.fromisoformat(text))
    found = _EITHER_ORDER.match(text)
    if found:
        a, b = int(found["first"]), int(found["second_part"])
        month_first = order == Order.MONTH_FIRST or (order == Order.UNKNOWN and a <= 12)
        return _seconds(found, *((a, b) if month_first else (b, a)))
    for form in _FORMS:
        found = form.match(text)
        if found:
            parts = found.groupdict()
            name = parts.get("name")
            month = int(parts["month"]) if name is None else _MONTHS.get(name.lower(), 0)
            return _seconds(found, month, int(parts["day"]))
    return None


def order_of(text: str) -> Order | None:
    """Return the order of day and month in a text; None if it has no such date.

    >>> [order_of(text) for text in ("31/12/2020", "1/2/2020", "2020-12-31")]
    [<Order.DAY_FIRST: 2>, <Order.UNKNOWN: 0>, None]
    """
    found = _EITHER_ORDER.match(text)
    if not found or parse(text) is None:
        return None
    a, b = int(found["first"]), int(found["second_part"])
    return Order.DAY_FIRST if a > 12 else Order.MONTH_FIRST if b > 12 else Order.UNKNOWN


def usual_order(texts: Iterable[str]) -> tuple[Order, str]:
    """Return the order of the dates of a column, and an ambiguous date if no date shows the order."""
    found, ambiguous = set(), ""
    for text in texts:
        order = order_of(text)
        if order == Order.UNKNOWN and not ambiguous:
            ambiguous = text
        elif order:
            found.add(order)
    if len(found) == 1:
        return found.pop(), ""
    return (Order.MONTH_FIRST, ambiguous) if ambiguous and not found else (Order.UNKNOWN, "")


def of_digits(number: float) -> float | None:
    """Return the seconds since 1970 of a number such as 20201231, from 1900 to 2100, or None.

    >>> of_digits(19700102.0), of_digits(20201301.0)
    (86400.0, None)
    """
    if not 19000101 <= number <= 21001231 or number != int(number):
        return None
    try:
        return seconds_of(datetime.strptime(str(int(number)), "%Y%m%d"))
    except ValueError:
        return None


def _seconds(found: re.Match[str], month: int, day: int) -> float | None:
    hour, minute, second = (int(found[part] or 0) for part in ("hour", "minute", "second"))
    if found["half"]:
        if not 1 <= hour <= 12:
            return None
        hour = hour % 12 + 12 * (found["half"].lower() == "pm")
    try:
        return seconds_of(datetime(int(found["year"]), month, day, hour, minute, second))
    except (ValueError, OverflowError):
        return None
