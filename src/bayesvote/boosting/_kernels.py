"""The boosters' kernels: the one loop over the rows, and each booster's vote and way to teach its members."""

import math
from typing import NamedTuple

import numpy as np
from numba import njit
from numpy.typing import NDArray

from bayesvote._checks import Array
from bayesvote.boosting._member_kernels import (
    Ints,
    bayes_learn,
    bayes_scores,
    bayes_teach,
    look,
    notice,
    perceptron_scores,
    perceptron_step,
)
from bayesvote.boosting._poisson_kernels import poisson
from bayesvote.boosting._state import GRADIENT, OZA, SMOOTH, SMOOTH_CONVEX, BoosterState

_LEAST_ERROR = 1e-10  # keeps the vote of a member that was never wrong finite


class _Work(NamedTuple):
    """What is known of a row while its members are asked and taught."""

    scores: Array  # (m,)
    opinions: Array  # (m,), the scores brought into [-1, 1]
    step: Array  # (m,), how much of the row each Perceptron adds
    facts: Array  # (3, d), the row for naive Bayes
    buffer: Array  # (4, m)


@njit(cache=True, nogil=True, error_model="numpy")
def _opinion(score: float, bayes: bool) -> float:
    """A member's score brought into [-1, 1]: 2 P(class 1) - 1 for naive Bayes, cut off for a Perceptron."""
    return math.tanh(0.5 * score) if bayes else min(max(score, -1.0), 1.0)


@njit(cache=True, nogil=True, error_model="numpy")
def _oza_vote(book: Array, scores: Array) -> float:
    total = 0.0
    for i in range(scores.shape[0]):
        right, wrong = book[0, i], book[1, i]
        if right + wrong > 0.0:
            error = min(max(wrong / (right + wrong), _LEAST_ERROR), 1.0 - _LEAST_ERROR)
            vote = math.log((1.0 - error) / error)
            total += vote if scores[i] >= 0.0 else -vote
    return total


@njit(cache=True, nogil=True, error_model="numpy")
def _oza_teach(state: BoosterState, work: _Work, square: float, label: int, weight: float) -> None:
    book, scores, step, facts = state.book, work.scores, work.step, work.facts
    stats, totals, n_continuous = state.stats, state.totals, state.n_continuous[0]
    key, row, seen = state.clock[0], state.clock[1], state.seen[0]
    m = scores.shape[0]
    bayes = totals.size > 0
    sign = 2.0 * label - 1.0
    rate = weight
    for i in range(m):
        margin = sign * scores[i]
        if bayes or margin <= 0.0:  # a Perceptron that is right does not move, whatever k is
            k = poisson(rate, key, row * np.uint64(m) + np.uint64(i))
            if not bayes:
                step[i] = sign * min(k, math.floor(-margin / square) + 1.0)  # until it is right
                scores[i] += step[i] * square
            elif k > 0.0:
                scores[i] = bayes_teach(stats, totals, n_continuous, facts, label, k, i)
        side = 0 if (scores[i] >= 0.0) == (label == 1) else 1
        book[side, i] += rate
        rate *= seen / (2.0 * book[side, i])


@njit(cache=True, nogil=True, error_model="numpy")
def _selected(errors: Array, start: int, pool: int) -> int:
    """The member of least error among ``pool``, the first one of equals."""
    best = start
    for i in range(start + 1, start + pool):
        if errors[i] < errors[best]:
            best = i
    return best


@njit(cache=True, nogil=True, error_model="numpy")
def _gradient_vote(errors: Array, scores: Array, bayes: bool, pool: int) -> float:
    total = 0.0
    for start in range(0, scores.shape[0], pool):
        total += _opinion(scores[_selected(errors, start, pool)], bayes)
    return total


@njit(cache=True, nogil=True, error_model="numpy")
def _gradient_teach(state: BoosterState, work: _Work, square: float, label: int, weight: float, pool: int) -> None:
    errors, scores, step, facts = state.book[0], work.scores, work.step, work.facts
    stats, totals, n_continuous = state.stats, state.totals, state.n_continuous[0]
    bayes = totals.size > 0
    sign = 2.0 * label - 1.0
    total = 0.0
    for start in range(0, scores.shape[0], pool):
        for i in range(start, start + pool):
            margin = sign * scores[i]
            if margin > 0.0 and not bayes:  # it neither moves nor errs
                continue
            w = weight / (1.0 + math.exp(sign * total))
            if bayes:
                scores[i] = bayes_teach(stats, totals, n_continuous, facts, label, w, i)
            else:
                step[i] = sign * w
                scores[i] += step[i] * square
            if (scores[i] >= 0.0) != (label == 1):
                errors[i] += w
        total += _opinion(scores[_selected(errors, start, pool)], bayes)


@njit(cache=True, nogil=True, error_model="numpy")
def _smooth_vote(book: Array, opinions: Array, rule: int) -> float:
    m = opinions.shape[0]
    total = 0.0
    if rule == SMOOTH:
        for i in range(m):
            total += opinions[i]
        return total / float(m)
    if rule == SMOOTH_CONVEX:
        for i in range(m):
            total += book[0, i] * opinions[i]
        return total
    least = book[0].min()
    everyone = 0.0
    first = 0.0
    for i in range(m):
        first += opinions[i]
        expert = math.exp(-math.log(2.0) * (book[0, i] - least))
        total += expert if first >= 0.0 else -expert
        everyone += expert
    return total / everyone


@njit(cache=True, nogil=True, error_model="numpy")
def _smooth_weigh(book: Array, opinions: Array, rule: int, label: int, weight: float, step: float) -> None:
    """Teach the experts, or the convex weights by a step."""
    sign = 2.0 * label - 1.0
    if rule == SMOOTH_CONVEX:
        for i in range(opinions.shape[0]):
            book[0, i] += step * sign * opinions[i]
        _project(book[0])
        return
    first = 0.0
    for i in range(opinions.shape[0]):
        first += opinions[i]
        if (first >= 0.0) != (label == 1):
            book[0, i] += weight


@njit(cache=True, nogil=True, error_model="numpy")
def _project(x: Array) -> None:
    """Move x to the nearest point of the probability simplex (Michelot 1986)."""
    level = -np.inf
    n_active = x.shape[0] + 1
    while True:
        total = 0.0
        n_above = 0
        for i in range(x.shape[0]):
            if x[i] > level:
                total += x[i]
                n_above += 1
        if n_above >= n_active:
            break
        n_active = n_above
        level = (total - 1.0) / n_active
    for i in range(x.shape[0]):
        x[i] = max(x[i] - level, 0.0)


@njit(cache=True, nogil=True, error_model="numpy")
def _smooth_teach(state: BoosterState, work: _Work, label: int, weight: float, gamma: float) -> None:
    scores, opinions, step = work.scores, work.opinions, work.step
    bayes = state.totals.size > 0
    sign = 2.0 * label - 1.0
    theta = gamma / (2.0 + gamma)
    decay = 0.5 * math.log(1.0 - gamma)
    z = 0.0
    for i in range(scores.shape[0]):
        if bayes or sign * scores[i] <= 0.0:
            w = weight * math.exp(decay * z) if z > 0.0 else weight
            step[i] = w if bayes else sign * w
        z += sign * opinions[i] - theta
    if bayes:
        n_continuous = state.n_continuous[0]
        bayes_learn(state.stats, state.totals, n_continuous, work.facts, label, step, work.buffer)


@njit(cache=True, nogil=True, error_model="numpy")
def run(
    rule: int,
    gamma: float,
    pool: int,
    state: BoosterState,
    values: Array,
    columns: NDArray[np.int32],
    starts: Ints,
    sparse: bool,
    label: NDArray[np.intp],
    weight: Array,
    votes: Array,
) -> None:
    """Vote on each row, then learn it; a row with NaN, or of no weight, is not learned."""
    m = state.book.shape[1]
    d = max(state.weights.shape[0] - 1, state.order.shape[0])
    bayes = state.totals.size > 0
    work = _Work(np.empty(m), np.empty(m), np.empty(m), np.empty((3, d)), np.empty((4, m)))
    row = np.zeros(d)
    used = np.empty(d, np.int64)
    x = np.empty(d)
    for t in range(votes.shape[0]):
        n = 0
        square = 1.0  # the constant term's
        for p in range(starts[t], starts[t + 1]):
            if values[p] != 0.0:
                used[n] = columns[p if sparse else p - starts[t]]
                x[n] = values[p]
                square += x[n] * x[n]
                n += 1
        if math.isnan(square):
            votes[t] = 0.0
            continue
        if bayes:
            row[:] = 0.0
            for p in range(n):
                row[used[p]] = x[p]
            look(state, row, work.facts)
            bayes_scores(state.stats, state.totals, state.n_continuous[0], work.facts, work.scores, work.buffer)
        else:
            perceptron_scores(state.weights, used, x, n, work.scores)
        if rule == OZA:
            votes[t] = _oza_vote(state.book, work.scores)
        elif rule == GRADIENT:
            votes[t] = _gradient_vote(state.book[0], work.scores, bayes, pool)
        else:
            for i in range(m):
                work.opinions[i] = _opinion(work.scores[i], bayes)
            votes[t] = _smooth_vote(state.book, work.opinions, rule)
        if weight[t] == 0.0:
            continue
        state.clock[1] += np.uint64(1)
        work.step[:] = 0.0
        if bayes:
            notice(state, row, weight[t], work.facts)
        else:
            state.seen[0] += weight[t]
        if rule == OZA:
            _oza_teach(state, work, square, label[t], weight[t])
        elif rule == GRADIENT:
            _gradient_teach(state, work, square, label[t], weight[t], pool)
        else:
            if rule != SMOOTH:
                margin = (2.0 * label[t] - 1.0) * votes[t]
                if rule != SMOOTH_CONVEX or margin < gamma / (2.0 + gamma):
                    rate = weight[t] / math.sqrt(float(state.clock[1]))
                    _smooth_weigh(state.book, work.opinions, rule, label[t], weight[t], rate)
            _smooth_teach(state, work, label[t], weight[t], gamma)
        if not bayes:
            perceptron_step(state.weights, used, x, n, work.step)
