"""Stored rows that trees are grown from: the last rows of the stream, in blocks allocated when they are needed."""

from libc.stdint cimport int32_t, int64_t, uint64_t
from libc.stdlib cimport calloc, free, realloc
from libc.string cimport memcpy

cdef enum:
    IN_BLOCK = 256  # number of rows in a block


# A feature gets a column when it is first seen to be other than 0, so there may be many more features than columns.
# A row that is older than a column does not store it; its value is 0.
cdef struct Block:
    float *rows[IN_BLOCK]
    Py_ssize_t widths[IN_BLOCK]
    int32_t labels[IN_BLOCK]
    float weights[IN_BLOCK]


cdef struct Kept:
    Block **blocks
    Py_ssize_t n_blocks
    Py_ssize_t n_columns
    Py_ssize_t max_columns
    Py_ssize_t narrowest  # number of columns that all stored rows have
    int64_t seen  # number of rows stored since the start


cdef inline Py_ssize_t place_of(const Kept *kept, int64_t row) noexcept nogil:
    """Return the index at which a row, numbered from the start of the stream, is stored."""
    return <Py_ssize_t> (row % (kept.n_blocks * IN_BLOCK))


cdef inline float value_at(const Kept *kept, Py_ssize_t place, Py_ssize_t column) noexcept nogil:
    cdef const Block *block = kept.blocks[place // IN_BLOCK]
    return block.rows[place % IN_BLOCK][column] if column < block.widths[place % IN_BLOCK] else 0.0


cdef inline int32_t label_at(const Kept *kept, Py_ssize_t place) noexcept nogil:
    return kept.blocks[place // IN_BLOCK].labels[place % IN_BLOCK]


cdef inline float weight_at(const Kept *kept, Py_ssize_t place) noexcept nogil:
    return kept.blocks[place // IN_BLOCK].weights[place % IN_BLOCK]


cdef inline int keep(
    Kept *kept, int64_t row, const float *x, Py_ssize_t width, int32_t label, float weight
) noexcept nogil:
    """Store a row, numbered from the start, over the oldest one; return -1 if out of memory."""
    cdef Py_ssize_t place = place_of(kept, row)
    cdef Block *block = kept.blocks[place // IN_BLOCK]
    cdef float *moved
    if block == NULL:
        block = kept.blocks[place // IN_BLOCK] = <Block *> calloc(1, sizeof(Block))
        if block == NULL:
            return -1
    place %= IN_BLOCK
    if width > block.widths[place]:
        moved = <float *> realloc(block.rows[place], width * sizeof(float))
        if moved == NULL:
            return -1
        block.rows[place] = moved
        block.widths[place] = width
    if width > 0:  # memcpy must not get NULL, even for 0 bytes
        memcpy(block.rows[place], x, width * sizeof(float))
    block.labels[place] = label
    block.weights[place] = weight
    return 0


cdef inline void find_narrowest(Kept *kept) noexcept nogil:
    """Set ``narrowest`` to the width of the oldest row, which has the fewest columns."""
    cdef Py_ssize_t place = place_of(kept, max(<int64_t> 0, kept.seen - kept.n_blocks * IN_BLOCK))
    cdef const Block *block = kept.blocks[place // IN_BLOCK]
    kept.narrowest = block.widths[place % IN_BLOCK] if block != NULL else 0


cdef inline void free_kept(Kept *kept) noexcept nogil:
    cdef Py_ssize_t i, r
    if kept.blocks != NULL:
        for i in range(kept.n_blocks):
            if kept.blocks[i] != NULL:
                for r in range(IN_BLOCK):
                    free(kept.blocks[i].rows[r])
                free(kept.blocks[i])
    free(kept.blocks)
    kept.blocks = NULL


# Random numbers: SplitMix64 (Steele, Lea and Flood 2014), whose state is a counter.
cdef inline uint64_t draw(uint64_t *random) noexcept nogil:
    cdef uint64_t z
    random[0] += <uint64_t> 0x9E3779B97F4A7C15
    z = random[0]
    z = (z ^ (z >> 30)) * <uint64_t> 0xBF58476D1CE4E5B9
    z = (z ^ (z >> 27)) * <uint64_t> 0x94D049BB133111EB
    return z ^ (z >> 31)


cdef inline Py_ssize_t draw_below(uint64_t *random, Py_ssize_t n) noexcept nogil:
    """Draw an integer from 0 to n - 1, for n below 2**32."""
    return <Py_ssize_t> (((draw(random) >> 32) * <uint64_t> n) >> 32)


cdef inline float draw_between(uint64_t *random, float low, float high) noexcept nogil:
    """Draw a number from low, inclusive, to high, exclusive."""
    cdef float u = <float> (draw(random) >> 40) * <float> (1.0 / 16777216.0)
    cdef float cut = low + u * (high - low)
    return cut if cut < high else low
