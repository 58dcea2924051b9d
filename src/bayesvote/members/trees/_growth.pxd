"""Growing a tree from kept rows, a few nodes at a time."""

from libc.math cimport INFINITY
from libc.stdint cimport int32_t, int64_t, uint64_t
from libc.stdlib cimport free

from bayesvote.members.trees._kept cimport (
    IN_BLOCK, Kept, draw_below, draw_between, label_at, place_of, value_at, weight_at
)
from bayesvote.members.trees._tree cimport Tree, add_count, plant, put_counts, resize, split

cdef extern from "cuts.h" nogil:
    enum:
        CUT_LANES
    bint extent(const float *x, Py_ssize_t n, float *least, float *largest)
    void weights_below(
        const float *x, float cut, const float *w, const float *w1, Py_ssize_t n, double *total, double *total1
    )

cdef enum:
    FEATURES = 16  # that are not constant in a node, to choose its question from
    MOST_DRAWS = 32  # of features, until there are so many
    SAMPLE = 256  # rows that a question is chosen by
    WORK = 4096  # values looked at before the next row has its turn
    NODE_WORK = 32  # beside its values
    REPLAY_WORK = 64  # of one row

# A tree that is not complete yet. All of it follows from the first four and from the rows kept.
cdef struct Growth:
    int64_t begun  # rows seen when it began; 0 if none is under way
    uint64_t seed
    Py_ssize_t n_columns
    int64_t n_rows
    uint64_t random
    Tree tree
    int32_t *places  # of the rows kept, those of a node side by side
    int32_t *edges  # (capacity, 2), the places of each node
    Py_ssize_t capacity
    Py_ssize_t next  # node to look at
    int64_t counted  # rows in the leaves


# Where one node is looked at.
cdef struct Bench:
    Py_ssize_t n_classes
    Py_ssize_t n_rows
    Py_ssize_t n_lanes  # rows up to whole lanes
    double weight
    double *counts  # (K,), of all rows of a node
    double *total  # (K,)
    double *below  # (K,)
    double *missing  # (K,)
    const float *base[SAMPLE]  # of each row
    Py_ssize_t places[SAMPLE]
    int32_t labels[SAMPLE]
    float x[SAMPLE]
    float w[SAMPLE]
    float w1[SAMPLE]  # weights of class 1, the others being 0


cdef struct Question:
    double gain
    int32_t column
    float threshold
    int32_t missing


cdef inline double gain_of(
    const double *below, double weight_below, const double *total, double weight, Py_ssize_t n_classes
) noexcept nogil:
    """Gain in Gini impurity, up to a factor that a node's questions share."""
    cdef double above = weight - weight_below
    cdef double gain = 0.0
    cdef double difference
    cdef Py_ssize_t k
    if not (weight_below > 0.0 and above > 0.0):
        return 0.0
    for k in range(n_classes == 2, n_classes):  # of two classes, both have the same
        difference = below[k] * weight - total[k] * weight_below
        gain += difference * difference
    return gain / (weight_below * above)


cdef inline void sum_below(Bench *bench, float cut, double *weight_below) noexcept nogil:
    cdef Py_ssize_t q, k
    if bench.n_classes == 2:
        weights_below(bench.x, cut, bench.w, bench.w1, bench.n_lanes, weight_below, bench.below + 1)
        bench.below[0] = weight_below[0] - bench.below[1]
        return
    for k in range(bench.n_classes):
        bench.below[k] = 0.0
    for q in range(bench.n_rows):
        bench.below[bench.labels[q]] += bench.w[q] if bench.x[q] <= cut else 0.0
    weight_below[0] = 0.0
    for k in range(bench.n_classes):
        weight_below[0] += bench.below[k]


cdef inline void consider(Bench *bench, int32_t column, float cut, bint missing, Question *best) noexcept nogil:
    """Take a question if it is better than the best so far, with missing values on the better side."""
    cdef double weight_below, gain, gone
    cdef Py_ssize_t q, k
    cdef int32_t side
    sum_below(bench, cut, &weight_below)
    # Where no value is missing, one that is later goes with the many.
    side = 2.0 * weight_below < bench.weight
    gain = gain_of(bench.below, weight_below, bench.total, bench.weight, bench.n_classes)
    if missing:
        side = 1
        if gain > best.gain:
            best.gain, best.column, best.threshold, best.missing = gain, column, cut, side
        gone = 0.0
        for k in range(bench.n_classes):
            bench.missing[k] = 0.0
        for q in range(bench.n_rows):
            if bench.x[q] != bench.x[q]:
                bench.missing[bench.labels[q]] += bench.w[q]
        for k in range(bench.n_classes):
            bench.below[k] += bench.missing[k]
            gone += bench.missing[k]
        side = 0
        gain = gain_of(bench.below, weight_below + gone, bench.total, bench.weight, bench.n_classes)
    if gain > best.gain:
        best.gain, best.column, best.threshold, best.missing = gain, column, cut, side


cdef inline float some_cut(const Bench *bench, float least, float largest, uint64_t *random) noexcept nogil:
    """A cut between the values of two random rows that differ, or between the outermost ones."""
    cdef float a = bench.x[draw_below(random, bench.n_rows)]
    cdef float b
    cdef int turn
    for turn in range(3):
        b = bench.x[draw_below(random, bench.n_rows)]
        if a < b:
            return draw_between(random, a, b)
        if b < a:
            return draw_between(random, b, a)
    return draw_between(random, least, largest)


cdef inline void lay_out(Bench *bench, const Kept *kept, const int32_t *places, Py_ssize_t n) noexcept nogil:
    """Put the rows of a node on the bench."""
    cdef Py_ssize_t q, k, place
    bench.n_rows = n
    bench.n_lanes = (n + CUT_LANES - 1) // CUT_LANES * CUT_LANES
    for k in range(bench.n_classes):
        bench.total[k] = 0.0
    for q in range(n):
        place = places[q]
        bench.places[q] = place
        bench.base[q] = kept.blocks[place // IN_BLOCK].rows[place % IN_BLOCK]
        bench.labels[q] = label_at(kept, place)
        bench.w[q] = weight_at(kept, place)
        bench.w1[q] = bench.w[q] if bench.labels[q] == 1 else 0.0
        bench.total[bench.labels[q]] += bench.w[q]
    for q in range(n, bench.n_lanes):
        bench.w[q] = bench.w1[q] = 0.0
    bench.weight = 0.0
    for k in range(bench.n_classes):
        bench.weight += bench.total[k]


cdef inline Py_ssize_t ask(Bench *bench, const Kept *kept, Growth *growth, Question *best) noexcept nogil:
    """Find the best of some random questions; return how many values were looked at."""
    cdef Py_ssize_t n_found = 0
    cdef Py_ssize_t work = 0
    cdef Py_ssize_t q, column
    cdef float least, largest, cut
    cdef bint missing
    cdef int turn
    for turn in range(MOST_DRAWS):
        column = draw_below(&growth.random, growth.n_columns)
        if column < kept.narrowest:
            for q in range(bench.n_rows):
                bench.x[q] = bench.base[q][column]
        else:
            for q in range(bench.n_rows):
                bench.x[q] = value_at(kept, bench.places[q], column)
        for q in range(bench.n_rows, bench.n_lanes):
            bench.x[q] = bench.x[0]
        work += bench.n_rows
        missing = extent(bench.x, bench.n_lanes, &least, &largest)
        if least < largest:
            cut = some_cut(bench, least, largest, &growth.random)
        elif missing and least == largest:
            cut = least  # whether there is a value at all
        else:
            continue
        consider(bench, <int32_t> column, cut, missing, best)
        n_found += 1
        if n_found == FEATURES:
            break
    return work


cdef inline Py_ssize_t part(
    const Kept *kept, int32_t *places, Py_ssize_t first, Py_ssize_t last, const Question *question
) noexcept nogil:
    """Put the rows that go left before the others; return where the others begin."""
    cdef float value
    cdef int32_t place
    while first < last:
        place = places[first]
        value = value_at(kept, place, question.column)
        if value <= question.threshold or (value != value and question.missing == 0):
            first += 1
        else:
            last -= 1
            places[first], places[last] = places[last], place
    return first


cdef inline Py_ssize_t look_at(
    Growth *growth, const Kept *kept, Bench *bench, Py_ssize_t max_nodes, bint late
) noexcept nogil:
    """Count the rows of the next node and split it if it is worth it; return the work done, -1 without memory."""
    cdef Tree *tree = &growth.tree
    cdef Py_ssize_t n_classes = bench.n_classes
    cdef int32_t at = <int32_t> growth.next
    cdef Py_ssize_t first = growth.edges[2 * at]
    cdef Py_ssize_t last = growth.edges[2 * at + 1]
    cdef Py_ssize_t work = NODE_WORK + last - first
    cdef Py_ssize_t n = last - first
    cdef Py_ssize_t k, q, other, middle
    cdef Question best
    growth.next += 1
    for k in range(n_classes):
        bench.counts[k] = 0.0
    for q in range(first, last):
        bench.counts[label_at(kept, growth.places[q])] += weight_at(kept, growth.places[q])
    if put_counts(tree, at, bench.counts, n_classes):
        return -1
    if late or n < 2 or growth.n_columns == 0 or tree.n + 2 > max_nodes or tree.runs[at].n < 2:
        return work
    if n > SAMPLE:
        n = SAMPLE
        for q in range(first, first + n):
            other = q + draw_below(&growth.random, last - q)
            growth.places[q], growth.places[other] = growth.places[other], growth.places[q]
    lay_out(bench, kept, growth.places + first, n)
    best.gain = 0.0
    best.column = -1
    work += ask(bench, kept, growth, &best)
    if best.column < 0:
        return work
    if split(tree, at, best.column, best.threshold, best.missing, n_classes):
        return -1
    if growth.capacity < tree.capacity:
        if resize(<void **> &growth.edges, tree.capacity * 2 * sizeof(int32_t)):
            return -1
        growth.capacity = tree.capacity
    middle = part(kept, growth.places, first, last, &best)
    growth.edges[2 * (tree.n - 2)] = <int32_t> first
    growth.edges[2 * (tree.n - 2) + 1] = growth.edges[2 * (tree.n - 1)] = <int32_t> middle
    growth.edges[2 * (tree.n - 1) + 1] = <int32_t> last
    return work


cdef inline int replay(Growth *growth, const Kept *kept) noexcept nogil:
    """Count a row that came after the growth began; -1 without memory."""
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


cdef inline void stop(Growth *growth) noexcept nogil:
    """Leave a growth, whose tree stays where it is."""
    free(growth.places)
    free(growth.edges)
    growth.places = growth.edges = NULL
    growth.capacity = 0
    growth.begun = 0


cdef inline int begin(Growth *growth, const Kept *kept, Py_ssize_t n_classes) noexcept nogil:
    """Begin to grow a tree from the ``n_rows`` rows before ``begun``; -1 without memory."""
    cdef Py_ssize_t q
    growth.random = growth.seed
    growth.next = 0
    growth.counted = growth.begun
    if plant(&growth.tree, n_classes) or resize(<void **> &growth.places, growth.n_rows * sizeof(int32_t)):
        return -1
    if resize(<void **> &growth.edges, growth.tree.capacity * 2 * sizeof(int32_t)):
        return -1
    growth.capacity = growth.tree.capacity
    for q in range(growth.n_rows):
        growth.places[q] = <int32_t> place_of(kept, growth.begun - growth.n_rows + q)
    growth.edges[0] = 0
    growth.edges[1] = <int32_t> growth.n_rows
    return 0


cdef inline int go_on(
    Growth *growth, const Kept *kept, int64_t seen, Bench *bench, Py_ssize_t max_nodes, int64_t longest
) noexcept nogil:
    """Do a row's share of the work; return whether the tree is complete and has all rows seen, -1 without memory."""
    cdef Py_ssize_t work = 0
    cdef Py_ssize_t done
    cdef bint late = seen - growth.begun >= longest
    while growth.next < growth.tree.n and (work < WORK or late):
        done = look_at(growth, kept, bench, max_nodes, late)
        if done < 0:
            return -1
        work += done
    while growth.next == growth.tree.n and growth.counted < seen and work < WORK:
        if replay(growth, kept):
            return -1
        work += REPLAY_WORK
    return growth.next == growth.tree.n and growth.counted == seen
