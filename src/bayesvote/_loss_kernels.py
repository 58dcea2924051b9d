"""Kernels of the named losses: every label's loss straight from the scores of two classes."""

import math

from numba import njit

from bayesvote._checks import Array

RAMP, LOGISTIC, HINGE, ZERO_ONE = 0, 1, 2, 3


@njit(cache=True, nogil=True)
def ramp(z: float) -> float:
    """See losses.ramp; NaN fails both comparisons and passes through."""
    g = (1.0 - z) * 0.5
    g = 0.0 if g < 0.0 else g
    return 1.0 if g > 1.0 else g


@njit(cache=True, nogil=True)
def logistic(z: float, smallest: float) -> float:
    """See losses.logistic."""
    g = (0.0 if z > 0.0 else -z) + math.log1p(math.exp(-abs(z)))
    return smallest if g < smallest else g


@njit(cache=True, nogil=True)
def hinge(z: float) -> float:
    """See losses.hinge."""
    return 0.0 if 1.0 - z < 0.0 else 1.0 - z


@njit(cache=True, nogil=True)
def zero_one(z: float) -> float:
    """See losses.zero_one."""
    return z * 0.0 + (0.0 if z > 0.0 else 1.0 if z < 0.0 else 0.5)


@njit(cache=True, nogil=True)
def losses_of(kind: int, scores: Array, sign: float, smallest: float, out: Array) -> None:
    """Losses of one row's margins, sign times its scores."""
    if kind == RAMP:
        for i in range(scores.size):
            out[i] = ramp(sign * scores[i])
    elif kind == LOGISTIC:
        for i in range(scores.size):
            out[i] = logistic(sign * scores[i], smallest)
    elif kind == HINGE:
        for i in range(scores.size):
            out[i] = hinge(sign * scores[i])
    else:
        for i in range(scores.size):
            out[i] = zero_one(sign * scores[i])


@njit(cache=True, nogil=True)
def two_classes(kind: int, scores: Array, smallest: float, out: Array) -> None:
    """Losses (n, 2, m) of both labels for scores (n, m)."""
    for t in range(len(scores)):
        losses_of(kind, scores[t], -1.0, smallest, out[t, 0])
        losses_of(kind, scores[t], 1.0, smallest, out[t, 1])
