"""Charts as inline SVG: drawn by matplotlib, with colours and fonts of the page's style sheet."""

import io
import math
import re
from collections.abc import Callable, Sequence
from typing import TYPE_CHECKING, Literal
from xml.etree import ElementTree

import numpy as np

from bayesvote.apps.report.blocks import MINUS, Chart, Series
from bayesvote.core.checks import Array

if TYPE_CHECKING:
    from matplotlib.axes import Axes

_WIDTH, _HEIGHT = 440, 250
_LEFT, _RIGHT, _TOP, _BOTTOM = 50, 14, 10, 26  # margins that fit the tick labels at the font size of a phone
_KEY_WIDTH, _KEY_HEIGHT = 34, 12
_POINTS = 500

# Placeholders: the style sheet has the actual colours, --series-0 and so on, for light and dark mode.
_INK = "#010101"
_COLOURS = tuple(f"#0a0b{k:02x}" for k in range(7))
_DASHES = ("solid", (0, (5, 2)), (0, (1.5, 1.5)), (0, (7, 2, 1.5, 2)), (0, (3, 1, 1, 1, 1, 1)))
_MARKERS = "osD^vP"
_UNITS = ((1e9, 1e9, "G"), (1e6, 1e6, "M"), (1e4, 1e3, "k"))  # minimum value, unit and its letter

ColumnArrays = dict[str, Array]


def draw(chart: Chart, prefix: str) -> str:
    """Return the chart without its legend; empty if there is nothing to draw. Its ids start with ``prefix``."""
    lines = [thinned(visible(series, chart), chart.log_x) for series in chart.series]
    if not any(np.isfinite(columns["y"]).any() for columns in lines):
        return ""

    def paint(axes: "Axes") -> None:
        for place, columns in enumerate(lines):
            _line(axes, place, columns)
        _scale(axes, "x", [columns["x"] for columns in lines], chart.log_x)
        heights = [columns[name] for columns in lines for name in columns if name != "x"]
        _scale(axes, "y", heights + [np.zeros(1)] * chart.from_zero, chart.log_y)
        axes.grid(axis="y", color=_INK, alpha=0.15, linewidth=0.8)
        axes.spines[["top", "right", "left"]].set_visible(False)
        axes.spines["bottom"].set(color=_INK, alpha=0.6, linewidth=0.8)
        axes.tick_params(axis="x", color=_INK, length=3, pad=4)
        axes.tick_params(axis="y", length=0, pad=6)

    box = (_LEFT, _BOTTOM, _WIDTH - _LEFT - _RIGHT, _HEIGHT - _TOP - _BOTTOM)
    return _svg(paint, (_WIDTH, _HEIGHT), box, prefix, {"role": "img", "aria-label": summary(chart)})


def draw_key(place: int, series: Series, prefix: str) -> str:
    """Return a sample of a chart's line at position ``place``, for the legend."""
    columns = {"x": np.array([0.0, 0.5, 1.0]), "y": np.zeros(3)}
    if series.lower is not None:
        columns |= {"lower": np.full(3, -1.0), "upper": np.ones(3)}

    def paint(axes: "Axes") -> None:
        _line(axes, place, columns, markers=slice(1, 2))
        axes.set(xlim=(0, 1), ylim=(-1, 1))
        axes.set_axis_off()

    box = (0, 0, _KEY_WIDTH, _KEY_HEIGHT)
    return _svg(paint, (_KEY_WIDTH, _KEY_HEIGHT), box, prefix, {"class": "key", "aria-hidden": "true"})


def visible(series: Series, chart: Chart) -> ColumnArrays:
    """Return the values of a series; NaN for values that the axes cannot show."""
    columns = series.columns()
    for name, values in columns.items():
        hidden = ~np.isfinite(values)
        if chart.log_x if name == "x" else chart.log_y:
            hidden |= values <= 0
        columns[name] = np.where(hidden, np.nan, values)
    columns["y"] = np.where(np.isnan(columns["x"]), np.nan, columns["y"])
    return columns


def thinned(columns: ColumnArrays, log_x: bool) -> ColumnArrays:
    """Return at most 500 points, with the first and the last; denser at the start for a logarithmic axis."""
    n = len(columns["x"])
    if n <= _POINTS:
        return columns
    spaced = np.geomspace(1, n, _POINTS) if log_x else np.linspace(1, n, _POINTS)
    kept = np.unique(spaced.round().astype(np.intp)) - 1
    return {name: values[kept] for name, values in columns.items()}


def summary(chart: Chart) -> str:
    """Describe the chart for screen readers."""
    lines = []
    for series in chart.series:
        columns = visible(series, chart)
        known = np.flatnonzero(np.isfinite(columns["y"]))
        if len(known):
            first, last = (
                f"{columns['y'][k]:.4g} at {chart.x_label} {columns['x'][k]:,.10g}" for k in (known[0], known[-1])
            )
            lines.append(f"{series.name}: from {first} to {last}.")
    return " ".join([f"{chart.caption.rstrip('.')}. Lines of {chart.y_label} over {chart.x_label}.", *lines])


def tick_labels(ticks: Sequence[float]) -> list[str]:
    """Return labels with the same number of decimals, in thousands, millions or billions if they are large.

    Examples
    --------
    >>> tick_labels([0, 0.05, 0.1]), tick_labels([0, 500_000, 1_000_000])
    (['0.00', '0.05', '0.10'], ['0', '0.5M', '1.0M'])
    """
    top = max(map(abs, ticks), default=0)
    if 0 < top < 1e-3 or top >= 1e12:
        return [f"{tick:.3g}".replace("-", MINUS) for tick in ticks]
    unit, letter = next(((unit, letter) for least, unit, letter in _UNITS if top >= least), (1.0, ""))
    decimals = max((len(f"{tick / unit:.10g}".partition(".")[2]) for tick in ticks), default=0)
    labels = [f"{tick / unit:,.{decimals}f}{letter}" for tick in ticks]
    return [
        "0" if tick == 0 and letter else label.replace("-", MINUS) for tick, label in zip(ticks, labels, strict=True)
    ]


def _line(axes: "Axes", place: int, columns: ColumnArrays, markers: slice | tuple[int, int] | None = None) -> None:
    colour = _COLOURS[place % len(_COLOURS)]
    n = len(columns["x"])
    if markers is None:  # a few, at different points than those of the other lines
        step = max(1, n // 6)
        markers = (place * step // 5 % step, step)
    if "lower" in columns:
        axes.fill_between(
            columns["x"], columns["lower"], columns["upper"], color=colour, alpha=0.18, linewidth=0, clip_on=False
        )
    axes.plot(
        columns["x"],
        columns["y"],
        color=colour,
        linestyle=_DASHES[place % len(_DASHES)],
        linewidth=1.6,
        marker=_MARKERS[place % len(_MARKERS)],
        markersize=4,
        markevery=markers,
        clip_on=False,
    )


def _scale(axes: "Axes", name: Literal["x", "y"], values: Sequence[Array], log: bool) -> None:
    """Set limits around all values, and about four ticks with short labels."""
    from matplotlib.ticker import LogLocator, MaxNLocator

    known = np.concatenate(values)
    low, high = float(np.nanmin(known)), float(np.nanmax(known))
    if low == high:
        low, high = (low / 2, high * 2) if log else (low - 0.5, high + 0.5)
    if log:
        axes.set(**{f"{name}scale": "log"})
        narrow = math.log10(high / low) < 2
        found = LogLocator(subs=(1, 2, 5) if narrow else (1,), numticks=6).tick_values(low, high)
    else:
        found = MaxNLocator(nbins=5, steps=[1, 2, 2.5, 5, 10]).tick_values(0 if 0 <= low < high / 2 else low, high)
        if name == "y":
            low, high = float(found[0]), float(found[-1])
    slack = 1e-9 * (high - low)
    ticks = [float(tick) for tick in found if low - slack <= tick <= high + slack]
    axes.set(**{f"{name}lim": (low, high)})
    axis = axes.xaxis if name == "x" else axes.yaxis
    axis.set_ticks(ticks, labels=[tick_labels([tick])[0] for tick in ticks] if log else tick_labels(ticks))
    axis.set_ticks([], minor=True)


def _svg(
    paint: Callable[["Axes"], None],
    size: tuple[int, int],
    box: tuple[int, int, int, int],
    prefix: str,
    attributes: dict[str, str],
) -> str:
    """Return the SVG that ``paint`` draws on axes in a box of a picture; sizes are in the picture's units."""
    import matplotlib.style
    from matplotlib.figure import Figure

    width, height = size
    # The user's matplotlib settings must not change the output.
    with matplotlib.style.context(["default", {"svg.fonttype": "none", "svg.hashsalt": "bayesvote", "font.size": 12}]):
        figure = Figure(figsize=(width / 72, height / 72))
        left, bottom, across, up = box
        axes = figure.add_axes((left / width, bottom / height, across / width, up / height))
        figure.patch.set_visible(False)
        axes.patch.set_visible(False)
        paint(axes)
        out = io.StringIO()
        figure.savefig(out, format="svg", metadata={"Date": None})
    return _inlined(out.getvalue(), size, prefix, attributes)


def _inlined(text: str, size: tuple[int, int], prefix: str, attributes: dict[str, str]) -> str:
    """Convert a file of matplotlib to an element of a page: unique ids, colours and fonts of the style sheet."""
    root = ElementTree.fromstring(text)
    root[:] = root.findall("{*}g")  # remove metadata, global styles, and clips, which cut nothing
    ids: dict[str, str] = {}
    for element in root.iter():
        element.tag, element.text, element.tail = _local(element.tag), (element.text or "").strip(), ""
        element.attrib = {_local(name): value for name, value in element.attrib.items()}
        element.attrib.pop("clip-path", None)
        if element.tag == "g":
            element.attrib.pop("id", None)
        for name in {"id", "href"} & element.attrib.keys():
            old = element.attrib[name].removeprefix("#")
            new = ids.setdefault(old, f"{prefix}{len(ids)}")
            element.attrib[name] = element.attrib[name].replace(old, new)
        if "d" in element.attrib:
            element.attrib["d"] = _rounded(element.attrib["d"])
        if "style" in element.attrib:
            element.attrib["style"] = _restyled(element.attrib["style"])
    root.attrib = {"viewBox": f"0 0 {size[0]} {size[1]}", **attributes}
    return ElementTree.tostring(root, encoding="unicode")


def _local(name: str) -> str:
    return name.rpartition("}")[2]


def _rounded(path: str) -> str:
    path = " ".join(path.split())
    return re.sub(r"\d+\.\d+", lambda found: f"{float(found[0]):.1f}".removesuffix(".0"), path)


def _restyled(style: str) -> str:
    """Colours by their names in the style sheet, and no font."""
    for place, colour in enumerate(_COLOURS):
        style = style.replace(colour, f"var(--series-{place})")
    return re.sub(r"font[\w-]*: [^;]*(; |$)", "", style).replace(_INK, "currentColor")
