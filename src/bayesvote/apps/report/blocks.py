"""Parts of a report: tables, charts, facts and text, in sections."""

import math
from collections.abc import Mapping, Sequence
from dataclasses import dataclass

import numpy as np
from numpy.typing import ArrayLike

from bayesvote.core.checks import Array

DASH, MINUS = "\N{EN DASH}", "\N{MINUS SIGN}"


@dataclass(frozen=True)
class Cell:
    """A cell of a table.

    ``bold`` marks the best of a row or column, ``tied`` a value that does not differ significantly from the best.
    ``spread`` is shown in small grey letters after the text, ``note`` below it.
    """

    text: str
    bold: bool = False
    tied: bool = False
    note: str = ""
    spread: str = ""


@dataclass(frozen=True)
class TableBlock:
    """A table; the first column names its rows.

    ``groups`` is a second header line above the first: names with the number of columns below each.

    Examples
    --------
    >>> table = TableBlock("Errors", ["set", "voting", "ours"], [["heart", "0.18", Cell("0.17", bold=True)]])
    >>> table.cells[0][1]
    Cell(text='0.18', bold=False, tied=False, note='', spread='')
    """

    caption: str
    header: Sequence[str]
    rows: Sequence[Sequence[str | Cell]]
    note: str = ""
    groups: Sequence[tuple[str, int]] | None = None

    def __post_init__(self) -> None:
        width = len(self.header)
        for row in self.rows:
            if len(row) != width:
                raise ValueError(f"TableBlock: a row must have one cell per column, {width} of them, got {len(row)}.")
        if self.groups is not None and sum(span for _, span in self.groups) != width:
            raise ValueError(f"TableBlock: groups must cover the {width} columns, got {self.groups!r}.")

    @property
    def cells(self) -> list[list[Cell]]:
        """The rows, with plain text converted to cells."""
        return [[cell if isinstance(cell, Cell) else Cell(cell) for cell in row] for row in self.rows]


@dataclass(frozen=True)
class Series:
    """A line of a chart, with a band from ``lower`` to ``upper`` if they are given; NaN leaves a gap."""

    name: str
    x: ArrayLike
    y: ArrayLike
    lower: ArrayLike | None = None
    upper: ArrayLike | None = None

    def __post_init__(self) -> None:
        if (self.lower is None) != (self.upper is None):
            raise ValueError("Series: lower and upper must be given together, got one of them.")
        shapes = {values.shape for values in self.columns().values()}
        if len(shapes) > 1 or len(next(iter(shapes))) != 1:
            raise ValueError(f"Series: x, y and the band must have the same length, got shapes {sorted(shapes)}.")

    def columns(self) -> dict[str, Array]:
        """The values by name, as arrays."""
        given = {"x": self.x, "y": self.y, "lower": self.lower, "upper": self.upper}
        return {name: np.asarray(values, dtype=np.float64) for name, values in given.items() if values is not None}


@dataclass(frozen=True)
class Chart:
    """Lines over a common axis; with ``from_zero`` the y axis starts at 0, so that small differences look small."""

    caption: str
    x_label: str
    y_label: str
    series: Sequence[Series]
    log_x: bool = False
    log_y: bool = False
    from_zero: bool = False


@dataclass(frozen=True)
class Charts:
    """Charts shown side by side if the screen is wide enough."""

    charts: Sequence[Chart]


@dataclass(frozen=True)
class Facts:
    """Names and their values, such as settings or versions."""

    values: Mapping[str, object]


@dataclass(frozen=True)
class Text:
    """A paragraph."""

    paragraph: str


Block = TableBlock | Chart | Charts | Facts | Text


@dataclass(frozen=True)
class Section:
    """A part of a report with its own title."""

    title: str
    blocks: Sequence[Block]
    lead: str = ""


@dataclass(frozen=True)
class Report:
    """A page."""

    title: str
    lead: str
    sections: Sequence[Section]


def number(value: float, digits: int = 4) -> str:
    """Format a number for a cell; a dash for NaN.

    Examples
    --------
    >>> number(0.25), number(1234567.8, 0)
    ('0.2500', '1,234,568')
    """
    if math.isnan(value):
        return DASH
    return f"{value:,.{digits}f}".replace("-", MINUS).replace("inf", "∞")
