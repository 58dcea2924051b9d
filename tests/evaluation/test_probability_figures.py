"""Log-loss, Brier score and calibration of a stream, for probabilities that are known beforehand."""

from importlib import import_module
from typing import Any

import numpy as np
import pytest

from bayesvote import BayesianEnsembleClassifier, prequential
from bayesvote.core.checks import Array, Labels
from bayesvote.evaluation import Tally

metrics: Any = import_module("sklearn.metrics")


class GivenRows:
    """A scikit-learn classifier whose rows are the probabilities themselves."""

    def predict_proba(self, X: Array) -> Array:
        return X

    def predict(self, X: Array) -> Any:
        return X.argmax(axis=1)

    def partial_fit(self, X: Array, y: Labels) -> None:
        pass


class GivenDicts:
    """The same for river, which does not know a label of probability 0."""

    def predict_proba_one(self, x: dict[int, float]) -> dict[int, float]:
        return {label: p for label, p in x.items() if p > 0}

    def predict_one(self, x: dict[int, float]) -> int:
        return max(x, key=x.__getitem__)

    def learn_one(self, x: dict[int, float], y: int) -> None:
        pass


def chances(n: int = 300) -> tuple[Array, Labels]:
    """Probabilities of three labels, some of them 0, and labels that often are not the likeliest."""
    rng = np.random.default_rng(0)
    p = rng.dirichlet(np.ones(3), n)
    p[::7, 1] = 0.0
    p /= p.sum(axis=1, keepdims=True)
    return p, rng.integers(0, 3, n)


@pytest.mark.parametrize("delay", [0, 5])
def test_figures_of_known_probabilities(delay: int) -> None:
    p, y = chances()
    found = prequential({"rows": GivenRows(), "dicts": GivenDicts()}, p, y, classes=[0, 1, 2], delay=delay)
    # A scikit-learn classifier has no probabilities before its first row.
    for name, first in (("rows", delay + 1), ("dicts", 0)):
        said, truth = p[first:], y[first:]
        of_truth = np.maximum(said[np.arange(len(truth)), truth], 1e-9)
        assert found[name].log_loss == pytest.approx(-np.log(of_truth).mean(), rel=1e-12)
        assert found[name].brier == pytest.approx(((said - np.eye(3)[truth]) ** 2).sum(axis=1).mean(), rel=1e-12)
        probability, right, rows = found[name].tally.calibration
        assert rows.sum() == len(truth)
        assert probability @ rows == pytest.approx(said.max(axis=1).sum())
        assert right @ rows == pytest.approx(np.sum(said.argmax(axis=1) == truth))


def test_log_loss_of_classifiers_of_this_library() -> None:
    rng = np.random.default_rng(0)
    X = rng.standard_normal((200, 3))
    y = np.digitize(X[:, 0] + rng.standard_normal(200), [-0.5, 0.5])
    made = [BayesianEnsembleClassifier("naive_bayes", 5, random_state=0) for _ in range(2)]
    before_learning = made[0].predict_proba_then_learn(X, y, classes=[0, 1, 2])
    found = prequential(made[1], X, y, chunk_size=30)
    assert found.log_loss == pytest.approx(metrics.log_loss(y, before_learning), rel=1e-12)
    assert found.brier == pytest.approx(metrics.brier_score_loss(y, before_learning), rel=1e-12)


@pytest.mark.parametrize("edge", [0.25, 0.5, 0.75])
def test_a_probability_on_the_edge_of_a_bin_belongs_to_the_bin_above(edge: float) -> None:
    below, above = float(np.nextafter(edge, 0)), edge + 0.04
    tally = Tally()
    tally.add([0, 0, 0], [0, 0, 1], largest=np.array([below, edge, above]))
    probability, right, rows = tally.calibration
    assert rows.tolist() == [1, 2]
    assert probability.tolist() == pytest.approx([below, (edge + above) / 2], abs=1e-15)
    assert right.tolist() == [1, 0.5]
