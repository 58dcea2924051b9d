"""Kernels of nearest neighbours. Rows are stored by column, so that distances are computed as vectors."""

cimport numpy as cnp
from libc.math cimport log, sqrt
from libc.stdint cimport int32_t, int64_t, uint32_t
from libc.string cimport memset

from bayesvote.core.arrays cimport dim, doubles, floats, labels, longs, own_doubles, own_floats, own_longs, places, room
from bayesvote.core.rows cimport RowView, gather, view_rows

cnp.import_array()

cdef extern from *:
    """
    #define FARTHEST 1e15 /* larger values are clipped: sums of their squares must stay finite in single precision */
    #define SMOOTHING 0.3 /* votes that all classes share before any neighbour votes, as in the leaves of the trees: the
                             score of five neighbours of one class is then log(1 + 5 / 0.15) / 2, about 1.8 at most */
    """
    const double FARTHEST
    const double SMOOTHING


cdef struct Seen:
    RowView rows
    const uint32_t *features
    Py_ssize_t k  # features
    double *wide  # (k,)
    float *x  # (k,)


cdef Py_ssize_t space_for(Py_ssize_t k) noexcept:
    return 2 * k


cdef int look(object rows, object features, double *space, Seen *seen) except -1:
    """Set up the view of rows, whose features are gathered one row at a time."""
    view_rows(rows, &seen.rows)
    seen.features = places(features)
    seen.k = dim(features, 0)
    seen.wide = space
    seen.x = <float *> (space + seen.k)
    return 0


cdef inline void fetch(const Seen *seen, Py_ssize_t t) noexcept nogil:
    """Copy the features of row t to x, in single precision."""
    cdef Py_ssize_t j
    gather(&seen.rows, t, seen.features, seen.k, seen.wide)
    for j in range(seen.k):
        seen.x[j] = <float> min(max(seen.wide[j], -FARTHEST), FARTHEST)


def keep(rows, y, w, Py_ssize_t first, Py_ssize_t last, features, columns, weights, count, before):
    """Keep rows first to last, except those of weight 0, in place of the oldest; store the number kept before each."""
    cdef Seen seen
    cdef Py_ssize_t capacity = dim(columns, 1)
    cdef const Py_ssize_t *y_ = labels(y)
    cdef const double *w_ = doubles(w)
    cdef float *columns_ = own_floats(columns)
    cdef double *weights_ = own_doubles(weights)
    cdef Py_ssize_t n_classes = dim(weights, 0)
    cdef int64_t *count_ = own_longs(count)
    cdef int64_t *before_ = own_longs(before)
    scratch = room(space_for(dim(features, 0)))
    look(rows, features, own_doubles(scratch), &seen)
    cdef Py_ssize_t t, j, c, slot
    with nogil:
        for t in range(first, last):
            before_[t] = count_[0]
            if w_[t] == 0.0:
                continue
            fetch(&seen, t)
            slot = count_[0] % capacity
            for j in range(seen.k):
                columns_[j * capacity + slot] = seen.x[j]
            for c in range(n_classes):
                weights_[c * capacity + slot] = w_[t] if c == y_[t] else 0.0
            count_[0] += 1


cdef inline void measure(
    const float *columns, Py_ssize_t capacity, const float *x, Py_ssize_t k, Py_ssize_t n, float *out
) noexcept nogil:
    """Compute the squared distances of x from n rows."""
    cdef const float *a
    cdef const float *b
    cdef const float *c
    cdef const float *d
    cdef float e, f, g, h
    cdef Py_ssize_t j = 0
    cdef Py_ssize_t i
    memset(out, 0, n * sizeof(float))
    while j + 4 <= k:
        a = columns + j * capacity
        b, c, d = a + capacity, a + 2 * capacity, a + 3 * capacity
        for i in range(n):
            e, f, g, h = x[j] - a[i], x[j + 1] - b[i], x[j + 2] - c[i], x[j + 3] - d[i]
            out[i] = out[i] + e * e + f * f + g * g + h * h
        j += 4
    while j < k:
        a = columns + j * capacity
        for i in range(n):
            e = x[j] - a[i]
            out[i] = out[i] + e * e
        j += 1


cdef struct Nearest:
    Py_ssize_t n
    Py_ssize_t most
    float *distances  # squared, the nearest first
    int32_t *slots


cdef inline void insert(Nearest *nearest, float distance, Py_ssize_t slot) noexcept nogil:
    """Insert a row among the nearest; equally near rows stay in the order of insertion."""
    cdef Py_ssize_t p = nearest.n
    if nearest.n < nearest.most:
        nearest.n += 1
    else:
        p -= 1
    while p > 0 and nearest.distances[p - 1] > distance:
        nearest.distances[p] = nearest.distances[p - 1]
        nearest.slots[p] = nearest.slots[p - 1]
        p -= 1
    nearest.distances[p] = distance
    nearest.slots[p] = <int32_t> slot


cdef inline void vote(
    const Nearest *nearest, const double *weights, Py_ssize_t capacity, Py_ssize_t n_classes, double *votes, double *out
) noexcept nogil:
    """Score by the votes of the nearest rows; a vote is 1 minus the distance relative to the farthest of them."""
    cdef double total = 0.0
    cdef double reach, share
    cdef Py_ssize_t i, c
    for c in range(n_classes):
        votes[c] = SMOOTHING / n_classes
    reach = sqrt(<double> nearest.distances[nearest.n - 1]) if nearest.n > 0 else 0.0
    for i in range(nearest.n):
        share = 1.0 - sqrt(<double> nearest.distances[i]) / reach if reach > 0.0 else 1.0
        for c in range(n_classes):
            votes[c] += share * weights[c * capacity + nearest.slots[i]]
    if n_classes == 2:
        out[0] = 0.5 * log(votes[1] / votes[0])
        return
    for c in range(n_classes):
        total += votes[c]
    for c in range(n_classes):
        out[c] = 0.5 * log(votes[c] / total)


def score(
    rows, before, Py_ssize_t first, Py_ssize_t last, features, columns, weights, windows, Py_ssize_t neighbours, out
):
    """Score rows first to last, each by the rows kept before it; ``before`` holds their number."""
    cdef Seen seen
    cdef Nearest nearest
    cdef Py_ssize_t capacity = dim(columns, 1)
    cdef Py_ssize_t m = dim(windows, 0)
    cdef Py_ssize_t n_classes = dim(weights, 0)
    cdef Py_ssize_t n_outputs = 1 if n_classes == 2 else n_classes
    cdef const float *columns_ = floats(columns)
    cdef const double *weights_ = doubles(weights)
    cdef const int64_t *windows_ = longs(windows)
    cdef const int64_t *before_ = longs(before)
    cdef double *out_ = own_doubles(out)
    cdef Py_ssize_t longest = windows_[m - 1]
    scratch = room(space_for(dim(features, 0)) + n_classes + 2 * neighbours + longest)
    cdef double *votes = own_doubles(scratch)
    nearest.most = neighbours
    nearest.distances = <float *> (votes + n_classes)
    nearest.slots = <int32_t *> (votes + n_classes + neighbours)
    cdef float *distances = <float *> (votes + n_classes + 2 * neighbours)
    look(rows, features, votes + n_classes + 2 * neighbours + longest, &seen)
    cdef Py_ssize_t t, i, n, q, start, head, slot
    with nogil:
        for t in range(first, last):
            fetch(&seen, t)
            n = min(before_[t], longest)
            start = (before_[t] - n) % capacity
            head = min(n, capacity - start)  # rows before the end of the ring buffer
            measure(columns_ + start, capacity, seen.x, seen.k, head, distances)
            measure(columns_, capacity, seen.x, seen.k, n - head, distances + head)
            nearest.n = 0
            q = 0
            for i in range(n - 1, -1, -1):  # the latest first, so that shorter windows are complete on the way
                if nearest.n < nearest.most or distances[i] < nearest.distances[nearest.n - 1]:
                    slot = start + i
                    insert(&nearest, distances[i], slot if slot < capacity else slot - capacity)
                if n - i == windows_[q]:
                    vote(&nearest, weights_, capacity, n_classes, votes, out_ + (t * m + q) * n_outputs)
                    q += 1
            while q < m:  # windows longer than the number of rows
                vote(&nearest, weights_, capacity, n_classes, votes, out_ + (t * m + q) * n_outputs)
                q += 1
