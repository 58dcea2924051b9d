"""Helpers of the tests of the command line."""

from collections.abc import Callable
from pathlib import Path
from typing import Any, NamedTuple

import numpy as np
from numpy.typing import NDArray


class Outcome(NamedTuple):
    code: int
    out: str
    err: str


Cli = Callable[..., Outcome]

NAMES = ["height", "width", "depth", "age"]


def rows(n: int = 400) -> tuple[NDArray[np.float64], NDArray[Any]]:
    rng = np.random.default_rng(3)
    X = rng.standard_normal((n, 4)).round(3)
    return X, np.where(X[:, 0] + X[:, 1] > 0, "yes", "no")


def write_csv(path: Path, n: int = 400, *, labelled: bool = True) -> Path:
    X, y = rows(n)
    header = [*NAMES, "answer"] if labelled else NAMES
    lines = [
        ",".join([*map(str, x), label] if labelled else map(str, x))
        for x, label in zip(X.tolist(), y.tolist(), strict=True)
    ]
    path.write_text("\n".join([",".join(header), *lines]) + "\n")
    return path


def write_libsvm(path: Path, n: int = 400) -> Path:
    X, y = rows(n)
    pairs = [" ".join(f"{j + 1}:{v}" for j, v in enumerate(x)) for x in X.tolist()]
    path.write_text("".join(f"{int(label == 'yes')} {text}\n" for label, text in zip(y.tolist(), pairs, strict=True)))
    return path
