"""Results of experiments for display: tables of errors, tables of text and counts, and plots."""

from collections.abc import Collection, Iterable, Mapping, Sequence
from typing import NamedTuple

import numpy as np

from bayesvote.core.checks import Array

EQUAL = 1e-12  # smaller differences of errors are rounding


class Method(NamedTuple):
    """A column of a table of errors: its name in the results, and its headings on a page and in a terminal."""

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

    ``reference`` is the method whose published figures a terminal shows; it has no room for more. ``publisher`` is
    their source.
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
        """Methods with results on every data set."""
        return [method for method in self.all_methods if self.has(method.name)]

    @property
    def published(self) -> dict[str, float]:
        """Published figures of the reference method, by data set."""
        cells = {row.dataset: row.entries[self.reference] for row in self.rows if self.reference in row.entries}
        return {dataset: cell.published for dataset, cell in cells.items() if cell.published is not None}

    def has(self, method: str) -> bool:
        """Return True if a method was run on every data set."""
        return all(method in row.entries for row in self.rows)

    def mean(self, method: str) -> float:
        """Return a method's mean error over the data sets."""
        return float(np.mean([row.entries[method].mean for row in self.rows]))

    def below(self, method: str, other: str) -> list[str]:
        """Return the data sets on which a method has a lower error than another."""
        return [row.dataset for row in self.rows if row.entries[method].mean < row.entries[other].mean - EQUAL]


class TextTable(NamedTuple):
    """A table of names, counts and means, as text."""

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
    """An aim, its result, and True if it was reached."""

    what: str
    found: str
    reached: bool


def count_reaching(rows: Iterable[Row], method: str) -> int:
    """Count the cells of a method at or below the paper's figure for (11)."""
    return sum(row.entries[method].reaches(row.entries["GammaRate"].published) for row in rows)


def out_of(count: int, whole: Collection[object]) -> str:
    """Return a count as text, such as "3 of 10"."""
    return f"{count} of {len(whole)}"


def listed(names: Sequence[str], whole: Collection[object]) -> str:
    """Return names with commas, or "all" or "none"."""
    return f"all {len(whole)}" if len(names) == len(whole) else ", ".join(names) or "none"
