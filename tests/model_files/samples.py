"""Data, models and functions that edit a file, for the tests of model files."""

import hashlib
import json
from collections.abc import Callable
from typing import Any

import numpy as np

from bayesvote import (
    SAG,
    SGD,
    AveragedSGD,
    FernBank,
    Frozen,
    GammaRate,
    GammaShape,
    GammaShapeRate,
    JointGaussian,
    JointLogistic,
    LinearBank,
    NaiveBayesBank,
    PerceptronBank,
    TreeBank,
    Union,
    Voting,
    losses,
    mixed,
)
from bayesvote.core.checks import Array, Labels
from bayesvote.io.model_file import dumps

D = 6


def rows(n: int, n_classes: int = 2, seed: int = 0) -> tuple[Array, Labels]:
    rng = np.random.default_rng(seed)
    X = rng.normal(size=(n, D))
    X[:, 0] = rng.integers(2, size=n)
    X[rng.random((n, D)) < 0.01] = np.nan
    return X, rng.integers(n_classes, size=n)


def equal(a: Any, b: Any) -> bool:
    return dumps(a) == dumps(b) and np.array_equal(a.decide(rows(20)[0]), b.decide(rows(20)[0]), equal_nan=True)


def own_loss(margin: Array) -> Array:
    return losses.logistic(2.0 * margin)


def rate_loss(weight: Array, g: Array) -> Array:
    return np.asarray(0.1 * weight * g - np.log(weight))


def rate_prior(weight: Array) -> Array:
    return weight


BANKS: dict[str, Callable[[], Any]] = {
    "perceptron": lambda: PerceptronBank(5),
    "averaged": lambda: PerceptronBank(5, max_features=None, averaged=True),
    "linear": lambda: LinearBank(5, max_features=4, aggressiveness=[0.1, 1]),
    "naive_bayes": lambda: NaiveBayesBank(5, max_features=4),
    "kinds": lambda: NaiveBayesBank(5, kinds=["bernoulli", "gaussian", "auto", "auto", "auto", "gaussian"]),
    "ferns": lambda: FernBank(5, depth=3, warmup=64),
    "trees": lambda: TreeBank(3, recent=[(16, 2, 8)], refined=[1.0, 10.0], rows_kept=32, max_nodes=31),
    "mixed": lambda: mixed(9),
    "nested": lambda: Union([Union([PerceptronBank(2)]), Frozen(FernBank(2, depth=2)), NaiveBayesBank(2)]),
}
WEIGHTERS = [
    GammaRate(forgetting=0.99),
    GammaShape(cap=1000),
    GammaShapeRate(),
    JointGaussian(theta=np.float64(0.5)),
    JointGaussian(precision=[1, 20.0]),
    JointGaussian(precision=3.0, forgetting=0.9),
    JointGaussian(precision=(3.0, 30.0), persistence=[1, 0.99], discount=0.9),
    JointLogistic(),
    JointLogistic(precision=(3.0, 30.0), persistence=[1, 0.99], discount=0.9, scale=2),
    JointLogistic(precision=(3.0, 30.0), persistence=[1, 0.99], discount=0.9, burst=5),
    Voting(),
    SGD(),
    AveragedSGD(step=2.0),
    SAG(horizon=500),
]


def edited(data: bytes, change: Callable[[Any], Any]) -> bytes:
    """Change the header and correct the checksum, independently of the library."""
    size = int.from_bytes(data[:8], "little")
    header = json.loads(data[8 : 8 + size])
    header["__metadata__"]["sha256"] = "0" * 64
    change(header)
    text = json.dumps(header, separators=(",", ":")).encode()
    blank = len(text).to_bytes(8, "little") + text
    rest = data[8 + size :]
    digest = hashlib.sha256(blank + rest).hexdigest()
    return blank.replace(b"0" * 64, digest.encode(), 1) + rest


def described(data: bytes, change: Callable[[Any], Any]) -> bytes:
    def inner(header: Any) -> None:
        model = json.loads(header["__metadata__"]["model"])
        change(model)
        header["__metadata__"]["model"] = json.dumps(model)

    return edited(data, inner)


def places(node: Any) -> list[tuple[Any, Any]]:
    """Yield all containers in a tree, with their keys."""
    keys = list(node) if isinstance(node, dict) else list(range(len(node))) if isinstance(node, list) else []
    return [(node, key) for key in keys] + [place for key in keys for place in places(node[key])]
