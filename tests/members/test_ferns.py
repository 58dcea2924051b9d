"""Ferns against plain loops; chunks, threads and formats do not matter; nothing bad gets in."""

import copy
import itertools
import os
from typing import Any

import numpy as np
import pytest
import scipy.sparse as sp
from hypothesis import given, settings
from hypothesis import strategies as st

from bayesvote.core.checks import Array
from bayesvote.core.state import Shape
from bayesvote.members.ferns import FernBank, FernState
from oracles.ferns import Fern, run

Data = tuple[Array, Any, Array]


def stream(seed: int, n: int, d: int = 5, n_classes: int = 2, missing: float = 0.0) -> Data:
    """Rows with continuous, coarse and binary features, and weights with some zeros."""
    rng = np.random.default_rng(seed)
    X = rng.normal(size=(n, d))
    X[:, 1] = np.round(2 * X[:, 1])
    X[:, 2] = X[:, 2] > 1
    y = (X[:, 0] + X[:, 1] * X[:, 2] + 0.5 * rng.normal(size=n) > 0).astype(int)
    y += rng.integers(0, n_classes - 1, size=n)
    X[rng.random(X.shape) < missing] = np.nan
    w = rng.choice([0.0, 0.5, 1.0, 3.0], size=n, p=[0.1, 0.2, 0.5, 0.2])
    return X, y, w


def state_of(bank: FernBank) -> FernState:
    assert bank.state is not None
    return bank.state


def same_state(a: FernBank, b: FernBank) -> None:
    for name, value in state_of(a)._asdict().items():
        np.testing.assert_array_equal(value, getattr(state_of(b), name), err_msg=name)


def oracle(bank: FernBank, n_classes: int) -> list[Fern]:
    """Plain ferns with the candidates that the bank drew at its start."""
    state = state_of(bank)
    return [
        Fern(
            [
                [(int(state.columns[j]), float(u)) for j, u in zip(js, us, strict=True)]
                for js, us in zip(state.candidates[i], state.places[i], strict=True)
            ],
            n_classes,
            bank.smoothing,
        )
        for i in range(bank.n_members)
    ]


@pytest.mark.parametrize("n_classes", [2, 3])
@pytest.mark.parametrize("missing", [0.0, 0.05])
@pytest.mark.parametrize("warmup", [4, 23, 64])
def test_equals_plain_loops(n_classes: int, missing: float, warmup: int) -> None:
    X, y, w = stream(warmup, 160, n_classes=n_classes, missing=missing)
    bank = FernBank(11, depth=3, warmup=warmup, smoothing=0.3).start(5, n_classes, rng=1)
    expected = run(oracle(bank, n_classes), X.tolist(), y.tolist(), w.tolist(), warmup)
    got = bank.scores_then_learn(X, y, w)
    assert got.shape == ((160, 11) if n_classes == 2 else (160, 11, 3))
    np.testing.assert_allclose(got, expected, rtol=1e-12, atol=1e-12)
    assert np.isnan(got[:4]).all()
    assert np.isnan(got[20:]).any() == (missing > 0)


def test_questions_are_those_of_the_plain_loops() -> None:
    X, y, w = stream(3, 100)
    bank = FernBank(9, depth=4, warmup=50).start(5, rng=2)
    plain = oracle(bank, 2)
    run(plain, X.tolist(), y.tolist(), w.tolist(), 50)
    bank.scores_then_learn(X, y, w)
    state = state_of(bank)
    used = np.flatnonzero(state.slot_of >= 0)
    for i, fern in enumerate(plain):
        assert [j for j, _ in fern.questions] == used[state.slots[i]].tolist()
        assert [t for _, t in fern.questions] == state.thresholds[i].tolist()


@settings(deadline=None, max_examples=40)
@given(
    seed=st.integers(0, 1000),
    cuts=st.lists(st.integers(0, 150), max_size=6),
    warmup=st.integers(4, 100),
    n_classes=st.sampled_from([2, 3]),
    sparse=st.booleans(),
)
def test_chunks_equal_row_by_row_bit_for_bit(
    seed: int, cuts: list[int], warmup: int, n_classes: int, sparse: bool
) -> None:
    X, y, w = stream(seed, 150, n_classes=n_classes, missing=0.02)
    rows: Any = sp.csr_array(np.where(np.abs(X) < 0.3, 0.0, X)) if sparse else X
    by_row = FernBank(9, depth=3, warmup=warmup).start(5, n_classes, rng=seed)
    by_chunk = copy.deepcopy(by_row)
    one = np.concatenate([by_row.scores_then_learn(rows[t : t + 1], y[t : t + 1], w[t : t + 1]) for t in range(150)])
    edges = [0, *sorted(cuts), 150]
    many = np.concatenate([by_chunk.scores_then_learn(rows[a:b], y[a:b], w[a:b]) for a, b in itertools.pairwise(edges)])
    np.testing.assert_array_equal(one, many)
    same_state(by_row, by_chunk)
    np.testing.assert_array_equal(by_row.scores(rows), by_chunk.scores(rows))


def test_scores_are_those_before_learning_and_change_nothing() -> None:
    X, y, w = stream(0, 200, missing=0.02)
    bank = FernBank(10, depth=4, warmup=30).start(5, rng=0)
    bank.scores_then_learn(X[:150], y[:150], w[:150])
    before = copy.deepcopy(bank)
    first = bank.scores(X[150:])
    same_state(bank, before)
    np.testing.assert_array_equal(first[0], bank.scores_then_learn(X[150:], y[150:], w[150:])[0])


@pytest.mark.parametrize("n_classes", [2, 3])
def test_threads_change_no_bit(monkeypatch: pytest.MonkeyPatch, n_classes: int) -> None:
    X, y, w = stream(5, 3000, n_classes=n_classes, missing=0.01)
    results = []
    for threads in ("1", "2", "3"):
        monkeypatch.setenv("BAYESVOTE_THREADS", threads)
        bank = FernBank(37, depth=5).start(5, n_classes, rng=0)
        results.append((bank.scores_then_learn(X, y, w), bank))
    for scores, bank in results[1:]:
        np.testing.assert_array_equal(results[0][0], scores)
        same_state(results[0][1], bank)


@pytest.mark.parametrize("form", [sp.csr_array, sp.csr_matrix, sp.coo_array])
def test_sparse_equals_dense(form: Any) -> None:
    X, y, w = stream(6, 400, d=40, missing=0.01)
    X[np.abs(X) < 1] = 0.0
    dense = FernBank(20, depth=5, warmup=100).start(40, rng=0)
    sparse = copy.deepcopy(dense)
    np.testing.assert_array_equal(dense.scores_then_learn(X, y, w), sparse.scores_then_learn(form(X), y, w))
    same_state(dense, sparse)
    np.testing.assert_array_equal(dense.scores(X), sparse.scores(form(X)))


def test_single_precision_equals_its_double() -> None:
    X, y, w = stream(7, 300)
    X32 = X.astype(np.float32)
    a, b = (FernBank(10, depth=4, warmup=64).start(5, rng=0) for _ in range(2))
    np.testing.assert_array_equal(a.scores_then_learn(X32, y, w), b.scores_then_learn(X32.astype(np.float64), y, w))


def test_missing_features_silence_only_the_members_that_ask_about_them() -> None:
    X, y, _ = stream(8, 300, d=20)
    bank = FernBank(30, depth=2, warmup=100).start(20, rng=0)
    bank.scores_then_learn(X, y)
    state = state_of(bank)
    asked = np.flatnonzero(state.slot_of >= 0)[state.slots]
    row = X[:1].copy()
    row[0, 0] = np.nan
    silent = (asked == 0).any(axis=1)
    assert silent.any()
    assert not silent.all()
    before = copy.deepcopy(bank)
    scores = bank.scores_then_learn(row, y[:1])
    np.testing.assert_array_equal(np.isnan(scores[0]), silent)
    np.testing.assert_array_equal(scores[0, ~silent], before.scores(X[:1])[0, ~silent])
    learned = (state_of(bank).counts != state_of(before).counts).any(axis=(1, 2))
    np.testing.assert_array_equal(learned, ~silent)


def test_an_integer_weight_is_a_repeated_row() -> None:
    X, y, _ = stream(9, 200)
    a, b = (FernBank(10, depth=4, warmup=32).start(5, rng=0) for _ in range(2))
    for bank in (a, b):
        bank.scores_then_learn(X[:100], y[:100])
    a.scores_then_learn(X[100:], y[100:], np.full(100, 2.0))
    b.scores_then_learn(np.repeat(X[100:], 2, axis=0), np.repeat(y[100:], 2))
    np.testing.assert_array_equal(a.scores(X), b.scores(X))


def test_rows_of_weight_zero_leave_no_trace() -> None:
    X, y, _ = stream(10, 200)
    w = np.arange(200) % 3 > 0
    a, b = (FernBank(10, depth=4, warmup=64).start(5, rng=0) for _ in range(2))
    scores = a.scores_then_learn(X, y, w.astype(float))
    np.testing.assert_array_equal(scores[w], b.scores_then_learn(X[w], y[w]))
    same_state(a, b)


def test_seed_decides() -> None:
    X, y, _ = stream(11, 300)
    runs = [FernBank(10, depth=4).start(5, rng=seed).scores_then_learn(X, y) for seed in (1, 1, 2)]
    np.testing.assert_array_equal(runs[0], runs[1])
    assert not np.array_equal(runs[0], runs[2], equal_nan=True)


def test_a_restored_state_goes_on_bit_for_bit() -> None:
    X, y, w = stream(12, 300)
    bank = FernBank(10, depth=4, warmup=200).start(5, rng=0)
    bank.scores_then_learn(X[:90], y[:90], w[:90])
    restored = FernBank(10, depth=4, warmup=200)
    restored.install(FernState(**{k: v.copy() for k, v in state_of(bank)._asdict().items()}), Shape(5, 2))
    np.testing.assert_array_equal(
        bank.scores_then_learn(X[90:], y[90:], w[90:]), restored.scores_then_learn(X[90:], y[90:], w[90:])
    )


def test_learns_what_no_line_can() -> None:
    X = np.random.default_rng(0).normal(size=(2000, 6))
    y = (X[:, 0] * X[:, 1] > 0).astype(int)
    scores = FernBank(100).start(6, rng=0).scores_then_learn(X, y)
    assert np.mean((np.nanmean(scores[1000:], axis=1) > 0) == y[1000:]) > 0.85


def test_constant_and_missing_columns_are_harmless() -> None:
    X, y, _ = stream(13, 100)
    X[:, 3] = 7.0
    X[:, 4] = np.nan
    X[1, 0] = np.nextafter(X[0, 0], 1e9)  # no number lies between
    scores = FernBank(50, depth=2, warmup=40).start(5, rng=0).scores_then_learn(X, y)
    assert not np.isinf(scores).any()
    assert np.isfinite(scores[50:]).any()


def test_extreme_odds_are_exact() -> None:
    bank = FernBank(3, depth=1, warmup=4, smoothing=1e-100).start(1, rng=0)
    bank.scores_then_learn([[0.0], [0.0], [1.0], [1.0]], [0, 0, 1, 1], np.full(4, 1e5))
    top = 0.5 * np.log(2e5 / 1e-100)
    np.testing.assert_allclose(bank.scores([[0.0], [1.0]]), [[-top] * 3, [top] * 3], rtol=1e-14)


@pytest.mark.parametrize(
    ("options", "sentence"),
    [
        ({"n_members": 0}, "n_members must be an integer of at least 1"),
        ({"depth": 0}, "depth must be an integer of at least 1"),
        ({"depth": 17}, "depth must be at most 16, got 17. "),
        ({"warmup": 3}, "warmup must be an integer of at least 4"),
        ({"smoothing": 0.0}, "smoothing must be a finite number above 0"),
        ({"smoothing": 1e-200}, "smoothing must be from 1e-100 to"),
    ],
)
def test_bad_configuration_is_refused(options: dict[str, Any], sentence: str) -> None:
    with pytest.raises(ValueError, match=f"FernBank: {sentence}"):
        FernBank(**options)


@pytest.mark.parametrize(
    ("X", "y", "w"),
    [
        (np.zeros((3, 4)), [0, 1, 0], None),
        (np.zeros(5), [0], None),
        (np.full((3, 5), np.inf), [0, 1, 0], None),
        (np.zeros((3, 5)), [0, 1, 2], None),
        (np.zeros((3, 5)), [0, 1], None),
        (np.zeros((3, 5)), [0, 1, 0], [1.0, np.nan, 1.0]),
        (np.zeros((3, 5)), [0, 1, 0], [1.0, -1.0, 1.0]),
    ],
)
@pytest.mark.parametrize("seen", [2, 10, 100])
def test_bad_input_is_refused_and_changes_nothing(X: Any, y: Any, w: Any, seen: int) -> None:
    good, labels, _ = stream(14, seen)
    bank = FernBank(5, depth=3, warmup=50).start(5, rng=0)
    bank.scores_then_learn(good, labels)
    before = copy.deepcopy(bank)
    with pytest.raises(ValueError, match="FernBank"):
        bank.scores_then_learn(X, y, w)
    same_state(bank, before)


def test_weights_that_no_check_has_seen_lead_nowhere_else() -> None:
    """A gain that is no number chooses the first candidate, not whatever the memory held."""
    X, y, _ = stream(15, 60)
    bank = FernBank(5, depth=3, warmup=50).start(5, rng=0)
    with np.errstate(all="ignore"):
        bank.advance(bank.checked(X), y, np.full(60, 1e306))
    state = state_of(bank)
    used = np.flatnonzero(state.slot_of >= 0)
    first = state.candidates[:, :, 0]
    assert set(used) <= set(first.ravel().tolist())


def test_must_be_started() -> None:
    with pytest.raises(ValueError, match="must be started"):
        FernBank().scores(np.zeros((1, 2)))


def test_no_rows_no_scores() -> None:
    bank = FernBank(5).start(3, rng=0)
    assert bank.scores(np.zeros((0, 3))).shape == (0, 5)
    assert bank.scores_then_learn(np.zeros((0, 3)), []).shape == (0, 5)


def test_real_data_error() -> None:
    folder = os.environ.get("BAYESVOTE_DATA")
    if folder is None:
        pytest.skip("BAYESVOTE_DATA does not say where the data sets are")
    import lzma
    from importlib import import_module

    with lzma.open(f"{folder}/mushrooms.libsvm.xz") as file:
        X, y = import_module("sklearn.datasets").load_svmlight_file(file)
    order = np.random.default_rng(0).permutation(len(y))
    labels = (y[order] > 0).astype(int)
    scores = FernBank(100).start(X.shape[1], rng=0).scores_then_learn(X[order], labels)
    votes = np.nanmean(np.clip(scores[4:], -1, 1), axis=1) > 0
    assert np.mean(votes != labels[4:]) < 0.03
