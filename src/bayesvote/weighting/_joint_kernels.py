"""Kernels of :class:`JointGaussian`: rank-one updates of several Gaussian posteriors side by side."""

import math

import numpy as np
from numba import njit

from bayesvote._checks import Array


@njit(cache=True, nogil=True, fastmath={"reassoc"})
def inner(a: Array, b: Array) -> float:
    """Dot product."""
    s = 0.0
    for i in range(a.size):
        s += a[i] * b[i]
    return s


@njit(cache=True, nogil=True)
def to_margins(g: Array, out: Array) -> None:
    """Members' margins 1 - 2g; 0, which takes no side, where a member abstains."""
    for i in range(g.size):
        out[i] = 1.0 - 2.0 * g[i] if g[i] == g[i] else 0.0


@njit(cache=True, nogil=True)
def margin_losses(weights: Array, G: Array, out: Array) -> None:
    """(1 - weighted margin)/2 of every row and label."""
    n, k, m = G.shape
    x = np.empty(m)
    for t in range(n):
        for label in range(k):
            to_margins(G[t, label], x)
            out[t, label] = 0.5 - 0.5 * inner(weights, x)


@njit(cache=True, nogil=True)
def mix(evidence: Array, means: Array, out: Array) -> None:
    """Average of the means, weighted by exp(evidence)."""
    top, total = evidence.max(), 0.0
    out[:] = 0.0
    for p in range(evidence.size):
        weight = math.exp(evidence[p] - top)
        total += weight
        for i in range(out.size):
            out[i] += weight * means[p, i]
    for i in range(out.size):
        out[i] /= total


@njit(cache=True, nogil=True)
def add_scaled(row: Array, factor: float, x: Array) -> None:
    """Add factor x to row."""
    for j in range(row.size):
        row[j] += factor * x[j]


@njit(cache=True, nogil=True, fastmath={"reassoc", "contract"})
def lower_product(lower: Array, x: Array, out: Array) -> None:
    """Product of x with the symmetric matrix of that lower triangle, reading each entry once."""
    for i in range(x.size):
        row, at_i, total = lower[i], x[i], 0.0
        for j in range(i):
            total += row[j] * x[j]
            out[j] += row[j] * at_i
        out[i] = total + row[i] * at_i


@njit(cache=True, nogil=True, fastmath={"contract"})
def lower_update(lower: Array, scale: float, factor: float, s: Array) -> None:
    """Scale the lower triangle and add factor s s' to it."""
    for i in range(s.size):
        row, of_i = lower[i], factor * s[i]
        for j in range(i + 1):
            row[j] = scale * row[j] + of_i * s[j]


@njit(cache=True, nogil=True)
def learn(x: Array, w: float, theta: float, forgetting: float, covariance: Array, mean: Array, s: Array) -> float:
    """Condition one Gaussian on "the margin of x is 1"; return the logarithm of the evidence for it.

    Of the covariance only the lower triangle is read and kept.
    """
    scale = 1.0 / forgetting
    lower_product(covariance, x, s)
    for i in range(x.size):
        s[i] *= scale
    spread = 1.0 + theta * w * inner(s, x)
    gain, residual = theta * w / spread, 1.0 - inner(mean, x)
    add_scaled(mean, gain * residual, s)
    lower_update(covariance, scale, -gain, s)
    return -0.5 * (math.log(spread) + gain * residual * residual)


@njit(cache=True, nogil=True)
def invert(a: Array, out: Array) -> float:
    """Lower triangle of the inverse of a positive definite matrix, by Cholesky; return its log-determinant.

    Not LAPACK's: its bits depend on the number of threads.
    """
    m = len(a)
    log_det = 0.0
    for i in range(m):
        for j in range(i):
            a[i, j] = (a[i, j] - inner(a[i, :j], a[j, :j])) / a[j, j]
        a[i, i] = math.sqrt(a[i, i] - inner(a[i, :i], a[i, :i]))
        log_det += 2.0 * math.log(a[i, i])
    inverse = np.zeros((m, m))  # of the factor
    out[:] = 0.0
    for i in range(m):
        row = inverse[i, : i + 1]
        for j in range(i):
            add_scaled(row[: j + 1], -a[i, j], inverse[j, : j + 1])
        row[i] = 1.0
        row /= a[i, i]
        for j in range(i + 1):
            add_scaled(out[j, : j + 1], row[j], row)
    return log_det


@njit(cache=True, nogil=True)
def stream(
    G: Array,
    truth: Array,
    w: Array,
    theta: float,
    forgetting: float,
    recent: Array,
    covariances: Array,
    means: Array,
    evidence: Array,
    out: Array,
) -> None:
    """Losses of every row, then the row into the posteriors and the recent sums: weight, margins, their products."""
    n, _, m = G.shape
    x, s, weights = np.empty(m), np.empty(m), np.empty(m)
    for t in range(n):
        mix(evidence, means, weights)
        margin_losses(weights, G[t : t + 1], out[t : t + 1])
        if w[t] == 0.0:
            continue
        to_margins(truth[t], x)
        if forgetting != 1.0:
            recent *= forgetting
        recent[0] += w[t]
        add_scaled(recent[1 : 1 + m], w[t], x)
        lower_update(recent[1 + m :].reshape(m, m), 1.0, w[t], x)
        for p in range(evidence.size):
            gained = learn(x, w[t], theta, forgetting, covariances[p], means[p], s)
            evidence[p] = forgetting * evidence[p] + gained
