"""Median time of a call with one row, as services and river users make it, after 1,500 rows.

``python -m benchmarks one_row``: 100 members, 20 features.
"""

import argparse
import statistics
import time
from collections.abc import Callable, Iterator
from functools import partial
from importlib import import_module
from typing import Any

import numpy as np

import results
from bayesvote import BayesianEnsembleClassifier, Ensemble, JointGaussian, PerceptronBank, adaptive, mixed
from bayesvote.core.checks import Array, Labels
from bayesvote.integrations import river
from bayesvote.members import scaled
from bayesvote.weighting import drifting

ROWS, WARM, MANY = 3_000, 1_500, 20_000
PAPER: dict[str, Any] = {"members": "perceptron", "weighter": "gamma_rate"}


def worst(X: Array, y: Labels) -> dict[str, float]:
    """Return the slowest of many rows that the default predicts and learns one by one, and the number over 2 ms."""
    model = BayesianEnsembleClassifier(random_state=0).partial_fit(X[:1], y[:1], classes=[0, 1]).model_
    seconds = []
    for t in range(1, len(y)):
        start = time.perf_counter()
        model.decide_then_learn(X[t : t + 1], y[t : t + 1])
        seconds.append(time.perf_counter() - start)
    late, slowest = sum(one > 0.002 for one in seconds), max(seconds) * 1e3
    middle = statistics.median(seconds) * 1e6
    print(f"Ensemble, default, {len(y):,} rows: median {middle:.1f} us, worst {slowest:.1f} ms, {late} rows over 2 ms")
    return {"rows": len(y), "median us": middle, "worst ms": slowest, "over 2 ms": late}


def median(call: Callable[[int], object]) -> float:
    """Return the median microseconds of a call with the number of a row, after the first rows."""
    seconds = []
    for t in range(WARM, ROWS):
        start = time.perf_counter()
        call(t)
        seconds.append(time.perf_counter() - start)
    return statistics.median(seconds) * 1e6


def main() -> None:
    parser = argparse.ArgumentParser(description=(__doc__ or "").partition("\n")[0])
    parser.add_argument("--many", type=int, default=MANY, help="number of rows, of which the slowest is reported")
    asked = parser.parse_args()
    rng = np.random.default_rng(0)
    X = rng.normal(size=(ROWS, 20))
    y = (X[:, 0] + rng.normal(size=ROWS) > 0).astype(np.intp)
    dicts = [dict(enumerate(row)) for row in X.tolist()]
    found: dict[str, float] = {}
    ensembles = {
        "Ensemble, Perceptrons with (11)": Ensemble(PerceptronBank()),
        "Ensemble, mixed members with JointGaussian": Ensemble(mixed(), JointGaussian()),
        "Ensemble, default": Ensemble(scaled(adaptive()), drifting(), "wide_ramp"),
    }
    for name, ensemble in ensembles.items():
        ensemble.start(20, rng=0).decide_then_learn(X[:WARM], y[:WARM])
        learn = ensemble.decide_then_learn
        found[f"{name}: predicted and learned"] = median(partial(one_row, learn, X, y))
    for name, options in {"Perceptrons with (11)": PAPER, "default": {}}.items():
        model = river.BayesianEnsembleClassifier(**options, seed=0)
        for t in range(WARM):
            model.learn_one(dicts[t], int(y[t]))
        found[f"river, {name}: `predict_one`"] = median(partial(one_dict, model.predict_one, dicts))
        found[f"river, {name}: `learn_one`"] = median(partial(one_dict, model.learn_one, dicts, y.tolist()))
    classifiers: dict[str, Any] = {
        "scikit-learn SGDClassifier": import_module("sklearn.linear_model").SGDClassifier(),
        "Perceptrons with (11)": BayesianEnsembleClassifier(**PAPER, random_state=0),
        "default": BayesianEnsembleClassifier(random_state=0),
    }
    for name, classifier in classifiers.items():
        classifier.partial_fit(X[:WARM], y[:WARM], classes=[0, 1])
        found[f"{name}: `partial_fit`"] = median(partial(one_row, classifier.partial_fit, X, y))
    print("\n".join(f"{name:<60} {us:6.1f} us" for name, us in found.items()))
    many = rng.normal(size=(asked.many, 20))
    slow = worst(many, (many[:, 0] + rng.normal(size=asked.many) > 0).astype(np.intp))
    results.write("one_row", {"us": found, "worst": slow}, ["river", "scikit-learn"])


def calls(result: results.Result) -> Iterator[str]:
    """Yield the table of docs/performance.md."""
    yield "| call | us, median |"
    yield "|---|---:|"
    for name, us in result.figures["us"].items():
        yield f"| {name} | {us:.0f} |"


def one_row(call: Callable[..., object], X: Array, y: Labels, t: int) -> None:
    call(X[t : t + 1], y[t : t + 1])


def one_dict(call: Callable[..., object], dicts: list[dict[int, float]], *rest: Any) -> None:
    *labels, t = rest
    call(dicts[t], *(label[t] for label in labels))


if __name__ == "__main__":
    main()
