"""Standardised rows, against plain means and deviations of all rows so far."""

from typing import Any

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from scipy.sparse import csr_array

from bayesvote import BayesianEnsembleClassifier, Frozen, NaiveBayesBank, PerceptronBank, Scaled, Union
from bayesvote.core.checks import Array
from bayesvote.core.rows import Rows, as_rows
from bayesvote.members import LinearBank, scaled
from bayesvote.members.base import Bank


class Seen(PerceptronBank):
    """Keeps the rows that it is shown."""

    rows: Array

    def advance(self, rows: Rows, y: Any, w: Any) -> Array:
        self.rows = rows.todense()
        return super().advance(rows, y, w)


def standardised(X: Any, w: Any = None) -> Array:
    n, d = X.shape
    inner = Seen(1, max_features=None)
    bank = Scaled(inner).start(d)
    bank.advance(*bank.checked_labelled(X, np.zeros(n, dtype=int), w))  # the door would learn by chunks
    return inner.rows


def expected(values: Array, t: int) -> float:
    """Of a value t, from all values up to it and itself, without running sums."""
    seen = values[: t + 1]
    seen = seen[~np.isnan(seen)]
    others = seen[seen != 0]
    part = len(others) / len(seen)
    share = min(max(2 * part - 0.5, 0.0), 1.0)
    centre = share * seen.mean()
    counted = np.concatenate([np.ones(len(others)), np.full(len(seen) - len(others), share)])
    squares = np.concatenate([(others - centre) ** 2, np.full(len(seen) - len(others), centre**2)])
    spread = np.sqrt(np.average(squares, weights=counted)) if counted.sum() else 0.0
    return float((values[t] - centre) / spread) if spread > 0 else 0.0


def test_features_that_are_never_zero_get_mean_0_and_deviation_1() -> None:
    X = np.random.default_rng(0).normal([3.0, -1000.0, 1e-9], [1.0, 10.0, 1e-12], (400, 3))
    Z = standardised(X)
    for t in (1, 2, 50, 399):
        seen = X[: t + 1]
        np.testing.assert_allclose(Z[t], (X[t] - seen.mean(0)) / seen.std(0), rtol=1e-6)
    np.testing.assert_array_equal(Z[0], 0.0)


@settings(max_examples=60)
@given(st.lists(st.sampled_from([0.0, 0.0, 1.0, -2.0, 5.5, 5.5, 1e6, np.nan]), min_size=1, max_size=30))
def test_every_value_is_what_the_words_say(values: list[float]) -> None:
    X = np.array(values)[:, None]
    Z = standardised(X)[:, 0]
    for t, x in enumerate(values):
        if np.isnan(x):
            assert Z[t] == 0.0  # the centre
        else:
            np.testing.assert_allclose(Z[t], expected(X[:, 0], t), rtol=1e-9, atol=1e-9)


def test_indicators_that_are_mostly_zero_stay_as_they_are_and_rows_sparse() -> None:
    rng = np.random.default_rng(1)
    X = (rng.random((300, 40)) < 0.1).astype(float)
    X[0] = 0.0  # or a feature would be seen to be 1 in every row so far
    X[1:8] = 0.0
    np.testing.assert_array_equal(standardised(X), X)
    inner = Seen(1, max_features=None)
    rows = Scaled(inner).start(40).standardised(as_rows("test", csr_array(X)))
    assert len(rows.values) == np.count_nonzero(X)


def test_sparse_rows_are_filled_where_a_feature_is_centred() -> None:
    rng = np.random.default_rng(2)
    density = np.linspace(0.02, 1.0, 30)
    X = np.where(rng.random((500, 30)) < density, rng.normal(5.0, 2.0, (500, 30)), 0.0)
    X[rng.random(X.shape) < 0.02] = np.nan
    w = rng.choice([0.0, 1.0], size=500)
    np.testing.assert_array_equal(standardised(csr_array(X), w), standardised(X, w))


def test_linear_members_score_and_learn_a_missing_value_as_the_centre() -> None:
    rng = np.random.default_rng(5)
    X, y = rng.normal(3.0, 2.0, (80, 3)), np.arange(80) % 2
    X[rng.random(X.shape) < 0.2] = np.nan
    for kind in (PerceptronBank, LinearBank):
        for rows in (X, csr_array(X)):
            bank, plain = Scaled(kind(3, max_features=None)).start(3, rng=0), kind(3, max_features=None).start(3, rng=0)
            scores = bank.scores_then_learn(rows, y)
            assert np.isfinite(scores).all()
            np.testing.assert_array_equal(scores, plain.scores_then_learn(standardised(X), y))
        assert np.isnan(plain.scores([[np.nan, 1.0, 1.0]])).all()


def test_a_row_is_seen_in_the_same_way_whether_it_is_learned_or_not_and_whatever_its_weight() -> None:
    X, y = np.random.default_rng(3).normal(7.0, 2.0, (60, 4)), np.arange(60) % 2
    bank = Scaled(PerceptronBank(3)).start(4, rng=0)
    bank.scores_then_learn(X[:50], y[:50])
    before = bank.scores(X[50:51])
    for weight in (0.0, 3.0):
        np.testing.assert_array_equal(bank.scores_then_learn(X[50:51], y[50:51], [weight]), before)
    state = bank.state
    assert state is not None
    assert state[0].rows[0] == 51


@pytest.mark.parametrize("size", [1e-170, 1e-140, 1e99])
def test_numbers_of_any_size_stay_finite(size: float) -> None:
    Z = standardised(np.random.default_rng(4).normal(0.0, size, (50, 2)))
    assert np.all(np.isfinite(Z))
    assert np.abs(Z).max() < 10


def test_frozen_members_keep_their_scales() -> None:
    X, y = np.random.default_rng(5).normal(7.0, 2.0, (60, 4)), np.arange(60) % 2
    bank = Scaled(PerceptronBank(3)).start(4, rng=0)
    bank.scores_then_learn(X, y)
    inside = Scaled(Frozen(bank.bank))
    inside.install(bank.state, bank.shape)  # type: ignore[arg-type]
    before = inside.state[0].rows.copy()  # type: ignore[index]
    inside.scores_then_learn(X, y)
    np.testing.assert_array_equal(inside.state[0].rows, before)  # type: ignore[index]


def kinds(bank: Bank[Any]) -> list[str]:
    return [type(part).__name__ for part in bank.parts]


def test_linear_members_alone_are_scaled_also_within_unions() -> None:
    bank = scaled(Union([PerceptronBank(2), Union([NaiveBayesBank(2), PerceptronBank(3)])]))
    assert kinds(bank) == ["Scaled", "Union"]
    assert kinds(bank.parts[1]) == ["NaiveBayesBank", "Scaled"]
    assert bank.n_members == 7


def test_the_estimator_scales_named_members_unless_told_not_to() -> None:
    X, y = np.random.default_rng(6).normal(0.0, [1.0, 1e6], (300, 2)), np.zeros(300, dtype=int)
    y[X[:, 0] > 0] = 1
    scores = {
        scale: BayesianEnsembleClassifier("perceptron", scale=scale, max_features=None, random_state=0)
        .fit(X[:200], y[:200])
        .score(X[200:], y[200:])
        for scale in (True, False)
    }
    assert scores[True] > 0.9 > scores[False]
    plain = BayesianEnsembleClassifier(PerceptronBank(3), random_state=0).fit(X, y)
    assert type(plain.model_.bank) is PerceptronBank  # what is given is taken as it is


@pytest.mark.parametrize(
    ("name", "value", "words"),
    [
        ("rows", -1.0, "rows must be at least 0"),
        ("nonzero", 0.5, "must be whole numbers"),
        ("nonzero", -1.0, "at least 0"),
        ("missing", 100.0, "more than all rows"),
        ("squares", -1.0, "squares must be at least 0"),
        ("nonzero", 1.0, "fewer than two numbers"),
        ("mean", np.inf, "mean must be finite"),
    ],
)
def test_scales_that_no_stream_leads_to_are_refused(name: str, value: float, words: str) -> None:
    bank = Scaled(PerceptronBank(2)).start(2, rng=0)
    bank.scores_then_learn([[1.0, 2.0], [2.0, 5.0], [0.0, 1.0]], [0, 1, 0])
    state: Any = bank.state
    bank.validate(state)
    spoilt = getattr(state[0], name).copy()
    spoilt[0] = value
    with pytest.raises(ValueError, match=words):
        bank.validate((state[0]._replace(**{name: spoilt}), state[1]))


def test_members_that_were_started_by_themselves_do_not_get_rows_of_other_scales() -> None:
    bank = Scaled(PerceptronBank(2)).start(3)
    bank.bank.start(5)
    assert bank.shape is None
    with pytest.raises(ValueError, match="must be started"):
        bank.scores(np.ones((1, 5)))
    bank.bank.start(3)
    assert bank.scores(np.ones((1, 3))).shape == (1, 2)
