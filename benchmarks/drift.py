"""Error, log-loss and cost of the joint weights, with and without drift.

`python -m benchmarks drift [--rows N] [--seeds N]`. All weighters have the same 99 mixed members, and the same rows in
the same order. Each row is predicted before it is learned. Probabilities of the squared loss are calibrated online,
those of the logistic loss are not.
"""

import argparse
import time
from collections.abc import Iterator, Sequence
from importlib import import_module
from typing import Any

import numpy as np

import results
from bayesvote import BayesianEnsembleClassifier, Ensemble, PerceptronBank, decided, pretrain
from bayesvote.core.checks import Array, Labels
from bayesvote.datasets import DATASETS, locate
from bayesvote.weighting import JointGaussian, JointLogistic, Weighter
from bayesvote_paper.streams import stream

MEMBERS = 100
STEPS: dict[str, Any] = {"persistence": (1.0, 1.0, 0.9997, 0.995), "discount": 0.99}
DRIFTING = JointGaussian((10.0, 1000.0, 100.0, 100.0), **STEPS)
# Precisions with the lowest errors on orders 2 and 3. The table shows orders 0 and 1.
DRIFTING_LOGISTIC = JointLogistic((1.0, 100.0, 10.0, 10.0), **STEPS)
WEIGHTERS: dict[str, tuple[Weighter[Any], bool]] = {
    "JointGaussian": (JointGaussian(), True),
    "drifting": (DRIFTING, True),
    "JointLogistic": (JointLogistic(), False),
    "drifting logistic": (DRIFTING_LOGISTIC, False),
}
CHANGING: dict[str, Weighter[Any]] = {
    "JointGaussian": JointGaussian(),
    "forgetting 0.999": JointGaussian(forgetting=0.999),
    "forgetting 0.99": JointGaussian(forgetting=0.99),
    "drifting": DRIFTING,
    "JointLogistic": JointLogistic(),
    "drifting logistic": DRIFTING_LOGISTIC,
}


def cost() -> dict[str, float]:
    """Return microseconds of CPU time per row, the best of several runs."""
    rng, n, found = np.random.default_rng(0), 4096, {}
    g, y = rng.random((n, MEMBERS)), rng.integers(0, 2, n)
    G = np.stack((g, 1 - g), axis=1)
    for name, (weighter, _) in WEIGHTERS.items():
        times = []
        for _ in range(7):
            start = time.process_time()
            weighter.losses_then_update(weighter.init(MEMBERS), G, y)
            times.append(time.process_time() - start)
        found[name] = min(times) / n * 1e6
        print(f"{name}: {found[name]:.1f} us a row of {MEMBERS} members, {weighter}")
    return found


def measure(X: Array, y: Labels, seed: int) -> Array:
    """Return error and log-loss of every weighter."""
    found = []
    for weighter, calibrated in WEIGHTERS.values():
        model = BayesianEnsembleClassifier("mixed", 99, weighter=weighter, calibrated=calibrated, random_state=seed)
        p = model.predict_proba_then_learn(X, y, classes=np.unique(y))
        found.append((np.mean(p.argmax(axis=1) != y), -np.mean(np.log(p[np.arange(len(y)), y]))))
    return np.array(found)


def ten_classes(seed: int) -> tuple[Array, Labels]:
    X, y = import_module("sklearn.datasets").load_digits(return_X_y=True)
    order = np.random.default_rng(seed).permutation(len(y))
    return X[order] / 8 - 1, y[order]


def errors(n_rows: int, seeds: int, sets: Sequence[str]) -> dict[str, dict[str, dict[str, float]]]:
    """Return errors and log-losses by set and weights, and the geometric means of their ratios to the first weights."""
    out: dict[str, dict[str, dict[str, float]]] = {"error": {}, "log-loss": {}}
    means: list[Array] = []

    def show(name: str, found: Array) -> None:
        for kind, values in zip(out, found.T, strict=True):
            out[kind][name] = dict(zip(WEIGHTERS, values.tolist(), strict=True))
            print(f"{name}, {kind}: {out[kind][name]}", flush=True)

    for name in sets:
        found = []
        for seed in range(seeds):
            X, y, _ = stream(name, seed)
            found.append(measure(X[:n_rows], y[:n_rows], seed))
        means.append(np.mean(found, axis=0))
        show(name, means[-1])
    logs = np.log(means)
    show("ratio", np.exp((logs - logs[:, :1]).mean(axis=0)))
    digits = [measure(*ten_classes(seed), seed) for seed in range(seeds)]
    show("digits", np.mean(digits, axis=0))
    return out


def change(seeds: int) -> dict[str, dict[str, float]]:
    """Return errors on a stream in which right members become wrong half-way, and wrong ones right, as in figure 6."""
    n, d = 10_000, 20
    wrong = np.zeros((seeds, len(CHANGING), n), dtype=bool)
    for seed in range(seeds):
        rng = np.random.default_rng(seed)
        X, earlier = rng.uniform(-1, 1, (n, d)), rng.uniform(-1, 1, (500, d))
        first = np.arange(n)[:, None] < n // 2
        y = ((X * np.where(first, np.arange(d) < d // 2, np.arange(d) >= d // 2)).sum(axis=1) > 0).astype(np.intp)
        bank = PerceptronBank(d, max_features=1).start(d, 2, seed)
        members = pretrain(bank, earlier, (earlier.sum(axis=1) > 0).astype(np.intp))
        for k, weighter in enumerate(CHANGING.values()):
            wrong[seed, k] = decided(Ensemble(members, weighter).start(d).decide_then_learn(X, y)) != y
    parts = {
        "before": slice(1000, n // 2),
        "1,000 rows after": slice(n // 2, n // 2 + 1000),
        "later": slice(n // 2 + 1000, n),
    }
    found = {
        name: {title: float(wrong[:, k, part].mean()) for title, part in parts.items()}
        for k, name in enumerate(CHANGING)
    }
    print("\n".join(results.grid("error", found, ".3f")))
    return found


def joint_weights(result: results.Result) -> Iterator[str]:
    """Yield the table of joint weights of docs/choosing.md."""
    errors, losses = result.figures["error"], result.figures["log-loss"]
    yield from results.grid(
        "",
        {
            "error, thirteen sets, geometric mean of the ratios to the first": errors["ratio"],
            "log-loss, the same": losses["ratio"],
            "error on digits, ten classes": errors["digits"],
            "log-loss on digits": losses["digits"],
        },
        ".4f",
    )
    cost = result.figures["us a row"]
    yield "| CPU time of 100 members, us a row | " + " | ".join(f"{value:.1f}" for value in cost.values()) + " |"


def after_change(result: results.Result) -> Iterator[str]:
    """Yield the table of members that become wrong."""
    return results.grid("error", result.figures["change"], ".3f")


if __name__ == "__main__":
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--rows", type=int, default=12_000)
    parser.add_argument("--seeds", type=int, default=2)
    parser.add_argument("--sets", nargs="+", default=[name for name in DATASETS if locate(name)[0] != "download"])
    given = parser.parse_args()
    found: dict[str, Any] = {"us a row": cost(), **errors(given.rows, given.seeds, given.sets), "change": change(5)}
    results.write("drift", found)
