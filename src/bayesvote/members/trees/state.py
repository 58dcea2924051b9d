"""What a bank of trees has learned, and the checks of it."""

from typing import Any, NamedTuple

import numpy as np
from numpy.typing import NDArray

from bayesvote.core.checks import Array
from bayesvote.core.state import MOST_ROWS, Arrays, Shape, require, within

Ints = NDArray[np.int32]
Longs = NDArray[np.int64]
Words = NDArray[np.uint64]
Singles = NDArray[np.float32]

# As the kernels have them.
CANDIDATES = 8  # cuts that a leaf keeps counts for
SIDES = 2  # of a cut: at most, above
_OF_ROWS = ("rows", "labels", "weights")
BLOCK = 256  # rows are learned and kept in blocks of so many


class Settings(NamedTuple):
    """What the kernels need to know: sizes, and when each tree is grown from how many rows."""

    n_features: int
    n_classes: int
    windows: list[int]  # rows that each tree is grown from
    schedules: list[Longs]  # rows seen when it is grown anew
    periods: list[int]  # of growing after that; 0 where leaves go on growing instead
    offsets: list[int]  # rows seen at the first of those
    rates: tuple[float, ...]  # of the refined members
    max_nodes: int
    max_columns: int
    capacity: int  # rows kept, among them those that come while a tree grows
    longest_growth: int  # rows that may come until then
    max_bytes: int  # that all of it may need, or 0


class TreeState(NamedTuple):
    """What a bank of m trees has learned; all trees' nodes one after the other, and so their slots."""

    phases: Longs  # (m,), the order in which the trees are grown anew
    seen: Longs  # (1,), rows learned
    column_of: Ints  # (d,), number of a feature among those seen to be other than 0, or -1
    rows: Singles  # (rows kept, columns), oldest first
    labels: Ints
    weights: Singles
    random: Words  # (m,), states of the trees' random numbers
    growth_begun: Longs  # (m,), rows seen when the growth under way began, or 0
    growth_seeds: Words
    growth_columns: Longs
    sizes: Longs  # (m,), nodes per tree
    columns: Ints  # (nodes,), what a node asks about, -1 for a leaf
    thresholds: Singles
    lefts: Ints  # place of the left child in its tree; the right one follows
    missing: NDArray[np.uint8]  # side of missing values
    root_counts: Array  # (m, K), weights of the classes in the roots; when a root was split, if it was
    count_sizes: Ints  # (nodes,), classes that occurred in a node; 0 for roots
    count_labels: Ints  # (counts,), these classes, ascending in a node
    counts: Array  # (counts,), their weights
    least_worths: Array  # (m,), what a split or a slot of a tree must be worth, or 0 if memory was never short
    slot_nodes: Longs  # (slots,), leaves with candidates for a split
    slot_weights: Array
    slot_columns: Ints  # (slots, candidates)
    slot_cuts: Singles
    slot_ready: NDArray[np.int8]  # whether there is a cut, or only a first value
    slot_sizes: Ints  # (slots,), keys of a slot
    slot_keys: Ints  # (keys,): 2 k for the values of class k on the sides of the cuts, 2 k + 1 for its missing values
    slot_counts: Singles  # (keys, candidates, sides); of missing values the first numbers, one per candidate
    refined_nodes: Longs  # (visited,), leaves that refined members have visited, and parents of others
    refined: Singles  # (visited, rates, 1 or K)
    refined_sums: Singles  # (visited, rates), sums of squared gradients over the classes


class Sizes(NamedTuple):
    """Lengths of the arrays of a state."""

    nodes: int
    counts: int = 0
    slots: int = 0
    keys: int = 0
    visited: int = 0
    rows: int = 0
    columns: int = 0


def empty(settings: Settings, n: Sizes) -> TreeState:
    """Return a state of these sizes in which all is 0."""
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
    """Return the lengths of the arrays that a file brings."""
    require(arrays["rows"].ndim == 2, "rows must have two dimensions")
    names = "columns", "counts", "slot_nodes", "slot_keys", "refined_nodes"
    return Sizes(*(arrays[name].size for name in names), *arrays["rows"].shape)


# Version 1 kept numbers for every node and class. Its sums of squared gradients began at 1 for each class.
_OLD_SHAPES = {"counts": 2, "columns": 1, "sizes": 1, "lefts": 1, "slot_counts": 4, "refined": 4}


def without_zeros(arrays: Arrays) -> Arrays:
    """Bring the arrays of version 1 to this version: of classes that did not occur nothing is kept."""
    for name, n_axes in _OLD_SHAPES.items():
        require(arrays[name].ndim == n_axes, f"{name} must have {n_axes} dimensions")
    sizes, columns, old = arrays["sizes"], arrays["columns"], arrays["counts"]
    require(within(sizes, 1, len(columns)), "sizes must be those of the trees")
    require(int(sizes.sum()) == len(columns) == len(old), "sizes must be those of the trees")
    roots = np.cumsum(sizes) - sizes
    counts = np.array(old)
    counts[roots] = 0.0
    at, labels = np.nonzero(counts)
    # (slots, candidates, sides, classes) to (slots, classes, 2, numbers): a line of numbers for each key
    by_class = np.moveaxis(arrays["slot_counts"], 3, 1)
    n_slots, n_classes = by_class.shape[:2]
    require(by_class.shape[1:] == (old.shape[1], CANDIDATES, 3), "slot_counts must be of candidates, sides and classes")
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
    """Return the nodes whose refined numbers are needed: not those of parents whose children both have their own."""
    require(len(refined) == len(columns) == len(lefts), "refined must be of the nodes")
    if refined[0].size == 0:
        return np.zeros(0, dtype=np.int64)
    visited = refined[:, 1, 0, 0] > 0
    inner = np.flatnonzero((columns >= 0) & visited)
    require(within(lefts[inner], 0, len(columns) - 2), "children must be in their tree")
    visited[inner[visited[lefts[inner]] & visited[lefts[inner] + 1]]] = False
    return np.flatnonzero(visited)


def without_rows(state: TreeState) -> TreeState:
    """Trees that were never shown a row: they score as before."""
    fields = state._asdict()
    kept = {name: array[:0] for name, array in fields.items() if name in _OF_ROWS or name.startswith("slot_")}
    fresh = {name: np.zeros_like(array) for name, array in fields.items() if name.startswith("growth_")}
    return TreeState(**{**fields, **kept, **fresh, "seen": np.zeros_like(state.seen)})


def least_bytes(n_trees: int, shape: Shape) -> int:
    """The size of a state without rows."""
    return 4 * shape.n_features + n_trees * (73 + 8 * shape.n_classes)


def check(state: TreeState, settings: Settings) -> None:
    """Refuse a state that no stream leads to: kernels trust its indices."""
    _check_rows(state, settings)
    _check_nodes(state, settings)
    _check_counts(state, settings.n_classes)
    _check_slots(state, settings.n_classes)
    _check_growths(state, settings)
    require(np.array_equal(np.sort(state.phases), np.arange(len(state.phases))), "phases must be a permutation")
    nodes = state.refined_nodes
    require(within(nodes, 0, len(state.columns) - 1), "refined_nodes must be nodes")
    require(bool(np.all(np.diff(nodes) > 0)), "refined_nodes must ascend")
    require(bool(settings.rates) or len(nodes) == 0, "refined_nodes must be empty without refined members")
    for name in ("refined", "refined_sums"):
        require(bool(np.all(np.isfinite(getattr(state, name)))), f"{name} must be finite")
    require(bool(np.all(state.refined_sums > 0)), "refined_sums must be above 0")


def _check_rows(state: TreeState, settings: Settings) -> None:
    seen, (n_rows, n_columns) = int(state.seen[0]), state.rows.shape
    require(0 <= seen <= MOST_ROWS, f"seen must be from 0 to {MOST_ROWS}")
    require(n_rows == min(seen, settings.capacity), f"{min(seen, settings.capacity)} rows must be kept")
    require(n_columns <= settings.max_columns, f"columns must be at most {settings.max_columns}")
    used = state.column_of[state.column_of >= 0]
    require(bool(np.all(state.column_of >= -1)), "column_of must be at least -1")
    require(np.array_equal(np.sort(used), np.arange(n_columns)), "column_of must number the columns")
    require(not np.any(np.isinf(state.rows)), "rows must be finite or missing")
    require(within(state.labels, 0, settings.n_classes - 1), f"labels must be from 0 to {settings.n_classes - 1}")
    require(bool(np.all((state.weights > 0) & np.isfinite(state.weights))), "weights must be above 0")


def _check_nodes(state: TreeState, settings: Settings) -> None:
    sizes, n_nodes = state.sizes, len(state.columns)
    require(within(sizes, 1, settings.max_nodes), f"sizes must be from 1 to {settings.max_nodes}")
    require(int(sizes.sum()) == n_nodes, "sizes must be those of the trees")
    require(within(state.columns, -1, state.rows.shape[1] - 1), "columns must be those of the rows, or -1")
    require(within(state.missing, 0, 1), "missing must be 0 or 1")
    require(bool(np.all(np.isfinite(state.thresholds))), "thresholds must be finite")
    leaf = state.columns < 0
    blank = (state.thresholds == 0) & (state.lefts == 0) & (state.missing == 0)
    require(bool(np.all(blank[leaf])), "leaves must have no question")
    # Children come in pairs, after their parents, and every node but the root is one: there is no cycle and no orphan.
    start = np.repeat(np.cumsum(sizes) - sizes, sizes)
    place = np.arange(n_nodes) - start
    children = np.sort((start + state.lefts)[~leaf])
    expected = np.arange(n_nodes)[place % 2 == 1]
    require(bool(np.all(sizes % 2 == 1)), "sizes must be odd")
    require(bool(np.all((state.lefts > place)[~leaf])), "children must come after their parents")
    require(bool(np.all((state.lefts < np.repeat(sizes, sizes))[~leaf])), "children must be in their tree")
    require(np.array_equal(children, expected), "every node but the root must be the child of one")


def _check_counts(state: TreeState, n_classes: int) -> None:
    _check_runs("count_sizes", state.count_sizes, "count_labels", state.count_labels, n_classes)
    roots = np.cumsum(state.sizes) - state.sizes
    require(not np.any(state.count_sizes[roots]), "count_sizes of roots must be 0")
    require(bool(np.all((state.counts > 0) & np.isfinite(state.counts))), "counts must be above 0")
    finite = np.isfinite(state.root_counts)
    require(bool(np.all((state.root_counts >= 0) & finite)), "root_counts must be at least 0")


def _check_runs(of_sizes: str, sizes: Ints, of_keys: str, keys: Ints, n_keys: int) -> None:
    """Refuse lists of keys, side by side, that are not those of their owners, or do not ascend."""
    require(within(sizes, 0, n_keys), f"{of_sizes} must be from 0 to {n_keys}")
    require(int(sizes.sum(dtype=np.int64)) == len(keys), f"{of_sizes} must add up to the number of {of_keys}")
    require(within(keys, 0, n_keys - 1), f"{of_keys} must be from 0 to {n_keys - 1}")
    owner = np.repeat(np.arange(len(sizes)), sizes)
    require(bool(np.all((np.diff(keys) > 0) | (np.diff(owner) > 0))), f"{of_keys} must ascend")


def _check_slots(state: TreeState, n_classes: int) -> None:
    nodes = state.slot_nodes
    require(within(nodes, 0, len(state.columns) - 1), "slots must be of nodes")
    require(bool(np.all(np.diff(nodes) > 0)), "slots must ascend")
    require(bool(np.all(state.columns[nodes] < 0)), "slots must be of leaves")
    require(within(state.slot_columns, 0, state.rows.shape[1] - 1), "slot_columns must be those of the rows")
    require(within(state.slot_ready, 0, 1), "slot_ready must be 0 or 1")
    require(not np.any(np.isinf(state.slot_cuts)), "slot_cuts must be finite, or missing before there is a cut")
    require(not np.any(np.isnan(state.slot_cuts[state.slot_ready == 1])), "slot_cuts must be numbers")
    _check_runs("slot_sizes", state.slot_sizes, "slot_keys", state.slot_keys, 2 * n_classes)
    for name in ("slot_weights", "slot_counts", "least_worths"):
        values = getattr(state, name)
        require(bool(np.all((values >= 0) & np.isfinite(values))), f"{name} must be at least 0")


def _check_growths(state: TreeState, settings: Settings) -> None:
    seen, begun = int(state.seen[0]), state.growth_begun
    under_way = begun > 0
    room = settings.capacity - BLOCK - max(settings.windows)  # rows that may come before one of a window is lost
    require(bool(np.all(begun >= 0)) and within(begun[under_way], seen - room, seen), "growths must be recent")
    most = state.rows.shape[1]
    require(within(state.growth_columns, 0, most), f"growth_columns must be from 0 to {most}")
    rest = (state.growth_columns == 0) & (state.growth_seeds == 0)
    require(bool(np.all(rest[~under_way])), "growths that are not under way must have no seed")
