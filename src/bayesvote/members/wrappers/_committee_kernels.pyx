"""Kernels of committees: scores by the mean of the members' probabilities."""

cimport numpy as cnp
from libc.math cimport exp, fabs, log
from libc.string cimport memcpy

from bayesvote.core.arrays cimport contiguous, dim, doubles, labels, own_doubles, room

cnp.import_array()

cdef extern from *:
    """
    #define LEAST 1e-300 /* smaller mean probabilities are raised to this value: their logarithm must be finite */
    """
    const double LEAST


cdef inline double of_two(const double *scores, Py_ssize_t n) noexcept nogil:
    """Half the log-odds of the mean probability of class 1; NaN if all abstain."""
    cdef double first = 0.0
    cdef double second = 0.0
    cdef double small, large
    cdef Py_ssize_t i
    for i in range(n):
        if scores[i] == scores[i]:
            small = exp(-2.0 * fabs(scores[i]))
            large = 1.0 / (1.0 + small)
            small *= large
            first += small if scores[i] > 0.0 else large
            second += large if scores[i] > 0.0 else small
    if first + second == 0.0:
        return scores[0]
    return 0.5 * log(max(second, LEAST) / max(first, LEAST))


cdef inline void of_many(const double *scores, Py_ssize_t n, Py_ssize_t k, double *means, double *out) noexcept nogil:
    """Half the logarithms of the mean probabilities of k classes; NaN if all abstain."""
    cdef double top, total
    cdef Py_ssize_t i, c
    cdef const double *own
    cdef bint any = False
    for c in range(k):
        means[c] = 0.0
    for i in range(n):
        own = scores + i * k
        if own[0] != own[0]:
            continue
        any = True
        top, total = own[0], 0.0
        for c in range(1, k):
            top = max(top, own[c])
        for c in range(k):
            total += exp(2.0 * (own[c] - top))
        for c in range(k):
            means[c] += exp(2.0 * (own[c] - top)) / total
    for c in range(k):
        out[c] = 0.5 * log(max(means[c], LEAST)) if any else scores[0]


def mean_scores(scores, ends, out):
    """Compute scores (n, committees) from (n, members) or, per class, (n, committees, K) from (n, members, K)."""
    scores = contiguous(scores)
    cdef Py_ssize_t n = dim(scores, 0)
    cdef Py_ssize_t m = dim(scores, 1)
    cdef Py_ssize_t k = 1 if scores.ndim == 2 else dim(scores, 2)
    cdef Py_ssize_t n_committees = dim(ends, 0)
    cdef const double *scores_ = doubles(scores)
    cdef const Py_ssize_t *ends_ = labels(ends)
    cdef double *out_ = own_doubles(out)
    scratch = room(k)
    cdef double *means = own_doubles(scratch)
    cdef Py_ssize_t t, c, first
    with nogil:
        for t in range(n):
            first = 0
            for c in range(n_committees):
                if ends_[c] - first == 1:
                    memcpy(out_ + (t * n_committees + c) * k, scores_ + (t * m + first) * k, k * sizeof(double))
                elif k == 1:
                    out_[t * n_committees + c] = of_two(scores_ + t * m + first, ends_[c] - first)
                else:
                    of_many(
                        scores_ + (t * m + first) * k,
                        ends_[c] - first,
                        k,
                        means,
                        out_ + (t * n_committees + c) * k,
                    )
                first = ends_[c]
