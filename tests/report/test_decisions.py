"""The report's sections about decisions: labels, which are taken for which, calibration, columns."""

from typing import Any

import numpy as np
import pytest

from bayesvote import BayesianEnsembleClassifier, PerceptronBank, prequential
from bayesvote.apps.report import Charts, Report, TableBlock, render, render_markdown, run_report
from bayesvote.apps.report._decisions import joined
from bayesvote.apps.report.run import importances_of
from bayesvote.evaluation import Tally
from bayesvote.evaluation.tally import Reliability


def section(report: Report, title: str) -> Any:
    return next(section for section in report.sections if section.title == title)


def tally(n: int = 600, window: int = 1000, labels: str = "abc") -> Tally:
    rng = np.random.default_rng(0)
    y = rng.choice(list(labels), n)
    said = np.where(rng.random(n) < 0.7, y, rng.choice(list(labels), n))
    found = Tally(window=window)
    found.add(y, said, largest=rng.uniform(0.4, 1, n), of_truth=rng.random(n))
    return found


def texts(table: TableBlock) -> list[list[str]]:
    return [[cell.text for cell in row] for row in table.cells]


def test_the_majority_stands_beside_the_models() -> None:
    one = tally()
    report = run_report("Run", {"one": one}, None, {})
    assert f"Always predicting {one.majority}" in report.lead
    [figures] = section(report, "Metrics").blocks
    last = texts(figures)[-1]
    assert last[:3] == [f"always {one.majority}", "600", f"{one.majority_error:.4f}"]
    assert last[3:5] == ["0.0000", "0.3333"]
    assert texts(figures)[0][figures.header.index("log-loss")] == f"{one.log_loss:.4f}"


@pytest.mark.parametrize(("n", "charts"), [(600, 1), (1000, 1), (1001, 2)])
def test_a_run_within_the_window_has_one_curve(n: int, charts: int) -> None:
    [block] = section(run_report("Run", {"one": tally(n)}, None, {}), "Error along the stream").blocks
    assert len(block.charts) == charts
    assert [series.name.split()[0] for series in block.charts[0].series] == ["one", "always"]


def test_labels_taken_for_each_other() -> None:
    one = tally()
    labels, confusion = section(run_report("Run", {"one": one}, None, {}), "By label").blocks
    assert [row[0] for row in texts(labels)] == [o.label for o in sorted(one.by_label, key=lambda o: -o.rows)]
    assert confusion.header == ["label", "as a", "as b", "as c"]
    assert [[int(text) for text in row[1:]] for row in texts(confusion)] == one.confusion.tolist()
    shares = [[cell.spread for cell in row[1:]] for row in confusion.cells]
    assert shares[0][0] == f"{one.confusion[0, 0] / one.confusion[0].sum():.0%}"


def test_many_labels_show_the_worst_pairs() -> None:
    one = tally(labels="abcdefghijklmnopqrstuvwxyz")
    labels, pairs = section(run_report("Run", {"one": one}, None, {}), "By label").blocks
    assert len(labels.rows) == 20
    assert "6 labels" in labels.note
    off = one.confusion - np.diag(one.confusion.diagonal())
    assert [int(row[2]) for row in texts(pairs)] == sorted(off[off > 0].tolist(), reverse=True)[:20]
    for label, other, n in texts(pairs):
        assert off[one.labels.index(label), one.labels.index(other)] == int(n)


def test_calibration_curve() -> None:
    one = tally()
    charts, table = section(run_report("Run", {"one": one}, None, {}), "Calibration").blocks
    assert isinstance(charts, Charts)
    curve, diagonal = charts.charts[0].series
    np.testing.assert_array_equal(diagonal.x, diagonal.y)
    assert sum(int(row[2].replace(",", "")) for row in texts(table)) == 600
    assert len(np.asarray(curve.x)) == len(table.rows)
    silent = Tally()
    silent.add(["a", "b"], ["a", "a"])
    assert "Calibration" not in [one.title for one in run_report("Run", {"one": silent}, None, {}).sections]


@pytest.mark.parametrize("rows", [[1, 1, 1], [30, 1, 30, 5], [5, 40, 3], [25, 25], [1000, 1, 1, 30]])
def test_bins_with_few_rows_are_joined(rows: list[int]) -> None:
    n = np.array(rows)
    p = np.linspace(0.5, 0.9, len(rows))
    found = joined(Reliability(p, p / 2, n))
    assert found.rows.sum() == n.sum()
    assert (found.rows >= min(20, n.sum())).all()
    assert found.probability @ found.rows == pytest.approx(p @ n)
    np.testing.assert_allclose(found.right, found.probability / 2)


def test_columns_and_escaped_names() -> None:
    rng = np.random.default_rng(0)
    X = rng.normal(size=(300, 3))
    y = np.where(X[:, 1] > 0, "<b>yes</b>", "no & never")
    model = BayesianEnsembleClassifier(n_members=9, random_state=0)
    run = prequential(model, X, y)
    model.name_features(["plain", "<script>alert(1)</script>", "third"])
    report = run_report("Run", {"model": run.tally}, model.weights_, {}, importances_of(model))
    [table] = section(report, "Columns").blocks
    assert texts(table)[0][0] == "<script>alert(1)</script>"
    assert sum(float(row[1]) for row in texts(table)) == pytest.approx(1, abs=1e-3)
    page = render(report)
    assert "<script>alert" not in page
    assert "<b>yes" not in page
    assert "&lt;b&gt;yes" in page
    assert "\\<script\\>" in render_markdown(report)
    bare = BayesianEnsembleClassifier(PerceptronBank(3)).fit(X, y)
    assert importances_of(bare) is None
