"""The general scheme for losses of all weights together, against closed forms and grids in few dimensions."""

from typing import Any

import numpy as np
import pytest

from bayesvote import Ensemble, NaiveBayesBank
from bayesvote.core.checks import Array
from bayesvote.model import decided
from bayesvote.weighting import JointGaussian, LaplacePosterior


def squared(weights: Array, g: Array) -> Array:
    return np.asarray(0.35 * (1 - (weights * (1 - 2 * g)).sum(axis=-1)) ** 2)


def squared_slope(weights: Array, g: Array) -> Array:
    return -0.7 * (1 - 2 * g) * (1 - weights @ (1 - 2 * g))


def squared_curvature(weights: Array, g: Array) -> Array:  # noqa: ARG001
    return 0.7 * np.outer(1 - 2 * g, 1 - 2 * g)


def logistic(weights: Array, g: Array) -> Array:
    return np.asarray(np.logaddexp(0.0, -(weights * (1 - 2 * g)).sum(axis=-1)))


def robust(weights: Array, g: Array) -> Array:
    """Cauchy's loss of the margin, which is not convex."""
    return np.asarray(np.log1p((1 - (weights * (1 - 2 * g)).sum(axis=-1)) ** 2))


def around(centre: float, precision: float) -> Any:
    return lambda weights: 0.5 * precision * ((weights - centre) ** 2).sum(axis=-1)


def stream(n: int, m: int, seed: int = 0) -> Array:
    rng = np.random.default_rng(seed)
    return np.clip(0.3 + 0.3 * rng.standard_normal((n, 1)) + 0.2 * rng.standard_normal((n, m)), 0, 1)


@pytest.mark.parametrize("given", [True, False])
def test_for_a_quadratic_loss_it_is_the_joint_gaussian(given: bool) -> None:
    m, g, w = 4, stream(60, 4), np.random.default_rng(1).uniform(0.5, 2.0, 60)
    g[np.random.default_rng(2).random(g.shape) < 0.1] = np.nan
    derivatives = (squared_slope, squared_curvature) if given else ()
    general, closed = LaplacePosterior(squared, around(1 / m, 8.0), *derivatives), JointGaussian(8.0, theta=0.7)
    one, other = general.update(general.init(m), g, w), closed.update(closed.init(m), g, w)
    exact = 1e-7 if given else 1e-5  # the prior's curvature is always taken by differences
    assert general.mean(one) == pytest.approx(closed.mean(other), rel=exact)
    assert general.variance(one) == pytest.approx(closed.variance(other), rel=exact)
    for a, b in zip(general.interval(one), closed.interval(other), strict=True):
        assert a == pytest.approx(b, rel=10 * exact, abs=1e-6)
    assert general.effective_samples(one) == pytest.approx(w.sum())
    assert general.probability_best(one) == pytest.approx(closed.probability_best(other), abs=0.03)


def coupled(weights: Array, g: Array) -> Array:
    """The squared loss, and a term that couples all weights whatever their losses."""
    return np.asarray(squared(weights, g) + 0.2 * weights.sum(axis=-1) ** 2)


def coupled_curvature(weights: Array, g: Array) -> Array:
    return squared_curvature(weights, g) + 0.4 * np.ones((len(g), len(g)))


@pytest.mark.parametrize("hessian", [None, coupled_curvature])
def test_a_row_says_nothing_about_members_that_abstain(hessian: Any) -> None:
    """Also if the loss couples their weights with others: the posterior is that of the others alone, and the prior."""
    g = stream(40, 3)
    g[:, 1] = np.nan
    weighter, others = LaplacePosterior(coupled, around(0.5, 4.0), None, hessian), [0, 2]
    state, alone = weighter.update(weighter.init(3), g), weighter.update(weighter.init(2), g[:, others])
    assert state.precision[1] == pytest.approx([0, 4, 0], abs=1e-6)
    assert weighter.mean(state) == pytest.approx(np.insert(weighter.mean(alone), 1, 0.5), rel=1e-6)
    assert weighter.variance(state) == pytest.approx(np.insert(weighter.variance(alone), 1, 0.25), rel=1e-6)


@pytest.mark.parametrize("loss", [logistic, robust])
@pytest.mark.parametrize("n", [30, 400])
@pytest.mark.parametrize("steps", [1, 5])
def test_it_is_near_the_exact_posterior(loss: Any, n: int, steps: int) -> None:
    """By a grid over the weights of two members."""
    g = stream(n, 2, seed=3)
    weighter = LaplacePosterior(loss, around(0.5, 4.0), steps=steps)
    state = weighter.update(weighter.init(2), g)
    axis = np.linspace(-3, 5, 241)
    grid = np.stack(np.meshgrid(axis, axis, indexing="ij"), axis=-1)
    log_density = -around(0.5, 4.0)(grid) - sum(loss(grid, row) for row in g)
    density = np.exp(log_density - log_density.max())
    density /= density.sum()
    mean = (density[..., None] * grid).sum(axis=(0, 1))
    sd = np.sqrt((density[..., None] * (grid - mean) ** 2).sum(axis=(0, 1)))
    assert np.all(np.abs(weighter.mean(state) - mean) < 0.35 * sd)
    assert np.sqrt(weighter.variance(state)) == pytest.approx(sd, rel=0.15)


def test_a_prior_that_is_not_gaussian_starts_at_its_mode() -> None:
    """A Gamma prior for every weight, in its logarithm; and one that is uphill on the way."""
    gamma = LaplacePosterior(logistic, lambda weights: (np.exp(weights) - 3 * weights).sum(axis=-1))
    state = gamma.init(3)
    assert gamma.mean(state) == pytest.approx(np.full(3, np.log(3)), abs=1e-6)
    assert gamma.variance(state) == pytest.approx(np.full(3, 1 / 3), rel=1e-6)
    steep = LaplacePosterior(logistic, lambda weights: (np.sqrt(1 + (weights - 4) ** 2)).sum(axis=-1))
    assert steep.mean(steep.init(2)) == pytest.approx([4, 4], abs=1e-4)


def test_parts_of_a_loss_sum_to_it() -> None:
    weighter, weights = LaplacePosterior(logistic, around(0.5, 1.0)), np.array([0.3, 1.2, -0.4])
    G = np.random.default_rng(0).random((3, 2, 3))
    G[0, :, 1] = np.nan
    parts = weighter.terms(weights, G)
    assert np.isnan(parts[0, :, 1]).all()
    assert np.nansum(parts, axis=2) == pytest.approx(weighter.losses_at(weights, G), rel=1e-9)


def test_an_ensemble_by_it() -> None:
    rng = np.random.default_rng(0)
    X, y = rng.normal(size=(120, 3)), np.arange(120) % 2
    X[:, 0] += 2 * y
    model = Ensemble(NaiveBayesBank(3), LaplacePosterior(logistic, around(1.0, 1.0))).start(3, rng=0)
    losses = model.decide_then_learn(X, y)
    assert np.mean(decided(losses)[40:] != y[40:]) < 0.3
    assert model.probabilities(losses).sum(axis=1) == pytest.approx(1)
    assert model.certainty(X[:4], 100).min() >= 0.5
    lead = np.abs(np.diff(model.decide(X[:4]), axis=1)[:, 0])
    assert model.contributions(X[:4]).sum(axis=1) == pytest.approx(lead, rel=1e-6)


def test_misuse_gets_the_error_sentence() -> None:
    wrong: Any = 3
    with pytest.raises(TypeError, match="LaplacePosterior: prior must be a function, got 3"):
        LaplacePosterior(logistic, wrong)
    with pytest.raises(TypeError, match="hessian must be a function, got 3"):
        LaplacePosterior(logistic, around(0.5, 1.0), None, wrong)
    with pytest.raises(ValueError, match="steps must be an integer of at least 1, got 0"):
        LaplacePosterior(logistic, around(0.5, 1.0), steps=0)
    with pytest.raises(ValueError, match="prior must be curved in all directions"):
        LaplacePosterior(logistic, lambda weights: weights.sum(axis=-1)).init(2)
    weighter = LaplacePosterior(lambda weights, g: np.log(weights - 9).sum(axis=-1) + g[0], around(0.5, 1.0))
    with pytest.raises(ValueError, match="loss must be finite at all weights"), np.errstate(all="ignore"):
        weighter.update(weighter.init(2), [0.1, 0.2])
    fine = LaplacePosterior(logistic, around(0.5, 1.0))
    with pytest.raises(TypeError, match=r"LaplacePosterior\.merge: states must be sums"):
        fine.merge(fine.init(2), fine.init(2))
    state = fine.init(2)
    with pytest.raises(ValueError, match="mean must follow"):
        fine.validate(state._replace(shift=state.shift + 1))
    with pytest.raises(ValueError, match="symmetric"):
        fine.validate(state._replace(precision=state.precision + np.triu(np.ones((2, 2)), 1)))
