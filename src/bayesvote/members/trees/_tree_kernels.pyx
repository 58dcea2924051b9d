"""Kernels of the forest: trees, stored rows and refined members.

A block of rows is processed in three steps. ``take`` converts and stores the rows. ``advance`` lets the trees score and
learn them; several threads may call it at the same time. ``refine`` lets the refined members score and learn them, from
the leaves that the trees recorded.
"""

from types import SimpleNamespace

import numpy as np

cimport numpy as cnp
from libc.stdint cimport int8_t, int32_t, int64_t, uint8_t, uint64_t
from libc.stdlib cimport calloc, free
from libc.string cimport memcpy, memset

from bayesvote.core.arrays cimport (
    contiguous, data, dim, doubles, floats, ints, labels, longs, octets, own_codes, own_doubles, own_floats, own_ints,
    own_longs, own_octets, own_words, words
)
from bayesvote.core.rows cimport RowView, columns_of, view_rows
from bayesvote.members.trees._counters cimport CANDIDATES, SIDES, Counted, Slots, new_slot
from bayesvote.members.trees._growth cimport Buffers, advance_growth
from bayesvote.members.trees._kept cimport IN_BLOCK, Block, Kept, find_narrowest, free_kept, keep, place_of, value_at
from bayesvote.members.trees._member cimport (
    LabelledRow, Member, Rules, begin_growth, fetch_counted, fetch_counts, fetch_leaf, fetch_slot, free_member, learn
)
from bayesvote.members.trees._pruning cimport bytes_of_leaves, bytes_of_numbers, bytes_of_pair, bytes_of_slot, prune
from bayesvote.members.trees._records cimport (
    INTERLEAVED, Records, fill_tile, find_across, find_leaves, free_records, reserve_records, single_weight, record,
    write_scores
)
from bayesvote.members.trees._refined cimport LeafValues, Refined, free_leaves, refine, reserve_leaves
from bayesvote.members.trees._runs cimport Run, Runs, count_items, make_room
from bayesvote.members.trees._tree cimport (
    Node, Tree, add_count, add_pair, counts_of, descend, is_leaf, make_root, put_counts, reserve
)

cdef extern from "cuts.h" nogil:
    Py_ssize_t take_next(Py_ssize_t *next)

cnp.import_array()

cdef enum:
    AHEAD = 4  # number of rows to prefetch ahead


cdef class Forest:
    """Trees of a bank; see :class:`bayesvote.members.trees.TreeBank`."""

    cdef object settings
    cdef object schedule  # keeps the array alive that the members point into
    cdef Py_ssize_t n_trees, n_classes, n_outputs, n_features
    cdef Rules rules
    cdef Member *members
    cdef Refined refined
    cdef int32_t *column_of
    cdef Kept kept
    cdef Records records
    # Current block: number of rows learned and of columns after each row, weights, labels.
    cdef int64_t *seen_after
    cdef Py_ssize_t *columns_after
    cdef double *w
    cdef Py_ssize_t *y
    cdef Py_ssize_t next_tree
    cdef Py_ssize_t max_bytes  # 0 without a limit
    cdef bint is_due  # True if the memory must be checked after this block

    def __cinit__(self, settings, state):
        self.settings = settings
        self.n_trees = len(settings.windows)
        self.n_features, self.n_classes = settings.n_features, settings.n_classes
        self.n_outputs = 1 if self.n_classes == 2 else self.n_classes
        self.rules.n_classes = self.n_classes
        self.rules.max_nodes, self.rules.longest = settings.max_nodes, settings.longest_growth
        self.kept.max_columns = settings.max_columns
        self.max_bytes = settings.max_bytes
        self.refined.n_trees, self.refined.n_classes = self.n_trees, self.n_classes
        self.refined.n_outputs, self.refined.n_rates = self.n_outputs, len(settings.rates)
        self.refined.n_values = self.refined.n_rates * self.n_outputs
        self.refined.n_numbers = self.refined.n_values + self.refined.n_rates
        self.members = <Member *> calloc(self.n_trees, sizeof(Member))
        self.refined.trees = <LeafValues *> calloc(self.n_trees, sizeof(LeafValues))
        self.refined.rates = <double *> calloc(max(<Py_ssize_t> 1, self.refined.n_rates), sizeof(double))
        self.column_of = <int32_t *> calloc(self.n_features, sizeof(int32_t))
        self.kept.n_blocks = settings.capacity // IN_BLOCK
        self.kept.blocks = <Block **> calloc(self.kept.n_blocks, sizeof(Block *))
        self.seen_after = <int64_t *> calloc(IN_BLOCK, sizeof(int64_t))
        self.columns_after = <Py_ssize_t *> calloc(IN_BLOCK, sizeof(Py_ssize_t))
        self.w = <double *> calloc(IN_BLOCK, sizeof(double))
        self.y = <Py_ssize_t *> calloc(IN_BLOCK, sizeof(Py_ssize_t))
        if not (
            self.members and self.refined.trees and self.refined.rates and self.column_of and self.kept.blocks
            and self.seen_after and self.columns_after and self.w and self.y
        ):
            raise MemoryError
        for k in range(self.refined.n_rates):
            self.refined.rates[k] = settings.rates[k] / self.n_trees
        self.schedule = np.concatenate(settings.schedules).astype(np.int64)
        cdef const int64_t *schedule = longs(self.schedule)
        cdef Py_ssize_t i
        for i in range(self.n_trees):
            self.members[i].window = settings.windows[i]
            self.members[i].schedule = schedule
            self.members[i].n_schedule = len(settings.schedules[i])
            schedule += self.members[i].n_schedule
            self.members[i].period = settings.periods[i]
            self.members[i].offset = settings.offsets[i]
            self.members[i].slots.free = -1
        self.restore_rows(state)
        self.restore_trees(state)

    def __dealloc__(self):
        cdef Py_ssize_t i
        if self.members:
            for i in range(self.n_trees):
                free_member(self.members + i)
        if self.refined.trees:
            for i in range(self.n_trees):
                free_leaves(self.refined.trees + i)
        free(self.members)
        free(self.refined.trees)
        free(self.refined.rates)
        free(self.column_of)
        free_kept(&self.kept)
        free_records(&self.records)
        free(self.seen_after)
        free(self.columns_after)
        free(self.w)
        free(self.y)

    def __reduce__(self):
        return Forest, (self.settings, SimpleNamespace(**self.state()))

    # Learning.

    def take(self, rows, y, w, Py_ssize_t first, Py_ssize_t last):
        """Read at most ``IN_BLOCK`` rows, and store those of positive weight; return where the next block begins.

        With a memory limit, a block ends when the number of learned rows is a multiple of ``IN_BLOCK``, and ``prune``
        is due then. So pruning does not depend on how the stream is divided into chunks.
        """
        y, w = contiguous(y), contiguous(w)
        cdef RowView view
        view_rows(rows, &view)
        cdef const Py_ssize_t *y_ = labels(y)
        cdef const double *w_ = doubles(w)
        cdef const int32_t *columns
        cdef const double *values
        cdef int64_t seen = self.kept.seen
        cdef Py_ssize_t r, k, t
        cdef int failed = 0
        self.is_due = False
        with nogil:
            for r in range(last - first):
                t = first + r
                if w_[t] > 0.0 and self.kept.n_columns < self.kept.max_columns:
                    columns = columns_of(&view, t)
                    values = view.values + view.starts[t]
                    for k in range(view.starts[t + 1] - view.starts[t]):
                        if (
                            values[k] != 0.0 and self.column_of[columns[k]] < 0
                            and self.kept.n_columns < self.kept.max_columns
                        ):
                            self.column_of[columns[k]] = <int32_t> self.kept.n_columns
                            self.kept.n_columns += 1
                seen += w_[t] > 0.0
                self.seen_after[r] = seen
                self.columns_after[r] = self.kept.n_columns
                self.w[r] = single_weight(w_[t]) if w_[t] > 0.0 else 0.0
                self.y[r] = y_[t]
                if self.max_bytes and w_[t] > 0.0 and seen % IN_BLOCK == 0:
                    last = t + 1
                    self.is_due = True
                    break
            failed = reserve_records(
                &self.records, last - first, max(<Py_ssize_t> 1, self.kept.n_columns), self.n_trees, self.n_classes
            )
            if not failed:
                fill_tile(&view, first, self.column_of, &self.records)
                memset(self.records.replaced, 0, self.records.n * self.n_trees)
                for r in range(last - first):
                    if self.w[r] > 0.0 and not failed:
                        failed = keep(
                            &self.kept, self.seen_after[r] - 1, self.records.tile + r * self.records.width,
                            self.columns_after[r], <int32_t> self.y[r], <float> self.w[r],
                        )
                for r in range(self.records.n if self.records.n < INTERLEAVED else 0):
                    find_across(self.members, self.n_trees, &self.records, r)
            self.kept.seen = seen
            find_narrowest(&self.kept)
            self.next_tree = 0
        if failed:
            raise MemoryError
        return last

    def advance(self, Py_ssize_t first, out):
        """Let each tree that no other thread processes score and learn the block; scores go to ``out[first:]``."""
        cdef Py_ssize_t width = dim(out, 1)
        cdef double *out_ = own_doubles(out) + first * width
        cdef Buffers buffers
        cdef double *room = self.make_buffers(&buffers)
        cdef Py_ssize_t i
        cdef int failed = 0
        with nogil:
            i = take_next(&self.next_tree)
            while i < self.n_trees and not failed:
                failed = self.advance_tree(i, &buffers, room, width, out_)
                i = take_next(&self.next_tree)
            free(room)
        if failed:
            raise MemoryError

    cdef double *make_buffers(self, Buffers *buffers) except NULL:
        """Allocate memory for two arrays of a block's odds, and for the class sums of the buffers."""
        cdef Py_ssize_t n_odds = IN_BLOCK * self.n_outputs
        cdef double *room = <double *> calloc(2 * n_odds + 4 * self.n_classes, sizeof(double))
        if room == NULL:
            raise MemoryError
        buffers.n_classes = self.n_classes
        buffers.total = room + 2 * n_odds
        buffers.below = buffers.total + self.n_classes
        buffers.missing = buffers.below + self.n_classes
        buffers.counts = buffers.missing + self.n_classes
        return room

    cdef int advance_tree(
        self, Py_ssize_t i, Buffers *buffers, double *room, Py_ssize_t width, double *out
    ) noexcept nogil:
        """Let a tree score and learn the block, row by row; return -1 if out of memory."""
        cdef Member *member = self.members + i
        cdef Tree *tree = &member.tree
        cdef Records *records = &self.records
        cdef double *above = room
        cdef double *below = room + IN_BLOCK * self.n_outputs
        cdef int32_t found[IN_BLOCK]
        cdef LabelledRow labelled
        cdef Py_ssize_t r
        cdef int32_t at
        cdef int replaced
        if records.n < INTERLEAVED:
            for r in range(records.n):
                found[r] = records.leaves[r * self.n_trees + i]
        else:
            find_leaves(tree, records, 0, found)
        for r in range(records.n):
            if r + AHEAD < records.n:
                fetch_leaf(tree, found[r + AHEAD], self.n_classes)
                fetch_counts(tree, found[r + AHEAD // 2])
                fetch_slot(&member.slots, tree.slots[found[r + AHEAD // 2]])
                fetch_counted(&member.slots, tree.slots[found[r + 1]])
            labelled.x = records.tile + r * records.width
            at = descend(tree.nodes, labelled.x, found[r])  # the leaf may have been split in this block
            record(tree, at, r, i, self.n_trees, self.n_classes, records, above, below)
            if self.w[r] == 0.0:
                continue
            labelled.y, labelled.w = self.y[r], self.w[r]
            labelled.seen, labelled.n_columns = self.seen_after[r], self.columns_after[r]
            replaced = learn(member, at, &labelled, &self.kept, &self.rules, buffers)
            if replaced < 0:
                return -1
            if replaced:
                records.replaced[r * self.n_trees + i] = 1
                find_leaves(tree, records, r + 1, found)
        write_scores(above, below, records.n, self.n_outputs, width, out + i * self.n_outputs)
        return 0

    def refine(self, Py_ssize_t first, out):
        """Let the refined members score and learn the block; all trees must be done."""
        cdef Py_ssize_t width = dim(out, 1)
        cdef double *out_ = own_doubles(out) + first * width
        cdef int failed
        with nogil:
            failed = refine(&self.refined, &self.records, self.y, self.w, width, out_)
        if failed:
            raise MemoryError

    def prune(self):
        """If pruning is due, prune the largest tree by a quarter until the forest fits into its memory limit.

        Trees of recent rows are pruned only if no other tree has a split. While a quarter of the memory is free, the
        minimum worth of splits and slots is halved.
        """
        cdef Py_ssize_t total, before, i
        cdef int failed = 0
        if not self.is_due:
            return
        with nogil:
            total = self.used_bytes()
            if with_room(total) < self.max_bytes - self.max_bytes // 4:
                for i in range(self.n_trees):
                    self.members[i].slots.least *= 0.5
            while with_room(total) > self.max_bytes and not failed:
                i = self.largest()
                if i < 0:
                    break
                before = self.bytes_of_member(i)
                failed = prune(
                    &self.members[i].tree, &self.members[i].slots, self.refined.trees + i, &self.refined, before // 4
                )
                total -= before - self.bytes_of_member(i)
        if failed:
            raise MemoryError

    cdef Py_ssize_t bytes_of_member(self, Py_ssize_t i) noexcept nogil:
        """Return the bytes that a tree uses, with its candidates and refined numbers."""
        return bytes_of_numbers(&self.members[i].tree, &self.members[i].slots, self.n_classes) + bytes_of_leaves(
            self.refined.trees + i, self.refined.n_numbers
        )

    cdef Py_ssize_t used_bytes(self) noexcept nogil:
        """Return the bytes in use without spare capacity, so that they depend on the state only."""
        cdef Py_ssize_t n_rows = min(self.kept.seen, <int64_t> (self.kept.n_blocks * IN_BLOCK))
        cdef Py_ssize_t total = n_rows * (self.kept.n_columns * sizeof(float) + sizeof(Block) // IN_BLOCK)
        cdef Slots none
        cdef Py_ssize_t i
        memset(&none, 0, sizeof(Slots))
        for i in range(self.n_trees):
            total += self.bytes_of_member(i)
            if self.members[i].growth.begun:
                total += bytes_of_numbers(&self.members[i].growth.tree, &none, self.n_classes)
        return total

    cdef Py_ssize_t largest(self) noexcept nogil:
        """Return the largest tree with a split, preferring trees of the first rows; -1 if no tree has a split."""
        cdef Py_ssize_t best = -1
        cdef Py_ssize_t most = 0
        cdef Py_ssize_t i
        cdef bint recent
        for recent in range(2):
            for i in range(self.n_trees):
                if (self.members[i].period > 0) == recent and self.members[i].tree.n > 1:
                    if self.bytes_of_member(i) > most:
                        best, most = i, self.bytes_of_member(i)
            if best >= 0:
                break
        return best

    def score(self, rows, Py_ssize_t first, Py_ssize_t last, out):
        """Score rows without learning from them."""
        cdef RowView view
        view_rows(rows, &view)
        cdef Py_ssize_t width = dim(out, 1)
        cdef double *out_ = own_doubles(out)
        cdef Records records
        cdef Buffers buffers
        cdef double *room = self.make_buffers(&buffers)
        cdef int failed = 0
        memset(&records, 0, sizeof(Records))
        with nogil:
            while first < last and not failed:
                failed = self.score_block(&view, first, min(last, first + IN_BLOCK), room, &records, width, out_)
                first += IN_BLOCK
            free(room)
            free_records(&records)
        if failed:
            raise MemoryError

    cdef int score_block(
        self, const RowView *view, Py_ssize_t first, Py_ssize_t last, double *room, Records *records, Py_ssize_t width,
        double *out,
    ) noexcept nogil:
        cdef double *above = room
        cdef double *below = room + IN_BLOCK * self.n_outputs
        cdef Py_ssize_t n_columns = max(<Py_ssize_t> 1, self.kept.n_columns)
        cdef int32_t found[IN_BLOCK]
        cdef Py_ssize_t i, r
        if reserve_records(records, last - first, n_columns, self.n_trees, self.n_classes):
            return -1
        fill_tile(view, first, self.column_of, records)
        out += first * width
        for r in range(records.n if records.n < INTERLEAVED else 0):
            find_across(self.members, self.n_trees, records, r)
        for i in range(self.n_trees):
            if records.n < INTERLEAVED:
                for r in range(records.n):
                    found[r] = records.leaves[r * self.n_trees + i]
            else:
                find_leaves(&self.members[i].tree, records, 0, found)
            for r in range(records.n):
                if r + AHEAD < records.n:
                    fetch_leaf(&self.members[i].tree, found[r + AHEAD], self.n_classes)
                    fetch_counts(&self.members[i].tree, found[r + AHEAD // 2])
                record(
                    &self.members[i].tree, found[r], r, i, self.n_trees, self.n_classes, records, above, below
                )
            write_scores(above, below, records.n, self.n_outputs, width, out + i * self.n_outputs)
        return refine(&self.refined, records, NULL, NULL, width, out) if self.refined.n_rates else 0

    # Conversion of the state to arrays and back.

    def state(self):
        """Return the state as arrays by name, without spare capacity."""
        return {**self.rows_state(), **self.trees_state()}

    cdef dict rows_state(self):
        cdef Py_ssize_t n = min(self.kept.seen, <int64_t> (self.kept.n_blocks * IN_BLOCK))
        rows = np.empty((n, self.kept.n_columns), dtype=np.float32)
        labels_, weights = np.empty(n, dtype=np.int32), np.empty(n, dtype=np.float32)
        column_of = np.empty(self.n_features, dtype=np.int32)
        cdef float *rows_ = own_floats(rows)
        cdef int32_t *to_labels = own_ints(labels_)
        cdef float *to_weights = own_floats(weights)
        cdef Py_ssize_t r, k, place
        memcpy(own_ints(column_of), self.column_of, self.n_features * sizeof(int32_t))
        for r in range(n):
            place = place_of(&self.kept, self.kept.seen - n + r)
            to_labels[r] = self.kept.blocks[place // IN_BLOCK].labels[place % IN_BLOCK]
            to_weights[r] = self.kept.blocks[place // IN_BLOCK].weights[place % IN_BLOCK]
            for k in range(self.kept.n_columns):
                rows_[r * self.kept.n_columns + k] = value_at(&self.kept, place, k)
        return {
            "seen": np.array([self.kept.seen], dtype=np.int64), "column_of": column_of, "rows": rows,
            "labels": labels_, "weights": weights,
        }

    def restore_rows(self, state):
        """Restore the stored rows of a validated state."""
        cdef const float *rows = floats(state.rows)
        cdef const int32_t *from_labels = ints(state.labels)
        cdef const float *from_weights = floats(state.weights)
        cdef Py_ssize_t n = dim(state.rows, 0)
        cdef Py_ssize_t r
        memcpy(self.column_of, ints(state.column_of), self.n_features * sizeof(int32_t))
        self.kept.seen = state.seen[0]
        self.kept.n_columns = dim(state.rows, 1)
        for r in range(n):
            if keep(
                &self.kept, self.kept.seen - n + r, rows + r * self.kept.n_columns, self.kept.n_columns, from_labels[r],
                from_weights[r],
            ):
                raise MemoryError
        find_narrowest(&self.kept)

    cdef dict trees_state(self):
        cdef Py_ssize_t m = self.n_trees
        cdef Py_ssize_t k = self.n_classes
        cdef Py_ssize_t n_values = self.refined.n_values
        cdef Py_ssize_t n_rates = self.refined.n_rates
        cdef Py_ssize_t n_nodes = 0
        cdef Py_ssize_t n_counts = 0
        cdef Py_ssize_t n_slots = 0
        cdef Py_ssize_t n_counted = 0
        cdef Py_ssize_t n_visited = 0
        cdef Py_ssize_t i, j, at, s, node, slot, counted, visited
        cdef Member *member
        for i in range(m):
            member = self.members + i
            n_nodes += member.tree.n
            n_counts += count_items(member.tree.runs + 1, member.tree.n - 1)
            for at in range(member.tree.n):
                n_slots += member.tree.slots[at] >= 0
            n_counted += count_items(member.slots.runs, member.slots.n)
            n_visited += self.refined.trees[i].n
        found = {
            "random": np.empty(m, dtype=np.uint64),
            "growth_begun": np.empty(m, dtype=np.int64),
            "growth_seeds": np.empty(m, dtype=np.uint64),
            "growth_columns": np.empty(m, dtype=np.int64),
            "sizes": np.empty(m, dtype=np.int64),
            "columns": np.empty(n_nodes, dtype=np.int32),
            "thresholds": np.empty(n_nodes, dtype=np.float32),
            "lefts": np.empty(n_nodes, dtype=np.int32),
            "missing": np.empty(n_nodes, dtype=np.uint8),
            "root_counts": np.zeros((m, k)),
            "count_sizes": np.zeros(n_nodes, dtype=np.int32),
            "count_labels": np.empty(n_counts, dtype=np.int32),
            "counts": np.empty(n_counts),
            "least_worths": np.empty(m),
            "slot_nodes": np.empty(n_slots, dtype=np.int64),
            "slot_weights": np.empty(n_slots),
            "slot_columns": np.empty((n_slots, CANDIDATES), dtype=np.int32),
            "slot_cuts": np.empty((n_slots, CANDIDATES), dtype=np.float32),
            "slot_ready": np.empty((n_slots, CANDIDATES), dtype=np.int8),
            "slot_sizes": np.empty(n_slots, dtype=np.int32),
            "slot_keys": np.empty(n_counted, dtype=np.int32),
            "slot_counts": np.empty((n_counted, CANDIDATES, SIDES), dtype=np.float32),
            "refined_nodes": np.empty(n_visited, dtype=np.int64),
            "refined": np.empty((n_visited, n_rates, self.n_outputs), dtype=np.float32),
            "refined_sums": np.empty((n_visited, n_rates), dtype=np.float32),
        }
        cdef uint64_t *random = own_words(found["random"])
        cdef int64_t *growth_begun = own_longs(found["growth_begun"])
        cdef uint64_t *growth_seeds = own_words(found["growth_seeds"])
        cdef int64_t *growth_columns = own_longs(found["growth_columns"])
        cdef int64_t *sizes = own_longs(found["sizes"])
        cdef int32_t *columns = own_ints(found["columns"])
        cdef float *thresholds = own_floats(found["thresholds"])
        cdef int32_t *lefts = own_ints(found["lefts"])
        cdef uint8_t *missing = own_octets(found["missing"])
        cdef double *root_counts = own_doubles(found["root_counts"])
        cdef int32_t *count_sizes = own_ints(found["count_sizes"])
        cdef int32_t *count_labels = own_ints(found["count_labels"])
        cdef double *counts = own_doubles(found["counts"])
        cdef int64_t *slot_nodes = own_longs(found["slot_nodes"])
        cdef double *least_worths = own_doubles(found["least_worths"])
        cdef double *slot_weights = own_doubles(found["slot_weights"])
        cdef int32_t *slot_columns = own_ints(found["slot_columns"])
        cdef float *slot_cuts = own_floats(found["slot_cuts"])
        cdef int8_t *slot_ready = own_codes(found["slot_ready"])
        cdef int32_t *slot_sizes = own_ints(found["slot_sizes"])
        cdef int32_t *slot_keys = own_ints(found["slot_keys"])
        cdef float *slot_counts = own_floats(found["slot_counts"])
        cdef int64_t *refined_nodes = own_longs(found["refined_nodes"])
        cdef float *refined = own_floats(found["refined"])
        cdef float *refined_sums = own_floats(found["refined_sums"])
        cdef const float *numbers
        cdef Run *run
        node = slot = counted = visited = 0
        for i in range(m):
            member = self.members + i
            random[i] = member.random
            growth_begun[i] = member.growth.begun
            growth_seeds[i] = member.growth.seed if member.growth.begun else 0
            growth_columns[i] = member.growth.n_columns if member.growth.begun else 0
            sizes[i] = member.tree.n
            least_worths[i] = member.slots.least
            for j in range(member.tree.runs[0].n):
                root_counts[i * k + member.tree.counts.keys[member.tree.runs[0].start + j]] = (
                    counts_of(&member.tree, 0)[j]
                )
            for at in range(member.tree.n):
                if is_leaf(member.tree.nodes, <int32_t> at):
                    columns[node], thresholds[node], lefts[node], missing[node] = -1, 0.0, 0, 0
                else:
                    columns[node] = member.tree.nodes[at].column
                    thresholds[node] = member.tree.nodes[at].threshold
                    lefts[node] = member.tree.nodes[at].left
                    missing[node] = <uint8_t> member.tree.nodes[at].missing
                run = member.tree.runs + at
                if at > 0 and run.n > 0:  # memcpy must not get NULL, even for 0 bytes
                    count_sizes[node] = run.n
                    memcpy(count_labels, member.tree.counts.keys + run.start, run.n * sizeof(int32_t))
                    memcpy(counts, counts_of(&member.tree, at), run.n * sizeof(double))
                    count_labels += run.n
                    counts += run.n
                s = member.tree.slots[at]
                if s >= 0:
                    run = member.slots.runs + s
                    slot_nodes[slot] = node
                    slot_weights[slot] = member.slots.weights[s]
                    memcpy(slot_columns + slot * CANDIDATES, member.slots.columns + s * CANDIDATES, CANDIDATES * 4)
                    memcpy(slot_cuts + slot * CANDIDATES, member.slots.cuts + s * CANDIDATES, CANDIDATES * 4)
                    memcpy(slot_ready + slot * CANDIDATES, member.slots.ready + s * CANDIDATES, CANDIDATES)
                    slot_sizes[slot] = run.n
                    if run.n > 0:
                        memcpy(slot_keys + counted, member.slots.counts.keys + run.start, run.n * sizeof(int32_t))
                        memcpy(
                            slot_counts + counted * CANDIDATES * SIDES,
                            member.slots.counts.values + run.start * sizeof(Counted), run.n * sizeof(Counted),
                        )
                    counted += run.n
                    slot += 1
                if at < self.refined.trees[i].n_nodes and self.refined.trees[i].places[at] >= 0:
                    refined_nodes[visited] = node
                    numbers = (
                        self.refined.trees[i].numbers + self.refined.trees[i].places[at] * self.refined.n_numbers
                    )
                    memcpy(refined + visited * n_values, numbers, n_values * sizeof(float))
                    memcpy(refined_sums + visited * n_rates, numbers + n_values, n_rates * sizeof(float))
                    visited += 1
                node += 1
        return found

    def restore_trees(self, state):
        """Restore the trees of a validated state; unfinished growths are repeated up to the same point."""
        cdef Py_ssize_t k = self.n_classes
        cdef const uint64_t *random = words(state.random)
        cdef const int64_t *growth_begun = longs(state.growth_begun)
        cdef const uint64_t *growth_seeds = words(state.growth_seeds)
        cdef const int64_t *growth_columns = longs(state.growth_columns)
        cdef const int64_t *sizes = longs(state.sizes)
        cdef const int32_t *columns = ints(state.columns)
        cdef const float *thresholds = floats(state.thresholds)
        cdef const int32_t *lefts = ints(state.lefts)
        cdef const uint8_t *missing = octets(state.missing)
        cdef const double *root_counts = doubles(state.root_counts)
        cdef const int32_t *count_sizes = ints(state.count_sizes)
        cdef const int32_t *count_labels = ints(state.count_labels)
        cdef const double *counts = doubles(state.counts)
        cdef Py_ssize_t node = 0
        cdef Py_ssize_t n_counts, i, at
        cdef Member *member
        for i in range(self.n_trees):
            member = self.members + i
            member.random = random[i]
            if reserve(&member.tree, sizes[i], k) or make_root(&member.tree, k):
                raise MemoryError
            n_counts = 0
            for at in range(sizes[i]):
                n_counts += count_sizes[node + at]
            if make_room(&member.tree.counts, sizeof(double), member.tree.runs, 0, n_counts):
                raise MemoryError
            if put_counts(&member.tree, 0, root_counts + i * k, k):
                raise MemoryError
            self.restore_tree(
                &member.tree, sizes[i], columns + node, thresholds + node, lefts + node, missing + node,
                count_sizes + node, count_labels, counts,
            )
            count_labels += n_counts
            counts += n_counts
            node += sizes[i]
            if growth_begun[i]:
                member.growth.begun = growth_begun[i]
                member.growth.seed = growth_seeds[i]
                member.growth.n_columns = growth_columns[i]
                self.restore_growth(member)
        self.restore_slots(state)
        self.restore_refined(state)

    cdef int restore_tree(
        self, Tree *tree, Py_ssize_t n, const int32_t *columns, const float *thresholds, const int32_t *lefts,
        const uint8_t *missing, const int32_t *count_sizes, const int32_t *count_labels, const double *counts,
    ) except -1:
        """Rebuild a tree from its splits and counts. Pairs are added by ascending index, after their parents."""
        cdef Py_ssize_t at, j
        cdef Node *node
        parents = np.full(n, -1, dtype=np.int32)
        cdef int32_t *parents_ = own_ints(parents)
        for at in range(n):
            if columns[at] >= 0:
                parents_[lefts[at]] = parents_[lefts[at] + 1] = <int32_t> at
        for at in range(1, n):
            if tree.n <= at:
                add_pair(tree, parents_[at], self.n_classes)
            for j in range(count_sizes[at]):
                if add_count(tree, at, count_labels[0], counts[0]):
                    raise MemoryError
                count_labels += 1
                counts += 1
        for at in range(n):
            if columns[at] >= 0:
                node = tree.nodes + at
                node.column, node.threshold, node.left, node.missing = (
                    columns[at], thresholds[at], lefts[at], missing[at]
                )
        return 0

    cdef int restore_slots(self, state) except -1:
        """Restore the candidates of the leaves."""
        cdef const int64_t *sizes = longs(state.sizes)
        cdef const int64_t *slot_nodes = longs(state.slot_nodes)
        cdef const double *least_worths = doubles(state.least_worths)
        cdef const double *slot_weights = doubles(state.slot_weights)
        cdef const int32_t *slot_columns = ints(state.slot_columns)
        cdef const float *slot_cuts = floats(state.slot_cuts)
        cdef const int8_t *slot_ready = <const int8_t *> data(state.slot_ready, b"i", 1, False)
        cdef const int32_t *slot_sizes = ints(state.slot_sizes)
        cdef const int32_t *slot_keys = ints(state.slot_keys)
        cdef const float *slot_counts = floats(state.slot_counts)
        cdef Py_ssize_t n_slots = dim(state.slot_nodes, 0)
        cdef Py_ssize_t node = 0
        cdef Py_ssize_t slot = 0
        cdef Py_ssize_t counted = 0
        cdef Py_ssize_t i, at, s, n
        cdef Member *member
        for i in range(self.n_trees):
            member = self.members + i
            member.slots.least = least_worths[i]
            while slot < n_slots and slot_nodes[slot] < node + sizes[i]:
                at = slot_nodes[slot] - node
                s = new_slot(&member.slots, <int32_t> at)
                n = slot_sizes[slot]
                if s < 0 or make_room(
                    &member.slots.counts, sizeof(Counted), member.slots.runs, member.slots.n, n
                ):
                    raise MemoryError
                member.tree.slots[at] = <int32_t> s
                member.slots.weights[s] = slot_weights[slot]
                memcpy(member.slots.columns + s * CANDIDATES, slot_columns + slot * CANDIDATES, CANDIDATES * 4)
                memcpy(member.slots.cuts + s * CANDIDATES, slot_cuts + slot * CANDIDATES, CANDIDATES * 4)
                memcpy(member.slots.ready + s * CANDIDATES, slot_ready + slot * CANDIDATES, CANDIDATES)
                if n > 0:
                    member.slots.runs[s].start = <int32_t> member.slots.counts.used
                    member.slots.runs[s].n = <int32_t> n
                    memcpy(
                        member.slots.counts.keys + member.slots.counts.used, slot_keys + counted, n * sizeof(int32_t)
                    )
                    memcpy(
                        member.slots.counts.values + member.slots.counts.used * sizeof(Counted),
                        slot_counts + counted * CANDIDATES * SIDES, n * sizeof(Counted),
                    )
                    member.slots.counts.used += n
                    member.slots.counts.live += n
                counted += n
                slot += 1
            node += sizes[i]
        return 0

    cdef int restore_refined(self, state) except -1:
        """Restore the numbers of the refined members."""
        cdef const int64_t *sizes = longs(state.sizes)
        cdef const int64_t *refined_nodes = longs(state.refined_nodes)
        cdef const float *refined = floats(state.refined)
        cdef const float *refined_sums = floats(state.refined_sums)
        cdef Py_ssize_t n_values = self.refined.n_values
        cdef Py_ssize_t n_rates = self.refined.n_rates
        cdef float *numbers
        cdef Py_ssize_t n_visited = dim(state.refined_nodes, 0)
        cdef Py_ssize_t node = 0
        cdef Py_ssize_t first = 0
        cdef Py_ssize_t i, n, q
        cdef LeafValues *leaves
        for i in range(self.n_trees):
            n = 0
            while first + n < n_visited and refined_nodes[first + n] < node + sizes[i]:
                n += 1
            if n > 0:
                leaves = self.refined.trees + i
                if reserve_leaves(leaves, sizes[i], n, self.refined.n_numbers):
                    raise MemoryError
                leaves.n_nodes, leaves.n = sizes[i], n
                for q in range(sizes[i]):
                    leaves.places[q] = -1
                for q in range(n):
                    leaves.places[refined_nodes[first + q] - node] = <int32_t> q
                    numbers = leaves.numbers + q * self.refined.n_numbers
                    memcpy(numbers, refined + (first + q) * n_values, n_values * sizeof(float))
                    memcpy(numbers + n_values, refined_sums + (first + q) * n_rates, n_rates * sizeof(float))
            first += n
            node += sizes[i]
        return 0

    cdef int restore_growth(self, Member *member) except -1:
        cdef Buffers buffers
        cdef double *room = self.make_buffers(&buffers)
        cdef int64_t seen = member.growth.begun
        cdef int done = begin_growth(member, &self.kept, &self.rules)
        while seen <= self.kept.seen and done == 0:
            done = advance_growth(&member.growth, &self.kept, seen, &buffers, self.rules.max_nodes, self.rules.longest)
            seen += 1
        free(room)
        if done < 0:
            raise MemoryError
        if done:
            raise ValueError("growth_begun must be of unfinished trees")
        return 0

    def __sizeof__(self):
        return object.__sizeof__(self) + self.bytes()

    def bytes(self):
        """Return the approximate memory in use, in bytes: rows, nodes, candidates, refined members."""
        cdef Py_ssize_t per_leaf = self.refined.n_numbers * sizeof(float)
        cdef Py_ssize_t total = 0
        cdef Py_ssize_t i, r
        for i in range(self.kept.n_blocks):
            if self.kept.blocks[i] != NULL:
                total += sizeof(Block)
                for r in range(IN_BLOCK):
                    total += self.kept.blocks[i].widths[r] * sizeof(float)
        for i in range(self.n_trees):
            total += bytes_of_tree(&self.members[i].tree, self.n_classes)
            total += bytes_of_tree(&self.members[i].growth.tree, self.n_classes)
            total += bytes_of_slots(&self.members[i].slots)
            total += self.refined.trees[i].node_capacity * sizeof(int32_t) + self.refined.trees[i].capacity * per_leaf
        return total


cdef Py_ssize_t with_room(Py_ssize_t used) noexcept nogil:
    """Return the bytes with the maximum spare capacity of arrays, which is a quarter."""
    return used + used // 4


cdef Py_ssize_t bytes_of_runs(const Runs *pool, Py_ssize_t size) noexcept nogil:
    return pool.capacity * (sizeof(int32_t) + size)


cdef Py_ssize_t bytes_of_tree(const Tree *tree, Py_ssize_t n_classes) noexcept nogil:
    cdef Py_ssize_t per_node = sizeof(Node) + sizeof(int32_t) + sizeof(Run)
    cdef Py_ssize_t nodes = tree.capacity * per_node + (tree.capacity // 2 + 1) * bytes_of_pair(n_classes)
    return nodes + bytes_of_runs(&tree.counts, sizeof(double)) if tree.capacity > 0 else 0


cdef Py_ssize_t bytes_of_slots(const Slots *slots) noexcept nogil:
    return slots.capacity * bytes_of_slot() + bytes_of_runs(&slots.counts, sizeof(Counted))
