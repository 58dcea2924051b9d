import re

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from bayesvote.apps.report._svg import draw, draw_key, summary, thinned, tick_labels, visible
from bayesvote.apps.report.blocks import Chart, Series


def chart(*series: Series, log_x: bool = False, log_y: bool = False) -> Chart:
    return Chart("Caption", "rows", "error", series, log_x, log_y)


def points(svg: str) -> list[list[tuple[float, float]]]:
    """The lines of a picture, without markers, axes and grid."""
    paths = re.findall(r'<path d="([^"]*)" style="fill: none;[^"]*stroke: var\(--series', svg)
    return [[(float(x), float(y)) for x, y in re.findall(r"[ML] (\S+) (\S+)", path)] for path in paths]


def test_lines_are_where_the_values_are() -> None:
    [line] = points(draw(chart(Series("a", [0, 1, 2], [0, 4, 1])), "c"))
    x, y = np.array(line).T
    assert x == pytest.approx(50 + np.array([0, 1, 2]) / 2 * 376, abs=0.1)
    assert y == pytest.approx(224 - np.array([0, 4, 1]) / 4 * 214, abs=0.1)


def test_logarithmic_axes() -> None:
    svg = draw(chart(Series("a", [1, 10, 1000], [1, 0.1, 0.001]), log_x=True, log_y=True), "c")
    [line] = points(svg)
    assert np.array(line) == pytest.approx(np.array([[50, 10], [50 + 376 / 3, 10 + 214 / 3], [426, 224]]), abs=0.1)
    assert re.findall(r">([\d.,]+)</text>", svg) == ["1", "10", "100", "1,000", "0.001", "0.01", "0.1", "1"]


def test_long_series_are_thinned_but_keep_their_ends() -> None:
    x = np.arange(1, 100_001)
    zigzag = Series("a", x, np.random.default_rng(0).random(len(x)))
    svg = draw(chart(zigzag), "c")
    [line] = points(svg)
    assert 450 < len(line) <= 500
    assert (line[0][0], line[-1][0]) == (50, 426)
    assert len(svg) < 12_000


@given(st.integers(1, 3000), st.booleans())
def test_thinned(n: int, log_x: bool) -> None:
    columns = {"x": np.arange(n, dtype=float), "y": np.arange(n, dtype=float) * 2}
    kept = thinned(columns, log_x)
    assert len(kept["x"]) <= 500
    assert len(kept["x"]) == n or n > 500
    assert (kept["x"][0], kept["x"][-1]) == (0, n - 1)
    assert np.all(np.diff(kept["x"]) > 0)
    assert np.array_equal(kept["y"], kept["x"] * 2)


def test_what_cannot_be_shown_is_left_out() -> None:
    gap = Series("a", [0, 1, 2, np.inf, 4, 5], [1, 2, np.nan, 4, 5, np.inf], [0] * 6, [np.inf] * 6)
    seen = visible(gap, chart(gap))
    assert np.isnan(seen["y"]).tolist() == [False, False, True, True, False, True]
    assert np.isnan(seen["upper"]).all()
    seen = visible(gap, chart(gap, log_x=True, log_y=True))
    assert np.isnan(seen["y"]).tolist() == [True, False, True, True, False, True]
    assert draw(chart(gap), "c").count("NaN") == draw(chart(gap), "c").count("inf") == 0
    assert summary(chart(gap)).endswith("a: from 1 at rows 0 to 5 at rows 4.")


@pytest.mark.parametrize("y", [[], [np.nan, np.nan], [np.inf, -np.inf]])
def test_nothing_to_draw(y: list[float]) -> None:
    assert draw(chart(Series("a", range(len(y)), y)), "c") == ""


def test_nothing_positive_to_draw() -> None:
    assert draw(chart(Series("a", [1, 2], [0, -1]), log_y=True), "c") == ""


@pytest.mark.parametrize("value", [0.0, 1.0, -3.0, 1e-9, 1e15])
@pytest.mark.parametrize("log", [False, True])
def test_a_single_point_is_drawn(value: float, log: bool) -> None:
    log = log and value > 0
    assert "<use" in draw(chart(Series("a", [1], [value]), Series("none", [], []), log_x=log, log_y=log), "c")


def test_lines_differ_by_more_than_colour() -> None:
    keys = [draw_key(place, Series("", [], []), "k") for place in range(30)]
    colourless = [re.sub(r"--series-\d", "", key) for key in keys]
    assert len(set(colourless)) == 30
    line = Series("a", [1, 2], [1, 2])
    drawn = draw(chart(*[line] * 7), "c")
    assert set(re.findall(r"--series-\d", drawn)) == {f"--series-{k}" for k in range(7)}
    assert set(re.findall(r"#[0-9a-f]{6}\b", drawn)) <= {"#"}


def test_bands() -> None:
    banded = Series("a", [0, 1], [1, 1], [0, 0], [2, 2])
    svg = draw(chart(banded), "c")
    assert "fill-opacity" in svg
    assert "fill-opacity" in draw_key(0, banded, "k")
    assert "fill-opacity" not in draw_key(0, Series("a", [0], [1]), "k")
    assert [y for _, y in points(svg)[0]] == pytest.approx([10 + 214 / 2] * 2, abs=0.1)


@given(st.lists(st.floats(-1e14, 1e14).filter(lambda x: x == 0 or abs(x) > 1e-6), min_size=1))
def test_tick_labels_are_short_and_read_back(ticks: list[float]) -> None:
    ticks = [float(f"{tick:.2g}") for tick in ticks]
    for tick in ticks:
        [label] = tick_labels([tick])
        factor = {"k": 1e3, "M": 1e6, "G": 1e9}.get(label[-1], 1)
        text = label.replace("\N{MINUS SIGN}", "-").replace(",", "").rstrip("kMG")
        assert float(text) * factor == pytest.approx(tick)
        assert len(label) <= 9
    decimals = {len(label.partition(".")[2]) for label in tick_labels(ticks) if "." in label and "e" not in label}
    assert len(decimals) <= 1 or max(map(abs, ticks)) < 1e-3 or max(map(abs, ticks)) >= 1e12
