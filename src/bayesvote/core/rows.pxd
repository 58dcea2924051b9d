"""Pointers to checked rows for kernels; see :class:`bayesvote.core.rows.Rows`."""

from libc.stdint cimport int32_t, int64_t, uint32_t
from libc.string cimport memset

from bayesvote.core.arrays cimport doubles, ints, longs


cdef struct RowView:
    const double *values
    const int32_t *columns
    const int64_t *starts
    bint dense  # all rows share their columns
    Py_ssize_t n
    Py_ssize_t width


cdef inline int view_rows(object rows, RowView *out) except -1:
    """Fill a view of rows, which must stay alive."""
    out.values = doubles(rows.values)
    out.columns = ints(rows.columns)
    out.starts = longs(rows.starts)
    out.dense = rows.dense is not None
    out.n = rows.n
    out.width = rows.width
    return 0


cdef inline const int32_t *columns_of(const RowView *rows, Py_ssize_t t) noexcept nogil:
    """Return the columns of row t."""
    return rows.columns if rows.dense else rows.columns + rows.starts[t]


cdef inline void gather(
    const RowView *rows, Py_ssize_t t, const uint32_t *features, Py_ssize_t k, double *x
) noexcept nogil:
    """Copy k features of row t, in ascending order, to x; missing values become 0."""
    cdef double value
    cdef const int32_t *columns
    cdef Py_ssize_t i, p, low, high
    if rows.dense:
        for i in range(k):
            value = rows.values[t * rows.width + features[i]]
            x[i] = value if value == value else 0.0
        return
    memset(x, 0, k * sizeof(double))
    columns = columns_of(rows, t)
    for p in range(rows.starts[t + 1] - rows.starts[t]):
        value = rows.values[rows.starts[t] + p]
        low, high = 0, k
        while low < high:
            i = (low + high) // 2
            if features[i] < <uint32_t> columns[p]:
                low = i + 1
            else:
                high = i
        if low < k and features[low] == <uint32_t> columns[p] and value == value:
            x[low] = value
