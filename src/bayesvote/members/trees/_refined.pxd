"""Refined members: logistic regressions on the leaves of all trees, trained by AdaGrad, one per learning rate.

AdaGrad has one sum of squared gradients per leaf and rate, over all classes. One per class would double the memory and
gives the same errors.
"""

from libc.math cimport exp, log, sqrt
from libc.stdint cimport int32_t
from libc.stdlib cimport calloc, free
from libc.string cimport memset

from bayesvote.members.trees._records cimport Records
from bayesvote.members.trees._tree cimport resize

cdef extern from "cuts.h" nogil:
    void fetch(const void *p)

cdef extern from *:
    """
    /* A new leaf starts at this multiple of the mean log-odds of the trees. */
    #define FIRST_SHARE 2.0
    """
    const double FIRST_SHARE


# Refined numbers of the visited leaves of a tree: values (rates, outputs), then sums of squared gradients (rates).
# A leaf that is split keeps its numbers until both children were visited, because the children start from them.
cdef struct LeafValues:
    Py_ssize_t n_nodes
    Py_ssize_t node_capacity
    int32_t *places  # index of each node's numbers, or -1
    Py_ssize_t n
    Py_ssize_t capacity
    float *numbers


cdef struct Refined:
    Py_ssize_t n_trees
    Py_ssize_t n_classes
    Py_ssize_t n_outputs  # 1 for two classes, else one per class
    Py_ssize_t n_rates
    Py_ssize_t n_values  # values of a leaf: rates times outputs
    Py_ssize_t n_numbers  # values and sums of a leaf
    double *rates
    LeafValues *trees


cdef inline int32_t place_of_leaf(const LeafValues *leaves, Py_ssize_t at) noexcept nogil:
    """Return the index of a node's numbers, or -1 if it has none."""
    return leaves.places[at] if 0 <= at < leaves.n_nodes else -1


cdef inline int reserve_leaves(LeafValues *leaves, Py_ssize_t n_nodes, Py_ssize_t n, Py_ssize_t size) noexcept nogil:
    """Reserve memory for nodes, and for n leaves of ``size`` numbers each; return -1 if out of memory."""
    cdef Py_ssize_t capacity = max(n_nodes, leaves.node_capacity + leaves.node_capacity // 4 + 8)
    if n_nodes > leaves.node_capacity:
        if resize(<void **> &leaves.places, capacity * sizeof(int32_t)):
            return -1
        leaves.node_capacity = capacity
    capacity = max(n, leaves.capacity + leaves.capacity // 4 + 8)
    if n > leaves.capacity:
        if resize(<void **> &leaves.numbers, capacity * size * sizeof(float)):
            return -1
        leaves.capacity = capacity
    return 0


cdef inline int shrink_leaves(LeafValues *leaves, Py_ssize_t size) noexcept nogil:
    """Free unused capacity; return -1 if out of memory."""
    if leaves.n_nodes < leaves.node_capacity and leaves.n_nodes > 0:
        if resize(<void **> &leaves.places, leaves.n_nodes * sizeof(int32_t)):
            return -1
        leaves.node_capacity = leaves.n_nodes
    if leaves.n < leaves.capacity and leaves.n > 0:
        if resize(<void **> &leaves.numbers, leaves.n * size * sizeof(float)):
            return -1
        leaves.capacity = leaves.n
    return 0


cdef inline float *visit(LeafValues *leaves, Py_ssize_t at, Py_ssize_t parent, Py_ssize_t size) noexcept nogil:
    """Return memory for the numbers of a leaf that is visited for the first time, or NULL if out of memory.

    If the other child of its parent was visited before, the parent's numbers are no longer needed and are overwritten.
    """
    cdef Py_ssize_t sibling = ((at - 1) ^ 1) + 1
    cdef int32_t place = place_of_leaf(leaves, parent)
    if reserve_leaves(leaves, at + 1, leaves.n + 1, size):
        return NULL
    while leaves.n_nodes <= at:
        leaves.places[leaves.n_nodes] = -1
        leaves.n_nodes += 1
    if place >= 0 and place_of_leaf(leaves, sibling) >= 0:
        leaves.places[parent] = -1
    else:
        place = <int32_t> leaves.n
        leaves.n += 1
    leaves.places[at] = place
    return leaves.numbers + place * size


cdef inline void free_leaves(LeafValues *leaves) noexcept nogil:
    free(leaves.places)
    free(leaves.numbers)
    memset(leaves, 0, sizeof(LeafValues))


cdef inline float *numbers_of(
    const Refined *refined, const Records *records, Py_ssize_t r, Py_ssize_t i, const double *scores, float *spare
) noexcept nogil:
    """Return the values and sums of a row's leaf in a tree, or NULL if out of memory.

    A new leaf starts from its parent, if that has numbers, and from the odds of its tree. With ``spare``, the numbers
    of a new leaf are written there, and nothing else changes.
    """
    cdef LeafValues *leaves = refined.trees + i
    cdef Py_ssize_t c = refined.n_outputs
    cdef Py_ssize_t at = records.leaves[r * refined.n_trees + i]
    cdef Py_ssize_t parent = records.parents[r * refined.n_trees + i]
    cdef const float *priors = records.priors + (r * refined.n_trees + i) * refined.n_classes
    cdef float *numbers = spare
    cdef const float *above = NULL
    cdef int32_t place = place_of_leaf(leaves, at)
    cdef double start
    cdef Py_ssize_t j, k, q
    if place >= 0:
        return leaves.numbers + place * refined.n_numbers
    place = place_of_leaf(leaves, parent)
    if spare == NULL:
        numbers = visit(leaves, at, parent, refined.n_numbers)
        if numbers == NULL:
            return NULL
    if place >= 0:
        above = leaves.numbers + place * refined.n_numbers
    for k in range(c):
        start = 2.0 * scores[i * c + k]
        if above != NULL:
            start -= log(priors[1] / <double> priors[0]) if c == 1 else log(<double> priors[k])
        start *= FIRST_SHARE / refined.n_trees
        for q in range(refined.n_rates):
            j = q * c + k
            numbers[j] = <float> ((above[j] if above != NULL else 0.0) + start)
    for q in range(refined.n_rates):
        numbers[refined.n_values + q] = 1.0
    return numbers


cdef inline void find_gradient(
    const Refined *refined, const double *total, Py_ssize_t y, double w, double *gradient
) noexcept nogil:
    """Compute the gradient of a row's log-loss with respect to the sums of its leaves' values."""
    cdef Py_ssize_t c = refined.n_outputs
    cdef Py_ssize_t q, k
    cdef double top, norm
    for q in range(refined.n_rates):
        if c == 1:
            gradient[q] = w * (1.0 / (1.0 + exp(-total[q])) - y)
            continue
        top = total[q * c]
        for k in range(1, c):
            top = max(top, total[q * c + k])
        norm = 0.0
        for k in range(c):
            gradient[q * c + k] = exp(total[q * c + k] - top)
            norm += gradient[q * c + k]
        for k in range(c):
            gradient[q * c + k] = w * (gradient[q * c + k] / norm - (k == y))


cdef inline void step(
    const Refined *refined, const Records *records, Py_ssize_t r, const double *gradient
) noexcept nogil:
    """Update the leaves of a row by a gradient step; clear the leaves of trees that were replaced after the row."""
    cdef Py_ssize_t m = refined.n_trees
    cdef Py_ssize_t c = refined.n_outputs
    cdef LeafValues *leaves
    cdef float *values
    cdef float *sums
    cdef double squares, root
    cdef Py_ssize_t i, j, q
    for i in range(m):
        leaves = refined.trees + i
        values = leaves.numbers + refined.n_numbers * leaves.places[records.leaves[r * m + i]]
        sums = values + refined.n_values
        for q in range(refined.n_rates):
            squares = 0.0
            for j in range(q * c, (q + 1) * c):
                squares += gradient[j] * gradient[j]
            sums[q] = <float> (sums[q] + squares)
            root = sqrt(sums[q])
            for j in range(q * c, (q + 1) * c):
                values[j] = <float> (values[j] - refined.rates[q] * gradient[j] / root)
        if records.replaced[r * m + i]:
            free_leaves(leaves)


cdef inline int refine(
    const Refined *refined, const Records *records, const Py_ssize_t *y, const double *w, Py_ssize_t width, double *out
) noexcept nogil:
    """Score rows, and learn each row of positive weight after scoring it; without weights, only score.

    Return -1 if out of memory.
    """
    cdef Py_ssize_t m = refined.n_trees
    cdef Py_ssize_t c = refined.n_outputs
    cdef Py_ssize_t n_values = refined.n_values
    cdef double *total = <double *> calloc(2 * n_values, sizeof(double))
    cdef float *spare = <float *> calloc(refined.n_numbers, sizeof(float))
    cdef int failed = total == NULL or spare == NULL
    cdef float *numbers
    cdef int32_t place
    cdef bint learns
    cdef Py_ssize_t r, i, j
    for r in range(records.n if not failed else 0):
        learns = w != NULL and w[r] > 0.0
        memset(total, 0, n_values * sizeof(double))
        for i in range(m if r + 2 < records.n else 0):
            if records.leaves[(r + 2) * m + i] < refined.trees[i].n_nodes:
                fetch(refined.trees[i].places + records.leaves[(r + 2) * m + i])
        for i in range(m if r + 1 < records.n else 0):
            place = place_of_leaf(refined.trees + i, records.leaves[(r + 1) * m + i])
            if place >= 0:
                fetch(refined.trees[i].numbers + refined.n_numbers * place)
        for i in range(m):
            numbers = numbers_of(refined, records, r, i, out + r * width, NULL if learns else spare)
            if numbers == NULL:
                failed = 1
                break
            for j in range(n_values):
                total[j] += numbers[j]
        if failed:
            break
        for j in range(n_values):
            out[r * width + m * c + j] = 0.5 * total[j]
        if learns:
            find_gradient(refined, total, y[r], w[r], total + n_values)
            step(refined, records, r, total + n_values)
    free(total)
    free(spare)
    return -1 if failed else 0
