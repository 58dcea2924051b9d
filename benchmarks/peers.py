"""Speed and error of other libraries on the same stream, each used as its documentation shows."""

import time
from collections.abc import Callable
from importlib import import_module
from typing import Any

import numpy as np

from bayesvote.core.checks import Array, Labels

MEMBERS = 100
Measured = tuple[float, float]  # rows per second, error


def river_adaboost(X: Array, y: Labels) -> Measured:
    """river's AdaBoost of 100 Perceptrons."""
    ensemble, linear = import_module("river.ensemble"), import_module("river.linear_model")
    model = ensemble.AdaBoostClassifier(linear.Perceptron(), n_models=MEMBERS, seed=0)
    rows = [dict(enumerate(row)) for row in X.tolist()]
    mistakes, start = 0, time.perf_counter()
    for row, label in zip(rows, (y == 1).tolist(), strict=True):
        mistakes += model.predict_one(row) != label
        model.learn_one(row, label)
    return len(y) / (time.perf_counter() - start), mistakes / len(y)


def vowpal_wabbit_boosting(X: Array, y: Labels) -> Measured:
    """Vowpal Wabbit's online boosting (BBM) of 100 linear learners, without the time to parse the examples."""
    vw = import_module("vowpalwabbit").Workspace(f"--quiet --boosting {MEMBERS} --alg BBM --link=identity --binary")
    lines = [
        f"{2 * label - 1} | " + " ".join(f"f{j}:{v:.6g}" for j, v in enumerate(row) if v)
        for row, label in zip(X.tolist(), y.tolist(), strict=True)
    ]
    examples = [vw.parse(line) for line in lines]
    mistakes, start = 0, time.perf_counter()
    for example, label in zip(examples, y.tolist(), strict=True):
        vw.learn(example)  # its prediction is from before the update
        mistakes += (example.get_simplelabel_prediction() > 0) != (label == 1)
    return len(y) / (time.perf_counter() - start), mistakes / len(y)


def capymoa(learner: str, base: str) -> Callable[[Array, Labels], Measured]:
    """One of CapyMOA's boosters, in CapyMOA's prequential evaluation."""

    def run(X: Array, y: Labels) -> Measured:
        classifiers, streams = import_module("capymoa.classifier"), import_module("capymoa.stream")
        evaluation = import_module("capymoa.evaluation")
        stream = streams.NumpyStream(X, y)
        booster = getattr(classifiers, learner)
        model: Any = booster(stream.get_schema(), base_learner=base, boosting_iterations=MEMBERS)
        start = time.perf_counter()
        result = evaluation.prequential_evaluation(stream, model)
        return len(y) / (time.perf_counter() - start), 1 - result.cumulative.accuracy() / 100

    return run


PEERS: dict[str, tuple[Callable[[Array, Labels], Measured], int]] = {
    "CapyMOA OzaBoost(Perceptron)": (capymoa("OzaBoost", "functions.Perceptron"), 10_000),
    "CapyMOA OnlineSmoothBoost(Perceptron)": (capymoa("OnlineSmoothBoost", "functions.Perceptron"), 10_000),
    "CapyMOA OzaBoost(NaiveBayes)": (capymoa("OzaBoost", "bayes.NaiveBayes"), 2000),
    "CapyMOA OnlineSmoothBoost(NaiveBayes)": (capymoa("OnlineSmoothBoost", "bayes.NaiveBayes"), 2000),
    "Vowpal Wabbit boosting": (vowpal_wabbit_boosting, 10_000),
    "river AdaBoost(Perceptron)": (river_adaboost, 1000),
}


def measure(name: str, X: Array, y: Labels) -> Measured | None:
    """Run one library over the first rows of the stream, as many as it can learn in some seconds."""
    run, rows = PEERS[name]
    try:
        return run(np.ascontiguousarray(X[:rows]), y[:rows])
    except ImportError:
        return None
