"""Kernels of Bayesian logistic regressions, which process one regression after the other, each over all rows."""

cimport numpy as cnp
from libc.math cimport copysign, exp, fabs, log1p, sqrt
from libc.stdint cimport uint32_t

from bayesvote.core.arrays cimport contiguous, dim, doubles, labels, own_doubles, places, room
from bayesvote.core.rows cimport RowView, gather, view_rows
from bayesvote.core.logistic cimport PI_EIGHTH, settled, sigmoid

cdef extern from "triangle.h" nogil:
    void subtract_and_multiply(double *A, Py_ssize_t m, const double *u, const double *x, double *out)
    void only_multiply(double *A, Py_ssize_t m, const double *x, double *out)
    void only_subtract(double *A, Py_ssize_t m, const double *u)

cnp.import_array()

cdef double ROUNDING = 1e-12  # a variance this small relative to the sizes of its parts is rounding, and counts as 0


cdef struct Regression:
    Py_ssize_t size  # number of weights: the bias, then one for each feature
    double *mean
    double *covariance
    double *x
    double *s  # the covariance times x
    double *u  # u u' is still to be subtracted from the covariance, if ``put_off``
    bint put_off


cdef inline double inner(const double *a, const double *b, Py_ssize_t n) noexcept nogil:
    cdef double total = 0.0
    cdef Py_ssize_t i
    for i in range(n):
        total += a[i] * b[i]
    return total


cdef inline double odds_of(Regression *own, double *variance) noexcept nogil:
    """Return the log-odds at the mean of the weights; set their variance, which is 0 if only rounding is left of it.

    With features of very different sizes, rounding of the covariance can exceed the variance in some direction.
    """
    cdef double size = 0.0
    cdef Py_ssize_t i
    if own.put_off:
        subtract_and_multiply(own.covariance, own.size, own.u, own.x, own.s)
    else:
        only_multiply(own.covariance, own.size, own.x, own.s)
    own.put_off = False
    for i in range(own.size):
        size += fabs(own.s[i] * own.x[i])
    variance[0] = inner(own.s, own.x, own.size)
    if not variance[0] > ROUNDING * size:
        variance[0] = 0.0
    return inner(own.mean, own.x, own.size)


cdef inline void learn(Regression *own, double odds, double variance, bint positive, double w) noexcept nogil:
    """Move the mean to the mode of the posterior after a label, and take the curvature there.

    The covariance of a weight with the log-odds is at most the root of the product of both variances (Cauchy-Schwarz).
    Rounding can exceed this bound in directions of almost no variance. With the bound enforced, no row subtracts more
    from the variance of a weight than there is, and no covariance exceeds that of the prior.
    """
    cdef double sign = 1.0 if positive else -1.0
    cdef double miss = sigmoid(-settled(sign * odds, w * variance))
    cdef double curvature = w * miss * (1.0 - miss)
    cdef double root = sqrt(curvature / (1.0 + curvature * variance))
    cdef double shift = sign * w * miss
    cdef double most
    cdef Py_ssize_t i
    for i in range(own.size):
        most = own.covariance[i * own.size + i] * variance
        if own.s[i] * own.s[i] > most:
            own.s[i] = copysign(sqrt(most), own.s[i]) if most > 0.0 else 0.0
        own.mean[i] += shift * own.s[i]
        own.u[i] = root * own.s[i]
    own.put_off = True


def run(rows, y, w, features, means, covariances, Py_ssize_t first, Py_ssize_t last, out):
    """Score every row by regressions first to last, before it is learned; without labels none is.

    There is one regression per member or, with more than two classes, per member and class.
    """
    y, w = contiguous(y), contiguous(w)
    cdef RowView view
    cdef Regression own
    cdef Py_ssize_t k = dim(features, 1)
    cdef Py_ssize_t per = dim(means, 1)
    cdef Py_ssize_t total = dim(means, 0) * per
    cdef const uint32_t *all_features = places(features)
    cdef const uint32_t *seen
    cdef double *means_ = own_doubles(means)
    cdef double *covariances_ = own_doubles(covariances)
    cdef const Py_ssize_t *y_ = labels(y) if dim(y, 0) > 0 else NULL
    cdef const double *w_ = doubles(w)
    cdef double *out_ = own_doubles(out)
    scratch = room(3 * (k + 1))
    view_rows(rows, &view)
    own.size = k + 1
    own.x = own_doubles(scratch)
    own.x[0] = 1.0  # for the bias
    own.s = own.x + own.size
    own.u = own.s + own.size
    cdef double odds, variance, score
    cdef Py_ssize_t q, t
    with nogil:
        for q in range(first, last):
            seen = all_features + q // per * k
            own.mean = means_ + q * own.size
            own.covariance = covariances_ + q * own.size * own.size
            own.put_off = False
            for t in range(view.n):
                gather(&view, t, seen, k, own.x + 1)
                odds = odds_of(&own, &variance)
                score = odds / sqrt(1.0 + PI_EIGHTH * variance)
                if per > 1:  # the log-probability of the class in the regression against the rest
                    score = -log1p(exp(-score)) if score > 0.0 else score - log1p(exp(score))
                out_[t * total + q] = 0.5 * score
                if y_ != NULL and w_[t] != 0.0 and variance > 0.0:
                    learn(&own, odds, variance, y_[t] == (1 if per == 1 else q % per), w_[t])
            if own.put_off:
                only_subtract(own.covariance, own.size, own.u)
