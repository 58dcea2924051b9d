"""Algorithm 1 for losses of all weights together: a Gaussian posterior, updated by a Newton step per row."""

from collections.abc import Callable
from dataclasses import dataclass
from typing import NamedTuple

import numpy as np

from bayesvote.core import checks as _checks
from bayesvote.core.checks import Array, InputError, InputTypeError
from bayesvote.core.state import all_finite, require
from bayesvote.losses import LossScale
from bayesvote.weighting.gaussian import GaussianPosterior, Gaussians

# Differences for numerical derivatives: each balances what is cut off and what is rounded.
FIRST, SECOND = 6e-6, 1e-4  # powers 1/3 and 1/4 of machine epsilon
NODES = 8  # along the way from no weights to the weights, over which a loss is shared out among the members
MOST_STEPS = 100  # of Newton's method, to find the mode of the prior


class LaplaceState(NamedTuple):
    """A Gaussian in its natural parameters, which rows add to, and the mean that follows from them."""

    precision: Array  # (m, m): the sum of the Hessians, that of the initial loss among them
    shift: Array  # (m,): the precision times the mean
    mean: Array  # (m,)
    samples: Array  # (): the sum of the sample weights


@dataclass(frozen=True)
class LaplacePosterior(GaussianPosterior[LaplaceState]):
    r"""The general scheme (Algorithm 1) for any smooth loss :math:`\ell(\lambda; g)` of the user's, separable or not.

    The posterior density is proportional to :math:`\exp(-\ell_0(\lambda) - \sum_t \ell(\lambda; g_t))`. It is kept as
    a Gaussian, in constant memory: each row adds its loss to second order around the mean, and the mean takes one
    Newton step. Where the loss is quadratic that is the posterior itself: with the squared margin loss it is
    :class:`JointGaussian` with one precision. Otherwise it is an approximation, the better the more rows there are;
    it depends on the order of the rows, so that it can neither be merged nor unlearn.

    Parameters
    ----------
    loss : callable
        ``loss(weights, g)`` of arrays (..., m) that broadcast; the answer has the shape (...). A member that abstains
        has the weight 0 there and the loss 0.5. Best the minus log-likelihood of a label: probabilities take it so.
    prior : callable
        The initial loss, ``prior(weights)`` of an array (..., m): minus the logarithm of the prior density, up to a
        constant. Near its least it must be curved in all directions.
    gradient, hessian : callable, optional
        Derivatives of the loss in the weights, (m,) and (m, m), at ``weights`` (m,) and ``g`` (m,). Without them they
        are taken by differences, the Hessian from 4 m**2 values of the loss: for few members only.
    steps : int
        Number of Newton steps per row. More than one finds the mode more exactly, which helps with losses that are far
        from quadratic within the posterior's width.

    Examples
    --------
    The squared loss of the ensemble's margin, which :class:`JointGaussian` has in closed form:

    >>> weighter = LaplacePosterior(
    ...     loss=lambda weights, g: 0.5 * (1 - (weights * (1 - 2 * g)).sum(axis=-1)) ** 2,
    ...     prior=lambda weights: 50 * ((weights - 0.5) ** 2).sum(axis=-1),
    ... )
    >>> state = weighter.update(weighter.init(2), [[0.1, 0.9], [0.3, 0.7]])
    >>> weighter.mean(state).round(3)
    array([0.512, 0.488])
    """

    loss_scale = LossScale.LOG_PROBABILITY
    reference = ("steps",)  # the functions are the user's own

    loss: Callable[[Array, Array], Array]
    prior: Callable[[Array], Array]
    gradient: Callable[[Array, Array], Array] | None = None
    hessian: Callable[[Array, Array], Array] | None = None
    steps: int = 1

    def __post_init__(self) -> None:
        for name in ("loss", "prior", "gradient", "hessian"):
            given = getattr(self, name)
            if not callable(given) and (given is not None or name in ("loss", "prior")):
                raise InputTypeError("LaplacePosterior", name, "must be a function", repr(given))
        _checks.integer("LaplacePosterior", "steps", self.steps)

    def init(self, n_members: int) -> LaplaceState:
        """State before any sample: the Gaussian around the least of the initial loss."""
        _checks.integer("LaplacePosterior.init", "n_members", n_members)
        mean = np.full(n_members, 1 / n_members)
        for _ in range(MOST_STEPS):
            here, step = self._prior(mean), _solve(self._prior_factor(mean), first_differences(self._prior, mean))
            # Halved until the loss does not grow; where it is least, rounding decides.
            while np.abs(step).max() > FIRST and not self._prior(mean - step) <= here:
                step = step / 2
            mean = mean - step
            if np.abs(step).max() <= FIRST:
                break
        self._prior_factor(mean)
        precision = second_differences(self._prior, mean)
        return LaplaceState(precision, precision @ mean, mean, np.zeros(()))

    def _prior_factor(self, weights: Array) -> Array:
        factor = _factor(second_differences(self._prior, weights))
        if factor is None:
            got = f"one that is not at the weights {weights.tolist()}"
            do = "Add a term such as (weights**2).sum(axis=-1) to it."
            raise InputError("LaplacePosterior", "prior", "must be curved in all directions", got, do)
        return factor

    def n_members(self, state: LaplaceState) -> int:
        """Return the number of members of the state."""
        return len(state.mean)

    def least_bytes(self, n_members: int) -> int:
        """Return the size of the precision matrix."""
        return 8 * n_members**2

    def validate(self, state: LaplaceState) -> None:
        """Reject a precision that is not definite, and a mean that does not follow from it."""
        all_finite(state)
        require(float(state.samples) >= 0, "samples must be at least 0")
        require(np.array_equal(state.precision, state.precision.T), "precision must be symmetric")
        factor = _factor(state.precision)
        if factor is None:
            raise ValueError("precision must be positive definite")
        off = np.abs(_solve(factor, state.shift) - state.mean)
        require(bool(np.all(off <= 1e-9 * (1 + np.abs(state.mean).max()))), "mean must follow from precision and shift")

    def gaussians(self, state: LaplaceState) -> Gaussians:
        """Return one Gaussian."""
        return Gaussians(np.ones(1), state.mean[None], np.asarray(np.linalg.inv(state.precision)[None]))

    def mean(self, state: LaplaceState) -> Array:
        """Return the posterior mean."""
        return state.mean.copy()

    def effective_samples(self, state: LaplaceState) -> Array:
        """Return the number of samples behind the posterior, the same for every member."""
        return np.full(len(state.mean), float(state.samples))

    def _update(self, state: LaplaceState, g: Array, w: Array) -> LaplaceState:
        for row, weight in zip(g, w, strict=True):
            if weight != 0:
                state = self._learned(state, row, weight)
        return state

    def _learned(self, state: LaplaceState, g: Array, w: float) -> LaplaceState:
        """State after a row: of its loss to second order around the mean, then around where that leads, and so on."""
        mean = state.mean
        for _ in range(self.steps):
            slope, curvature = self._derivatives(mean, g)
            factor = _factor(state.precision + w * curvature)
            if factor is None:
                # A loss that is not convex: what it takes away from the precision is left out.
                values, vectors = np.linalg.eigh(curvature)
                root = vectors * np.sqrt(np.maximum(values, 0.0))
                curvature = root @ root.T
                factor = np.linalg.cholesky(state.precision + w * curvature)
            shift = state.shift + w * (curvature @ mean - slope)
            mean = _solve(factor, shift)
        return LaplaceState(state.precision + w * curvature, shift, mean, np.asarray(state.samples + w))

    def _derivatives(self, weights: Array, g: Array) -> tuple[Array, Array]:
        """Gradient and Hessian of a row's loss; 0 for members that abstain."""
        answers = ~np.isnan(g)
        weights, g = np.where(answers, weights, 0.0), np.where(answers, g, 0.5)
        slope = np.where(answers, self._gradient(weights, g), 0.0)
        if self.hessian is None:
            curvature = second_differences(lambda points: self._loss(points, g), weights)
        else:
            curvature = np.asarray(self.hessian(weights, g), dtype=np.float64)
            curvature = (curvature + curvature.T) / 2
        curvature = np.where(answers[:, None] & answers, curvature, 0.0)
        self._finite(slope, "gradient")
        self._finite(curvature, "hessian")
        return slope, curvature

    def _gradient(self, weights: Array, g: Array) -> Array:
        if self.gradient is not None:
            return np.asarray(self.gradient(weights, g), dtype=np.float64)
        return first_differences(lambda points: self._loss(points, g), weights)

    def _loss(self, weights: Array, g: Array) -> Array:
        values = np.asarray(self.loss(weights, g), dtype=np.float64)
        self._finite(values, "loss")
        return values

    def _prior(self, weights: Array) -> Array:
        values = np.asarray(self.prior(weights), dtype=np.float64)
        self._finite(values, "prior")
        return values

    def _finite(self, values: Array, name: str) -> None:
        if not np.all(np.isfinite(values)):
            got = str(values[~np.isfinite(values)][0])
            raise InputError("LaplacePosterior", name, "must be finite at all weights", got, "Fix the function.")

    def losses_at(self, weights: Array, G: Array) -> Array:
        """Return the user's loss of every label."""
        answers = ~np.isnan(G)
        return self._loss(np.where(answers, weights, 0.0), np.where(answers, G, 0.5))

    def terms(self, weights: Array, G: Array) -> Array:
        """The loss shared out among the members: what each adds as all weights grow from 0 together.

        Member i has the integral of its weight times the loss's derivative in it (Aumann and Shapley), by quadrature;
        what is left of the loss, that of no weights among it, is shared out evenly.
        """
        nodes, shares = np.polynomial.legendre.leggauss(NODES)
        out = np.empty(G.shape)
        for at in np.ndindex(G.shape[:2]):
            answers = ~np.isnan(G[at])
            own, g = np.where(answers, weights, 0.0), np.where(answers, G[at], 0.5)
            slopes = np.array([self._gradient((1 + node) / 2 * own, g) for node in nodes])
            parts = own * (shares / 2 @ slopes)
            rest = self._loss(own, g) - parts.sum()
            out[at] = np.where(answers, parts + rest / max(answers.sum(), 1), np.nan)
        return out


def first_differences(function: Callable[[Array], Array], at: Array) -> Array:
    """Gradient of a function of (..., m), by central differences."""
    steps = np.diag(FIRST * np.maximum(np.abs(at), 1.0))
    return np.asarray((function(at + steps) - function(at - steps)) / (2 * np.diag(steps)))


def second_differences(function: Callable[[Array], Array], at: Array) -> Array:
    """Hessian of a function of (..., m), by central differences."""
    sizes = SECOND * np.maximum(np.abs(at), 1.0)
    steps = np.diag(sizes)
    one, other = steps[:, None], steps[None]
    found = function(at + one + other) - function(at + one - other) - function(at - one + other)
    found = (found + function(at - one - other)) / (4 * sizes[:, None] * sizes)
    return np.asarray((found + found.T) / 2)


def _factor(matrix: Array) -> Array | None:
    """Cholesky factor; None for a matrix that is not positive definite."""
    try:
        return np.asarray(np.linalg.cholesky(matrix))
    except np.linalg.LinAlgError:
        return None


def _solve(factor: Array, right: Array) -> Array:
    from scipy.linalg import cho_solve

    return np.asarray(cho_solve((factor, True), right))
