"""Feature attributions of trees and refined members.

Each step from a node to its child changes the value of the current node. The change is attributed to the feature that
the node tests.
"""

from typing import NamedTuple

import numpy as np
from numpy.typing import NDArray

from bayesvote.core.checks import Array
from bayesvote.core.rows import Rows
from bayesvote.members.attribution import Attribution, added_up
from bayesvote.members.trees.state import TreeState

# These three must equal SMOOTHING, LEAST_PRIOR and FIRST_SHARE of the kernels.
_SMOOTHING = 0.3  # weight of the parent's class probabilities
_LEAST_PRIOR = 1e-12
_FIRST_SHARE = 2.0  # a new leaf of a refined member starts at this multiple of the mean log-odds of the trees
_MAX_TABLE = 20_000_000  # rows x trees x columns of one batch, one byte each: bounds the memory to 20 MB

Nodes = NDArray[np.int64]


class Forest(NamedTuple):
    """All nodes of all trees, with their values."""

    roots: Nodes  # (T,)
    columns: Nodes  # (nodes,): column that a node tests, -1 for a leaf
    lefts: Nodes
    features: Nodes  # (columns,): feature stored in each column
    scores: Array  # (nodes, 1 or K): score of each node; an inner node is scored like a leaf
    refined: Array  # (nodes, rates, 1 or K): half the values of the refined members; inner nodes have the mean below


def attributions(state: TreeState, rows: Rows, coefficients: Array, shares: Array) -> Attribution:
    """Attribute the scores of trees and refined members to the features. Refined members come after the trees."""
    forest = _forest(state)
    n_trees = len(forest.roots)
    of_score = coefficients.reshape(*shares.shape, -1)
    parts, looked = np.zeros((rows.n, rows.width)), np.zeros((rows.n, rows.width))
    start = np.empty(rows.n)
    size = max(1, _MAX_TABLE // (n_trees * max(len(forest.features), 1)))
    for first in range(0, rows.n, size):
        part = slice(first, min(first + size, rows.n))
        x = rows.todense(part.start, part.stop)[:, forest.features].astype(np.float32)
        moved, asked, start[part] = _paths(state, forest, x, of_score[part, :n_trees], of_score[part, n_trees:])
        parts[part, forest.features] = moved
        of_trees, of_refined = shares[part, :n_trees], shares[part, n_trees:].sum(axis=1)
        seen = np.einsum("rt,rtc->rc", of_trees, asked) + of_refined[:, None] * asked.any(axis=1)
        looked[part, forest.features] = seen
    return Attribution(parts, start, looked)


def kept_rows(state: TreeState) -> Array:
    """Return the last rows of the stream, rounded to single precision."""
    kept = np.zeros((len(state.rows), len(state.column_of)))
    kept[:, _features(state)] = state.rows
    return kept


def _paths(
    state: TreeState, forest: Forest, x: NDArray[np.float32], of_trees: Array, of_refined: Array
) -> tuple[Array, NDArray[np.bool_], Array]:
    """Descend all trees, for all rows at once.

    Return the contribution of each column (n, columns), True for the columns that were tested (n, T, columns), and the
    values of the roots (n,).
    """
    n, n_trees = len(x), len(forest.roots)
    at = np.broadcast_to(forest.roots, (n, n_trees))
    before = _values(forest, at, of_trees, of_refined)
    start, moved = before.sum(axis=1), np.zeros(x.shape)
    asked = np.zeros((n, n_trees, x.shape[1]), dtype=np.bool_)
    row, tree = np.broadcast_arrays(np.arange(n)[:, None], np.arange(n_trees))
    inner = forest.columns[at] >= 0
    row, tree, at, before = row[inner], tree[inner], at[inner], before[inner]
    while len(at):
        column = forest.columns[at]
        value = x[row, column]
        side = np.where(np.isnan(value), state.missing[at], value > state.thresholds[at])
        at = forest.lefts[at] + side
        after = _values(forest, at, of_trees[row, tree], of_refined[row])
        moved += added_up(row, column, after - before, x.shape[1], n)
        asked[row, tree, column] = True
        inner = forest.columns[at] >= 0
        row, tree, at, before = row[inner], tree[inner], at[inner], after[inner]
    return moved, asked, start


def _values(forest: Forest, at: Nodes, of_trees: Array, of_refined: Array) -> Array:
    """Return the contributions of nodes to the sum of the scores, including those of the refined members."""
    refined = forest.refined[at]
    if at.ndim == 2:
        of_refined = of_refined[:, None]
    return np.asarray((of_trees * forest.scores[at]).sum(axis=-1) + (of_refined * refined).sum(axis=(-1, -2)))


def _features(state: TreeState) -> Nodes:
    used = np.flatnonzero(state.column_of >= 0)
    return np.asarray(used[np.argsort(state.column_of[used])])


def _forest(state: TreeState) -> Forest:
    roots = np.cumsum(state.sizes) - state.sizes
    columns = state.columns.astype(np.int64)
    lefts = np.asarray(np.repeat(roots, state.sizes) + state.lefts, dtype=np.int64)
    levels = [roots]
    while len(inner := levels[-1][columns[levels[-1]] >= 0]):
        levels.append(np.concatenate([lefts[inner], lefts[inner] + 1]))
    parents = np.full(len(columns), -1)
    asking = np.flatnonzero(columns >= 0)
    parents[lefts[asking]] = parents[lefts[asking] + 1] = asking
    scores, priors = _scores(state, levels, parents)
    refined = _refined(state, levels, parents, lefts, scores, priors)
    return Forest(roots, columns, lefts, _features(state), scores, refined / 2)


def _scores(state: TreeState, levels: list[Nodes], parents: Nodes) -> tuple[Array, Array]:
    """Return the score of each node as if it were a leaf (nodes, 1 or K), and the class priors (nodes, K)."""
    counts = _counts(state)
    k = counts.shape[1]
    priors = np.full(counts.shape, 1 / k)
    shares = np.empty(counts.shape)
    for level in levels:
        up = parents[level]
        if up[0] >= 0:
            priors[level] = np.maximum(shares[up], _LEAST_PRIOR).astype(np.float32)
        found = counts[level] + _SMOOTHING * priors[level]
        shares[level] = found / found.sum(axis=1, keepdims=True)
    logs = np.log(shares) / 2
    return (logs[:, 1:] - logs[:, :1] if k == 2 else logs), priors


def _counts(state: TreeState) -> Array:
    """Return the weights of all classes in all nodes (nodes, K)."""
    counts = np.zeros((len(state.columns), state.root_counts.shape[1]))
    counts[np.repeat(np.arange(len(counts)), state.count_sizes), state.count_labels] = state.counts
    counts[np.cumsum(state.sizes) - state.sizes] = state.root_counts
    return counts


def _refined(
    state: TreeState, levels: list[Nodes], parents: Nodes, lefts: Nodes, scores: Array, priors: Array
) -> Array:
    """Return the values of the refined members (nodes, rates, 1 or K)."""
    given = np.zeros((len(state.columns), *state.refined.shape[1:]))
    if given.shape[1] == 0:
        return given
    given[state.refined_nodes] = state.refined
    known = np.zeros(len(given), dtype=np.bool_)
    known[state.refined_nodes] = True
    logs = np.log(priors)
    prior = logs[:, 1:] - logs[:, :1] if scores.shape[1] == 1 else logs
    from_parent = (parents >= 0) & known[parents]
    # A leaf without rows gets the values that it would start with at its first row.
    fresh = (2 * scores - np.where(from_parent[:, None], prior, 0.0)) * _FIRST_SHARE / len(state.sizes)
    started = np.where(from_parent[:, None, None], given[parents], 0.0) + fresh[:, None]
    values = np.where(known[:, None, None], given, started)
    weight = _counts(state).sum(axis=1)
    for level in levels[::-1]:
        inner = level[state.columns[level] >= 0]
        left, right = lefts[inner], lefts[inner] + 1
        total = weight[left] + weight[right]
        share = np.where(total > 0, weight[left] / np.where(total > 0, total, 1.0), 0.5)[:, None, None]
        values[inner] = share * values[left] + (1 - share) * values[right]
        weight[inner] = total
    return values
