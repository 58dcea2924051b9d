"""Kernels of the members: Perceptrons, and naive Bayes with statistics of its own for each member.

The last axis of all statistics runs over the members, so that the inner loops do.
"""

import math

import numpy as np
from numba import njit
from numpy.typing import NDArray

from bayesvote._checks import Array
from bayesvote.boosting._state import BoosterState

Ints = NDArray[np.int64]

# Pseudo-samples: of a feature's overall variance in each class's, and of each value of a binary feature
# (where one whole sample is too much for one-hot data such as mushrooms).
_VARIANCE_PRIOR = 1.0
_BINARY_PRIOR = 0.1

# One logarithm for the product of so many factors: each lies well within 1e-18 to 1e18, the product in range.
_GROUP = 16


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


@njit(cache=True, nogil=True, error_model="numpy")
def look(state: BoosterState, row: Array, facts: Array) -> None:
    """Prepare a row for naive Bayes, in the state's order of features.

    For a continuous feature ``facts`` holds its value and the inverse of its overall variance. For a binary
    one, 1 if it is the second value, then b and c such that b + c q is its probability where q is that of the
    second value; b = 1 and c = 0 for a value that was never learned, which so says nothing.
    """
    n_continuous = state.n_continuous[0]
    for p in range(state.order.shape[0]):
        x = row[state.order[p]]
        if p < n_continuous:
            spread = state.overall[1, p, 0]
            facts[0, p] = x
            facts[1, p] = state.seen[0] / spread if spread > 0.0 else 0.0
        elif x == state.pair[0, p]:
            facts[0, p], facts[1, p], facts[2, p] = 0.0, 1.0, -1.0
        elif x == state.pair[1, p]:
            facts[0, p], facts[1, p], facts[2, p] = 1.0, 0.0, 1.0
        else:
            facts[0, p], facts[1, p], facts[2, p] = 0.0, 1.0, 0.0


@njit(cache=True, nogil=True, error_model="numpy")
def _gaussian(x: float, mean: float, squares: float, scale: float, inverse: float) -> tuple[float, float]:
    """Squared deviation and variance under a class, both relative to the overall variance."""
    deviation = x - mean
    return deviation * deviation * scale, (squares * scale + _VARIANCE_PRIOR) * inverse


@njit(cache=True, nogil=True, error_model="numpy")
def _log_odds(n0: float, n1: float, evidence: float) -> float:
    """Class weights and evidence together; the former alone while a class is unknown.

    Evidence is NaN where a value is infinitely unlikely in both classes, and counts for nothing then.
    """
    prior = math.log((n1 + _BINARY_PRIOR) / (n0 + _BINARY_PRIOR))
    return prior if n0 == 0.0 or n1 == 0.0 or math.isnan(evidence) else prior + evidence


@njit(cache=True, nogil=True, error_model="numpy")
def bayes_scores(stats: Array, totals: Array, n_continuous: int, facts: Array, scores: Array, buffer: Array) -> None:
    """Log-odds of class 1 by all naive Bayes members."""
    d, m = stats.shape[2:]
    for i in range(m):
        scores[i] = 0.0
        buffer[0, i] = buffer[1, i] = 1.0
        buffer[2, i] = 1.0 / (totals[0, i] + _VARIANCE_PRIOR)
        buffer[3, i] = 1.0 / (totals[1, i] + _VARIANCE_PRIOR)
    for p in range(n_continuous):
        x, scale = facts[0, p], facts[1, p]
        for i in range(m):
            a, u = _gaussian(x, stats[0, 0, p, i], stats[0, 1, p, i], scale, buffer[2, i])
            b, v = _gaussian(x, stats[1, 0, p, i], stats[1, 1, p, i], scale, buffer[3, i])
            scores[i] += (a * v - b * u) / (u * v)
            buffer[0, i] *= u
            buffer[1, i] *= v
        if p % _GROUP == _GROUP - 1 or p == n_continuous - 1:
            for i in range(m):
                scores[i] += math.log(buffer[0, i] / buffer[1, i])
                buffer[0, i] = buffer[1, i] = 1.0
    for i in range(m):
        scores[i] *= 0.5
        buffer[2, i] = 1.0 / (totals[0, i] + 2.0 * _BINARY_PRIOR)
        buffer[3, i] = 1.0 / (totals[1, i] + 2.0 * _BINARY_PRIOR)
    for p in range(n_continuous, d):
        b, c = facts[1, p], facts[2, p]
        for i in range(m):
            buffer[0, i] *= b + c * ((stats[0, 0, p, i] + _BINARY_PRIOR) * buffer[2, i])
            buffer[1, i] *= b + c * ((stats[1, 0, p, i] + _BINARY_PRIOR) * buffer[3, i])
        if p % _GROUP == _GROUP - 1 or p == d - 1:
            for i in range(m):
                scores[i] += math.log(buffer[1, i] / buffer[0, i])
                buffer[0, i] = buffer[1, i] = 1.0
    for i in range(m):
        scores[i] = _log_odds(totals[0, i], totals[1, i], scores[i])


@njit(cache=True, nogil=True, error_model="numpy")
def _learn(stats: Array, n_continuous: int, facts: Array, part: Array, rest: Array, weight: Array) -> None:
    """Weighted running mean and squared deviations (West 1979), or weight of the second value, of one class."""
    m = weight.shape[0]
    for p in range(n_continuous):
        x = facts[0, p]
        for i in range(m):
            deviation = x - stats[0, p, i]
            stats[0, p, i] += part[i] * deviation
            stats[1, p, i] += rest[i] * deviation * deviation
    for p in range(n_continuous, facts.shape[1]):
        if facts[0, p] == 1.0:
            for i in range(m):
                stats[0, p, i] += weight[i]


@njit(cache=True, nogil=True, error_model="numpy")
def bayes_learn(
    stats: Array, totals: Array, n_continuous: int, facts: Array, label: int, weight: Array, buffer: Array
) -> None:
    """Teach all naive Bayes members a row, member i with its own weight."""
    for i in range(weight.shape[0]):
        totals[label, i] += weight[i]
        buffer[0, i] = weight[i] / totals[label, i] if weight[i] > 0.0 else 0.0
        buffer[1, i] = weight[i] * (1.0 - buffer[0, i])
    _learn(stats[label], n_continuous, facts, buffer[0], buffer[1], weight)


@njit(cache=True, nogil=True, error_model="numpy")
def bayes_teach(
    stats: Array, totals: Array, n_continuous: int, facts: Array, label: int, weight: float, i: int
) -> float:
    """Teach one member a row and return its score after that: ``bayes_learn`` and ``bayes_scores`` in one pass."""
    other = 1 - label
    totals[label, i] += weight
    n, n_other = totals[label, i], totals[other, i]
    part = weight / n if weight > 0.0 else 0.0
    rest = weight * (1.0 - part)
    inverse, inverse_other = 1.0 / (n + _VARIANCE_PRIOR), 1.0 / (n_other + _VARIANCE_PRIOR)
    evidence = 0.0  # for the label
    end = 0
    while end < n_continuous:
        start, end = end, min(end + _GROUP, n_continuous)
        product = product_other = 1.0
        for p in range(start, end):
            x, scale = facts[0, p], facts[1, p]
            deviation = x - stats[label, 0, p, i]
            mean = stats[label, 0, p, i] + part * deviation
            squares = stats[label, 1, p, i] + rest * deviation * deviation
            stats[label, 0, p, i], stats[label, 1, p, i] = mean, squares
            a, u = _gaussian(x, mean, squares, scale, inverse)
            b, v = _gaussian(x, stats[other, 0, p, i], stats[other, 1, p, i], scale, inverse_other)
            evidence += (b * u - a * v) / (u * v)
            product *= u
            product_other *= v
        evidence += math.log(product_other / product)
    evidence *= 0.5
    inverse, inverse_other = 1.0 / (n + 2.0 * _BINARY_PRIOR), 1.0 / (n_other + 2.0 * _BINARY_PRIOR)
    while end < facts.shape[1]:
        start, end = end, min(end + _GROUP, facts.shape[1])
        product = product_other = 1.0
        for p in range(start, end):
            second = stats[label, 0, p, i] + weight * facts[0, p]
            stats[label, 0, p, i] = second
            product *= facts[1, p] + facts[2, p] * ((second + _BINARY_PRIOR) * inverse)
            product_other *= facts[1, p] + facts[2, p] * ((stats[other, 0, p, i] + _BINARY_PRIOR) * inverse_other)
        evidence += math.log(product / product_other)
    return _log_odds(totals[0, i], totals[1, i], evidence if label == 1 else -evidence)


@njit(cache=True, nogil=True, error_model="numpy")
def _spread(stats: Array, p: int, totals: Array, first: float, second: float) -> None:
    """Turn the weights of a second value into means and squared deviations."""
    gap = second - first
    for i in range(totals.shape[0]):
        share = stats[0, p, i] / totals[i] if totals[i] > 0.0 else 0.0
        stats[0, p, i] = first + share * gap
        stats[1, p, i] = totals[i] * share * (1.0 - share) * gap * gap


@njit(cache=True, nogil=True, error_model="numpy")
def _swap(stats: Array, p: int, q: int) -> None:
    for k in range(2):
        for i in range(stats.shape[2]):
            stats[k, p, i], stats[k, q, i] = stats[k, q, i], stats[k, p, i]


@njit(cache=True, nogil=True, error_model="numpy")
def notice(state: BoosterState, row: Array, weight: float, facts: Array) -> None:
    """Take in what is common to all members of a row to be learned, then look at it again.

    A third value makes a feature continuous; what its members learned of it so far is kept exactly.
    """
    for p in range(state.n_continuous[0], state.order.shape[0]):
        x = row[state.order[p]]
        if math.isnan(state.pair[0, p]):
            state.pair[0, p] = x
        first, second = state.pair[0, p], state.pair[1, p]
        if x in (first, second):
            continue
        if math.isnan(second):
            state.pair[1, p] = x
            continue
        q = state.n_continuous[0]
        state.n_continuous[0] += 1
        _spread(state.overall, p, state.seen, first, second)
        _swap(state.overall, p, q)
        for c in range(2):
            _spread(state.stats[c], p, state.totals[c], first, second)
            _swap(state.stats[c], p, q)
            state.pair[c, p], state.pair[c, q] = state.pair[c, q], state.pair[c, p]
        state.order[p], state.order[q] = state.order[q], state.order[p]
    look(state, row, facts)
    state.seen[0] += weight
    part = weight / state.seen[0]
    _learn(
        state.overall,
        state.n_continuous[0],
        facts,
        np.array([part]),
        np.array([weight * (1.0 - part)]),
        np.array([weight]),
    )
    look(state, row, facts)
