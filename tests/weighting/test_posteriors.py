"""Means, variances and intervals of the closed families against integrals by mpmath."""

import mpmath as mp
import numpy as np
import pytest
from scipy.stats import gamma, kstest

from bayesvote.weighting import GammaRate, GammaShape, GammaShapeRate, NumericalPosterior, SumState
from bayesvote.weighting.base import Posterior
from oracles import posteriors

COUNTS = [0.0, 1.0, 30.0, 1e4, 1e9]
TOLERANCE = 1e-10


@pytest.fixture(autouse=True)
def _precision() -> None:
    mp.mp.dps = 30


def state_of(*sums: float) -> SumState:
    total = np.array(sums)[:, None]
    return SumState(total, np.zeros_like(total))


def check(weighter: Posterior[SumState], state: SumState, oracle: posteriors.Oracle, column: int | None = None) -> None:
    pick = (0,) if column is None else (0, column)
    assert abs(float(weighter.mean(state)[pick] / oracle.mean - 1)) < TOLERANCE
    assert abs(float(weighter.variance(state)[pick] / oracle.variance - 1)) < TOLERANCE
    for end, probability in zip(weighter.interval(state, 0.95), (0.025, 0.975), strict=True):
        assert abs(float(oracle.quantile_error(float(end[pick]), probability))) < TOLERANCE


@pytest.mark.parametrize("count", COUNTS)
@pytest.mark.parametrize("mean_loss", [1e-12, 0.3, 1e3])
@pytest.mark.parametrize(("alpha", "beta"), [(1.0, 1.0), (0.1, 1e-3), (1e4, 1e5)])
def test_gamma_rate(count: float, mean_loss: float, alpha: float, beta: float) -> None:
    weighter = GammaRate(alpha, beta, 0.1)
    oracle = posteriors.gamma_rate(count, count * mean_loss, alpha, beta, 0.1)
    check(weighter, state_of(count, count * mean_loss), oracle)


@pytest.mark.parametrize("count", COUNTS)
@pytest.mark.parametrize(
    ("mean_loss", "b"), [(1e-12, 1.0), (0.3, 1.0), (1e3, 1.0), (0.3, 1e-3), (1e3, 1e-3), (0.3, 1e4)]
)
def test_gamma_shape(count: float, mean_loss: float, b: float) -> None:
    sum_log = count * (np.log(mean_loss) - 0.5)
    a = min(2.0, 1 + b)  # a weak prior around a large power would put the shape beyond any double
    weighter = GammaShape(theta=0.1, a=a, b=b, c=b)
    check(weighter, state_of(count, sum_log), posteriors.gamma_shape(count, sum_log, 0.1, a, b, b))


@pytest.mark.parametrize("count", COUNTS)
@pytest.mark.parametrize(
    ("mean_loss", "gap", "prior"),
    [
        (1e-12, 0.5, (1.0, 1.0, 1.5, 1.0)),
        (0.3, 1e-7, (1.0, 1.0, 1.5, 1.0)),  # all losses near equal: the hardest
        (0.3, 0.5, (1.0, 1.0, 1.5, 1.0)),
        (0.3, 20.0, (1.0, 1.0, 1.5, 1.0)),
        (1e3, 0.5, (1.0, 1.0, 1.5, 1.0)),
        (0.3, 0.5, (0.5, 1e-3, 0.02, 0.01)),
        (0.3, 0.5, (2.0, 1e3, 1500.0, 1000.0)),
    ],
)
def test_gamma_shape_rate(count: float, mean_loss: float, gap: float, prior: tuple[float, ...]) -> None:
    check_gamma_shape_rate(count, mean_loss, gap, prior)


@pytest.mark.parametrize(
    ("count", "mean_loss", "gap", "prior"),
    [
        (1e7, 8.87e-5, 3.28e-7, (1.707, 0.00249, 0.01803, 0.01156)),  # s must be added to the count exactly
        (1e9, 0.371, 1.82e-7, (1.546, 0.336, 87.05, 45.03)),
        (10.0, 9.32e-4, 3.89e-4, (0.837, 0.0142, 4.087, 2.247)),  # too wide for the Taylor series
    ],
)
def test_gamma_shape_rate_where_digits_are_easily_lost(
    count: float, mean_loss: float, gap: float, prior: tuple[float, ...]
) -> None:
    check_gamma_shape_rate(count, mean_loss, gap, prior)


def check_gamma_shape_rate(count: float, mean_loss: float, gap: float, prior: tuple[float, ...]) -> None:
    """``gap`` is log of the mean loss less the mean log loss: what the shape is known by."""
    p, q, r, s = prior
    sums = count, count * mean_loss, count * (np.log(mean_loss) - gap)
    weighter, state = GammaShapeRate(p, q, r, s), state_of(*sums)
    oracle = posteriors.gamma_shape_rate(*sums, p, q, r, s)
    check(weighter, state, oracle, column=0)

    # The rate is Gamma(shape s' + 1, q + sum g) given the shape: the laws of total mean and variance, in mpmath.
    s_t, Q = mp.mpf(s) + count, mp.mpf(q) + sums[1]
    mean = (oracle.mean * s_t + 1) / Q
    variance = (oracle.mean * s_t + 1 + oracle.variance * s_t**2) / Q**2
    assert abs(float(weighter.mean(state)[0, 1] / mean - 1)) < TOLERANCE
    assert abs(float(weighter.variance(state)[0, 1] / variance - 1)) < TOLERANCE


@pytest.mark.parametrize(("count", "gap"), [(1.0, 0.5), (30.0, 0.02), (30.0, 0.5), (1e9, 0.02), (1e9, 0.5)])
def test_interval_of_the_rate(count: float, gap: float) -> None:
    """P(rate <= b) as a double integral of (24), at the ends that were found."""
    mp.mp.dps = 20
    sums = count, count * 0.3, count * (np.log(0.3) - gap)
    weighter, state = GammaShapeRate(), state_of(*sums)
    oracle = posteriors.gamma_shape_rate(*sums, 1.0, 1.0, 1.5, 1.0)
    s_t, Q = mp.mpf(1) + count, mp.mpf(1) + sums[1]

    def rate_below(log_rate: mp.mpf, u: mp.mpf) -> tuple[mp.mpf, mp.mpf]:
        """Distribution function and density of log(rate) given the shape exp(u)."""
        k = mp.exp(u) * s_t + 1
        given = posteriors.Oracle(lambda v: k * v - Q * mp.exp(v), lambda v: k - Q * mp.exp(v))
        return given.cdf(log_rate), given.density(log_rate)

    for end, probability in zip(weighter.interval(state, 0.9), (0.05, 0.95), strict=True):
        log_rate = mp.log(mp.mpf(float(end[0, 1])))
        below = density = mp.mpf(0)
        # The trapezoidal rule, exact to more digits than are asked for once it resolves the step of rate_below.
        step = oracle.sd / (3 if count == 1 else 12)
        for k in range(int((oracle.high - oracle.low) / step)):
            weight = step * oracle.density(oracle.low + k * step)
            if weight > 1e-14:
                cdf, pdf = rate_below(log_rate, oracle.low + k * step)
                below, density = below + weight * cdf, density + weight * pdf
        assert abs(float((below - probability) / density)) < TOLERANCE


def test_cap_bounds_the_counts() -> None:
    """With the paper's caps the posterior is the one of capped b, c and r, s."""
    sum_g, sum_log = 900.0, -3000.0
    capped = GammaShape(cap=1000.0).mean(state_of(3000.0, sum_log))[0]
    assert abs(float(capped / posteriors.gamma_shape(999.0, sum_log, 0.1, 1.0, 1.0, 1.0).mean - 1)) < TOLERANCE
    pair = GammaShapeRate(cap=200.0).mean(state_of(3000.0, sum_g, sum_log))[0]
    assert (
        abs(float(pair[0] / posteriors.gamma_shape_rate(199.0, sum_g, sum_log, 1.0, 1.0, 1.5, 1.0).mean - 1))
        < TOLERANCE
    )


@pytest.mark.parametrize("weighter", [GammaRate(), GammaShape(), GammaShapeRate()])
@pytest.mark.parametrize("count", [3, 3000])
def test_draws_follow_the_posterior(weighter: Posterior[SumState], count: int) -> None:
    """Mean and variance of 200,000 draws within 5 standard errors (error probability about 1e-6 a comparison)."""
    g = np.random.default_rng(1).gamma(2.0, 0.2, (count, 3))
    state = weighter.update(weighter.init(3), g)
    draws = weighter.sample(state, 200_000, rng=2)
    mean, variance = weighter.mean(state), weighter.variance(state)
    assert np.all(np.abs(draws.mean(axis=0) - mean) < 5 * np.sqrt(variance / 200_000))
    fourth = ((draws - mean) ** 4).mean(axis=0)
    assert np.all(np.abs(draws.var(axis=0) - variance) < 5 * np.sqrt(fourth / 200_000) + 2e-3 * variance)
    low, high = weighter.interval(state, 0.8)
    outside = ((draws < low) | (draws > high)).mean(axis=0)
    assert np.all(np.abs(outside - 0.2) < 5 * np.sqrt(0.2 * 0.8 / 200_000))


def test_draws_of_a_grid_are_between_its_points_too() -> None:
    """Loss (8) and prior (10) have Gamma posteriors. A grid is so fine that mean and variance do not tell."""
    weighter = NumericalPosterior(lambda weight, g: 0.1 * weight * g - np.log(weight), lambda weight: weight)
    g = np.random.default_rng(0).gamma(2.0, 0.2, (30, 2))
    draws = weighter.sample(weighter.update(weighter.init(2), g), 20_000, rng=0)
    for own, total in zip(draws.T, g.sum(axis=0), strict=True):
        assert len(np.unique(own)) == len(own)
        assert kstest(own, gamma(31, scale=1 / (1 + 0.1 * total)).cdf).pvalue > 1e-3


@pytest.mark.parametrize("weighter", [GammaRate(), GammaShape(), GammaShapeRate()])
def test_best_member_is_the_one_of_least_loss(weighter: Posterior[SumState]) -> None:
    rng = np.random.default_rng(3)
    state = weighter.update(weighter.init(3), rng.gamma(2.0, [[0.2, 0.1, 0.3]], (500, 3)))
    assert weighter.probability_best(state)[1] > 0.99
    alike = weighter.update(weighter.init(2), np.repeat(rng.gamma(2.0, 0.1, (50, 1)), 2, axis=1))
    assert np.all(np.abs(weighter.probability_best(alike) - 0.5) < 0.03)
