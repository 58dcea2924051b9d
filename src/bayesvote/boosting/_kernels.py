"""The boosters' kernels: the one loop over the rows, and each booster's vote and way to teach its members."""

import math
from typing import NamedTuple

import numpy as np
from numba import njit
from numpy.typing import NDArray

from bayesvote._checks import Array
from bayesvote.boosting._bayes_kernels import (
    BayesWork,
    bayes_opinions,
    bayes_work,
    foresee,
    learn_binary,
    learn_continuous,
    learned_opinion,
    look,
    notice,
)
from bayesvote.boosting._perceptron_kernels import Ints, perceptron_scores, perceptron_step
from bayesvote.boosting._poisson_kernels import poisson
from bayesvote.boosting._state import GRADIENT, GROUP, OZA, SMOOTH, SMOOTH_CONVEX, BoosterState, Rule

_LEAST_ERROR = 1e-10  # keeps the vote of a member that was never wrong finite


class _Work(NamedTuple):
    """What is known of a row while its members are asked and taught."""

    scores: Array  # (m,)
    opinions: Array  # (m,), the scores brought into [-1, 1]
    weight: Array  # (m,), the weight that each member learns the row with; signed by the label for Perceptrons


@njit(cache=True, nogil=True, error_model="numpy")
def _cut(score: float) -> float:
    """A score brought into [-1, 1], where those of naive Bayes are already."""
    return min(max(score, -1.0), 1.0)


@njit(cache=True, nogil=True, error_model="numpy")
def _oza_vote(record: Array, scores: Array, vote: float) -> float:
    """Add the members' votes; one logarithm for the product of a group's odds."""
    m = scores.shape[0]
    for start in range(0, m, GROUP):
        above = below = 1.0
        for i in range(start, min(start + GROUP, m)):
            right, wrong = record[0, i], record[1, i]
            if right + wrong > 0.0:
                error = min(max(wrong / (right + wrong), _LEAST_ERROR), 1.0 - _LEAST_ERROR)
                above *= 1.0 - error if scores[i] >= 0.0 else error
                below *= error if scores[i] >= 0.0 else 1.0 - error
        vote += math.log(above / below)
    return vote


@njit(cache=True, nogil=True, error_model="numpy")
def _oza_teach(
    rule: Rule, state: BoosterState, work: _Work, facts: BayesWork, length: float, label: int, rate: float
) -> float:
    record, scores, weights = state.record, work.scores, work.weight
    key, draw = state.clock[0], state.clock[1] * np.uint64(rule.n_members) + np.uint64(rule.first)
    half = 0.5 * state.seen[0]
    bayes = state.totals.size > 0
    sign = 2.0 * label - 1.0
    for i in range(scores.shape[0]):
        margin = sign * scores[i]
        right = scores[i] >= 0.0 if label == 1 else scores[i] < 0.0
        if bayes or margin <= 0.0:  # a Perceptron that is right does not move, whatever k is
            k = poisson(rate, key, draw + np.uint64(i))
            if not bayes:
                k = min(k, math.floor(-margin / length) + 1.0)  # until it is right
                weights[i] = sign * k
                scores[i] += weights[i] * length
            elif k > 0.0:
                weights[i] = k
                scores[i] = learned_opinion(state, facts, label, k, i)
            right = scores[i] >= 0.0 if label == 1 else scores[i] < 0.0
        if right:
            record[0, i] += rate
            rate = rate * half / record[0, i]
        else:
            record[1, i] += rate
            rate = rate * half / record[1, i]
    return rate


@njit(cache=True, nogil=True, error_model="numpy")
def _selected(errors: Array, start: int, pool: int) -> int:
    """The member of least error among ``pool``, the first one of equals."""
    best = start
    for i in range(start + 1, start + pool):
        if errors[i] < errors[best]:
            best = i
    return best


@njit(cache=True, nogil=True, error_model="numpy")
def _gradient_vote(errors: Array, scores: Array, pool: int, vote: float) -> float:
    for start in range(0, scores.shape[0], pool):
        vote += _cut(scores[_selected(errors, start, pool)])
    return vote


@njit(cache=True, nogil=True, error_model="numpy")
def _gradient_teach(
    rule: Rule,
    state: BoosterState,
    work: _Work,
    facts: BayesWork,
    length: float,
    label: int,
    weight: float,
    total: float,
) -> float:
    errors, scores, weights = state.record[0], work.scores, work.weight
    bayes = state.totals.size > 0
    sign = 2.0 * label - 1.0
    for start in range(0, scores.shape[0], rule.pool):
        for i in range(start, start + rule.pool):
            if sign * scores[i] > 0.0 and not bayes:  # it neither moves nor errs
                continue
            w = weight / (1.0 + math.exp(sign * total))
            if bayes:
                weights[i] = w
                scores[i] = learned_opinion(state, facts, label, w, i)
            else:
                weights[i] = sign * w
                scores[i] += weights[i] * length
            if (scores[i] >= 0.0) != (label == 1):
                errors[i] += w
        total += _cut(scores[_selected(errors, start, rule.pool)])
    return total


@njit(cache=True, nogil=True, error_model="numpy")
def _smooth_vote(rule: Rule, record: Array, opinions: Array, vote: float) -> float:
    m = opinions.shape[0]
    if rule.kind == SMOOTH:
        share = 1.0 / rule.n_members
        for i in range(m):
            vote += share * opinions[i]
        return vote
    total = 0.0
    if rule.kind == SMOOTH_CONVEX:
        for i in range(m):
            total += record[0, i] * opinions[i]
        return total
    least = record[0].min()
    everyone = 0.0
    first = 0.0
    for i in range(m):
        first += opinions[i]
        expert = math.exp(-math.log(2.0) * (record[0, i] - least))
        total += expert if first >= 0.0 else -expert
        everyone += expert
    return total / everyone


@njit(cache=True, nogil=True, error_model="numpy")
def _smooth_weigh(record: Array, opinions: Array, rule: int, label: int, weight: float, step: float) -> None:
    """Teach the experts, or the convex weights by a step."""
    sign = 2.0 * label - 1.0
    if rule == SMOOTH_CONVEX:
        for i in range(opinions.shape[0]):
            record[0, i] += step * sign * opinions[i]
        _project(record[0])
        return
    first = 0.0
    for i in range(opinions.shape[0]):
        first += opinions[i]
        if (first >= 0.0) != (label == 1):
            record[0, i] += weight


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
def _smooth_teach(rule: Rule, bayes: bool, work: _Work, label: int, weight: float, z: float) -> float:
    scores, opinions = work.scores, work.opinions
    sign = 2.0 * label - 1.0
    theta = rule.gamma / (2.0 + rule.gamma)
    decay = 0.5 * math.log(1.0 - rule.gamma)
    for i in range(scores.shape[0]):
        if bayes or sign * scores[i] <= 0.0:
            w = weight * math.exp(decay * z) if z > 0.0 else weight
            work.weight[i] = w if bayes else sign * w
        z += sign * opinions[i] - theta
    return z


@njit(cache=True, nogil=True, error_model="numpy")
def run(
    kind: int,
    gamma: float,
    pool: int,
    n_members: int,
    first: int,
    state: BoosterState,
    values: Array,
    columns: NDArray[np.int32],
    starts: Ints,
    sparse: bool,
    label: NDArray[np.intp],
    weight: Array,
    carry: Array,
    votes: Array,
) -> None:
    """Vote on each row, then learn it; a row with NaN, or of no weight, is not learned.

    The members may be part of a booster's: ``carry`` and ``votes`` hold what those before them make of each row,
    and are left with what these make of it.
    """
    rule = Rule(kind, gamma, pool, n_members, first)  # as an argument it would take long to look at
    m = state.record.shape[1]
    d = max(state.weights.shape[0] - 1, state.order.shape[0])
    bayes = state.totals.size > 0
    work = _Work(np.empty(m), np.empty(m), np.empty(m))
    facts = bayes_work(state)
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
            continue
        if bayes:
            row[:] = 0.0
            for p in range(n):
                row[used[p]] = x[p]
            look(state, row, facts)
            bayes_opinions(state, facts, work.scores)
        else:
            perceptron_scores(state.weights, used, x, n, work.scores)
        if rule.kind == OZA:
            votes[t] = _oza_vote(state.record, work.scores, votes[t])
        elif rule.kind == GRADIENT:
            votes[t] = _gradient_vote(state.record[0], work.scores, rule.pool, votes[t])
        else:
            for i in range(m):
                work.opinions[i] = _cut(work.scores[i])
            votes[t] = _smooth_vote(rule, state.record, work.opinions, votes[t])
        if weight[t] == 0.0:
            continue
        state.clock[1] += np.uint64(1)
        step = 1.0 if rule.kind == GRADIENT else 1.0 / math.sqrt(float(state.clock[1]))
        work.weight[:] = 0.0
        if bayes:
            notice(state, row, weight[t], facts)
        else:
            state.seen[0] += weight[t]
        if rule.kind == OZA or rule.kind == GRADIENT:
            if bayes:
                foresee(state, label[t], facts)
            if rule.kind == OZA:
                carry[t] = _oza_teach(rule, state, work, facts, step * square, label[t], carry[t])
            else:
                carry[t] = _gradient_teach(rule, state, work, facts, step * square, label[t], weight[t], carry[t])
        else:
            if rule.kind != SMOOTH:
                margin = (2.0 * label[t] - 1.0) * votes[t]
                if rule.kind != SMOOTH_CONVEX or margin < rule.gamma / (2.0 + rule.gamma):
                    _smooth_weigh(state.record, work.opinions, rule.kind, label[t], weight[t], weight[t] * step)
            carry[t] = _smooth_teach(rule, bayes, work, label[t], weight[t], carry[t])
            if bayes:
                learn_binary(state, label[t], work.weight, facts)
        if bayes:
            learn_continuous(state, label[t], work.weight, facts)
        else:
            for i in range(m):
                work.weight[i] *= step
            perceptron_step(state.weights, used, x, n, work.weight)
