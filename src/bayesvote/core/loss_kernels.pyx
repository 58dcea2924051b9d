"""Kernels of the named losses: the losses of both labels from the scores of two classes."""

cimport numpy as cnp

from bayesvote.core.arrays cimport dim, doubles, own_doubles

cdef extern from *:
    """
    #if defined(__x86_64__) && defined(__AVX2__)
    #define BUILD_NAME "x86-64-v3"
    #else
    #define BUILD_NAME "baseline"
    #endif
    """
    const char *BUILD_NAME

cnp.import_array()

BUILD = BUILD_NAME.decode()  # of all kernels; see src/select_build.c


def two_classes(int kind, scores, out):
    """Compute the losses (n, 2, m) of both labels for scores (n, m)."""
    cdef Py_ssize_t n = dim(scores, 0)
    cdef Py_ssize_t m = dim(scores, 1)
    cdef const double *given = doubles(scores)
    cdef double *result = own_doubles(out)
    cdef Py_ssize_t t
    with nogil:
        for t in range(n):
            of_both(kind, given + t * m, m, result + 2 * t * m)
