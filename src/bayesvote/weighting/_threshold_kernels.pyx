"""Kernel of the threshold for predicting another label than the most common one."""

cimport numpy as cnp
from libc.math cimport INFINITY, nextafter, sqrt

from bayesvote.core.arrays cimport contiguous, dim, doubles, labels, own_doubles

cnp.import_array()


cdef inline Py_ssize_t chosen(const double *mistakes, Py_ssize_t n) noexcept nogil:
    """Return the index of the threshold with the fewest mistakes; 0 unless another is better by more than chance.

    The n counts of the long run are followed by those of recent rows, on which the threshold must not be worse.
    """
    cdef Py_ssize_t best = 0
    cdef Py_ssize_t b
    for b in range(1, n):
        if mistakes[b] < mistakes[best] and mistakes[n + b] <= mistakes[n]:
            best = b
    return best if mistakes[0] - mistakes[best] > sqrt(mistakes[0]) else 0


cdef inline void decide(
    double *losses, Py_ssize_t n_labels, const double *counts, double least, double *decision
) noexcept nogil:
    """Store the most common label, the best other one and its lead; predict the former if the lead is too small."""
    cdef Py_ssize_t common = 0
    cdef Py_ssize_t other = -1
    cdef Py_ssize_t k
    cdef double lead
    for k in range(1, n_labels):
        if counts[k] > counts[common]:
            common = k
    for k in range(n_labels):
        if k != common and (other < 0 or losses[k] <= losses[other]):
            other = k
    lead = losses[common] - losses[other]
    decision[0], decision[1], decision[2] = common, other, lead
    if 0.0 <= lead < least:
        losses[common] = nextafter(losses[other], -INFINITY)


cdef inline void learn(
    const double *decision,
    const double *logs,
    Py_ssize_t n,
    Py_ssize_t y,
    double w,
    const double *fades,
    double *mistakes,
) noexcept nogil:
    """Count the mistakes of every threshold on a row with its label."""
    cdef Py_ssize_t common = <Py_ssize_t> decision[0]
    cdef Py_ssize_t other = <Py_ssize_t> decision[1]
    cdef double lead = decision[2]
    cdef bint answers_other
    cdef double wrong
    cdef Py_ssize_t b
    for b in range(n):
        answers_other = lead >= logs[b] and (lead > 0.0 or other > common)
        wrong = w if (other if answers_other else common) != y else 0.0
        mistakes[b] = fades[0] * mistakes[b] + wrong
        mistakes[n + b] = fades[1] * mistakes[n + b] + wrong


def threshold_rows(losses, y, w, decisions, logs, counts, mistakes, fades):
    """Predict rows of weight 0, storing their decisions, and learn the others; without labels, predict all."""
    y, w, logs, fades = contiguous(y), contiguous(w), contiguous(logs), contiguous(fades)
    cdef Py_ssize_t n = dim(losses, 0)
    cdef Py_ssize_t n_labels = dim(losses, 1)
    cdef Py_ssize_t n_logs = dim(logs, 0)
    cdef double *losses_ = own_doubles(losses)
    cdef const Py_ssize_t *y_ = labels(y) if dim(y, 0) > 0 else NULL
    cdef const double *w_ = doubles(w)
    cdef double *decisions_ = own_doubles(decisions)
    cdef const double *logs_ = doubles(logs)
    cdef const double *fades_ = doubles(fades)
    cdef double *counts_ = <double *> doubles(counts)
    cdef double *mistakes_ = <double *> doubles(mistakes)
    cdef Py_ssize_t t, k
    if y_ != NULL:
        own_doubles(counts)
        own_doubles(mistakes)
    with nogil:
        for t in range(n):
            if y_ == NULL or w_[t] == 0.0:
                decide(losses_ + t * n_labels, n_labels, counts_, logs_[chosen(mistakes_, n_logs)], decisions_ + 3 * t)
                continue
            learn(decisions_ + 3 * t, logs_, n_logs, y_[t], w_[t], fades_, mistakes_)
            for k in range(n_labels):
                counts_[k] *= fades_[0]
            counts_[y_[t]] += w_[t]
