"""Short runs of the models that stored results depend on.

A result is stale when one of its probes has changed since it was measured.
Each probe is a log-loss over some thousand rows. It changes with the model, and with nothing else.
"""

import time
import warnings
from collections.abc import Callable, Mapping
from functools import cache
from typing import Any

import numpy as np
from scipy.sparse import csr_array

from bayesvote import BayesianEnsembleClassifier, OGBoostClassifier, OSBoostClassifier, OzaBoostClassifier, prequential
from bayesvote.apps.distributed import fit
from bayesvote.core.checks import Array, Labels

ROWS = 4000
PAPER, WEIGHTS = ("averaged_perceptron", "naive_bayes"), ("gamma_rate", "gamma_shape", "sgd")


def rows(n: int = ROWS, d: int = 6) -> tuple[Array, Labels]:
    """Return rows of a stream whose concept changes half-way."""
    rng = np.random.default_rng(0)
    X = rng.normal(size=(n, d))
    score = np.where(np.arange(n) < n // 2, X[:, 0] + X[:, 1] * X[:, 2], X[:, 3] - X[:, 1])
    return X, (score + 0.5 * rng.normal(size=n) > 0).astype(np.intp)


def table() -> tuple[dict[str, Any], Labels]:
    """Return a table of numbers, text and missing values."""
    X, y = rows()
    numbers = {f"x{j}": np.where(X[:, j] > 1.5, np.nan, X[:, j]) for j in range(2)}
    texts = {f"t{j}": np.array([f"v{round(2 * value)}" for value in X[:, j]], dtype=object) for j in range(2, 4)}
    return {**numbers, **texts, "many": np.array([f"m{k % 200}" for k in range(len(y))], dtype=object)}, y


def log_loss(p: Array, y: Labels) -> float:
    return float(-np.log(np.maximum(p[np.arange(len(y)), y], 1e-6)).mean())


def online(kind: Any = BayesianEnsembleClassifier, **options: Any) -> float:
    """Return the log-loss of rows that are predicted before they are learned."""
    X, y = rows()
    return log_loss(kind(random_state=0, **options).predict_proba_then_learn(X, y, classes=[0, 1]), y)


def several() -> float:
    """Return the log-loss of the default with three classes."""
    X, y = rows(1000)
    y = y + (X[:, 4] > 0.5)
    return log_loss(BayesianEnsembleClassifier(random_state=0).predict_proba_then_learn(X, y, classes=[0, 1, 2]), y)


def on_table() -> float:
    X, y = table()
    stated = {"many": "category"}
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")
        model = BayesianEnsembleClassifier(columns=stated, random_state=0)
        return log_loss(model.predict_proba_then_learn(X, y, classes=[0, 1]), y)


def late() -> float:
    X, y = rows()
    return prequential(BayesianEnsembleClassifier(random_state=0), X, y, delay=50).log_loss


def learned(how: str, **options: Any) -> float:
    """Return the log-loss on the last 300 rows, after ``fit`` or ``partial_fit`` on the rows before them."""
    X, y = rows()
    model = BayesianEnsembleClassifier(random_state=0, **options)
    getattr(model, how)(X[:-300], y[:-300], **({"classes": [0, 1]} if how == "partial_fit" else {}))
    return log_loss(model.predict_proba(X[-300:]), y[-300:])


def sparse() -> float:
    X, y = rows()
    wide = np.zeros((len(y), 2000))
    wide[np.arange(len(y))[:, None], (40 * np.abs(X)).astype(int) + 300 * np.arange(X.shape[1])] = 1.0
    return log_loss(
        BayesianEnsembleClassifier(random_state=0).predict_proba_then_learn(csr_array(wide), y, classes=[0, 1]), y
    )


def shards() -> float:
    X, y = rows(1200)
    return log_loss(fit([(X[k::3], y[k::3]) for k in range(3)]).predict_proba(X), y)


PROBES: Mapping[str, Callable[[], float]] = {
    "default": lambda: online() + several(),
    "fast": lambda: online(members="fast"),
    "mixed": lambda: online(members="mixed", weighter="joint_gaussian"),
    "logistic": lambda: sum(online(members="mixed", weighter=name) for name in ("joint_logistic", "drifting")),
    "paper": lambda: sum(online(members=members, weighter=name) for members in PAPER for name in WEIGHTS),
    "boosters": lambda: sum(online(kind) for kind in (OzaBoostClassifier, OGBoostClassifier, OSBoostClassifier)),
    "table": on_table,
    "late": late,
    "chunks": lambda: learned("partial_fit"),
    "batch": lambda: learned("fit"),
    "sparse": sparse,
    "shards": shards,
}


@cache
def value(name: str) -> float:
    """Run a probe, once per process."""
    return PROBES[name]()


if __name__ == "__main__":
    for name in PROBES:
        start = time.process_time()
        print(f"{name:10} {value(name):.6f} {time.process_time() - start:6.2f} s")
