"""Kernel of the online calibration."""

cimport numpy as cnp
from libc.math cimport INFINITY, exp

from bayesvote.core.arrays cimport contiguous, dim, doubles, labels, own_doubles, room

cnp.import_array()


cdef void learn_rows(
    double *mean,
    double *information,
    const double *all_logs,
    Py_ssize_t n,
    Py_ssize_t n_classes,
    const Py_ssize_t *decisions,
    const Py_ssize_t *y,
    const double *w,
    double forgetting,
    double prior,
    double *before,
    double *p,
) noexcept nogil:
    cdef Py_ssize_t t, k, d
    cdef const double *logs
    cdef double top, total, first, second, slope, lift, aa, ab, bb, determinant
    for t in range(n):
        logs = all_logs + t * n_classes
        before[2 * t] = mean[0]
        before[2 * t + 1] = mean[1]
        if w[t] == 0.0:
            continue
        d = decisions[t]
        top = -INFINITY
        for k in range(n_classes):
            p[k] = mean[0] * logs[k] + (mean[1] if k == d else 0.0)
            top = max(top, p[k])
        total = 0.0
        for k in range(n_classes):
            p[k] = exp(p[k] - top)
            total += p[k]
        first = second = 0.0
        for k in range(n_classes):
            p[k] /= total
            first += p[k] * logs[k]
        for k in range(n_classes):
            second += p[k] * ((logs[k] - first) * (logs[k] - first))
        # Gradient and Fisher information of the features (log-probability, whether it is the decision).
        slope = w[t] * (logs[y[t]] - first)
        lift = w[t] * ((1.0 if y[t] == d else 0.0) - p[d])
        for k in range(4):
            information[k] *= forgetting
        information[0] += w[t] * second
        information[1] += w[t] * p[d] * (logs[d] - first)
        information[3] += w[t] * p[d] * (1.0 - p[d])
        aa, ab, bb = information[0] + prior, information[1], information[3] + prior
        determinant = aa * bb - ab * ab
        # Neither may fall below 0, or a label other than the decision would become the likeliest.
        mean[0] = max(mean[0] + (bb * slope - ab * lift) / determinant, 0.0)
        mean[1] = max(mean[1] + (aa * lift - ab * slope) / determinant, 0.0)


def learn(mean, information, logs, decisions, y, w, double forgetting, double prior, before):
    """One Newton step per row on the log-likelihood of (a, b), in place; see :class:`Calibration`.

    What (a, b) were before each row goes to ``before``.
    """
    logs, decisions, y, w = contiguous(logs), contiguous(decisions), contiguous(y), contiguous(w)
    cdef double *mean_ = own_doubles(mean)
    cdef double *information_ = own_doubles(information)
    cdef const double *logs_ = doubles(logs)
    cdef const Py_ssize_t *decisions_ = labels(decisions)
    cdef const Py_ssize_t *y_ = labels(y)
    cdef const double *w_ = doubles(w)
    cdef double *before_ = own_doubles(before)
    cdef Py_ssize_t n = dim(logs, 0)
    cdef Py_ssize_t n_classes = dim(logs, 1)
    scratch = room(n_classes)
    cdef double *p = own_doubles(scratch)
    with nogil:
        learn_rows(mean_, information_, logs_, n, n_classes, decisions_, y_, w_, forgetting, prior, before_, p)
