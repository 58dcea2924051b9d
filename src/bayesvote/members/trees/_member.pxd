"""Trees that learn: a tree, the candidates of its leaves, the tree that will replace it, and its growth schedule."""

from libc.stdint cimport int32_t, int64_t, uint64_t
from libc.string cimport memset

from bayesvote.members.trees._counters cimport CANDIDATES, Counted, Slots, free_slots, grow_leaf
from bayesvote.members.trees._growth cimport Buffers, Growth, advance_growth, begin, end_growth
from bayesvote.members.trees._kept cimport Kept, draw
from bayesvote.members.trees._tree cimport Tree, add_count, free_tree, pair_of, shrink

cdef extern from "cuts.h" nogil:
    void fetch(const void *p)

cdef enum:
    MOST_FETCHED = 8  # classes per slot to prefetch; bounds the time per row


cdef struct Member:
    Tree tree
    Slots slots
    Growth growth
    uint64_t random
    int64_t window  # number of rows that it is grown from
    const int64_t *schedule  # ascending numbers of learned rows at which it is grown again
    Py_ssize_t n_schedule
    int64_t period  # rows between growths after the schedule; 0 if leaves split one by one instead
    int64_t offset


# Parameters of all trees.
cdef struct Rules:
    Py_ssize_t n_classes
    Py_ssize_t max_nodes
    int64_t longest  # maximum number of rows that arrive during a growth


# A row to learn, with the numbers of rows and columns seen so far.
cdef struct LabelledRow:
    const float *x
    Py_ssize_t y
    double w
    int64_t seen
    Py_ssize_t n_columns


cdef inline bint is_due(const Member *member, int64_t seen) noexcept nogil:
    """Return True if a tree must be grown again after ``seen`` rows."""
    cdef Py_ssize_t k
    if member.n_schedule and seen <= member.schedule[member.n_schedule - 1]:
        for k in range(member.n_schedule):
            if member.schedule[k] == seen:
                return True
    return member.period > 0 and seen >= member.offset and (seen - member.offset) % member.period == 0


cdef inline int begin_growth(Member *member, const Kept *kept, const Rules *rules) noexcept nogil:
    member.growth.n_rows = min(member.growth.begun, member.window)
    return begin(&member.growth, kept, rules.n_classes)


cdef inline int learn(
    Member *member, int32_t at, const LabelledRow *labelled, const Kept *kept, const Rules *rules, Buffers *buffers
) noexcept nogil:
    """Learn a row that reached a leaf; return 1 if the tree was replaced after it, or -1 if out of memory."""
    cdef int64_t last_growth = member.schedule[member.n_schedule - 1] if member.n_schedule else 0
    cdef int complete
    if add_count(&member.tree, at, labelled.y, labelled.w):
        return -1
    if member.period == 0 and labelled.seen > last_growth and member.growth.begun == 0:
        if grow_leaf(
            &member.tree, &member.slots, at, labelled.x, labelled.y, labelled.w, labelled.n_columns, &member.random,
            rules.n_classes, rules.max_nodes,
        ):
            return -1
    if member.growth.begun == 0 and is_due(member, labelled.seen):
        member.growth.begun = labelled.seen
        member.growth.seed = draw(&member.random)
        member.growth.n_columns = labelled.n_columns
        if begin_growth(member, kept, rules):
            return -1
    if member.growth.begun == 0:
        return 0
    complete = advance_growth(&member.growth, kept, labelled.seen, buffers, rules.max_nodes, rules.longest)
    if complete > 0:
        free_tree(&member.tree)
        free_slots(&member.slots)
        member.tree = member.growth.tree
        memset(&member.growth.tree, 0, sizeof(Tree))
        end_growth(&member.growth)
        if shrink(&member.tree, rules.n_classes):
            return -1
    return complete


cdef inline void free_member(Member *member) noexcept nogil:
    free_tree(&member.tree)
    free_slots(&member.slots)
    free_tree(&member.growth.tree)
    end_growth(&member.growth)


# Memory is prefetched in two steps: first the positions of the runs, then their contents.
cdef inline void fetch_leaf(const Tree *tree, int32_t at, Py_ssize_t n_classes) noexcept nogil:
    fetch(tree.runs + at)
    fetch(tree.priors + pair_of(at) * n_classes)
    fetch(tree.parents + pair_of(at))
    fetch(tree.slots + at)


cdef inline void fetch_counts(const Tree *tree, int32_t at) noexcept nogil:
    fetch(tree.counts.keys + tree.runs[at].start)
    fetch(tree.counts.values + tree.runs[at].start * sizeof(double))


cdef inline void fetch_slot(const Slots *slots, int32_t slot) noexcept nogil:
    if slot < 0:
        return
    fetch(slots.weights + slot)
    fetch(slots.columns + slot * CANDIDATES)
    fetch(slots.cuts + slot * CANDIDATES)
    fetch(slots.ready + slot * CANDIDATES)
    fetch(slots.runs + slot)


cdef inline void fetch_counted(const Slots *slots, int32_t slot) noexcept nogil:
    cdef Py_ssize_t j
    if slot < 0:
        return
    fetch(slots.counts.keys + slots.runs[slot].start)
    for j in range(slots.runs[slot].start, slots.runs[slot].start + min(slots.runs[slot].n, MOST_FETCHED)):
        fetch(slots.counts.values + j * sizeof(Counted))
