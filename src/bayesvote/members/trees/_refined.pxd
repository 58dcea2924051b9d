"""Members refined over the leaves of all trees: logistic regressions by AdaGrad, one for each rate."""

from libc.math cimport exp, log, sqrt
from libc.stdlib cimport calloc, free
from libc.string cimport memset

from bayesvote.members.trees._records cimport Records
from bayesvote.members.trees._tree cimport resize

cdef extern from "cuts.h" nogil:
    void fetch(const void *p)

cdef extern from *:
    """
    /* What a leaf is given to begin with: this share of the tree's log-odds. */
    #define FIRST_SHARE 2.0
    """
    const double FIRST_SHARE


# Values and sums of squared gradients of a tree's leaves, (capacity, 2, rates, outputs); a sum of 0: never visited.
cdef struct LeafValues:
    float *numbers
    Py_ssize_t capacity
    Py_ssize_t used


cdef struct Refined:
    Py_ssize_t n_trees
    Py_ssize_t n_classes
    Py_ssize_t n_outputs  # 1 for two classes, else one per class
    Py_ssize_t n_rates
    double *rates
    LeafValues *trees


cdef inline int keep_leaf(LeafValues *leaves, Py_ssize_t at, Py_ssize_t size) noexcept nogil:
    """Have room for a leaf of so many numbers; -1 without memory."""
    cdef Py_ssize_t capacity = max(<Py_ssize_t> 8, 2 * leaves.capacity)
    if at >= leaves.capacity:
        while capacity <= at:
            capacity *= 2
        if resize(<void **> &leaves.numbers, capacity * size * sizeof(float)):
            return -1
        memset(leaves.numbers + leaves.capacity * size, 0, (capacity - leaves.capacity) * size * sizeof(float))
        leaves.capacity = capacity
    leaves.used = max(leaves.used, at + 1)
    return 0


cdef inline float *numbers_of(
    const Refined *refined, const Records *records, Py_ssize_t r, Py_ssize_t i, const double *scores, float *spare
) noexcept nogil:
    """The values and sums of a row's leaf in a tree, NULL without memory.

    A leaf that is new starts from its parent, if that was visited, and its tree's odds; in the spare numbers, if given.
    """
    cdef LeafValues *leaves = refined.trees + i
    cdef Py_ssize_t c = refined.n_outputs
    cdef Py_ssize_t half = refined.n_rates * c
    cdef Py_ssize_t at = records.leaves[r * refined.n_trees + i]
    cdef Py_ssize_t parent = records.parents[r * refined.n_trees + i]
    cdef const float *priors = records.priors + (r * refined.n_trees + i) * refined.n_classes
    cdef float *numbers = spare
    cdef const float *above = NULL
    cdef double start
    cdef Py_ssize_t j, k, q
    if at < leaves.used and leaves.numbers[(2 * at + 1) * half] > 0.0:
        return leaves.numbers + 2 * at * half
    if spare == NULL:
        if keep_leaf(leaves, at, 2 * half):
            return NULL
        numbers = leaves.numbers + 2 * at * half
    if 0 <= parent < leaves.used and leaves.numbers[(2 * parent + 1) * half] > 0.0:
        above = leaves.numbers + 2 * parent * half
    for k in range(c):
        start = 2.0 * scores[i * c + k]
        if above != NULL:
            start -= log(priors[1] / <double> priors[0]) if c == 1 else log(<double> priors[k])
        start *= FIRST_SHARE / refined.n_trees
        for q in range(refined.n_rates):
            j = q * c + k
            numbers[j] = <float> ((above[j] if above != NULL else 0.0) + start)
            numbers[half + j] = 1.0
    return numbers


cdef inline void find_gradient(
    const Refined *refined, const double *total, Py_ssize_t y, double w, double *gradient
) noexcept nogil:
    """Gradient of a row's log-loss in the sums of its leaves' values."""
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
    """Correct the leaves of a row; those of a tree that was replaced after it are forgotten."""
    cdef Py_ssize_t m = refined.n_trees
    cdef Py_ssize_t half = refined.n_rates * refined.n_outputs
    cdef LeafValues *leaves
    cdef float *values
    cdef float *sums
    cdef Py_ssize_t i, j
    for i in range(m):
        leaves = refined.trees + i
        values = leaves.numbers + 2 * half * records.leaves[r * m + i]
        sums = values + half
        for j in range(half):
            sums[j] = <float> (sums[j] + gradient[j] * gradient[j])
            values[j] = <float> (values[j] - refined.rates[j // refined.n_outputs] * gradient[j] / sqrt(sums[j]))
        if records.renewed[r * m + i]:
            memset(leaves.numbers, 0, leaves.used * 2 * half * sizeof(float))
            leaves.used = 0


cdef inline int refine(
    const Refined *refined, const Records *records, const Py_ssize_t *y, const double *w, Py_ssize_t width, double *out
) noexcept nogil:
    """Score rows, and learn each after its scores if there are weights and its own is above 0; -1 without memory."""
    cdef Py_ssize_t m = refined.n_trees
    cdef Py_ssize_t c = refined.n_outputs
    cdef Py_ssize_t half = refined.n_rates * c
    cdef double *total = <double *> calloc(2 * half, sizeof(double))
    cdef float *spare = <float *> calloc(2 * half, sizeof(float))
    cdef int failed = total == NULL or spare == NULL
    cdef float *numbers
    cdef bint taught
    cdef Py_ssize_t r, i, j
    for r in range(records.n if not failed else 0):
        taught = w != NULL and w[r] > 0.0
        memset(total, 0, half * sizeof(double))
        for i in range(m if r + 1 < records.n else 0):
            fetch(refined.trees[i].numbers + 2 * half * records.leaves[(r + 1) * m + i])
        for i in range(m):
            numbers = numbers_of(refined, records, r, i, out + r * width, NULL if taught else spare)
            if numbers == NULL:
                failed = 1
                break
            for j in range(half):
                total[j] += numbers[j]
        if failed:
            break
        for j in range(half):
            out[r * width + m * c + j] = 0.5 * total[j]
        if taught:
            find_gradient(refined, total, y[r], w[r], total + half)
            step(refined, records, r, total + half)
    free(total)
    free(spare)
    return -1 if failed else 0
