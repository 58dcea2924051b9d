"""Kernel of the ordered statistics of a category: the log-odds of a value in the rows before each row."""

cimport numpy as cnp
from libc.math cimport log
from libc.stdint cimport int64_t, uint8_t

from bayesvote.core.arrays cimport dim, doubles, labels, longs, octets, own_doubles, own_octets

cnp.import_array()

cdef extern from *:
    """
    #define LEAST 3 /* rows of a value that has a feature of its own */
    #define MOST_OFTEN 64 /* least share of the rows for it: one of 64 */
    """
    const double LEAST
    const double MOST_OFTEN


cdef void features_of(
    const double *counts, const double *totals, Py_ssize_t n_classes, double smoothing, double *out
) noexcept nogil:
    """Smoothed log-odds of a value's classes, less those of all rows: 0 for a value without rows."""
    cdef double n = 0.0, rows = 0.0, p, q
    cdef Py_ssize_t k
    for k in range(n_classes):
        n += counts[k]
        rows += totals[k] + 1.0
    if n_classes == 2:
        p, q = (totals[1] + 1.0) / rows, (totals[0] + 1.0) / rows
        out[0] = log((counts[1] + smoothing * p) / (counts[0] + smoothing * q)) - log(p / q) if n > 0.0 else 0.0
        return
    for k in range(n_classes):
        p = (totals[k] + 1.0) / rows
        out[k] = log((counts[k] + smoothing * p) / ((n + smoothing) * p)) if n > 0.0 else 0.0


def ordered(slots, y, learn, counts, totals, rare, Py_ssize_t own_first, double smoothing, out, flags):
    """Features (n, 1) or (n, K) of every row's value by the rows before it; then count the row, if it is learned.

    ``slots`` are the values' places among ``counts`` (v, K), or -1. ``flags`` (2, n) tell whether rows before had the
    value, and whether a value that was ``rare`` (v,) comes often from this row on.
    """
    cdef Py_ssize_t n = dim(slots, 0), n_classes = dim(totals, 0), width = dim(out, 1), t, k
    cdef const int64_t *slots_ = longs(slots)
    cdef const Py_ssize_t *y_ = labels(y)
    cdef const uint8_t *learn_ = octets(learn)
    cdef double *counts_ = own_doubles(counts)
    cdef double *totals_ = own_doubles(totals)
    cdef double *out_ = own_doubles(out)
    cdef uint8_t *met = own_octets(flags)
    cdef uint8_t *often = met + n
    cdef uint8_t *rare_ = own_octets(rare)
    cdef double rows = 0.0, own_rows
    cdef double *own
    with nogil:
        for k in range(n_classes):
            rows += totals_[k]
        for t in range(n):
            if slots_[t] >= 0:
                own = counts_ + slots_[t] * n_classes
                features_of(own, totals_, n_classes, smoothing, out_ + t * width)
                own_rows = 0.0
                for k in range(n_classes):
                    own_rows += own[k]
                met[t] = own_rows > 0.0
                if learn_[t]:
                    own[y_[t]] += 1.0
                    own_rows += 1.0
                    if rare_[slots_[t]] and (
                        slots_[t] < own_first or (own_rows >= LEAST and own_rows * MOST_OFTEN > rows)
                    ):
                        rare_[slots_[t]] = 0
                        often[t] = 1
            if learn_[t]:
                totals_[y_[t]] += 1.0
                rows += 1.0
