"""Kernels of naive Bayes members that each have their own statistics.

The last axis of all statistics runs over the members, and so do the inner loops where all members do the same.
"""

from libc.math cimport exp, log, sqrt
from libc.stdint cimport int64_t, uint64_t

cdef extern from "logs.h" nogil:
    void log_all(double *x, Py_ssize_t n)

cdef extern from *:
    """
    /* Pseudo-counts: samples of the overall variance added to that of each class, and samples of each value of a
     * binary feature. For the latter, 1 is too much for one-hot data such as mushrooms. */
    #define VARIANCE_PRIOR 1.0
    #define BINARY_PRIOR 0.1
    /* Products are kept as a factor and a logarithm. This many variances, or binary features, are multiplied before
     * the logarithm is taken. Each is well within 1e-10 to 1e10, so the product stays in the range of doubles. */
    #define VARIANCES 16
    #define VALUES 8
    /* A product of probabilities below 1 / RAISE is multiplied by RAISE, a power of two, which is exact. */
    #define RAISE 0x1p300
    #define LOG_RAISE 207.94415416798358 /* 300 log 2 */

    /* The loops over the members that take most of the time. In C, to declare that the arrays do not overlap. */

    static inline void multiply_four(double *restrict product, ptrdiff_t m, const double *restrict stats,
                                     const double *restrict none, const double *restrict inverse) {
        for (ptrdiff_t i = 0; i < m; i++)
            product[i] *= ((none[i] - stats[i] * inverse[i]) * (none[i] - stats[m + i] * inverse[i])) *
                          ((none[i] - stats[2 * m + i] * inverse[i]) * (none[i] - stats[3 * m + i] * inverse[i]));
    }

    static inline void add_feature(double *restrict above, double *restrict below, ptrdiff_t m,
                                   const double *restrict mean, const double *restrict square,
                                   const double *restrict inverse, double x, double scale) {
        for (ptrdiff_t i = 0; i < m; i++) {
            const double deviation = x - mean[i];
            const double variance = (square[i] * scale + VARIANCE_PRIOR) * inverse[i];
            above[i] = above[i] * variance + deviation * deviation * scale * below[i];
            below[i] *= variance;
        }
    }

    static inline void multiply_value(double *restrict above, double *restrict below, ptrdiff_t m,
                                      const double *restrict count, const double *restrict inverse, double base,
                                      double slope) {
        for (ptrdiff_t i = 0; i < m; i++) {
            const double second = (count[i] + BINARY_PRIOR) * inverse[i];
            above[i] *= base + slope * second;
            below[i] *= 1.0 - second;
        }
    }

    static inline void learn_feature(double *restrict mean, double *restrict square, ptrdiff_t m,
                                     const double *restrict part, const double *restrict rest, double x) {
        for (ptrdiff_t i = 0; i < m; i++) {
            const double deviation = x - mean[i];
            mean[i] += part[i] * deviation;
            square[i] += rest[i] * deviation * deviation;
        }
    }
    """
    void multiply_four(
        double *product, Py_ssize_t m, const double *stats, const double *none, const double *inverse
    ) noexcept nogil
    void add_feature(
        double *above,
        double *below,
        Py_ssize_t m,
        const double *mean,
        const double *square,
        const double *inverse,
        double x,
        double scale,
    ) noexcept nogil
    void multiply_value(
        double *above,
        double *below,
        Py_ssize_t m,
        const double *count,
        const double *inverse,
        double base,
        double slope,
    ) noexcept nogil
    void learn_feature(
        double *mean, double *square, Py_ssize_t m, const double *part, const double *rest, double x
    ) noexcept nogil
    const double VARIANCE_PRIOR
    const double BINARY_PRIOR
    const Py_ssize_t VARIANCES
    const Py_ssize_t VALUES
    const double RAISE
    const double LOG_RAISE


# State of one booster, see :class:`bayesvote.boosting._state.BoosterState`.
cdef struct State:
    Py_ssize_t d
    Py_ssize_t m
    bint bayes
    double *weights
    double *totals
    double *stats
    double *overall
    double *pair
    int64_t *order
    int64_t *n_continuous
    double *record
    double *seen
    uint64_t *clock


# Intermediate results of naive Bayes members. Products have the shape (..., 2, m): factor and logarithm.
cdef struct BayesWork:
    double *row  # (d,): the dense row
    double *facts  # (3, d): see `look`
    Py_ssize_t *unusual  # (1 + d,): number of binary features that do not have their first value, then these features
    double *usual  # (2, 2, m): per class, probability that all binary features have their first value
    double *given  # (2, 2, m): per class, joint probability of class and row, up to a constant
    double *apart  # (d, m): squared deviations of the row from the means of its class, in overall variances
    double *spread  # (d, m): those of the past rows of its class, plus the pseudo-count
    double *buffer  # (3, m)


cdef inline Py_ssize_t bayes_room(Py_ssize_t d, Py_ssize_t m) noexcept nogil:
    """Return the size of the space that `arrange_work` needs."""
    return 5 * d + 1 + 11 * m + 2 * d * m


cdef inline void arrange_work(const State *state, double *space, BayesWork *work) noexcept nogil:
    """Divide the space among the arrays, and compute what depends on the state only."""
    cdef Py_ssize_t d = state.d
    cdef Py_ssize_t m = state.m
    work.row = space
    work.facts = work.row + d
    work.unusual = <Py_ssize_t *> (work.facts + 3 * d)
    work.usual = work.facts + 4 * d + 1
    work.given = work.usual + 4 * m
    work.apart = work.given + 4 * m
    work.spread = work.apart + d * m
    work.buffer = work.spread + d * m
    usual_all(state, 0, work)
    usual_all(state, 1, work)


cdef inline void look(const State *state, const BayesWork *work) noexcept nogil:
    """Prepare a row for naive Bayes, in the state's order of features.

    For a continuous feature, ``facts`` holds its value and the inverse of its overall variance. For a binary feature
    it holds 1 if the feature has the second value, else 0; then b and c such that the probability of its value is
    b + c q, where q is that of the second value. A value that was never learned has b = 1 and c = 0: it is ignored.
    """
    cdef Py_ssize_t d = state.d
    cdef double *facts = work.facts
    cdef const double *row = work.row
    cdef Py_ssize_t n_continuous = state.n_continuous[0]
    cdef Py_ssize_t n = 0
    cdef Py_ssize_t p
    cdef double spread, x
    cdef bint second
    for p in range(n_continuous):
        spread = state.overall[d + p]
        facts[p] = row[state.order[p]]
        facts[d + p] = state.seen[0] / spread if spread > 0.0 else 0.0
    for p in range(n_continuous, d):
        x = row[state.order[p]]
        facts[p] = 0.0
        if x == state.pair[p]:
            continue
        n += 1
        work.unusual[n] = p
        second = x == state.pair[d + p]
        facts[p] = 1.0 if second else 0.0
        facts[d + p] = 0.0 if second else 1.0
        facts[2 * d + p] = 1.0 if second else 0.0
    work.unusual[0] = n


cdef inline void usual_all(const State *state, Py_ssize_t c, const BayesWork *work) noexcept nogil:
    """Compute the probability of the first values of all binary features in class c, for all members."""
    cdef Py_ssize_t d = state.d
    cdef Py_ssize_t m = state.m
    cdef Py_ssize_t n_continuous = state.n_continuous[0]
    cdef Py_ssize_t fours = d - (d - n_continuous) % 4
    cdef const double *totals = state.totals + c * m
    cdef const double *stats = state.stats + 2 * c * d * m
    cdef const double *at
    cdef double *product = work.usual + 2 * c * m
    cdef double *logs = product + m
    cdef double *none = work.buffer
    cdef double *inverse = work.buffer + m
    cdef Py_ssize_t p = n_continuous
    cdef Py_ssize_t i
    for i in range(m):
        product[i] = 1.0
        logs[i] = 0.0
        inverse[i] = 1.0 / (totals[i] + 2.0 * BINARY_PRIOR)
        none[i] = 1.0 - BINARY_PRIOR * inverse[i]
    while p < fours:
        at = stats + p * m
        multiply_four(product, m, at, none, inverse)
        if (p - n_continuous) % 16 == 12:
            for i in range(m):
                logs[i] -= LOG_RAISE if product[i] < 1.0 / RAISE else 0.0
                product[i] *= RAISE if product[i] < 1.0 / RAISE else 1.0
        p += 4
    for p in range(fours, d):
        at = stats + p * m
        for i in range(m):
            product[i] *= none[i] - at[i] * inverse[i]


cdef inline void usual_one(
    const State *state, double total, Py_ssize_t c, Py_ssize_t i, const BayesWork *work
) noexcept nogil:
    """Do what `usual_all` does for one member, with identical results."""
    cdef Py_ssize_t d = state.d
    cdef Py_ssize_t m = state.m
    cdef Py_ssize_t n_continuous = state.n_continuous[0]
    cdef Py_ssize_t fours = d - (d - n_continuous) % 4
    cdef const double *stats = state.stats + 2 * c * d * m + i
    cdef const double *at
    cdef double inverse = 1.0 / (total + 2.0 * BINARY_PRIOR)
    cdef double none = 1.0 - BINARY_PRIOR * inverse
    cdef double product = 1.0
    cdef double logs = 0.0
    cdef Py_ssize_t p = n_continuous
    while p < fours:
        at = stats + p * m
        product *= ((none - at[0] * inverse) * (none - at[m] * inverse)) * (
            (none - at[2 * m] * inverse) * (none - at[3 * m] * inverse)
        )
        if (p - n_continuous) % 16 == 12 and product < 1.0 / RAISE:
            product *= RAISE
            logs -= LOG_RAISE
        p += 4
    for p in range(fours, d):
        product *= none - stats[p * m] * inverse
    work.usual[2 * c * m + i] = product
    work.usual[(2 * c + 1) * m + i] = logs


cdef inline void weigh(const State *state, Py_ssize_t c, const BayesWork *work) noexcept nogil:
    """Compute the joint probability of class c and the row, for all members.

    Sums of a / v over variances v are kept as one fraction, whose denominator, the product of all v, is needed anyway.
    """
    cdef Py_ssize_t d = state.d
    cdef Py_ssize_t m = state.m
    cdef const double *means = state.stats + 2 * c * d * m
    cdef const double *squares = means + d * m
    cdef const double *totals = state.totals + c * m
    cdef const double *usual = work.usual + 2 * c * m
    cdef const double *at
    cdef double *above = work.given + 2 * c * m
    cdef double *logs = above + m
    cdef double *below = work.buffer
    cdef double *inverse = work.buffer + m
    cdef double *spare = work.buffer + 2 * m
    cdef double x, scale, base, slope
    cdef Py_ssize_t n_continuous = state.n_continuous[0]
    cdef Py_ssize_t p, i, k
    for i in range(m):
        logs[i] = 0.0
        above[i] = 0.0
        below[i] = 1.0
        inverse[i] = 1.0 / (totals[i] + VARIANCE_PRIOR)
    for p in range(n_continuous):
        x = work.facts[p]
        scale = work.facts[d + p]
        add_feature(above, below, m, means + p * m, squares + p * m, inverse, x, scale)
        if p % VARIANCES == VARIANCES - 1:
            for i in range(m):
                spare[i] = below[i]
            log_all(spare, m)
            for i in range(m):
                logs[i] += above[i] / below[i] + spare[i]
                above[i] = 0.0
                below[i] = 1.0
    for i in range(m):
        logs[i] = usual[m + i] - 0.5 * (logs[i] + above[i] / below[i])
        above[i] = usual[i] * (totals[i] + BINARY_PRIOR)
        below[i] = sqrt(below[i])
        inverse[i] = 1.0 / (totals[i] + 2.0 * BINARY_PRIOR)
    for k in range(work.unusual[0]):
        p = work.unusual[1 + k]
        base = work.facts[d + p]
        slope = work.facts[2 * d + p]
        multiply_value(above, below, m, means + p * m, inverse, base, slope)
        if k % VALUES == VALUES - 1:
            for i in range(m):
                spare[i] = above[i] / below[i]
                above[i] = 1.0
                below[i] = 1.0
            log_all(spare, m)
            for i in range(m):
                logs[i] += spare[i]
    for i in range(m):
        above[i] /= below[i]


cdef inline double to_opinion(double odds, double n0, double n1) noexcept nogil:
    """Return 2 P(class 1) - 1 from the odds of class 1, or from the class weights only while a class is unknown.

    Odds are NaN if a value has the probability 0 in both classes, and are then ignored.
    """
    if n0 == 0.0 or n1 == 0.0 or odds != odds:
        odds = (n1 + BINARY_PRIOR) / (n0 + BINARY_PRIOR)
    return 1.0 - 2.0 / (1.0 + odds)


cdef inline void bayes_opinions(const State *state, const BayesWork *work, double *opinions) noexcept nogil:
    """Compute 2 P(class 1) - 1 for all naive Bayes members."""
    cdef Py_ssize_t m = state.m
    cdef const double *given = work.given
    cdef double odds
    cdef Py_ssize_t i
    weigh(state, 0, work)
    weigh(state, 1, work)
    for i in range(m):
        odds = given[2 * m + i] / given[i] * exp(given[3 * m + i] - given[m + i])
        opinions[i] = to_opinion(odds, state.totals[i], state.totals[m + i])


cdef inline void foresee(const State *state, Py_ssize_t label, const BayesWork *work) noexcept nogil:
    """Compute for all members what `learned_opinion` needs of each."""
    cdef Py_ssize_t d = state.d
    cdef Py_ssize_t m = state.m
    cdef const double *means = state.stats + 2 * label * d * m
    cdef const double *squares = means + d * m
    cdef const double *at
    cdef const double *square
    cdef double *apart
    cdef double *spread
    cdef double x, scale, deviation
    cdef Py_ssize_t p, i
    for p in range(state.n_continuous[0]):
        x = work.facts[p]
        scale = work.facts[d + p]
        at = means + p * m
        square = squares + p * m
        apart = work.apart + p * m
        spread = work.spread + p * m
        for i in range(m):
            deviation = x - at[i]
            apart[i] = deviation * deviation * scale
            spread[i] = square[i] * scale + VARIANCE_PRIOR
    weigh(state, 1 - label, work)


cdef inline double learned_opinion(
    const State *state, const BayesWork *work, Py_ssize_t label, double weight, Py_ssize_t i
) noexcept nogil:
    """Let member i learn the row except its continuous features; return its opinion as if it had learned these, too.

    With n past samples of the class, a mean moves by w / (n + w) of the deviation, and the squares grow by
    w n / (n + w) times the squared deviation.
    """
    cdef Py_ssize_t d = state.d
    cdef Py_ssize_t m = state.m
    cdef Py_ssize_t n_continuous = state.n_continuous[0]
    cdef const double *facts = work.facts
    cdef const double *apart = work.apart + i
    cdef const double *spread = work.spread + i
    cdef const double *given = work.given + 2 * (1 - label) * m + i
    cdef const double *usual = work.usual + 2 * label * m + i
    cdef double *counts = state.stats + 2 * label * d * m + i
    cdef double before = state.totals[label * m + i]
    cdef double other = state.totals[(1 - label) * m + i]
    cdef double n = before + weight
    cdef double kept, rest, inverse, distance, logs, below, above, variance, second, odds, opinion
    cdef Py_ssize_t p, k
    state.totals[label * m + i] = n
    for k in range(work.unusual[0]):
        p = work.unusual[1 + k]
        counts[p * m] += weight * facts[p]
    usual_one(state, n, label, i, work)
    kept = before / n
    rest = weight * kept
    inverse = 1.0 / (n + VARIANCE_PRIOR)
    distance = 0.0
    logs = usual[m] - given[m]
    below = 1.0
    for p in range(n_continuous):
        variance = (spread[p * m] + rest * apart[p * m]) * inverse
        distance += apart[p * m] / variance
        below *= variance
        if p % VARIANCES == VARIANCES - 1:
            logs -= 0.5 * log(below)
            below = 1.0
    above = usual[0] * (n + BINARY_PRIOR)
    below = sqrt(below)
    inverse = 1.0 / (n + 2.0 * BINARY_PRIOR)
    for k in range(work.unusual[0]):
        p = work.unusual[1 + k]
        second = (counts[p * m] + BINARY_PRIOR) * inverse
        above *= facts[d + p] + facts[2 * d + p] * second
        below *= 1.0 - second
        if k % VALUES == VALUES - 1:
            logs += log(above / below)
            above = below = 1.0
    odds = above / (below * given[0]) * exp(logs - 0.5 * kept * kept * distance)
    opinion = to_opinion(odds, other, n)
    return opinion if label == 1 else -opinion


cdef inline void learn_continuous(
    const State *state, Py_ssize_t label, const double *weight, const BayesWork *work
) noexcept nogil:
    """Let all members learn the continuous features of a row that is already in their totals.

    Weighted running mean and squared deviations (West 1979).
    """
    cdef Py_ssize_t d = state.d
    cdef Py_ssize_t m = state.m
    cdef const double *totals = state.totals + label * m
    cdef double *means = state.stats + 2 * label * d * m
    cdef double *squares = means + d * m
    cdef double *part = work.buffer
    cdef double *rest = work.buffer + m
    cdef Py_ssize_t p, i
    for i in range(m):
        part[i] = weight[i] / totals[i] if weight[i] > 0.0 else 0.0
        rest[i] = weight[i] * (1.0 - part[i])
    for p in range(state.n_continuous[0]):
        learn_feature(means + p * m, squares + p * m, m, part, rest, work.facts[p])


cdef inline void learn_binary(
    const State *state, Py_ssize_t label, const double *weight, const BayesWork *work
) noexcept nogil:
    """Let all members learn the row's class and its binary features."""
    cdef Py_ssize_t m = state.m
    cdef double *totals = state.totals + label * m
    cdef double *counts
    cdef double fact
    cdef Py_ssize_t p, i, k
    for i in range(m):
        totals[i] += weight[i]
    for k in range(work.unusual[0]):
        p = work.unusual[1 + k]
        fact = work.facts[p]
        counts = state.stats + (2 * label * state.d + p) * m
        for i in range(m):
            counts[i] += weight[i] * fact
    usual_all(state, label, work)


cdef inline void to_moments(
    double *first_stat, double *second_stat, const double *totals, Py_ssize_t m, double first, double second
) noexcept nogil:
    """Convert weights of a second value to means and squared deviations."""
    cdef double gap = second - first
    cdef double share
    cdef Py_ssize_t i
    for i in range(m):
        share = first_stat[i] / totals[i] if totals[i] > 0.0 else 0.0
        first_stat[i] = first + share * gap
        second_stat[i] = totals[i] * share * (1.0 - share) * gap * gap


cdef inline void swap(double *a, double *b, Py_ssize_t n) noexcept nogil:
    cdef Py_ssize_t i
    cdef double kept
    for i in range(n):
        kept = a[i]
        a[i] = b[i]
        b[i] = kept


cdef inline void make_continuous(const State *state, Py_ssize_t p) noexcept nogil:
    """Make a feature with a third value continuous; the conversion of its statistics is exact."""
    cdef Py_ssize_t d = state.d
    cdef Py_ssize_t m = state.m
    cdef double first = state.pair[p]
    cdef double second = state.pair[d + p]
    cdef Py_ssize_t q = state.n_continuous[0]
    cdef double *stats
    cdef int64_t kept
    cdef Py_ssize_t c, k
    state.n_continuous[0] += 1
    to_moments(state.overall + p, state.overall + d + p, state.seen, 1, first, second)
    for c in range(2):
        swap(state.overall + c * d + p, state.overall + c * d + q, 1)
        stats = state.stats + 2 * c * d * m
        to_moments(stats + p * m, stats + (d + p) * m, state.totals + c * m, m, first, second)
        for k in range(2):
            swap(stats + (k * d + p) * m, stats + (k * d + q) * m, m)
        swap(state.pair + c * d + p, state.pair + c * d + q, 1)
    kept = state.order[p]
    state.order[p] = state.order[q]
    state.order[q] = kept


cdef inline void notice(const State *state, double weight, const BayesWork *work) noexcept nogil:
    """Learn what is common to all members of a row, then prepare the row again."""
    cdef Py_ssize_t d = state.d
    cdef Py_ssize_t known = state.n_continuous[0]
    cdef double x, part, rest, deviation
    cdef Py_ssize_t p, k
    for k in range(work.unusual[0]):
        p = work.unusual[1 + k]
        x = work.row[state.order[p]]
        if state.pair[p] != state.pair[p]:
            state.pair[p] = x
        if x == state.pair[p] or x == state.pair[d + p]:
            continue
        if state.pair[d + p] != state.pair[d + p]:
            state.pair[d + p] = x
        else:
            make_continuous(state, p)
    if state.n_continuous[0] > known:
        usual_all(state, 0, work)
        usual_all(state, 1, work)
    look(state, work)
    state.seen[0] += weight
    part = weight / state.seen[0]
    rest = weight * (1.0 - part)
    for p in range(state.n_continuous[0]):
        deviation = work.facts[p] - state.overall[p]
        state.overall[p] += part * deviation
        state.overall[d + p] += rest * deviation * deviation
    for k in range(work.unusual[0]):
        p = work.unusual[1 + k]
        state.overall[p] += weight * work.facts[p]
    look(state, work)
