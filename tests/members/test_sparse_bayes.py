"""Naive Bayes over more than 1,024 features, against an oracle that goes over all of them."""

from itertools import pairwise
from typing import Any

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from scipy.sparse import csr_array

from bayesvote import NaiveBayesBank
from bayesvote.core.checks import Array, Labels
from bayesvote.core.rows import Rows, as_rows
from bayesvote.members import sparse_bayes
from oracles.members import SparseNaiveBayes

D = sparse_bayes.WIDE + 6
KINDS = ["bernoulli", "gaussian", *["auto"] * (D - 2)]


def make_rows(n: int, n_classes: int, seed: int, missing: float = 0.0) -> tuple[Array, Labels, Array]:
    """Rows of 12 features that are other than 0 now and then, half of them mostly; all others are 0."""
    rng = np.random.default_rng(seed)
    y = rng.integers(n_classes, size=n)
    X = np.zeros((n, D))
    used = np.array([0, 1, 2, 3, 4, 5, 500, 600, 700, D - 3, D - 2, D - 1])
    values = rng.normal(size=(n, 12)) + 0.7 * y[:, None]
    values[:, 4] = 2.0
    X[:, used] = values * (rng.random((n, 12)) < np.linspace(0.1, 1.0, 12))
    holes = rng.random((n, 12)) < missing
    X[:, used] = np.where(holes, np.nan, X[:, used])
    return X, y, rng.choice([0.0, 0.5, 1.0, 2.25], size=n)


@pytest.mark.parametrize(("n_classes", "missing"), [(2, 0.0), (2, 0.05), (3, 0.05)])
@pytest.mark.parametrize(
    "kinds", ["auto", "gaussian", "bernoulli", KINDS], ids=["auto", "gaussian", "bernoulli", "mixed"]
)
def test_members_are_the_oracle(kinds: Any, n_classes: int, missing: float) -> None:
    X, y, w = make_rows(60, n_classes, seed=1, missing=missing)
    bank = NaiveBayesBank(3, max_features=0.4, kinds=kinds).start(D, n_classes, rng=0)
    assert bank.state is not None
    of_each = [kinds] * D if isinstance(kinds, str) else kinds
    members = [SparseNaiveBayes(f, n_classes, of_each, 5.0) for f in bank.state.features.tolist()]
    expected = []
    for row, label, weight in zip(X.tolist(), y.tolist(), w.tolist(), strict=True):
        expected.append([member.score(row) for member in members])
        for member in members:
            member.learn(row, label, weight)
    found = bank.scores_then_learn(X, y, w)
    assert np.isnan(found).any() == (missing > 0)
    np.testing.assert_allclose(found, np.array(expected).reshape(found.shape), rtol=1e-9, atol=1e-9)
    bank.validate(bank.state)


@settings(max_examples=20, deadline=None)
@given(
    seed=st.integers(0, 2**32 - 1),
    cuts=st.lists(st.integers(0, 80), max_size=4),
    n_classes=st.sampled_from([2, 4]),
    sparse=st.booleans(),
    missing=st.sampled_from([0.0, 0.1]),
)
def test_chunks_of_any_size_and_sparse_rows_change_no_bit(
    seed: int, cuts: list[int], n_classes: int, sparse: bool, missing: float
) -> None:
    X, y, w = make_rows(80, n_classes, seed, missing)
    whole, parts = (NaiveBayesBank(5).start(D, n_classes, rng=seed) for _ in range(2))
    expected, got = whole.scores_then_learn(X, y, w), []
    for a, b in pairwise([0, *sorted(cuts), 80]):
        rows: Any = csr_array(X[a:b]) if sparse else X[a:b]
        before = parts.scores(rows)
        got.append(parts.scores_then_learn(rows, y[a:b], w[a:b]))
        np.testing.assert_array_equal(before[:1], got[-1][:1])
    np.testing.assert_array_equal(np.concatenate(got), expected)
    assert parts.state is not None
    assert whole.state is not None
    for one, other in zip(parts.state, whole.state, strict=True):
        np.testing.assert_array_equal(one, other)


def test_no_row_is_made_dense(monkeypatch: pytest.MonkeyPatch) -> None:
    """The work of a row follows what it holds."""

    def refuse(*_: Any) -> Any:
        raise AssertionError

    X, y, w = make_rows(30, 2, seed=2)
    bank = NaiveBayesBank(3).start(D, rng=0)
    monkeypatch.setattr(Rows, "todense", refuse)
    bank.scores_then_learn(csr_array(X), y, w)
    bank.scores(csr_array(X))


@pytest.mark.parametrize("n_classes", [2, 3])
def test_what_columns_moved_adds_up(n_classes: int) -> None:
    X, y, w = make_rows(60, n_classes, seed=3, missing=0.02)
    bank = NaiveBayesBank(4).start(D, n_classes, rng=0)
    bank.scores_then_learn(X, y, w)
    dense, sparse, rng = as_rows("test", X), as_rows("test", csr_array(X)), np.random.default_rng(0)
    scores = bank.score(dense)
    coefficients = np.where(np.isnan(scores), 0.0, rng.normal(size=scores.shape))
    shares = rng.random(scores.shape[:2])
    found, same = bank.attributions(dense, coefficients, shares), bank.attributions(sparse, coefficients, shares)
    total = np.nansum((coefficients * scores).reshape(60, -1), axis=1)
    np.testing.assert_allclose(found.parts.sum(axis=1) + found.start, total, rtol=1e-9, atol=1e-9)
    for one, other in zip(found, same, strict=True):
        np.testing.assert_allclose(one, other, rtol=1e-12)
    assert not found.parts[:, 6:500].any()


def taught(n_features: int, X: Array, y: Labels, w: Array, kinds: Any = "auto") -> NaiveBayesBank:
    bank = NaiveBayesBank(2, max_features=None, kinds=kinds).start(n_features, rng=0)
    bank.scores_then_learn(X[:, :n_features], y, w)
    return bank


@pytest.mark.parametrize("kinds", ["auto", "bernoulli"])
def test_a_bank_that_becomes_wide_knows_the_zeros_of_features_that_began_with_one(kinds: str) -> None:
    X, y, w = make_rows(80, 2, seed=4)
    X, y, w = np.concatenate([np.zeros((1, D)), X]), np.append(0, y), np.append(1.0, w)
    X[:, 800:] = 0.0
    narrow, wide = taught(800, X, y, w, kinds), taught(D, X, y, w, kinds)
    narrow.widen(D, rng=0)
    assert narrow.state is not None
    assert wide.state is not None
    narrow.validate(narrow.state)
    for name in wide.state._fields:
        np.testing.assert_allclose(
            getattr(narrow.state, name), getattr(wide.state, name), rtol=1e-9, atol=1e-12, err_msg=name
        )
    np.testing.assert_allclose(narrow.scores_then_learn(X, y, w), wide.scores_then_learn(X, y, w), rtol=1e-9, atol=1e-9)


def test_features_that_were_never_zero_stay_gaussian_when_a_bank_becomes_wide() -> None:
    rng = np.random.default_rng(5)
    y = rng.integers(2, size=300)
    X = rng.normal(size=(300, 4)) + y[:, None]
    bank = NaiveBayesBank(1, max_features=None).start(4, rng=0)
    bank.scores_then_learn(X, y)
    before = bank.scores(X)
    bank.widen(D, rng=0)
    wide = np.pad(X, ((0, 0), (0, D - 4)))
    np.testing.assert_allclose(bank.scores(wide), before, rtol=0.05, atol=0.05)


def test_states_of_version_2_are_converted(monkeypatch: pytest.MonkeyPatch) -> None:
    X, y, w = make_rows(80, 2, seed=6, missing=0.02)
    X[0] = 0.0
    with monkeypatch.context() as patch:
        patch.setattr(sparse_bayes, "WIDE", D)
        old = taught(D, X, y, w)
    assert old.state is not None
    arrays = old.state._asdict()
    del arrays["present"]
    blank, bank = taught(D, X[:0], y[:0], w[:0]).state, taught(D, X, y, w)
    assert blank is not None
    assert bank.state is not None
    state = bank.load_state(blank, 2, arrays)
    np.testing.assert_allclose(state.statistics, bank.state.statistics, rtol=1e-9, atol=1e-12)


@pytest.mark.parametrize(
    ("field", "at", "value", "word"),
    [
        ("statistics", (0, 0, 3), 1e3, "more than its class"),
        ("statistics", (3, 0, 3), -1.0, "at least 0"),
        ("statistics", (2, 0, 600), 1.0, "of values"),
        ("present", (0, 0), -1.0, "present must be at least 0"),
        ("present", (0, 0), 1e9, "more than all"),
        ("values_seen", (2, 5), 1.0, "declared"),
        ("values_seen", (0, 5), 0.0, "declared"),
        ("total", (0,), 1e200, "weight of rows"),
    ],
)
def test_states_that_no_rows_lead_to_are_rejected(field: str, at: Any, value: float, word: str) -> None:
    X, y, w = make_rows(40, 2, seed=7)
    X[:, 600] = 0.0
    bank = taught(D, X, y, w)
    assert bank.state is not None
    array = getattr(bank.state, field).copy()
    array[at] = value
    with pytest.raises(ValueError, match=word):
        bank.validate(bank.state._replace(**{field: array}))


def test_wild_values_and_classes_that_were_never_seen_give_finite_scores() -> None:
    rng = np.random.default_rng(8)
    X = np.zeros((100, D))
    X[:, :20] = rng.choice([0.0, 0.0, 1e-90, -1e100, 1e100, 3.0], size=(100, 20))
    y, w = rng.integers(2, size=100), rng.choice([1e-300, 1.0, 1e9], size=100)
    for labels in (y, np.ones(100, dtype=np.intp)):
        bank = NaiveBayesBank(3).start(D, 3, rng=0)
        assert np.isfinite(bank.scores_then_learn(X, labels, w)).all()
        assert np.isfinite(bank.scores(-X)).all()
        assert bank.state is not None
        bank.validate(bank.state)
