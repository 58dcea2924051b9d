import copy
import importlib
import io
import itertools
import lzma
import os
from pathlib import Path
from typing import Any

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from numpy.typing import NDArray
from scipy.sparse import csr_array

from bayesvote.core import threads as _threads
from bayesvote.core.checks import MOST_WEIGHT, Array, Labels
from bayesvote.core.rows import RowsLike
from bayesvote.core.state import MOST_ROWS
from bayesvote.members.naive_bayes import NaiveBayesBank
from bayesvote.members.wrappers import Frozen
from oracles.members import NaiveBayes


def make_rows(n: int, n_classes: int, seed: int, missing: float = 0.0) -> tuple[Array, Labels, Array]:
    """Rows of nine features: continuous, 0/1, -1/1, three-valued, constant, mostly zero."""
    rng = np.random.default_rng(seed)
    y = rng.integers(n_classes, size=n)
    X = rng.normal(size=(n, 9)) + 0.7 * y[:, np.newaxis]
    X[:, 2:4] = X[:, 2:4] > 0.5
    X[:, 4] = np.where(X[:, 4] > 0, 1.0, -1.0)
    X[:, 5] = np.clip(X[:, 5].round(), -1, 1)
    X[:, 6] = 3.0
    X[:, 7] *= rng.random(n) < 0.2
    X[rng.random((n, 9)) < missing] = np.nan
    return X, y, rng.choice([0.0, 0.5, 1.0, 2.25], size=n)


def by_oracle(bank: NaiveBayesBank, X: Array, y: Labels, w: Array, n_classes: int) -> Array:
    assert bank.state is not None
    kinds = [bank.kinds] * X.shape[1] if isinstance(bank.kinds, str) else bank.kinds
    members = [
        NaiveBayes(f, n_classes, kinds, bank.gaussian_smoothing, bank.bernoulli_smoothing)
        for f in bank.state.features.tolist()
    ]
    out = []
    for row, label, weight in zip(X.tolist(), y.tolist(), w.tolist(), strict=True):
        out.append([m.score(row) for m in members])
        for m in members:
            m.learn(row, label, weight)
    scores = np.array(out)
    return scores[:, :, 0] if n_classes == 2 else scores


def arrays(bank: NaiveBayesBank) -> dict[str, NDArray[Any]]:
    assert bank.state is not None
    return {name: value.copy() for name, value in bank.state._asdict().items()}


def same(a: NaiveBayesBank, b: NaiveBayesBank) -> bool:
    one, two = arrays(a), arrays(b)
    return all(np.array_equal(one[name], two[name], equal_nan=True) for name in one)


MIXED = ["gaussian", "auto", "bernoulli", "auto", "bernoulli", "gaussian", "gaussian", "auto", "bernoulli"]


@pytest.mark.parametrize("kinds", ["auto", "gaussian", "bernoulli", MIXED])
@pytest.mark.parametrize(("n_classes", "missing"), [(2, 0.0), (2, 0.05), (3, 0.05)])
def test_members_are_the_oracle(kinds: Any, n_classes: int, missing: float) -> None:
    X, y, w = make_rows(120, n_classes, seed=1, missing=missing)
    bank = NaiveBayesBank(n_members=5, kinds=kinds).start(9, n_classes, rng=0)
    scores = bank.scores_then_learn(X, y, w)
    expected = by_oracle(bank, X, y, w, n_classes)
    np.testing.assert_allclose(scores, expected, rtol=1e-9, atol=1e-9)


@given(
    seed=st.integers(0, 2**32 - 1),
    cuts=st.lists(st.integers(0, 200), max_size=6),
    n_classes=st.sampled_from([2, 4]),
    sparse=st.booleans(),
    missing=st.sampled_from([0.0, 0.1]),
)
@settings(deadline=None, max_examples=40)
def test_chunks_of_any_size_and_sparse_rows_change_no_bit(
    seed: int, cuts: list[int], n_classes: int, sparse: bool, missing: float
) -> None:
    X, y, w = make_rows(200, n_classes, seed, missing)
    whole = NaiveBayesBank(5).start(9, n_classes, rng=seed)
    parts = NaiveBayesBank(5).start(9, n_classes, rng=seed)
    expected = whole.scores_then_learn(X, y, w)
    got = []
    for a, b in itertools.pairwise([0, *sorted(cuts), 200]):
        rows: RowsLike = csr_array(X[a:b]) if sparse else X[a:b]
        before = parts.scores(rows)
        got.append(parts.scores_then_learn(rows, y[a:b], w[a:b]))
        np.testing.assert_array_equal(before[:1], got[-1][:1])
    np.testing.assert_array_equal(np.concatenate(got), expected)
    assert same(whole, parts)


@pytest.mark.parametrize("n_classes", [2, 3])
@pytest.mark.parametrize("missing", [0.0, 0.02])
def test_threads_change_no_bit(monkeypatch: pytest.MonkeyPatch, n_classes: int, missing: float) -> None:
    X, y, w = make_rows(30_000, n_classes, seed=4, missing=missing)
    results = []
    for threads in (1, 2, 3):
        monkeypatch.setattr(_threads, "n_threads", lambda threads=threads: threads)
        bank = NaiveBayesBank(n_members=7).start(9, n_classes, rng=0)
        results.append((bank.scores_then_learn(X, y, w), bank.scores(X), bank))
        for t in (0, 63, 64, 14_999, 15_000, 29_999):
            np.testing.assert_array_equal(bank.scores(X[t : t + 1])[0], results[-1][1][t])
    for learned, scored, bank in results[1:]:
        np.testing.assert_array_equal(learned, results[0][0])
        np.testing.assert_array_equal(scored, results[0][1])
        assert same(bank, results[0][2])


def test_single_precision_is_widened() -> None:
    X, y, _ = make_rows(100, 2, seed=6)
    single = X.astype(np.float32)
    a = NaiveBayesBank(n_members=3).start(9, rng=0)
    b = NaiveBayesBank(n_members=3).start(9, rng=0)
    np.testing.assert_array_equal(a.scores_then_learn(single, y), b.scores_then_learn(single.astype(float), y))


def test_a_missing_value_leaves_the_sum_of_the_others() -> None:
    X, y, _ = make_rows(50, 2, seed=7)
    bank = NaiveBayesBank(n_members=40, max_features=2).start(9, rng=0)
    bank.scores_then_learn(X, y)
    holed = X[:1].copy()
    holed[0, 2] = np.nan
    users = (arrays(bank)["features"] == 2).any(axis=1)
    assert 0 < users.sum() < 40
    changed = bank.scores(holed)[0] != bank.scores(X[:1])[0]
    np.testing.assert_array_equal(changed, users)
    prior = np.log((1 + (y == 1).sum()) / (1 + (y == 0).sum()))
    np.testing.assert_allclose(bank.scores(np.full((1, 9), np.nan)), prior, rtol=1e-12)


def test_values_missing_from_the_start_do_no_harm() -> None:
    X, y, _ = make_rows(60, 2, seed=8)
    X[:30, 0] = np.nan
    bank = NaiveBayesBank(n_members=4, max_features=None).start(9, rng=0)
    scores = bank.scores_then_learn(X, y)
    assert np.isfinite(scores).all()


@pytest.mark.parametrize("kinds", ["auto", "gaussian", "bernoulli"])
@pytest.mark.parametrize("scale", [1e-90, 1.0, 1e90])
def test_the_first_rows_and_wild_values_give_finite_scores(kinds: str, scale: float) -> None:
    rng = np.random.default_rng(9)
    X = scale * rng.choice([0.0, 1.0, -1.0, 1e-9, 1e9], size=(300, 6))
    X[:, 0] = scale
    X[:, 1] = scale * rng.normal(size=300) + 1e6 * scale
    y = rng.integers(2, size=300)
    bank = NaiveBayesBank(n_members=8, kinds=kinds).start(6, rng=0)
    assert np.isfinite(bank.scores_then_learn(X, y)).all()
    y[:] = 1  # a class never seen
    bank = NaiveBayesBank(n_members=8, kinds=kinds).start(6, 3, rng=0)
    assert np.isfinite(bank.scores_then_learn(X, y)).all()


def test_a_value_far_out_of_all_proportion_gives_a_finite_score() -> None:
    bank = NaiveBayesBank(n_members=1, max_features=None).start(1)
    bank.scores_then_learn([[1e-95], [2e-95], [3e-95], [4e-95]], [0, 1, 0, 1])
    assert np.isfinite(bank.scores([[1e99], [-1e99]])).all()


def test_a_large_offset_does_not_spoil_the_variance() -> None:
    X, y, w = make_rows(150, 2, seed=10)
    bank = NaiveBayesBank(n_members=3).start(9, rng=0)
    moved = NaiveBayesBank(n_members=3).start(9, rng=0)
    np.testing.assert_allclose(
        bank.scores_then_learn(X, y, w), moved.scores_then_learn(X + 2.0**20, y, w), rtol=1e-6, atol=1e-6
    )


@pytest.mark.parametrize(("low", "high"), [(0.0, 1.0), (-1.0, 1.0), (5.0, 2.0)])
def test_the_coding_of_a_binary_feature_does_not_matter(low: float, high: float) -> None:
    rng = np.random.default_rng(11)
    y = rng.integers(2, size=200)
    bits = rng.random((200, 4)) < 0.3 + 0.4 * y[:, np.newaxis]
    coded = NaiveBayesBank(n_members=3).start(4, rng=0)
    plain = NaiveBayesBank(n_members=3, kinds="bernoulli").start(4, rng=0)
    a = coded.scores_then_learn(np.where(bits, high, low), y)
    b = plain.scores_then_learn(bits.astype(float), y)
    np.testing.assert_allclose(a[20:], b[20:], rtol=1e-12)


def test_a_third_value_makes_a_feature_gaussian() -> None:
    bank = NaiveBayesBank(n_members=1, max_features=None).start(1)
    bank.scores_then_learn([[0.0], [1.0], [0.0]], [0, 1, 0])
    assert arrays(bank)["values_seen"][2] == [2]
    bank.scores_then_learn([[0.5], [0.0]], [0, 1])
    assert arrays(bank)["values_seen"][2] == [3]


@pytest.mark.parametrize("n_values", [1, 2, 3])
def test_the_statistics_are_those_of_the_rows(n_values: int) -> None:
    """Binary features keep counts only, from which their means and sums of squares are made."""
    rng = np.random.default_rng(14)
    x, y, w = rng.choice([5.0, -2.0, 3.5][:n_values], 80), rng.integers(2, size=80), rng.random(80)
    bank = NaiveBayesBank(n_members=1, max_features=None).start(1)
    bank.scores_then_learn(x[:, np.newaxis], y, w)
    count, mean, scatter, other = arrays(bank)["statistics"][:, :, 0]
    for k in range(2):
        mine, weight = x[y == k], w[y == k]
        middle = np.average(mine, weights=weight)
        expected = [weight.sum(), middle, weight @ (mine - middle) ** 2, weight[mine != x[0]].sum()]
        np.testing.assert_allclose([count[k], mean[k], scatter[k], other[k]], expected, rtol=1e-10, atol=1e-12)


def test_a_third_value_that_is_not_learned_is_gaussian_for_its_row_only() -> None:
    bank = NaiveBayesBank(n_members=1, max_features=None).start(1)
    bank.scores_then_learn([[0.0], [1.0], [0.0], [1.0]], [0, 1, 0, 0])
    rows = [[1.0], [0.5], [1.0], [0.5], [0.5], [0.0]]
    alone = np.concatenate([bank.scores([row]) for row in rows])
    np.testing.assert_array_equal(bank.scores(rows), alone)
    assert alone[0] == alone[2] != alone[1]


def test_rows_of_weight_zero_are_scored_and_not_learned() -> None:
    X, y, _ = make_rows(20, 2, seed=12)
    bank = NaiveBayesBank(n_members=3).start(9, rng=0)
    bank.scores_then_learn(X[:10], y[:10])
    twin = copy.deepcopy(bank)
    np.testing.assert_array_equal(bank.scores_then_learn(X[10:], y[10:], np.zeros(10)), twin.scores(X[10:]))
    assert same(bank, twin)


def test_frozen_and_empty_chunks_change_nothing() -> None:
    X, y, _ = make_rows(100, 3, seed=13)
    bank = NaiveBayesBank(n_members=3).start(9, 3, rng=0)
    bank.scores_then_learn(X, y)
    before = copy.deepcopy(bank)
    np.testing.assert_array_equal(Frozen(bank).scores_then_learn(X, y), bank.scores(X))
    assert bank.scores_then_learn(np.zeros((0, 9)), []).shape == (0, 3, 3)
    assert same(bank, before)


def test_the_seed_decides() -> None:
    a, b, c = (NaiveBayesBank(n_members=8).start(20, rng=seed) for seed in (1, 1, 2))
    assert same(a, b)
    assert not same(a, c)


GOOD = np.ones((2, 9))


@pytest.mark.parametrize(
    ("X", "y", "w", "error", "text"),
    [
        (np.ones((2, 5)), [0, 1], None, ValueError, "X must have 9 features, as at the start, got 5"),
        (np.full((1, 9), np.inf), [0], None, ValueError, "finite"),
        (GOOD, [0, 2], None, ValueError, "class indices"),
        (GOOD, [0, 1], [1, np.nan], ValueError, "sample_weight"),
    ],
)
def test_bad_input_is_refused_and_changes_nothing(X: Any, y: Any, w: Any, error: type[Exception], text: str) -> None:
    bank = NaiveBayesBank(n_members=3).start(9, rng=0)
    bank.scores_then_learn(GOOD, [0, 1])
    before = copy.deepcopy(bank)
    with pytest.raises(error, match=text):
        bank.scores_then_learn(X, y, w)
    assert same(bank, before)


@pytest.mark.parametrize(
    ("options", "text"),
    [
        ({"kinds": "gausian"}, "gaussian"),
        ({"kinds": ["auto"] * 3}, "one entry for each of 9"),
        ({"gaussian_smoothing": 0.0}, "gaussian_smoothing"),
        ({"bernoulli_smoothing": -1.0}, "bernoulli_smoothing"),
        ({"n_members": 0}, "n_members"),
    ],
)
def test_bad_options_are_refused(options: dict[str, Any], text: str) -> None:
    with pytest.raises(ValueError, match=text):
        NaiveBayesBank(**options).start(9)
    with pytest.raises(ValueError, match="started"):
        NaiveBayesBank().scores(GOOD)


def test_adult_takes_bernoulli_and_not_gaussian_evidence() -> None:
    folder = os.environ.get("BAYESVOTE_DATA")
    if folder is None:
        pytest.skip("BAYESVOTE_DATA names no folder with the data sets")
    load_svmlight_file = importlib.import_module("sklearn.datasets").load_svmlight_file  # sklearn has no types

    with lzma.open(Path(folder) / "adult.libsvm.xz") as file:
        X, labels = load_svmlight_file(io.BytesIO(file.read()), n_features=123)
    order = np.random.default_rng(0).permutation(len(labels))[:10_000]
    X, y = X[order], labels[order] > 0
    error = {}
    for kinds in ("auto", "gaussian"):
        bank = NaiveBayesBank(n_members=1, max_features=None, kinds=kinds).start(123, rng=0)
        error[kinds] = np.mean((bank.scores_then_learn(X, y)[:, 0] > 0) != y)
    assert error["auto"] < 0.22
    assert error["auto"] < error["gaussian"] - 0.05


def test_a_value_that_was_never_seen_has_no_weight() -> None:
    """A file that says otherwise would make means that are no numbers."""
    X = np.column_stack((np.ones(20), np.arange(20) % 2))
    bank = NaiveBayesBank(2, max_features=None).start(2)
    bank.scores_then_learn(X, np.arange(20) % 2)
    state = bank.state
    assert state is not None
    bank.validate(state)
    for change, word in (((3, 0, 0, 1.0), "second value"), ((2, 0, 1, 1e229), "of values")):
        statistics = state.statistics.copy()
        statistics[change[:3]] = change[3]
        with pytest.raises(ValueError, match=word):
            bank.validate(state._replace(statistics=statistics))
    with pytest.raises(ValueError, match="weight of rows"):
        bank.validate(state._replace(total=state.total + 1e100))


def test_no_weight_leaves_squares_below_zero() -> None:
    """The quotient of a weight times a value by the weight may be a hair more than the value."""
    rng = np.random.default_rng(0)
    for _ in range(300):
        bank = NaiveBayesBank(1, max_features=None, kinds="gaussian").start(1)
        bank.scores_then_learn(rng.normal(size=(2, 1)), [0, 1], rng.random(2))
        assert bank.state is not None
        bank.validate(bank.state)
    bank = NaiveBayesBank(1, max_features=None).start(1)
    bank.scores_then_learn([[0.6], [0.0], [-1.121122678939223]], [0, 1, 0], [1.2e-43, 1.0, 7.524987744205256e-13])
    assert bank.state is not None
    bank.validate(bank.state)
    assert np.all(bank.state.statistics[2] >= 0)


def test_what_a_file_brings_at_most_can_still_learn_and_be_saved() -> None:
    """So large a total swallows the weights of further rows, or the next file would be refused."""
    X, y, _ = make_rows(40, 2, 0)
    bank = NaiveBayesBank(2).start(X.shape[1])
    bank.scores_then_learn(X, y)
    state = bank.state
    assert state is not None
    state.total[:] = 2**20 * MOST_WEIGHT * MOST_ROWS
    bank.validate(state)
    bank.scores_then_learn(X, y, 1e9)
    bank.validate(state)
