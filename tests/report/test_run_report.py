import subprocess
import sys
from typing import Any

import numpy as np
import pytest

from bayesvote import BayesianEnsembleClassifier, __version__, load_dataset
from bayesvote.apps.report import Charts, Facts, Report, TableBlock, render, run_report
from bayesvote.core.version import versions
from bayesvote.estimators import _explain
from bayesvote.evaluation import Tally


def tally(error: float, n: int = 5000, *, squares: bool = True) -> Tally:
    rng = np.random.default_rng(0)
    labels = rng.integers(2, size=n)
    found = Tally(window=200)
    wrong = rng.random(n) < error
    found.add(labels, np.where(wrong, 1 - labels, labels), rng.random(n) if squares else None, seconds=n / 1000)
    return found


def weights(**options: Any) -> Any:
    data = load_dataset("heart")
    return BayesianEnsembleClassifier(random_state=0, **options).fit(data.X, data.y).weights_


def block(report: Report, title: str, place: int = 0) -> Any:
    [section] = [section for section in report.sections if section.title == title]
    return section.blocks[place]


def texts(table: TableBlock) -> list[list[str]]:
    return [[cell.text for cell in row] for row in table.cells]


def test_figures() -> None:
    good, bad = tally(0.1), tally(0.3, squares=False)
    report = run_report("Run", {"good": good, "bad": bad}, None, {"seed": 0})
    table = block(report, "Metrics")
    assert table.header == ["model", "rows", "error", "kappa", "balanced accuracy", "Brier score", "log-loss", "rows/s"]
    expected = [good.error, good.kappa, good.balanced_accuracy, good.brier]
    assert texts(table)[0] == ["good", "5,000", *(f"{value:.4f}" for value in expected), "\N{EN DASH}", "1,000"]
    assert texts(table)[1][5] == "\N{EN DASH}"
    assert [[cell.bold for cell in row] for row in table.cells] == [
        [False, False, True, True, True, False, False, True],
        [False, False, False, False, False, False, False, True],
        [False] * 8,
    ]
    assert report.lead.startswith(f"2 models on one stream. good has the lowest error, {good.error:.4f}. Always")
    assert [section.title for section in report.sections] == [
        "Metrics",
        "Error along the stream",
        "By label",
        "Settings",
        "Versions",
    ]
    assert block(report, "Settings") == Facts({"seed": 0})


def test_curves() -> None:
    one = tally(0.2)
    charts = block(run_report("Run", {"one": one}, None, {}), "Error along the stream")
    assert isinstance(charts, Charts)
    cumulative, windowed = (chart.series[0].columns() for chart in charts.charts)
    assert charts.charts[1].caption == "Error of the last 200 rows"
    assert cumulative["y"][-1] == one.error
    assert windowed["y"][-1] == one.windowed_error
    assert (cumulative["x"][0] >= 100, cumulative["x"][0] < 200, cumulative["x"][-1]) == (True, True, 5000)


@pytest.mark.parametrize("pandas", [True, False])
def test_weights(pandas: bool, monkeypatch: pytest.MonkeyPatch) -> None:
    if not pandas:
        monkeypatch.setattr(_explain, "find_spec", lambda _: None)
    given = weights(members="mixed", n_members=30)
    assert hasattr(given, "columns") == pandas
    report = run_report("Run", {}, given, {})
    [chart] = block(report, "Weights").charts
    columns = chart.series[0].columns()
    order = np.argsort(-np.asarray(given["mean"]), kind="stable")
    for name, column in {"y": "mean", "lower": "lower", "upper": "upper"}.items():
        assert np.array_equal(columns[name], np.asarray(given[column])[order])
    assert np.array_equal(columns["x"], np.arange(1, 31))
    table = block(report, "Weights", 1)
    assert table.header == ["member", "kind", "mean", "sd", "lower", "upper", "probability best"]
    assert [row[0] for row in texts(table)] == [str(k) for k in order[:20]]
    assert [row[1] for row in texts(table)] == list(np.asarray(given["kind"])[order[:20]])
    assert float(texts(table)[0][2]) == pytest.approx(np.max(given["mean"]), rel=1e-3)
    assert table.note == "The other 10 members are left out."


def test_weights_of_two_parameters_and_without_a_posterior() -> None:
    two = run_report(
        "Run", {}, weights(members="perceptron", weighter="gamma_shape_rate", loss="logistic", n_members=5), {}
    )
    captions = [chart.caption for chart in block(two, "Weights").charts]
    assert captions == ["Weights, parameter 1", "Weights, parameter 2"]
    table = block(two, "Weights", 1)
    assert (len(table.rows), table.note) == (5, "")
    bare = run_report("Run", {}, weights(members="perceptron", weighter="voting", n_members=5), {})
    [chart] = block(bare, "Weights").charts
    assert chart.series[0].lower is None
    assert block(bare, "Weights", 1).header == ["member", "kind", "mean"]
    assert render(two)
    assert render(bare)


@pytest.mark.parametrize("tallies", [{}, {"none yet": Tally()}, {"a": Tally(), "b": Tally()}])
def test_before_the_first_row(tallies: dict[str, Tally]) -> None:
    page = render(run_report("Run", tallies, None, {}))
    assert page.count("No values to draw.") == (1 if tallies else 0)
    assert "nan" not in page


def test_nan_weights() -> None:
    given = np.array([("a", np.nan), ("b", 1.0), ("c", np.inf)], dtype=[("kind", "U1"), ("mean", float)])
    table = block(run_report("Run", {}, given, {}), "Weights", 1)
    assert [row[2] for row in texts(table)] == ["∞", "1.000", "\N{EN DASH}"]


def test_versions() -> None:
    found = versions()
    assert found["bayesvote"] == __version__
    assert found["numpy"] == np.__version__
    assert found["Python"] == ".".join(map(str, sys.version_info[:3]))


def test_import_is_light() -> None:
    code = "import bayesvote.apps.report, sys; print({'matplotlib', 'jinja2', 'pandas', 'numba'} & sys.modules.keys())"
    assert subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, check=True).stdout == "set()\n"
