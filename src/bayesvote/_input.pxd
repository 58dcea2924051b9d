"""Checked rows as kernels see them; see :class:`bayesvote._input.Rows`."""

from libc.stdint cimport int32_t, int64_t

from bayesvote._arrays cimport doubles, ints, longs


cdef struct RowView:
    const double *values
    const int32_t *columns
    const int64_t *starts
    bint dense  # all rows share their columns
    Py_ssize_t n
    Py_ssize_t width


cdef inline int view_rows(object rows, RowView *out) except -1:
    """Look at rows, which must stay alive."""
    out.values = doubles(rows.values)
    out.columns = ints(rows.columns)
    out.starts = longs(rows.starts)
    out.dense = rows.dense is not None
    out.n = rows.n
    out.width = rows.width
    return 0


cdef inline const int32_t *columns_of(const RowView *rows, Py_ssize_t t) noexcept nogil:
    """The columns of row t."""
    return rows.columns if rows.dense else rows.columns + rows.starts[t]
