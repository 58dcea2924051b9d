"""Nearest neighbours beside a plain search over all rows before each row."""

from itertools import pairwise
from typing import Any

import numpy as np
import pytest

from bayesvote import NeighbourBank
from bayesvote.core.checks import Array, Labels


def searched(X: Array, y: Labels, w: Array, window: int, neighbours: int, n_classes: int) -> Array:
    """Probabilities (n, K) of each row by the last rows of a weight before it; of rows as near, by the later ones."""
    X, out = np.nan_to_num(X), []
    kept: list[int] = []
    for t, x in enumerate(X):
        last = kept[::-1][:window]
        distance = np.linalg.norm(X[last] - x, axis=1)
        nearest = np.argsort(distance, kind="stable")[:neighbours]
        votes = np.full(n_classes, 0.3 / n_classes)
        farthest = distance[nearest].max(initial=0.0)
        for i in nearest:
            votes[y[last[i]]] += w[last[i]] * (1 - distance[i] / farthest if farthest else 1.0)
        out.append(votes / votes.sum())
        if w[t]:
            kept.append(t)
    return np.array(out)


def rows(n_classes: int, n: int = 700) -> tuple[Array, Labels, Array]:
    rng = np.random.default_rng(7)
    y = rng.integers(n_classes, size=n)
    X = np.column_stack([rng.normal(size=(n, 3)) + y[:, None], rng.integers(3, size=(n, 2))])
    X[rng.random(X.shape) < 0.05] = np.nan
    return X, y, rng.choice([0.0, 0.5, 1.0, 3.0], size=n)


@pytest.mark.parametrize("n_classes", [2, 3])
def test_scores_are_those_of_a_plain_search(n_classes: int) -> None:
    X, y, w = rows(n_classes)  # more rows than the slots of 300 + 256, which are used again
    windows = (5, 60, 300)
    bank = NeighbourBank(windows, neighbours=5).start(5, n_classes, rng=0)
    got = bank.scores_then_learn(X, y, w)
    for i, window in enumerate(windows):
        p = searched(X, y, w, window, 5, n_classes)
        expected = np.log(p[:, 1] / p[:, 0]) / 2 if n_classes == 2 else np.log(p) / 2
        np.testing.assert_allclose(got[:, i], expected, atol=2e-5)  # distances are in single precision


@pytest.mark.parametrize("neighbours", [1, 2, 5])
def test_of_rows_that_are_as_near_the_latest_vote(neighbours: int) -> None:
    """Whole numbers, so that many distances are the same, in single precision too."""
    rng = np.random.default_rng(0)
    X, y, w = rng.integers(0, 3, (150, 2)).astype(np.float64), rng.integers(0, 2, 150), rng.choice([1.0, 2.0], 150)
    bank = NeighbourBank((10, 60), neighbours=neighbours).start(2, rng=0)
    got = bank.scores_then_learn(X, y, w)
    for i, window in enumerate((10, 60)):
        p = searched(X, y, w, window, neighbours, 2)
        np.testing.assert_allclose(got[:, i], np.log(p[:, 1] / p[:, 0]) / 2, atol=2e-5)


def test_rows_without_distance_all_vote() -> None:
    bank = NeighbourBank((10,), neighbours=3).start(1, rng=0)
    got = bank.scores_then_learn(np.ones((4, 1)), [0, 0, 0, 1])
    np.testing.assert_allclose(got[:, 0], [np.log((0.15 + 0) / (0.15 + n)) / 2 for n in range(4)])


def test_no_more_features_are_compared_than_said() -> None:
    bank = NeighbourBank(max_features=3).start(7, rng=0)
    assert bank.state is not None
    assert bank.state.features.shape == (3,)
    X, y = np.random.default_rng(0).normal(size=(50, 7)), np.arange(50) % 2
    bank.scores_then_learn(X, y)
    before, other = bank.scores(X), X.copy()
    other[:, np.setdiff1d(np.arange(7), bank.state.features)] += 1.0
    np.testing.assert_array_equal(bank.scores(other), before)


@pytest.mark.parametrize("max_features", [4, 6])
def test_new_features_are_compared_as_if_they_had_been_0(max_features: int) -> None:
    X, y, w = rows(2, 200)
    X = np.column_stack([X, np.zeros(200)])
    X[120:, 5] = 1.0
    narrow, wide = (NeighbourBank((50,), max_features=max_features) for _ in range(2))
    wide.start(6, rng=0)
    narrow.start(5, rng=0).scores_then_learn(X[:120, :5], y[:120], w[:120])
    got = narrow.widen(6, rng=0).scores_then_learn(X[120:], y[120:], w[120:])
    if max_features == 6:
        np.testing.assert_array_equal(got, wide.scores_then_learn(X, y, w)[120:])
    assert narrow.state is not None
    assert len(narrow.state.features) == max_features


def test_large_values_and_weights_stay_finite() -> None:
    X, y, w = rows(2)
    bank = NeighbourBank().start(5, rng=0)
    assert np.all(np.isfinite(bank.scores_then_learn(X * 1e90, y, w * 3e8)))


def test_blocks_of_rows_change_nothing() -> None:
    X, y, w = rows(2, 1500)
    one, many = (NeighbourBank((256, 1024)).start(5, rng=0) for _ in range(2))
    expected = one.scores_then_learn(X, y, w)
    edges = [0, 1, 255, 256, 600, 1281, 1500]
    got = [many.scores_then_learn(X[a:b], y[a:b], w[a:b]) for a, b in pairwise(edges)]
    np.testing.assert_array_equal(np.concatenate(got), expected)


@pytest.mark.parametrize(
    ("options", "message"),
    [
        ({"windows": ()}, "at least one"),
        ({"windows": (20, 10)}, "increasing"),
        ({"windows": (2**25,)}, "up to"),
        ({"windows": (0,)}, "windows"),
        ({"windows": (4, 100)}, "at most the 4 rows"),
        ({"neighbours": 0}, "neighbours"),
        ({"max_features": 0}, "max_features"),
    ],
)
def test_wrong_parameters_are_told(options: dict[str, Any], message: str) -> None:
    with pytest.raises(ValueError, match=message):
        NeighbourBank(**options)
