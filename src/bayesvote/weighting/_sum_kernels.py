"""Kernels of states that are sums, and of the losses that feed them."""

import numpy as np
from numba import njit

from bayesvote._checks import Array


@njit(cache=True, nogil=True)
def first_bad_loss(g: Array, needs_log: bool) -> int:
    """Index of the first loss that is negative, infinite or, under a logarithm, zero; -1 when there is none."""
    block = 512
    for start in range(0, g.size, block):
        stop = min(start + block, g.size)
        bad = 0
        for i in range(start, stop):
            x = g[i]
            bad += (x < 0.0) | (x == np.inf) | (needs_log & (x == 0.0))
        if bad:
            for i in range(start, stop):
                x = g[i]
                if x < 0.0 or x == np.inf or (needs_log and x == 0.0):
                    return i
    return -1


@njit(cache=True, nogil=True)
def add(total: Array, carry: Array, x: Array, w: float) -> None:
    """Add w x to total, and to carry exactly what rounding lost (Knuth's two-sum). NaN adds nothing."""
    for i in range(total.size):
        v = w * x[i] if x[i] == x[i] else 0.0
        old = total[i]
        new = old + v
        part = new - old
        carry[i] += (old - (new - part)) + (v - part)
        total[i] = new


@njit(cache=True, nogil=True)
def add_count(total: Array, carry: Array, x: Array, w: float) -> None:
    """Add w to total where x is a number."""
    for i in range(total.size):
        v = w if x[i] == x[i] else 0.0
        old = total[i]
        new = old + v
        part = new - old
        carry[i] += (old - (new - part)) + (v - part)
        total[i] = new


@njit(cache=True, nogil=True)
def fade(total: Array, carry: Array, forgetting: float) -> None:
    """Forget a little of all sums."""
    if forgetting != 1.0:
        total *= forgetting
        carry *= forgetting


@njit(cache=True, nogil=True)
def accumulate(total: Array, carry: Array, statistics: Array, w: Array, forgetting: float) -> None:
    """Fade the sums, then add a row's weight to the count, its statistics to the rest; rows of weight 0 are absent."""
    n_sums, n, _ = statistics.shape
    for t in range(n):
        if w[t] != 0.0:
            fade(total, carry, forgetting)
            add_count(total[0], carry[0], statistics[0, t], w[t])
            for k in range(n_sums):
                add(total[k + 1], carry[k + 1], statistics[k, t], w[t])


@njit(cache=True, nogil=True, fastmath={"reassoc"})
def dot(a: Array, b: Array) -> float:
    """Sum of a * b over the entries where b is a number."""
    s = 0.0
    for i in range(a.size):
        s += a[i] * b[i] if b[i] == b[i] else 0.0
    return s


@njit(cache=True, nogil=True)
def dots(weights: Array, G: Array, out: Array) -> None:
    """Weighted sum over the members for every row and label."""
    n, k, _ = G.shape
    for t in range(n):
        for label in range(k):
            out[t, label] = dot(weights, G[t, label])


@njit(cache=True, nogil=True)
def rate_losses_then_update(
    total: Array,
    carry: Array,
    G: Array,
    y: np.ndarray[tuple[int], np.dtype[np.intp]],
    w: Array,
    alpha: float,
    beta: float,
    theta: float,
    forgetting: float,
    out: Array,
) -> None:
    """Rule (12) at the posterior mean (11) for every row, then the row's losses into the sums."""
    n, k, m = G.shape
    weights = np.empty(m)
    for t in range(n):
        for i in range(m):
            weights[i] = theta * (alpha + (total[0, i] + carry[0, i])) / (beta + theta * (total[1, i] + carry[1, i]))
        for label in range(k):
            out[t, label] = dot(weights, G[t, label])
        if w[t] != 0.0:
            fade(total, carry, forgetting)
            add_count(total[0], carry[0], G[t, y[t]], w[t])
            add(total[1], carry[1], G[t, y[t]], w[t])
