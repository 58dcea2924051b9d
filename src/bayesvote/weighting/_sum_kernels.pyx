"""Kernels of states that are sums of losses."""

cimport numpy as cnp
from libc.stdint cimport int64_t

from bayesvote.core.arrays cimport contiguous, dim, doubles, labels, own_doubles, room
from bayesvote.core.loss_kernels cimport of_both

cdef extern from "lanes.h" nogil:
    double dot(const double *a, const double *b, Py_ssize_t n)

cnp.import_array()


cdef double MOST = 1e200  # largest loss; see losses.MOST_LOSS


cdef Py_ssize_t find_bad(const double *g, Py_ssize_t size, bint needs_log) noexcept nogil:
    cdef Py_ssize_t start, stop, i
    cdef int64_t bad
    cdef double least = 0.0
    for start in range(0, size, 512):
        stop = min(start + 512, size)
        bad = 0
        if needs_log:
            for i in range(start, stop):
                bad |= (g[i] <= least) | (g[i] > MOST)
        else:
            for i in range(start, stop):
                bad |= (g[i] < least) | (g[i] > MOST)
        if bad:
            for i in range(start, stop):
                if g[i] < 0.0 or g[i] > MOST or (needs_log and g[i] == 0.0):
                    return i
    return -1


def first_bad_loss(g, bint needs_log):
    """Return the index of the first loss that is negative, above MOST or, for logarithms, 0; -1 if all are valid."""
    cdef const double *given = doubles(g)
    cdef Py_ssize_t size = dim(g, 0)
    cdef Py_ssize_t found
    with nogil:
        found = find_bad(given, size, needs_log)
    return found


cdef inline void add_row(double *total, double *carry, const double *x, Py_ssize_t m, double w) noexcept nogil:
    """Add w x to total, and the exact rounding error to carry (Knuth's two-sum). NaN adds nothing."""
    cdef double v, old, new, part
    cdef Py_ssize_t i
    for i in range(m):
        v = w * x[i] if x[i] == x[i] else 0.0
        old = total[i]
        new = old + v
        part = new - old
        carry[i] += (old - (new - part)) + (v - part)
        total[i] = new


cdef inline void add_count(double *total, double *carry, const double *x, Py_ssize_t m, double w) noexcept nogil:
    """Add w to total where x is a number."""
    cdef double v, old, new, part
    cdef Py_ssize_t i
    for i in range(m):
        v = w if x[i] == x[i] else 0.0
        old = total[i]
        new = old + v
        part = new - old
        carry[i] += (old - (new - part)) + (v - part)
        total[i] = new


cdef inline void fade(double *total, double *carry, Py_ssize_t size, double forgetting) noexcept nogil:
    """Multiply all sums by the forgetting factor."""
    cdef Py_ssize_t i
    if forgetting != 1.0:
        for i in range(size):
            total[i] *= forgetting
        for i in range(size):
            carry[i] *= forgetting


def add(total, carry, x, double w):
    """Add w x to total, and the exact rounding error to carry. NaN adds nothing."""
    x = contiguous(x)
    cdef double *total_ = own_doubles(total)
    cdef double *carry_ = own_doubles(carry)
    cdef const double *x_ = doubles(x)
    cdef Py_ssize_t m = dim(total, 0)
    with nogil:
        add_row(total_, carry_, x_, m, w)


def accumulate(total, carry, statistics, w, double forgetting):
    """Forget, then add a row's weight to the count and its statistics to the other sums; skip rows of weight 0."""
    statistics, w = contiguous(statistics), contiguous(w)
    cdef Py_ssize_t n_sums = dim(statistics, 0)
    cdef Py_ssize_t n = dim(statistics, 1)
    cdef Py_ssize_t m = dim(statistics, 2)
    cdef double *total_ = own_doubles(total)
    cdef double *carry_ = own_doubles(carry)
    cdef const double *x = doubles(statistics)
    cdef const double *weight = doubles(w)
    cdef Py_ssize_t t, k
    with nogil:
        for t in range(n):
            if weight[t] != 0.0:
                fade(total_, carry_, (1 + n_sums) * m, forgetting)
                add_count(total_, carry_, x + t * m, m, weight[t])
                for k in range(n_sums):
                    add_row(total_ + (k + 1) * m, carry_ + (k + 1) * m, x + (k * n + t) * m, m, weight[t])


def dots(weights, G, out):
    """Compute the weighted sum over the members for every row and label."""
    G, weights = contiguous(G), contiguous(weights)
    cdef Py_ssize_t n = dim(G, 0) * dim(G, 1)
    cdef Py_ssize_t m = dim(G, 2)
    cdef const double *weights_ = doubles(weights)
    cdef const double *losses = doubles(G)
    cdef double *result = own_doubles(out)
    cdef Py_ssize_t t
    with nogil:
        for t in range(n):
            result[t] = dot(weights_, losses + t * m, m)


cdef inline void rate_weights(
    const double *total, const double *carry, Py_ssize_t m, double alpha, double beta, double theta, double *out
) noexcept nogil:
    """Compute theta times the means (11)."""
    cdef Py_ssize_t i
    for i in range(m):
        out[i] = theta * (alpha + (total[i] + carry[i])) / (beta + theta * (total[m + i] + carry[m + i]))


cdef inline void add_and_weigh(
    double *total,
    double *carry,
    const double *g,
    Py_ssize_t m,
    double w,
    double top,
    double beta,
    double theta,
    double *out,
) noexcept nogil:
    """Do what `add_row` and then `rate_weights` do in one pass, for members with equal counts."""
    cdef double v, old, new, part, lost
    cdef Py_ssize_t i
    for i in range(m):
        v = w * g[i]
        old = total[i]
        new = old + v
        part = new - old
        lost = carry[i] + ((old - (new - part)) + (v - part))
        total[i] = new
        carry[i] = lost
        out[i] = top / (beta + theta * (new + lost))


cdef bint has_nan(const double *x, Py_ssize_t size) noexcept nogil:
    """Return True if a number is missing."""
    cdef int64_t found = 0
    cdef Py_ssize_t i
    for i in range(size):
        found |= x[i] != x[i]
    return found != 0


cdef bint all_equal(const double *x, Py_ssize_t size) noexcept nogil:
    cdef int64_t differ = 0
    cdef Py_ssize_t i
    for i in range(size):
        differ |= x[i] != x[0]
    return differ == 0


def rate_rows(
    total, carry, int loss, scores, G, y, w, double alpha, double beta, double theta, double forgetting, out
):
    """Apply rule (12) at the posterior mean (11) to each row, then add its losses to the sums.

    The losses are ``G`` (n, K, m) or, with ``scores`` (n, m) of two classes, those of a named loss; ``G`` is then
    scratch for one row.
    """
    y, w = contiguous(y), contiguous(w)
    cdef bint scored = dim(scores, 0) > 0
    cdef Py_ssize_t n = dim(y, 0)
    cdef Py_ssize_t n_labels = dim(G, 1)
    cdef Py_ssize_t m = dim(G, 2)
    cdef double *sums = own_doubles(total)
    cdef double *lost = own_doubles(carry)
    cdef const double *given = doubles(scores)
    cdef double *losses = own_doubles(G) if scored else <double *> doubles(G)
    cdef const Py_ssize_t *truth = labels(y)
    cdef const double *weight = doubles(w)
    cdef double *result = own_doubles(out)
    scratch = room(m)
    cdef double *weights = own_doubles(scratch)
    cdef Py_ssize_t t, k
    cdef double top
    cdef double *g
    cdef bint shared
    with nogil:
        rate_weights(sums, lost, m, alpha, beta, theta, weights)
        # While no member abstains, all members have the same count, which is stored for the first one only.
        shared = all_equal(sums, m) and all_equal(lost, m)
        shared = shared and not (has_nan(given, n * m) if scored else has_nan(losses, n * n_labels * m))
        for t in range(n):
            if scored:
                of_both(loss, given + t * m, m, losses)
            for k in range(n_labels):
                result[t * n_labels + k] = dot(weights, losses + k * m, m)
            if weight[t] != 0.0:
                fade(sums, lost, 2 * m, forgetting)
                g = losses + truth[t] * m
                if shared:
                    add_count(sums, lost, g, 1, weight[t])
                    top = theta * (alpha + (sums[0] + lost[0]))
                    add_and_weigh(sums + m, lost + m, g, m, weight[t], top, beta, theta, weights)
                else:
                    add_count(sums, lost, g, m, weight[t])
                    add_row(sums + m, lost + m, g, m, weight[t])
                    rate_weights(sums, lost, m, alpha, beta, theta, weights)
            if not scored:
                losses += n_labels * m
        if shared:
            for k in range(m):
                sums[k] = sums[0]
                lost[k] = lost[0]
