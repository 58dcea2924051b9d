"""Kernels of Perceptron members; the last axis of the weights runs over them, so that the inner loops do."""

import numpy as np
from numba import njit
from numpy.typing import NDArray

from bayesvote._checks import Array

Ints = NDArray[np.int64]


@njit(cache=True, nogil=True, error_model="numpy")
def perceptron_scores(weights: Array, columns: Ints, values: Array, n: int, scores: Array) -> None:
    """Score a row of n non-zeros by all Perceptrons; four features at a time save passes over the scores."""
    m = scores.shape[0]
    for i in range(m):
        scores[i] = weights[0, i]
    p = 0
    while p + 4 <= n:
        a, b, c, d = columns[p] + 1, columns[p + 1] + 1, columns[p + 2] + 1, columns[p + 3] + 1
        u, v, w, x = values[p], values[p + 1], values[p + 2], values[p + 3]
        for i in range(m):
            scores[i] += (u * weights[a, i] + v * weights[b, i]) + (w * weights[c, i] + x * weights[d, i])
        p += 4
    while p < n:
        a, u = columns[p] + 1, values[p]
        for i in range(m):
            scores[i] += u * weights[a, i]
        p += 1


@njit(cache=True, nogil=True, error_model="numpy")
def perceptron_step(weights: Array, columns: Ints, values: Array, n: int, step: Array) -> None:
    """Add step[i] times the row to the weights of Perceptron i."""
    m = step.shape[0]
    if not np.any(step):
        return
    for i in range(m):
        weights[0, i] += step[i]
    for p in range(n):
        a, u = columns[p] + 1, values[p]
        for i in range(m):
            weights[a, i] += u * step[i]
