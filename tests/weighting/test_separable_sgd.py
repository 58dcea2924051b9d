"""SGD (6) on a loss of the user's: against plain loops, against SGD (14), and Theorem 2's covariance (7)."""

from itertools import pairwise

import numpy as np
import pytest
from scipy.special import digamma, gammaln, polygamma
from scipy.stats import chi2

from bayesvote import theory
from bayesvote.core.checks import Array
from bayesvote.weighting import SGD, GammaShapeRate, SeparableSGD


def rate_loss(weight: Array, g: Array) -> Array:
    return np.asarray(0.1 * weight * g - np.log(weight))


def rate_gradient(weight: Array, g: Array) -> Array:
    return np.asarray(0.1 * g - 1 / weight)


def pair_loss(shape: Array, rate: Array, g: Array) -> Array:
    return np.asarray(rate * g + (1 - shape) * np.log(g) + gammaln(shape) - shape * np.log(rate))


def pair_gradient(shape: Array, rate: Array, g: Array) -> tuple[Array, Array]:
    return digamma(shape) - np.log(rate) - np.log(g), g - shape / rate


def losses(n: int, m: int) -> Array:
    rng = np.random.default_rng(0)
    return np.where(rng.random((n, m)) < 0.1, np.nan, rng.random((n, m)))


def test_on_loss_8_it_is_sgd_14() -> None:
    g, w = losses(200, 4), np.random.default_rng(1).choice([0.0, 0.5, 1.0], 200)
    fast, exact, numerical = SGD(20.0), SeparableSGD(rate_loss, 20.0, rate_gradient), SeparableSGD(rate_loss, 20.0)
    expected = fast.mean(fast.update(fast.init(4), g, w))
    assert exact.mean(exact.update(exact.init(4), g, w)) == pytest.approx(expected, rel=1e-12)
    assert numerical.mean(numerical.update(numerical.init(4), g, w)) == pytest.approx(expected, rel=1e-8)


def test_a_matrix_step_is_equation_6() -> None:
    """Written out for two members that each have two parameters; the delay counts as samples before the first."""
    K = np.random.default_rng(2).normal(size=(4, 4)) / 20 + np.eye(4)
    g, weights = np.random.default_rng(3).gamma(2.0, 0.2, (30, 2)), np.array([2.0, 5.0, 2.0, 5.0])
    for t, (first, second) in enumerate(g, start=1):
        gradient = []
        for at, loss in ((0, first), (2, second)):
            a, b = weights[at : at + 2]
            gradient += [float(digamma(a)) - np.log(b) - np.log(loss), loss - a / b]
        weights = np.maximum(weights - K @ gradient / (t + 10), 1e-6)
    settings = {"step": K, "n_parameters": 2, "start": (2.0, 5.0), "delay": 10.0}
    for gradient_given in (pair_gradient, None):
        weighter = SeparableSGD(pair_loss, gradient=gradient_given, **settings)  # type: ignore[arg-type]
        after = weighter.mean(weighter.update(weighter.init(2), g))
        assert after.shape == (2, 2)
        assert after.ravel() == pytest.approx(weights, rel=1e-9)


def test_one_array_for_two_members_is_no_pair_of_derivatives() -> None:
    """It has the length of a pair; an array of a row for each parameter is one."""
    one = SeparableSGD(pair_loss, gradient=lambda a, b, g: g - a / b, n_parameters=2)
    with pytest.raises(ValueError, match=r"gradient must return a pair of derivatives, each of shape \(2,\)"):
        one.update(one.init(2), [0.2, 0.3])
    both = SeparableSGD(pair_loss, gradient=lambda *at: np.stack(pair_gradient(*at)), n_parameters=2)
    pair = SeparableSGD(pair_loss, gradient=pair_gradient, n_parameters=2)
    after, expected = (weighter.mean(weighter.update(weighter.init(2), [0.2, 0.3])) for weighter in (both, pair))
    assert np.array_equal(after, expected)


def test_a_matrix_step_leaves_abstaining_members_alone_and_chunks_change_nothing() -> None:
    weighter = SeparableSGD(rate_loss, 5 * np.ones((3, 3)) + 20 * np.eye(3))
    silent = weighter.update(weighter.init(3), [[0.2, np.nan, 0.4], [0.3, np.nan, 0.1]])
    assert weighter.mean(silent)[1] == 1.0
    assert np.array_equal(silent.counts, [2, 0, 2])
    rng = np.random.default_rng(4)
    G, y = rng.random((40, 2, 3)), rng.integers(0, 2, 40)
    whole, after = weighter.losses_then_update(weighter.init(3), G, y)
    state, parts = weighter.init(3), []
    for a, b in pairwise((0, 1, 7, 40)):
        part, state = weighter.losses_then_update(state, G[a:b], y[a:b])
        parts.append(part)
    assert np.array_equal(np.concatenate(parts), whole)
    assert np.array_equal(state.weights, after.weights)
    assert whole[0] == pytest.approx(rate_loss(np.ones(3), G[0]).sum(axis=1))


@pytest.mark.parametrize("factor", [1.0, 4.0])
def test_with_the_inverse_hessian_it_has_the_covariance_7_of_the_posterior_mean(factor: float) -> None:
    """Theorem 2 for (22), whose inverse Hessian is no diagonal: 250 runs of 8,000 losses, a member each.

    Whitened by (7), the mean square of 500 errors is chi-square(500)/500, of which 1e-6 lies outside the bounds; 0.05
    more is for a finite T. With four times the inverse Hessian it is 16/7 of that, as in (18). All start at the
    optimum: only the spread is looked at.
    """
    runs, n, delay = 250, 8000, 200.0
    optimum = np.array([2.0, 5.0])
    a, b = optimum
    hessian = np.array([[float(polygamma(1, a)), -1 / b], [-1 / b, a / b**2]])
    # Losses of Gamma(2, rate 5): the covariance of the gradient (-log g, g) is the Hessian, as of any likelihood.
    root = np.linalg.cholesky(theory.asymptotic_covariance(hessian, hessian))
    g = np.random.default_rng(5).gamma(a, 1 / b, (n, runs))
    weighter = SeparableSGD(
        pair_loss, factor * np.kron(np.eye(runs), np.linalg.inv(hessian)), pair_gradient, 2, tuple(optimum), delay
    )
    posterior = GammaShapeRate()
    low, high = (float(chi2.ppf(q, 2 * runs)) / (2 * runs) for q in (5e-7, 1 - 5e-7))
    of_sgd = weighter.mean(weighter.update(weighter.init(runs), g)) - optimum
    of_mean = posterior.mean(posterior.update(posterior.init(runs), g)) - optimum
    ratio = np.mean(np.linalg.solve(root, of_sgd.T) ** 2) * n
    excess = factor**2 / (2 * factor - 1)
    assert low - 0.05 < ratio / excess < high + 0.05
    assert low - 0.05 < np.mean(np.linalg.solve(root, of_mean.T) ** 2) * n < high + 0.05
    if factor == 1:  # and run by run they are the same estimate, up to what vanishes against both
        gap = np.mean(np.linalg.solve(root, (of_sgd - of_mean).T) ** 2) * n
        assert gap < 0.1 * ratio
    else:
        assert ratio > high + 0.05


def test_a_gradient_that_is_not_finite_is_refused() -> None:
    weighter = SeparableSGD(lambda weight, g: -weight * np.log(g), gradient=lambda weight, g: -np.log(g) + 0 * weight)
    with pytest.raises(ValueError, match="the gradient must be finite, got inf"), np.errstate(divide="ignore"):
        weighter.update(weighter.init(1), [0.0])
    with pytest.raises(TypeError, match="loss and gradient must be functions"):
        SeparableSGD("ramp")  # type: ignore[arg-type]
