"""Kernels that standardise each row by the rows before it and itself; the formulas are in simd/scales.h."""

cimport numpy as cnp
from libc.stdint cimport int32_t, int64_t
from libc.stdlib cimport free, malloc, realloc
from libc.string cimport memcpy, memmove

from bayesvote.core.arrays cimport contiguous, dim, doubles, ints, own_doubles
from bayesvote.core.rows cimport RowView, view_rows

cdef extern from "scales.h" nogil:
    double centre_of(double n, double count, double mean)
    double standardised(double x, double n, double *count, double *mean, double *squares)
    void standardise_row(
        const double *x,
        Py_ssize_t d,
        double rows,
        bint learn,
        double *missing,
        double *count,
        double *mean,
        double *squares,
        double *out,
    )

cnp.import_array()


cdef struct Scales:
    double *rows
    double *missing
    double *count
    double *mean
    double *squares


cdef int view_scales(object state, Scales *out) except -1:
    out.rows = own_doubles(state.rows)
    out.missing = own_doubles(state.missing)
    out.count = own_doubles(state.nonzero)
    out.mean = own_doubles(state.mean)
    out.squares = own_doubles(state.squares)
    return 0


def standardise(rows, weight, state, out):
    """Standardise dense rows into ``out``; learn rows of weight above 0, or none without weights."""
    weight = contiguous(weight)
    cdef RowView view
    cdef Scales scales
    view_rows(rows, &view)
    view_scales(state, &scales)
    cdef const double *weight_ = doubles(weight) if dim(weight, 0) > 0 else NULL
    cdef double *out_ = own_doubles(out)
    cdef Py_ssize_t d = view.width
    cdef Py_ssize_t t
    cdef bint learn
    with nogil:
        for t in range(view.n):
            learn = weight_ != NULL and weight_[t] > 0.0
            standardise_row(
                view.values + t * d,
                d,
                scales.rows[0] + 1.0,
                learn,
                scales.missing,
                scales.count,
                scales.mean,
                scales.squares,
                out_ + t * d,
            )
            if learn:
                scales.rows[0] += 1.0


cdef struct Sparse:
    Py_ssize_t size
    Py_ssize_t room
    double *values
    int32_t *columns
    int32_t *centred  # sorted features that may be centred elsewhere than at 0; may include others
    Py_ssize_t n_centred


cdef bint make_room(Sparse *out, Py_ssize_t more) noexcept nogil:
    """Return True if there is room for n more."""
    cdef Py_ssize_t room = out.room
    cdef void *values
    cdef void *columns
    if out.size + more <= room:
        return True
    room = 2 * room + more
    values = realloc(out.values, room * sizeof(double))
    if values != NULL:
        out.values = <double *> values
    columns = realloc(out.columns, room * sizeof(int32_t))
    if columns != NULL:
        out.columns = <int32_t *> columns
    if values == NULL or columns == NULL:
        return False
    out.room = room
    return True


cdef inline void put(Sparse *out, int32_t column, double value) noexcept nogil:
    out.values[out.size] = value
    out.columns[out.size] = column
    out.size += 1


cdef inline void put_zero(Sparse *out, int32_t j, double n, const Scales *scales) noexcept nogil:
    """Standardise a zero that is not stored; leave it out if it stays 0."""
    cdef double count = scales.count[j]
    cdef double mean = scales.mean[j]
    cdef double squares = scales.squares[j]
    cdef double z = standardised(0.0, n, &count, &mean, &squares)
    if z != 0.0:
        put(out, j, z)


cdef void insert(Sparse *out, int32_t j) noexcept nogil:
    """Add a feature to the sorted features that may be centred elsewhere than at 0, unless it is among them."""
    cdef Py_ssize_t lo = 0
    cdef Py_ssize_t hi = out.n_centred
    cdef Py_ssize_t at
    while lo < hi:
        at = (lo + hi) // 2
        if out.centred[at] < j:
            lo = at + 1
        else:
            hi = at
    if lo < out.n_centred and out.centred[lo] == j:
        return
    memmove(out.centred + lo + 1, out.centred + lo, (out.n_centred - lo) * sizeof(int32_t))
    out.centred[lo] = j
    out.n_centred += 1


cdef inline bint may_be_centred(const Scales *scales, Py_ssize_t j) noexcept nogil:
    return 4.0 * scales.count[j] >= scales.rows[0] - scales.missing[j] and scales.count[j] > 0.0


def centred_features(state):
    """Return the features that may be centred elsewhere than at 0, in ascending order.

    The centre of a feature that is 0 in a row only moves towards 0. So these are enough until another one is learned.
    """
    cdef Scales scales
    view_scales(state, &scales)
    cdef cnp.npy_intp d = dim(state.mean, 0)
    cdef cnp.npy_intp n = 0
    cdef Py_ssize_t j
    found = cnp.PyArray_EMPTY(1, &d, cnp.NPY_INT32, 0)
    cdef int32_t *found_ = <int32_t *> cnp.PyArray_DATA(found)
    with nogil:
        for j in range(d):
            if may_be_centred(&scales, j):
                found_[n] = <int32_t> j
                n += 1
    return found[:n].copy()


cdef void take_centred(const int32_t *centred, Py_ssize_t n, const Scales *scales, Sparse *out) noexcept nogil:
    """Keep the features that may still be centred elsewhere than at 0."""
    cdef Py_ssize_t i
    out.n_centred = 0
    for i in range(n):
        if may_be_centred(scales, centred[i]):
            out.centred[out.n_centred] = centred[i]
            out.n_centred += 1


cdef bint run_row(const RowView *rows, Py_ssize_t t, bint learn, Scales *scales, Sparse *out) noexcept nogil:
    """Standardise a sparse row, including zeros that become other numbers; return False if the output is full."""
    cdef double n = scales.rows[0] + 1.0
    cdef Py_ssize_t p = rows.starts[t]
    cdef Py_ssize_t end = rows.starts[t + 1]
    cdef Py_ssize_t q = 0
    cdef double count, mean, squares, x
    cdef int32_t j
    if not make_room(out, end - p + out.n_centred):
        return False
    for p in range(rows.starts[t], end):
        j = rows.columns[p]
        x = rows.values[p]
        while q < out.n_centred and out.centred[q] < j:
            put_zero(out, out.centred[q], n - scales.missing[out.centred[q]], scales)
            q += 1
        if q < out.n_centred and out.centred[q] == j:
            q += 1
        count = scales.count[j]
        mean = scales.mean[j]
        squares = scales.squares[j]
        put(out, j, standardised(x, n - scales.missing[j], &count, &mean, &squares))
        if learn:
            scales.missing[j] += 0.0 if x == x else 1.0
            scales.count[j] = count
            scales.mean[j] = mean
            scales.squares[j] = squares
    while q < out.n_centred:
        put_zero(out, out.centred[q], n - scales.missing[out.centred[q]], scales)
        q += 1
    if learn:
        scales.rows[0] = n
        for p in range(rows.starts[t], end):
            j = rows.columns[p]
            if may_be_centred(scales, j):
                insert(out, j)
    return True


def standardise_sparse(rows, weight, state, centred):
    """Standardise sparse rows and learn those of weight above 0; return values, columns, row starts and ``centred``.

    ``centred`` holds the features that may be centred elsewhere than at 0, before and after these rows.
    """
    weight = contiguous(weight)
    cdef RowView view
    cdef Scales scales
    cdef Sparse out
    view_rows(rows, &view)
    view_scales(state, &scales)
    cdef const double *weight_ = doubles(weight) if dim(weight, 0) > 0 else NULL
    cdef cnp.npy_intp size = view.n + 1
    starts = cnp.PyArray_ZEROS(1, &size, cnp.NPY_INT64, 0)
    cdef int64_t *starts_ = <int64_t *> cnp.PyArray_DATA(starts)
    cdef const int32_t *known = ints(centred)
    cdef Py_ssize_t n_known = dim(centred, 0)
    cdef Py_ssize_t t
    cdef bint fits = True
    out.size = 0
    out.room = view.starts[view.n] + 1
    out.values = <double *> malloc(out.room * sizeof(double))
    out.columns = <int32_t *> malloc(out.room * sizeof(int32_t))
    out.centred = <int32_t *> malloc((n_known + out.room) * sizeof(int32_t))
    try:
        if out.values == NULL or out.columns == NULL or out.centred == NULL:
            raise MemoryError
        with nogil:
            take_centred(known, n_known, &scales, &out)
            for t in range(view.n):
                fits = run_row(&view, t, weight_ != NULL and weight_[t] > 0.0, &scales, &out)
                if not fits:
                    break
                starts_[t + 1] = out.size
        if not fits:
            raise MemoryError
        size = out.size
        values = cnp.PyArray_EMPTY(1, &size, cnp.NPY_DOUBLE, 0)
        columns = cnp.PyArray_EMPTY(1, &size, cnp.NPY_INT32, 0)
        memcpy(cnp.PyArray_DATA(values), out.values, out.size * sizeof(double))
        memcpy(cnp.PyArray_DATA(columns), out.columns, out.size * sizeof(int32_t))
        size = out.n_centred
        centred = cnp.PyArray_EMPTY(1, &size, cnp.NPY_INT32, 0)
        memcpy(cnp.PyArray_DATA(centred), out.centred, out.n_centred * sizeof(int32_t))
    finally:
        free(out.values)
        free(out.columns)
        free(out.centred)
    return values, columns, starts, centred
