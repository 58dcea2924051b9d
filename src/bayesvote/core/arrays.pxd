"""Conversion of arrays to the pointers that kernels use, with checks of type and layout.

A typed memoryview costs 0.3 to 0.5 us for every array of every call, ten times as much as these checks, and a call for
one row has a dozen arrays.
"""

cimport numpy as cnp
from libc.stdint cimport int8_t, int32_t, int64_t, uint8_t, uint32_t, uint64_t


cdef inline void *data(object a, char kind, int size, bint written) except NULL:
    if not (
        cnp.PyArray_Check(a)
        and (<cnp.ndarray> a).descr.kind == kind
        and cnp.PyArray_ITEMSIZE(a) == size
        and (cnp.PyArray_ISCARRAY(a) if written else cnp.PyArray_ISCARRAY_RO(a))
    ):
        what = f"{a.dtype} of shape {a.shape}, strides {a.strides}" if cnp.PyArray_Check(a) else type(a).__name__
        must = f"contiguous{', writeable' if written else ''}, of kind {chr(kind)!r} and {size} bytes a number"
        raise TypeError(f"kernel: an array must be {must}, got {what}.")
    return cnp.PyArray_DATA(a)


# Arrays that are only read.
cdef inline const double *doubles(object a) except NULL:
    return <const double *> data(a, b"f", 8, False)

cdef inline const float *floats(object a) except NULL:
    return <const float *> data(a, b"f", 4, False)

cdef inline const Py_ssize_t *labels(object a) except NULL:
    return <const Py_ssize_t *> data(a, b"i", sizeof(cnp.npy_intp), False)

cdef inline const int32_t *ints(object a) except NULL:
    return <const int32_t *> data(a, b"i", 4, False)

cdef inline const int64_t *longs(object a) except NULL:
    return <const int64_t *> data(a, b"i", 8, False)

cdef inline const uint8_t *octets(object a) except NULL:
    return <const uint8_t *> data(a, b"u", 1, False)

cdef inline const uint32_t *places(object a) except NULL:
    return <const uint32_t *> data(a, b"u", 4, False)

cdef inline const uint64_t *words(object a) except NULL:
    return <const uint64_t *> data(a, b"u", 8, False)


# Arrays that are also written.
cdef inline double *own_doubles(object a) except NULL:
    return <double *> data(a, b"f", 8, True)

cdef inline float *own_floats(object a) except NULL:
    return <float *> data(a, b"f", 4, True)

cdef inline Py_ssize_t *own_labels(object a) except NULL:
    return <Py_ssize_t *> data(a, b"i", sizeof(cnp.npy_intp), True)

cdef inline uint8_t *own_octets(object a) except NULL:
    return <uint8_t *> data(a, b"u", 1, True)

cdef inline int8_t *own_codes(object a) except NULL:
    return <int8_t *> data(a, b"i", 1, True)

cdef inline int32_t *own_ints(object a) except NULL:
    return <int32_t *> data(a, b"i", 4, True)

cdef inline int64_t *own_longs(object a) except NULL:
    return <int64_t *> data(a, b"i", 8, True)

cdef inline uint64_t *own_words(object a) except NULL:
    return <uint64_t *> data(a, b"u", 8, True)


cdef inline object contiguous(object a):
    """Return the array, or a contiguous copy of it."""
    return cnp.PyArray_GETCONTIGUOUS(a)


cdef inline Py_ssize_t dim(object a, int axis) noexcept:
    """Return the length of an array along an axis, which must exist."""
    return cnp.PyArray_DIM(a, axis)


cdef inline object room(Py_ssize_t n):
    """Allocate an uninitialised array of n doubles."""
    cdef cnp.npy_intp size = n
    return cnp.PyArray_EMPTY(1, &size, cnp.NPY_DOUBLE, 0)


cdef inline object zeros(Py_ssize_t n):
    """Allocate an array of n zeros."""
    cdef cnp.npy_intp size = n
    return cnp.PyArray_ZEROS(1, &size, cnp.NPY_DOUBLE, 0)


cdef inline double *aligned(double *p) noexcept nogil:
    """Return the first cache line boundary from here, at most seven doubles on, so that vectors lie in one line."""
    return <double *> ((<size_t> p + 63) & ~(<size_t> 63))
