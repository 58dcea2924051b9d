"""The paper's guarantees as functions: the optimum, asymptotic variances, the error bound, the regularity conditions.

Equation numbers are those of the paper, counted from (1).
"""

from typing import NamedTuple

import numpy as np
from numpy.typing import ArrayLike

from bayesvote import _checks
from bayesvote._checks import Array
from bayesvote.weighting import NumericalPosterior, SumState


def optimal_weights(mean_loss: ArrayLike, theta: float = 0.1) -> Array:
    """Minimiser of the expected loss (8), 1/(theta E g): what the weights tend to.

    >>> optimal_weights([0.25, 0.5])
    array([40., 20.])
    """
    _checks.positive("theory.optimal_weights", "theta", theta)
    return 1 / (theta * np.asarray(mean_loss, dtype=np.float64))


def asymptotic_covariance(hessian: ArrayLike, gradient_covariance: ArrayLike) -> Array:
    """Covariance (7) of sqrt(T) (weights - optimum) under any regular loss, H^-1 V H^-1 (Theorem 2).

    It is that of the posterior mean, of averaged SGD, and of plain SGD with the inverse Hessian as its matrix K.

    >>> asymptotic_covariance([[2.0, 0.0], [0.0, 1.0]], [[4.0, 0.0], [0.0, 3.0]])
    array([[1., 0.],
           [0., 3.]])
    """
    H = np.asarray(hessian, dtype=np.float64)
    return np.asarray(np.linalg.solve(H, np.linalg.solve(H, np.asarray(gradient_covariance, dtype=np.float64)).T).T)


def bayes_variance(mean_loss: ArrayLike, loss_variance: ArrayLike, theta: float = 0.1) -> Array:
    """Asymptotic variance (15) of sqrt(T) (posterior mean - optimum).

    >>> bayes_variance([0.5, 0.25], 0.01)
    array([ 16., 256.])
    """
    _checks.positive("theory.bayes_variance", "theta", theta)
    return np.asarray(loss_variance) / (theta**2 * np.asarray(mean_loss, dtype=np.float64) ** 4)[()]


def sgd_variance(mean_loss: ArrayLike, loss_variance: ArrayLike, step: ArrayLike, theta: float = 0.1) -> Array:
    """Asymptotic variance (18) of sqrt(T) (SGD (14) - optimum); infinite for steps too short for that rate.

    The proof of Theorem 4 writes 2 step/optimum where 2 step/optimum**2 is meant; this is the latter.

    >>> sgd_variance(0.5, 0.01, step=[100.0, 400.0, 800.0])
    array([        inf, 16.        , 21.33333333])
    """
    _checks.positive("theory.sgd_variance", "theta", theta)
    step = np.asarray(step, dtype=np.float64)
    room = 2 * step * (theta * np.asarray(mean_loss, dtype=np.float64)) ** 2 - 1
    with np.errstate(divide="ignore"):
        return np.where(room > 0, (theta * step) ** 2 * np.asarray(loss_variance) / np.maximum(room, 0), np.inf)[()]


def best_step(mean_loss: ArrayLike, theta: float = 0.1) -> Array:
    """The one step at which SGD's variance (18) is as small as the posterior mean's (15).

    >>> best_step([0.5, 0.25])
    array([ 400., 1600.])
    """
    _checks.positive("theory.best_step", "theta", theta)
    return 1 / (theta * np.asarray(mean_loss, dtype=np.float64)) ** 2


def error_bound(loss_of_truth: ArrayLike, loss_of_other: ArrayLike, p: float) -> float:
    """Bound (13) on the error of rule (12) at the optimal weights, its expectations taken over rows of data.

    Parameters
    ----------
    loss_of_truth, loss_of_other : array_like of shape (n, m)
        Members' losses g(x, y) for the true label and g(x, -y) for the other one.
    p : float
        Any number above 1.

    Examples
    --------
    >>> error_bound([[0.1, 0.3], [0.2, 0.3]], [[0.9, 0.7], [0.8, 0.7]], p=2.0)
    0.50043...
    """
    if not p > 1:
        raise ValueError(f"theory.error_bound: p must be above 1, got {p!r}.")
    return float(np.exp(_log_bound(*_both_losses("theory.error_bound", loss_of_truth, loss_of_other), p)))


class Bound(NamedTuple):
    """An error bound and the p that gives it."""

    value: float
    p: float


def best_error_bound(loss_of_truth: ArrayLike, loss_of_other: ArrayLike) -> Bound:
    """The least bound (13) over all p, at most 1.

    >>> bound = best_error_bound([[0.1, 0.3], [0.2, 0.3]], [[0.9, 0.7], [0.8, 0.7]])
    >>> round(bound.value, 3), round(bound.p, 3)
    (0.261, 1.001)
    """
    from scipy.optimize import minimize_scalar

    truth, other = _both_losses("theory.best_error_bound", loss_of_truth, loss_of_other)
    found = minimize_scalar(lambda s: _log_bound(truth, other, 1 + np.exp(s)), bounds=(-7, 7), method="bounded")
    return Bound(min(1.0, float(np.exp(found.fun))), float(1 + np.exp(found.x)))


def _both_losses(who: str, truth: ArrayLike, other: ArrayLike) -> tuple[Array, Array]:
    right, wrong = np.asarray(truth, dtype=np.float64), np.asarray(other, dtype=np.float64)
    if right.ndim != 2 or right.shape != wrong.shape or right.size == 0:
        raise ValueError(f"{who}: both losses must have one shape (n, m), got {right.shape} and {wrong.shape}.")
    if not (np.all(right >= 0) and np.all(wrong >= 0) and np.all(right.mean(axis=0) > 0)):
        raise ValueError(f"{who}: losses must be at least 0, and no member's all 0, or its optimal weight is infinite.")
    return right, wrong


def _log_bound(truth: Array, other: Array, p: float) -> float:
    from scipy.special import logsumexp

    with np.errstate(divide="ignore"):
        log_sum = np.log((other / truth.mean(axis=0)).sum(axis=1))
    log_mean = logsumexp(-log_sum / (p - 1)) - np.log(len(log_sum))
    return float(np.log(truth.shape[1]) / p + (p - 1) / p * log_mean)


class Regularity(NamedTuple):
    """What :func:`check_regularity` found, member by member."""

    minimizer: Array  # of the cumulative loss (1)
    gradient: Array  # there, in units of one standard deviation of the posterior: 0 at a minimum inside the support
    hessian: Array  # there: condition 1 wants it positive
    hessian_growth: Array  # what the samples added to it: condition 2 wants it to grow
    smoothness: Array  # largest relative change of the Hessian within one standard deviation (condition 3)
    integrable: bool  # whether the posterior's mass is inside the support (condition 5)

    @property
    def holds(self) -> bool:
        """Whether all the conditions that can be seen at one state hold."""
        return bool(
            self.integrable
            and np.all(np.abs(self.gradient) < 1e-3)
            and np.all(self.hessian > 0)
            and np.all(self.hessian_growth > 0)
        )


def check_regularity(posterior: NumericalPosterior, state: SumState) -> Regularity:
    """Check the conditions of Assumption 1 for a separable loss at a state.

    Gradient zero and Hessian positive at the minimiser of the cumulative loss (condition 1), the Hessian grown by the
    samples (2) and steady around it (3), and the posterior integrable (5). Condition 4, about all T, is not checked.

    Examples
    --------
    >>> weighter = NumericalPosterior(lambda weight, g: 0.1 * weight * g - np.log(weight), lambda weight: weight)
    >>> check_regularity(weighter, weighter.update(weighter.init(1), [[0.2], [0.4]])).holds
    True
    """
    if posterior.n_parameters != 1:
        raise ValueError(f"theory.check_regularity: n_parameters must be 1, got {posterior.n_parameters}.")
    values, m = posterior.cumulative(state), posterior.n_members(state)
    low, high = posterior.support
    grid = np.tile(np.linspace(np.log(low), np.log(high), 1001), (m, 1))
    nearest = posterior.interpolate(values, grid[None]).argmin(axis=1)
    u = grid[np.arange(m), np.clip(nearest, 1, 999)]  # a step inside the support, for the differences below
    for _ in range(20):
        slope, curvature = _log_derivatives(posterior, values, u)
        step = np.divide(-slope, curvature, out=np.zeros(m), where=curvature > 0)
        u = u + np.clip(step, -0.05, 0.05)
    minimizer = np.exp(u)

    def hessian_at(values: Array, u: Array) -> Array:
        slope, curvature = _log_derivatives(posterior, values, u)
        return np.asarray((curvature - slope) / np.exp(2 * u))

    hessian = hessian_at(values, u)
    sd = 1 / np.sqrt(np.maximum(hessian, 0) + np.finfo(float).tiny)
    inside = np.minimum(sd, minimizer / 2)
    around = [hessian_at(values, np.log(minimizer + side * inside)) / hessian - 1 for side in (-1, 1)]
    try:
        posterior.mean(state)
        integrable = True
    except ValueError:
        integrable = False
    return Regularity(
        minimizer,
        _log_derivatives(posterior, values, u)[0] / minimizer * sd,
        hessian,
        hessian - hessian_at(posterior.cumulative(posterior.init(m)), u),
        np.abs(around).max(axis=0),
        integrable,
    )


def _log_derivatives(posterior: NumericalPosterior, values: Array, u: Array) -> tuple[Array, Array]:
    """First and second derivative in log(weight) of what has these values at the nodes, by five-point differences."""
    h = 2e-3
    f = posterior.interpolate(values, (u[:, None] + h * np.arange(-2, 3))[None])
    first = f @ np.array([1, -8, 0, 8, -1]) / (12 * h)
    second = f @ np.array([-1, 16, -30, 16, -1]) / (12 * h**2)
    return first, second
