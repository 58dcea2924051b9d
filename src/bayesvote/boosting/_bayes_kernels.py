"""Kernels of naive Bayes members, each with statistics of its own.

The last axis of all statistics runs over the members, so that the inner loops do, where members can be taken together.
"""

import math
from typing import NamedTuple

import numpy as np
from numba import njit
from numpy.typing import NDArray

from bayesvote._checks import Array
from bayesvote.boosting._state import BoosterState

Places = NDArray[np.uint64]

# Pseudo-samples: of a feature's overall variance in each class's, and of each value of a binary feature
# (where one whole sample is too much for one-hot data such as mushrooms).
_VARIANCE_PRIOR = 1.0
_BINARY_PRIOR = 0.1

# Products are kept as a factor and a logarithm. So many variances, and so many binary features, are multiplied before
# the logarithm is taken: each lies well within 1e-10 to 1e10, and the factor in range.
_VARIANCES, _VALUES = 16, 8
# A product of probabilities is raised by a power of two whenever it falls below its inverse.
_RAISE, _LOG_RAISE = 2.0**300, 300.0 * math.log(2.0)


class BayesWork(NamedTuple):
    """What naive Bayes members make of a row, and what of all rows. Products: (..., 2, m), factor and logarithm."""

    facts: Array  # (3, d), see `look`
    unusual: Places  # (1 + d,), how many binary features do not show their first value, and which
    usual: Array  # (2, 2, m), per class the probability that all binary features show their first value
    given: Array  # (2, 2, m), per class its probability and that of the row, but for a constant
    apart: Array  # (d, m), squared deviations of the row from the means of its class, in overall variances
    spread: Array  # (d, m), those of the past rows of its class, and the prior's
    buffer: Array  # (2, m)


@njit(cache=True, nogil=True, error_model="numpy")
def bayes_work(state: BoosterState) -> BayesWork:
    """Make room, and find what depends on the state alone."""
    d, m = state.stats.shape[2:]
    work = BayesWork(
        np.empty((3, d)),
        np.empty(1 + d, np.uint64),
        np.empty((2, 2, m)),
        np.empty((2, 2, m)),
        np.empty((d, m)),
        np.empty((d, m)),
        np.empty((2, m)),
    )
    if state.totals.size > 0:
        for c in range(2):
            usual_all(state.stats, state.totals, state.n_continuous[0], c, work.usual, work.buffer)
    return work


@njit(cache=True, nogil=True, error_model="numpy")
def look(state: BoosterState, row: Array, work: BayesWork) -> None:
    """Prepare a row for naive Bayes, in the state's order of features.

    For a continuous feature ``facts`` holds its value and the inverse of its overall variance. For a binary
    one, 1 if it is the second value, then b and c such that b + c q is its probability where q is that of the
    second value; b = 1 and c = 0 for a value that was never learned, which so says nothing.
    """
    facts, unusual = work.facts, work.unusual
    n_continuous = state.n_continuous[0]
    for p in range(n_continuous):
        spread = state.overall[1, p, 0]
        facts[0, p] = row[state.order[p]]
        facts[1, p] = state.seen[0] / spread if spread > 0.0 else 0.0
    n = 0
    for p in range(n_continuous, state.order.shape[0]):
        x = row[state.order[p]]
        if x == state.pair[0, p]:
            facts[0, p] = 0.0
            continue
        n += 1
        unusual[n] = p
        second = x == state.pair[1, p]
        facts[0, p], facts[1, p], facts[2, p] = (1.0, 0.0, 1.0) if second else (0.0, 1.0, 0.0)
    unusual[0] = n


@njit(cache=True, nogil=True, error_model="numpy", forceinline=True)
def _usual_four(stats: Array, c: int, p: int, none: float, inverse: float, i: int) -> float:
    """Probability of the first values of four binary features; ``none`` is that of one whose second never was."""
    q, r, s = p + np.uint64(1), p + np.uint64(2), p + np.uint64(3)  # unsigned: not to be looked at from the end
    one: float = none - stats[c, 0, p, i] * inverse
    two: float = none - stats[c, 0, q, i] * inverse
    three: float = none - stats[c, 0, r, i] * inverse
    four: float = none - stats[c, 0, s, i] * inverse
    return (one * two) * (three * four)


@njit(cache=True, nogil=True, error_model="numpy")
def usual_all(stats: Array, totals: Array, n_continuous: int, c: int, usual: Array, buffer: Array) -> None:
    """Probability of the first values of all binary features in class c, by all members."""
    d, m = stats.shape[2:]
    fours = d - (d - n_continuous) % 4
    for i in range(m):
        usual[c, 0, i] = 1.0
        usual[c, 1, i] = 0.0
        buffer[1, i] = 1.0 / (totals[c, i] + 2.0 * _BINARY_PRIOR)
        buffer[0, i] = 1.0 - _BINARY_PRIOR * buffer[1, i]
    for p in range(np.uint64(n_continuous), np.uint64(fours), np.uint64(4)):
        for i in range(m):
            usual[c, 0, i] *= _usual_four(stats, c, p, buffer[0, i], buffer[1, i], i)
        if (p - np.uint64(n_continuous)) % np.uint64(16) == np.uint64(12):
            for i in range(m):
                low = usual[c, 0, i] < 1.0 / _RAISE
                usual[c, 0, i] *= _RAISE if low else 1.0
                usual[c, 1, i] -= _LOG_RAISE if low else 0.0
    for p in range(fours, d):
        for i in range(m):
            usual[c, 0, i] *= buffer[0, i] - stats[c, 0, p, i] * buffer[1, i]


@njit(cache=True, nogil=True, error_model="numpy", forceinline=True)
def _usual_one(stats: Array, total: float, n_continuous: int, c: int, usual: Array, i: int) -> None:
    """The same by one member, to the last bit."""
    d = stats.shape[2]
    fours = d - (d - n_continuous) % 4
    inverse = 1.0 / (total + 2.0 * _BINARY_PRIOR)
    none = 1.0 - _BINARY_PRIOR * inverse
    product, log = 1.0, 0.0
    for p in range(np.uint64(n_continuous), np.uint64(fours), np.uint64(4)):
        product *= _usual_four(stats, c, p, none, inverse, i)
        if (p - np.uint64(n_continuous)) % np.uint64(16) == np.uint64(12) and product < 1.0 / _RAISE:
            product *= _RAISE
            log -= _LOG_RAISE
    for p in range(fours, d):
        product *= none - stats[c, 0, p, i] * inverse
    usual[c, 0, i] = product
    usual[c, 1, i] = log


@njit(cache=True, nogil=True, error_model="numpy")
def weigh(state: BoosterState, c: int, work: BayesWork) -> None:
    """Probability of class c and the row by all members.

    Sums of a / v over variances v are kept as one fraction, whose denominator, their product, is needed anyway.
    """
    stats, totals, facts, unusual = state.stats[c], state.totals[c], work.facts, work.unusual
    above, log, below, inverse = work.given[c, 0], work.given[c, 1], work.buffer[0], work.buffer[1]
    usual, n_continuous = work.usual[c], state.n_continuous[0]
    m = totals.shape[0]
    for i in range(m):
        log[i] = 0.0
        above[i] = 0.0
        below[i] = 1.0
        inverse[i] = 1.0 / (totals[i] + _VARIANCE_PRIOR)
    for p in range(n_continuous):
        x, scale = facts[0, p], facts[1, p]
        for i in range(m):
            deviation = x - stats[0, p, i]
            variance = (stats[1, p, i] * scale + _VARIANCE_PRIOR) * inverse[i]
            above[i] = above[i] * variance + deviation * deviation * scale * below[i]
            below[i] *= variance
        if p % _VARIANCES == _VARIANCES - 1:
            for i in range(m):
                log[i] += above[i] / below[i] + math.log(below[i])
                above[i] = 0.0
                below[i] = 1.0
    for i in range(m):
        log[i] = usual[1, i] - 0.5 * (log[i] + above[i] / below[i])
        above[i] = usual[0, i] * (totals[i] + _BINARY_PRIOR)
        below[i] = math.sqrt(below[i])
        inverse[i] = 1.0 / (totals[i] + 2.0 * _BINARY_PRIOR)
    for k in range(unusual[0]):
        p = unusual[1 + k]
        base, slope = facts[1, p], facts[2, p]
        for i in range(m):
            second = (stats[0, p, i] + _BINARY_PRIOR) * inverse[i]
            above[i] *= base + slope * second
            below[i] *= 1.0 - second
        if k % _VALUES == _VALUES - 1:
            for i in range(m):
                log[i] += math.log(above[i] / below[i])
                above[i] = below[i] = 1.0
    for i in range(m):
        above[i] /= below[i]


@njit(cache=True, nogil=True, error_model="numpy", forceinline=True)
def _to_opinion(odds: float, n0: float, n1: float) -> float:
    """2 P(class 1) - 1 from the odds of class 1, or from the class weights alone while a class is unknown.

    Odds are NaN where a value is infinitely unlikely in both classes, and count for nothing then.
    """
    if n0 == 0.0 or n1 == 0.0 or math.isnan(odds):
        odds = (n1 + _BINARY_PRIOR) / (n0 + _BINARY_PRIOR)
    return 1.0 - 2.0 / (1.0 + odds)


@njit(cache=True, nogil=True, error_model="numpy")
def bayes_opinions(state: BoosterState, work: BayesWork, opinions: Array) -> None:
    """2 P(class 1) - 1 by all naive Bayes members."""
    totals, given = state.totals, work.given
    weigh(state, 0, work)
    weigh(state, 1, work)
    for i in range(opinions.shape[0]):
        odds = given[1, 0, i] / given[0, 0, i] * math.exp(given[1, 1, i] - given[0, 1, i])
        opinions[i] = _to_opinion(odds, totals[0, i], totals[1, i])


@njit(cache=True, nogil=True, error_model="numpy")
def foresee(state: BoosterState, label: int, work: BayesWork) -> None:
    """Work out for all members at once what `learned_opinion` needs of each."""
    stats, facts, apart, spread = state.stats[label], work.facts, work.apart, work.spread
    for p in range(state.n_continuous[0]):
        x, scale = facts[0, p], facts[1, p]
        for i in range(stats.shape[2]):
            deviation = x - stats[0, p, i]
            apart[p, i] = deviation * deviation * scale
            spread[p, i] = stats[1, p, i] * scale + _VARIANCE_PRIOR
    weigh(state, 1 - label, work)


@njit(cache=True, nogil=True, error_model="numpy", forceinline=True)
def learned_opinion(state: BoosterState, work: BayesWork, label: int, weight: float, i: int) -> float:
    """Teach member i the row but for its continuous features; return its opinion once it has learned these too.

    With n past samples of the class a mean moves by w / (n + w) of the deviation, and w n / (n + w) times
    the squared deviation is added to the squares.
    """
    stats, totals, n_continuous = state.stats, state.totals, state.n_continuous[0]
    facts, unusual, usual, given, apart, spread = (
        work.facts,
        work.unusual,
        work.usual,
        work.given,
        work.apart,
        work.spread,
    )
    before, other = totals[label, i], totals[1 - label, i]
    n = before + weight
    totals[label, i] = n
    for k in range(unusual[0]):
        p = unusual[1 + k]
        stats[label, 0, p, i] += weight * facts[0, p]
    _usual_one(stats, n, n_continuous, label, usual, i)
    kept = before / n
    rest = weight * kept
    inverse = 1.0 / (n + _VARIANCE_PRIOR)
    distance = 0.0
    log = usual[label, 1, i] - given[1 - label, 1, i]
    below = 1.0
    for p in range(n_continuous):
        variance = (spread[p, i] + rest * apart[p, i]) * inverse
        distance += apart[p, i] / variance
        below *= variance
        if p % _VARIANCES == _VARIANCES - 1:
            log -= 0.5 * math.log(below)
            below = 1.0
    above = usual[label, 0, i] * (n + _BINARY_PRIOR)
    below = math.sqrt(below)
    inverse = 1.0 / (n + 2.0 * _BINARY_PRIOR)
    for k in range(unusual[0]):
        p = unusual[1 + k]
        second = (stats[label, 0, p, i] + _BINARY_PRIOR) * inverse
        above *= facts[1, p] + facts[2, p] * second
        below *= 1.0 - second
        if k % _VALUES == _VALUES - 1:
            log += math.log(above / below)
            above = below = 1.0
    odds = above / (below * given[1 - label, 0, i]) * math.exp(log - 0.5 * kept * kept * distance)
    opinion = _to_opinion(odds, other, n)
    return opinion if label == 1 else -opinion


@njit(cache=True, nogil=True, error_model="numpy")
def _learn(stats: Array, n_continuous: int, facts: Array, part: Array, rest: Array) -> None:
    """Weighted running mean and squared deviations of continuous features (West 1979), of one class."""
    for p in range(n_continuous):
        x = facts[0, p]
        for i in range(part.shape[0]):
            deviation = x - stats[0, p, i]
            stats[0, p, i] += part[i] * deviation
            stats[1, p, i] += rest[i] * deviation * deviation


@njit(cache=True, nogil=True, error_model="numpy")
def learn_continuous(state: BoosterState, label: int, weight: Array, work: BayesWork) -> None:
    """Teach all members the continuous features of a row whose weights are in their totals already."""
    part, rest = work.buffer[0], work.buffer[1]
    for i in range(weight.shape[0]):
        part[i] = weight[i] / state.totals[label, i] if weight[i] > 0.0 else 0.0
        rest[i] = weight[i] * (1.0 - part[i])
    _learn(state.stats[label], state.n_continuous[0], work.facts, part, rest)


@njit(cache=True, nogil=True, error_model="numpy")
def learn_binary(state: BoosterState, label: int, weight: Array, work: BayesWork) -> None:
    """Teach all members the row's class and its binary features."""
    counts, totals, m = state.stats[label, 0], state.totals[label], weight.shape[0]
    for i in range(m):
        totals[i] += weight[i]
    for k in range(work.unusual[0]):
        p = work.unusual[1 + k]
        for i in range(m):
            counts[p, i] += weight[i] * work.facts[0, p]
    usual_all(state.stats, state.totals, state.n_continuous[0], label, work.usual, work.buffer)


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
def notice(state: BoosterState, row: Array, weight: float, work: BayesWork) -> None:
    """Take in what is common to all members of a row to be learned, then look at it again.

    A third value makes a feature continuous; what its members learned of it so far is kept exactly.
    """
    known = state.n_continuous[0]
    for k in range(work.unusual[0]):
        p = work.unusual[1 + k]
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
    if state.n_continuous[0] > known:
        for c in range(2):
            usual_all(state.stats, state.totals, state.n_continuous[0], c, work.usual, work.buffer)
    look(state, row, work)
    state.seen[0] += weight
    part = weight / state.seen[0]
    rest = weight * (1.0 - part)
    for p in range(state.n_continuous[0]):
        deviation = work.facts[0, p] - state.overall[0, p, 0]
        state.overall[0, p, 0] += part * deviation
        state.overall[1, p, 0] += rest * deviation * deviation
    for k in range(work.unusual[0]):
        p = work.unusual[1 + k]
        state.overall[0, p, 0] += weight * work.facts[0, p]
    look(state, row, work)
