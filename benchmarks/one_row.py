"""One row at a time, as services and river users see it: median microseconds of a call, after 1,500 rows.

100 members, 20 features. ``python benchmarks/one_row.py``
"""

import statistics
import time
from collections.abc import Callable
from functools import partial
from importlib import import_module
from typing import Any

import numpy as np

from bayesvote import BayesianEnsembleClassifier, Ensemble, JointGaussian, PerceptronBank, adaptive, mixed
from bayesvote._checks import Array, Labels
from bayesvote.adapters import river
from bayesvote.members import scaled
from bayesvote.weighting import drifting

ROWS, WARM, MANY = 3_000, 1_500, 20_000
PAPER: dict[str, Any] = {"members": "perceptron", "weighter": "gamma_rate"}


def worst(X: Array, y: Labels) -> None:
    """The slowest of many rows that the default predicts and learns one by one, and how many took over 2 ms."""
    model = BayesianEnsembleClassifier(random_state=0).partial_fit(X[:1], y[:1], classes=[0, 1]).model_
    seconds = []
    for t in range(1, len(y)):
        start = time.perf_counter()
        model.decide_then_learn(X[t : t + 1], y[t : t + 1])
        seconds.append(time.perf_counter() - start)
    late, slowest = sum(one > 0.002 for one in seconds), max(seconds) * 1e3
    middle = statistics.median(seconds) * 1e6
    print(f"Ensemble, default, {len(y):,} rows: median {middle:.1f} us, worst {slowest:.1f} ms, {late} rows over 2 ms")


def median(call: Callable[[int], object]) -> float:
    """Microseconds of a call with the number of a row, over the rows after the first ones."""
    seconds = []
    for t in range(WARM, ROWS):
        start = time.perf_counter()
        call(t)
        seconds.append(time.perf_counter() - start)
    return statistics.median(seconds) * 1e6


def main() -> None:
    rng = np.random.default_rng(0)
    X = rng.normal(size=(ROWS, 20))
    y = (X[:, 0] + rng.normal(size=ROWS) > 0).astype(np.intp)
    dicts = [dict(enumerate(row)) for row in X.tolist()]
    ensembles = {
        "Ensemble, Perceptrons with (11)": Ensemble(PerceptronBank()),
        "Ensemble, mixed members with JointGaussian": Ensemble(mixed(), JointGaussian()),
        "Ensemble, default": Ensemble(scaled(adaptive()), drifting(), "wide_ramp"),
    }
    for name, ensemble in ensembles.items():
        ensemble.start(20, rng=0).decide_then_learn(X[:WARM], y[:WARM])
        learn = ensemble.decide_then_learn
        print(f"{name:<45} {median(partial(one_row, learn, X, y)):6.1f} us")
    for name, options in {"Perceptrons with (11)": PAPER, "default": {}}.items():
        model = river.BayesianEnsembleClassifier(**options, seed=0)
        for t in range(WARM):
            model.learn_one(dicts[t], int(y[t]))
        predicted = median(partial(one_dict, model.predict_one, dicts))
        learned = median(partial(one_dict, model.learn_one, dicts, y.tolist()))
        print(f"{'river, ' + name:<45} {predicted:6.1f} us predict_one, {learned:6.1f} us learn_one")
    classifiers: dict[str, Any] = {
        "scikit-learn SGDClassifier": import_module("sklearn.linear_model").SGDClassifier(),
        "Perceptrons with (11)": BayesianEnsembleClassifier(**PAPER, random_state=0),
        "default": BayesianEnsembleClassifier(random_state=0),
    }
    for name, classifier in classifiers.items():
        classifier.partial_fit(X[:WARM], y[:WARM], classes=[0, 1])
        print(f"{'partial_fit, ' + name:<45} {median(partial(one_row, classifier.partial_fit, X, y)):6.1f} us")
    many = rng.normal(size=(MANY, 20))
    worst(many, (many[:, 0] + rng.normal(size=MANY) > 0).astype(np.intp))


def one_row(call: Callable[..., object], X: Array, y: Labels, t: int) -> None:
    call(X[t : t + 1], y[t : t + 1])


def one_dict(call: Callable[..., object], dicts: list[dict[int, float]], *rest: Any) -> None:
    *labels, t = rest
    call(dicts[t], *(label[t] for label in labels))


if __name__ == "__main__":
    main()
