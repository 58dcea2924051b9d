"""Pruning: remove the splits and slots that are worth least, until a tree needs less memory.

The worth of a split is the criterion by which leaves split: twice the gain in log-likelihood, less ENOUGH per class.
It is computed from the rows counted in the leaves below. A split is removed after all splits below it. Its node becomes
a leaf with the counts of the leaves below, and with the mean of their refined numbers.

The worth of a slot, which holds the candidates of a leaf, is a share of the leaf's mistakes. A leaf without a slot does
not change. After pruning, a leaf opens a slot or splits only if that is worth more than everything pruned so far.
Otherwise trees would grow again what the next pruning removes.
"""

from libc.math cimport INFINITY
from libc.stdint cimport int8_t, int32_t
from libc.stdlib cimport calloc, free, qsort
from libc.string cimport memcpy, memmove, memset

from bayesvote.members.trees._counters cimport CANDIDATES, ENOUGH, Counted, Slots, worth_of_slot, resize_slots, xlogx
from bayesvote.members.trees._refined cimport LeafValues, Refined, place_of_leaf, shrink_leaves
from bayesvote.members.trees._runs cimport Run, Runs, count_items, free_runs, make_room, pack
from bayesvote.members.trees._tree cimport Node, Tree, is_leaf, pair_of, set_leaf, shrink


cdef extern from *:
    """
    #define MOST_WORTH 1e300 /* replaces an infinite worth */
    """
    const double MOST_WORTH


# Worth of a node: of the split of an inner node, or the slot of a leaf.
cdef struct Worth:
    double worth
    int32_t at


# Plan for pruning a tree; it is complete before the tree changes.
cdef struct Pruning:
    Run *runs  # class counts of each inner node: sums over the leaves below it
    Runs counts
    double *weights  # total weight of each node
    Worth *order  # nodes with a split or a slot, by ascending worth
    Py_ssize_t n
    Py_ssize_t n_chosen
    double least  # maximum worth of the chosen nodes
    int8_t *chosen  # 1 for nodes that lose their split or slot
    int32_t *moved  # index of each node afterwards, or -1
    int32_t *owners  # node of each entry: first of the refined numbers, later of the slots


cdef inline Py_ssize_t bytes_of_numbers(const Tree *tree, const Slots *slots, Py_ssize_t n_classes) noexcept nogil:
    """Return the bytes that a tree and its candidates use, without spare capacity."""
    cdef Py_ssize_t total = tree.n * <Py_ssize_t> (sizeof(Node) + sizeof(int32_t) + sizeof(Run))
    total += (pair_of(tree.n - 1) + 1) * bytes_of_pair(n_classes)
    total += tree.counts.live * <Py_ssize_t> (sizeof(int32_t) + sizeof(double))
    total += slots.n_open * bytes_of_slot()
    return total + slots.counts.live * <Py_ssize_t> (sizeof(int32_t) + sizeof(Counted))


cdef inline Py_ssize_t bytes_of_pair(Py_ssize_t n_classes) noexcept nogil:
    return sizeof(int32_t) + n_classes * sizeof(float)


cdef inline Py_ssize_t bytes_of_slot() noexcept nogil:
    return 2 * sizeof(int32_t) + sizeof(double) + CANDIDATES * (2 * sizeof(int32_t) + 1) + sizeof(Run)


cdef inline Py_ssize_t bytes_of_leaves(const LeafValues *leaves, Py_ssize_t n_numbers) noexcept nogil:
    return leaves.n_nodes * sizeof(int32_t) + leaves.n * n_numbers * sizeof(float)


cdef inline void free_pruning(Pruning *pruning) noexcept nogil:
    free(pruning.runs)
    free_runs(&pruning.counts)
    free(pruning.weights)
    free(pruning.order)
    free(pruning.chosen)
    free(pruning.moved)
    free(pruning.owners)


cdef inline double merge(
    Pruning *pruning, const Runs *from_left, const Run *left, const Runs *from_right, const Run *right, Run *into
) noexcept nogil:
    """Append the sum of two runs, for which there is room; return the worth of the split between them."""
    cdef Runs *pool = &pruning.counts
    cdef double *values = <double *> pool.values
    cdef Py_ssize_t i = left.start
    cdef Py_ssize_t j = right.start
    cdef Py_ssize_t last_i = i + left.n
    cdef Py_ssize_t last_j = j + right.n
    cdef double below = 0.0
    cdef double above = 0.0
    cdef double gain = ENOUGH
    cdef double a, b
    cdef int32_t key
    into.start = <int32_t> pool.used
    while i < last_i or j < last_j:
        if j == last_j or (i < last_i and from_left.keys[i] <= from_right.keys[j]):
            key = from_left.keys[i]
        else:
            key = from_right.keys[j]
        a = b = 0.0
        if i < last_i and from_left.keys[i] == key:
            a = (<double *> from_left.values)[i]
            i += 1
        if j < last_j and from_right.keys[j] == key:
            b = (<double *> from_right.values)[j]
            j += 1
        pool.keys[pool.used] = key
        values[pool.used] = a + b
        pool.used += 1
        below += a
        above += b
        gain += 2.0 * (xlogx(a) + xlogx(b) - xlogx(a + b)) - ENOUGH
    into.n = <int32_t> (pool.used - into.start)
    pool.live = pool.used
    return gain + 2.0 * (xlogx(below + above) - xlogx(below) - xlogx(above))


cdef inline double finite_worth(double worth) noexcept nogil:
    """Return the worth as a finite number. Counts from a file may have an infinite sum, and NaN cannot be sorted."""
    return min(worth, MOST_WORTH) if worth == worth else 0.0


cdef inline int compare_worths(const void *a, const void *b) noexcept nogil:
    """Compare by worth; of equal ones, children come before their parents."""
    cdef const Worth *one = <const Worth *> a
    cdef const Worth *other = <const Worth *> b
    if one.worth != other.worth:
        return -1 if one.worth < other.worth else 1
    return other.at - one.at


cdef inline int find_worths(Pruning *pruning, const Tree *tree) noexcept nogil:
    """Sum the counts from the leaves to the root, and sort splits and slots by worth; return -1 if out of memory."""
    cdef Py_ssize_t n = tree.n
    cdef double *worths  # the worth of a split is at least that of the splits below it
    cdef Py_ssize_t at, j
    cdef int32_t left
    cdef const Runs *pools[2]
    cdef const Run *runs[2]
    worths = <double *> calloc(n, sizeof(double))
    if worths == NULL:
        return -1
    for at in range(n - 1, -1, -1):
        worths[at] = -INFINITY
        if is_leaf(tree.nodes, <int32_t> at):
            for j in range(tree.runs[at].start, tree.runs[at].start + tree.runs[at].n):
                pruning.weights[at] += (<double *> tree.counts.values)[j]
            if tree.slots[at] >= 0:
                pruning.order[pruning.n].worth = finite_worth(worth_of_slot(tree, at))
                pruning.order[pruning.n].at = <int32_t> at
                pruning.n += 1
            continue
        left = tree.nodes[at].left
        for j in range(2):
            if is_leaf(tree.nodes, <int32_t> (left + j)):
                pools[j], runs[j] = &tree.counts, tree.runs + left + j
            else:
                pools[j], runs[j] = &pruning.counts, pruning.runs + left + j
        if make_room(&pruning.counts, sizeof(double), pruning.runs, n, runs[0].n + runs[1].n):
            free(worths)
            return -1
        pruning.weights[at] = pruning.weights[left] + pruning.weights[left + 1]
        worths[at] = finite_worth(merge(pruning, pools[0], runs[0], pools[1], runs[1], pruning.runs + at))
        worths[at] = max(worths[at], max(worths[left], worths[left + 1]))
        pruning.order[pruning.n].worth = worths[at]
        pruning.order[pruning.n].at = <int32_t> at
        pruning.n += 1
    free(worths)
    qsort(pruning.order, pruning.n, sizeof(Worth), compare_worths)
    return 0


cdef inline Py_ssize_t bytes_of_open(const Slots *slots, int32_t slot) noexcept nogil:
    """Return the bytes of a slot and its counts; 0 for slot -1."""
    if slot < 0:
        return 0
    return bytes_of_slot() + slots.runs[slot].n * <Py_ssize_t> (sizeof(int32_t) + sizeof(Counted))


cdef inline void choose(
    Pruning *pruning, const Tree *tree, const Slots *slots, const LeafValues *leaves, const Refined *refined,
    Py_ssize_t excess,
) noexcept nogil:
    """Choose the nodes to prune, until ``excess`` bytes are free."""
    cdef Py_ssize_t per_pair = bytes_of_pair(refined.n_classes)
    cdef Py_ssize_t per_node = sizeof(Node) + 2 * sizeof(int32_t) + sizeof(Run)
    cdef Py_ssize_t per_count = sizeof(int32_t) + sizeof(double)
    cdef Py_ssize_t freed = 0
    cdef Py_ssize_t at, child
    while freed < excess and pruning.n_chosen < pruning.n:
        at = pruning.order[pruning.n_chosen].at
        pruning.least = max(pruning.least, pruning.order[pruning.n_chosen].worth)
        pruning.n_chosen += 1
        pruning.chosen[at] = 1
        if is_leaf(tree.nodes, <int32_t> at):
            if at == 0 or not pruning.chosen[tree.parents[pair_of(at)]]:  # else counted with the split
                freed += bytes_of_open(slots, tree.slots[at])
            continue
        freed += per_pair + 2 * per_node + (tree.runs[at].n - pruning.runs[at].n) * per_count
        for child in range(tree.nodes[at].left, tree.nodes[at].left + 2):
            if is_leaf(tree.nodes, <int32_t> child):
                freed += tree.runs[child].n * per_count
            else:
                freed += pruning.runs[child].n * per_count
            if not pruning.chosen[child]:
                freed += bytes_of_open(slots, tree.slots[child])
            if place_of_leaf(leaves, child) >= 0:
                freed += refined.n_numbers * sizeof(float)


cdef inline void merge_numbers(
    const Pruning *pruning, const Tree *tree, LeafValues *leaves, Py_ssize_t n_numbers, Py_ssize_t at
) noexcept nogil:
    """Set the refined numbers of a node to the mean of its children's, weighted by their rows."""
    cdef int32_t left = tree.nodes[at].left
    cdef int32_t one, other
    cdef double share, total
    cdef float *numbers
    cdef const float *others
    cdef Py_ssize_t j
    one, other = place_of_leaf(leaves, left), place_of_leaf(leaves, left + 1)
    if one < 0 and other < 0:
        return
    if one >= 0 and other >= 0:
        total = pruning.weights[left] + pruning.weights[left + 1]
        share = pruning.weights[left] / total if total > 0.0 else 0.5
        numbers = leaves.numbers + one * n_numbers
        others = leaves.numbers + other * n_numbers
        for j in range(n_numbers):
            numbers[j] = <float> (share * numbers[j] + (1.0 - share) * others[j])
    leaves.places[at] = one if one >= 0 else other
    for j in range(left, min(<Py_ssize_t> left + 2, leaves.n_nodes)):
        leaves.places[j] = -1


cdef inline void renumber(Pruning *pruning, const Tree *tree) noexcept nogil:
    """Assign new indices to the nodes that are kept."""
    cdef Py_ssize_t n = 1
    cdef Py_ssize_t pair, parent
    pruning.moved[0] = 0
    for pair in range(1, pair_of(tree.n - 1) + 1):
        parent = tree.parents[pair]
        if pruning.moved[parent] < 0 or pruning.chosen[parent]:
            pruning.moved[2 * pair - 1] = pruning.moved[2 * pair] = -1
        else:
            pruning.moved[2 * pair - 1] = <int32_t> n
            pruning.moved[2 * pair] = <int32_t> n + 1
            n += 2


cdef inline void move_numbers(
    Pruning *pruning, LeafValues *leaves, Py_ssize_t n_nodes, Py_ssize_t n_numbers
) noexcept nogil:
    """Compact the refined numbers."""
    cdef Py_ssize_t kept = 0
    cdef Py_ssize_t last = 0
    cdef Py_ssize_t at, j
    for j in range(leaves.n):
        pruning.owners[j] = -1
    for at in range(min(n_nodes, leaves.n_nodes)):
        if pruning.moved[at] >= 0:
            if leaves.places[at] >= 0:
                pruning.owners[leaves.places[at]] = pruning.moved[at]
            last = pruning.moved[at] + 1
    for at in range(last):
        leaves.places[at] = -1
    leaves.n_nodes = last
    for j in range(leaves.n):
        if pruning.owners[j] >= 0:
            if kept < j:
                memcpy(leaves.numbers + kept * n_numbers, leaves.numbers + j * n_numbers, n_numbers * sizeof(float))
            leaves.places[pruning.owners[j]] = <int32_t> kept
            kept += 1
    leaves.n = kept


cdef inline void move_slots(Pruning *pruning, Tree *tree, Slots *slots) noexcept nogil:
    """Compact the slots. ``tree`` still has its old indices."""
    cdef Py_ssize_t kept = 0
    cdef Py_ssize_t at, s
    for s in range(slots.n):
        pruning.owners[s] = -1
    for at in range(tree.n):
        s = tree.slots[at]
        if s >= 0:
            if pruning.moved[at] >= 0 and not pruning.chosen[at]:
                pruning.owners[s] = <int32_t> at
            else:
                slots.counts.live -= slots.runs[s].n
                tree.slots[at] = -1
                pruning.chosen[at] = 0
    for s in range(slots.n):
        if pruning.owners[s] < 0:
            continue
        slots.owners[kept] = pruning.moved[pruning.owners[s]]
        tree.slots[pruning.owners[s]] = <int32_t> kept
        if kept < s:
            slots.weights[kept] = slots.weights[s]
            slots.runs[kept] = slots.runs[s]
            memcpy(slots.columns + kept * CANDIDATES, slots.columns + s * CANDIDATES, CANDIDATES * sizeof(int32_t))
            memcpy(slots.cuts + kept * CANDIDATES, slots.cuts + s * CANDIDATES, CANDIDATES * sizeof(float))
            memcpy(slots.ready + kept * CANDIDATES, slots.ready + s * CANDIDATES, CANDIDATES)
        kept += 1
    slots.n = slots.n_open = kept
    slots.free = -1


cdef inline void move_nodes(Pruning *pruning, Tree *tree, Py_ssize_t n_classes) noexcept nogil:
    """Compact the nodes. The counts of pruned nodes go to the end of the pool, where there is room."""
    cdef Runs *pool = &tree.counts
    cdef Py_ssize_t n = tree.n
    cdef Py_ssize_t kept = 0
    cdef Py_ssize_t at, to
    cdef const Run *run
    for at in range(n):
        to = pruning.moved[at]
        if to < 0:
            continue
        kept = to + 1
        tree.nodes[to], tree.slots[to], tree.runs[to] = tree.nodes[at], tree.slots[at], tree.runs[at]
        if at == 0 or at & 1:  # the first of a pair
            if at > 0:
                tree.parents[pair_of(to)] = pruning.moved[tree.parents[pair_of(at)]]
            memmove(
                tree.priors + pair_of(to) * n_classes, tree.priors + pair_of(at) * n_classes, n_classes * sizeof(float)
            )
        if pruning.chosen[at]:
            set_leaf(tree, <int32_t> to)
            run = pruning.runs + at
            if run.n > 0:  # memcpy must not get NULL, even for 0 bytes
                memcpy(pool.keys + pool.used, pruning.counts.keys + run.start, run.n * sizeof(int32_t))
                memcpy(
                    <double *> pool.values + pool.used, <double *> pruning.counts.values + run.start,
                    run.n * sizeof(double),
                )
            tree.runs[to].start, tree.runs[to].n = <int32_t> pool.used, run.n
            pool.used += run.n
        else:
            tree.nodes[to].left = pruning.moved[tree.nodes[to].left]
    tree.n = kept
    pool.live = count_items(tree.runs, kept)


cdef inline int prune(
    Tree *tree, Slots *slots, LeafValues *leaves, const Refined *refined, Py_ssize_t excess
) noexcept nogil:
    """Prune splits and slots until ``excess`` bytes are free; return -1, with nothing changed, if out of memory."""
    cdef Pruning pruning
    cdef Py_ssize_t n = tree.n
    cdef Py_ssize_t n_counts = 0
    cdef Py_ssize_t i
    cdef int failed
    memset(&pruning, 0, sizeof(Pruning))
    pruning.runs = <Run *> calloc(n, sizeof(Run))
    pruning.weights = <double *> calloc(n, sizeof(double))
    pruning.order = <Worth *> calloc(n, sizeof(Worth))
    pruning.chosen = <int8_t *> calloc(n, 1)
    pruning.moved = <int32_t *> calloc(n, sizeof(int32_t))
    pruning.owners = <int32_t *> calloc(max(<Py_ssize_t> 1, max(slots.n, leaves.n)), sizeof(int32_t))
    failed = (
        pruning.runs == NULL or pruning.weights == NULL or pruning.order == NULL or pruning.chosen == NULL
        or pruning.moved == NULL or pruning.owners == NULL or find_worths(&pruning, tree)
    )
    if not failed:
        choose(&pruning, tree, slots, leaves, refined, excess)
        slots.least = max(slots.least, pruning.least)
        for i in range(pruning.n_chosen):
            n_counts += pruning.runs[pruning.order[i].at].n
        failed = make_room(&tree.counts, sizeof(double), tree.runs, n, n_counts)
    if not failed:
        for i in range(pruning.n_chosen if leaves.n > 0 else 0):
            if is_leaf(tree.nodes, pruning.order[i].at):
                continue
            merge_numbers(&pruning, tree, leaves, refined.n_numbers, pruning.order[i].at)
        renumber(&pruning, tree)
        move_numbers(&pruning, leaves, n, refined.n_numbers)
        move_slots(&pruning, tree, slots)
        move_nodes(&pruning, tree, refined.n_classes)
        # If out of memory, the larger arrays stay valid.
        shrink(tree, refined.n_classes)
        shrink_leaves(leaves, refined.n_numbers)
        pack(&slots.counts, sizeof(Counted), slots.runs, slots.n, 0)
        resize_slots(slots, max(<Py_ssize_t> 1, slots.n))
    free_pruning(&pruning)
    return -1 if failed else 0
