"""Reports as self-contained HTML pages, or as Markdown."""

from bayesvote.report.blocks import Cell, Chart, Charts, Facts, Report, Section, Series, Table, Text, number
from bayesvote.report.html import render, write
from bayesvote.report.markdown import render_markdown
from bayesvote.report.run import run_report

__all__ = [
    "Cell",
    "Chart",
    "Charts",
    "Facts",
    "Report",
    "Section",
    "Series",
    "Table",
    "Text",
    "number",
    "render",
    "render_markdown",
    "run_report",
    "write",
]
