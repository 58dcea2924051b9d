"""Kernel that numbers the features of sparse rows in the order of their first value other than 0."""

import numpy as np

cimport numpy as cnp
from libc.stdint cimport int32_t, int64_t
from libc.stdlib cimport qsort

from bayesvote.core.arrays cimport contiguous, dim, doubles, own_doubles, own_ints, own_longs
from bayesvote.core.rows cimport RowView, columns_of, view_rows

cnp.import_array()


cdef struct Entry:
    int32_t column
    int32_t feature
    double value


cdef int by_column(const void *a, const void *b) noexcept nogil:
    return (<const Entry *> a).column - (<const Entry *> b).column


def renumber(rows, weight, state, Py_ssize_t limit, Py_ssize_t first):
    """Renumber the rows from ``first`` on, until more columns are needed or the rows end.

    New features in rows with a weight above 0 get a column. New features in other rows use the column that they would
    get, for that row only. Features without a free column are left out. Return the values, columns and features of the
    rows, their starts, the row after the last one that was renumbered, and the number of columns needed after it.
    """
    weight = contiguous(weight)
    cdef RowView view
    view_rows(rows, &view)
    cdef const double *weight_ = doubles(weight) if dim(weight, 0) > 0 else NULL
    cdef int32_t *column_of = own_ints(state.column_of)
    cdef int64_t *used = own_longs(state.used)
    cdef Py_ssize_t capacity = state.capacity[0]
    cdef Py_ssize_t most = 0
    cdef Py_ssize_t longest = 0
    cdef Py_ssize_t t, p, k, n, left_out
    with nogil:
        for t in range(first, view.n):
            n = 0
            for p in range(view.starts[t], view.starts[t + 1]):
                n += view.values[p] != 0.0
            longest = max(longest, n)
            most += n
    values = np.empty(most)
    columns = np.empty(most, dtype=np.int32)
    features = np.empty(most, dtype=np.int32)
    starts = np.zeros(view.n - first + 1, dtype=np.int64)
    entries = np.empty(longest + 1, dtype=[("column", np.int32), ("feature", np.int32), ("value", np.float64)])
    cdef double *values_ = own_doubles(values)
    cdef int32_t *columns_ = own_ints(columns)
    cdef int32_t *features_ = own_ints(features)
    cdef int64_t *starts_ = own_longs(starts)
    cdef Entry *entry = <Entry *> cnp.PyArray_DATA(entries)
    cdef const int32_t *given
    cdef const double *x
    cdef Py_ssize_t size = 0
    cdef Py_ssize_t wanted = capacity
    cdef int64_t next_column
    cdef int32_t j
    cdef bint learn, ascending
    t = first
    with nogil:
        while t < view.n and wanted == capacity:
            learn = weight_ != NULL and weight_[t] > 0.0
            given = columns_of(&view, t)
            x = view.values + view.starts[t]
            next_column = used[0]
            n = left_out = 0
            ascending = True
            for p in range(view.starts[t + 1] - view.starts[t]):
                if x[p] == 0.0:
                    continue
                j = given[p]
                if column_of[j] >= 0:
                    entry[n].column = column_of[j]
                elif next_column < capacity:
                    entry[n].column = <int32_t> next_column
                    if learn:
                        column_of[j] = <int32_t> next_column
                    next_column += 1
                else:
                    left_out += 1
                    continue
                entry[n].feature = j
                entry[n].value = x[p]
                ascending = ascending and (n == 0 or entry[n - 1].column < entry[n].column)
                n += 1
            if not ascending:
                qsort(entry, n, sizeof(Entry), &by_column)
            for k in range(n):
                values_[size + k] = entry[k].value
                columns_[size + k] = entry[k].column
                features_[size + k] = entry[k].feature
            size += n
            t += 1
            starts_[t - first] = size
            if learn:
                used[0] = next_column
                while wanted < limit and 2 * (next_column + left_out) > wanted:
                    wanted = min(2 * wanted, limit)
    return values[:size], columns[:size], features[:size], starts[:t - first + 1], t, wanted
