"""Reports as self-contained HTML pages: no network, no fonts, no scripts."""

from itertools import count
from pathlib import Path

from bayesvote.apps.report._svg import draw, draw_key
from bayesvote.apps.report.blocks import DASH, MINUS, Cell, Chart, Report, TableBlock
from bayesvote.apps.report.markdown import render_markdown

_NUMERIC = f"0123456789+-.∞{DASH}{MINUS}"  # first characters of numbers and of missing values


def render(report: Report) -> str:
    """Return the page; the same report gives the same bytes.

    Examples
    --------
    >>> from bayesvote.apps.report.blocks import Section, Text
    >>> page = render(Report("First & last", "", [Section("One", [Text("1 < 2")])]))
    >>> "<h1>First &amp; last</h1>" in page, "<p>1 &lt; 2</p>" in page
    (True, True)
    """
    from jinja2 import Environment, FileSystemLoader, StrictUndefined
    from markupsafe import Markup

    numbers = count(1)

    def draw_chart(chart: Chart) -> dict[str, object]:
        prefix = f"chart-{next(numbers)}-"
        keys = [
            (series.name, Markup(draw_key(place, series, f"{prefix}key-{place}-")))
            for place, series in enumerate(chart.series)
        ]
        return {"picture": Markup(draw(chart, prefix)), "keys": keys}

    pages = Environment(
        loader=FileSystemLoader(Path(__file__).parent),
        autoescape=True,
        undefined=StrictUndefined,
        trim_blocks=True,
        lstrip_blocks=True,
    )
    pages.filters |= {"kind": lambda block: type(block).__name__, "draw": draw_chart, "numeric": numeric, "key": key}
    return pages.get_template("page.html").render(report=report)


def write(report: Report, path: str | Path) -> None:
    """Write the report to a file: Markdown if its name ends in .md, HTML otherwise."""
    text = render_markdown(report) if Path(path).suffix == ".md" else render(report)
    # A file name can contain bytes that are not text.
    Path(path).write_bytes(text.encode("utf-8", "replace"))


def numeric(table: TableBlock) -> list[bool]:
    """Return True for each column of numbers, which is right-aligned."""
    return [
        place > 0 and all(cell.text[:1] in _NUMERIC for cell in column) for place, column in enumerate(_columns(table))
    ]


def key(table: TableBlock) -> str:
    """Explain bold and underlined cells of the table."""
    cells = [cell for column in _columns(table) for cell in column]
    parts = ["Bold: the best."] if any(cell.bold for cell in cells) else []
    if any(cell.tied for cell in cells):
        parts.append("Underlined: not significantly different from the best.")
    return " ".join(parts)


def _columns(table: TableBlock) -> list[list[Cell]]:
    return [[row[place] for row in table.cells] for place in range(len(table.header))]
