"""A tree: nodes in arrays that double, children after their parents and side by side."""

from libc.math cimport INFINITY
from libc.stdint cimport int32_t
from libc.stdlib cimport free, realloc

cdef extern from *:
    """
    /* Weight of what the parent says about the classes, beside the rows of a leaf. */
    #define SMOOTHING 0.3
    /* No class is less likely than this to those who come after: its logarithm is taken. */
    #define LEAST_PRIOR 1e-12
    """
    const double SMOOTHING
    const double LEAST_PRIOR


# "Is the column at most the threshold?" leads to ``left``, or else ``left + 1``; a missing value to ``left + missing``.
# A leaf leads to itself, so that the way down needs no branch.
cdef struct Node:
    float threshold
    int32_t column
    int32_t left
    int32_t missing


cdef struct Tree:
    Py_ssize_t n
    Py_ssize_t capacity
    Node *nodes
    int32_t *parents
    int32_t *slots  # of the leaf's candidates for a split, or -1
    double *counts  # (capacity, K), weight of the rows; of an inner node, when it was split
    float *priors  # (capacity, K), probabilities that the parent gave the classes when it was split


cdef inline bint is_leaf(const Node *nodes, int32_t at) noexcept nogil:
    return nodes[at].left == at


cdef inline int32_t next_node(const Node *nodes, const float *x, int32_t at) noexcept nogil:
    cdef const Node *node = nodes + at
    cdef float value = x[node.column]
    return node.left + (node.missing if value != value else <int32_t> (value > node.threshold))


cdef inline int32_t descend(const Node *nodes, const float *x, int32_t at) noexcept nogil:
    """The leaf below a node."""
    while nodes[at].left != at:
        at = next_node(nodes, x, at)
    return at


cdef inline int resize(void **array, Py_ssize_t bytes) noexcept nogil:
    cdef void *moved = realloc(array[0], bytes)
    if moved == NULL:
        return -1
    array[0] = moved
    return 0


cdef inline int reserve(Tree *tree, Py_ssize_t n, Py_ssize_t n_classes) noexcept nogil:
    """Have room for n nodes; -1 without memory."""
    cdef Py_ssize_t capacity = max(<Py_ssize_t> 8, 2 * tree.capacity)
    if n <= tree.capacity:
        return 0
    while capacity < n:
        capacity *= 2
    if (
        resize(<void **> &tree.nodes, capacity * sizeof(Node))
        or resize(<void **> &tree.parents, capacity * sizeof(int32_t))
        or resize(<void **> &tree.slots, capacity * sizeof(int32_t))
        or resize(<void **> &tree.counts, capacity * n_classes * sizeof(double))
        or resize(<void **> &tree.priors, capacity * n_classes * sizeof(float))
    ):
        return -1
    tree.capacity = capacity
    return 0


cdef inline void free_tree(Tree *tree) noexcept nogil:
    free(tree.nodes)
    free(tree.parents)
    free(tree.slots)
    free(tree.counts)
    free(tree.priors)
    tree.nodes = NULL
    tree.parents = tree.slots = NULL
    tree.counts = NULL
    tree.priors = NULL
    tree.n = tree.capacity = 0


cdef inline void add_leaf(Tree *tree, int32_t parent, Py_ssize_t n_classes) noexcept nogil:
    """Add a leaf without rows, for which there is room."""
    cdef int32_t at = <int32_t> tree.n
    cdef double total = 0.0
    cdef double share
    cdef Py_ssize_t k
    tree.nodes[at].threshold = INFINITY
    tree.nodes[at].column = 0
    tree.nodes[at].left = at
    tree.nodes[at].missing = 0
    tree.parents[at] = parent
    tree.slots[at] = -1
    if parent >= 0:
        for k in range(n_classes):
            total += tree.counts[parent * n_classes + k] + SMOOTHING * tree.priors[parent * n_classes + k]
    for k in range(n_classes):
        tree.counts[at * n_classes + k] = 0.0
        if parent >= 0:
            share = tree.counts[parent * n_classes + k] + SMOOTHING * tree.priors[parent * n_classes + k]
            share /= total
        else:
            share = 1.0 / n_classes
        tree.priors[at * n_classes + k] = <float> max(share, LEAST_PRIOR)
    tree.n += 1


cdef inline int plant(Tree *tree, Py_ssize_t n_classes) noexcept nogil:
    """Start with a root that is a leaf; -1 without memory."""
    tree.n = 0
    if reserve(tree, 1, n_classes):
        return -1
    add_leaf(tree, -1, n_classes)
    return 0


cdef inline int split(
    Tree *tree, int32_t at, int32_t column, float threshold, int32_t missing, Py_ssize_t n_classes
) noexcept nogil:
    """Give a leaf two children; -1 without memory."""
    if reserve(tree, tree.n + 2, n_classes):
        return -1
    tree.nodes[at].threshold = threshold
    tree.nodes[at].column = column
    tree.nodes[at].left = <int32_t> tree.n
    tree.nodes[at].missing = missing
    add_leaf(tree, at, n_classes)
    add_leaf(tree, at, n_classes)
    return 0


cdef inline bint several_classes(const double *counts, Py_ssize_t n_classes) noexcept nogil:
    cdef Py_ssize_t k
    cdef Py_ssize_t found = 0
    for k in range(n_classes):
        found += counts[k] > 0.0
    return found > 1
