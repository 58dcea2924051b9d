"""Leaves that go on growing: each counts what some random cuts would tell, and splits when one tells enough."""

from libc.math cimport floor, log
from libc.stdint cimport int8_t, int32_t, uint64_t
from libc.stdlib cimport free

from bayesvote.members.trees._kept cimport draw_below, draw_between
from bayesvote.members.trees._tree cimport Tree, resize, several_classes, split

cdef enum:
    CANDIDATES = 8  # cuts that a leaf keeps counts for
    SIDES = 3  # at most the cut, above it, missing
    PATIENCE = 8  # weight of the rows between two looks at a leaf
    ENOUGH = 2  # twice the gain in log-likelihood that makes a split, per class beyond the first


# The candidates of a tree's leaves. Free slots are a list, linked by ``owners``.
cdef struct Slots:
    Py_ssize_t n
    Py_ssize_t capacity
    int32_t free
    int32_t *owners  # the leaf of a slot
    double *weights  # of the rows since the slot was opened
    int32_t *columns  # (capacity, CANDIDATES)
    float *cuts  # the same; until there is a cut, the first value
    int8_t *ready  # the same: whether there is a cut
    float *counts  # (capacity, CANDIDATES, SIDES, K)


cdef inline int reserve_slots(Slots *slots, Py_ssize_t n, Py_ssize_t n_classes) noexcept nogil:
    cdef Py_ssize_t capacity = max(<Py_ssize_t> 4, 2 * slots.capacity)
    if n <= slots.capacity:
        return 0
    while capacity < n:
        capacity *= 2
    if (
        resize(<void **> &slots.owners, capacity * sizeof(int32_t))
        or resize(<void **> &slots.weights, capacity * sizeof(double))
        or resize(<void **> &slots.columns, capacity * CANDIDATES * sizeof(int32_t))
        or resize(<void **> &slots.cuts, capacity * CANDIDATES * sizeof(float))
        or resize(<void **> &slots.ready, capacity * CANDIDATES * sizeof(int8_t))
        or resize(<void **> &slots.counts, capacity * CANDIDATES * SIDES * n_classes * sizeof(float))
    ):
        return -1
    slots.capacity = capacity
    return 0


cdef inline void free_slots(Slots *slots) noexcept nogil:
    free(slots.owners)
    free(slots.weights)
    free(slots.columns)
    free(slots.cuts)
    free(slots.ready)
    free(slots.counts)
    slots.owners = slots.columns = NULL
    slots.weights = NULL
    slots.cuts = slots.counts = NULL
    slots.ready = NULL
    slots.n = slots.capacity = 0
    slots.free = -1


cdef inline int32_t new_slot(Slots *slots, int32_t owner, Py_ssize_t n_classes) noexcept nogil:
    """A slot for a leaf; -1 without memory."""
    cdef int32_t slot = slots.free
    if slot >= 0:
        slots.free = slots.owners[slot]
    else:
        if reserve_slots(slots, slots.n + 1, n_classes):
            return -1
        slot = <int32_t> slots.n
        slots.n += 1
    slots.owners[slot] = owner
    return slot


cdef inline int open_slot(
    Tree *tree, Slots *slots, int32_t at, const float *x, Py_ssize_t n_columns, uint64_t *random, Py_ssize_t n_classes
) noexcept nogil:
    """Draw candidates for a leaf, with a row's values to cut between."""
    cdef int32_t slot = new_slot(slots, at, n_classes)
    cdef Py_ssize_t per_slot = CANDIDATES * SIDES * n_classes
    cdef Py_ssize_t c, k
    if slot < 0:
        return -1
    for c in range(slot * CANDIDATES, (slot + 1) * CANDIDATES):
        slots.columns[c] = <int32_t> draw_below(random, n_columns)
        slots.cuts[c] = x[slots.columns[c]]
        slots.ready[c] = 0
    for k in range(slot * per_slot, (slot + 1) * per_slot):
        slots.counts[k] = 0.0
    slots.weights[slot] = 0.0
    tree.slots[at] = slot
    return 0


cdef inline void count(
    Slots *slots, int32_t slot, const float *x, Py_ssize_t y, double w, Py_ssize_t n_columns, uint64_t *random,
    Py_ssize_t n_classes,
) noexcept nogil:
    """Count a row for a leaf's candidates; those without a cut may find one."""
    cdef Py_ssize_t c, side
    cdef float value, first
    slots.weights[slot] += w
    for c in range(slot * CANDIDATES, (slot + 1) * CANDIDATES):
        value = x[slots.columns[c]]
        if slots.ready[c]:
            side = 2 if value != value else value > slots.cuts[c]
            slots.counts[(c * SIDES + side) * n_classes + y] += <float> w
            continue
        first = slots.cuts[c]
        if value != value:
            continue
        if first != first:
            slots.cuts[c] = value
        elif value != first:
            slots.cuts[c] = draw_between(random, min(first, value), max(first, value))
            slots.ready[c] = 1
        else:  # a feature with one value here: try another
            slots.columns[c] = <int32_t> draw_below(random, n_columns)
            slots.cuts[c] = x[slots.columns[c]]


cdef inline double xlogx(double x) noexcept nogil:
    return x * log(x) if x > 0.0 else 0.0


cdef inline double told(const float *counts, Py_ssize_t missing, Py_ssize_t n_classes) noexcept nogil:
    """Twice the gain in log-likelihood by a cut, with missing values on a side; less what each class is to bring."""
    cdef double below = 0.0
    cdef double above = 0.0
    cdef double gain = ENOUGH
    cdef double a, b
    cdef Py_ssize_t k
    for k in range(n_classes):
        a = counts[k] + (counts[2 * n_classes + k] if missing == 0 else 0.0)
        b = counts[n_classes + k] + (counts[2 * n_classes + k] if missing == 1 else 0.0)
        below += a
        above += b
        if a + b > 0.0:
            gain += 2.0 * (xlogx(a) + xlogx(b) - xlogx(a + b)) - ENOUGH
    if not (below > 0.0 and above > 0.0):
        return 0.0
    return gain + 2.0 * (xlogx(below + above) - xlogx(below) - xlogx(above))


cdef inline int maybe_split(Tree *tree, Slots *slots, int32_t at, Py_ssize_t n_classes) noexcept nogil:
    """Split a leaf on its best candidate if that tells enough; -1 without memory."""
    cdef int32_t slot = tree.slots[at]
    cdef Py_ssize_t best_candidate = -1
    cdef Py_ssize_t best_missing = 0
    cdef double best = 0.0
    cdef double rounding = 1e-9 * slots.weights[slot]  # gains that differ by less are equal; the first is taken
    cdef double gain
    cdef const float *counts
    cdef bint any_missing
    cdef Py_ssize_t c, k, missing
    for c in range(slot * CANDIDATES, (slot + 1) * CANDIDATES):
        if not slots.ready[c]:
            continue
        counts = slots.counts + c * SIDES * n_classes
        any_missing = False
        for k in range(n_classes):
            any_missing |= counts[2 * n_classes + k] > 0.0
        for missing in range(2):
            if missing == 1 and not any_missing:
                break
            gain = told(counts, missing, n_classes)
            if gain > best + rounding:
                best, best_candidate = gain, c
                best_missing = missing if any_missing else heavier_side(counts, n_classes)
    if best_candidate < 0:
        return 0
    if split(tree, at, slots.columns[best_candidate], slots.cuts[best_candidate], <int32_t> best_missing, n_classes):
        return -1
    counts = slots.counts + best_candidate * SIDES * n_classes
    for k in range(n_classes):
        tree.counts[(tree.n - 2) * n_classes + k] = counts[k]
        tree.counts[(tree.n - 1) * n_classes + k] = counts[n_classes + k]
        tree.counts[(tree.n - 2 + best_missing) * n_classes + k] += counts[2 * n_classes + k]
    slots.owners[slot] = slots.free
    slots.free = slot
    tree.slots[at] = -1
    return 0


cdef inline Py_ssize_t heavier_side(const float *counts, Py_ssize_t n_classes) noexcept nogil:
    """Where a value that is missing later goes, if none was: with the many."""
    cdef double below = 0.0
    cdef double above = 0.0
    cdef Py_ssize_t k
    for k in range(n_classes):
        below += counts[k]
        above += counts[n_classes + k]
    return below < above


cdef inline int grow_leaf(
    Tree *tree, Slots *slots, int32_t at, const float *x, Py_ssize_t y, double w, Py_ssize_t n_columns,
    uint64_t *random, Py_ssize_t n_classes, Py_ssize_t max_nodes,
) noexcept nogil:
    """Let a leaf that has counted a row go on growing; -1 without memory."""
    cdef int32_t slot = tree.slots[at]
    cdef double before
    if tree.n + 2 > max_nodes or n_columns == 0:
        return 0
    if slot < 0:
        if several_classes(tree.counts + at * n_classes, n_classes):
            return open_slot(tree, slots, at, x, n_columns, random, n_classes)
        return 0
    before = slots.weights[slot]
    count(slots, slot, x, y, w, n_columns, random, n_classes)
    if floor(before / PATIENCE) < floor(slots.weights[slot] / PATIENCE):
        return maybe_split(tree, slots, at, n_classes)
    return 0
