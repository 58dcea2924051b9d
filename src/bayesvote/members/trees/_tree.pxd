"""Decision tree: nodes in growing arrays; the two children of a node are adjacent and come after it."""

from libc.math cimport INFINITY
from libc.stdint cimport int32_t
from libc.stdlib cimport free, realloc

from bayesvote.members.trees._runs cimport Run, Runs, find_key, free_runs, insert_key, make_room, pack

cdef extern from *:
    """
    /* Weight of the parent's class probabilities in a leaf; below 1, so that a single row decides a pure leaf. */
    #define SMOOTHING 0.3
    /* Minimum class probability that children get from their parent, so that its logarithm is finite. */
    #define LEAST_PRIOR 1e-12
    """
    const double SMOOTHING
    const double LEAST_PRIOR


# A row goes to ``left`` if the value of the column is at most the threshold, to ``left + missing`` if it is missing,
# and to ``left + 1`` otherwise. A leaf leads to itself, so that descending needs no branch.
cdef struct Node:
    float threshold
    int32_t column
    int32_t left
    int32_t missing


# Children are stored in adjacent pairs: the root is pair 0, nodes 1 and 2 are pair 1, and so on.
cdef struct Tree:
    Py_ssize_t n
    Py_ssize_t capacity
    Node *nodes
    int32_t *slots  # slot with the candidate splits of each leaf, or -1
    Run *runs  # weights of the classes that occurred in each node; for an inner node, those when it was split
    Runs counts
    int32_t *parents  # parent of each pair; -1 for the root
    float *priors  # (pairs, K), class probabilities of the parent when it was split


cdef inline bint is_leaf(const Node *nodes, int32_t at) noexcept nogil:
    return nodes[at].left == at


cdef inline int32_t next_node(const Node *nodes, const float *x, int32_t at) noexcept nogil:
    cdef const Node *node = nodes + at
    cdef float value = x[node.column]
    return node.left + (node.missing if value != value else <int32_t> (value > node.threshold))


cdef inline int32_t descend(const Node *nodes, const float *x, int32_t at) noexcept nogil:
    """Return the leaf that a row reaches from a node."""
    while nodes[at].left != at:
        at = next_node(nodes, x, at)
    return at


cdef inline int resize(void **array, Py_ssize_t bytes) noexcept nogil:
    cdef void *moved = realloc(array[0], bytes)
    if moved == NULL:
        return -1
    array[0] = moved
    return 0


cdef inline Py_ssize_t pair_of(Py_ssize_t at) noexcept nogil:
    return (at + 1) >> 1


cdef inline int resize_tree(Tree *tree, Py_ssize_t capacity, Py_ssize_t n_classes) noexcept nogil:
    """Resize the arrays to a capacity in nodes; return -1 if out of memory."""
    cdef Py_ssize_t n_pairs = pair_of(capacity - 1) + 1
    if (
        resize(<void **> &tree.nodes, capacity * sizeof(Node))
        or resize(<void **> &tree.slots, capacity * sizeof(int32_t))
        or resize(<void **> &tree.runs, capacity * sizeof(Run))
        or resize(<void **> &tree.parents, n_pairs * sizeof(int32_t))
        or resize(<void **> &tree.priors, n_pairs * n_classes * sizeof(float))
    ):
        return -1
    tree.capacity = capacity
    return 0


cdef inline int reserve(Tree *tree, Py_ssize_t n, Py_ssize_t n_classes) noexcept nogil:
    """Reserve memory for n nodes; return -1 if out of memory."""
    if n <= tree.capacity:
        return 0
    return resize_tree(tree, max(n, tree.capacity + tree.capacity // 4 + 2), n_classes)


cdef inline int shrink(Tree *tree, Py_ssize_t n_classes) noexcept nogil:
    """Free the unused capacity of a tree; return -1 if out of memory."""
    return resize_tree(tree, tree.n, n_classes) or pack(&tree.counts, sizeof(double), tree.runs, tree.n, 0)


cdef inline void free_tree(Tree *tree) noexcept nogil:
    free(tree.nodes)
    free(tree.slots)
    free(tree.runs)
    free(tree.parents)
    free(tree.priors)
    free_runs(&tree.counts)
    tree.nodes = NULL
    tree.parents = tree.slots = NULL
    tree.runs = NULL
    tree.priors = NULL
    tree.n = tree.capacity = 0


cdef inline double *counts_of(const Tree *tree, Py_ssize_t at) noexcept nogil:
    """Return the class weights in the run of a node."""
    return <double *> tree.counts.values + tree.runs[at].start


cdef inline int add_count(Tree *tree, Py_ssize_t at, Py_ssize_t label, double w) noexcept nogil:
    """Add the weight of a row to its class in a node; return -1 if out of memory."""
    cdef Py_ssize_t place = find_key(&tree.counts, tree.runs + at, <int32_t> label)
    if place < 0:
        place = insert_key(&tree.counts, sizeof(double), tree.runs, tree.n, at, <int32_t> label)
        if place < 0:
            return -1
    (<double *> tree.counts.values)[place] += w
    return 0


cdef inline int put_counts(Tree *tree, Py_ssize_t at, const double *counts, Py_ssize_t n_classes) noexcept nogil:
    """Set the class weights of a node without rows; return -1 if out of memory."""
    cdef Py_ssize_t n = 0
    cdef Py_ssize_t k
    for k in range(n_classes):
        n += counts[k] > 0.0
    if make_room(&tree.counts, sizeof(double), tree.runs, tree.n, n):
        return -1
    tree.runs[at].start = <int32_t> tree.counts.used
    tree.runs[at].n = <int32_t> n
    for k in range(n_classes):
        if counts[k] > 0.0:
            tree.counts.keys[tree.counts.used] = <int32_t> k
            (<double *> tree.counts.values)[tree.counts.used] = counts[k]
            tree.counts.used += 1
    tree.counts.live += n
    return 0


cdef inline double smoothed_of(
    const Tree *tree, Py_ssize_t at, Py_ssize_t n_classes, Py_ssize_t k, Py_ssize_t *place
) noexcept nogil:
    """Return the smoothed weight of a class in a node; ``place`` advances along the run as ``k`` does."""
    cdef double weight = SMOOTHING * tree.priors[pair_of(at) * n_classes + k]
    cdef const Run *run = tree.runs + at
    if place[0] < run.start + run.n and tree.counts.keys[place[0]] == k:
        weight += (<double *> tree.counts.values)[place[0]]
        place[0] += 1
    return weight


cdef inline double smooth(const Tree *tree, Py_ssize_t at, Py_ssize_t n_classes, double *weights) noexcept nogil:
    """Compute the smoothed weights of all classes in a node; return their sum."""
    cdef const float *priors = tree.priors + pair_of(at) * n_classes
    cdef const Run *run = tree.runs + at
    cdef double total = 0.0
    cdef Py_ssize_t k, j
    for k in range(n_classes):
        weights[k] = SMOOTHING * priors[k]
    for j in range(run.start, run.start + run.n):
        weights[tree.counts.keys[j]] += (<double *> tree.counts.values)[j]
    for k in range(n_classes):
        total += weights[k]
    return total


cdef inline void set_leaf(Tree *tree, int32_t at) noexcept nogil:
    """Turn a node into a leaf without rows."""
    tree.nodes[at].threshold = INFINITY
    tree.nodes[at].column = 0
    tree.nodes[at].left = at
    tree.nodes[at].missing = 0
    tree.slots[at] = -1
    tree.runs[at].start = tree.runs[at].n = 0


cdef inline void add_pair(Tree *tree, int32_t parent, Py_ssize_t n_classes) noexcept nogil:
    """Add two leaves without rows below a node; the arrays must have room for them."""
    cdef Py_ssize_t pair = pair_of(tree.n)
    cdef Py_ssize_t place = tree.runs[parent].start
    cdef double total = 0.0
    cdef double share
    cdef Py_ssize_t k
    for k in range(n_classes):
        total += smoothed_of(tree, parent, n_classes, k, &place)
    place = tree.runs[parent].start
    for k in range(n_classes):
        share = smoothed_of(tree, parent, n_classes, k, &place) / total
        tree.priors[pair * n_classes + k] = <float> max(share, LEAST_PRIOR)
    tree.parents[pair] = parent
    set_leaf(tree, <int32_t> tree.n)
    set_leaf(tree, <int32_t> tree.n + 1)
    tree.n += 2


cdef inline int make_root(Tree *tree, Py_ssize_t n_classes) noexcept nogil:
    """Create the root as a leaf; return -1 if out of memory."""
    cdef double share = 1.0 / n_classes
    cdef Py_ssize_t k
    tree.n = 0
    if reserve(tree, 1, n_classes):
        return -1
    for k in range(n_classes):
        tree.priors[k] = <float> max(share, LEAST_PRIOR)
    tree.parents[0] = -1
    set_leaf(tree, 0)
    tree.n = 1
    return 0


cdef inline int split(
    Tree *tree, int32_t at, int32_t column, float threshold, int32_t missing, Py_ssize_t n_classes
) noexcept nogil:
    """Split a leaf into two children; return -1 if out of memory."""
    if reserve(tree, tree.n + 2, n_classes):
        return -1
    tree.nodes[at].threshold = threshold
    tree.nodes[at].column = column
    tree.nodes[at].left = <int32_t> tree.n
    tree.nodes[at].missing = missing
    add_pair(tree, at, n_classes)
    return 0
