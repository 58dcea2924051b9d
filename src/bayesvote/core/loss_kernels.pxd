"""The named losses, see :mod:`bayesvote.losses`."""

from libc.math cimport exp, fabs, log1p

cdef enum:
    RAMP = 0
    LOGISTIC = 1
    HINGE = 2
    ZERO_ONE = 3
    WIDE_RAMP = 4


cdef inline double ramp(double z) noexcept nogil:
    """Clip to [0, 1]; NaN fails both comparisons and stays."""
    cdef double g = (1.0 - z) * 0.5
    g = 0.0 if g < 0.0 else g
    return 1.0 if g > 1.0 else g


cdef inline double logistic(double z) noexcept nogil:
    cdef double smallest = 2.2250738585072014e-308  # smallest normal double
    cdef double g = (0.0 if z > 0.0 else -z) + log1p(exp(-fabs(z)))
    return smallest if g < smallest else g


cdef inline double hinge(double z) noexcept nogil:
    return 0.0 if 1.0 - z < 0.0 else 1.0 - z


cdef inline double zero_one(double z) noexcept nogil:
    return z * 0.0 + (0.0 if z > 0.0 else 1.0 if z < 0.0 else 0.5)


cdef inline void of_both(int kind, const double *scores, Py_ssize_t m, double *out) noexcept nogil:
    """Compute the losses (2, m) of both labels for a row of scores."""
    cdef double *first = out
    cdef double *second = out + m
    cdef Py_ssize_t i
    if kind == RAMP:
        for i in range(m):
            first[i] = ramp(-scores[i])
            second[i] = ramp(scores[i])
    elif kind == LOGISTIC:
        for i in range(m):
            first[i] = logistic(-scores[i])
            second[i] = logistic(scores[i])
    elif kind == HINGE:
        for i in range(m):
            first[i] = hinge(-scores[i])
            second[i] = hinge(scores[i])
    elif kind == ZERO_ONE:
        for i in range(m):
            first[i] = zero_one(-scores[i])
            second[i] = zero_one(scores[i])
    else:  # WIDE_RAMP
        for i in range(m):
            first[i] = ramp(-0.5 * scores[i])
            second[i] = ramp(0.5 * scores[i])
