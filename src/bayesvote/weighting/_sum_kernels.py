"""Kernels of states that are sums, and of the losses that feed them."""

import numpy as np
from numba import njit

from bayesvote._checks import Array, Labels
from bayesvote._loss_kernels import of_both


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
def has_nan(x: Array) -> bool:
    """Whether some number is missing."""
    found = 0
    for i in range(np.uint64(x.size)):
        found += x[i] != x[i]
    return found > 0


@njit(cache=True, nogil=True)
def dots(weights: Array, G: Array, out: Array) -> None:
    """Weighted sum over the members for every row and label."""
    n, k, _ = G.shape
    for t in range(n):
        for label in range(k):
            out[t, label] = dot(weights, G[t, label])


@njit(cache=True, nogil=True, error_model="numpy")
def rate_weights(total: Array, carry: Array, alpha: float, beta: float, theta: float, out: Array) -> None:
    """Theta times the means (11)."""
    for i in range(np.uint64(out.size)):
        out[i] = theta * (alpha + (total[0, i] + carry[0, i])) / (beta + theta * (total[1, i] + carry[1, i]))


@njit(cache=True, nogil=True, error_model="numpy")
def add_and_weigh(
    total: Array, carry: Array, g: Array, w: float, top: float, beta: float, theta: float, out: Array
) -> None:
    """Do what `add` and then `rate_weights` do, in one go, for members of one count and so one numerator."""
    for i in range(np.uint64(g.size)):
        v = w * g[i]
        old = total[i]
        new = old + v
        part = new - old
        lost = carry[i] + ((old - (new - part)) + (v - part))
        total[i] = new
        carry[i] = lost
        out[i] = top / (beta + theta * (new + lost))


@njit(cache=True, nogil=True, error_model="numpy")
def rate_rows(
    total: Array,
    carry: Array,
    loss: int,
    scores: Array,
    G: Array,
    y: Labels,
    w: Array,
    alpha: float,
    beta: float,
    theta: float,
    forgetting: float,
    out: Array,
) -> None:
    """Rule (12) at the posterior mean (11) for every row, then the row's losses into the sums.

    From the losses ``G`` (n, K, m) of every label or, when ``scores`` (n, m) are given, from those of two classes
    by a named loss; ``G`` is then room for one row.
    """
    weights = np.empty(total.shape[1])
    rate_weights(total, carry, alpha, beta, theta, weights)
    # As long as nobody abstains, all members have the same count; it is then kept for the first alone.
    shared = not has_nan(scores.reshape(-1) if len(scores) else G.reshape(-1))
    shared = shared and bool(np.all(total[0] == total[0, 0]) and np.all(carry[0] == carry[0, 0]))
    for t in range(len(y)):
        at = 0 if len(scores) else t
        if len(scores):
            of_both(loss, scores[t], G[0])
        for k in range(G.shape[1]):
            out[t, k] = dot(weights, G[at, k])
        if w[t] != 0.0:
            fade(total, carry, forgetting)
            g = G[at, y[t]]
            if shared:
                add_count(total[0, :1], carry[0, :1], g, w[t])
                top = theta * (alpha + (total[0, 0] + carry[0, 0]))
                add_and_weigh(total[1], carry[1], g, w[t], top, beta, theta, weights)
            else:
                add_count(total[0], carry[0], g, w[t])
                add(total[1], carry[1], g, w[t])
                rate_weights(total, carry, alpha, beta, theta, weights)
    if shared:
        total[0], carry[0] = total[0, 0], carry[0, 0]
