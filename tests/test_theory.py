"""The theorems, by simulation. Every Monte Carlo comparison states its error probability; seeds are fixed."""

from collections.abc import Callable
from dataclasses import replace
from typing import Any

import numpy as np
import pytest
from scipy.special import digamma, gammaln, polygamma
from scipy.stats import chi2, kstest

from bayesvote import losses, theory
from bayesvote._checks import Array
from bayesvote.ensemble import decided
from bayesvote.weighting import (
    SGD,
    AveragedSGD,
    GammaRate,
    GammaShape,
    NumericalPosterior,
    Weighter,
)

MEAN, VARIANCE, THETA = 0.5, 0.1**2 / 12, 2.0  # of a loss uniform on [0.45, 0.55]; the optimal weight is 1


def final_weights(weighter: Weighter[Any], n_rows: int, n_runs: int = 4000) -> Array:
    """Weights after n_rows losses, in n_runs independent runs: a member each."""
    rng, state = np.random.default_rng(7), weighter.init(n_runs)
    for _ in range(n_rows // 100):
        state = weighter.update(state, rng.uniform(0.45, 0.55, (100, n_runs)))
    return weighter.mean(state)


def variance_ratio(weights: Array, n_rows: int, variance: float) -> float:
    """Mean square of sqrt(T)(weight - optimum), over what it should be."""
    error = np.sqrt(n_rows) * (weights - theory.optimal_weights(MEAN, THETA))
    return float(np.mean(error**2) / variance)


# 4000 runs: the ratio is chi-square(4000)/4000 at the limit; 1e-6 of it lies outside these bounds. A few per cent more
# are allowed for a finite T, where the limit is only approached.
LOW, HIGH = (float(chi2.ppf(q, 4000)) / 4000 for q in (5e-7, 1 - 5e-7))


def test_posterior_mean_has_the_variance_15() -> None:
    ratio = variance_ratio(
        final_weights(GammaRate(theta=THETA), 4000), 4000, float(theory.bayes_variance(MEAN, VARIANCE, THETA))
    )
    assert LOW - 0.02 < ratio < HIGH + 0.02


@pytest.mark.parametrize("factor", [0.75, 1.0, 2.0, 4.0])
def test_sgd_has_the_variance_18(factor: float) -> None:
    step = factor * float(theory.best_step(MEAN, THETA))
    variance = float(theory.sgd_variance(MEAN, VARIANCE, step, THETA))
    ratio = variance_ratio(final_weights(SGD(step, THETA), 20_000), 20_000, variance)
    assert LOW - 0.05 < ratio < HIGH + 0.05
    excess = variance / float(theory.bayes_variance(MEAN, VARIANCE, THETA)) - 1
    assert (excess < 1e-12) if factor == 1.0 else (excess > 0.1)


def test_averaging_sgd_reaches_the_variance_15() -> None:
    """Polyak and Juditsky's theorem, which is what AveragedSGD's longer steps are for."""
    step = 2 * float(theory.best_step(MEAN, THETA))
    weights = final_weights(AveragedSGD(step, THETA), 20_000)
    assert LOW - 0.1 < variance_ratio(weights, 20_000, float(theory.bayes_variance(MEAN, VARIANCE, THETA))) < HIGH + 0.1


def test_the_best_step_is_the_only_one_as_good() -> None:
    steps = np.linspace(0.51, 10, 1000) * theory.best_step(MEAN, THETA)
    variances = theory.sgd_variance(MEAN, VARIANCE, steps, THETA)
    assert np.all(variances >= theory.bayes_variance(MEAN, VARIANCE, THETA))
    assert theory.sgd_variance(MEAN, VARIANCE, 0.5 * theory.best_step(MEAN, THETA), THETA) == np.inf


def test_sandwich_7_gives_15() -> None:
    """Loss (8): Hessian 1/optimum**2, gradient theta g - 1/optimum."""
    optimum = theory.optimal_weights(MEAN, THETA)
    sandwich = theory.asymptotic_covariance([[1 / optimum**2]], [[THETA**2 * VARIANCE]])
    assert sandwich[0, 0] == pytest.approx(float(theory.bayes_variance(MEAN, VARIANCE, THETA)))


@pytest.mark.parametrize("weighter", [GammaRate(), GammaShape()])
def test_standardised_posterior_tends_to_the_normal(weighter: GammaRate | GammaShape) -> None:
    """Theorem 1: 2,000 posterior draws at T = 50,000 pass a Kolmogorov-Smirnov test at 1e-4; at T = 2 they do not."""
    for n, normal in ((50_000, True), (2, False)):
        state = weighter.update(weighter.init(1), np.random.default_rng(0).gamma(2.0, 0.2, (n, 1)))
        draws = weighter.sample(state, 2000, rng=1)[:, 0]
        standardised = (draws - weighter.mean(state)[0]) / np.sqrt(weighter.variance(state)[0])
        assert (kstest(standardised, "norm").pvalue > 1e-4) == normal


def members(rng: np.random.Generator, n: int, accuracies: Array) -> tuple[Array, Array]:
    """Losses of members that are right with given probabilities: for the true label, for the other one."""
    right = rng.random((n, len(accuracies))) < accuracies
    margin = np.where(right, 1.0, -1.0) * rng.uniform(0.1, 0.9, right.shape)
    return losses.ramp(margin), losses.ramp(-margin)


@pytest.mark.parametrize("accuracies", [np.full(5, 0.9), np.linspace(0.55, 0.95, 20), np.full(50, 0.99)])
def test_bound_13_holds(accuracies: Array) -> None:
    truth, other = members(np.random.default_rng(3), 20_000, accuracies)
    weights = theory.optimal_weights(truth.mean(axis=0))
    error = np.mean(decided(np.stack((other @ weights, truth @ weights), axis=1)) == 0)
    bounds = [theory.error_bound(truth, other, p) for p in (1.05, 1.5, 2.0, 4.0, 10.0)]
    best = theory.best_error_bound(truth, other)
    assert error <= min(bounds)
    assert best.value <= min(bounds) + 1e-9
    assert best.value == pytest.approx(min(1.0, theory.error_bound(truth, other, best.p)))
    if accuracies[0] == 0.99:
        assert best.value < 0.9  # the bound says something about good members


def test_bound_13_is_what_the_paper_writes() -> None:
    truth, other = members(np.random.default_rng(4), 50, np.full(3, 0.8))
    p, total = 3.0, 0.0
    for t in range(50):
        total += sum(other[t, i] / truth[:, i].mean() for i in range(3)) ** (-1 / (p - 1)) / 50
    assert theory.error_bound(truth, other, p) == pytest.approx(3 ** (1 / p) * total ** ((p - 1) / p))


def rate_loss(weight: Array, g: Array) -> Array:
    return np.asarray(0.1 * weight * g - np.log(weight))


def shape_loss(weight: Array, g: Array) -> Array:
    return np.asarray((1 - weight) * np.log(g) + 0.1 * g + gammaln(weight) - np.log(0.1) * weight)


def pair_loss(shape: Array, rate: Array, g: Array) -> Array:
    return np.asarray(rate * g + (1 - shape) * np.log(g) + gammaln(shape) - shape * np.log(rate))


OF_8 = NumericalPosterior(rate_loss, lambda weight: weight)
OF_19 = NumericalPosterior(shape_loss, lambda weight: gammaln(weight) - np.log(0.1) * weight)
OF_22 = NumericalPosterior(
    pair_loss, lambda a, b: b + 1.5 * gammaln(a) - a * np.log(b), n_parameters=2, support=(1e-3, 1e3)
)


def test_regularity_of_loss_8() -> None:
    g = np.random.default_rng(5).random((500, 3))
    found = theory.check_regularity(OF_8, g)
    assert found.holds
    assert found.minimizer == pytest.approx(500 / (1 + 0.1 * g.sum(axis=0)), rel=1e-7)
    assert found.hessian == pytest.approx(500 / found.minimizer**2, rel=1e-6)
    assert found.growth == pytest.approx(np.full(3, 0.5), rel=1e-6)  # this prior is linear: the samples' alone
    # The Hessian is 500/weight**2; 1% below the minimiser it is larger by this.
    assert found.smoothness == pytest.approx(np.full(3, 0.99**-2 - 1), rel=1e-3)


def test_regularity_of_loss_19() -> None:
    g = np.random.default_rng(5).gamma(2.0, 0.2, (300, 2))
    found = theory.check_regularity(OF_19, g)
    assert found.holds
    assert 301 * digamma(found.minimizer) == pytest.approx(np.log(g).sum(axis=0) + 301 * np.log(0.1), rel=1e-7)
    assert found.hessian == pytest.approx(301 * polygamma(1, found.minimizer), rel=1e-5)


@pytest.mark.parametrize("shape", [0.2, 2.0, 50.0])
def test_regularity_of_loss_22(shape: float) -> None:
    """Two parameters, nearly collinear for a large shape."""
    found = theory.check_regularity(OF_22, np.random.default_rng(5).gamma(shape, 0.4 / shape, (300, 2)))
    assert found.holds
    for (a, b), hessian in zip(found.minimizer, found.hessian, strict=True):
        # of 300 samples and the prior, which has 1.5 times log Gamma(a) and once a log b
        exact = np.array([[301.5 * polygamma(1, a), -301 / b], [-301 / b, 301 * a / b**2]])
        assert hessian == pytest.approx(exact, rel=1e-4)


@pytest.mark.parametrize(
    ("loss", "prior"),
    [
        (lambda weight, g: -0.1 * weight * g, lambda weight: 0 * weight),  # falls for ever: no minimum, no integral
        (lambda weight, g: 0 * weight * g, lambda weight: weight - np.log(weight)),  # samples add nothing
        (lambda weight, g: np.sin(np.log(weight)) * g, lambda weight: 0 * weight),  # not integrable
        (lambda weight, g: abs(weight - 1) * (1 + g), lambda weight: 0 * weight),  # no Hessian at the minimum
        (lambda weight, g: abs(weight - 0.7) * (1 + g), lambda weight: 0 * weight),  # nor here, between the nodes
        (lambda weight, g: abs(weight - 1) ** 1.5 * (1 + g), lambda weight: 0 * weight),  # an infinite one
        (lambda weight, g: (weight - 1) ** 4 * (1 + g), lambda weight: 0 * weight),  # one of 0
        (lambda weight, g: np.where(weight > 1, 3, g) * (weight - 1) ** 2, lambda weight: 0 * weight),  # one that jumps
    ],
)
def test_regularity_is_denied(loss: Callable[..., Array], prior: Callable[..., Array]) -> None:
    posterior = NumericalPosterior(loss, prior)
    assert not theory.check_regularity(posterior, np.full((20, 1), 0.5)).holds


@pytest.mark.parametrize(
    "broken",
    [
        {"gradient": np.array([0.0, 0.1])},
        {"hessian": np.array([1.0, -1.0])},
        {"hessian": np.array([[[1.0, 2.0], [2.0, 1.0]]])},  # positive on its diagonal, but not definite
        {"growth": np.array([0.5, 0.0])},
        {"smoothness": np.array([0.01, 1.0])},
        {"integrable": False},
    ],
    ids=str,
)
def test_every_condition_can_deny_regularity(broken: dict[str, Any]) -> None:
    good = theory.Regularity(np.ones(2), np.zeros(2), np.ones(2), np.full(2, 0.5), np.full(2, 0.01), True)
    assert good.holds
    assert not good._replace(**broken).holds


def test_regularity_sees_a_minimum_at_the_end_of_the_support() -> None:
    """Where the loss still falls: the gradient is not 0, and there is mass beyond."""
    posterior = NumericalPosterior(rate_loss, lambda weight: weight, support=(1e-3, 5.0))
    found = theory.check_regularity(posterior, np.full((20, 1), 0.5))
    assert found.minimizer[0] == pytest.approx(5.0)
    slope = 1 + 20 * (0.1 * 0.5 - 1 / 5)
    assert found.gradient[0] == pytest.approx(abs(slope) * 5 / np.sqrt(20), rel=1e-4)
    assert not found.integrable


def test_intervals_cover() -> None:
    """Losses from (9) with weights from the prior (10): 95% intervals cover 95%; 2,000 runs, bounds at 1e-6."""
    rng, weighter = np.random.default_rng(8), GammaRate()
    truth = rng.gamma(1.0, 1.0, 2000)
    g = rng.exponential(1 / (0.1 * truth), (50, 2000))
    low, high = weighter.interval(weighter.update(weighter.init(2000), g))
    assert 1847 < np.count_nonzero((low < truth) & (truth < high)) < 1945


def test_bad_arguments_get_the_error_sentence() -> None:
    with pytest.raises(ValueError, match=r"theory\.error_bound: p must be above 1, got 1"):
        theory.error_bound([[0.1]], [[0.9]], p=1.0)
    with pytest.raises(ValueError, match=r"both losses must have one shape \(n, m\)"):
        theory.best_error_bound([0.1], [0.9])
    with pytest.raises(ValueError, match="its optimal weight is infinite"):
        theory.best_error_bound([[0.0]], [[0.9]])
    with pytest.raises(ValueError, match="theta must be a finite number above 0"):
        theory.optimal_weights(0.5, theta=0.0)
    with pytest.raises(ValueError, match=r"check_regularity: g must have the shape \(n, m\) with two rows or more"):
        theory.check_regularity(OF_8, [[0.5]])
    with pytest.raises(ValueError, match=r"forgetting must be 1, got 0\.9"):
        theory.check_regularity(replace(OF_8, forgetting=0.9), [[0.5], [0.5]])
