"""Weights that drift, against a plain Kalman filter and the joint normal of the weights at all times."""

from typing import Any

import numpy as np
import pytest
from scipy.special import ndtr, softmax
from scipy.stats import multivariate_normal

from bayesvote import Ensemble, NaiveBayesBank
from bayesvote.core.checks import Array
from bayesvote.weighting import JointGaussian, JointState

PAIRS = ((5.0, 1.0), (80.0, 0.9), (20.0, 0.5))


def drifting(discount: float = 1.0, theta: float = 0.7) -> JointGaussian:
    precision, persistence = zip(*PAIRS, strict=True)
    return JointGaussian(precision, theta, persistence=persistence, discount=discount)


def stream(n: int, m: int, seed: int = 0) -> tuple[Array, Array]:
    """Losses of correlated members, and sample weights."""
    rng = np.random.default_rng(seed)
    g = np.clip(0.3 + 0.3 * rng.standard_normal((n, 1)) + 0.2 * rng.standard_normal((n, m)), 0, 1)
    return g, rng.uniform(0.5, 2.0, n)


def at_all_times(g: Array, w: Array, precision: float, rho: float, theta: float) -> tuple[Array, Array, float]:
    """Mean, covariance and log-evidence of the weights after the last row, from the weights at all times at once."""
    x, (n, m) = 1 - 2 * g, g.shape
    correlation = rho ** np.abs(np.subtract.outer(np.arange(n + 1.0), np.arange(n + 1.0)))
    prior = np.kron(correlation, np.eye(m)) / precision
    design = np.zeros((n, (n + 1) * m))
    for t in range(n):
        design[t, t * m : (t + 1) * m] = x[t]
    noise = np.diag(1 / (theta * w))
    joint = design @ prior @ design.T + noise
    gain = np.linalg.solve(joint, design @ prior).T
    mean = 1 / m + gain @ (1 - x.mean(axis=1))
    covariance = prior - gain @ design @ prior
    evidence = multivariate_normal(x.mean(axis=1), joint).logpdf(np.ones(n))
    flat = multivariate_normal(np.zeros(n), noise).logpdf(np.zeros(n))
    return mean[-m:], covariance[-m:, -m:], float(evidence - flat)


def kalman(
    g: Array, w: Array, precision: float, rho: float, theta: float, discount: float
) -> tuple[Array, Array, float]:
    """Predict and correct, as textbooks have it."""
    m = g.shape[1]
    mean, covariance, evidence = np.full(m, 1 / m), np.eye(m) / precision, 0.0
    for x, weight in zip(1 - 2 * g, w, strict=True):
        innovation, variance = 1 - x @ mean, x @ covariance @ x + 1 / (theta * weight)
        gain = covariance @ x / variance
        mean = mean + gain * innovation
        covariance = covariance - np.outer(gain, x) @ covariance
        log_density = -0.5 * (np.log(variance * theta * weight) + innovation**2 / variance)
        evidence = discount * evidence + log_density
        mean = rho * mean + (1 - rho) / m
        covariance = rho**2 * covariance + (1 - rho**2) * np.eye(m) / precision
    return mean, covariance, evidence


@pytest.mark.parametrize("m", [1, 4, 6])
@pytest.mark.parametrize("n", [1, 40])
def test_posterior_and_evidence_are_those_of_the_weights_at_all_times(m: int, n: int) -> None:
    g, w = stream(n, m)
    weighter = drifting()
    state = weighter.update(weighter.init(m), g, w)
    for k, (precision, rho) in enumerate(PAIRS):
        mean, covariance, evidence = at_all_times(g, w, precision, rho, 0.7)
        assert state.means[k] == pytest.approx(mean, rel=1e-9)
        assert np.tril(state.covariances[k]) == pytest.approx(np.tril(covariance), rel=1e-8, abs=1e-12)
        assert state.evidence[k] == pytest.approx(evidence, rel=1e-9)


@pytest.mark.parametrize("discount", [1.0, 0.99, 0.9])
def test_it_is_a_kalman_filter_and_a_mixture(discount: float) -> None:
    m, n = 7, 700
    g, w = stream(n, m, seed=1)
    weighter = drifting(discount)
    state = weighter.update(weighter.init(m), g, w)
    parts = [kalman(g, w, precision, rho, 0.7, discount) for precision, rho in PAIRS]
    means, covariances = np.array([part[0] for part in parts]), np.array([part[1] for part in parts])
    assert state.means == pytest.approx(means, rel=1e-8)
    assert np.tril(state.covariances) == pytest.approx(np.tril(covariances), rel=1e-8, abs=1e-12)
    shares = softmax([part[2] for part in parts])
    assert weighter.mean(state) == pytest.approx(shares @ means, rel=1e-7)
    spread = np.diagonal(covariances, axis1=1, axis2=2)
    variance = shares @ (spread + means**2) - (shares @ means) ** 2
    assert weighter.variance(state) == pytest.approx(variance, rel=1e-6)
    for end, probability in zip(weighter.interval(state), (0.025, 0.975), strict=True):
        assert shares @ ndtr((end - means) / np.sqrt(spread)) == pytest.approx(np.full(m, probability), rel=1e-5)
    draws = weighter.sample(state, 100_000, rng=0)
    assert np.all(np.abs(draws.mean(axis=0) - shares @ means) < 5 * np.sqrt(variance / 100_000))
    assert draws.var(axis=0) == pytest.approx(variance, rel=0.03)
    assert weighter.probability_best(state).sum() == pytest.approx(1)
    ages = np.arange(n - 1.0, -1, -1)
    assert weighter.effective_samples(state) == pytest.approx(
        np.full(m, shares @ [rho**ages @ w for _, rho in PAIRS]), rel=1e-6
    )


def test_without_drift_it_is_the_sum() -> None:
    """A discount makes filters of it; with persistence 1 their posteriors are those of the sums."""
    g, w = stream(1500, 9, seed=2)
    added, filtered = JointGaussian(), JointGaussian(discount=1 - 1e-12)
    one, other = added.update(added.init(9), g, w), filtered.update(filtered.init(9), g, w)
    assert isinstance(one, JointState)
    awake = one.behind == 0
    assert other.means[awake] == pytest.approx(one.means[awake], rel=1e-9)
    assert np.tril(other.covariances[awake]) == pytest.approx(np.tril(one.covariances[awake]), rel=1e-8, abs=1e-13)
    assert filtered.mean(other) == pytest.approx(added.mean(one), rel=1e-8)
    assert filtered.effective_samples(other) == pytest.approx(added.effective_samples(one))


def test_it_follows_a_change_and_comes_back_to_the_prior() -> None:
    """The good member turns bad; and members that are silent for long are trusted as at the start."""
    weighter = JointGaussian((100.0, 100.0), persistence=(1.0, 0.99), discount=0.99)
    first, then = np.tile([0.1, 0.9], (2000, 1)), np.tile([0.9, 0.1], (60, 1))
    state = weighter.update(weighter.init(2), first)
    assert np.diff(weighter.mean(state)) < 0
    state = weighter.update(state, then)
    assert np.diff(weighter.mean(state)) > 0
    assert softmax(state.evidence)[1] > 0.99
    silent = weighter.update(state, np.full((3000, 2), np.nan))
    assert silent.means[1] == pytest.approx([0.5, 0.5], abs=1e-9)
    assert np.tril(silent.covariances[1]) == pytest.approx(np.eye(2) / 100, abs=1e-12)
    assert silent.means[0] == pytest.approx(state.means[0])


@pytest.mark.parametrize("m", [3, 43])
def test_chunks_change_nothing(m: int) -> None:
    g, w = stream(600, m, seed=3)
    w[::7] = 0.0
    weighter = drifting(0.99)
    whole = weighter.update(weighter.init(m), g, w)
    for size in (1, 50):
        state = weighter.init(m)
        for t in range(0, len(g), size):
            state = weighter.update(state, g[t : t + size], w[t : t + size])
        for one, two in zip(state, whole, strict=True):
            np.testing.assert_array_equal(one, two)


def test_rounding_does_not_pile_up() -> None:
    """Copies of members, whose differences are never seen, over many rows: still what the sums say, and definite."""
    g, _ = stream(40_000, 3, seed=4)
    g = np.repeat(g, 4, axis=1)
    added, filtered = JointGaussian((10.0, 1000.0)), JointGaussian((10.0, 1000.0), discount=0.99)
    one, other = added.update(added.init(12), g), filtered.update(filtered.init(12), g)
    filtered.validate(other)
    assert np.tril(other.covariances[0]) == pytest.approx(np.tril(one.covariances[0]), abs=1e-12)
    assert other.means[0] == pytest.approx(one.means[0], abs=1e-9)


def test_what_depends_on_the_order_is_neither_merged_nor_unlearned() -> None:
    weighter = drifting()
    state = weighter.init(2)
    with pytest.raises(TypeError, match=r"JointGaussian\.merge: persistence and discount must be 1, as weights that"):
        weighter.merge(state, state)
    with pytest.raises(TypeError, match=r"JointGaussian\.unlearn: persistence and discount must be 1, as weights that"):
        weighter.unlearn(state, [0.1, 0.2])


@pytest.mark.parametrize(
    ("parameters", "message"),
    [
        ({"persistence": 0.0}, "persistence must be a finite number above 0"),
        ({"persistence": 1.5}, r"persistence must be in \(0, 1\]"),
        ({"persistence": ()}, "persistence must hold at least one number"),
        ({"persistence": (0.9, 0.8)}, "must be of the same length, or one of them a single number, got 4 and 2"),
        ({"discount": 0.0}, "discount must be a finite number above 0"),
        ({"discount": 0.9, "forgetting": 0.9}, "forgetting must be 1 for weights that drift"),
    ],
)
def test_parameters_are_checked(parameters: dict[str, Any], message: str) -> None:
    with pytest.raises(ValueError, match=message):
        JointGaussian(**parameters)


def test_a_state_that_no_stream_leads_to_is_refused() -> None:
    weighter = drifting()
    g, w = stream(50, 5)
    state = weighter.update(weighter.init(5), g, w)
    weighter.validate(state)
    skewed = state.covariances.copy()
    skewed[0, 1, 2] += 1.0
    for wrong, message in (
        (state._replace(means=state.means + 30), "within reach"),
        (state._replace(covariances=2000 * state.covariances), "wider"),
        (state._replace(covariances=skewed), "symmetric"),
        (state._replace(evidence=state.evidence * 0 + 1), "at most 0"),
    ):
        with pytest.raises(ValueError, match=message):
            weighter.validate(wrong)


def test_an_ensemble_that_drifts_does_not_count_its_rows() -> None:
    X, y = np.random.default_rng(0).normal(size=(50, 3)), np.arange(50) % 2
    for weighter, rows in ((drifting(), None), (JointGaussian(discount=0.9), 50)):
        model = Ensemble(NaiveBayesBank(4), weighter).start(3, rng=0)
        model.decide_then_learn(X, y)
        assert model.about()["rows_learned"] == rows
