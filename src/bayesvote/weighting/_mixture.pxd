"""Shared kernels of joint posteriors: margins of members, and averages of means by evidence."""

from libc.math cimport exp
from libc.string cimport memset

cdef extern from "lanes.h" nogil:
    double inner(const double *a, const double *b, Py_ssize_t n)


cdef inline void to_margins(const double *g, Py_ssize_t m, double *out) noexcept nogil:
    """Compute the members' margins 1 - 2g; 0 where a member abstains."""
    cdef Py_ssize_t i
    for i in range(m):
        out[i] = 1.0 - 2.0 * g[i] if g[i] == g[i] else 0.0


cdef inline void label_losses(
    const double *weights, const double *G, Py_ssize_t n, Py_ssize_t m, double *x, double *out
) noexcept nogil:
    """Compute (1 - weighted margin)/2 of n labels; x is scratch for a row."""
    cdef Py_ssize_t k
    for k in range(n):
        to_margins(G + k * m, m, x)
        out[k] = 0.5 - 0.5 * inner(weights, x, m)


cdef inline double largest(const double *x, Py_ssize_t n) noexcept nogil:
    cdef double top = x[0]
    cdef Py_ssize_t p
    for p in range(1, n):
        top = max(top, x[p])
    return top


cdef inline void mix_means(
    const double *evidence, const double *means, Py_ssize_t n, Py_ssize_t m, double *out
) noexcept nogil:
    """Compute the average of n means, weighted by exp(evidence)."""
    cdef double top = largest(evidence, n)
    cdef double total = 0.0
    cdef double weight
    cdef Py_ssize_t p, i
    memset(out, 0, m * sizeof(double))
    for p in range(n):
        weight = exp(evidence[p] - top)
        total += weight
        for i in range(m):
            out[i] += weight * means[p * m + i]
    for i in range(m):
        out[i] /= total
