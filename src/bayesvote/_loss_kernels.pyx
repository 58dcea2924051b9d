"""Kernels of the named losses: every label's loss straight from the scores of two classes."""

cimport numpy as cnp

from bayesvote._arrays cimport dim, doubles, own_doubles

cnp.import_array()


def two_classes(int kind, scores, out):
    """Losses (n, 2, m) of both labels for scores (n, m)."""
    cdef Py_ssize_t n = dim(scores, 0)
    cdef Py_ssize_t m = dim(scores, 1)
    cdef const double *given = doubles(scores)
    cdef double *result = own_doubles(out)
    cdef Py_ssize_t t
    with nogil:
        for t in range(n):
            of_both(kind, given + t * m, m, result + 2 * t * m)
