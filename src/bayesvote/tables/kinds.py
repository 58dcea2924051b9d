"""Kinds of columns, roles of features, and the conversion of cells."""

import math
import re
from collections.abc import Callable, Iterable
from contextlib import suppress
from enum import IntEnum
from functools import partial
from typing import NamedTuple

import numpy as np
from numpy.typing import NDArray

from bayesvote.core.checks import Argument, Array, InputError
from bayesvote.tables.cells import MISSING_TEXTS, Cells, Sort, shortened, text_of
from bayesvote.tables.date_texts import Order, of_digits, order_of, parse

_THOUSANDS = re.compile(r"[+-]?\d{1,3}(,\d{3})+(\.\d*)?$")  # 1,400 and 1,400.5; but 1,5 is a text
_TRUTH = {"true": 1.0, "false": 0.0, "yes": 1.0, "no": 0.0}


class Kind(IntEnum):
    """The kind of a column. Model files store the number."""

    UNKNOWN = 0  # no value was seen yet
    NUMBER = 1
    BOOLEAN = 2
    CATEGORY = 3
    DATE = 4
    DROP = 5


STATED = {kind.name.lower(): kind for kind in Kind if kind != Kind.UNKNOWN}
ORDERS = {"day_first": Order.DAY_FIRST, "month_first": Order.MONTH_FIRST}  # kinds of dates such as 01/02/2020
STATED |= dict.fromkeys(ORDERS, Kind.DATE)
NUMERIC = frozenset({Kind.NUMBER, Kind.BOOLEAN, Kind.DATE})


class Role(IntEnum):
    """The role of a feature of a column. Model files store the number."""

    NUMBER = 0  # the number, or the mean so far if it is missing; days since 1970 for a date
    MISSING = 1  # 1 if the cell is missing
    NEW = 2  # 1 if the text is new
    TEXT = 3  # 1 for a particular text
    BUCKET = 4  # 1 for a particular hash of a text without a feature of its own
    SIN = 5  # sine and cosine of an hour, weekday or month
    COS = 6
    STATISTIC = 7  # log-odds of a class among the earlier rows with the same value


CIRCLES = ("hour", "weekday", "month")
# The sine and cosine of every minute of the day, day of the week and month.
_TURNS = [
    np.array([[turn(2 * math.pi * k / n) for k in range(n)] for turn in (math.sin, math.cos)]) for n in (1440, 7, 12)
]


def guessed(text: str) -> Kind:
    """Guess the kind of a column from its first text.

    >>> [guessed(text).name for text in ("1,400.5", "true", "2024-05-01T08:00", "May 1, 2024", "Dream")]
    ['NUMBER', 'BOOLEAN', 'DATE', 'DATE', 'CATEGORY']
    """
    if text.lower() in ("true", "false"):
        return Kind.BOOLEAN
    return next((kind for kind in (Kind.NUMBER, Kind.DATE) if _PARSERS[kind](text) is not None), Kind.CATEGORY)


def _number(text: str) -> float | None:
    with suppress(ValueError):
        found = float(text.replace(",", "") if _THOUSANDS.match(text) else text)
        if abs(found) <= 1e100 and "_" not in text:  # Python accepts 1_000, but it is more likely a name
            return found
    return None


def _boolean(text: str) -> float | None:
    return _TRUTH.get(text.lower(), _number(text))


_PARSERS: dict[Kind, Callable[[str], float | None]] = {
    Kind.NUMBER: _number,
    Kind.BOOLEAN: _boolean,
    Kind.DATE: parse,
}


_WRITTEN = {Order.UNKNOWN: "2020-12-31T23:59", Order.DAY_FIRST: "31/12/2020", Order.MONTH_FIRST: "12/31/2020"}


def demand(kind: Kind, order: Order = Order.UNKNOWN) -> str:
    """Return the rule for the cells of a column that is stated to be of this kind.

    >>> demand(Kind.DATE)
    'must hold a date as 2020-12-31 or 2020-12-31T23:59 in every row'
    """
    written = f" as 2020-12-31 or {_WRITTEN[order]}" if kind == Kind.DATE else ""
    return f"must hold a {kind.name.lower()}{written} in every row"


def unfit(kind: Kind, texts: Iterable[str], order: Order = Order.UNKNOWN) -> set[str]:
    """Return the texts that are not valid in a column of a stated kind and order of day and month.

    >>> unfit(Kind.BOOLEAN, ["yes", " NO ", "0", "", "perhaps"])
    {'perhaps'}
    """
    parser = partial(parse, order=order) if kind == Kind.DATE else _PARSERS.get(kind)
    if parser is None:
        return set()
    kept = {text: shortened(text.strip()) for text in set(texts)}
    return {text for text, short in kept.items() if short.casefold() not in MISSING_TEXTS and parser(short) is None}


def check_sorts(who: str, name: str, cells: Cells, dates: bool | None = None) -> None:
    """Raise an error for numbers among dates and dates among numbers, whose meaning is unclear."""
    there = np.flatnonzero(~np.isnan(cells.numbers))
    are = cells.sorts[there] == Sort.DATE
    wrong = np.flatnonzero(are != (are[:1] if dates is None else dates))
    if len(wrong):
        row = int(there[wrong[0]])
        got = f"{text_of(float(cells.numbers[row]), int(cells.sorts[row]))} in row {row}"
        must = "must not hold both dates and numbers"
        raise InputError(who, f"column {name!r}", must, got, "State its kind, for example with", _category(name))


def as_kind(who: str, name: str, cells: Cells, kind: Kind, strict: bool, order: Order = Order.UNKNOWN) -> Cells:
    """Convert cells to a kind of column: to texts for a category, otherwise to numbers.

    A text that cannot be converted stays a text or, with ``strict``, raises an error. ``order`` is the order of day and
    month in dates such as 01/02/2020.
    """
    if kind == Kind.CATEGORY:
        return cells.as_texts()
    cells = cells.without_vast(who, name)
    if not strict:
        check_sorts(who, name, cells, kind == Kind.DATE)
    if strict and kind == Kind.DATE:
        cells = _dates_of_digits(cells)
    if not cells.texts:
        return cells
    if kind == Kind.DATE:
        _check_order(who, name, cells, order)
        parsed = [parse(text, order) for text in cells.texts]
    else:
        parsed = [_PARSERS[kind](text) for text in cells.texts]
        if kind == Kind.NUMBER and not strict:  # files have booleans as texts in columns of numbers
            truths = {"true": 1.0, "false": 0.0}
            parsed = [
                truths.get(text.lower()) if found is None else found
                for text, found in zip(cells.texts, parsed, strict=True)
            ]
    texts = cells.codes >= 0
    left = np.array([found is None for found in parsed])
    stays = texts & left[cells.codes]
    if strict and np.any(stays):
        row = int(np.argmax(stays))
        # Without the row number: tables are learned in parts, and it would count from the start of a part.
        got = repr(cells.texts[cells.codes[row]])
        do = "State another kind, for example with"
        raise InputError(who, f"column {name!r}", demand(kind), got, do, _category(name))
    of_text = np.array([math.nan if found is None else found for found in parsed])
    numbers, sorts = cells.numbers.copy(), cells.sorts.copy()
    numbers[texts] = of_text[cells.codes[texts]]
    sorts[texts] = Sort[kind.name]
    return cells._replace(numbers=numbers, sorts=sorts, codes=np.where(stays, cells.codes, -1).astype(np.int32))


def _dates_of_digits(cells: Cells) -> Cells:
    """Read numbers such as 20201231 as dates."""
    numbers, sorts = cells.numbers.copy(), cells.sorts.copy()
    for row in np.flatnonzero((cells.sorts == Sort.NUMBER) & (numbers >= 19000101) & (numbers <= 21001231)):
        seconds = of_digits(float(numbers[row]))
        if seconds is not None:
            numbers[row], sorts[row] = seconds, Sort.DATE
    return cells._replace(numbers=numbers, sorts=sorts)


def _check_order(who: str, name: str, cells: Cells, order: Order) -> None:
    """Raise an error for a date in another order of day and month, or an ambiguous date if the order is unknown."""
    used = set(np.unique(cells.codes).tolist())
    for code, text in enumerate(cells.texts):
        found = order_of(text)
        if found is None or code not in used or (order and found in (order, Order.UNKNOWN)) or (found and not order):
            continue
        how = {Order.DAY_FIRST: "the day", Order.MONTH_FIRST: "the month"}.get(order)
        must = f"must hold dates with {how} first, as in the first rows" if how else "must not hold ambiguous dates"
        row = int(np.argmax(cells.codes == code))
        other = "day_first" if order != Order.DAY_FIRST else "month_first"
        using = Argument("columns", {name: other})
        raise InputError(
            who, f"column {name!r}", must, f"{text!r} in row {row}", "State the order, for example with", using
        )


def _category(name: str) -> Argument:
    return Argument("columns", {name: "category"})


class Dates(NamedTuple):
    """Times as days, and as positions on the circles of the day, the week and the year."""

    days: Array  # (n,)
    places: list[NDArray[np.intp]]  # per circle (n,): the hour, weekday and month
    turns: list[Array]  # per circle (2, n): sine and cosine


def dates(seconds: Array) -> Dates:
    """Split dates into their parts; NaN counts as 1970."""
    known = np.nan_to_num(seconds)
    days = np.floor(known / 86400)
    minutes = ((known - 86400 * days) / 60).astype(np.intp)
    weekdays = (days.astype(np.intp) + 3) % 7  # the first day of 1970 was a Thursday
    months = days.astype("datetime64[D]").astype("datetime64[M]").astype(np.intp) % 12
    turns = [_TURNS[0][:, minutes], _TURNS[1][:, weekdays], _TURNS[2][:, months]]
    return Dates(known / 86400, [minutes // 60, weekdays, months], turns)
