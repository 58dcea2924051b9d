"""Functions that the kernels of several kinds of members share."""

from libc.math cimport NAN
from libc.stdint cimport int32_t

ctypedef fused Flag:
    const unsigned char
    const double


cdef inline void transpose(
    const double *values, Py_ssize_t n, Py_ssize_t width, Py_ssize_t block, double *X
) noexcept nogil:
    """Transpose n dense rows into X, which has one row of ``block`` numbers per feature."""
    cdef Py_ssize_t r, j
    for r in range(n):
        for j in range(width):
            X[j * block + r] = values[r * width + j]


cdef inline void abstain(
    const double *given, const int32_t *columns, Py_ssize_t n, Flag *uses, Py_ssize_t width, Py_ssize_t m, double *row
) noexcept nogil:
    """Set those of m scores to NaN that use a missing one of n values; ``uses`` has rows of length ``width``."""
    cdef Py_ssize_t p, c
    for p in range(n):
        if given[p] != given[p]:
            for c in range(m):
                if uses[columns[p] * width + c] != 0:
                    row[c] = NAN
