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

from bayesvote.evaluation import Tally
from bayesvote.evaluation.tally import POINTS

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
    squares, largest = np.random.default_rng(n).random((2, 2 * n))
    squares[::3] = largest[::3] = np.nan
    whole, part = (Tally(KINDS[kind] if known else (), window=50) for _ in range(2))
    for rows in (slice(0, n), slice(n, 2 * n)):
        whole.add(y[rows], said[rows], squares[rows], 0.25, largest[rows], squares[rows])
    part.add(y[:n], said[:n], squares[:n], 0.25, largest[:n], squares[:n])
    text = json.dumps(part.to_json())
    back = Tally.from_json(json.loads(text))
    assert json.dumps(back.to_json()) == text
    back.add(y[n:], said[n:], squares[n:], 0.25, largest[n:], squares[n:])
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


def test_no_prediction_is_no_label_of_the_brier_score() -> None:
    tally = Tally()
    tally.add(["a", "b", "b"], np.array([None, "b", "a"], dtype=object), np.array([np.nan, 0.02, 1.28]))
    assert tally.labels == ["a", "b", None]
    assert tally.brier == pytest.approx((0.1**2 + 0.8**2) / 2)  # of two labels, as scikit-learn has it


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


@given(kind=st.sampled_from(list(KINDS)), n=st.integers(1, 300), size=st.integers(1, 100))
def test_probabilities_in_chunks(kind: str, n: int, size: int) -> None:
    y, said = drawn(kind, n, n)
    rng = np.random.default_rng(n)
    largest, of_truth = rng.random(n), rng.random(n) * (rng.random(n) < 0.9)
    largest[::5] = of_truth[::5] = np.nan
    whole, parts = Tally(), Tally()
    wrong = whole.add(y, said, largest=largest, of_truth=of_truth)
    for first in range(0, n, size):
        at = slice(first, first + size)
        parts.add(y[at], said[at], largest=largest[at], of_truth=of_truth[at])
    assert parts.to_json() | {"points": 0} == whole.to_json() | {"points": 0}
    known = ~np.isnan(of_truth)
    expected = -np.log(np.maximum(of_truth[known], 1e-9)).mean() if known.any() else np.nan
    assert whole.log_loss == pytest.approx(expected, nan_ok=True)
    found = whole.calibration
    assert found.rows.sum() == known.sum()
    for p, right, rows in zip(*found, strict=True):
        low = np.floor(p * 20) / 20
        own = known & (largest >= low) & (largest < low + 0.05)
        assert (own.sum(), largest[own].mean(), (~wrong[own]).mean()) == pytest.approx((rows, p, right))


def test_a_sure_decision_is_in_the_last_bin() -> None:
    tally = Tally()
    tally.add(["a", "b"], ["a", "a"], largest=np.array([1.0, 1.0]), of_truth=np.array([1.0, 0.0]))
    assert [values.tolist() for values in tally.calibration] == [[1.0], [0.5], [2]]
    assert tally.log_loss == pytest.approx(-np.log(1e-9) / 2)
    tally.add(["a"], ["a"], largest=np.array([0.5]), of_truth=np.array([0.5]))
    assert tally.calibration.probability.tolist() == [0.5, 1.0]  # in order


def test_labels_and_the_majority_beside_scikit_learn() -> None:
    rng = np.random.default_rng(0)
    y, said = rng.choice(["a", "b", "c"], 200, p=[0.6, 0.3, 0.1]), rng.choice(["a", "b", "d"], 200)
    tally = Tally()
    tally.add(y, said)
    names = ["a", "b", "c", "d"]
    precision, recall, f1, rows = metrics.precision_recall_fscore_support(y, said, labels=names, zero_division=np.nan)
    for k, one in enumerate(tally.by_label):
        assert (one.label, one.rows, one.predicted) == (names[k], rows[k], np.sum(said == names[k]))
        assert one[3:5] == pytest.approx((precision[k], recall[k]), nan_ok=True)
        assert one.f1 == pytest.approx(f1[k], nan_ok=True)
    assert tally.majority == "a"
    assert tally.majority_error == pytest.approx(np.mean(y != "a"))


def test_tallies_of_older_checkpoints_load() -> None:
    tally = Tally()
    tally.add(["a", "b"], ["a", "a"])
    old = {name: value for name, value in tally.to_json().items() if name not in ("bins", "logs", "logged")}
    assert Tally.from_json(old).to_json() == tally.to_json()


@pytest.mark.parametrize("value", [None, "x", [[1]], {}, -1])
@pytest.mark.parametrize("name", ["window", "labels", "confusion", "seconds", "recent", "points"])
def test_what_is_no_saved_tally_is_refused_in_words(name: str, value: object) -> None:
    tally = Tally(["no", "yes"], window=3)
    tally.add(["no", "yes", "yes", "no"], ["no", "no", "yes", "no"])
    if (name, value) == ("seconds", -1):  # a number like any other
        return
    with pytest.raises(ValueError, match=r"^Tally.from_json: saved must be what to_json returned, got something else"):
        Tally.from_json(tally.to_json() | {name: value})
    missing = tally.to_json()
    del missing[name]
    with pytest.raises(ValueError, match="must be what to_json returned"):
        Tally.from_json(missing)
