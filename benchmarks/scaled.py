"""Error and cost of linear members with and without standardised features.

`python -m benchmarks scaled [TRIALS]` runs test-then-train on the available data sets of the paper, at most 3,000 rows
of each, with features scaled to [-1, 1]. It also runs on scikit-learn's wine, breast cancer and digits, unscaled.
"""

import sys
import time
from importlib import import_module
from typing import Any

import numpy as np

from bayesvote import BayesianEnsembleClassifier, PerceptronBank, Scaled, prequential
from bayesvote.datasets import DATASETS, locate
from bayesvote_paper.streams import stream

MOST_ROWS = 3_000
MEMBERS = {"mixed": "joint_gaussian", "perceptron": "gamma_rate", "averaged_perceptron": "gamma_rate"}
RAW = ("wine", "breast_cancer", "digits")


def load(name: str, trial: int) -> tuple[Any, Any]:
    if name not in RAW:
        X, y, _ = stream(name, trial)
        return X[:MOST_ROWS], y[:MOST_ROWS]
    X, y = getattr(import_module("sklearn.datasets"), f"load_{name}")(return_X_y=True)
    order = np.random.default_rng(trial).permutation(len(y))[:MOST_ROWS]
    return X[order], y[order]


def error(members: str, scale: bool, X: Any, y: Any, trial: int) -> float:
    model = BayesianEnsembleClassifier(members, weighter=MEMBERS[members], scale=scale, random_state=trial)
    return prequential(model, X, y, classes=np.unique(y)).error


def cost(averaged: bool) -> float:
    """Return the CPU time of 100 scaled Perceptrons on 54 features, relative to that of unscaled ones."""
    rng = np.random.default_rng(0)
    X, y = rng.normal(size=(20_000, 54)), rng.integers(2, size=20_000)
    seconds = []
    for wrap in (lambda bank: bank, Scaled):
        bank = wrap(PerceptronBank(100, averaged=averaged)).start(54, rng=0)
        taken = []
        for _ in range(5):
            start = time.process_time()
            bank.scores_then_learn(X, y)
            taken.append(time.process_time() - start)
        seconds.append(min(taken))
    return seconds[1] / seconds[0]


def main(trials: int) -> None:
    sets = [*RAW, *(name for name in DATASETS if locate(name)[0] != "download")]
    print("| set | " + " | ".join(f"{members}: unscaled | scaled" for members in MEMBERS) + " |")
    print("|---|" + "---:|" * (2 * len(MEMBERS)))
    errors = []
    for name in sets:
        found = []
        for trial in range(trials):
            X, y = load(name, trial)
            found.append([error(members, scale, X, y, trial) for members in MEMBERS for scale in (False, True)])
        errors.append(np.mean(found, axis=0))
        print(f"| {name} | " + " | ".join(f"{e:.3f}" for e in errors[-1]) + " |", flush=True)
    mean = np.mean(errors[len(RAW) :], axis=0)
    print(f"| mean of the paper's {len(sets) - len(RAW)} | " + " | ".join(f"{e:.4f}" for e in mean) + " |")
    print(f"\nCPU time, relative to unscaled: Perceptrons {cost(False):.2f}, averaged Perceptrons {cost(True):.2f}.")


if __name__ == "__main__":
    main(int(sys.argv[1]) if len(sys.argv) > 1 else 2)
