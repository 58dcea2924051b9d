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

from bayesvote import BayesianEnsembleClassifier, Ensemble, JointGaussian, PerceptronBank, mixed
from bayesvote._checks import Array, Labels
from bayesvote.adapters import river

ROWS, WARM = 3_000, 1_500
PAPER: dict[str, Any] = {"members": "perceptron", "weighter": "gamma_rate"}


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


def one_row(call: Callable[..., object], X: Array, y: Labels, t: int) -> None:
    call(X[t : t + 1], y[t : t + 1])


def one_dict(call: Callable[..., object], dicts: list[dict[int, float]], *rest: Any) -> None:
    *labels, t = rest
    call(dicts[t], *(label[t] for label in labels))


if __name__ == "__main__":
    main()
