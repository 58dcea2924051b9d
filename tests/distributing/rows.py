"""Shards to test with, and members that are quick to train."""

from pathlib import Path
from typing import Any

import numpy as np

from bayesvote import BayesianEnsembleClassifier, FernBank, NaiveBayesBank, PerceptronBank, TreeBank, Union

Shards = list[tuple[Any, Any]]


def shards(n_shards: int = 6, n_rows: int = 240, n_classes: int = 2, seed: int = 0) -> Shards:
    """Return rows that trees predict better than other members; some values are missing."""
    rng = np.random.default_rng(seed)
    found = []
    for _ in range(n_shards):
        X = rng.normal(size=(n_rows, 4))
        y = (X[:, 0] * X[:, 1] > 0).astype(int) + (n_classes == 3) * (X[:, 2] > 0.5)
        X[rng.random(X.shape) < 0.01] = np.nan
        found.append((X, np.array(["no", "perhaps", "yes"] if n_classes == 3 else ["no", "yes"])[y]))
    return found


def classifier(**changes: Any) -> BayesianEnsembleClassifier:
    bank = Union([TreeBank(2, recent=(), refined=[10.0]), PerceptronBank(1), NaiveBayesBank(1), FernBank(1, depth=3)])
    made: BayesianEnsembleClassifier = BayesianEnsembleClassifier(bank, n_members=30, random_state=5)
    return made.set_params(**changes)


def write_csv(folder: Path, parts: Shards, names: str = "a,b,c,d") -> list[str]:
    paths = []
    for k, (X, y) in enumerate(parts):
        path = folder / f"{k:02d}.csv"
        lines = [
            ",".join("" if np.isnan(v) else repr(float(v)) for v in x) + f",{label}"
            for x, label in zip(X, y, strict=True)
        ]
        path.write_text("\n".join([f"{names},pet", *lines, ""]))
        paths.append(str(path))
    return paths
