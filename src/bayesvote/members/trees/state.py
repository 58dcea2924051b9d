"""State of a bank of trees, and its validation."""

from typing import Any, NamedTuple

import numpy as np
from numpy.typing import NDArray

from bayesvote.core.checks import Array
from bayesvote.core.state import MOST_ROWS, Arrays, Shape, require, within

Ints = NDArray[np.int32]
Longs = NDArray[np.int64]
Words = NDArray[np.uint64]
Singles = NDArray[np.float32]

# These three must equal CANDIDATES, SIDES and IN_BLOCK of the kernels.
CANDIDATES = 8  # cuts that a leaf counts classes for
SIDES = 2  # sides of a cut: at most the cut, above it
BLOCK = 256  # number of rows in a block; rows are learned and stored in blocks
_OF_ROWS = ("rows", "labels", "weights")


class Settings(NamedTuple):
    """Parameters of the kernels: sizes, and the growth schedule of each tree."""

    n_features: int
    n_classes: int
    windows: list[int]  # number of rows that each tree is grown from
    schedules: list[Longs]  # numbers of rows learned at which each tree is grown again
    periods: list[int]  # rows between growths after the schedule; 0 if leaves split one by one instead
    offsets: list[int]  # number of rows learned at the first of these growths
    rates: tuple[float, ...]  # learning rates of the refined members
    max_nodes: int
    max_columns: int
    capacity: int  # stored rows, including those that arrive while a tree grows
    longest_growth: int  # rows that may arrive while a tree grows
    max_bytes: int  # memory limit, or 0 for none


class TreeState(NamedTuple):
    """State of a bank of m trees. The nodes of all trees are concatenated, and so are their slots."""

    phases: Longs  # (m,), the order in which the trees are grown again
    seen: Longs  # (1,), number of rows learned
    column_of: Ints  # (d,), column of each feature; -1 if it was always 0
    rows: Singles  # (stored rows, columns), oldest first
    labels: Ints
    weights: Singles
    random: Words  # (m,), states of the trees' random number generators
    growth_begun: Longs  # (m,), rows learned when the current growth began; 0 if there is none
    growth_seeds: Words
    growth_columns: Longs
    sizes: Longs  # (m,), nodes per tree
    columns: Ints  # (nodes,), column that a node tests, -1 for a leaf
    thresholds: Singles
    lefts: Ints  # index of the left child in its tree; the right child follows it
    missing: NDArray[np.uint8]  # side of missing values: 0 left, 1 right
    root_counts: Array  # (m, K), weights of the classes in the roots; if a root was split, those at that time
    count_sizes: Ints  # (nodes,), number of classes that occurred in a node; 0 for roots
    count_labels: Ints  # (counts,), these classes, ascending within a node
    counts: Array  # (counts,), their weights
    least_worths: Array  # (m,), minimum worth of a split or slot of a tree; 0 if memory was never short
    slot_nodes: Longs  # (slots,), leaves with candidates for a split
    slot_weights: Array  # (slots,), weight of the rows counted
    slot_columns: Ints  # (slots, candidates)
    slot_cuts: Singles
    slot_ready: NDArray[np.int8]  # 1 if there is a cut, 0 if there is only a first value
    slot_sizes: Ints  # (slots,), number of keys of a slot
    slot_keys: Ints  # (keys,), 2 k for the values of class k on the sides of the cuts, 2 k + 1 for its missing values
    slot_counts: Singles  # (keys, candidates, sides); a key of missing values uses the first number of each candidate
    refined_nodes: Longs  # (visited,), leaves visited by refined members, and parents of leaves not visited yet
    refined: Singles  # (visited, rates, 1 or K)
    refined_sums: Singles  # (visited, rates), sums of squared gradients over the classes


class Sizes(NamedTuple):
    """Lengths of the arrays in a state."""

    nodes: int
    counts: int = 0
    slots: int = 0
    keys: int = 0
    visited: int = 0
    rows: int = 0
    columns: int = 0


def empty(settings: Settings, n: Sizes) -> TreeState:
    """Return a state of these sizes, filled with zeros."""
    m, k = len(settings.windows), settings.n_classes
    outputs = 1 if k == 2 else k
    return TreeState(
        phases=np.zeros(m, dtype=np.int64),
        seen=np.zeros(1, dtype=np.int64),
        column_of=np.zeros(settings.n_features, dtype=np.int32),
        rows=np.zeros((n.rows, n.columns), dtype=np.float32),
        labels=np.zeros(n.rows, dtype=np.int32),
        weights=np.zeros(n.rows, dtype=np.float32),
        random=np.zeros(m, dtype=np.uint64),
        growth_begun=np.zeros(m, dtype=np.int64),
        growth_seeds=np.zeros(m, dtype=np.uint64),
        growth_columns=np.zeros(m, dtype=np.int64),
        sizes=np.zeros(m, dtype=np.int64),
        columns=np.zeros(n.nodes, dtype=np.int32),
        thresholds=np.zeros(n.nodes, dtype=np.float32),
        lefts=np.zeros(n.nodes, dtype=np.int32),
        missing=np.zeros(n.nodes, dtype=np.uint8),
        root_counts=np.zeros((m, k)),
        count_sizes=np.zeros(n.nodes, dtype=np.int32),
        count_labels=np.zeros(n.counts, dtype=np.int32),
        counts=np.zeros(n.counts),
        least_worths=np.zeros(m),
        slot_nodes=np.zeros(n.slots, dtype=np.int64),
        slot_weights=np.zeros(n.slots),
        slot_columns=np.zeros((n.slots, CANDIDATES), dtype=np.int32),
        slot_cuts=np.zeros((n.slots, CANDIDATES), dtype=np.float32),
        slot_ready=np.zeros((n.slots, CANDIDATES), dtype=np.int8),
        slot_sizes=np.zeros(n.slots, dtype=np.int32),
        slot_keys=np.zeros(n.keys, dtype=np.int32),
        slot_counts=np.zeros((n.keys, CANDIDATES, SIDES), dtype=np.float32),
        refined_nodes=np.zeros(n.visited, dtype=np.int64),
        refined=np.zeros((n.visited, len(settings.rates), outputs), dtype=np.float32),
        refined_sums=np.zeros((n.visited, len(settings.rates)), dtype=np.float32),
    )


def sizes_of(arrays: Arrays) -> Sizes:
    """Return the lengths of the arrays of a file."""
    require(arrays["rows"].ndim == 2, "rows must have two dimensions")
    names = "columns", "counts", "slot_nodes", "slot_keys", "refined_nodes"
    return Sizes(*(arrays[name].size for name in names), *arrays["rows"].shape)


# Version 1 stored numbers for every node and class. Its sums of squared gradients started at 1 for each class.
_OLD_SHAPES = {"counts": 2, "columns": 1, "sizes": 1, "lefts": 1, "slot_counts": 4, "refined": 4}


def without_zeros(arrays: Arrays) -> Arrays:
    """Convert the arrays of version 1 to this version, which stores nothing for classes that did not occur."""
    for name, n_axes in _OLD_SHAPES.items():
        require(arrays[name].ndim == n_axes, f"{name} must have {n_axes} dimensions")
    sizes, columns, old = arrays["sizes"], arrays["columns"], arrays["counts"]
    require(within(sizes, 1, len(columns)), f"sizes must be from 1 to {len(columns)}")
    require(int(sizes.sum()) == len(columns) == len(old), "sizes must add up to the number of columns and of counts")
    roots = np.cumsum(sizes) - sizes
    counts = np.array(old)
    counts[roots] = 0.0
    at, labels = np.nonzero(counts)
    # From (slots, candidates, sides, classes) to (slots, classes, 2, numbers): one row of numbers per key.
    by_class = np.moveaxis(arrays["slot_counts"], 3, 1)
    n_slots, n_classes = by_class.shape[:2]
    expected = (n_slots, CANDIDATES, 3, old.shape[1])
    require(arrays["slot_counts"].shape == expected, f"slot_counts must have the shape {expected}")
    lines = np.zeros((n_slots, n_classes, 2, CANDIDATES * SIDES), dtype=np.float32)
    lines[:, :, 0] = by_class[..., :SIDES].reshape(n_slots, n_classes, CANDIDATES * SIDES)
    lines[:, :, 1, :CANDIDATES] = by_class[..., SIDES]
    lines = lines.reshape(n_slots, 2 * n_classes, CANDIDATES, SIDES)
    slots, keys = np.nonzero(lines.any(axis=(2, 3)))
    old_refined = arrays["refined"]
    visited = _needed(old_refined, columns, np.repeat(roots, sizes) + arrays["lefts"])
    sums = old_refined[visited, 1].sum(axis=-1, dtype=np.float64)
    return {
        **arrays,
        "root_counts": old[roots],
        "count_sizes": np.bincount(at, minlength=len(old)).astype(np.int32),
        "count_labels": labels.astype(np.int32),
        "counts": counts[at, labels],
        "least_worths": np.zeros(len(sizes)),
        "slot_sizes": np.bincount(slots, minlength=len(lines)).astype(np.int32),
        "slot_keys": keys.astype(np.int32),
        "slot_counts": lines[slots, keys],
        "refined_nodes": visited,
        "refined": arrays["refined"][visited, 0],
        "refined_sums": (sums - (old_refined.shape[3] - 1)).astype(np.float32),
    }


def _needed(refined: NDArray[Any], columns: NDArray[Any], lefts: NDArray[Any]) -> Longs:
    """Return the nodes whose refined numbers are needed: all visited ones except parents of two visited children."""
    require(len(refined) == len(columns) == len(lefts), "refined must have one entry per node")
    if refined[0].size == 0:
        return np.zeros(0, dtype=np.int64)
    visited = refined[:, 1, 0, 0] > 0
    inner = np.flatnonzero((columns >= 0) & visited)
    require(within(lefts[inner], 0, len(columns) - 2), "children must be in their tree")
    visited[inner[visited[lefts[inner]] & visited[lefts[inner] + 1]]] = False
    return np.flatnonzero(visited)


def without_rows(state: TreeState) -> TreeState:
    """Return the state without stored rows, candidate splits and unfinished trees; it scores the same."""
    fields = state._asdict()
    kept = {name: array[:0] for name, array in fields.items() if name in _OF_ROWS or name.startswith("slot_")}
    fresh = {name: np.zeros_like(array) for name, array in fields.items() if name.startswith("growth_")}
    return TreeState(**{**fields, **kept, **fresh, "seen": np.zeros_like(state.seen)})


def least_bytes(n_trees: int, shape: Shape) -> int:
    """Return the size in bytes of a state without rows: 73 bytes and the class counts of the root per tree."""
    return 4 * shape.n_features + n_trees * (73 + 8 * shape.n_classes)


def check(state: TreeState, settings: Settings) -> None:
    """Reject a state that no stream leads to: the kernels do not check indices."""
    _check_rows(state, settings)
    _check_nodes(state, settings)
    _check_counts(state, settings.n_classes)
    _check_slots(state, settings.n_classes)
    _check_growths(state, settings)
    require(np.array_equal(np.sort(state.phases), np.arange(len(state.phases))), "phases must be a permutation")
    nodes = state.refined_nodes
    last = len(state.columns) - 1
    require(within(nodes, 0, last), f"refined_nodes must be from 0 to {last}")
    require(bool(np.all(np.diff(nodes) > 0)), "refined_nodes must be ascending")
    require(bool(settings.rates) or len(nodes) == 0, "refined_nodes must be empty without refined members")
    for name in ("refined", "refined_sums"):
        require(bool(np.all(np.isfinite(getattr(state, name)))), f"{name} must be finite")
    require(bool(np.all(state.refined_sums > 0)), "refined_sums must be above 0")


def _check_rows(state: TreeState, settings: Settings) -> None:
    seen, (n_rows, n_columns) = int(state.seen[0]), state.rows.shape
    require(0 <= seen <= MOST_ROWS, f"seen must be from 0 to {MOST_ROWS}")
    require(n_rows == min(seen, settings.capacity), f"rows must have {min(seen, settings.capacity)} rows")
    require(n_columns <= settings.max_columns, f"columns must be at most {settings.max_columns}")
    used = state.column_of[state.column_of >= 0]
    require(bool(np.all(state.column_of >= -1)), "column_of must be at least -1")
    require(np.array_equal(np.sort(used), np.arange(n_columns)), "column_of must contain each column once")
    require(not np.any(np.isinf(state.rows)), "rows must be finite or missing")
    require(within(state.labels, 0, settings.n_classes - 1), f"labels must be from 0 to {settings.n_classes - 1}")
    require(bool(np.all((state.weights > 0) & np.isfinite(state.weights))), "weights must be above 0")


def _check_nodes(state: TreeState, settings: Settings) -> None:
    sizes, n_nodes = state.sizes, len(state.columns)
    require(within(sizes, 1, settings.max_nodes), f"sizes must be from 1 to {settings.max_nodes}")
    require(int(sizes.sum()) == n_nodes, "sizes must add up to the number of columns")
    require(within(state.columns, -1, state.rows.shape[1] - 1), "columns must be those of rows, or -1")
    require(within(state.missing, 0, 1), "missing must be 0 or 1")
    require(bool(np.all(np.isfinite(state.thresholds))), "thresholds must be finite")
    leaf = state.columns < 0
    blank = (state.thresholds == 0) & (state.lefts == 0) & (state.missing == 0)
    require(bool(np.all(blank[leaf])), "leaves must have 0 in thresholds, lefts and missing")
    # Children are pairs after their parents, and each node except the root is the child of one node. So every node can
    # be reached from the root, and there are no cycles.
    start = np.repeat(np.cumsum(sizes) - sizes, sizes)
    place = np.arange(n_nodes) - start
    children = np.sort((start + state.lefts)[~leaf])
    expected = np.arange(n_nodes)[place % 2 == 1]
    require(bool(np.all(sizes % 2 == 1)), "sizes must be odd")
    require(bool(np.all((state.lefts > place)[~leaf])), "children must come after their parents")
    require(bool(np.all((state.lefts < np.repeat(sizes, sizes))[~leaf])), "children must be in their tree")
    require(np.array_equal(children, expected), "every node except the root must be the child of one node")


def _check_counts(state: TreeState, n_classes: int) -> None:
    _check_runs("count_sizes", state.count_sizes, "count_labels", state.count_labels, n_classes)
    roots = np.cumsum(state.sizes) - state.sizes
    require(not np.any(state.count_sizes[roots]), "count_sizes must be 0 for roots")
    require(bool(np.all((state.counts > 0) & np.isfinite(state.counts))), "counts must be finite and above 0")
    finite = np.isfinite(state.root_counts)
    require(bool(np.all((state.root_counts >= 0) & finite)), "root_counts must be finite and at least 0")


def _check_runs(of_sizes: str, sizes: Ints, of_keys: str, keys: Ints, n_keys: int) -> None:
    """Reject concatenated lists of keys with invalid lengths or keys, or keys that are not ascending within a list."""
    require(within(sizes, 0, n_keys), f"{of_sizes} must be from 0 to {n_keys}")
    require(int(sizes.sum(dtype=np.int64)) == len(keys), f"{of_sizes} must add up to the number of {of_keys}")
    require(within(keys, 0, n_keys - 1), f"{of_keys} must be from 0 to {n_keys - 1}")
    owner = np.repeat(np.arange(len(sizes)), sizes)
    require(bool(np.all((np.diff(keys) > 0) | (np.diff(owner) > 0))), f"{of_keys} must be ascending")


def _check_slots(state: TreeState, n_classes: int) -> None:
    nodes = state.slot_nodes
    last = len(state.columns) - 1
    require(within(nodes, 0, last), f"slot_nodes must be from 0 to {last}")
    require(bool(np.all(np.diff(nodes) > 0)), "slot_nodes must be ascending")
    require(bool(np.all(state.columns[nodes] < 0)), "slot_nodes must be leaves")
    require(within(state.slot_columns, 0, state.rows.shape[1] - 1), "slot_columns must be those of rows")
    require(within(state.slot_ready, 0, 1), "slot_ready must be 0 or 1")
    require(not np.any(np.isinf(state.slot_cuts)), "slot_cuts must be finite, or NaN before there is a cut")
    require(
        not np.any(np.isnan(state.slot_cuts[state.slot_ready == 1])), "slot_cuts must be numbers where slot_ready is 1"
    )
    _check_runs("slot_sizes", state.slot_sizes, "slot_keys", state.slot_keys, 2 * n_classes)
    for name in ("slot_weights", "slot_counts", "least_worths"):
        values = getattr(state, name)
        require(bool(np.all((values >= 0) & np.isfinite(values))), f"{name} must be finite and at least 0")


def _check_growths(state: TreeState, settings: Settings) -> None:
    seen, begun = int(state.seen[0]), state.growth_begun
    under_way = begun > 0
    room = settings.capacity - BLOCK - max(settings.windows)  # rows that may arrive before a row of a window is lost
    recent = bool(np.all(begun >= 0)) and within(begun[under_way], seen - room, seen)
    require(recent, f"growth_begun must be 0, or from {seen - room} to {seen}")
    most = state.rows.shape[1]
    require(within(state.growth_columns, 0, most), f"growth_columns must be from 0 to {most}")
    blank = (state.growth_columns == 0) & (state.growth_seeds == 0)
    require(bool(np.all(blank[~under_way])), "growth_seeds and growth_columns must be 0 where growth_begun is 0")
