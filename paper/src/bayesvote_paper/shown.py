"""What an experiment shows: tables of errors, tables of words and counts, and plots."""

from collections.abc import Collection, Iterable, Mapping, Sequence
from typing import NamedTuple

import numpy as np

from bayesvote.core.checks import Array

EQUAL = 1e-12  # errors that differ by less are equal but for rounding


class Method(NamedTuple):
    """A column of a table of errors: its name in the results, and its heading on a page and in a narrow terminal."""

    name: str
    heading: str = ""  # empty: the name
    narrow: str = ""


class Entry(NamedTuple):
    """A cell of a table: the error's mean over trials, its standard error, and the published figure if there is one."""

    mean: float
    standard_error: float
    best: bool
    tied: bool
    published: float | None

    def reaches(self, published: float | None) -> bool:
        """Return True if the mean is at or below a published figure, rounded as that is printed."""
        if published is None:
            return False
        digits = len(f"{published}".partition(".")[2])
        return round(self.mean, max(digits, 3)) <= published + EQUAL


class Row(NamedTuple):
    """A data set's errors by method."""

    dataset: str
    n_rows: int
    partial: bool
    entries: Mapping[str, Entry]


class ErrorTable(NamedTuple):
    """Errors by data set and method, for one kind of members.

    ``reference`` names the method beside which a terminal, which has no room for more, shows ``publisher``'s figures.
    """

    experiment: str
    members: str
    title: str
    caption: str
    all_methods: tuple[Method, ...]
    rows: list[Row]
    digits: int
    reference: str
    publisher: str

    @property
    def methods(self) -> list[Method]:
        """The methods that there are results of on every set."""
        return [method for method in self.all_methods if self.has(method.name)]

    @property
    def published(self) -> dict[str, float]:
        """The published figures of the reference method, by set."""
        cells = {row.dataset: row.entries[self.reference] for row in self.rows if self.reference in row.entries}
        return {dataset: cell.published for dataset, cell in cells.items() if cell.published is not None}

    def has(self, method: str) -> bool:
        """Whether a method was run on every set."""
        return all(method in row.entries for row in self.rows)

    def mean(self, method: str) -> float:
        """A method's error, mean over the sets."""
        return float(np.mean([row.entries[method].mean for row in self.rows]))

    def below(self, method: str, other: str) -> list[str]:
        """The sets on which a method has a lower error than another."""
        return [row.dataset for row in self.rows if row.entries[method].mean < row.entries[other].mean - EQUAL]


class TextTable(NamedTuple):
    """A table of names, counts and means, written out."""

    title: str
    header: tuple[str, ...]
    rows: list[tuple[str, ...]]
    note: str = ""


class Line(NamedTuple):
    """A line of a plot, with a band around it if ``lower`` and ``upper`` are given."""

    name: str
    x: Array
    y: Array
    lower: Array | None = None
    upper: Array | None = None


class Plot(NamedTuple):
    """Lines over a common axis; ``from_zero`` starts the height at 0."""

    caption: str
    x_label: str
    y_label: str
    lines: list[Line]
    log_x: bool
    log_y: bool
    from_zero: bool


Shown = ErrorTable | TextTable | Plot


class Aim(NamedTuple):
    """Something that was aimed at, and what the results say."""

    what: str
    found: str
    reached: bool


def count_reaching(rows: Iterable[Row], method: str) -> int:
    """How many cells of a method are at or below the paper's figure for (11)."""
    return sum(row.entries[method].reaches(row.entries["GammaRate"].published) for row in rows)


def out_of(count: int, whole: Collection[object]) -> str:
    """A count among others, as "3 of 10"."""
    return f"{count} of {len(whole)}"


def listed(names: Sequence[str], whole: Collection[object]) -> str:
    """Names with commas, or "all" or "none" of them."""
    return f"all {len(whole)}" if len(names) == len(whole) else ", ".join(names) or "none"
