"""Kernels of the gradient baselines of loss (8): one row of losses at a time."""

import numpy as np
from numba import njit

from bayesvote._checks import Array, Labels
from bayesvote.weighting._sum_kernels import dot

SGD, AVERAGED, SAG = 0, 1, 2
FLOOR = 1e-6  # keeps the weights above 0, where the gradient has a pole


@njit(cache=True, nogil=True)
def step(kind: int, fields: Array, g: Array, w: float, size: float, theta: float) -> None:
    """One step on the losses g: (14), with what the averaging schemes add.

    ``fields`` are the weights, the members' counts of samples and, for the averaging schemes, the average of the
    weights or the sum of the gradients.
    """
    weights, counts = fields[0], fields[1]
    for i in range(g.size):
        if g[i] != g[i]:
            continue
        counts[i] += 1.0
        gradient = w * (theta * g[i] - 1.0 / weights[i])
        if kind == SGD:
            change = size / counts[i] * gradient
        elif kind == AVERAGED:
            change = size / counts[i] ** 0.75 * gradient
        else:
            fields[2, i] += gradient
            change = size * fields[2, i]
        weights[i] = max(weights[i] - change, FLOOR)
        if kind == AVERAGED:
            fields[2, i] += (weights[i] - fields[2, i]) / counts[i]


@njit(cache=True, nogil=True)
def stream(kind: int, fields: Array, G: Array, y: Labels, w: Array, size: float, theta: float, out: Array) -> None:
    """Rule (12) for every row, then a step on it."""
    n, k, m = G.shape
    voting = np.empty(m)
    for t in range(n):
        voting[:] = theta * (fields[2] if kind == AVERAGED else fields[0])
        for label in range(k):
            out[t, label] = dot(voting, G[t, label])
        if w[t] != 0.0:
            step(kind, fields, G[t, y[t]], w[t], size, theta)
