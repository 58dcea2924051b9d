"""Kernels of agreement: distributions of leads, weighted sums over members with random weights."""

cimport numpy as cnp
from libc.math cimport M_PI, NAN, atan, exp, fabs, log1p, sin, sqrt

from bayesvote.core.arrays cimport contiguous, dim, doubles, own_doubles, room

cdef extern from "lanes.h" nogil:
    double inner(const double *a, const double *b, Py_ssize_t n)

cnp.import_array()

cdef enum:
    MOST_STEPS = 512

cdef extern from *:
    """
    #define SURE 60.0    /* standard deviations from 0, beyond which a sum of Gammas has a sign */
    #define TAIL 20.0    /* standard deviations beyond which its probability is below exp(-20) */
    #define LEAST 16.0   /* minus the logarithm of the integrand where it is cut off: exp(-16) = 1e-7 */
    """
    const double SURE
    const double TAIL
    const double LEAST


def lead_moments(leads, means, covariances, out_means, out_covariances):
    """Compute means (n, p, L) and covariances (n, p, L, L) of leads (n, L, m) under p Gaussians of the weights.

    Only the lower triangles of the weights' covariances are read. A row's results do not depend on the other rows.
    """
    leads, means, covariances = contiguous(leads), contiguous(means), contiguous(covariances)
    cdef Py_ssize_t n = dim(leads, 0)
    cdef Py_ssize_t n_leads = dim(leads, 1)
    cdef Py_ssize_t m = dim(leads, 2)
    cdef Py_ssize_t n_parts = dim(means, 0)
    cdef const double *leads_ = doubles(leads)
    cdef const double *means_ = doubles(means)
    cdef const double *covariances_ = doubles(covariances)
    cdef double *mean = own_doubles(out_means)
    cdef double *covariance = own_doubles(out_covariances)
    scratch = room(n_leads * m)
    cdef double *below = own_doubles(scratch)  # the part of S below its diagonal, times each lead
    cdef const double *S
    cdef const double *x
    cdef const double *z
    cdef double sum
    cdef Py_ssize_t t, p, a, b, i
    with nogil:
        for t in range(n):
            x = leads_ + t * n_leads * m
            for p in range(n_parts):
                S = covariances_ + p * m * m
                for a in range(n_leads):
                    mean[a] = inner(means_ + p * m, x + a * m, m)
                    for i in range(m):
                        below[a * m + i] = inner(S + i * m, x + a * m, i)
                for a in range(n_leads):
                    for b in range(a + 1):
                        sum = 0.0
                        z = x + b * m
                        for i in range(m):
                            sum += S[i * m + i] * x[a * m + i] * z[i]
                        sum += inner(below + a * m, z, m) + inner(below + b * m, x + a * m, m)
                        covariance[a * n_leads + b] = covariance[b * n_leads + a] = sum
                mean += n_leads
                covariance += n_leads * n_leads


cdef double above_zero(const double *shape, const double *scale, Py_ssize_t m) noexcept nogil:
    """Return P(sum of scale times Gamma(shape) > 0); NaN if that takes too many steps.

    The characteristic function is inverted (Gil-Pelaez) by the midpoint rule. The error is the probability beyond
    2 pi/step (Davies 1973).
    """
    cdef double mean = 0.0
    cdef double variance = 0.0
    cdef double largest = 0.0
    cdef double step, size, angle, x, unit
    cdef double total = 0.0
    cdef Py_ssize_t i, j
    for i in range(m):
        mean += shape[i] * scale[i]
        variance += shape[i] * scale[i] * scale[i]
        largest = max(largest, fabs(scale[i]))
    if largest == 0.0:
        return NAN
    unit = 1.0 / sqrt(variance)
    mean *= unit
    if fabs(mean) > SURE:
        return 1.0 if mean > 0.0 else 0.0
    # A Gamma's tail falls like exp(-x/scale).
    step = 2.0 * M_PI / (fabs(mean) + TAIL * max(1.0, largest * unit))
    for j in range(MOST_STEPS):
        size = angle = 0.0
        for i in range(m):
            x = scale[i] * unit * step * (j + 0.5)
            size += 0.5 * shape[i] * log1p(x * x)
            angle += shape[i] * atan(x)
        total += exp(-size) * sin(angle) / (j + 0.5)
        if size > LEAST:
            return min(max(0.5 + total / M_PI, 0.0), 1.0)
    return NAN


def gamma_leads(shape, rate, leads, out):
    """Compute P(lead > 0) for rows (n, m) and Gamma(shape, rate) weights; NaN where it takes too long."""
    shape, rate, leads = contiguous(shape), contiguous(rate), contiguous(leads)
    cdef Py_ssize_t n = dim(leads, 0)
    cdef Py_ssize_t m = dim(leads, 1)
    cdef const double *shape_ = doubles(shape)
    cdef const double *rate_ = doubles(rate)
    cdef const double *leads_ = doubles(leads)
    cdef double *out_ = own_doubles(out)
    scratch = room(m)
    cdef double *scale = own_doubles(scratch)
    cdef Py_ssize_t t, i
    with nogil:
        for t in range(n):
            for i in range(m):
                scale[i] = leads_[t * m + i] / rate_[i]
            out_[t] = above_zero(shape_, scale, m)
