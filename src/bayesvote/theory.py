"""The paper's guarantees as functions: the optimum, asymptotic variances, the error bound, the regularity conditions.

Equation numbers are those of the paper, counted from (1).
"""

from collections.abc import Callable
from typing import NamedTuple

import numpy as np
from numpy.typing import ArrayLike

from bayesvote.core import checks as _checks
from bayesvote.core.checks import Array, InputError, InputTypeError
from bayesvote.weighting import NumericalPosterior, SumState


def optimal_weights(mean_loss: ArrayLike, theta: float = 0.1) -> Array:
    """Minimiser of the expected loss (8), 1/(theta E g): what the weights tend to.

    >>> optimal_weights([0.25, 0.5])
    array([40., 20.])
    """
    _checks.positive("theory.optimal_weights", "theta", theta)
    return 1 / (theta * _positive("theory.optimal_weights", "mean_loss", mean_loss))


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
    who = "theory.bayes_variance"
    _checks.positive(who, "theta", theta)
    variance = _positive(who, "loss_variance", loss_variance, zero=True)
    return np.asarray(variance / (theta**2 * _positive(who, "mean_loss", mean_loss) ** 4))[()]


def sgd_variance(mean_loss: ArrayLike, loss_variance: ArrayLike, step: ArrayLike, theta: float = 0.1) -> Array:
    """Asymptotic variance (18) of sqrt(T) (SGD (14) - optimum); infinite for steps too short for that rate.

    The proof of Theorem 4 writes 2 step/optimum where 2 step/optimum**2 is meant; this is the latter.

    >>> sgd_variance(0.5, 0.01, step=[100.0, 400.0, 800.0])
    array([        inf, 16.        , 21.33333333])
    """
    who = "theory.sgd_variance"
    _checks.positive(who, "theta", theta)
    step = _positive(who, "step", step)
    variance = _positive(who, "loss_variance", loss_variance, zero=True)
    room = 2 * step * (theta * _positive(who, "mean_loss", mean_loss)) ** 2 - 1
    with np.errstate(divide="ignore", invalid="ignore"):
        return np.where(room > 0, (theta * step) ** 2 * variance / np.maximum(room, 0), np.inf)[()]


def best_step(mean_loss: ArrayLike, theta: float = 0.1) -> Array:
    """The one step at which SGD's variance (18) is as small as the posterior mean's (15).

    >>> best_step([0.5, 0.25])
    array([ 400., 1600.])
    """
    _checks.positive("theory.best_step", "theta", theta)
    return 1 / (theta * _positive("theory.best_step", "mean_loss", mean_loss)) ** 2


def _positive(who: str, name: str, values: ArrayLike, *, zero: bool = False) -> Array:
    """Numbers as an array, all finite and above 0 (or at 0, with ``zero=True``)."""
    array = np.asarray(values, dtype=np.float64)
    valid = np.isfinite(array) & ((array >= 0) if zero else (array > 0))
    if not np.all(valid):
        raise InputError(
            who, name, f"must be finite and {'at least' if zero else 'above'} 0", str(np.atleast_1d(array[~valid])[0])
        )
    return array


def error_bound(loss_of_truth: ArrayLike, loss_of_other: ArrayLike, p: float) -> float:
    """Bound (13) on the error of rule (12) at the optimal weights, its expectations taken over rows of data.

    Parameters
    ----------
    loss_of_truth, loss_of_other : array_like of shape (n, m)
        Members' losses g(x, y) for the true label and g(x, -y) for the other one.
    p : float
        Any number above 1; at 1, the limit, which is a bound, too.

    Examples
    --------
    >>> error_bound([[0.1, 0.3], [0.2, 0.3]], [[0.9, 0.7], [0.8, 0.7]], p=2.0)
    0.50043...
    """
    if not 1 <= p < np.inf:
        raise InputError("theory.error_bound", "p", "must be finite and at least 1", repr(p))
    return float(np.exp(_log_bound(*_both_losses("theory.error_bound", loss_of_truth, loss_of_other), p)))


class Bound(NamedTuple):
    """An error bound and the p that gives it."""

    value: float
    p: float


def best_error_bound(loss_of_truth: ArrayLike, loss_of_other: ArrayLike) -> Bound:
    """The least bound (13) over all p, at most 1; p is 1 where the bound falls all the way to its limit there.

    >>> bound = best_error_bound([[0.1, 0.3], [0.2, 0.3]], [[0.9, 0.7], [0.8, 0.7]])
    >>> round(bound.value, 3), bound.p
    (0.261, 1.0)
    """
    from scipy.optimize import minimize_scalar

    truth, other = _both_losses("theory.best_error_bound", loss_of_truth, loss_of_other)
    at_one = _log_bound(truth, other, 1.0)
    # The logarithm of (13) is convex in 1/p, so its least value is found; the search never looks at the ends.
    found = minimize_scalar(
        lambda t: _log_bound(truth, other, 1 / t), bounds=(0, 1), method="bounded", options={"xatol": 1e-9}
    )
    log_bound, p = (at_one, 1.0) if at_one <= found.fun else (float(found.fun), float(1 / found.x))
    return Bound(float(np.exp(min(0.0, log_bound))), p)


def _both_losses(who: str, truth: ArrayLike, other: ArrayLike) -> tuple[Array, Array]:
    right, wrong = np.asarray(truth, dtype=np.float64), np.asarray(other, dtype=np.float64)
    if right.ndim != 2 or right.shape != wrong.shape or right.size == 0:
        raise InputError(who, "both losses", "must have one shape (n, m)", f"{right.shape} and {wrong.shape}")
    valid = all(np.all(np.isfinite(losses) & (losses >= 0)) for losses in (right, wrong))
    if not valid or not np.all(right.mean(axis=0) > 0):
        must = "must be finite and at least 0, and no member's all 0, or its optimal weight is infinite"
        raise InputError(who, "losses", must)
    return right, wrong


def _log_bound(truth: Array, other: Array, p: float) -> float:
    from scipy.special import logsumexp

    with np.errstate(divide="ignore"):
        log_sum = np.log((other / truth.mean(axis=0)).sum(axis=1))
    if p == 1:
        return float(np.log(truth.shape[1]) - log_sum.min())
    log_mean = logsumexp(-log_sum / (p - 1)) - np.log(len(log_sum))
    return float(np.log(truth.shape[1]) / p + (p - 1) / p * log_mean)


class Regularity(NamedTuple):
    """Results of :func:`check_regularity`, member by member. With two parameters the Hessian has two more axes."""

    minimizer: Array  # of the cumulative loss (1)
    gradient: Array  # there, its largest part in units of the posterior's standard deviation; condition 1 wants 0
    hessian: Array  # there; condition 1 wants it positive definite
    growth: Array  # least share of it that is not there yet at the minimiser of half the samples; condition 2 wants > 0
    smoothness: Array  # largest relative change of it close by; condition 3 wants none in the limit
    integrable: bool  # whether the posterior's mass is inside the support (condition 5)

    @property
    def holds(self) -> bool:
        """True if conditions 1, 2, 3 and 5 hold on these samples."""
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
    1). The Hessian must be larger than that of the first half of the samples at their own minimiser (2), and the same
    close by (3). The posterior must be integrable (5), as far as the support shows. The samples must outweigh the
    prior: before that, the Hessian may still shrink.

    Condition 4 is not checked. For a convex loss it follows from 1 to 3. A loss with another minimum as deep, such as
    g sin(log(weight)), can pass although it violates condition 4.

    The derivatives are differences of the loss itself, so a kink between the nodes of the posterior is found unless it
    is slight. In (weight - 1)**2 + c abs(weight - 1) it is found from about c = 1e-4.

    Examples
    --------
    >>> weighter = NumericalPosterior(lambda weight, g: 0.1 * weight * g - np.log(weight), lambda weight: weight)
    >>> check_regularity(weighter, [[0.2], [0.4]] * 100).holds
    True
    >>> no_hessian = NumericalPosterior(lambda weight, g: abs(weight - 1) * (1 + g), lambda weight: 0 * weight)
    >>> check_regularity(no_hessian, [[0.2], [0.4]] * 100).holds
    False
    """
    who = "theory.check_regularity"
    if not isinstance(posterior, NumericalPosterior):
        do = "Pass loss and prior as functions, NumericalPosterior(loss, prior)."
        raise InputTypeError(who, "posterior", "must be a NumericalPosterior", type(posterior).__name__, do)
    if posterior.forgetting != 1:
        do = "With a past that fades, the Hessian of (1) does not grow without bound, as condition 2 requires."
        raise InputError(who, "forgetting", "must be 1", str(posterior.forgetting), do)
    rows = np.asarray(g, dtype=np.float64)
    if rows.ndim != 2 or len(rows) < 2:
        raise InputError(who, "g", "must have the shape (n, m) with two rows or more", str(rows.shape))
    state = posterior.update(posterior.init(rows.shape[1]), rows)
    try:
        posterior.mean(state)
        integrable = True
    except ValueError:
        integrable = False
    answers = ~np.isnan(rows)
    first_half = np.where(answers.cumsum(axis=0) <= answers.sum(axis=0) // 2, rows, np.nan)
    half = posterior.update(posterior.init(rows.shape[1]), first_half)
    starts = zip(_lowest_nodes(posterior, state), _lowest_nodes(posterior, half), strict=True)
    found = [_at_minimum(posterior, rows[:, i], *both) for i, both in enumerate(starts)]
    minimizer, gradient, hessian, growth, smoothness = (np.array(values) for values in zip(*found, strict=True))
    if posterior.n_parameters == 1:
        minimizer, hessian = minimizer[:, 0], hessian[:, 0, 0]
    return Regularity(minimizer, gradient, hessian, growth, smoothness, integrable)


def _lowest_nodes(posterior: NumericalPosterior, state: SumState) -> Array:
    """Parameters (m, parameters) at the node where each member's cumulative loss is least."""
    nodes = np.stack([node.ravel() for node in posterior.nodes])
    return nodes[:, posterior.cumulative(state).reshape(posterior.n_members(state), -1).argmin(axis=1)].T


def _at_minimum(
    posterior: NumericalPosterior, g: Array, start: Array, start_of_half: Array
) -> tuple[Array, float, Array, float, float]:
    """Minimiser, gradient, Hessian, growth and smoothness of one member's cumulative loss."""
    from scipy.linalg import eigvalsh

    k, losses = len(start), g[~np.isnan(g)]

    def total(points: Array, of: Array = losses) -> Array:
        """Cumulative loss (1) at the weights (points, parameters)."""
        each = posterior.loss(*points.T[:, :, None], of)
        return np.asarray(posterior.prior(*points.T) + np.broadcast_to(each, (len(points), len(of))).sum(axis=1))

    def total_of_half(points: Array) -> Array:
        return total(points, losses[: len(losses) // 2])

    minimizer = _minimizer(total, posterior.support, start)
    units = _natural_units(total, minimizer, len(losses))
    here = _hessian(total, minimizer, units)
    back = np.linalg.inv(units)
    hessian = back.T @ here @ back
    slope = _gradient(total, minimizer, units)
    if np.linalg.eigvalsh(here)[0] <= 0:
        return minimizer, float(np.abs(slope).max()), hessian, 0.0, np.inf
    sides = RADIUS * np.stack(np.meshgrid(*[[-1, 0, 1]] * k), axis=-1).reshape(-1, k)
    changes = [eigvalsh(_hessian(total, minimizer + units @ side, units), here) - 1 for side in sides]
    minimizer_of_half = _minimizer(total_of_half, posterior.support, start_of_half)
    units_of_half = _natural_units(total_of_half, minimizer_of_half, len(losses) // 2)
    across = np.linalg.solve(units_of_half, units)
    half = across.T @ _hessian(total_of_half, minimizer_of_half, units_of_half) @ across
    return (
        minimizer,
        float(np.abs(np.linalg.solve(np.linalg.cholesky(here), slope)).max()),
        hessian,
        float(eigvalsh(here - half, here)[0]),
        float(np.abs(changes).max()),
    )


def _minimizer(total: Callable[[Array], Array], support: tuple[float, float], start: Array) -> Array:
    """Weights at which the cumulative loss is least, near the node where to start."""
    from scipy.optimize import minimize

    low, high = support

    def within(log_weight: Array) -> float:
        weight = np.exp(log_weight)
        return float(total(weight[None])[0]) if np.all((low <= weight) & (weight <= high)) else np.inf

    # The nodes are some 0.2 apart in log(weight).
    simplex = np.log(start) + np.vstack((np.zeros(len(start)), np.where(start > 1, -0.2, 0.2) * np.eye(len(start))))
    found = minimize(
        within,
        simplex[0],
        method="Nelder-Mead",
        options={"initial_simplex": simplex, "xatol": 1e-10, "fatol": np.inf},
    )
    return np.asarray(np.exp(found.x))


def _natural_units(total: Callable[[Array], Array], minimizer: Array, n: int) -> Array:
    """Units in which the mean Hessian of a sample is 1, if that exists; else the weight's own."""
    units = np.diag(minimizer)
    in_own = _hessian(total, minimizer, units)
    if np.linalg.eigvalsh(in_own)[0] > 0:
        units = units @ np.linalg.inv(np.linalg.cholesky(in_own / max(1, n))).T
        units /= max(1.0, np.abs(units / minimizer[:, None]).sum(axis=1).max())  # at most the weight itself
    return units


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
