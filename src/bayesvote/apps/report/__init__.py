"""Reports as self-contained HTML pages, or as Markdown."""

from bayesvote.apps.report.blocks import Cell, Chart, Charts, Facts, Report, Section, Series, TableBlock, Text, number
from bayesvote.apps.report.html import render, write
from bayesvote.apps.report.markdown import render_markdown
from bayesvote.apps.report.run import run_report

__all__ = [
    "Cell",
    "Chart",
    "Charts",
    "Facts",
    "Report",
    "Section",
    "Series",
    "TableBlock",
    "Text",
    "number",
    "render",
    "render_markdown",
    "run_report",
    "write",
]
