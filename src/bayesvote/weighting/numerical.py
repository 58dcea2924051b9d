"""Algorithm 1 for any separable loss of the user, by numerical integration."""

from collections.abc import Callable
from dataclasses import dataclass
from functools import cached_property
from typing import NamedTuple

import numpy as np
from numpy.polynomial import chebyshev

from bayesvote.core import checks as _checks
from bayesvote.core.checks import Array, InputError, InputTypeError
from bayesvote.losses import LossScale
from bayesvote.weighting.base import Additive, SumState, copied

NODES = 20  # Chebyshev nodes per panel; with PANEL they resolve exp and logGamma of log(weight) to rounding
PANEL = 4.0  # widest panel, in log(weight)
POINTS = 201  # of the grid on which the posterior is evaluated: at least ten per standard deviation
NEGLIGIBLE = -45.0  # log-density relative to the mode: exp(-45) is 3e-20, below the rounding of a sum
BLOCK = 2_000_000  # numbers held at a time while summing the losses of many rows


class _Grid(NamedTuple):
    """A posterior at POINTS values of every log-weight around its mass."""

    points: Array  # (parameters, m, POINTS)
    joint: Array  # (m, POINTS) or (m, POINTS, POINTS), each member's summing to one

    @property
    def marginals(self) -> Array:
        """Probabilities of the points of every parameter, (parameters, m, POINTS)."""
        return _along_axes(self.joint, np.sum)


def _along_axes(values: Array, reduce: Callable[..., Array]) -> Array:
    """Reduce (m, POINTS) or (m, POINTS, POINTS) to one value per point of every axis."""
    return values[None] if values.ndim == 2 else np.stack((reduce(values, axis=2), reduce(values, axis=1)))


@dataclass(frozen=True)
class NumericalPosterior(Additive):
    r"""The general scheme (Algorithm 1) for a separable loss :math:`\sum_i r(\lambda_i; g_i)` of the user's.

    The cumulative loss (1) of every member is kept at fixed nodes of log(weight): piecewise Chebyshev nodes over the
    whole support. So the state is a sum like those of the closed families, exact at the nodes, and is interpolated
    between them wherever the posterior has gone.

    Parameters
    ----------
    loss : callable
        ``loss(weight, g)``, vectorised over arrays that broadcast, finite and smooth on the support. With two
        parameters per weight, ``loss(first, second, g)``.
    prior : callable
        The initial loss, ``prior(weight)``: minus the logarithm of the prior density, up to a constant.
    n_parameters : {1, 2}
        How many parameters a weight has. With two, ``mean`` has the shape (m, 2); narrow the support then, as the work
        grows with its square.
    support : (float, float)
        Smallest and largest weight; the posterior must fit between them.
    forgetting : float
        Factor by which the past fades with each sample; 1 keeps all of it.

    Examples
    --------
    Loss (8) with the prior (10), which is what :class:`GammaRate` has in closed form:

    >>> weighter = NumericalPosterior(
    ...     loss=lambda weight, g: 0.1 * weight * g - np.log(weight), prior=lambda weight: weight
    ... )
    >>> state = weighter.update(weighter.init(2), [[0.1, 0.9], [0.3, 0.7]])
    >>> weighter.mean(state)
    array([2.88461538, 2.5862069 ])
    """

    loss_scale = LossScale.LOG_LIKELIHOOD
    reference = ("n_parameters", "support", "forgetting")

    loss: Callable[..., Array]
    prior: Callable[..., Array]
    n_parameters: int = 1
    support: tuple[float, float] = (1e-15, 1e15)
    forgetting: float = 1.0

    def __post_init__(self) -> None:
        if not callable(self.loss) or not callable(self.prior):
            must = "must be functions, loss(weight, g) and prior(weight)"
            raise InputTypeError("NumericalPosterior", "loss and prior", must)
        _checks.one_or_two("NumericalPosterior", "n_parameters", self.n_parameters)
        _checks.fraction("NumericalPosterior", "forgetting", self.forgetting)
        low, high = self.support
        _checks.positive("NumericalPosterior", "support[0]", low)
        _checks.positive("NumericalPosterior", "support[1]", high)
        if low >= high:
            raise InputError("NumericalPosterior", "support", "must be increasing", repr(self.support))
        self._finite(self._prior_at_nodes, "prior")

    @cached_property
    def _edges(self) -> Array:
        low, high = np.log(self.support)
        return np.linspace(low, high, 1 + int(np.ceil((high - low) / PANEL)))

    @cached_property
    def nodes(self) -> tuple[Array, ...]:
        """Parameters at all nodes: their values, flat, an array for each."""
        left, right = self._edges[:-1, None], self._edges[1:, None]
        axis = np.exp((left + right + (right - left) * chebyshev.chebpts1(NODES)) / 2).ravel()
        return tuple(grid.ravel() for grid in np.meshgrid(*[axis] * self.n_parameters, indexing="ij"))

    @cached_property
    def _prior_at_nodes(self) -> Array:
        values = np.asarray(self.prior(*self.nodes), dtype=np.float64)
        return np.broadcast_to(values, self.nodes[0].shape)

    @property
    def n_statistics(self) -> int:
        """The count, and the cumulative loss at every node."""
        return 1 + len(self.nodes[0])

    def _finite(self, values: Array, name: str) -> None:
        if not np.all(np.isfinite(values)):
            must, got = f"must be finite on the support {self.support}", str(values[~np.isfinite(values)][0])
            raise InputError("NumericalPosterior", name, must, got, "Narrow the support, or fix the function.")

    def _statistics(self, g: Array) -> Array:
        answers = ~np.isnan(g)
        weights = (node[:, None, None] for node in self.nodes)
        at_nodes = self.loss(*weights, np.where(answers, g, 1.0))
        values = np.broadcast_to(np.asarray(at_nodes, dtype=np.float64), (self.n_statistics - 1, *g.shape))
        self._finite(values[:, answers], "loss")
        return np.where(answers, values, np.nan)

    def _update(self, state: SumState, g: Array, w: Array) -> SumState:
        state = copied(state)  # the user's loss may raise halfway through
        rows = max(1, BLOCK // (self.n_statistics * g.shape[1]))
        for start in range(0, len(g), rows):
            state = super()._update(state, g[start : start + rows], w[start : start + rows])
        return state

    def cumulative(self, state: SumState) -> Array:
        """Cumulative loss (1) at the nodes, (m, nodes) or (m, nodes, nodes), the initial loss included."""
        per_axis = len(self.nodes[0]) if self.n_parameters == 1 else NODES * (len(self._edges) - 1)
        values = (state.value[1:] + self._prior_at_nodes[:, None]).T
        return np.ascontiguousarray(values).reshape(-1, *[per_axis] * self.n_parameters)

    def interpolate(self, values: Array, points: Array) -> Array:
        """Values (m, nodes) or (m, nodes, nodes) at the log-weights ``points`` (parameters, m, points) instead."""
        n_panels, width = len(self._edges) - 1, self._edges[1] - self._edges[0]
        panel = np.clip(np.floor((points - self._edges[0]) / width), 0, n_panels - 1).astype(np.intp)
        local = 2 * (points - self._edges[panel]) / width - 1
        to_coefficients = np.linalg.inv(chebyshev.chebvander(chebyshev.chebpts1(NODES), NODES - 1))
        rows = chebyshev.chebvander(local, NODES - 1) @ to_coefficients
        if self.n_parameters == 1:
            in_panels = values.reshape(len(values), n_panels, NODES)
            return np.asarray((rows[0] * in_panels[np.arange(len(values))[:, None], panel[0]]).sum(axis=2))
        matrices = np.zeros((*points.shape, n_panels, NODES))
        np.put_along_axis(matrices, panel[..., None, None], rows[..., None, :], axis=-2)
        first, second = matrices.reshape(*points.shape, n_panels * NODES)
        return np.asarray(first @ values @ np.swapaxes(second, 1, 2))

    def _read(self, state: SumState) -> _Grid:
        """Find the mass, zooming in on it from the whole support, and its density there."""
        values, m = -self.cumulative(state), self.n_members(state)
        low = np.full((self.n_parameters, m), self._edges[0])
        high = np.full((self.n_parameters, m), self._edges[-1])
        while True:
            points = np.linspace(low, high, POINTS, axis=2)
            log_density = self.interpolate(values, points) + points[0].reshape(m, POINTS, *[1] * (values.ndim - 2))
            if self.n_parameters == 2:
                log_density += points[1][:, None, :]
            log_density -= log_density.max(axis=tuple(range(1, log_density.ndim)), keepdims=True)
            profiles = _along_axes(log_density, np.max)
            counts = profiles > NEGLIGIBLE
            first = np.maximum(counts.argmax(axis=2) - 1, 0)
            last = np.minimum(POINTS - counts[:, :, ::-1].argmax(axis=2), POINTS - 1)
            small = last - first < POINTS / 2
            if not np.any(small):
                break
            for end, index in ((low, first), (high, last)):
                end[small] = np.take_along_axis(points, index[..., None], 2)[..., 0][small]
        self._inside(points, profiles)
        joint = np.exp(log_density)
        return _Grid(points, joint / joint.sum(axis=tuple(range(1, joint.ndim)), keepdims=True))

    def _inside(self, points: Array, profiles: Array) -> None:
        """Raise an error for mass at the ends of the support: there is more beyond."""
        for end, edge in ((0, self._edges[0]), (-1, self._edges[-1])):
            if np.any((points[..., end] == edge) & (profiles[..., end] > -30)):
                must = f"must fit into the support {self.support}"
                got = f"one that reaches its end at {self.support[end]:g}"
                do = "Widen the support, or check that prior and loss are integrable."
                raise InputError("NumericalPosterior", "the posterior", must, got, do)

    def _shaped(self, values: Array) -> Array:
        """(parameters, ..., m) as the mean is shaped: (..., m), or (..., m, 2)."""
        return values[0] if self.n_parameters == 1 else np.moveaxis(values, 0, -1)

    def mean(self, state: SumState) -> Array:
        """Posterior mean, the integral in Algorithm 1."""
        grid = self._read(state)
        return self._shaped((np.exp(grid.points) * grid.marginals).sum(axis=2))

    def variance(self, state: SumState) -> Array:
        """Posterior variance."""
        grid = self._read(state)
        weights, probabilities = np.exp(grid.points), grid.marginals
        mean = (weights * probabilities).sum(axis=2, keepdims=True)
        return self._shaped(((weights - mean) ** 2 * probabilities).sum(axis=2))

    def _quantile(self, state: SumState, probability: float) -> Array:
        from scipy.interpolate import make_interp_spline

        grid = self._read(state)
        points, marginals = grid.points, grid.marginals
        out = np.empty(points.shape[:2])
        for k, i in np.ndindex(*out.shape):
            u = points[k, i]
            density = make_interp_spline(u, marginals[k, i] / (u[1] - u[0]), k=9)
            cdf = density.antiderivative()
            x = float(np.interp(probability, cdf(u), u))
            for _ in range(5):
                x -= float((cdf(x) - probability) / density(x))
            out[k, i] = np.exp(x)
        return self._shaped(out)

    def _sample(self, state: SumState, size: int, rng: np.random.Generator) -> Array:
        grid, m = self._read(state), self.n_members(state)
        draws = np.empty((self.n_parameters, size, m))
        for i in range(m):
            cells = rng.choice(grid.joint[i].size, size=size, p=grid.joint[i].ravel())
            for k, at in enumerate(np.unravel_index(cells, grid.joint[i].shape)):
                u = grid.points[k, i]
                draws[k, :, i] = u[at] + (u[1] - u[0]) * (rng.random(size) - 0.5)
        return self._shaped(np.exp(draws))

    def terms(self, weights: Array, G: Array) -> Array:
        """The user's loss at the weights."""
        parameters = (weights,) if self.n_parameters == 1 else (weights[..., 0], weights[..., 1])
        answers = ~np.isnan(G)
        return np.where(answers, self.loss(*parameters, np.where(answers, G, 1.0)), np.nan)
