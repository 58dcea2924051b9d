"""Growth of a tree from stored rows, a few nodes at a time."""

from libc.math cimport INFINITY
from libc.stdint cimport int32_t, int64_t, uint64_t
from libc.stdlib cimport free

from bayesvote.members.trees._kept cimport (
    IN_BLOCK, Kept, draw_below, draw_between, label_at, place_of, value_at, weight_at
)
from bayesvote.members.trees._tree cimport Tree, add_count, make_root, put_counts, resize, split

cdef extern from "cuts.h" nogil:
    enum:
        CUT_LANES
    bint extent(const float *x, Py_ssize_t n, float *least, float *largest)
    void weights_below(
        const float *x, float cut, const float *w, const float *w1, Py_ssize_t n, double *total, double *total1
    )

cdef enum:
    FEATURES = 16  # tests per node, on features that are not constant in it; random tests make trees different
    MOST_DRAWS = 32  # features drawn to find them, so that many constant features do not cost much time
    SAMPLE = 256  # rows of a node that the tests are compared on; bounds the time per node
    WORK = 4096  # values read per learned row; bounds the time of the slowest row
    NODE_WORK = 32  # fixed work of a node, in values
    REPLAY_WORK = 64  # work of counting one row, in values

# A tree that is not complete yet. The first four fields and the stored rows determine all others.
cdef struct Growth:
    int64_t begun  # rows learned when the growth began; 0 if the tree is not growing
    uint64_t seed
    Py_ssize_t n_columns
    int64_t n_rows
    uint64_t random
    Tree tree
    int32_t *places  # indices of the stored rows, grouped by node
    int32_t *edges  # (capacity, 2), range of each node in ``places``: first index, and end (exclusive)
    Py_ssize_t capacity
    Py_ssize_t next  # next node to process
    int64_t counted  # number of rows counted in the leaves


# Buffers to process one node.
cdef struct Buffers:
    Py_ssize_t n_classes
    Py_ssize_t n_rows
    Py_ssize_t n_lanes  # n_rows rounded up to whole SIMD vectors
    double weight
    double *counts  # (K,), class weights of all rows of a node
    double *total  # (K,), those of the sampled rows
    double *below  # (K,), those at or below a cut
    double *missing  # (K,), those of missing values
    const float *base[SAMPLE]  # values of each row
    Py_ssize_t places[SAMPLE]
    int32_t labels[SAMPLE]
    float x[SAMPLE]
    float w[SAMPLE]
    float w1[SAMPLE]  # weights of class 1; 0 for other rows


cdef struct Test:
    double gain
    int32_t column
    float threshold
    int32_t missing


cdef inline double gain_of(
    const double *below, double weight_below, const double *total, double weight, Py_ssize_t n_classes
) noexcept nogil:
    """Return the decrease in Gini impurity, up to a factor that is the same for all tests of a node."""
    cdef double above = weight - weight_below
    cdef double gain = 0.0
    cdef double difference
    cdef Py_ssize_t k
    if not (weight_below > 0.0 and above > 0.0):
        return 0.0
    for k in range(n_classes == 2, n_classes):  # with two classes, both terms are equal
        difference = below[k] * weight - total[k] * weight_below
        gain += difference * difference
    return gain / (weight_below * above)


cdef inline void sum_below(Buffers *buffers, float cut, double *weight_below) noexcept nogil:
    cdef Py_ssize_t q, k
    if buffers.n_classes == 2:
        weights_below(buffers.x, cut, buffers.w, buffers.w1, buffers.n_lanes, weight_below, buffers.below + 1)
        buffers.below[0] = weight_below[0] - buffers.below[1]
        return
    for k in range(buffers.n_classes):
        buffers.below[k] = 0.0
    for q in range(buffers.n_rows):
        buffers.below[buffers.labels[q]] += buffers.w[q] if buffers.x[q] <= cut else 0.0
    weight_below[0] = 0.0
    for k in range(buffers.n_classes):
        weight_below[0] += buffers.below[k]


cdef inline void consider(Buffers *buffers, int32_t column, float cut, bint missing, Test *best) noexcept nogil:
    """Keep a test if it is better than the best so far, with missing values on the better side."""
    cdef double weight_below, gain, weight_missing
    cdef Py_ssize_t q, k
    cdef int32_t side
    sum_below(buffers, cut, &weight_below)
    # Without missing values in this node, later ones go to the side with more rows.
    side = 2.0 * weight_below < buffers.weight
    gain = gain_of(buffers.below, weight_below, buffers.total, buffers.weight, buffers.n_classes)
    if missing:
        side = 1
        if gain > best.gain:
            best.gain, best.column, best.threshold, best.missing = gain, column, cut, side
        weight_missing = 0.0
        for k in range(buffers.n_classes):
            buffers.missing[k] = 0.0
        for q in range(buffers.n_rows):
            if buffers.x[q] != buffers.x[q]:
                buffers.missing[buffers.labels[q]] += buffers.w[q]
        for k in range(buffers.n_classes):
            buffers.below[k] += buffers.missing[k]
            weight_missing += buffers.missing[k]
        side = 0
        gain = gain_of(buffers.below, weight_below + weight_missing, buffers.total, buffers.weight, buffers.n_classes)
    if gain > best.gain:
        best.gain, best.column, best.threshold, best.missing = gain, column, cut, side


cdef inline float draw_cut(const Buffers *buffers, float least, float largest, uint64_t *random) noexcept nogil:
    """Draw a cut between the values of two random rows; if they are equal three times, between the extremes."""
    cdef float a = buffers.x[draw_below(random, buffers.n_rows)]
    cdef float b
    cdef int turn
    for turn in range(3):
        b = buffers.x[draw_below(random, buffers.n_rows)]
        if a < b:
            return draw_between(random, a, b)
        if b < a:
            return draw_between(random, b, a)
    return draw_between(random, least, largest)


cdef inline void load_rows(Buffers *buffers, const Kept *kept, const int32_t *places, Py_ssize_t n) noexcept nogil:
    """Copy the sampled rows of a node into the buffers."""
    cdef Py_ssize_t q, k, place
    buffers.n_rows = n
    buffers.n_lanes = (n + CUT_LANES - 1) // CUT_LANES * CUT_LANES
    for k in range(buffers.n_classes):
        buffers.total[k] = 0.0
    for q in range(n):
        place = places[q]
        buffers.places[q] = place
        buffers.base[q] = kept.blocks[place // IN_BLOCK].rows[place % IN_BLOCK]
        buffers.labels[q] = label_at(kept, place)
        buffers.w[q] = weight_at(kept, place)
        buffers.w1[q] = buffers.w[q] if buffers.labels[q] == 1 else 0.0
        buffers.total[buffers.labels[q]] += buffers.w[q]
    for q in range(n, buffers.n_lanes):
        buffers.w[q] = buffers.w1[q] = 0.0
    buffers.weight = 0.0
    for k in range(buffers.n_classes):
        buffers.weight += buffers.total[k]


cdef inline Py_ssize_t find_test(Buffers *buffers, const Kept *kept, Growth *growth, Test *best) noexcept nogil:
    """Find the best of FEATURES random tests; return the number of values read."""
    cdef Py_ssize_t n_found = 0
    cdef Py_ssize_t work = 0
    cdef Py_ssize_t q, column
    cdef float least, largest, cut
    cdef bint missing
    cdef int turn
    for turn in range(MOST_DRAWS):
        column = draw_below(&growth.random, growth.n_columns)
        if column < kept.narrowest:
            for q in range(buffers.n_rows):
                buffers.x[q] = buffers.base[q][column]
        else:
            for q in range(buffers.n_rows):
                buffers.x[q] = value_at(kept, buffers.places[q], column)
        for q in range(buffers.n_rows, buffers.n_lanes):
            buffers.x[q] = buffers.x[0]
        work += buffers.n_rows
        missing = extent(buffers.x, buffers.n_lanes, &least, &largest)
        if least < largest:
            cut = draw_cut(buffers, least, largest, &growth.random)
        elif missing and least == largest:
            cut = least  # the test separates missing values from the others
        else:
            continue
        consider(buffers, <int32_t> column, cut, missing, best)
        n_found += 1
        if n_found == FEATURES:
            break
    return work


cdef inline Py_ssize_t partition(
    const Kept *kept, int32_t *places, Py_ssize_t first, Py_ssize_t last, const Test *test
) noexcept nogil:
    """Partition the rows of a node, those that go left first; return the index of the first one that goes right."""
    cdef float value
    cdef int32_t place
    while first < last:
        place = places[first]
        value = value_at(kept, place, test.column)
        if value <= test.threshold or (value != value and test.missing == 0):
            first += 1
        else:
            last -= 1
            places[first], places[last] = places[last], place
    return first


cdef inline Py_ssize_t process_node(
    Growth *growth, const Kept *kept, Buffers *buffers, Py_ssize_t max_nodes, bint late
) noexcept nogil:
    """Count the rows of the next node and split it on the best test, if there is one.

    Return the work done, or -1 if out of memory.
    """
    cdef Tree *tree = &growth.tree
    cdef Py_ssize_t n_classes = buffers.n_classes
    cdef int32_t at = <int32_t> growth.next
    cdef Py_ssize_t first = growth.edges[2 * at]
    cdef Py_ssize_t last = growth.edges[2 * at + 1]
    cdef Py_ssize_t work = NODE_WORK + last - first
    cdef Py_ssize_t n = last - first
    cdef Py_ssize_t k, q, other, middle
    cdef Test best
    growth.next += 1
    for k in range(n_classes):
        buffers.counts[k] = 0.0
    for q in range(first, last):
        buffers.counts[label_at(kept, growth.places[q])] += weight_at(kept, growth.places[q])
    if put_counts(tree, at, buffers.counts, n_classes):
        return -1
    if late or n < 2 or growth.n_columns == 0 or tree.n + 2 > max_nodes or tree.runs[at].n < 2:
        return work
    if n > SAMPLE:
        n = SAMPLE
        for q in range(first, first + n):
            other = q + draw_below(&growth.random, last - q)
            growth.places[q], growth.places[other] = growth.places[other], growth.places[q]
    load_rows(buffers, kept, growth.places + first, n)
    best.gain = 0.0
    best.column = -1
    work += find_test(buffers, kept, growth, &best)
    if best.column < 0:
        return work
    if split(tree, at, best.column, best.threshold, best.missing, n_classes):
        return -1
    if growth.capacity < tree.capacity:
        if resize(<void **> &growth.edges, tree.capacity * 2 * sizeof(int32_t)):
            return -1
        growth.capacity = tree.capacity
    middle = partition(kept, growth.places, first, last, &best)
    growth.edges[2 * (tree.n - 2)] = <int32_t> first
    growth.edges[2 * (tree.n - 2) + 1] = growth.edges[2 * (tree.n - 1)] = <int32_t> middle
    growth.edges[2 * (tree.n - 1) + 1] = <int32_t> last
    return work


cdef inline int replay(Growth *growth, const Kept *kept) noexcept nogil:
    """Count a row that arrived after the growth began; return -1 if out of memory."""
    cdef Py_ssize_t place = place_of(kept, growth.counted)
    cdef int32_t at = 0
    cdef float value
    while growth.tree.nodes[at].left != at:
        value = value_at(kept, place, growth.tree.nodes[at].column)
        if value != value:
            at = growth.tree.nodes[at].left + growth.tree.nodes[at].missing
        else:
            at = growth.tree.nodes[at].left + (value > growth.tree.nodes[at].threshold)
    growth.counted += 1
    return add_count(&growth.tree, at, label_at(kept, place), weight_at(kept, place))


cdef inline void end_growth(Growth *growth) noexcept nogil:
    """End a growth; its tree is kept."""
    free(growth.places)
    free(growth.edges)
    growth.places = growth.edges = NULL
    growth.capacity = 0
    growth.begun = 0


cdef inline int begin(Growth *growth, const Kept *kept, Py_ssize_t n_classes) noexcept nogil:
    """Begin to grow a tree from the ``n_rows`` rows before ``begun``; return -1 if out of memory."""
    cdef Py_ssize_t q
    growth.random = growth.seed
    growth.next = 0
    growth.counted = growth.begun
    if make_root(&growth.tree, n_classes) or resize(<void **> &growth.places, growth.n_rows * sizeof(int32_t)):
        return -1
    if resize(<void **> &growth.edges, growth.tree.capacity * 2 * sizeof(int32_t)):
        return -1
    growth.capacity = growth.tree.capacity
    for q in range(growth.n_rows):
        growth.places[q] = <int32_t> place_of(kept, growth.begun - growth.n_rows + q)
    growth.edges[0] = 0
    growth.edges[1] = <int32_t> growth.n_rows
    return 0


cdef inline int advance_growth(
    Growth *growth, const Kept *kept, int64_t seen, Buffers *buffers, Py_ssize_t max_nodes, int64_t longest
) noexcept nogil:
    """Do the work of one learned row.

    Return 1 if the tree is complete and has counted all rows, 0 if not, and -1 if out of memory.
    """
    cdef Py_ssize_t work = 0
    cdef Py_ssize_t done
    cdef bint late = seen - growth.begun >= longest
    while growth.next < growth.tree.n and (work < WORK or late):
        done = process_node(growth, kept, buffers, max_nodes, late)
        if done < 0:
            return -1
        work += done
    while growth.next == growth.tree.n and growth.counted < seen and work < WORK:
        if replay(growth, kept):
            return -1
        work += REPLAY_WORK
    return growth.next == growth.tree.n and growth.counted == seen
