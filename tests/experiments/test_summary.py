from typing import Any

import numpy as np
import pytest
from scipy.stats import ttest_rel

from bayesvote.experiments import EXPERIMENTS, summary
from bayesvote.experiments.published import PAPER, PEERS
from bayesvote.experiments.summary import blocks, claims


def line(experiment: str, members: str, dataset: str, trial: int, **errors: float) -> dict[str, Any]:
    return {
        "experiment": experiment,
        "members": members,
        "dataset": dataset,
        "trial": trial,
        "rows": 100,
        "partial": False,
        "errors": {name.replace("_", " "): value for name, value in errors.items()},
    }


def test_means_standard_errors_and_ties_are_those_of_scipy() -> None:
    rng = np.random.default_rng(0)
    values = {
        "Voting": rng.normal(0.30, 0.01, 5),
        "GammaRate": rng.normal(0.20, 0.01, 5),
        "JointGaussian": rng.normal(0.199, 0.01, 5),
    }
    results = [
        line("table1", "perceptron", "heart", t, **{name: v[t] for name, v in values.items()})
        for t in reversed(range(5))
    ]
    (block,) = blocks(results)
    entries = block.rows[0].entries
    best = min(values, key=lambda name: values[name].mean())
    for name, entry in entries.items():
        assert entry.mean == pytest.approx(values[name].mean())
        assert entry.error == pytest.approx(np.std(values[name], ddof=1) / np.sqrt(5))
        assert entry.best == (name == best)
        assert entry.tied == (name != best and ttest_rel(values[name], values[best]).pvalue > 0.05)
    assert entries["GammaRate"].published == 0.239
    assert entries["JointGaussian"].published is None
    assert not entries["Voting"].tied


def test_equal_trials_and_single_trials_have_no_test() -> None:
    same = [line("table1", "perceptron", "heart", t, Voting=0.3, GammaRate=0.2, SAG=0.2) for t in range(3)]
    entries = blocks(same)[0].rows[0].entries
    assert entries["GammaRate"].best
    assert entries["SAG"].best
    assert not entries["Voting"].tied
    one = blocks(same[:1])[0].rows[0].entries
    assert one["Voting"].tied
    assert np.isnan(one["Voting"].error)


def test_the_best_step_is_found_over_the_trials() -> None:
    results = [
        line("table2", "naive_bayes", "sonar", 0, **{"SGD, step 1": 0.1, "SGD, step 10": 0.2, "SAG, step 1": 0.4}),
        line("table2", "naive_bayes", "sonar", 1, **{"SGD, step 1": 0.5, "SGD, step 10": 0.2, "SAG, step 1": 0.4}),
    ]
    entries = blocks(results)[0].rows[0].entries
    assert entries["SGD, best step"].mean == pytest.approx(0.2)
    assert entries["SAG, best step"].mean == pytest.approx(0.4)


def test_boosters_stand_in_both_blocks() -> None:
    results = [
        line("table3", "perceptron", "heart", 0, OzaBoost=0.3, GammaRate=0.25),
        line("table3", "averaged_perceptron", "heart", 0, GammaRate=0.2),
    ]
    papers, ours = blocks(results)
    assert papers.rows[0].entries["GammaRate"].mean == 0.25
    assert ours.rows[0].entries["GammaRate"].mean == 0.2
    assert ours.rows[0].entries["OzaBoost"].mean == 0.3


def test_aims_are_counted_cell_by_cell() -> None:
    results = []
    for table, kind in (
        ("table1", "perceptron"),
        ("table2", "naive_bayes"),
        ("table3", "perceptron"),
        ("table4", "naive_bayes"),
    ):
        for members in EXPERIMENTS[table].members:
            for k, (dataset, published) in enumerate(PAPER[table, kind]["GammaRate"].items()):
                ours = published - 0.0001 if k < 6 else published + 0.002
                baselines = dict.fromkeys(("Voting", "SGD", "AveragedSGD", "SAG"), published + 0.1)
                results.append(
                    line(table, members, dataset, 0, GammaRate=ours, JointGaussian=(published + 0.1) * 0.5, **baselines)
                )
    results += [
        line("table6", "default", name, 0, default=peer + 0.001 * (k < 4))
        for k, (name, peer) in enumerate(PEERS.items())
    ]
    least, gamma, joint, ratio, default = claims(blocks(results))
    assert least.reached
    assert gamma.found == "24 of 40"
    assert not gamma.reached
    expected = sum(
        (p + 0.1) * 0.5 <= p for (t, _), m in PAPER.items() if t != "table5" for p in m["GammaRate"].values()
    )
    assert joint.found == f"{expected} of 40"
    assert ratio.found == "0.500"
    assert ratio.reached
    assert default.found == "9 of 13"


def test_no_aims_without_their_tables() -> None:
    assert claims(blocks([line("table1", "perceptron", "heart", 0, Voting=0.1)])) == []
    assert blocks([]) == []


@pytest.mark.parametrize(
    ("mean", "published", "reached"),
    [(0.2394, 0.239, True), (0.2396, 0.239, False), (0.21344, 0.2134, True), (0.1, None, False)],
)
def test_figures_are_compared_as_they_are_printed(mean: float, published: float | None, reached: bool) -> None:
    entry = summary.Entry(mean, 0.0, True, False, published)
    assert summary._reaches(entry, entry) == reached
