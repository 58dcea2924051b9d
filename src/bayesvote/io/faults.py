"""Errors of single lines: what is wrong with a line, and what to do with it."""

from collections.abc import Iterable, Mapping, Sequence
from typing import NamedTuple

from bayesvote.core.checks import Advice, Argument, InputError
from bayesvote.io.columns import ColumnChoice
from bayesvote.tables.date_texts import Order
from bayesvote.tables.kinds import NUMERIC, ORDERS, STATED, Kind, demand, unfit

_REPORTS = 20  # bad lines that are described; all are counted
_SHOWN = 60  # characters of a bad value


class BadLines:
    """Policy for lines that cannot be read: raise an error, or count them."""

    def __init__(self, who: str, source: str, action: str) -> None:
        self.who = who
        self.source = source
        self.action = action
        self.unit = "line"  # what the numbers count
        self.count = 0
        self.reports: list[str] = []

    def report(self, number: int, fault: InputError) -> None:
        """Raise an error for a bad line, or count it."""
        if self.action == "error":
            do = (fault.do,) if isinstance(fault.do, str) else fault.do
            space = " " if fault.do else ""
            raise InputError(
                self.who,
                f"{self.source}, {self.unit} {number}: {fault.subject}".rstrip(),
                fault.must,
                fault.got,
                (*do, f"{space}Fix the {self.unit}, or skip {self.unit}s like it with"),
                Argument("bad_lines", "skip"),
            )
        self.count += 1
        if len(self.reports) < _REPORTS:
            described = InputError("", fault.subject, fault.must, fault.got)
            self.reports.append(f"{self.unit} {number}: {described.sentence().removesuffix('.')}")


def fault(subject: str, must: str, got: str = "", do: Advice = "") -> InputError:
    """Make the error of a line; `BadLines` adds the function that was called and the line's number."""
    return InputError("", subject, must, got, do)


def too_long(longest: int) -> InputError:
    """Make the error of a line that is too long."""
    return fault("it", f"must have at most {longest:,} characters", "more")


def shown(text: str) -> str:
    """Quote a value for an error: control characters escaped, and shortened if it is long."""
    return repr(text if len(text) <= _SHOWN else f"{text[:_SHOWN]}...")


def category(name: str) -> Argument:
    """Return the argument that makes a column a category."""
    return Argument("columns", {name: "category"})


class StatedColumn(NamedTuple):
    """A column whose kind the user has stated; a line with another value is a bad line."""

    name: str
    kind: Kind
    learned: bool
    order: Order  # of day and month in its dates

    def faults(self, texts: Iterable[str]) -> dict[str, InputError]:
        """Return the error of each text that does not fit the kind."""
        do: Advice = ("State another kind, for example with ", category(self.name), ".") if self.learned else ""
        must, wrong = demand(self.kind, self.order), unfit(self.kind, texts, self.order)
        return {text: fault(f"column {self.name!r}", must, shown(text), do) for text in wrong}


def stated_columns(columns: ColumnChoice, names: Sequence[str], kinds: Mapping[str, str]) -> dict[int, StatedColumn]:
    """Return the columns, by position, whose stated kind does not admit every text."""
    learned = columns.label is not None
    # A number column that was inferred, not stated, accepts text at prediction time: the model reads it as a category.
    strict = NUMERIC if learned else NUMERIC - {Kind.NUMBER}
    found = {j: kinds[names[j]] for j in columns.features if names[j] in kinds}
    return {
        j: StatedColumn(names[j], STATED[kind], learned, ORDERS.get(kind, Order.UNKNOWN))
        for j, kind in found.items()
        if STATED[kind] in strict
    }
