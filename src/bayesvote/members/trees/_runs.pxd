"""Sparse values by class: each node has a run of keys and values in a pool that all nodes of a tree share.

Only classes that occurred have a key. The keys of a run are ascending. A run that needs another key is moved to the end
of the pool, unless it is there already. When the pool is full, the runs are packed into a new one.
"""

from libc.stdint cimport int32_t
from libc.stdlib cimport free, malloc
from libc.string cimport memcpy, memmove, memset

cdef extern from *:
    """
    #define MOST_ITEMS 2147483647  /* the largest int32 */
    """
    const Py_ssize_t MOST_ITEMS


cdef struct Run:
    int32_t start
    int32_t n


cdef struct Runs:
    Py_ssize_t used  # items in use, including old copies of runs that were moved
    Py_ssize_t live  # items in use without old copies
    Py_ssize_t capacity
    int32_t *keys
    char *values  # all values have the same size, which the caller knows


cdef inline Py_ssize_t find_key(const Runs *pool, const Run *run, int32_t key) noexcept nogil:
    """Return the index of a key in the pool, or -1 if the run does not have it."""
    cdef Py_ssize_t j
    for j in range(run.start, run.start + run.n):
        if pool.keys[j] >= key:
            return j if pool.keys[j] == key else -1
    return -1


cdef inline Py_ssize_t count_items(const Run *runs, Py_ssize_t n_runs) noexcept nogil:
    cdef Py_ssize_t total = 0
    cdef Py_ssize_t i
    for i in range(n_runs):
        total += runs[i].n
    return total


cdef inline int pack(
    Runs *pool, Py_ssize_t size, Run *runs, Py_ssize_t n_runs, Py_ssize_t spare
) noexcept nogil:
    """Copy the runs to a new pool without gaps, with room for ``spare`` items; return -1 if out of memory."""
    cdef Py_ssize_t capacity = max(<Py_ssize_t> 1, pool.live + spare)
    cdef Py_ssize_t at = 0
    cdef Py_ssize_t i
    cdef int32_t *keys
    cdef char *values
    if capacity > MOST_ITEMS:
        return -1
    keys = <int32_t *> malloc(capacity * sizeof(int32_t))
    values = <char *> malloc(capacity * size)
    if keys == NULL or values == NULL:
        free(keys)
        free(values)
        return -1
    for i in range(n_runs):
        if runs[i].n > 0:  # memcpy must not get NULL, even for 0 bytes
            memcpy(keys + at, pool.keys + runs[i].start, runs[i].n * sizeof(int32_t))
            memcpy(values + at * size, pool.values + runs[i].start * size, runs[i].n * size)
        runs[i].start = <int32_t> at
        at += runs[i].n
    free(pool.keys)
    free(pool.values)
    pool.keys, pool.values = keys, values
    pool.used, pool.capacity = at, capacity
    return 0


cdef inline int make_room(
    Runs *pool, Py_ssize_t size, Run *runs, Py_ssize_t n_runs, Py_ssize_t n
) noexcept nogil:
    """Make room for n items at the end of the pool; return -1 if out of memory."""
    if pool.used + n <= pool.capacity:
        return 0
    return pack(pool, size, runs, n_runs, n + 8 + pool.live // 4)


cdef inline Py_ssize_t insert_key(
    Runs *pool, Py_ssize_t size, Run *runs, Py_ssize_t n_runs, Py_ssize_t which, int32_t key
) noexcept nogil:
    """Return the index of a key, adding it with the value 0 if it is new; return -1 if out of memory."""
    cdef Run *run = runs + which
    cdef Py_ssize_t before = 0
    cdef Py_ssize_t after, place
    while before < run.n and pool.keys[run.start + before] < key:
        before += 1
    if before < run.n and pool.keys[run.start + before] == key:
        return run.start + before
    if run.start + run.n != pool.used or pool.used == pool.capacity:
        if make_room(pool, size, runs, n_runs, run.n + 1):
            return -1
        if run.n > 0:
            memcpy(pool.keys + pool.used, pool.keys + run.start, run.n * sizeof(int32_t))
            memcpy(pool.values + pool.used * size, pool.values + run.start * size, run.n * size)
        run.start = <int32_t> pool.used
        pool.used += run.n
    place = run.start + before
    after = run.n - before
    memmove(pool.keys + place + 1, pool.keys + place, after * sizeof(int32_t))
    memmove(pool.values + (place + 1) * size, pool.values + place * size, after * size)
    pool.keys[place] = key
    memset(pool.values + place * size, 0, size)
    run.n += 1
    pool.used += 1
    pool.live += 1
    return place


cdef inline void free_runs(Runs *pool) noexcept nogil:
    free(pool.keys)
    free(pool.values)
    memset(pool, 0, sizeof(Runs))
