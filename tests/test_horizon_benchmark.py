"""The benchmark of horizons: which labels a prediction knows, what is stored and run again, and its tables."""

import json
import subprocess
import sys
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import numpy as np
import pytest

horizon = pytest.importorskip("horizon", reason="needs pandas")
models = pytest.importorskip("horizon_models")
horizon_table = pytest.importorskip("horizon_table")

from bayesvote import prequential  # noqa: E402

ROOT = Path(__file__).parents[1]


class Recorder:
    """Answers a row with the number of rows learned so far."""

    def __init__(self) -> None:
        self.learned: list[Any] = []

    def predict_one(self, x: Any) -> int:  # noqa: ARG002
        return len(self.learned)

    def learn_one(self, x: Any, y: Any) -> None:
        self.learned.append((x, y))


@pytest.mark.parametrize("delay", [0, 1, 4])
def test_late_labels_are_learned_after_the_row_that_they_come_with(delay: int) -> None:
    model, y = Recorder(), np.arange(10, 20)
    assert models.predict_late(model, range(10), y, delay) == [max(0, t - delay) for t in range(10)]
    assert model.learned == [(t, t + 10) for t in range(10 - delay)]


def test_late_labels_are_as_late_as_those_of_prequential() -> None:
    make: Any = pytest.importorskip("river.naive_bayes").GaussianNB
    rng = np.random.default_rng(0)
    X = rng.standard_normal((80, 3))
    y = (X[:, 0] > 0).astype(int)
    answers = models.predict_late(make(), models.rows(models.FOREST, X), y, 7)
    assert answers == prequential(make(), X, y, delay=7).predictions.tolist()


def test_chunks_are_predicted_before_they_are_learned() -> None:
    model, y = Recorder(), np.zeros(7, dtype=int)
    assert models.predict_chunks(model, range(7), y, 3) == [0, 0, 0, 3, 3, 3, 6]
    assert [x for x, _ in model.learned] == list(range(7))


def test_constant_and_no_change_know_nothing_before_the_first_label() -> None:
    y = np.array(["b", "a", "a", "b", "b"])
    assert models.predict_late(models.Constant(), range(5), y, 0) == [None, "b", "b", "a", "b"]
    assert models.predict_late(models.NoChange(), range(5), y, 1) == [None, None, "b", "a", "a"]


def test_cuts_leave_rows_to_predict() -> None:
    cuts = horizon.cuts(60_000)
    assert (len(cuts), cuts[0], cuts[-1]) == (21, 7_500, 55_000)
    assert len(set(np.diff(cuts).tolist())) == 1


def job(model: str, runs: list[str], error: float) -> Any:
    def measure() -> Iterator[tuple[str, dict[str, Any]]]:
        runs.append(model)
        yield "delay 0", {"error": error, "rows": 10}

    return horizon.Job("late", "some", model, "delay 0", measure)


def test_stored_figures_of_others_are_kept_and_ours_replaced(tmp_path: Path) -> None:
    path, runs = tmp_path / "figures.jsonl", list[str]()
    horizon.run([job("constant", runs, 0.3), job("bayesvote", runs, 0.2)], path, False, "bayesvote")
    horizon.run([job("constant", runs, 0.9), job("bayesvote", runs, 0.1)], path, False, "bayesvote")
    assert runs == ["constant", "bayesvote", "bayesvote"]
    assert {line["model"]: line["error"] for line in horizon.read(path).values()} == {"constant": 0.3, "bayesvote": 0.1}
    horizon.run([job("constant", runs, 0.4), job("bayesvote", runs, 0.5)], path, True, "bayesvote of before")
    assert runs[3:] == ["constant", "bayesvote"]
    found = {line["model"]: line["error"] for line in map(json.loads, path.read_text().splitlines())}
    assert found == {"constant": 0.4, "bayesvote": 0.1, "bayesvote of before": 0.5}


def lines(part: str, setting: str, errors: dict[str, float], **more: Any) -> list[dict[str, Any]]:
    about = {"part": part, "data": "some", "setting": setting, "version": "", "date": ""}
    return [about | {"model": model, "error": error} | more for model, error in errors.items()]


def test_tables_say_how_far_the_default_is_from_the_best_and_from_the_constant() -> None:
    stored = lines("late", "delay 0", {"constant": 0.3, "river ARF(10)": 0.2, "bayesvote": 0.21})
    stored += lines("late", "delay 50", {"constant": 0.3, "river ARF(10)": 0.4, "bayesvote": 0.32})
    shown = "\n".join(horizon_table.show(stored, ["late"]))
    assert "| some | delay 0 | 0.3000 | **0.2000** | 0.2100 |" in shown
    assert "within 2% of the best other in 0 of 2 rows" in shown
    assert "more than one point in 1 of\n2 rows; at most +2.00 points (some, delay 50)" in shown


def test_folds_are_compared_with_the_same_fold_and_with_shuffled_rows() -> None:
    stored = lines("folds", "3 folds", {"bayesvote": 0.3}, folds=[0.1, 0.2, 0.6], worst=0.6)
    stored += lines("folds", "3 folds", {"LogisticRegression": 0.2}, folds=[0.1, 0.1, 0.4], worst=0.4)
    stored += lines("folds", "3 folds, shuffled", {"bayesvote": 0.25}, folds=[0.25] * 3, worst=0.25)
    shown = "\n".join(horizon_table.show(stored, ["folds"]))
    assert "| some | 0.300 | 0.600 | 0.200 | 0.400 | 0.250 | 20.0 | 35.0 | 20.0 |" in shown


def test_benchmarks_are_listed_and_found_by_name() -> None:
    def run(*arguments: str) -> Any:
        command = [sys.executable, "-m", "benchmarks", *arguments]
        return subprocess.run(command, cwd=ROOT, capture_output=True, text=True, check=False)

    assert "horizon           90 min  Error on unshuffled folds" in run("--list").stdout
    unknown = run("nothing")
    assert unknown.returncode == 1
    assert "Unknown benchmark 'nothing'" in unknown.stderr
