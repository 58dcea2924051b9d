"""Splits of single leaves: a leaf counts classes for some random cuts, and splits once the gain of one is enough."""

from libc.math cimport floor, log
from libc.stdint cimport int8_t, int32_t, uint64_t
from libc.stdlib cimport free

from bayesvote.members.trees._kept cimport draw_below, draw_between
from bayesvote.members.trees._runs cimport Run, Runs, find_key, free_runs, insert_key
from bayesvote.members.trees._tree cimport Tree, add_count, counts_of, resize, split

cdef extern from *:
    """
    /* Expected gain of a split per mistake of its leaf. On covtype with half of the memory, late errors are equal from
     * 0.01 to 0.1, and higher from 0.3. */
    #define PROMISE 0.1
    """
    const double PROMISE

cdef enum:
    CANDIDATES = 8  # cuts that a leaf counts classes for; bounds memory and time
    SIDES = 2  # sides of a cut: at most the cut, above it
    CHECK_WEIGHT = 8  # weight of the rows between two checks of a leaf; bounds the time
    ENOUGH = 2  # minimum of twice the gain in log-likelihood, per class beyond the first: Akaike's criterion


# Counts of one class for all candidates of a leaf. Key 2 k holds the weights on both sides of each cut. Key 2 k + 1
# holds the weights of missing values in its first CANDIDATES numbers.
ctypedef float Counted[CANDIDATES * SIDES]


# Candidates of the leaves of a tree, one slot per leaf. Free slots form a list that is linked by ``owners``.
cdef struct Slots:
    Py_ssize_t n
    Py_ssize_t n_open
    double least  # minimum worth of a split or slot: that of the best one pruned so far, or 0
    Py_ssize_t capacity
    int32_t free
    int32_t *owners  # the leaf of each slot
    double *weights  # weight of the rows since the slot was opened
    int32_t *columns  # (capacity, CANDIDATES)
    float *cuts  # (capacity, CANDIDATES); until there is a cut, the first value
    int8_t *ready  # (capacity, CANDIDATES); 1 if there is a cut
    Run *runs  # the counts of each slot, by class
    Runs counts


cdef inline int resize_slots(Slots *slots, Py_ssize_t capacity) noexcept nogil:
    """Resize the arrays to a capacity of at least one slot; return -1 if out of memory."""
    if (
        resize(<void **> &slots.owners, capacity * sizeof(int32_t))
        or resize(<void **> &slots.weights, capacity * sizeof(double))
        or resize(<void **> &slots.columns, capacity * CANDIDATES * sizeof(int32_t))
        or resize(<void **> &slots.cuts, capacity * CANDIDATES * sizeof(float))
        or resize(<void **> &slots.ready, capacity * CANDIDATES * sizeof(int8_t))
        or resize(<void **> &slots.runs, capacity * sizeof(Run))
    ):
        return -1
    slots.capacity = capacity
    return 0


cdef inline int reserve_slots(Slots *slots, Py_ssize_t n) noexcept nogil:
    """Reserve memory for n slots; return -1 if out of memory."""
    if n <= slots.capacity:
        return 0
    return resize_slots(slots, max(n, slots.capacity + slots.capacity // 4 + 2))


cdef inline void free_slots(Slots *slots) noexcept nogil:
    free(slots.owners)
    free(slots.weights)
    free(slots.columns)
    free(slots.cuts)
    free(slots.ready)
    free(slots.runs)
    free_runs(&slots.counts)
    slots.owners = slots.columns = NULL
    slots.weights = NULL
    slots.cuts = NULL
    slots.ready = NULL
    slots.runs = NULL
    slots.least = 0.0
    slots.n = slots.n_open = slots.capacity = 0
    slots.free = -1


cdef inline int32_t new_slot(Slots *slots, int32_t owner) noexcept nogil:
    """Return an empty slot for a leaf, or -1 if out of memory."""
    cdef int32_t slot = slots.free
    if slot >= 0:
        slots.free = slots.owners[slot]
    else:
        if reserve_slots(slots, slots.n + 1):
            return -1
        slot = <int32_t> slots.n
        slots.n += 1
    slots.n_open += 1
    slots.owners[slot] = owner
    slots.weights[slot] = 0.0
    slots.runs[slot].start = slots.runs[slot].n = 0
    return slot


cdef inline void close_slot(Tree *tree, Slots *slots, int32_t at) noexcept nogil:
    """Free the slot of a leaf."""
    cdef int32_t slot = tree.slots[at]
    slots.n_open -= 1
    slots.counts.live -= slots.runs[slot].n
    slots.runs[slot].n = 0
    slots.owners[slot] = slots.free
    slots.free = slot
    tree.slots[at] = -1


cdef inline int open_slot(
    Tree *tree, Slots *slots, int32_t at, const float *x, Py_ssize_t n_columns, uint64_t *random
) noexcept nogil:
    """Draw candidates for a leaf; the row has their first values. Return -1 if out of memory."""
    cdef int32_t slot = new_slot(slots, at)
    cdef Py_ssize_t c
    if slot < 0:
        return -1
    for c in range(slot * CANDIDATES, (slot + 1) * CANDIDATES):
        slots.columns[c] = <int32_t> draw_below(random, n_columns)
        slots.cuts[c] = x[slots.columns[c]]
        slots.ready[c] = 0
    tree.slots[at] = slot
    return 0


cdef inline Py_ssize_t counted_at(Slots *slots, int32_t slot, Py_ssize_t key) noexcept nogil:
    """Return the index of a slot's counts for a key, or -1 if out of memory."""
    cdef Py_ssize_t place = find_key(&slots.counts, slots.runs + slot, <int32_t> key)
    if place < 0:
        place = insert_key(&slots.counts, sizeof(Counted), slots.runs, slots.n, slot, <int32_t> key)
    return place


cdef inline int count(
    Slots *slots, int32_t slot, const float *x, Py_ssize_t y, double w, Py_ssize_t n_columns, uint64_t *random
) noexcept nogil:
    """Count a row for the candidates of a leaf, and draw cuts that are still missing; return -1 if out of memory."""
    cdef Py_ssize_t first_candidate = slot * CANDIDATES
    cdef float *counted = NULL  # counts of the class
    cdef float *missing = NULL
    cdef Py_ssize_t c, j, place
    cdef float value, first
    slots.weights[slot] += w
    for j in range(CANDIDATES):
        c = first_candidate + j
        value = x[slots.columns[c]]
        if slots.ready[c]:
            if value != value:
                if missing == NULL:
                    place = counted_at(slots, slot, 2 * y + 1)
                    if place < 0:
                        return -1
                    missing = <float *> slots.counts.values + place * CANDIDATES * SIDES
                    counted = NULL  # the array may have moved
                missing[j] += <float> w
            else:
                if counted == NULL:
                    place = counted_at(slots, slot, 2 * y)
                    if place < 0:
                        return -1
                    counted = <float *> slots.counts.values + place * CANDIDATES * SIDES
                    missing = NULL
                counted[SIDES * j + (value > slots.cuts[c])] += <float> w
            continue
        first = slots.cuts[c]
        if value != value:
            continue
        if first != first:
            slots.cuts[c] = value
        elif value != first:
            slots.cuts[c] = draw_between(random, min(first, value), max(first, value))
            slots.ready[c] = 1
        else:  # the feature has been constant: try another
            slots.columns[c] = <int32_t> draw_below(random, n_columns)
            slots.cuts[c] = x[slots.columns[c]]
    return 0


# Counts of one class for one candidate.
cdef struct Sides:
    int32_t label
    double below
    double above
    double missing


cdef inline Py_ssize_t next_class(
    const Runs *pool, Py_ssize_t at, Py_ssize_t last, Py_ssize_t j, Sides *sides
) noexcept nogil:
    """Read the counts of candidate j for the class at an index of a run; return the index of the next class."""
    cdef const Counted *values = <const Counted *> pool.values
    cdef int32_t key = pool.keys[at]
    sides.label = key >> 1
    sides.below = sides.above = sides.missing = 0.0
    if key & 1 == 0:
        sides.below, sides.above = values[at][SIDES * j], values[at][SIDES * j + 1]
        at += 1
    if at < last and pool.keys[at] == 2 * sides.label + 1:
        sides.missing = values[at][j]
        at += 1
    return at


cdef inline double xlogx(double x) noexcept nogil:
    return x * log(x) if x > 0.0 else 0.0


cdef inline double gain_of_cut(const Runs *pool, const Run *run, Py_ssize_t j, Py_ssize_t missing) noexcept nogil:
    """Return twice the gain in log-likelihood by a cut, less ENOUGH per class beyond the first.

    Missing values go to the side ``missing``.
    """
    cdef double below = 0.0
    cdef double above = 0.0
    cdef double gain = ENOUGH
    cdef double a, b
    cdef Py_ssize_t at = run.start
    cdef Py_ssize_t last = run.start + run.n
    cdef Sides sides
    while at < last:
        at = next_class(pool, at, last, j, &sides)
        a = sides.below + (sides.missing if missing == 0 else 0.0)
        b = sides.above + (sides.missing if missing == 1 else 0.0)
        below += a
        above += b
        if a + b > 0.0:
            gain += 2.0 * (xlogx(a) + xlogx(b) - xlogx(a + b)) - ENOUGH
    if not (below > 0.0 and above > 0.0):
        return 0.0
    return gain + 2.0 * (xlogx(below + above) - xlogx(below) - xlogx(above))


cdef inline void add_sides(const Runs *pool, const Run *run, Py_ssize_t j, Sides *total) noexcept nogil:
    """Sum the counts of a candidate over all classes."""
    cdef Py_ssize_t at = run.start
    cdef Py_ssize_t last = run.start + run.n
    cdef Sides sides
    total.below = total.above = total.missing = 0.0
    while at < last:
        at = next_class(pool, at, last, j, &sides)
        total.below += sides.below
        total.above += sides.above
        total.missing += sides.missing


cdef inline int split_on(
    Tree *tree, Slots *slots, int32_t at, Py_ssize_t j, Py_ssize_t missing, Py_ssize_t n_classes
) noexcept nogil:
    """Split a leaf on a candidate, whose counts go to the children; return -1 if out of memory."""
    cdef int32_t slot = tree.slots[at]
    cdef Py_ssize_t c = slot * CANDIDATES + j
    cdef Py_ssize_t left = tree.n
    cdef Py_ssize_t place = slots.runs[slot].start
    cdef Py_ssize_t last = place + slots.runs[slot].n
    cdef Sides sides
    if split(tree, at, slots.columns[c], slots.cuts[c], <int32_t> missing, n_classes):
        return -1
    while place < last:
        place = next_class(&slots.counts, place, last, j, &sides)
        if missing == 0:
            sides.below += sides.missing
        else:
            sides.above += sides.missing
        if sides.below > 0.0 and add_count(tree, left, sides.label, sides.below):
            return -1
        if sides.above > 0.0 and add_count(tree, left + 1, sides.label, sides.above):
            return -1
    close_slot(tree, slots, at)
    return 0


cdef inline int maybe_split(Tree *tree, Slots *slots, int32_t at, Py_ssize_t n_classes) noexcept nogil:
    """Split a leaf on its best candidate if the gain is large enough; return -1 if out of memory."""
    cdef int32_t slot = tree.slots[at]
    cdef const Run *run = slots.runs + slot
    cdef Py_ssize_t best_candidate = -1
    cdef Py_ssize_t best_missing = 0
    cdef double best = slots.least
    cdef double rounding = 1e-9 * slots.weights[slot]  # gains that differ by less count as equal; the first one wins
    cdef double gain
    cdef Sides total
    cdef Py_ssize_t j, missing
    for j in range(CANDIDATES):
        if not slots.ready[slot * CANDIDATES + j]:
            continue
        add_sides(&slots.counts, run, j, &total)
        for missing in range(2):
            if missing == 1 and total.missing == 0.0:
                break
            gain = gain_of_cut(&slots.counts, run, j, missing)
            if gain > best + rounding:
                best, best_candidate = gain, j
                # Without missing values so far, later ones go to the side with more rows.
                best_missing = missing if total.missing > 0.0 else total.below < total.above
    if best_candidate < 0:
        return 0
    return split_on(tree, slots, at, best_candidate, best_missing, n_classes)


cdef inline double worth_of_slot(const Tree *tree, Py_ssize_t at) noexcept nogil:
    """Return the expected gain of a split: PROMISE times the weight outside the most frequent class."""
    cdef const double *counts = counts_of(tree, at)
    cdef double most = 0.0
    cdef double others = 0.0
    cdef Py_ssize_t j
    for j in range(tree.runs[at].n):
        others += min(most, counts[j])
        most = max(most, counts[j])
    return PROMISE * others


cdef inline int grow_leaf(
    Tree *tree, Slots *slots, int32_t at, const float *x, Py_ssize_t y, double w, Py_ssize_t n_columns,
    uint64_t *random, Py_ssize_t n_classes, Py_ssize_t max_nodes,
) noexcept nogil:
    """Update the candidates of a leaf that has counted a row, and maybe split it; return -1 if out of memory."""
    cdef int32_t slot = tree.slots[at]
    cdef double before
    if tree.n + 2 > max_nodes or n_columns == 0:
        return 0
    if slot < 0:
        return open_slot(tree, slots, at, x, n_columns, random) if worth_of_slot(tree, at) > slots.least else 0
    before = slots.weights[slot]
    if count(slots, slot, x, y, w, n_columns, random):
        return -1
    if floor(before / CHECK_WEIGHT) < floor(slots.weights[slot] / CHECK_WEIGHT):
        return maybe_split(tree, slots, at, n_classes)
    return 0
