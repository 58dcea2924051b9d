"""Record of a block of rows: their values, and the leaves that they reach in all trees."""

from libc.stdint cimport int32_t, uint8_t
from libc.stdlib cimport free
from libc.string cimport memset

from bayesvote.core.rows cimport RowView, columns_of
from bayesvote.members.trees._member cimport Member, fetch_counted, fetch_counts, fetch_leaf, fetch_slot
from bayesvote.members.trees._tree cimport Tree, descend, next_node, pair_of, resize, smooth

cdef extern from "logs.h" nogil:
    void half_log_ratios(double *above, const double *below, Py_ssize_t n)

cdef extern from *:
    """
    /* Values and weights are stored in single precision. Both are clipped, so that they and their differences fit. */
    #define MOST_VALUE 1e38
    #define MOST_WEIGHT 1e12
    #define LEAST_WEIGHT 1e-12
    """
    const double MOST_VALUE
    const double MOST_WEIGHT
    const double LEAST_WEIGHT

cdef enum:
    INTERLEAVED = 8  # descents that run interleaved, so that their memory accesses overlap


cdef struct Records:
    Py_ssize_t n
    Py_ssize_t n_classes
    Py_ssize_t width
    float *tile  # (n, width)
    int32_t *leaves  # (n, m)
    int32_t *parents
    float *priors  # (n, m, K)
    uint8_t *replaced  # (n, m): 1 if the tree was replaced after the row
    Py_ssize_t capacity
    Py_ssize_t tile_capacity


cdef inline int reserve_records(
    Records *records, Py_ssize_t n, Py_ssize_t width, Py_ssize_t m, Py_ssize_t k
) noexcept nogil:
    """Reserve memory for n rows of a width, m trees and k classes; return -1 if out of memory."""
    if n * width > records.tile_capacity:
        if resize(<void **> &records.tile, n * width * sizeof(float)):
            return -1
        records.tile_capacity = n * width
    if n > records.capacity:
        if (
            resize(<void **> &records.leaves, n * m * sizeof(int32_t))
            or resize(<void **> &records.parents, n * m * sizeof(int32_t))
            or resize(<void **> &records.priors, n * m * k * sizeof(float))
            or resize(<void **> &records.replaced, n * m)
        ):
            return -1
        records.capacity = n
    records.n = n
    records.n_classes = k
    records.width = width
    return 0


cdef inline void free_records(Records *records) noexcept nogil:
    free(records.tile)
    free(records.leaves)
    free(records.parents)
    free(records.priors)
    free(records.replaced)
    memset(records, 0, sizeof(Records))


cdef inline float single(double value) noexcept nogil:
    """Return the value in single precision, clipped; NaN stays NaN."""
    return <float> (MOST_VALUE if value > MOST_VALUE else -MOST_VALUE if value < -MOST_VALUE else value)


cdef inline double single_weight(double w) noexcept nogil:
    return <double> <float> min(max(w, LEAST_WEIGHT), MOST_WEIGHT)


cdef inline void fill_tile(
    const RowView *rows, Py_ssize_t first, const int32_t *column_of, Records *records
) noexcept nogil:
    """Write the columns of the rows as a dense matrix."""
    cdef const int32_t *columns
    cdef const double *values
    cdef float *x
    cdef Py_ssize_t r, k, t
    memset(records.tile, 0, records.n * records.width * sizeof(float))
    for r in range(records.n):
        t = first + r
        columns = columns_of(rows, t)
        values = rows.values + rows.starts[t]
        x = records.tile + r * records.width
        for k in range(rows.starts[t + 1] - rows.starts[t]):
            if column_of[columns[k]] >= 0:
                x[column_of[columns[k]]] = single(values[k])


cdef inline void find_leaves(const Tree *tree, const Records *records, Py_ssize_t first, int32_t *found) noexcept nogil:
    """Find the leaves of the rows from ``first`` on, several rows at a time."""
    cdef Py_ssize_t r = first
    cdef Py_ssize_t j
    cdef int32_t at, moved
    cdef const float *x
    cdef int32_t places[INTERLEAVED]
    while r + INTERLEAVED <= records.n:
        for j in range(INTERLEAVED):
            places[j] = 0
        moved = 1
        while moved:
            moved = 0
            for j in range(INTERLEAVED):
                at = next_node(tree.nodes, records.tile + (r + j) * records.width, places[j])
                moved |= at ^ places[j]
                places[j] = at
        for j in range(INTERLEAVED):
            found[r + j] = places[j]
        r += INTERLEAVED
    while r < records.n:
        found[r] = descend(tree.nodes, records.tile + r * records.width, 0)
        r += 1


cdef inline void find_across(
    const Member *members, Py_ssize_t m, const Records *records, Py_ssize_t row
) noexcept nogil:
    """Record the leaves of one row in all trees, several trees at a time."""
    cdef const float *x = records.tile + row * records.width
    cdef int32_t *found = records.leaves + row * m
    cdef Py_ssize_t first = 0
    cdef Py_ssize_t i, last
    cdef int32_t at, moved
    while first < m:
        last = min(m, first + INTERLEAVED)
        for i in range(first, last):
            found[i] = 0
        moved = 1
        while moved:
            moved = 0
            for i in range(first, last):
                at = next_node(members[i].tree.nodes, x, found[i])
                moved |= at ^ found[i]
                found[i] = at
        for i in range(first, last):
            fetch_leaf(&members[i].tree, found[i], records.n_classes)
        first = last
    for i in range(m):
        fetch_counts(&members[i].tree, found[i])
        fetch_slot(&members[i].slots, members[i].tree.slots[found[i]])
    for i in range(m):
        fetch_counted(&members[i].slots, members[i].tree.slots[found[i]])


cdef inline void record(
    const Tree *tree, int32_t at, Py_ssize_t row, Py_ssize_t i, Py_ssize_t m, Py_ssize_t n_classes, Records *records,
    double *above, double *below,
) noexcept nogil:
    """Record the leaf of a row, and its odds (two classes) or class probabilities (more), as ``above / below``."""
    cdef const float *priors = tree.priors + pair_of(at) * n_classes
    cdef float *saved = records.priors + (row * m + i) * n_classes
    cdef double weights[2]
    cdef double total
    cdef Py_ssize_t k
    records.leaves[row * m + i] = at
    records.parents[row * m + i] = tree.parents[pair_of(at)]
    for k in range(n_classes):
        saved[k] = priors[k]
    if n_classes == 2:
        smooth(tree, at, 2, weights)  # the constant 2 lets the compiler unroll the loops
        above[row], below[row] = weights[1], weights[0]
        return
    total = smooth(tree, at, n_classes, above + row * n_classes)
    for k in range(n_classes):
        below[row * n_classes + k] = total


cdef inline void write_scores(
    double *above, const double *below, Py_ssize_t n, Py_ssize_t n_outputs, Py_ssize_t width, double *out
) noexcept nogil:
    """Write the scores of a tree: half the log-odds of its leaves, or half the log-probabilities of the classes."""
    cdef Py_ssize_t r, k
    half_log_ratios(above, below, n * n_outputs)
    for r in range(n):
        for k in range(n_outputs):
            out[r * width + k] = above[r * n_outputs + k]
