"""A block of rows on its way through the trees: its values, and the leaves it falls into."""

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
    /* Values and weights are kept in single precision; what it cannot hold, or subtract, is cut off. */
    #define FARTHEST 1e38
    #define HEAVIEST 1e12
    #define LIGHTEST 1e-12
    """
    const double FARTHEST
    const double HEAVIEST
    const double LIGHTEST

cdef enum:
    ABREAST = 8  # rows on their way down a tree at a time: none waits for the memory that another needs


cdef struct Records:
    Py_ssize_t n
    Py_ssize_t n_classes
    Py_ssize_t width
    float *tile  # (n, width)
    int32_t *leaves  # (n, m)
    int32_t *parents
    float *priors  # (n, m, K)
    uint8_t *renewed  # (n, m): the tree was replaced after the row
    Py_ssize_t capacity
    Py_ssize_t tile_capacity


cdef inline int lay_records(
    Records *records, Py_ssize_t n, Py_ssize_t width, Py_ssize_t m, Py_ssize_t k
) noexcept nogil:
    """Have room for n rows of a width, m trees and k classes; -1 without memory."""
    if n * width > records.tile_capacity:
        if resize(<void **> &records.tile, n * width * sizeof(float)):
            return -1
        records.tile_capacity = n * width
    if n > records.capacity:
        if (
            resize(<void **> &records.leaves, n * m * sizeof(int32_t))
            or resize(<void **> &records.parents, n * m * sizeof(int32_t))
            or resize(<void **> &records.priors, n * m * k * sizeof(float))
            or resize(<void **> &records.renewed, n * m)
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
    free(records.renewed)
    memset(records, 0, sizeof(Records))


cdef inline float narrow(double value) noexcept nogil:
    """The value in single precision, NaN for NaN."""
    return <float> (FARTHEST if value > FARTHEST else -FARTHEST if value < -FARTHEST else value)


cdef inline double narrow_weight(double w) noexcept nogil:
    return <double> <float> min(max(w, LIGHTEST), HEAVIEST)


cdef inline void fill_tile(
    const RowView *rows, Py_ssize_t first, const int32_t *column_of, Records *records
) noexcept nogil:
    """Lay the columns of some rows out side by side."""
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
                x[column_of[columns[k]]] = narrow(values[k])


cdef inline void find_leaves(const Tree *tree, const Records *records, Py_ssize_t first, int32_t *found) noexcept nogil:
    """The leaves of the rows from the first on, several rows abreast."""
    cdef Py_ssize_t r = first
    cdef Py_ssize_t j
    cdef int32_t at, moved
    cdef const float *x
    cdef int32_t places[ABREAST]
    while r + ABREAST <= records.n:
        for j in range(ABREAST):
            places[j] = 0
        moved = 1
        while moved:
            moved = 0
            for j in range(ABREAST):
                at = next_node(tree.nodes, records.tile + (r + j) * records.width, places[j])
                moved |= at ^ places[j]
                places[j] = at
        for j in range(ABREAST):
            found[r + j] = places[j]
        r += ABREAST
    while r < records.n:
        found[r] = descend(tree.nodes, records.tile + r * records.width, 0)
        r += 1


cdef inline void find_across(
    const Member *members, Py_ssize_t m, const Records *records, Py_ssize_t row
) noexcept nogil:
    """The leaves of one row in all trees, several trees abreast; they go to the records."""
    cdef const float *x = records.tile + row * records.width
    cdef int32_t *found = records.leaves + row * m
    cdef Py_ssize_t first = 0
    cdef Py_ssize_t i, last
    cdef int32_t at, moved
    while first < m:
        last = min(m, first + ABREAST)
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
    """Note the leaf of a row, and its odds (of two classes) or shares (of more)."""
    cdef const float *priors = tree.priors + pair_of(at) * n_classes
    cdef float *noted = records.priors + (row * m + i) * n_classes
    cdef double weights[2]
    cdef double total
    cdef Py_ssize_t k
    records.leaves[row * m + i] = at
    records.parents[row * m + i] = tree.parents[pair_of(at)]
    for k in range(n_classes):
        noted[k] = priors[k]
    if n_classes == 2:
        smooth(tree, at, 2, weights)  # a constant, so that no loop is left
        above[row], below[row] = weights[1], weights[0]
        return
    total = smooth(tree, at, n_classes, above + row * n_classes)
    for k in range(n_classes):
        below[row * n_classes + k] = total


cdef inline void write_scores(
    double *above, const double *below, Py_ssize_t n, Py_ssize_t n_outputs, Py_ssize_t width, double *out
) noexcept nogil:
    """Write half the log-odds of a tree's leaves, or half the log-probabilities of the classes."""
    cdef Py_ssize_t r, k
    half_log_ratios(above, below, n * n_outputs)
    for r in range(n):
        for k in range(n_outputs):
            out[r * width + k] = above[r * n_outputs + k]
