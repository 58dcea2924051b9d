"""Weights learned from late labels, against an independent implementation and plain properties."""

from typing import Any

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from bayesvote import JointLogistic
from bayesvote.core.checks import Array, Labels
from bayesvote.model import decided
from bayesvote.weighting import drifting
from bayesvote.weighting.threshold import Threshold
from horizons.reference import Reference

NO_LABELS, NO_WEIGHTS = np.zeros(0, dtype=np.intp), np.zeros(0)


def stream(n: int, m: int, seed: int = 0) -> tuple[Array, Labels]:
    """Losses (n, 2, m) of members of different skill, whose best one changes in the middle, and labels."""
    rng = np.random.default_rng(seed)
    y = rng.integers(0, 2, n)
    skill = np.linspace(-0.5, 1, m) * np.where(np.arange(n)[:, None] < n // 2, 1, -1)
    margins = np.tanh(skill * (2 * y[:, None] - 1) + rng.standard_normal((n, m)))
    g = (1 - margins) / 2
    return np.stack((1 - g, g), axis=1), y


def taught(weighter: JointLogistic, G: Array, y: Labels, delay: int, now: Array) -> tuple[list[float], Any]:
    """Predict row t, then learn row t - delay from its forecast; ``now`` are its losses when the label comes."""
    state, kept, found = weighter.init(G.shape[2]), [], []
    for t in range(len(y)):
        losses, forecast = weighter.forecast(state, G[t : t + 1])
        found.append(float(np.exp(-losses[0, 1])))
        kept.append(forecast)
        if t >= delay:
            row = slice(t - delay, t - delay + 1)
            state = weighter.advance_late(state, G[row], y[row], np.ones(1), kept[t - delay], now[row])[1]
    return found, state


@pytest.mark.parametrize("delay", [0, 1, 30, 100])
@pytest.mark.parametrize(
    "weighter",
    [drifting(), drifting(burst=0), drifting(burst=5), JointLogistic((2.0, 50.0), (0.98, 1.0), 0.9, burst=3)],
)
def test_late_labels_are_learned_as_by_the_reference(weighter: JointLogistic, delay: int) -> None:
    (G, y), (now, _) = stream(250, 4), stream(250, 4, seed=1)
    reference, kept, expected = Reference(weighter, 4), [], []
    for t in range(len(y)):
        chance, forecast = reference.predict(1 - 2 * G[t, 1])
        expected.append(chance)
        kept.append(forecast)
        if t >= delay:
            reference.learn(kept[t - delay], int(y[t - delay]), 1 - 2 * now[t - delay, 1])
    found, state = taught(weighter, G, y, delay, now)
    np.testing.assert_allclose(found, expected, rtol=1e-8)
    np.testing.assert_allclose(state.evidence, reference.evidence, rtol=1e-8)
    np.testing.assert_allclose(state.means, reference.means, rtol=1e-7, atol=1e-9)
    assert int(state.horizon[0]) == delay
    weighter.validate(state)


def test_a_label_that_comes_at_once_is_learned_as_ever() -> None:
    G, y = stream(120, 3)
    weighter = drifting()
    said, state = taught(weighter, G, y, 0, G)
    out, expected = weighter.advance(weighter.init(3), G, y.astype(np.intp), np.ones(len(y)))
    np.testing.assert_array_equal(said, np.exp(-out[:, 1]))
    for half in (slice(4), slice(4, 8)):
        np.testing.assert_array_equal(state.means[half], expected.means)
        np.testing.assert_array_equal(state.evidence[half], expected.evidence)


def test_interleaved_rows_are_learned_as_one_by_one() -> None:
    (G, y), (now, _) = stream(90, 3), stream(90, 3, seed=1)
    weighter, delay = drifting(), 30
    found, expected = taught(weighter, G, y, delay, now)
    state, kept, said = weighter.init(3), np.empty((0, weighter.n_log_likelihoods(2))), []
    for first in range(0, 90, delay):
        rows = np.arange(first, first + delay)
        order = np.stack((rows, rows - delay), axis=1).reshape(-1)
        asked = np.tile([True, False], delay)[order >= 0]
        order = order[order >= 0]
        late = np.empty((len(order), kept.shape[1]))
        late[~asked] = kept[order[~asked]]
        given = y[order].astype(np.intp), np.where(asked, 0.0, 1.0), late, now[order]
        out, state = weighter.advance_late(state, G[order], *given)
        kept = np.concatenate((kept, late[asked]))
        said += np.exp(-out[asked, 1]).tolist()
    assert said == found
    for one, other in zip(state, expected, strict=True):
        np.testing.assert_array_equal(one, other)


def test_drifting_weights_go_back_to_the_prior_with_the_horizon() -> None:
    G, y = stream(400, 3)
    weighter = JointLogistic(1.0, 0.99)
    state = taught(weighter, G, y, 0, G)[1]
    later, prior = state._replace(horizon=np.array([100])), weighter.scale / 3
    kept = 0.99**100
    np.testing.assert_allclose(weighter.mean(later), prior + kept * (weighter.mean(state) - prior))
    expected = kept**2 * weighter.variance(state) + 1 - kept**2
    np.testing.assert_allclose(weighter.variance(later), expected)


def test_posteriors_for_two_horizons() -> None:
    G, y = stream(100, 3)
    weighter, y = drifting(), y.astype(np.intp)
    state = weighter.advance_near(weighter.init(3), G[:50], y[:50], np.ones(50))[1]
    assert len(state.means) == 8
    near = weighter.advance(weighter.init(3), G[:50], y[:50], np.ones(50))[1]
    np.testing.assert_array_equal(state.means[:4], near.means)  # one half learns, the other does not
    np.testing.assert_array_equal(state.means[4:], weighter.init(3).means)
    assert not np.any(state.evidence)
    forecast = weighter.forecast(state, G[50:])[1]
    after = weighter.advance_late(state, G[50:], y[50:], np.ones(50), forecast, G[50:])[1]
    assert np.all(after.samples[4:6] == 50)
    assert np.all(after.samples[:2] == 100)
    weighter.validate(after)


def check_threshold(losses: Array, y: Labels, w: Array) -> int:
    """Compare a threshold with counting the mistakes of every factor row by row; return how many factors were used."""
    factors = np.log([1.0, 1.25, 1.5, 2.0, 3.0, 5.0, 10.0, 1000.0])
    threshold = Threshold.start(losses.shape[1])
    mistakes, counts, used = np.zeros((2, len(factors))), np.zeros(losses.shape[1]), set()
    fades = np.array([[1 - 1 / 50_000], [1 - 1 / 2_500]])
    for t in range(len(y)):
        answered = losses[t : t + 1].copy()
        decision = threshold.answer(answered)
        common = int(counts.argmax())
        rivals = losses[t].copy()
        rivals[common] = np.inf
        other = int(np.flatnonzero(rivals == rivals.min())[-1])  # a tie goes to the last label, as in rule (12)
        long = np.where(mistakes[1] <= mistakes[1, 0], mistakes[0], np.inf)
        best = int(long.argmin())
        factor = best if long[0] - long[best] > np.sqrt(long[0]) else 0
        used.add(factor)
        lead = losses[t, common] - losses[t, other]
        answers_other = (lead >= factors) & (lead > 0 or other > common)
        assert decided(answered)[0] == (other if answers_other[factor] else common)
        wrong = np.where(answers_other, other, common) != y[t]
        mistakes, counts = fades * mistakes + w[t] * wrong, fades[0, 0] * counts
        counts[y[t]] += w[t]
        threshold.learn(answered, y[t : t + 1], w[t : t + 1], decision)
        np.testing.assert_allclose(threshold.mistakes, mistakes, rtol=1e-12)
        np.testing.assert_allclose(threshold.counts, counts, rtol=1e-12)
    threshold.check()
    return len(used)


def rare_labels(n: int, n_classes: int, rng: np.random.Generator) -> Labels:
    return (rng.random(n) < 0.25).astype(np.intp) * rng.integers(1, n_classes, n)


@given(seed=st.integers(0, 100), n_classes=st.integers(2, 4))
def test_the_threshold_is_the_best_in_hindsight(seed: int, n_classes: int) -> None:
    rng = np.random.default_rng(seed)
    y = rare_labels(300, n_classes, rng)
    check_threshold(-np.log(rng.dirichlet(np.ones(n_classes), 300)), y, np.ones(300))


@pytest.mark.parametrize("n_classes", [2, 4])
@pytest.mark.parametrize("swap", [False, True])
def test_the_threshold_of_ties_and_of_weighted_rows(n_classes: int, swap: bool) -> None:
    """Leads of 0 and of just the factors; the commonest label is the first or the last one."""
    rng = np.random.default_rng(n_classes)
    y = rare_labels(1500, n_classes, rng)
    leads = rng.choice(np.log([1.0, 1.25, 1.5, 2.0, 3.0]), (1500, n_classes))
    losses, w = leads - leads[:, :1] * (rng.random((1500, 1)) < 0.5), rng.choice([0.25, 1.0, 3.0], 1500)
    assert check_threshold(losses, n_classes - 1 - y if swap else y, w) > 1


def test_the_threshold_answers_the_commonest_label_where_nothing_is_known() -> None:
    rng = np.random.default_rng(0)
    y = (rng.random(2000) < 0.3).astype(np.intp)
    losses = -np.log(rng.dirichlet((1.0, 1.0), 2000))  # has nothing to do with the labels
    threshold = Threshold.start(2)
    decisions = threshold.answer(losses[:1000].copy())
    threshold.learn(losses[:1000].copy(), y[:1000], np.ones(1000), decisions)
    answered = losses[1000:].copy()
    threshold.answer(answered)
    said = answered.argmin(axis=1)
    assert np.mean(said != y[1000:]) <= np.mean(y[1000:]) + 0.01
    assert np.mean(losses[1000:].argmin(axis=1) != y[1000:]) > 0.45
