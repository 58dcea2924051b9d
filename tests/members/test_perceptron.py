import copy
import itertools
import os
import signal
from typing import Any

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from numpy.typing import NDArray
from scipy.sparse import csc_array, csr_array, csr_matrix

from bayesvote.core import threads as _threads
from bayesvote.core.checks import Array, Labels
from bayesvote.core.rows import RowsLike
from bayesvote.members.perceptron import PerceptronBank
from bayesvote.members.wrappers import Frozen, pretrain
from oracles.members import Perceptron


def make_rows(
    n: int, d: int, n_classes: int, seed: int, missing: float = 0.0, zeros: float = 0.4
) -> tuple[Array, Labels, Array]:
    rng = np.random.default_rng(seed)
    X = rng.normal(size=(n, d))
    y = (X[:, 0] + 0.5 * rng.normal(size=n) > 0).astype(np.intp) + (X[:, 1] > 0.5) * (n_classes - 2)
    X[rng.random((n, d)) < zeros] = 0.0
    X[rng.random((n, d)) < missing] = np.nan
    w = rng.choice([0.0, 0.5, 1.0, 2.25], size=n)
    return X, np.minimum(y, n_classes - 1), w


def by_oracle(bank: PerceptronBank, X: Array, y: Labels, w: Array, n_classes: int) -> Array:
    assert bank.state is not None
    members = [Perceptron(f, n_classes, bank.averaged) for f in bank.state.features.tolist()]
    out = []
    for row, label, weight in zip(X.tolist(), y.tolist(), w.tolist(), strict=True):
        out.append([m.score(row) for m in members])
        for m in members:
            m.learn(row, label, weight)
    scores = np.array(out)
    return scores[:, :, 0] if n_classes == 2 else scores


def arrays(bank: PerceptronBank) -> dict[str, NDArray[Any]]:
    assert bank.state is not None
    return {name: value.copy() for name, value in bank.state._asdict().items()}


def same(a: PerceptronBank, b: PerceptronBank) -> bool:
    one, two = arrays(a), arrays(b)
    return all(np.array_equal(one[name], two[name]) for name in one)


@pytest.mark.parametrize("zeros", [0.1, 0.8])  # dense rows of mostly zeros go another way
@pytest.mark.parametrize("missing", [0.0, 0.05])
@pytest.mark.parametrize("n_classes", [2, 3])
def test_plain_members_are_the_oracle_bit_for_bit(n_classes: int, missing: float, zeros: float) -> None:
    X, y, w = make_rows(300, 11, n_classes, 1, missing, zeros)
    bank = PerceptronBank(n_members=7).start(11, n_classes, rng=0)
    scores = bank.scores_then_learn(X, y, w)
    expected = by_oracle(bank, X, y, w, n_classes)
    assert np.isnan(expected).any() == (missing > 0)
    np.testing.assert_array_equal(scores, expected)


@pytest.mark.parametrize("missing", [0.0, 0.05])
@pytest.mark.parametrize("n_classes", [2, 3])
def test_averaged_members_score_with_the_mean_of_their_weights(n_classes: int, missing: float) -> None:
    X, y, w = make_rows(300, 11, n_classes, seed=2, missing=missing)
    bank = PerceptronBank(n_members=7, averaged=True).start(11, n_classes, rng=0)
    scores = bank.scores_then_learn(X, y, w)
    np.testing.assert_allclose(scores, by_oracle(bank, X, y, w, n_classes), rtol=1e-10, atol=1e-11)


def test_averaging_does_not_change_what_is_learned() -> None:
    X, y, w = make_rows(200, 6, 2, seed=3)
    plain = PerceptronBank(n_members=5).start(6, rng=0)
    averaged = PerceptronBank(n_members=5, averaged=True).start(6, rng=0)
    plain.scores_then_learn(X, y, w)
    averaged.scores_then_learn(X, y, w)
    np.testing.assert_array_equal(arrays(plain)["weights"], arrays(averaged)["weights"])


@given(
    seed=st.integers(0, 2**32 - 1),
    cuts=st.lists(st.integers(0, 60), max_size=6),
    n_classes=st.sampled_from([2, 4]),
    averaged=st.booleans(),
    sparse=st.booleans(),
    missing=st.sampled_from([0.0, 0.1]),
)
@settings(deadline=None, max_examples=40)
def test_chunks_of_any_size_change_no_bit(
    seed: int, cuts: list[int], n_classes: int, averaged: bool, sparse: bool, missing: float
) -> None:
    X, y, w = make_rows(60, 9, n_classes, seed, missing)
    whole = PerceptronBank(5, averaged=averaged).start(9, n_classes, rng=seed)
    parts = PerceptronBank(5, averaged=averaged).start(9, n_classes, rng=seed)
    expected = whole.scores_then_learn(X, y, w)
    edges = [0, *sorted(cuts), 60]
    got = []
    for a, b in itertools.pairwise(edges):
        rows: RowsLike = csr_array(X[a:b]) if sparse else X[a:b]
        before = parts.scores(rows)
        got.append(parts.scores_then_learn(rows, y[a:b], w[a:b]))
        np.testing.assert_array_equal(before[:1], got[-1][:1])
    np.testing.assert_array_equal(np.concatenate(got), expected)
    assert same(whole, parts)


@pytest.mark.parametrize("n_classes", [2, 3])
@pytest.mark.parametrize("averaged", [False, True])
def test_threads_change_no_bit(monkeypatch: pytest.MonkeyPatch, n_classes: int, averaged: bool) -> None:
    X, y, w = make_rows(2500, 23, n_classes, seed=4)
    results = []
    for threads in (1, 2, 3):
        monkeypatch.setattr(_threads, "n_threads", lambda threads=threads: threads)
        bank = PerceptronBank(n_members=37, averaged=averaged).start(23, n_classes, rng=0)
        results.append((bank.scores_then_learn(X, y, w), bank.scores(X), bank))
        for t in (0, 63, 64, 1249, 1250, 2499):
            np.testing.assert_array_equal(bank.scores(X[t : t + 1])[0], results[-1][1][t])
    # Chunks too small to be shared out go another way through the kernels.
    bank = PerceptronBank(n_members=37, averaged=averaged).start(23, n_classes, rng=0)
    parts = [slice(at, at + 100) for at in range(0, len(X), 100)]
    learned = np.concatenate([bank.scores_then_learn(X[part], y[part], w[part]) for part in parts])
    results.append((learned, np.concatenate([bank.scores(X[part]) for part in parts]), bank))
    for learned, scored, bank in results[1:]:
        np.testing.assert_array_equal(learned, results[0][0])
        np.testing.assert_array_equal(scored, results[0][1])
        assert same(bank, results[0][2])


@pytest.mark.parametrize("make", [csr_array, csr_matrix, csc_array])
@pytest.mark.parametrize("averaged", [False, True])
@pytest.mark.parametrize("zeros", [0.2, 0.8])
def test_sparse_rows_equal_dense_ones(make: Any, averaged: bool, zeros: float) -> None:
    X, y, w = make_rows(200, 13, 2, 5, missing=0.03, zeros=zeros)
    dense = PerceptronBank(n_members=9, averaged=averaged).start(13, rng=0)
    sparse = PerceptronBank(n_members=9, averaged=averaged).start(13, rng=0)
    np.testing.assert_array_equal(dense.scores_then_learn(X, y, w), sparse.scores_then_learn(make(X), y, w))
    np.testing.assert_array_equal(dense.scores(X), sparse.scores(make(X)))
    assert same(dense, sparse)


def test_single_precision_and_integers_are_widened() -> None:
    X, y, _ = make_rows(100, 5, 2, seed=6)
    single = X.astype(np.float32)
    a = PerceptronBank(n_members=3).start(5, rng=0)
    b = PerceptronBank(n_members=3).start(5, rng=0)
    np.testing.assert_array_equal(a.scores_then_learn(single, y), b.scores_then_learn(single.astype(float), y))
    assert a.scores(np.ones((1, 5), dtype=np.int8)).dtype == np.float64


def test_a_missing_value_stops_only_the_members_that_use_it() -> None:
    bank = PerceptronBank(n_members=40, max_features=2).start(6, rng=0)
    before = arrays(bank)
    scores = bank.scores_then_learn([[1.0, 1.0, np.nan, 1.0, 1.0, 1.0]], [1])[0]
    users = (before["features"] == 2).any(axis=1)
    assert users.any()
    assert not users.all()
    np.testing.assert_array_equal(np.isnan(scores), users)
    np.testing.assert_array_equal(arrays(bank)["bias"] == 0, users)
    assert np.isfinite(bank.scores(np.ones((1, 6)))).all()


def test_rows_of_weight_zero_are_scored_and_not_learned() -> None:
    X, y, _ = make_rows(20, 4, 2, seed=7)
    bank = PerceptronBank(n_members=3, averaged=True).start(4, rng=0)
    bank.scores_then_learn(X[:10], y[:10])
    twin = copy.deepcopy(bank)
    np.testing.assert_array_equal(bank.scores_then_learn(X[10:], y[10:], np.zeros(10)), twin.scores(X[10:]))
    assert same(bank, twin)


def test_the_seed_decides() -> None:
    a, b, c = (PerceptronBank(n_members=8).start(20, rng=seed) for seed in (1, 1, 2))
    assert same(a, b)
    assert not same(a, c)


def test_an_empty_chunk_changes_nothing() -> None:
    bank = PerceptronBank(n_members=3).start(4, 3, rng=0)
    assert bank.scores(np.zeros((0, 4))).shape == (0, 3, 3)
    assert bank.scores_then_learn(np.zeros((0, 4)), []).shape == (0, 3, 3)


def test_read_only_rows_are_taken() -> None:
    X = np.ones((2, 4))
    X.flags.writeable = False
    assert PerceptronBank(n_members=3).start(4).scores(X).shape == (2, 3)


GOOD = np.ones((2, 4))


@pytest.mark.parametrize(
    ("X", "y", "w", "error", "text"),
    [
        (np.ones((2, 5)), [0, 1], None, ValueError, "X must have 4 features, as at the start, got 5"),
        (np.ones(4), [0], None, ValueError, "two-dimensional"),
        ([[1, 2, 3, np.inf]], [0], None, ValueError, "finite"),
        ([[1, 2, 3, 1e200]], [0], None, ValueError, "finite"),
        (csr_array([[1, 2, 3, -np.inf]]), [0], None, ValueError, "finite"),
        ([["a", "b", "c", "d"]], [0], None, TypeError, "real numbers"),
        (GOOD * 1j, [0, 1], None, TypeError, "real numbers"),
        (csr_array(GOOD * 1j), [0, 1], None, TypeError, "real numbers"),
        (GOOD, [0, 2], None, ValueError, "class indices"),
        (GOOD, [0], None, ValueError, "one label per row"),
        (GOOD, [0, np.nan], None, ValueError, "class indices"),
        (GOOD, [0, 1], [1, -1], ValueError, "sample_weight"),
        (GOOD, [0, 1], [1, np.nan], ValueError, "sample_weight"),
    ],
)
def test_bad_input_is_refused_and_changes_nothing(X: Any, y: Any, w: Any, error: type[Exception], text: str) -> None:
    bank = PerceptronBank(n_members=3, averaged=True).start(4, rng=0)
    bank.scores_then_learn(GOOD, [0, 1])
    before = copy.deepcopy(bank)
    with pytest.raises(error, match=text):
        bank.scores_then_learn(X, y, w)
    assert same(bank, before)


def test_broken_sparse_matrices_are_refused() -> None:
    bank = PerceptronBank(n_members=3).start(4, rng=0)
    outside = csr_array(GOOD)
    outside.indices[3] = 9
    with pytest.raises(ValueError, match="outside 0 to"):
        bank.scores(outside)
    backwards = csr_array(GOOD)
    backwards.indptr[1] = -4
    with pytest.raises(ValueError, match="row pointers"):
        bank.scores(backwards)


def test_duplicate_entries_are_summed_in_a_copy() -> None:
    bank = PerceptronBank(n_members=3, max_features=None).start(2, rng=0)
    bank.scores_then_learn([[1.0, 1.0]], [1])
    twice = csr_array((np.array([1.0, 2.0]), np.array([1, 1]), np.array([0, 2])), shape=(1, 2))
    np.testing.assert_array_equal(bank.scores(twice), bank.scores([[0.0, 3.0]]))
    assert twice.nnz == 2


def test_it_must_be_started_with_sense() -> None:
    with pytest.raises(ValueError, match="started"):
        PerceptronBank().scores(GOOD)
    with pytest.raises(ValueError, match="n_features"):
        PerceptronBank().start(0)
    with pytest.raises(ValueError, match="n_classes"):
        PerceptronBank().start(3, 1)
    with pytest.raises(ValueError, match="n_members"):
        PerceptronBank(n_members=0).start(3)
    with pytest.raises(ValueError, match="max_features"):
        PerceptronBank(max_features=1.5).start(3)


def test_frozen_banks_do_not_learn() -> None:
    X, y, _ = make_rows(50, 4, 2, seed=8)
    bank = PerceptronBank(n_members=3).start(4, rng=0)
    frozen = pretrain(bank, X[:10], y[:10], epochs=2)
    before = copy.deepcopy(bank)
    np.testing.assert_array_equal(frozen.scores_then_learn(X, y), bank.scores(X))
    frozen.start(4, rng=1)
    assert same(bank, before)
    assert frozen.n_members == 3
    with pytest.raises(ValueError, match="class indices"):
        frozen.scores_then_learn(X, y + 1)
    with pytest.raises(ValueError, match="sample_weight"):
        frozen.scores_then_learn(X, y, -np.ones(50))
    with pytest.raises(ValueError, match="epochs"):
        pretrain(bank, X, y, epochs=0)


def test_pretraining_is_learning_epoch_by_epoch() -> None:
    X, y, w = make_rows(50, 4, 2, seed=9)
    a = PerceptronBank(n_members=3).start(4, rng=0)
    b = PerceptronBank(n_members=3).start(4, rng=0)
    pretrain(a, X, y, w, epochs=3)
    for _ in range(3):
        b.scores_then_learn(X, y, w)
    assert same(a, b)


def test_a_frozen_bank_that_was_never_started_starts() -> None:
    frozen = Frozen(PerceptronBank(n_members=3)).start(4, 3, rng=0)
    assert frozen.scores(GOOD).shape == (2, 3, 3)


def test_a_forked_process_can_go_on() -> None:
    X, y, _ = make_rows(2500, 23, 2, seed=4)
    bank = PerceptronBank(n_members=37).start(23, rng=0)
    bank.scores_then_learn(X, y)
    child = os.fork()
    if child == 0:
        signal.alarm(30)  # or it might wait for ever, for threads that it does not have
        bank.scores_then_learn(X, y)
        os._exit(0)
    assert os.waitpid(child, 0)[1] == 0
