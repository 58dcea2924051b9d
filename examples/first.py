"""Learn, online, how much to trust each of a hundred weak classifiers; see what the weights are worth."""

import numpy as np
from sklearn.datasets import load_breast_cancer, load_digits

from bayesvote import Ensemble, GammaRate, JointGaussian, Voting, mixed, prequential


def stream(X: np.ndarray, y: np.ndarray) -> tuple[np.ndarray, np.ndarray]:
    """Rows in random order, features scaled to [-1, 1]."""
    low, high = X.min(axis=0), X.max(axis=0)
    order = np.random.default_rng(0).permutation(len(X))
    return (2 * (X - low) / np.maximum(high - low, 1e-12) - 1)[order], y[order]


for name, load in (("breast cancer", load_breast_cancer), ("digits, ten classes", load_digits)):
    X, y = stream(*load(return_X_y=True))
    print(f"{name}: {len(X)} rows, {X.shape[1]} features; share of the rows predicted wrongly before they are learned")
    for weighter in (Voting(), GammaRate(), JointGaussian()):
        model = Ensemble(mixed(100), weighter).start(X.shape[1], len(np.unique(y)), rng=0)
        result = prequential(model, X, y)
        print(f"  {type(weighter).__name__:14} {result.error:.3f}   ({len(X) / result.seconds:,.0f} rows/s)")
