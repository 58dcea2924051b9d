"""Kernels of the boosters: one loop over the rows, and the vote and the learning rule of each booster."""

cimport numpy as cnp
from libc.math cimport INFINITY, exp, floor, log, sqrt
from libc.stdint cimport int32_t, uint64_t
from libc.string cimport memset

from bayesvote.core.arrays cimport contiguous, dim, doubles, labels, own_doubles, own_longs, own_words, room
from bayesvote.core.rows cimport RowView, columns_of, view_rows
from bayesvote.boosting._bayes_kernels cimport (
    BayesWork,
    State,
    arrange_work,
    bayes_opinions,
    bayes_room,
    foresee,
    learn_binary,
    learn_continuous,
    learned_opinion,
    look,
    notice,
)
from bayesvote.boosting._poisson_kernels cimport draw_poisson

cdef extern from "rows.h" nogil:
    void product(
        const double *values,
        const int32_t *columns,
        Py_ssize_t n,
        const double *W,
        Py_ssize_t width,
        const double *start,
        double *out,
    )

cnp.import_array()

cdef enum:  # as in _state.py
    OZA = 0
    GRADIENT = 1
    SMOOTH = 2
    SMOOTH_EXPERT = 3
    SMOOTH_CONVEX = 4
    GROUP = 16

cdef extern from *:
    """
    /* Errors are clipped to this value, so that the vote of a member that was never wrong is finite. */
    #define LEAST_ERROR 1e-10
    #define LOG_2 0.6931471805599453
    """
    const double LEAST_ERROR
    const double LOG_2


# Settings of a booster, see :class:`bayesvote.boosting._state.Rule`.
cdef struct How:
    int kind
    double gamma
    Py_ssize_t pool
    Py_ssize_t n_members
    Py_ssize_t first


# Intermediate results of the members for one row.
cdef struct Work:
    double *scores  # (m,)
    double *opinions  # (m,), the scores clipped to [-1, 1]
    double *weight  # (m,), weight with which each member learns the row; signed by the label for Perceptrons


cdef inline double cut(double score) noexcept nogil:
    """Clip a score to [-1, 1], which does not change those of naive Bayes."""
    return min(max(score, -1.0), 1.0)


cdef double oza_vote(const State *state, const double *scores, double vote) noexcept nogil:
    """Add the members' votes, with one logarithm for the product of a group's odds."""
    cdef Py_ssize_t m = state.m
    cdef const double *rights = state.record
    cdef const double *wrongs = state.record + m
    cdef double above, below, error, right, wrong
    cdef Py_ssize_t start = 0
    cdef Py_ssize_t i
    while start < m:
        above = below = 1.0
        for i in range(start, min(start + GROUP, m)):
            right, wrong = rights[i], wrongs[i]
            if right + wrong > 0.0:
                error = min(max(wrong / (right + wrong), LEAST_ERROR), 1.0 - LEAST_ERROR)
                above *= 1.0 - error if scores[i] >= 0.0 else error
                below *= error if scores[i] >= 0.0 else 1.0 - error
        vote += log(above / below)
        start += GROUP
    return vote


cdef double oza_teach(
    const How *how,
    const State *state,
    const Work *work,
    const BayesWork *facts,
    double length,
    Py_ssize_t label,
    double rate,
) noexcept nogil:
    cdef Py_ssize_t m = state.m
    cdef double *record
    cdef double *scores = work.scores
    cdef uint64_t key = state.clock[0]
    cdef uint64_t draw = state.clock[1] * <uint64_t> how.n_members + <uint64_t> how.first
    cdef double half = 0.5 * state.seen[0]
    cdef double sign = 2.0 * label - 1.0
    cdef double margin, k
    cdef bint right
    cdef Py_ssize_t i
    for i in range(m):
        margin = sign * scores[i]
        right = scores[i] >= 0.0 if label == 1 else scores[i] < 0.0
        if state.bayes or margin <= 0.0:  # a Perceptron that is right does not change, for any k
            k = draw_poisson(rate, key, draw + <uint64_t> i)
            if not state.bayes:
                k = min(k, floor(-margin / length) + 1.0)  # no more updates once it is right
                work.weight[i] = sign * k
                scores[i] += work.weight[i] * length
            elif k > 0.0:
                work.weight[i] = k
                scores[i] = learned_opinion(state, facts, label, k, i)
            right = scores[i] >= 0.0 if label == 1 else scores[i] < 0.0
        record = state.record + (i if right else m + i)
        record[0] += rate
        if record[0] > 0.0:  # a tiny rate may have been rounded to 0
            rate = rate * half / record[0]
    return rate


cdef inline Py_ssize_t selected(const double *errors, Py_ssize_t start, Py_ssize_t pool) noexcept nogil:
    """Return the member of least error in a pool, the first one in a tie."""
    cdef Py_ssize_t best = start
    cdef Py_ssize_t i
    for i in range(start + 1, start + pool):
        if errors[i] < errors[best]:
            best = i
    return best


cdef double gradient_vote(const State *state, const double *scores, Py_ssize_t pool, double vote) noexcept nogil:
    cdef Py_ssize_t start = 0
    while start < state.m:
        vote += cut(scores[selected(state.record, start, pool)])
        start += pool
    return vote


cdef double gradient_teach(
    const How *how,
    const State *state,
    const Work *work,
    const BayesWork *facts,
    double length,
    Py_ssize_t label,
    double weight,
    double total,
) noexcept nogil:
    cdef double *errors = state.record
    cdef double *scores = work.scores
    cdef double sign = 2.0 * label - 1.0
    cdef double w
    cdef Py_ssize_t start = 0
    cdef Py_ssize_t i
    while start < state.m:
        for i in range(start, start + how.pool):
            if sign * scores[i] > 0.0 and not state.bayes:  # a Perceptron that is right neither changes nor errs
                continue
            w = weight / (1.0 + exp(sign * total))
            if state.bayes:
                work.weight[i] = w
                scores[i] = learned_opinion(state, facts, label, w, i)
            else:
                work.weight[i] = sign * w
                scores[i] += work.weight[i] * length
            if (scores[i] >= 0.0) != (label == 1):
                errors[i] += w
        total += cut(scores[selected(errors, start, how.pool)])
        start += how.pool
    return total


cdef double smooth_vote(const How *how, const State *state, const double *opinions, double vote) noexcept nogil:
    cdef Py_ssize_t m = state.m
    cdef const double *record = state.record
    cdef double share, total, least, everyone, first, expert
    cdef Py_ssize_t i
    if how.kind == SMOOTH:
        share = 1.0 / how.n_members
        for i in range(m):
            vote += share * opinions[i]
        return vote
    total = 0.0
    if how.kind == SMOOTH_CONVEX:
        for i in range(m):
            total += record[i] * opinions[i]
        return total
    least = record[0]
    for i in range(m):
        least = min(least, record[i])
    everyone = first = 0.0
    for i in range(m):
        first += opinions[i]
        expert = exp(-LOG_2 * (record[i] - least))
        total += expert if first >= 0.0 else -expert
        everyone += expert
    return total / everyone


cdef void project(double *x, Py_ssize_t n) noexcept nogil:
    """Move x to the nearest point of the probability simplex (Michelot 1986)."""
    cdef double level = -INFINITY
    cdef double total
    cdef Py_ssize_t n_active = n + 1
    cdef Py_ssize_t n_above, i
    while True:
        total = 0.0
        n_above = 0
        for i in range(n):
            if x[i] > level:
                total += x[i]
                n_above += 1
        if n_above >= n_active:
            break
        n_active = n_above
        level = (total - 1.0) / n_active
    for i in range(n):
        x[i] = max(x[i] - level, 0.0)


def _project(x):
    """Move x to the nearest point of the probability simplex."""
    project(own_doubles(x), dim(x, 0))


cdef void smooth_weigh(
    int kind, const State *state, const double *opinions, Py_ssize_t label, double weight, double step
) noexcept nogil:
    """Update the record: the mistakes of the experts, or the convex weights by a gradient step."""
    cdef double sign = 2.0 * label - 1.0
    cdef double first = 0.0
    cdef Py_ssize_t i
    if kind == SMOOTH_CONVEX:
        for i in range(state.m):
            state.record[i] += step * sign * opinions[i]
        project(state.record, state.m)
        return
    for i in range(state.m):
        first += opinions[i]
        if (first >= 0.0) != (label == 1):
            state.record[i] += weight


cdef double smooth_teach(
    const How *how, const State *state, const Work *work, Py_ssize_t label, double weight, double z
) noexcept nogil:
    cdef double sign = 2.0 * label - 1.0
    cdef double theta = how.gamma / (2.0 + how.gamma)
    cdef double decay = 0.5 * log(1.0 - how.gamma)
    cdef double w
    cdef Py_ssize_t i
    for i in range(state.m):
        if state.bayes or sign * work.scores[i] <= 0.0:
            w = weight * exp(decay * z) if z > 0.0 else weight
            work.weight[i] = w if state.bayes else sign * w
        z += sign * work.opinions[i] - theta
    return z


cdef void perceptron_step(
    const State *state, const int32_t *columns, const double *values, Py_ssize_t n, const double *step
) noexcept nogil:
    """Add step[i] times the row to the weights of Perceptron i."""
    cdef Py_ssize_t m = state.m
    cdef bint some = False
    cdef double *weights = state.weights
    cdef double x
    cdef Py_ssize_t i, p
    for i in range(m):
        some |= step[i] != 0.0
    if not some:
        return
    for i in range(m):
        weights[i] += step[i]
    for p in range(n):
        weights = state.weights + (1 + columns[p]) * m
        x = values[p]
        for i in range(m):
            weights[i] += x * step[i]


cdef int view_state(object state, State *out) except -1:
    out.m = dim(state.record, 1)
    out.bayes = dim(state.totals, 1) > 0
    out.d = max(dim(state.weights, 0) - 1, dim(state.order, 0))
    out.weights = own_doubles(state.weights)
    out.totals = own_doubles(state.totals)
    out.stats = own_doubles(state.stats)
    out.overall = own_doubles(state.overall)
    out.pair = own_doubles(state.pair)
    out.order = own_longs(state.order)
    out.n_continuous = own_longs(state.n_continuous)
    out.record = own_doubles(state.record)
    out.seen = own_doubles(state.seen)
    out.clock = own_words(state.clock)
    return 0


cdef void run_rows(
    const How *how,
    const State *state,
    const RowView *rows,
    const Py_ssize_t *label,
    const double *weight,
    double *carry,
    double *votes,
    double *space,
) noexcept nogil:
    cdef Py_ssize_t m = state.m
    cdef Py_ssize_t d = state.d
    cdef double *x = space
    cdef int32_t *used = <int32_t *> (x + d)
    cdef Work work
    cdef BayesWork facts
    cdef const int32_t *columns
    cdef const double *values
    cdef double square, step, margin
    cdef Py_ssize_t t, n, p, i
    work.scores = space + 2 * d
    work.opinions = work.scores + m
    work.weight = work.opinions + m
    if state.bayes:
        arrange_work(state, work.weight + m, &facts)
    for t in range(rows.n):
        columns = columns_of(rows, t)
        values = rows.values + rows.starts[t]
        n = 0
        square = 1.0  # of the constant term
        for p in range(rows.starts[t + 1] - rows.starts[t]):
            if values[p] != 0.0:
                used[n] = columns[p]
                x[n] = values[p]
                square += x[n] * x[n]
                n += 1
        if square != square:
            continue
        if state.bayes:
            memset(facts.row, 0, d * sizeof(double))
            for p in range(n):
                facts.row[used[p]] = x[p]
            look(state, &facts)
            bayes_opinions(state, &facts, work.scores)
        else:
            product(x, used, n, state.weights + m, m, state.weights, work.scores)
        if how.kind == OZA:
            votes[t] = oza_vote(state, work.scores, votes[t])
        elif how.kind == GRADIENT:
            votes[t] = gradient_vote(state, work.scores, how.pool, votes[t])
        else:
            for i in range(m):
                work.opinions[i] = cut(work.scores[i])
            votes[t] = smooth_vote(how, state, work.opinions, votes[t])
        if weight[t] == 0.0:
            continue
        state.clock[1] += 1
        step = 1.0 if how.kind == GRADIENT else 1.0 / sqrt(<double> state.clock[1])
        memset(work.weight, 0, m * sizeof(double))
        if state.bayes:
            notice(state, weight[t], &facts)
        else:
            state.seen[0] += weight[t]
        if how.kind == OZA or how.kind == GRADIENT:
            if state.bayes:
                foresee(state, label[t], &facts)
            if how.kind == OZA:
                carry[t] = oza_teach(how, state, &work, &facts, step * square, label[t], carry[t])
            else:
                carry[t] = gradient_teach(how, state, &work, &facts, step * square, label[t], weight[t], carry[t])
        else:
            if how.kind != SMOOTH:
                margin = (2.0 * label[t] - 1.0) * votes[t]
                if how.kind != SMOOTH_CONVEX or margin < how.gamma / (2.0 + how.gamma):
                    smooth_weigh(how.kind, state, work.opinions, label[t], weight[t], weight[t] * step)
            carry[t] = smooth_teach(how, state, &work, label[t], weight[t], carry[t])
            if state.bayes:
                learn_binary(state, label[t], work.weight, &facts)
        if state.bayes:
            learn_continuous(state, label[t], work.weight, &facts)
        else:
            for i in range(m):
                work.weight[i] *= step
            perceptron_step(state, used, x, n, work.weight)


def run(rule, state, rows, label, weight, carry, votes):
    """Vote on each row, then learn it; a row with NaN, or of weight 0, is not learned.

    The members may be a part of a booster's members. ``carry`` and ``votes`` hold the results of the members before
    them for each row, and are updated.
    """
    label, weight = contiguous(label), contiguous(weight)
    cdef How how
    cdef State own
    cdef RowView view
    how.kind, how.gamma, how.pool, how.n_members, how.first = rule
    view_state(state, &own)
    view_rows(rows, &view)
    cdef const Py_ssize_t *label_ = labels(label)
    cdef const double *weight_ = doubles(weight)
    cdef double *carry_ = own_doubles(carry)
    cdef double *votes_ = own_doubles(votes)
    scratch = room(2 * own.d + 3 * own.m + (bayes_room(own.d, own.m) if own.bayes else 0))
    cdef double *space = own_doubles(scratch)
    with nogil:
        run_rows(&how, &own, &view, label_, weight_, carry_, votes_, space)
