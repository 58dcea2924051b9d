"""Mistakes known from other libraries, and each rule of the papers worked out by hand."""

import numpy as np
import pytest

from bayesvote.boosting import OGBoost, OSBoost, OzaBoost
from bayesvote.boosting._booster import Booster
from bayesvote.boosting._state import BoosterState
from bayesvote.core.checks import Array


def state_of(model: Booster) -> BoosterState:
    assert model.state is not None
    return model.state


def with_scores(model: Booster, scores: list[float]) -> BoosterState:
    """Make Perceptrons that score the row [1] so."""
    state = state_of(model.start(1, rng=0))
    state.weights[0, 0] = 0.0
    state.weights[0, 1] = scores
    return state


ROW = np.ones((1, 1))


def test_oza_a_member_wrong_more_often_than_not_does_not_vote_for_its_label() -> None:
    # river gives such a member the weight 1.
    model = OzaBoost(n_members=1)
    with_scores(model, [0.5]).record[0] = [[1.0], [3.0]]
    losses = model.decide(ROW)
    assert losses[0, 1] == pytest.approx(np.log(3))  # the loss of label 1, for which the member is
    assert losses[0, 0] == pytest.approx(-np.log(3))


def test_oza_votes_with_the_log_odds_of_being_right() -> None:
    model = OzaBoost(n_members=3)
    with_scores(model, [0.5, -0.5, 2.0]).record[0] = [[4.0, 2.0, 0.0], [1.0, 1.0, 0.0]]
    assert model.decide(ROW)[0, 0] == pytest.approx(np.log(4) - np.log(2))


def test_oza_a_member_never_wrong_has_a_finite_vote() -> None:
    model = OzaBoost(n_members=1)
    with_scores(model, [0.5]).record[0] = [[5.0], [0.0]]
    assert model.decide(ROW)[0, 0] == pytest.approx(np.log(1e10))


@pytest.mark.parametrize("weight", [0.2, 1.0, 7.0])
def test_oza_draws_poisson_of_the_rate_and_not_of_one(weight: float) -> None:
    # river's ADWIN boosting draws Poisson(1) whatever the rate is.
    n = 3000
    model = OzaBoost("naive_bayes", n_members=1).start(2, rng=1)
    X = np.random.default_rng(1).normal(size=(n, 2))
    model.decide_then_learn(X, X[:, 0] > 0, np.full(n, weight))
    learned = state_of(model).totals.sum()
    assert abs(learned - weight * n) < 5 * np.sqrt(weight * n)


def test_oza_keeps_its_record_even_if_nothing_is_drawn() -> None:
    # A well-known implementation skips the bookkeeping when k = 0.
    model = OzaBoost(n_members=3)
    state = with_scores(model, [-0.5, -0.5, 0.5])
    before = state.weights.copy()
    model.decide_then_learn(ROW, [1], [1e-12])
    np.testing.assert_array_equal(state.weights, before)  # so k = 0 for all
    # Wrong at the rate w: N / (2 w) = 1/2. Wrong at w / 2: N / (2 w / 2) = 1. Right, at w / 2.
    np.testing.assert_allclose(state.record[0], [[0.0, 0.0, 0.5e-12], [1e-12, 0.5e-12, 0.0]])


def test_oza_checks_a_member_after_its_update() -> None:
    model = OzaBoost(n_members=1)
    state = with_scores(model, [-0.5])
    model.decide_then_learn(ROW, [1], [50.0])  # k is 0 with probability exp(-50)
    np.testing.assert_array_equal(state.record[0], [[50.0], [0.0]])
    np.testing.assert_allclose(state.weights[0].sum(), 1.5)  # one step, of squared length 2, was enough


def test_oza_first_member_sees_every_sample_once_and_rates_stay_below_half_of_all() -> None:
    rng = np.random.default_rng(2)
    X = rng.normal(size=(2000, 3))
    model = OzaBoost(n_members=20).start(3, rng=2)
    model.decide_then_learn(X, X[:, 0] + rng.normal(size=2000) > 0)
    record = state_of(model).record[0]
    assert record[:, 0].sum() == pytest.approx(2000.0)
    assert np.all(np.isfinite(record))
    np.testing.assert_allclose(record.sum(axis=0), 2000.0, rtol=0.2)  # each half is driven to N / 2


@pytest.mark.parametrize("weight", [0.25, 1.0, 3.0])
@pytest.mark.parametrize("model", [OSBoost(n_members=1), OGBoost(n_members=1)])
def test_a_perceptron_honours_fractional_weights(model: Booster, weight: float) -> None:
    # MOA's Perceptron ignores them.
    state = state_of(model.start(3, rng=3))
    before = state.weights[0, :, 0].copy()
    x = np.array([0.5, -2.0, 1.0])
    y = int(before @ [1.0, *x] < 0)  # a mistake
    model.decide_then_learn(x[None], [y], [weight])
    first = 1.0 if isinstance(model, OSBoost) else 0.5
    expected = before + first * weight * (2 * y - 1) * np.array([1.0, *x])
    np.testing.assert_allclose(state.weights[0, :, 0], expected, rtol=1e-14)


@pytest.mark.parametrize("model", [OSBoost(n_members=1), OGBoost(n_members=1), OzaBoost(n_members=1)])
def test_a_perceptron_takes_shorter_steps_with_time_but_in_ogboost(model: Booster) -> None:
    state = with_scores(model, [0.5])
    model.decide_then_learn(np.ones((3, 1)), [1, 1, 1])  # it is right
    model.decide_then_learn(ROW, [0], [20.0])
    # On the fourth row. OzaBoost's is right after one step; OGBoost's weight is half the sample's, its step 1.
    assert state.weights[0, 0, 0] == {OSBoost: -20.0 / 2, OGBoost: -20.0 / 2, OzaBoost: -1.0 / 2}[type(model)]


def noisy(n: int) -> tuple[Array, Array]:
    rng = np.random.default_rng(4)
    X = rng.normal(size=(n, 5))
    return X, (X[:, 0] + rng.normal(size=n) > 0).astype(np.float64)


def test_smooth_from_equal_perceptrons_stays_one_perceptron_for_ever() -> None:
    X, y = noisy(2000)
    many, one = (OSBoost(n_members=m).start(5, rng=4) for m in (30, 1))
    for model in (many, one):
        state_of(model).weights[:] = 0.0
        model.decide_then_learn(X, y)
    np.testing.assert_array_equal(state_of(many).weights[0], np.repeat(state_of(one).weights[0], 30, axis=1))


def test_hence_perceptrons_start_from_different_weights_within_one() -> None:
    X, y = noisy(2000)
    model = OSBoost(n_members=200).start(5, rng=4)
    weights = state_of(model).weights
    assert weights.min() < -0.98
    assert weights.max() > 0.98
    assert np.abs(weights).max() <= 1.0
    assert abs(weights.mean()) < 0.06
    model.decide_then_learn(X, y)
    assert len(np.unique(weights[0].T, axis=0)) > 100


def test_smooth_weight_by_hand() -> None:
    # Scores 1, 0.5, cut off at 1: z = 2.5 - 3 theta before the fourth, which is wrong and moves by w.
    model = OSBoost(n_members=4, gamma=0.2)
    state = with_scores(model, [1.0, 0.5, 3.0, -0.25])
    losses = model.decide_then_learn(ROW, [1])
    assert losses[0, 1] == pytest.approx(-(1.0 + 0.5 + 1.0 - 0.25) / 4)
    moved = state.weights[0, 0]
    theta = 0.2 / 2.2
    np.testing.assert_allclose(moved, [0.0, 0.0, 0.0, 0.8 ** ((2.5 - 3 * theta) / 2)], rtol=1e-14)


def test_smooth_weight_is_at_most_one() -> None:
    model = OSBoost(n_members=3)
    state = with_scores(model, [-1.0, -1.0, -0.5])
    model.decide_then_learn(ROW, [1])
    np.testing.assert_array_equal(state.weights[0, 0], 1.0)


def test_smooth_scores_are_those_before_the_update() -> None:
    # The first member is wrong by 0.5 and would be right after its step; z must go down all the same.
    model = OSBoost(n_members=2)
    state = with_scores(model, [-0.5, -0.1])
    model.decide_then_learn(ROW, [1])
    assert state.weights[0, 0, 1] == 1.0


def test_smooth_experts_are_the_first_members_together() -> None:
    model = OSBoost(n_members=3, variant="expert")
    state = with_scores(model, [1.0, -1.5, -0.5])  # sums 1, 0, -0.5; a sum of 0 says label 1
    losses = model.decide_then_learn(ROW, [0], [2.0])
    assert losses[0, 0] == pytest.approx(1 / 3)
    np.testing.assert_array_equal(state.record[0], [[2.0, 2.0, 0.0]])
    state.weights[0, 0], state.weights[0, 1] = 0.0, [1.0, -1.5, -0.5]
    assert model.decide(ROW)[0, 0] == pytest.approx((0.25 + 0.25 - 1.0) / 1.5)


def test_smooth_convex_weights_by_hand() -> None:
    model = OSBoost(n_members=2, variant="convex")
    state = with_scores(model, [0.4, -0.4])
    model.decide_then_learn(ROW, [1], [0.5])
    # F = 0 < theta: alpha = (1/2, 1/2) + 0.5 (0.4, -0.4), in the simplex as it is.
    np.testing.assert_allclose(state.record[0], [[0.7, 0.3]])
    state.weights[0, 0], state.weights[0, 1] = 0.0, [1.0, 1.0]
    model.decide_then_learn(ROW, [1])
    np.testing.assert_allclose(state.record[0], [[0.7, 0.3]])  # a margin above theta asks for no step


def test_gradient_weight_by_hand() -> None:
    model = OGBoost(n_members=3)
    state = with_scores(model, [1.0, 4.0, -9.0])  # F = 2 before the third, which stays wrong
    losses = model.decide_then_learn(ROW, [1])
    assert losses[0, 1] == pytest.approx(-1.0)
    w = 1 / (1 + np.exp(2.0))
    np.testing.assert_allclose(state.weights[0, 0], [0.0, 0.0, w], rtol=1e-14)
    np.testing.assert_allclose(state.record[0], [[0.0, 0.0, w]], rtol=1e-14)


def test_gradient_selector_uses_its_member_of_least_error() -> None:
    model = OGBoost(n_members=2, pool=2)
    with_scores(model, [0.5, -0.5, 0.25, -0.25]).record[0] = [[2.0, 1.0, 3.0, 3.0]]
    assert model.decide(ROW)[0, 0] == pytest.approx(-0.5 + 0.25)  # of equals, the first
