"""The theorems, by simulation. Every Monte Carlo comparison states its error probability; seeds are fixed."""

from collections.abc import Callable
from dataclasses import replace
from typing import Any

import numpy as np
import pytest
from scipy.integrate import quad
from scipy.optimize import brentq
from scipy.special import digamma, gammaln, polygamma
from scipy.stats import chi2, kstest

from bayesvote import losses, theory
from bayesvote.core.checks import Array
from bayesvote.model import decided
from bayesvote.weighting import (
    SGD,
    AveragedSGD,
    GammaRate,
    GammaShape,
    GammaShapeRate,
    NumericalPosterior,
    SumState,
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


@pytest.mark.parametrize(
    ("weighter", "weights", "rest"),
    [
        (GammaRate(theta=0.3), [2.0], -np.log(0.3 * 2.0)),
        (GammaShape(theta=0.3), [2.5], gammaln(2.5) - 2.5 * np.log(0.3)),
        (GammaShapeRate(), [[2.5, 1.7]], gammaln(2.5) - 2.5 * np.log(1.7)),
    ],
    ids=["(9)", "(20)", "(23)"],
)
def test_losses_are_likelihoods_by_2(weighter: Weighter[Any], weights: Any, rest: float) -> None:
    """exp(-loss) integrates to 1 over g; ``rest`` is the part of (8), with log(theta), (19), (22) that is free of g."""

    def likelihood(g: float) -> float:
        return float(np.exp(-weighter.losses_at(np.array(weights), np.array([[[g]]]))[0, 0] - rest))

    assert quad(likelihood, 0, np.inf)[0] == pytest.approx(1.0, rel=1e-7)


def minimum(weighter: Weighter[Any], count: float, sum_g: float, sum_log: float) -> tuple[Array, Array]:
    """Minimiser of the cumulative loss (1) and its Hessian there, from the paper's formulas with default priors."""
    if isinstance(weighter, GammaRate):  # 1 * w - 0 log w + 0.1 w sum g - T log w
        w = count / (1 + 0.1 * sum_g)
        return np.array([w]), np.array([[count / w**2]])
    if isinstance(weighter, GammaShape):  # (1 + T) (log Gamma(w) - w log 0.1) - w sum log g
        w = float(brentq(lambda w: (1 + count) * (digamma(w) - np.log(0.1)) - sum_log, 1e-6, 1e6, xtol=1e-14))
        return np.array([w]), np.array([[(1 + count) * polygamma(1, w)]])

    def rate(shape: float) -> float:
        return shape * (1 + count) / (1 + sum_g)

    def slope(shape: float) -> float:  # (1.5 + T) log Gamma(a) - (1 + T) a log b - a sum log g + (1 + sum g) b
        return float((1.5 + count) * digamma(shape) - (1 + count) * np.log(rate(shape)) - sum_log)

    a = float(brentq(slope, 1e-6, 1e6, xtol=1e-14))
    b = rate(a)
    off = -(1 + count) / b
    return np.array([a, b]), np.array([[(1.5 + count) * polygamma(1, a), off], [off, (1 + count) * a / b**2]])


FAMILIES = [GammaRate(), GammaShape(), GammaShapeRate()]


def family(weighter: object) -> str:
    return type(weighter).__name__


@pytest.mark.parametrize("weighter", FAMILIES, ids=family)
def test_standardised_posterior_tends_to_the_normal(weighter: Any) -> None:
    """(3) of Theorem 1, with the minimiser and the root of the Hessian as it is written.

    2,000 posterior draws at T = 50,000 pass a Kolmogorov-Smirnov test at 1e-4; at T = 2 they do not.
    """
    for n, normal in ((50_000, True), (2, False)):
        g = np.random.default_rng(0).gamma(2.0, 0.2, (n, 1))
        at, hessian = minimum(weighter, n, float(g.sum()), float(np.log(g).sum()))
        draws = weighter.sample(weighter.update(weighter.init(1), g), 2000, rng=1).reshape(2000, -1)
        standardised = (draws - at) @ np.linalg.cholesky(hessian)
        assert all(kstest(part, "norm").pvalue > 1e-4 for part in standardised.T) == normal
        if normal and len(at) == 2:
            assert abs(np.corrcoef(standardised.T)[0, 1]) < 5 / np.sqrt(2000)


@pytest.mark.parametrize("weighter", FAMILIES, ids=family)
def test_posterior_mean_nears_the_minimiser_by_4_and_5(weighter: Any) -> None:
    """Of order 1/T where 1/sqrt(T) is asked for: both products fall tenfold with a hundred times the samples."""
    of_4, of_5 = [], []
    for count in (1e2, 1e4, 1e6):
        sums = count, 0.4 * count, (np.log(0.4) - 0.27) * count
        at, hessian = minimum(weighter, *sums)
        kept = {"GammaRate": sums[:2], "GammaShape": (count, sums[2])}.get(family(weighter), sums)
        state = SumState(np.array(kept)[:, None], np.zeros((len(kept), 1)))
        gap = weighter.mean(state).ravel() - at
        of_4.append(np.abs(gap).sum() * np.sqrt(np.linalg.eigvalsh(hessian)[0]))
        of_5.append(np.abs(np.linalg.cholesky(hessian).T @ gap).max())
    for products in (of_4, of_5):
        assert products[0] < 0.5
        assert np.array(products[:-1]) / products[1:] == pytest.approx([10, 10], rel=0.1)


def lognormal_runs(weighter: Any, n_rows: int, n_runs: int) -> Array:
    """Posterior means (n_runs, parameters) after losses whose logarithm is N(-1, 0.3**2): no likelihood of ours."""
    rng, state = np.random.default_rng(9), weighter.init(n_runs)
    for _ in range(n_rows // 100):
        state = weighter.update(state, np.exp(rng.normal(-1.0, 0.3, (100, n_runs))))
    return np.asarray(weighter.mean(state)).reshape(n_runs, -1)


def test_posterior_mean_of_19_has_the_covariance_7() -> None:
    """The gradient of (19) in the weight is digamma(w) - log g - log theta."""
    optimum = float(brentq(lambda w: float(digamma(w)) + 1.0 - np.log(2.0), 1e-3, 1e3))
    covariance = theory.asymptotic_covariance([[float(polygamma(1, optimum))]], [[0.3**2]])
    errors = lognormal_runs(GammaShape(theta=2.0), 3000, 4000) - optimum
    assert LOW - 0.02 < 3000 * np.mean(errors**2) / covariance[0, 0] < HIGH + 0.02


def test_posterior_mean_of_22_has_the_covariance_7() -> None:
    """The gradient of (22) is (digamma(a) - log b - log g, g - a/b); its noise is that of (-log g, g)."""
    mean = np.exp(-1.0 + 0.3**2 / 2)
    noise = 0.3**2 * np.array([[1.0, -mean], [-mean, mean**2 * np.expm1(0.3**2) / 0.3**2]])
    a = float(brentq(lambda a: float(digamma(a)) - np.log(a / mean) + 1.0, 1e-3, 1e3))
    b = a / mean
    hessian = [[float(polygamma(1, a)), -1 / b], [-1 / b, a / b**2]]
    root = np.linalg.cholesky(theory.asymptotic_covariance(hessian, noise))
    white = np.sqrt(3000) * np.linalg.solve(root, (lognormal_runs(GammaShapeRate(), 3000, 4000) - [a, b]).T)
    # As for 4000 squares above; the product of two independent standard normals has a variance of 1, so 5/sqrt(4000).
    assert all(LOW - 0.04 < ratio < HIGH + 0.04 for ratio in np.mean(white**2, axis=1))
    assert abs(np.mean(white[0] * white[1])) < 5 / np.sqrt(4000) + 0.02


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


def test_the_best_bound_is_the_limit_where_the_bound_falls_to_it() -> None:
    """For p to 1: members over the least sum of ratios. A search that stops at some p above 1 misses it."""
    truth, other = np.array([[0.1, 0.3], [0.2, 0.3]]), np.array([[0.9, 0.7], [0.8, 0.7]])
    limit = 2 / (other / truth.mean(axis=0)).sum(axis=1).min()
    assert theory.error_bound(truth, other, 1.0) == pytest.approx(limit)
    assert theory.error_bound(truth, other, 1 + 1e-7) == pytest.approx(limit)
    best = theory.best_error_bound(truth, other)
    assert best.value == pytest.approx(limit, rel=1e-14)
    assert best.p == 1.0


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
    at_half = 250 / (1 + 0.1 * g[:250].sum(axis=0))
    assert found.growth == pytest.approx(1 - 250 / at_half**2 / (500 / found.minimizer**2), rel=1e-5)
    # The Hessian is 500/weight**2; 1% below the minimiser it is larger by this.
    assert found.smoothness == pytest.approx(np.full(3, 0.99**-2 - 1), rel=1e-3)


def test_regularity_of_loss_19() -> None:
    g = np.random.default_rng(5).gamma(2.0, 0.2, (300, 2))
    found = theory.check_regularity(OF_19, g)
    assert found.holds
    assert 301 * digamma(found.minimizer) == pytest.approx(np.log(g).sum(axis=0) + 301 * np.log(0.1), rel=1e-7)
    assert found.hessian == pytest.approx(301 * polygamma(1, found.minimizer), rel=1e-5)


@pytest.mark.parametrize(("shape", "n"), [(0.2, 300), (2.0, 300), (50.0, 1500)])
def test_regularity_of_loss_22(shape: float, n: int) -> None:
    """Two parameters, nearly collinear for a large shape, which takes more samples to get free of the prior."""
    found = theory.check_regularity(OF_22, np.random.default_rng(5).gamma(shape, 0.4 / shape, (n, 2)))
    assert found.holds
    for (a, b), hessian in zip(found.minimizer, found.hessian, strict=True):
        # of n samples and the prior, which has 1.5 times log Gamma(a) and once a log b
        exact = np.array([[(n + 1.5) * polygamma(1, a), -(n + 1) / b], [-(n + 1) / b, (n + 1) * a / b**2]])
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


def test_loss_8_is_not_regular_for_a_member_without_losses() -> None:
    """Its weight is T and the Hessian there 1/T, which falls for ever, though at any one weight it grows with T."""
    found = theory.check_regularity(OF_8, np.zeros((100, 1)))
    assert found.hessian[0] == pytest.approx(1 / 100, rel=1e-5)
    assert found.growth[0] == pytest.approx(-1, rel=1e-5)  # 1/50 at the minimiser of the first half
    assert not found.holds


@pytest.mark.parametrize(("kink", "seen"), [(1e-5, False), (3e-4, True)])
def test_how_slight_a_kink_can_be_to_be_seen(kink: float, seen: bool) -> None:
    posterior = NumericalPosterior(
        lambda weight, g: (weight - 1) ** 2 + kink * abs(weight - 1) + 0 * g, lambda weight: 0 * weight
    )
    assert theory.check_regularity(posterior, np.full((100, 1), 0.5)).holds != seen


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
    for p in (0.5, np.inf, np.nan):
        with pytest.raises(ValueError, match=rf"theory\.error_bound: p must be finite and at least 1, got {p}"):
            theory.error_bound([[0.1]], [[0.9]], p=p)
    with pytest.raises(ValueError, match="losses must be finite and at least 0"):
        theory.error_bound([[0.1]], [[np.inf]], p=2.0)
    with pytest.raises(ValueError, match=r"theory\.optimal_weights: mean_loss must be finite and above 0, got -1\.0"):
        theory.optimal_weights([0.5, -1.0])
    with pytest.raises(ValueError, match=r"best_step: mean_loss must be finite and above 0, got 0\.0"):
        theory.best_step(0.0)
    with pytest.raises(ValueError, match=r"bayes_variance: loss_variance must be finite and at least 0, got nan"):
        theory.bayes_variance(0.5, np.nan)
    with pytest.raises(ValueError, match=r"sgd_variance: step must be finite and above 0, got inf"):
        theory.sgd_variance(0.5, 0.1, [1.0, np.inf])
    with pytest.raises(TypeError, match=r"posterior must be a NumericalPosterior, got GammaRate\. Pass loss and prior"):
        theory.check_regularity(GammaRate(), [[0.5], [0.5]])  # type: ignore[arg-type]
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
