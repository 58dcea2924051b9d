"""Brier score, log-loss and calibration error with and without calibration, in one pass each.

Run ``python benchmarks/calibration.py``; ``--sets heart wine`` names some sets, ``--rows`` and ``--orders`` bound the
work. Every row is predicted, then learned; features are scaled to [-1, 1]. The paper's thirteen sets come first, then
tables of scikit-learn and river, some of several classes, then the streams of table 7 as they come. A classifier that
calibrates also knows the probabilities that it would have given without, so both columns are of the same run and the
same decisions.
"""

import argparse
from collections.abc import Callable, Iterator
from importlib import import_module
from typing import Any

import numpy as np
from scipy.sparse import csr_array

import results
from bayesvote import (
    BayesianEnsembleClassifier,
    LinearBank,
    NaiveBayesBank,
    OGBoostClassifier,
    OSBoostClassifier,
    OzaBoostClassifier,
    PerceptronBank,
    TreeBank,
    Union,
    load_dataset,
)
from bayesvote.core.checks import Array, Labels
from bayesvote.core.rows import as_rows
from bayesvote.datasets import DATASETS, scale
from bayesvote.estimators import OnlineClassifier
from bayesvote_paper.changing import STREAMS

KINDS = ("Brier score", "log-loss", "calibration error")
CLIP = 1e-9  # of probabilities, for the log-loss


def with_trees() -> Union:
    return Union(
        [
            PerceptronBank(20, averaged=True),
            NaiveBayesBank(18, max_features=0.3),
            TreeBank(),
            LinearBank(3),
            LinearBank(3, max_features=0.5, aggressiveness=1.0),
        ]
    )


MODELS: dict[str, Callable[[int], OnlineClassifier[Any]]] = {
    "default": lambda seed: BayesianEnsembleClassifier(random_state=seed),
    "mixed, joint_gaussian": lambda seed: BayesianEnsembleClassifier(
        "mixed", weighter="joint_gaussian", calibrated=True, random_state=seed
    ),
    "mixed, joint_logistic": lambda seed: BayesianEnsembleClassifier(
        "mixed", weighter="joint_logistic", calibrated=True, random_state=seed
    ),
    "mixed, gamma_rate": lambda seed: BayesianEnsembleClassifier(
        "mixed", weighter="gamma_rate", calibrated=True, random_state=seed
    ),
    "trees, joint_gaussian": lambda seed: BayesianEnsembleClassifier(
        with_trees(), weighter="joint_gaussian", calibrated=True, random_state=seed
    ),
    "trees, joint_logistic": lambda seed: BayesianEnsembleClassifier(
        with_trees(), weighter="joint_logistic", calibrated=True, random_state=seed
    ),
    "OzaBoost": lambda seed: OzaBoostClassifier(calibrated=True, random_state=seed),
    "OGBoost": lambda seed: OGBoostClassifier(calibrated=True, random_state=seed),
    "OSBoost": lambda seed: OSBoostClassifier(calibrated=True, random_state=seed),
}


def _scikit(name: str) -> tuple[Array, Labels]:
    data = getattr(import_module("sklearn.datasets"), f"load_{name}")()
    return data.data, data.target


def _river(name: str) -> tuple[Array, Labels]:
    from river import datasets

    rows = [(list(x.values()), y) for x, y in getattr(datasets, name)()]
    return np.array([x for x, _ in rows], dtype=float), np.unique([str(y) for _, y in rows], return_inverse=True)[1]


TABLES: dict[str, Callable[[], tuple[Array, Labels]]] = {
    "wdbc": lambda: _scikit("breast_cancer"),
    "digits": lambda: _scikit("digits"),
    "iris": lambda: _scikit("iris"),
    "wine": lambda: _scikit("wine"),
    "bananas": lambda: _river("Bananas"),
    "phishing": lambda: _river("Phishing"),
    "segments": lambda: _river("ImageSegments"),
}


def stream(name: str, order: int, most: int) -> tuple[Array, Labels]:
    """Rows of a set in random order, features in [-1, 1]."""
    if name in STREAMS:
        changing = STREAMS[name](order)
        return changing.X[:most], changing.y[:most]
    if name in TABLES:
        X, y = TABLES[name]()
    else:
        data = load_dataset(name)
        X, y = csr_array(data.X).toarray(), data.y
    kept = np.random.default_rng(order).permutation(len(y))[:most]
    return np.ascontiguousarray(np.asarray(scale(X))[kept]), y[kept].astype(np.intp)


def figures(probabilities: Array, y: Labels) -> Array:
    """Return Brier score, halved for two classes, log-loss, and the decisions' calibration error in 15 bins."""
    row, k = np.arange(len(y)), probabilities.shape[1]
    off = probabilities.copy()
    off[row, y] -= 1
    logs = np.log(np.clip(probabilities[row, y], CLIP, 1))
    said, right = probabilities.max(axis=1), probabilities.argmax(axis=1) == y
    bins = np.minimum((15 * said).astype(np.intp), 14)
    gaps = np.bincount(bins, said, minlength=15) - np.bincount(bins, right, minlength=15)
    return np.array([(off**2).sum() / len(y) / (2 if k == 2 else 1), -logs.mean(), np.abs(gaps).sum() / len(y)])


def measured(make: Callable[[int], OnlineClassifier[Any]], name: str, orders: int, most: int) -> Array:
    """Return (without, with calibration) by (Brier score, log-loss, calibration error): means over the orders."""
    found = []
    for order in range(orders):
        X, y = stream(name, order, most)
        model = make(order).start(X.shape[1], np.unique(y))
        losses, calibration = model.advance(as_rows("benchmark", X), y, np.ones(len(y)))
        raw, calibrated = model.model_.probabilities(losses), model.probabilities(losses, calibration)
        found.append([figures(raw, y), figures(calibrated, y)])
    return np.asarray(np.mean(found, axis=0))


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--sets", nargs="*")
    parser.add_argument("--models", nargs="*", choices=[*MODELS], default=[*MODELS])
    parser.add_argument("--rows", type=int, default=5_000)
    parser.add_argument("--orders", type=int, default=1)
    given = parser.parse_args()
    sets = given.sets or [*DATASETS, *TABLES, *STREAMS]
    print(f"At most {given.rows:,} rows, means of {given.orders} orders; each pair: without, with calibration.\n")
    found_of: dict[str, dict[str, float]] = {}
    for title in given.models:
        print(f"| {title} | Brier | | log-loss | | calibration error | |\n|---|---|---|---|---|---|---|")
        ratios = []
        for name in sets:
            found = measured(MODELS[title], name, given.orders, given.rows)
            ratios.append(found[1] / found[0])
            cells = [f"{found[k, j]:.4f}" for j in range(3) for k in range(2)]
            print(f"| {name} | {' | '.join(cells)} |", flush=True)
        mean, better = np.exp(np.log(ratios).mean(axis=0)), (np.array(ratios) < 1).sum(axis=0)
        worst = np.max(ratios, axis=0)
        told = [f"x {mean[j]:.3f}, better on {better[j]} of {len(sets)}, worst x {worst[j]:.3f}" for j in range(3)]
        print(f"| geometric mean | | {told[0]} | | {told[1]} | | {told[2]} |\n", flush=True)
        found_of[title] = {"sets": len(sets)}
        for j, kind in enumerate(KINDS):
            found_of[title] |= {kind: mean[j], f"better {kind}": int(better[j]), f"worst {kind}": float(worst[j])}
    results.write("calibration", found_of)


def gains(result: results.Result) -> Iterator[str]:
    """Yield the table of docs/evaluation.md: with calibration over without."""
    yield "| members, weights | " + " | ".join(f"{kind} | better on | worst" for kind in KINDS) + " |"
    yield "|---" + "|---:" * 3 * len(KINDS) + "|"
    for title, of in result.figures.items():
        cells = [
            f"{of[kind]:.3f} | {of[f'better {kind}']} of {of['sets']} | {of[f'worst {kind}']:.3f}" for kind in KINDS
        ]
        yield f"| {title} | " + " | ".join(cells) + " |"


if __name__ == "__main__":
    main()
