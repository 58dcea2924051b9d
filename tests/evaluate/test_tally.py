"""The running figures against those of all the rows."""

import json
from importlib import import_module
from itertools import product
from typing import Any

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st
from numpy.typing import NDArray

from bayesvote.evaluate import Tally
from bayesvote.evaluate.tally import POINTS

metrics: Any = import_module("sklearn.metrics")

KINDS: dict[str, list[Any]] = {
    "indices": [0, 1, 2, 3],
    "signs": [-1, 1],
    "words": ["no", "yes", "perhaps"],
    "floats": [0.5, 2.0, 1.0],
    "flags": [False, True],
    "objects": ["a", 1, 2.5],
}


def drawn(kind: str, n: int, seed: int) -> tuple[NDArray[Any], NDArray[Any]]:
    rng = np.random.default_rng(seed)
    labels = np.array(KINDS[kind], dtype=object if kind == "objects" else None)
    # Later labels come later, so that they are new to the tally.
    late = np.minimum(rng.integers(0, len(labels), n), np.arange(n) // 5)
    return labels[late], labels[rng.integers(0, len(labels), n)]


def counted(y: NDArray[Any], said: NDArray[Any], sizes: list[int], **options: Any) -> Tally:
    tally, first = Tally(**options), 0
    for size in [*sizes, len(y)]:
        rows = slice(first, first + size)
        wrong = tally.add(y[rows], said[rows])
        assert wrong.tolist() == [a != b for a, b in zip(y[rows].tolist(), said[rows].tolist(), strict=True)]
        first += size
    return tally


@given(
    kind=st.sampled_from(list(KINDS)),
    n=st.integers(1, 120),
    seed=st.integers(0, 2**32 - 1),
    sizes=st.lists(st.integers(0, 50), max_size=5),
    window=st.integers(1, 150),
)
def test_figures_of_chunks(kind: str, n: int, seed: int, sizes: list[int], window: int) -> None:
    y, said = drawn(kind, n, seed)
    tally = counted(y, said, sizes, window=window)
    wrong = np.array([a != b for a, b in zip(y.tolist(), said.tolist(), strict=True)])
    truth, answers = y.astype(str), said.astype(str)
    assert (tally.rows, tally.mistakes, tally.error) == (n, wrong.sum(), wrong.mean())
    assert tally.windowed_error == wrong[-window:].mean()
    recalls = [np.mean(answers[truth == label] == label) for label in np.unique(truth)]
    assert tally.balanced_accuracy == pytest.approx(np.mean(recalls))
    if len({*truth, *answers}) > 1:
        assert tally.kappa == pytest.approx(metrics.cohen_kappa_score(truth, answers), abs=1e-12)
    else:
        assert np.isnan(tally.kappa)
    for (i, label), (j, other) in product(enumerate(tally.labels), repeat=2):
        assert tally.confusion[i, j] == sum(
            pair == (label, other) for pair in zip(y.tolist(), said.tolist(), strict=True)
        )
    rows, error, windowed = tally.curve
    assert rows.tolist() == list(range(1, n + 1))
    assert error.tolist() == pytest.approx([wrong[:t].mean() for t in rows])
    assert windowed.tolist() == pytest.approx([wrong[max(0, t - window) : t].mean() for t in rows])


@given(n=st.integers(1, 20_000), cut=st.integers(0, 20_000), window=st.sampled_from([1, 100, 30_000]))
def test_a_long_curve_has_few_points(n: int, cut: int, window: int) -> None:
    rng = np.random.default_rng(n)
    y, said = rng.integers(0, 2, n), rng.integers(0, 2, n)
    tally = counted(y, said, [min(cut, n)], window=window)
    rows, error, windowed = tally.curve
    assert min(n, POINTS // 2) <= len(rows) <= POINTS + 1
    assert rows[-1] == n
    assert len(set(np.diff(rows[:-1]).tolist())) <= 1
    sums = np.concatenate(([0], np.cumsum(y != said)))
    assert error.tolist() == (sums[rows] / rows).tolist()
    first = np.maximum(rows - window, 0)
    assert windowed.tolist() == ((sums[rows] - sums[first]) / (rows - first)).tolist()


def test_memory_does_not_grow() -> None:
    tally = Tally([0, 1], window=100)
    for _ in range(50):
        tally.add(np.ones(1000, dtype=int), np.arange(1000) % 2)
    assert len(json.dumps(tally.to_json())) < 20_000
    assert tally.rows == 50_000


@given(kind=st.sampled_from(list(KINDS)), n=st.integers(0, 600), known=st.booleans())
def test_json_there_and_back(kind: str, n: int, known: bool) -> None:
    y, said = drawn(kind, 2 * n, n)
    squares = np.random.default_rng(n).random(2 * n)
    squares[::3] = np.nan
    whole, part = (Tally(KINDS[kind] if known else (), window=50) for _ in range(2))
    for rows in (slice(0, n), slice(n, 2 * n)):
        whole.add(y[rows], said[rows], squares[rows], 0.25)
    part.add(y[:n], said[:n], squares[:n], 0.25)
    text = json.dumps(part.to_json())
    back = Tally.from_json(json.loads(text))
    assert json.dumps(back.to_json()) == text
    back.add(y[n:], said[n:], squares[n:], 0.25)
    assert back.to_json() == whole.to_json()
    given_ = squares[~np.isnan(squares)]
    expected = given_.mean() * (0.5 if len(set(whole.labels)) < 3 else 1) if len(given_) else np.nan
    assert whole.brier == pytest.approx(expected, nan_ok=True)
    assert whole.seconds == 0.5


def test_no_prediction_is_a_mistake() -> None:
    tally = Tally()
    tally.add(["a", "b", "a"], np.array([None, "b", "c"], dtype=object))
    assert tally.labels == ["a", "b", "c", None]
    assert tally.mistakes == 2
    assert tally.confusion.tolist() == [[0, 0, 1, 1], [0, 1, 0, 0], [0, 0, 0, 0], [0, 0, 0, 0]]
    assert tally.balanced_accuracy == 0.5
    assert tally.kappa == pytest.approx(metrics.cohen_kappa_score(["a", "b", "a"], ["none", "b", "c"]))


def test_equal_numbers_are_one_label() -> None:
    tally = Tally([0, 1])
    assert not tally.add(np.array([0.0, 1.0]), np.array([False, True])).any()
    assert tally.labels == [0, 1]
    tally.add(np.array([2, -1]), np.array([1, 1]))
    assert tally.labels == [-1, 0, 1, 2]
    assert tally.confusion.diagonal().tolist() == [0, 1, 1, 0]


def test_nothing_yet() -> None:
    tally = Tally(["a"])
    assert (tally.rows, tally.error, tally.windowed_error) == (0, 0, 0)
    assert np.isnan([tally.kappa, tally.balanced_accuracy, tally.brier]).all()
    assert len(tally.curve.rows) == 0
    with pytest.raises(ValueError, match="window must be an integer of at least 1, got 0"):
        Tally(window=0)
