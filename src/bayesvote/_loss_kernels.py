"""Kernels of the named losses: every label's loss straight from the scores of two classes."""

import math

import numpy as np
from numba import njit

from bayesvote._checks import Array

_SMALLEST = float(np.finfo(np.float64).tiny)
RAMP, LOGISTIC, HINGE, ZERO_ONE = 0, 1, 2, 3


@njit(cache=True, nogil=True)
def ramp(z: float) -> float:
    """See losses.ramp; NaN fails both comparisons and passes through."""
    g = (1.0 - z) * 0.5
    g = 0.0 if g < 0.0 else g
    return 1.0 if g > 1.0 else g


@njit(cache=True, nogil=True)
def logistic(z: float) -> float:
    """See losses.logistic."""
    g = (0.0 if z > 0.0 else -z) + math.log1p(math.exp(-abs(z)))
    return _SMALLEST if g < _SMALLEST else g


@njit(cache=True, nogil=True)
def hinge(z: float) -> float:
    """See losses.hinge."""
    return 0.0 if 1.0 - z < 0.0 else 1.0 - z


@njit(cache=True, nogil=True)
def zero_one(z: float) -> float:
    """See losses.zero_one."""
    return z * 0.0 + (0.0 if z > 0.0 else 1.0 if z < 0.0 else 0.5)


@njit(cache=True, nogil=True)
def of_both(kind: int, scores: Array, out: Array) -> None:
    """Losses (2, m) of both labels for a row of scores."""
    m = np.uint64(scores.size)
    if kind == RAMP:
        for i in range(m):
            out[0, i], out[1, i] = ramp(-scores[i]), ramp(scores[i])
    elif kind == LOGISTIC:
        for i in range(m):
            out[0, i], out[1, i] = logistic(-scores[i]), logistic(scores[i])
    elif kind == HINGE:
        for i in range(m):
            out[0, i], out[1, i] = hinge(-scores[i]), hinge(scores[i])
    else:
        for i in range(m):
            out[0, i], out[1, i] = zero_one(-scores[i]), zero_one(scores[i])


@njit(cache=True, nogil=True)
def two_classes(kind: int, scores: Array, out: Array) -> None:
    """Losses (n, 2, m) of both labels for scores (n, m)."""
    for t in range(len(scores)):
        of_both(kind, scores[t], out[t])
