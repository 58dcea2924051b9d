import json
from pathlib import Path
from typing import Any

import numpy as np
import pytest
from numpy.typing import NDArray

from bayesvote import theory
from bayesvote.core.checks import Array, Labels
from bayesvote.datasets import load_dataset
from bayesvote.weighting import GammaShape, GammaShapeRate
from bayesvote_paper.comparisons import WEIGHT_TABLES
from bayesvote_paper.convergence import FIGURE4
from bayesvote_paper.default_classifier import PEERS
from bayesvote_paper.drift import FIGURE6
from bayesvote_paper.experiment import Job
from bayesvote_paper.frozen_members import TABLE1, TABLE2
from bayesvote_paper.members import FrozenMembers
from bayesvote_paper.online_members import TABLE3, TABLE4
from bayesvote_paper.registry import EXPERIMENTS
from bayesvote_paper.runner import jobs_of, read, reproduce
from bayesvote_paper.streams import ONLINE, STATIC
from bayesvote_paper.three_losses import LOSSES, TABLE5


def errors(path: Path) -> dict[tuple[Any, ...], Any]:
    return {
        (line["experiment"], line["members"], line["dataset"], line["trial"]): line.get("errors", line.get("series"))
        for line in read(path)
    }


def perceptrons(X: Array, y: Labels, own: NDArray[np.bool_], passes: int) -> tuple[Array, Array]:
    """Weights and biases of plain Perceptrons, by a loop."""
    W, b = np.zeros((len(own), X.shape[1])), np.zeros(len(own))
    for _ in range(passes):
        for x, label in zip(X, 2 * y - 1, strict=True):
            wrong = label * (W @ x + b) <= 0
            W[wrong] += label * x * own[wrong]
            b[wrong] += label
    return W, b


def test_table1_is_the_papers_algorithm_2() -> None:
    job = Job("table1", "perceptron", "heart", 3)
    found = TABLE1.run(job)["errors"]["GammaRate"]

    data = load_dataset("heart")
    raw = np.asarray(data.X)
    low, high = raw.min(axis=0), raw.max(axis=0)
    X = 2 * (raw - low) / (high - low) - 1
    order = np.random.default_rng(3).permutation(270)
    X, y = X[order], data.y[order]
    state: Any = FrozenMembers(job).members.state
    own = state.mask.T.astype(bool)
    assert set(own.sum(axis=1)) == {6}  # half of the thirteen features
    W, b = perceptrons(X[:27], y[:27], own, 20)
    sum_g, mistakes = np.zeros(100), 0
    for t, (x, label) in enumerate(zip(X[27:], 2 * y[27:] - 1, strict=True)):
        score = W @ x + b
        g_plus, g_minus = np.clip((1 - score) / 2, 0, 1), np.clip((1 + score) / 2, 0, 1)
        weights = (1 + t) / (1 + 0.1 * sum_g)
        decision = 1 if weights @ g_plus <= weights @ g_minus else -1
        mistakes += decision != label
        sum_g += g_plus if label == 1 else g_minus
    assert found == pytest.approx(mistakes / 243)


def test_every_experiment_runs_and_says_what_it_did(tmp_path: Path) -> None:
    small = {"table1", "table3", "table5", "table6", "figure2", "figure6", "settings"}
    path = reproduce(sorted(small), tmp_path, trials=1, datasets=["heart"], jobs=1)
    lines = read(path)
    assert {line["experiment"] for line in lines} == small
    for line in lines:
        assert line["versions"]["bayesvote"]
        assert line["settings"]
        values = list(line["errors"].values()) if "errors" in line else np.ravel(list(line["series"].values()))
        assert all(0 <= value <= 1 for value in values)
    assert [name for name, experiment in EXPERIMENTS.items() if experiment.by_name_only] == ["settings"]


def test_processes_change_nothing_and_an_interrupted_run_goes_on(tmp_path: Path) -> None:
    whole = reproduce(["table1", "figure3"], tmp_path / "whole", trials=2, datasets=["heart", "sonar"], jobs=1)
    part = reproduce(["table1"], tmp_path / "part", trials=1, datasets=["heart"], jobs=2)
    before = part.read_text()
    part.write_text(before + before.splitlines()[0][:100])  # cut off while it was written
    done = []
    reproduce(
        ["table1", "figure3"],
        tmp_path / "part",
        trials=2,
        datasets=["heart", "sonar"],
        jobs=2,
        on_progress=lambda done_rows, rows, what: done.append((done_rows, rows, what)),
    )
    assert errors(part) == errors(whole)
    assert part.read_text().startswith(before)
    assert len(done) == len(errors(whole)) - len(before.splitlines())
    assert done[-1][0] == done[-1][1]
    assert reproduce(["table1"], tmp_path / "part", trials=2, datasets=["heart"], jobs=1) == part
    assert errors(part) == errors(whole)


def test_results_of_other_settings_are_run_again(tmp_path: Path) -> None:
    path = reproduce(["figure3"], tmp_path, trials=1, datasets=["heart"], jobs=1)
    right = errors(path)
    lines = read(path)
    lines[0]["settings"]["epochs"] = 7
    lines[0]["series"]["GammaRate"][0] = 0.0
    path.write_text("".join(json.dumps(line) + "\n" for line in lines))
    reproduce(["figure3"], tmp_path, trials=1, datasets=["heart"], jobs=1)
    assert errors(path) == right


@pytest.mark.parametrize(
    ("wrong", "told"),
    [
        ({"experiments": ["table9"]}, "experiments must be one of"),
        ({"datasets": ["harte"]}, "datasets must be one of"),
        ({"trials": 0}, "trials must be"),
        ({"jobs": 0}, "jobs must be"),
    ],
)
def test_wrong_names_are_refused(tmp_path: Path, wrong: dict[str, Any], told: str) -> None:
    asked: dict[str, Any] = {"experiments": ["table1"], "folder": tmp_path / "new"} | wrong
    with pytest.raises((ValueError, TypeError), match=told):
        reproduce(**asked)
    assert not (tmp_path / "new").exists()


def test_the_papers_figures_have_its_claims() -> None:
    best = {}
    for table in WEIGHT_TABLES:
        (methods,) = table.published.values()
        assert all(set(errors) == set(table.sets) for errors in methods.values())
        least = [all(methods["GammaRate"][name] <= other[name] for other in methods.values()) for name in table.sets]
        best[table] = sum(least)
    assert best == {TABLE1: 10, TABLE2: 10, TABLE3: 9, TABLE4: 7}  # "most", and "7 out of 10"
    assert set(PEERS) == set(STATIC) | set(ONLINE)


def test_all_jobs_of_the_largest_sets_come_first() -> None:
    jobs = jobs_of(("table3", "figure4"), ONLINE, 2)
    sizes = [EXPERIMENTS[job.experiment].rows(job.dataset) for job in jobs]
    assert sizes == sorted(sizes, reverse=True)
    assert len(set(jobs)) == len(jobs) == 2 * (2 * len(ONLINE) + 1)


def test_convergence_reaches_the_theorems_variance() -> None:
    found = FIGURE4.run(Job("figure4", "simulated", "losses", 0))
    series, limits = found["series"], found["limits"]
    limit, of_twice = limits["limit (15), that of the best step, too"], limits["limit (18) of twice the best step"]
    assert of_twice == pytest.approx(4 / 3 * limit)
    # A mean over 1,000 squared, nearly normal distances: one standard error is 4.5%.
    assert series["posterior mean"][-1] == pytest.approx(limit, rel=0.2)
    assert series["SGD, twice the best step"][-1] == pytest.approx(of_twice, rel=0.2)
    # The best step is still on its way there after 10,000 rows.
    assert 0.8 * limit < series["SGD, best step"][-1] < 2 * limit
    assert series["SGD, best step"][-1] < 0.5 * series["SGD, best step"][len(series["SGD, best step"]) // 2]


@pytest.mark.parametrize(("times", "leaves"), [(1, False), (2, False), (4, True)])
def test_only_the_steps_of_figure_4_keep_all_weights_positive(times: int, leaves: bool) -> None:
    """The least and greatest weight that any losses up to 0.6 can lead to; rows further on change less and less."""
    step = times * float(theory.best_step(0.3, 1.0))
    low = high = 1.0
    least = np.inf
    for t in range(1, 100):
        weights = np.linspace(low, high, 10_001)
        after = weights + step / t / weights
        low, high = float(after.min() - step / t * 0.6), float(after.max())
        least = min(least, low)
        low = max(low, 1e-6)
    assert (least <= 0) == leaves


def test_settings_say_what_the_further_losses_start_from() -> None:
    said = TABLE5.settings(Job("table5", "perceptron", "heart", 0))
    shape, both = LOSSES["GammaShape"], LOSSES["GammaShapeRate"]
    assert isinstance(shape, GammaShape)
    assert isinstance(both, GammaShapeRate)
    assert (said["theta"], said["a"], said["b"], said["c"]) == (shape.theta, shape.a, shape.b, shape.c)
    assert (said["p"], said["q"], said["r"], said["s"]) == (both.p, both.q, both.r, both.s)


def test_forgetting_finds_the_new_members() -> None:
    found = FIGURE6.run(Job("figure6", "perceptron", "drift", 0))["series"]
    end = {name: np.mean(values[-50:]) for name, values in found.items()}
    assert end["forgetting 0.999"] < 0.8 * end["forgetting 1"]
