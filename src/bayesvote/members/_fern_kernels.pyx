"""Kernels of random ferns: choose the questions, and score and count blocks of rows."""

import numpy as np

cimport numpy as cnp
from libc.math cimport INFINITY, NAN, log
from libc.stdint cimport int32_t, int64_t
from libc.string cimport memset

from bayesvote.core.arrays cimport contiguous, dim, doubles, ints, labels, own_doubles, own_ints, own_labels, own_longs, room
from bayesvote.core.rows cimport RowView, columns_of, view_rows

cdef extern from "logs.h" nogil:
    void half_log_ratios(double *above, const double *below, Py_ssize_t n)

cnp.import_array()

cdef enum:
    # Rows answered at a time: 64 rows of 64 features take 32 KiB, the size of a usual first-level cache.
    BLOCK = 64
    # Members counted together: their counts are independent, so the processor overlaps them, and 8 scores of 8 bytes
    # fill a cache line.
    _GROUP = 8

GROUP = _GROUP


def cuts(ordered, found, n_found):
    """Find the midpoints between adjacent values of each feature, which are sorted with NaN last."""
    cdef const double *ordered_ = doubles(ordered)
    cdef double *found_ = own_doubles(found)
    cdef Py_ssize_t *n_found_ = own_labels(n_found)
    cdef Py_ssize_t width = dim(ordered, 0)
    cdef Py_ssize_t n = dim(ordered, 1)
    cdef const double *x
    cdef double *out
    cdef double middle
    cdef Py_ssize_t j, r
    with nogil:
        for j in range(width):
            x = ordered_ + j * n
            out = found_ + j * n
            n_found_[j] = 0
            out[0] = 0.0 if x[0] != x[0] else x[0]
            for r in range(1, n):
                if x[r - 1] < x[r]:
                    middle = x[r - 1] + (x[r] - x[r - 1]) / 2.0
                    out[n_found_[j]] = middle if middle < x[r] else x[r - 1]
                    n_found_[j] += 1


cdef inline double xlogx(double x) noexcept nogil:
    return x * log(x) if x > 0.0 else 0.0


cdef double gain_of(const double *no, const double *yes, Py_ssize_t n_classes) noexcept nogil:
    """Return the information gain of a question, times the total weight, from the class counts of its answers."""
    cdef double n_no = 0.0
    cdef double n_yes = 0.0
    cdef double gain
    cdef Py_ssize_t k
    for k in range(n_classes):
        n_no += no[k]
        n_yes += yes[k]
    if n_no == 0.0 or n_yes == 0.0:
        return 0.0
    gain = xlogx(n_no + n_yes) - xlogx(n_no) - xlogx(n_yes)
    for k in range(n_classes):
        gain += xlogx(no[k]) + xlogx(yes[k]) - xlogx(no[k] + yes[k])
    return gain


# Rows that further questions can still separate.
cdef struct Leaves:
    Py_ssize_t n_rows
    Py_ssize_t n_leaves
    Py_ssize_t *rows
    Py_ssize_t *leaf


cdef void tally(
    const double *x,
    double t,
    const Py_ssize_t *y,
    const double *w,
    const Leaves *leaves,
    Py_ssize_t n_classes,
    double *counts,
) noexcept nogil:
    """Sum the weights per leaf, answer and class."""
    cdef Py_ssize_t a, r
    memset(counts, 0, leaves.n_leaves * 2 * n_classes * sizeof(double))
    for a in range(leaves.n_rows):
        r = leaves.rows[a]
        if x[r] == x[r]:
            counts[(2 * leaves.leaf[a] + (x[r] <= t)) * n_classes + y[r]] += w[r]


def choose(values, y, w, found, n_found, state, features, Py_ssize_t first, Py_ssize_t last):
    """Choose the questions of members first to last: the candidates of largest gain given the questions before.

    Rows are grouped in leaves, one per pattern of answers so far. Only leaves with more than one class are kept, as no
    question gains anything on the others.
    """
    y, w = contiguous(y), contiguous(w)
    cdef Py_ssize_t n = dim(values, 1)
    cdef Py_ssize_t depth = dim(state.candidates, 1)
    cdef Py_ssize_t n_candidates = dim(state.candidates, 2)
    cdef Py_ssize_t n_classes = dim(state.counts, 2)
    cdef const double *values_ = doubles(values)
    cdef const Py_ssize_t *y_ = labels(y)
    cdef const double *w_ = doubles(w)
    cdef const double *found_ = doubles(found)
    cdef const Py_ssize_t *n_found_ = labels(n_found)
    cdef const int32_t *candidates = ints(state.candidates)
    cdef const double *places = doubles(state.places)
    cdef double *thresholds = own_doubles(state.thresholds)
    cdef int32_t *features_ = own_ints(features)
    scratch = np.empty(4 * n, dtype=np.intp)
    numbers = room(2 * n * n_classes)
    cdef Py_ssize_t *number = own_labels(scratch)
    cdef double *counts = own_doubles(numbers)
    cdef Leaves leaves
    cdef double total = 0.0
    cdef double rounding, best, gain, t
    cdef const double *x
    cdef Py_ssize_t i, q, c, j, k, a, r, side, question, n_next, kept, n_present
    leaves.rows = number + 2 * n
    leaves.leaf = number + 3 * n
    with nogil:
        for r in range(n):
            total += w_[r]
        rounding = 1e-10 * total  # far above rounding of sums: gains that differ by less count as equal; the first wins
        for i in range(first, last):
            leaves.n_rows, leaves.n_leaves = n, 1
            for r in range(n):
                leaves.rows[r] = r
                leaves.leaf[r] = 0
            for q in range(depth):
                question = i * depth + q
                best = -INFINITY
                # Start with the first candidate, so that indices are valid even if every gain is NaN.
                j = candidates[question * n_candidates]
                features_[question] = <int32_t> j
                thresholds[question] = found_[j * n]
                for c in range(n_candidates):
                    j = candidates[question * n_candidates + c]
                    t = found_[j * n + <Py_ssize_t> (places[question * n_candidates + c] * n_found_[j])]
                    tally(values_ + j * n, t, y_, w_, &leaves, n_classes, counts)
                    gain = 0.0
                    for k in range(leaves.n_leaves):
                        gain += gain_of(counts + 2 * k * n_classes, counts + (2 * k + 1) * n_classes, n_classes)
                    if gain > best + rounding:
                        best = gain
                        features_[question] = <int32_t> j
                        thresholds[question] = t
                x = values_ + features_[question] * n
                t = thresholds[question]
                tally(x, t, y_, w_, &leaves, n_classes, counts)
                n_next = 0
                for side in range(2 * leaves.n_leaves):
                    n_present = 0
                    for k in range(n_classes):
                        n_present += counts[side * n_classes + k] > 0.0
                    number[side] = -1
                    if n_present > 1:
                        number[side] = n_next
                        n_next += 1
                kept = 0
                for a in range(leaves.n_rows):
                    r = leaves.rows[a]
                    if x[r] == x[r] and number[2 * leaves.leaf[a] + (x[r] <= t)] >= 0:
                        leaves.leaf[kept] = number[2 * leaves.leaf[a] + (x[r] <= t)]
                        leaves.rows[kept] = r
                        kept += 1
                leaves.n_rows, leaves.n_leaves = kept, n_next


cdef bint transpose_used(
    const RowView *rows, const int32_t *slot_of, Py_ssize_t n_slots, Py_ssize_t top, Py_ssize_t n, double *tile
) noexcept nogil:
    """Fill tile[slot, row] with the features in use; return whether one of them is NaN."""
    cdef double total = 0.0
    cdef const int32_t *columns
    cdef const double *values
    cdef Py_ssize_t b, k, slot
    if not rows.dense:
        memset(tile, 0, n_slots * BLOCK * sizeof(double))
    for b in range(n):
        columns = columns_of(rows, top + b)
        values = rows.values + rows.starts[top + b]
        for k in range(rows.starts[top + b + 1] - rows.starts[top + b]):
            slot = slot_of[columns[k]]
            if slot >= 0:
                tile[slot * BLOCK + b] = values[k]
                total += values[k]
    return total != total


cdef inline void find_cells(
    const double *tile,
    bint missing,
    const int32_t *slots,
    const double *thresholds,
    Py_ssize_t depth,
    Py_ssize_t n_classes,
    Py_ssize_t n,
    int64_t *cell,
) noexcept nogil:
    """Answer one member's questions for n rows of the tile: the position of their counts, -1 to abstain."""
    cdef const double *column
    cdef double threshold
    cdef int64_t step
    cdef Py_ssize_t q, b
    memset(cell, 0, n * sizeof(int64_t))
    for q in range(depth):
        column = tile + slots[q] * BLOCK
        threshold = thresholds[q]
        step = n_classes << q
        for b in range(n):
            cell[b] += step if column[b] <= threshold else 0
    if missing:
        for q in range(depth):
            column = tile + slots[q] * BLOCK
            for b in range(n):
                if column[b] != column[b]:
                    cell[b] = -1


cdef inline void count(
    double *counts,
    Py_ssize_t n_counts,
    const int64_t *cell,
    Py_ssize_t group,
    Py_ssize_t n,
    Py_ssize_t width,
    double smoothing,
    const Py_ssize_t *y,
    const double *w,
    bint learn,
    double *above,
    double *below,
) noexcept nogil:
    """Read the smoothed counts of each row and member; then add the row to the counts.

    The scores are ratios above / below: with two classes (one score per member) the odds, else the shares of the sum.
    """
    cdef Py_ssize_t b, g, k, at
    cdef int64_t c
    cdef double total
    cdef double *own
    if width == 1:
        for b in range(n):
            for g in range(group):
                at = b * group + g
                c = cell[g * BLOCK + b]
                if c < 0:
                    above[at] = NAN
                    continue
                own = counts + g * n_counts + c
                above[at] = own[1] + smoothing
                below[at] = own[0] + smoothing
                if learn:
                    own[y[b]] += w[b]
        return
    at = 0
    for b in range(n):
        for g in range(group):
            c = cell[g * BLOCK + b]
            if c < 0:
                for k in range(width):
                    above[at + k] = NAN
            else:
                own = counts + g * n_counts + c
                total = width * smoothing
                for k in range(width):
                    above[at + k] = own[k] + smoothing
                    total += own[k]
                for k in range(width):
                    below[at + k] = total
                if learn:
                    own[y[b]] += w[b]
            at += width


def answer(
    rows,
    y,
    w,
    state,
    double smoothing,
    Py_ssize_t begin,
    Py_ssize_t end,
    Py_ssize_t first,
    Py_ssize_t last,
    out,
):
    """Score rows begin to end by members first to last, and count each row after its scores; without labels none is.

    Scores are half the log-odds if ``out`` has one column per member, else half the log-probabilities.
    """
    y, w = contiguous(y), contiguous(w)
    cdef bint learn = dim(y, 0) > 0
    cdef RowView view
    view_rows(rows, &view)
    cdef Py_ssize_t n_members = dim(state.counts, 0)
    cdef Py_ssize_t n_classes = dim(state.counts, 2)
    cdef Py_ssize_t n_counts = dim(state.counts, 1) * n_classes
    cdef Py_ssize_t depth = dim(state.slots, 1)
    cdef Py_ssize_t out_width = dim(out, 1)
    cdef Py_ssize_t width = out_width // n_members
    cdef const int32_t *slot_of = ints(state.slot_of)
    cdef const int32_t *slots = ints(state.slots)
    cdef const double *thresholds = doubles(state.thresholds)
    cdef double *counts = own_doubles(state.counts)
    cdef const Py_ssize_t *y_ = labels(y)
    cdef const double *w_ = doubles(w)
    cdef double *out_ = own_doubles(out)
    cdef Py_ssize_t n_slots = state.slots.max() + 1
    cdef Py_ssize_t n_scores = BLOCK * _GROUP * width
    scratch = room(n_slots * BLOCK + 2 * n_scores)
    cells = np.empty(_GROUP * BLOCK, dtype=np.int64)
    cdef double *tile = own_doubles(scratch)
    cdef double *above = tile + n_slots * BLOCK
    cdef double *below = above + n_scores
    cdef int64_t *cell = own_longs(cells)
    cdef Py_ssize_t top = begin
    cdef Py_ssize_t n, i, g, group, b, k
    cdef bint missing
    with nogil:
        for k in range(n_scores):
            below[k] = 1.0
        while top < end:
            n = min(<Py_ssize_t> BLOCK, end - top)
            missing = transpose_used(&view, slot_of, n_slots, top, n, tile)
            i = first
            while i < last:
                group = min(<Py_ssize_t> _GROUP, last - i)
                for g in range(group):
                    find_cells(
                        tile,
                        missing,
                        slots + (i + g) * depth,
                        thresholds + (i + g) * depth,
                        depth,
                        n_classes,
                        n,
                        cell + g * BLOCK,
                    )
                count(
                    counts + i * n_counts,
                    n_counts,
                    cell,
                    group,
                    n,
                    width,
                    smoothing,
                    y_ + top,
                    w_ + top,
                    learn,
                    above,
                    below,
                )
                half_log_ratios(above, below, n * group * width)
                for b in range(n):
                    for k in range(group * width):
                        out_[(top + b) * out_width + i * width + k] = above[b * group * width + k]
                i += _GROUP
            top += BLOCK
