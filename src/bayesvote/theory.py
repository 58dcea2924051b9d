"""The paper's guarantees as functions: the optimum, asymptotic variances, the error bound, the regularity conditions.

Equation numbers are those of the paper, counted from (1).
"""

from collections.abc import Callable
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
    """What :func:`check_regularity` found, member by member. With two parameters the Hessian has two more axes."""

    minimizer: Array  # of the cumulative loss (1)
    gradient: Array  # there, its largest part in units of the posterior's standard deviation; condition 1 wants 0
    hessian: Array  # there; condition 1 wants it positive definite
    growth: Array  # least share of it that the second half of the samples added; condition 2 wants it to grow for ever
    smoothness: Array  # largest relative change of it close by; condition 3 wants none in the limit
    integrable: bool  # whether the posterior's mass is inside the support (condition 5)

    @property
    def holds(self) -> bool:
        """Whether conditions 1, 2, 3 and 5 hold, as far as these samples can tell."""
        matrices = self.hessian if self.hessian.ndim == 3 else self.hessian[:, None, None]
        return bool(
            self.integrable
            and np.all(self.gradient < 1e-3)
            and np.all(np.linalg.eigvalsh(matrices) > 0)
            and np.all(self.growth > 1e-6)
            and np.all(self.smoothness < 0.1)
        )


RADIUS = 0.01  # of "close by" in condition 3; in natural units, those in which the mean Hessian of a sample is 1
DIFFERENCE = 1e-3  # of the points between which derivatives are taken, in the same units


def check_regularity(posterior: NumericalPosterior, g: ArrayLike) -> Regularity:
    """Check Assumption 1 for a separable loss and a prior on the losses g of some samples, (n, m).

    At the minimiser of the cumulative loss (1) the gradient must be zero and the Hessian positive definite (condition
    1), grown by the second half of the samples as by the first (2), and the same close by (3); the posterior must be
    integrable (5), as far as the support shows. Condition 4 is not checked: it follows from 1 to 3 for a convex loss,
    but a loss with another minimum as deep, such as g sin(log(weight)), can pass although it violates it. The
    derivatives are differences of the loss itself, so that a kink cannot hide between the nodes of the posterior.

    Examples
    --------
    >>> weighter = NumericalPosterior(lambda weight, g: 0.1 * weight * g - np.log(weight), lambda weight: weight)
    >>> check_regularity(weighter, [[0.2], [0.4]]).holds
    True
    >>> no_hessian = NumericalPosterior(lambda weight, g: abs(weight - 1) * (1 + g), lambda weight: 0 * weight)
    >>> check_regularity(no_hessian, [[0.2], [0.4]]).holds
    False
    """
    who = "theory.check_regularity"
    if posterior.forgetting != 1:
        raise ValueError(
            f"{who}: forgetting must be 1, got {posterior.forgetting}. With a past that fades, the Hessian of (1) does "
            "not grow for ever, as condition 2 asks."
        )
    rows = np.asarray(g, dtype=np.float64)
    if rows.ndim != 2 or len(rows) < 2:
        raise ValueError(f"{who}: g must have the shape (n, m) with two rows or more, got {rows.shape}.")
    state = posterior.update(posterior.init(rows.shape[1]), rows)
    try:
        posterior.mean(state)
        integrable = True
    except ValueError:
        integrable = False
    found = [_at_minimum(posterior, rows[:, i], start) for i, start in enumerate(_lowest_nodes(posterior, state))]
    minimizer, gradient, hessian, growth, smoothness = (np.array(values) for values in zip(*found, strict=True))
    if posterior.n_parameters == 1:
        minimizer, hessian = minimizer[:, 0], hessian[:, 0, 0]
    return Regularity(minimizer, gradient, hessian, growth, smoothness, integrable)


def _lowest_nodes(posterior: NumericalPosterior, state: SumState) -> Array:
    """Parameters (m, parameters) at the node where each member's cumulative loss is least."""
    nodes = np.stack([node.ravel() for node in posterior.nodes])
    return nodes[:, posterior.cumulative(state).reshape(posterior.n_members(state), -1).argmin(axis=1)].T


def _at_minimum(posterior: NumericalPosterior, g: Array, start: Array) -> tuple[Array, float, Array, float, float]:
    """Minimiser, gradient, Hessian, growth and smoothness of one member's cumulative loss."""
    from scipy.linalg import eigvalsh
    from scipy.optimize import minimize

    k, losses = len(start), g[~np.isnan(g)]
    low, high = posterior.support

    def total(points: Array, of: Array = losses) -> Array:
        """Cumulative loss (1) at the weights (points, parameters)."""
        each = posterior.loss(*points.T[:, :, None], of)
        return np.asarray(posterior.prior(*points.T) + np.broadcast_to(each, (len(points), len(of))).sum(axis=1))

    def within(log_weight: Array) -> float:
        weight = np.exp(log_weight)
        return float(total(weight[None])[0]) if np.all((low <= weight) & (weight <= high)) else np.inf

    # The nodes are some 0.2 apart in log(weight).
    simplex = np.log(start) + np.vstack((np.zeros(k), np.where(start > 1, -0.2, 0.2) * np.eye(k)))
    found = minimize(
        within,
        simplex[0],
        method="Nelder-Mead",
        options={"initial_simplex": simplex, "xatol": 1e-10, "fatol": np.inf},
    )
    minimizer = np.exp(found.x)

    # Natural units: first the weight's own, then those in which the mean Hessian of a sample is 1, if that exists.
    units = np.diag(minimizer)
    in_own = _hessian(total, minimizer, units)
    if np.linalg.eigvalsh(in_own)[0] > 0:
        units = units @ np.linalg.inv(np.linalg.cholesky(in_own / max(1, len(losses)))).T
        units /= max(1.0, np.abs(units / minimizer[:, None]).sum(axis=1).max())  # at most the weight itself
    here = _hessian(total, minimizer, units)
    back = np.linalg.inv(units)
    hessian = back.T @ here @ back
    slope = _gradient(total, minimizer, units)
    if np.linalg.eigvalsh(here)[0] <= 0:
        return minimizer, float(np.abs(slope).max()), hessian, 0.0, np.inf
    sides = RADIUS * np.stack(np.meshgrid(*[[-1, 0, 1]] * k), axis=-1).reshape(-1, k)
    changes = [eigvalsh(_hessian(total, minimizer + units @ side, units), here) - 1 for side in sides]
    first_half = _hessian(lambda points: total(points, losses[: len(losses) // 2]), minimizer, units)
    return (
        minimizer,
        float(np.abs(np.linalg.solve(np.linalg.cholesky(here), slope)).max()),
        hessian,
        float(eigvalsh(here - first_half, here)[0]),
        float(np.abs(changes).max()),
    )


def _gradient(total: Callable[[Array], Array], at: Array, units: Array) -> Array:
    """Gradient along the columns of units, by five-point differences."""
    steps = DIFFERENCE * np.array([-2, -1, 1, 2])
    values = [total(at + steps[:, None] * unit) for unit in units.T]
    return np.asarray(np.stack(values) @ np.array([1, -8, 8, -1]) / (12 * DIFFERENCE))


def _hessian(total: Callable[[Array], Array], at: Array, units: Array) -> Array:
    """Hessian along the columns of units, by second differences."""
    k, steps = len(at), DIFFERENCE * units.T
    out = np.empty((k, k))
    for i, j in np.ndindex(k, k):
        plus, minus = steps[i] + steps[j], steps[i] - steps[j]
        corners = total(at + np.stack((plus, minus, -minus, -plus)) / 2)
        out[i, j] = corners @ np.array([1, -1, -1, 1]) / DIFFERENCE**2
    return out
