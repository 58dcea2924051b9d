"""Reports as Markdown: tables, facts and text; for a chart, the first and the last values."""

import re
from collections.abc import Iterable

import numpy as np

from bayesvote.apps.report.blocks import Block, Cell, Chart, Charts, Facts, Report, Series, TableBlock, Text

_SPECIAL = re.compile(r"([\\`*_|<>\[\]])")


def render_markdown(report: Report) -> str:
    """Return the report as Markdown.

    Examples
    --------
    >>> from bayesvote.apps.report.blocks import Section
    >>> table = TableBlock("Errors", ["set", "ours"], [["heart", Cell("0.17", bold=True, note="0.18")]])
    >>> print(render_markdown(Report("A run", "", [Section("All", [table])])))
    # A run
    <BLANKLINE>
    ## All
    <BLANKLINE>
    Errors
    <BLANKLINE>
    | set | ours |
    |---|---|
    | heart | **0.17** (0.18) |
    <BLANKLINE>
    """
    parts = [f"# {_text(report.title)}", _text(report.lead)]
    for section in report.sections:
        parts += [f"## {_text(section.title)}", _text(section.lead)]
        parts += [_block(block) for block in section.blocks]
    return "\n\n".join(part for part in parts if part) + "\n"


def _block(block: Block) -> str:
    if isinstance(block, TableBlock):
        return _table(block)
    if isinstance(block, Facts):
        return "\n".join(f"- {_text(name)}: {_text(str(value))}" for name, value in block.values.items())
    if isinstance(block, Text):
        return _text(block.paragraph)
    charts = block.charts if isinstance(block, Charts) else [block]
    return "\n\n".join(_chart(chart) for chart in charts)


def _table(table: TableBlock) -> str:
    lines = [_line(map(_text, table.header)), "|" + "---|" * len(table.header)]
    lines += [_line(_cell(cell) for cell in row) for row in table.cells]
    return "\n\n".join(part for part in (_text(table.caption), "\n".join(lines), _text(table.note)) if part)


def _line(cells: Iterable[str]) -> str:
    return f"| {' | '.join(cells)} |"


def _cell(cell: Cell) -> str:
    text = _text(cell.text)
    text = f"**{text}**" if cell.bold else f"*{text}*" if cell.tied else text
    text += f" {_text(cell.spread)}" if cell.spread else ""
    return text + (f" ({_text(cell.note)})" if cell.note else "")


def _chart(chart: Chart) -> str:
    """Return the caption and a table of the first and last value of each line."""
    rows = [[series.name, _at(series, 0), _at(series, -1)] for series in chart.series]
    header = ["line", f"{chart.y_label} at the first {chart.x_label}", "at the last"]
    return _table(TableBlock(chart.caption, header, rows))


def _at(series: Series, place: int) -> str:
    columns = series.columns()
    return f"{columns['y'][place]:.4g} at {columns['x'][place]:g}" if np.size(columns["x"]) else "none"


def _text(text: str) -> str:
    return _SPECIAL.sub(r"\\\1", text)
