"""The figures of other libraries beside table 6: where they come from, and that the command that measures them does."""

import json
import sys
from importlib import metadata
from pathlib import Path
from typing import Any

import numpy as np
import pytest
from sklearn.naive_bayes import GaussianNB

import table6
from bayesvote.datasets import DATASETS, load_dataset, scale
from bayesvote_paper.default_classifier import PEERS
from configurations import CONFIGURATIONS, LIBRARIES

ROOT = Path(__file__).parents[2]
ABOUT, *FIGURES = map(json.loads, (ROOT / "benchmarks" / "results" / "table6.jsonl").read_text().splitlines())
LARGE = {"adult": 30_000, "cod-rna": 30_000, "covtype": 30_000}


def whole_rows(name: str) -> int:
    return LARGE.get(name, DATASETS[name].whole.rows)


@pytest.mark.parametrize("name", DATASETS)
def test_the_best_of_the_others_is_the_least_of_the_figures(name: str) -> None:
    errors = [
        np.mean(figure["mistakes"]) / figure["rows"]
        for figure in FIGURES
        if figure["set"] == name and figure["rows"] == whole_rows(name)
    ]
    assert min(errors) == pytest.approx(PEERS[name], rel=1e-12)


def test_there_is_a_figure_of_every_configuration_on_every_set() -> None:
    assert len(CONFIGURATIONS) == 34
    pairs = [(figure["set"], figure["configuration"]) for figure in FIGURES]
    assert sorted(pairs) == sorted((name, one) for name in DATASETS for one in CONFIGURATIONS)
    assert set(ABOUT["versions"]) == {library.package for library in LIBRARIES.values()}
    for figure in FIGURES:
        assert 100 <= figure["rows"] <= whole_rows(figure["set"])
        assert 1 <= len(figure["mistakes"]) <= (2 if figure["set"] in LARGE else 5)
        assert all(0 < count < figure["rows"] for count in figure["mistakes"])


def test_a_run_that_was_cut_is_never_the_strongest() -> None:
    full, cut = table6.Figure("heart", "a", 270, [100, 98]), table6.Figure("heart", "b", 269, [1])
    better = table6.Figure("heart", "c", 270, [97])
    assert table6.strongest([full, cut]) == {"heart": full}
    assert table6.strongest([full, cut, better]) == {"heart": better}


def test_the_page_shows_what_the_command_prints(capsys: pytest.CaptureFixture[str]) -> None:
    table6.main(["--table"])
    page = (ROOT / "docs" / "peers.md").read_text()
    for table in capsys.readouterr().out.strip().split("\n\n"):
        assert table in page


def by_hand(name: str, seed: int) -> int:
    """Gaussian naive Bayes over a stream, row by row; the first row, before which nothing is known, gets class 0."""
    data = load_dataset(name, progress=False)
    order = np.random.default_rng(seed).permutation(len(data.y))
    X, y = np.asarray(scale(np.asarray(data.X)))[order], data.y[order]
    model: Any = GaussianNB()
    wrong = int(y[0] != 0)
    with np.errstate(all="ignore"):
        for i in range(1, len(y)):
            model.partial_fit(X[i - 1 : i], y[i - 1 : i], classes=np.array([0, 1]))
            wrong += int(model.predict(X[i : i + 1])[0] != y[i])
    return wrong


def test_the_command_measures_what_a_plain_loop_does(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    out = tmp_path / "figures.jsonl"
    name = "scikit-learn GaussianNB"
    table6.main(["--sets", "sonar", "--configurations", name, "--out", str(out)])
    about, (figure,) = table6.read(out)
    assert about["versions"]["scikit-learn"] == metadata.version("scikit-learn")
    assert figure[:3] == ("sonar", name, 208)
    assert figure.mistakes == [by_hand("sonar", seed) for seed in range(5)]
    if about["versions"]["scikit-learn"] == ABOUT["versions"]["scikit-learn"]:
        assert "1 equal the stored ones in every order, 0 differ" in capsys.readouterr().out


def test_river_predicts_a_row_before_it_learns_it() -> None:
    river: Any = pytest.importorskip("river.linear_model")
    rng = np.random.default_rng(0)
    X, y = rng.normal(size=(60, 3)), rng.integers(0, 2, size=60)
    model, wrong = river.LogisticRegression(), 0  # which answers from the first row on
    for row, label in zip(X, y, strict=True):
        x = {j: float(v) for j, v in enumerate(row)}
        wrong += bool(model.predict_one(x)) != bool(label)
        model.learn_one(x, bool(label))
    assert CONFIGURATIONS["river LogisticRegression"].scored(0, X, y).mistakes == wrong


def test_a_library_that_is_missing_is_named(
    tmp_path: Path, capsys: pytest.CaptureFixture[str], monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setitem(sys.modules, "capymoa.classifier", None)
    table6.main(["--sets", "heart", "--libraries", "CapyMOA", "--out", str(tmp_path / "figures.jsonl")])
    printed = capsys.readouterr().out
    assert "skipped: CapyMOA, 13 configurations (" in printed
    assert "pip install 'bayesvote[capymoa]'" in printed
    assert table6.read(tmp_path / "figures.jsonl")[1] == []
