"""Joint weights beside each other: cost, errors, log-losses: `python benchmarks/drift.py [--rows n] [--seeds n]`.

All weigh the same members, 99 mixed ones, over the same rows in the same order; each row is predicted before it is
learned. Weights of the squared loss are calibrated online; those of the logistic loss are taken as they are.
"""

import argparse
import time
from typing import Any

import numpy as np

from bayesvote import BayesianEnsembleClassifier
from bayesvote.datasets import DATASETS, locate
from bayesvote.experiments.setup import stream
from bayesvote.weighting import JointGaussian, JointLogistic, Weighter

MEMBERS = 100
PAIRS: dict[str, Any] = {
    "precision": (10.0, 1000.0, 100.0, 100.0),
    "persistence": (1.0, 1.0, 0.9997, 0.995),
    "discount": 0.99,
}
WEIGHTERS: dict[str, tuple[Weighter[Any], bool]] = {
    "JointGaussian": (JointGaussian(), True),
    "drifting": (JointGaussian(**PAIRS), True),
    "JointLogistic": (JointLogistic(), False),
    "drifting logistic": (JointLogistic(**PAIRS), False),
}


def cost() -> None:
    """Time a row, the best of several runs, in seconds of one core."""
    rng, n = np.random.default_rng(0), 4096
    g, y = rng.random((n, MEMBERS)), rng.integers(0, 2, n)
    G = np.stack((g, 1 - g), axis=1)
    for name, (weighter, _) in WEIGHTERS.items():
        times = []
        for _ in range(7):
            start = time.process_time()
            weighter.losses_then_update(weighter.init(MEMBERS), G, y)
            times.append(time.process_time() - start)
        print(f"{name}: {min(times) / n * 1e6:.1f} us a row of {MEMBERS} members, {weighter}")


def measure(dataset: str, seed: int, n_rows: int) -> np.ndarray[Any, Any]:
    """Error and log-loss of every weighter."""
    X, y, _ = stream(dataset, seed)
    X, y = X[:n_rows], y[:n_rows]
    found = []
    for weighter, calibrated in WEIGHTERS.values():
        model = BayesianEnsembleClassifier("mixed", 99, weighter=weighter, calibrated=calibrated, random_state=seed)
        p = model.predict_proba_then_learn(X, y, classes=[0, 1])
        found.append((np.mean(p.argmax(axis=1) != y), -np.mean(np.log(p[np.arange(len(y)), y]))))
    return np.array(found)


def errors(n_rows: int, seeds: int) -> None:
    names = [name for name in DATASETS if locate(name)[0] != "download"]
    means = []
    print(f"\nErrors, then log-losses; at most {n_rows:,} rows, {seeds} orders.\n")
    print("| set | " + " | ".join(WEIGHTERS) + " | " + " | ".join(WEIGHTERS) + " |")
    print("|---" * (1 + 2 * len(WEIGHTERS)) + "|")
    for name in names:
        found = np.mean([measure(name, seed, n_rows) for seed in range(seeds)], axis=0)
        means.append(found)
        print(f"| {name} | " + " | ".join(f"{value:.4f}" for value in found.T.ravel()) + " |", flush=True)
    logs = np.log(means)
    ratios = np.exp((logs - logs[:, :1]).mean(axis=0)).T.ravel()
    print("| ratio to the first, geometric mean | " + " | ".join(f"{value:.3f}" for value in ratios) + " |")


if __name__ == "__main__":
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--rows", type=int, default=12_000)
    parser.add_argument("--seeds", type=int, default=2)
    given = parser.parse_args()
    cost()
    errors(given.rows, given.seeds)
