"""Posteriors (21) and (24) of the shape of a Gamma likelihood of g, whose means need numerical integration."""

from abc import abstractmethod
from dataclasses import dataclass
from typing import NamedTuple

import numpy as np

from bayesvote.core import checks as _checks
from bayesvote.core.checks import Array, InputError
from bayesvote.core.state import require
from bayesvote.losses import LossScale
from bayesvote.weighting.base import Additive, SumState

_MOST_LOG = 745.0  # largest absolute logarithm of a loss: that of the smallest positive double


def _slack(count: Array) -> Array:
    """Return the tolerance for rounding of sums; proportional to the count, so that valid states stay valid."""
    return np.asarray(1e-6 * (1 + np.maximum(count, 0)))


class _Integrated(NamedTuple):
    """Posteriors of the shapes: their parameters, and the results of :mod:`_shape_kernels`."""

    parameters: Array
    frames: Array
    coefficients: Array
    mean: Array
    variance: Array

    def densities(self, member: Array, v: Array) -> Array:
        """Return the members' densities of log(shape) at points v (members, points) relative to their modes."""
        from bayesvote.weighting._shape_kernels import densities

        out, at = np.empty(v.shape), member.astype(np.intp)
        densities(self.parameters[at], self.frames[at], self.coefficients[at], v, out)
        return out

    def cdf(self, member: Array, v: Array) -> Array:
        """Return the members' posterior probabilities below v, which is relative to the mode."""
        low = self.frames[member.astype(np.intp), 2]
        nodes, weights = _panel(low, np.maximum(v, low))
        return np.asarray((weights * self.densities(member, nodes)).sum(axis=1))


def _panel(low: Array, high: Array) -> tuple[Array, Array]:
    """Return Gauss-Legendre nodes and weights on the interval [low, high] of every member."""
    x, w = np.polynomial.legendre.leggauss(96)  # resolves a density 18 standard deviations wide to 1e-15
    half = (high - low)[:, None] / 2
    return low[:, None] + half * (x + 1), half * w


class _GammaShapes(Additive):
    """Base class of both posteriors of a shape."""

    needs_log = True
    usual_loss = "logistic"
    loss_scale = LossScale.LOG_LIKELIHOOD

    @abstractmethod
    def _parameters(self, state: SumState) -> Array:
        """Rows of :mod:`_shape_kernels`."""

    def validate(self, state: SumState) -> None:
        """Reject sums of logarithms that do not fit the counts, too."""
        super().validate(state)
        count, sum_log = state.value[[0, -1]]
        require(
            bool(np.all(np.abs(sum_log) <= _MOST_LOG * count + _slack(count))), "sums of logarithms must fit counts"
        )

    def _integrate(self, state: SumState) -> _Integrated:
        from bayesvote.weighting._shape_kernels import N_COEFFICIENTS, integrate

        p = self._parameters(state)
        m = len(p)
        out = _Integrated(p, np.empty((m, 5)), np.empty((m, N_COEFFICIENTS)), np.empty(m), np.empty(m))
        integrate(*out)
        return out

    def _shape_quantile(self, posterior: _Integrated, probability: float) -> Array:
        from scipy.optimize.elementwise import find_root

        mode, _, low, high, _ = posterior.frames.T
        members = np.arange(len(mode), dtype=np.float64)

        def excess(v: Array, member: Array) -> Array:
            return posterior.cdf(member, v) - probability

        return np.asarray(np.exp(mode + find_root(excess, (low, high), args=(members,)).x))

    def _shape_sample(self, posterior: _Integrated, size: int, rng: np.random.Generator) -> Array:
        # Invert the distribution function by a table. With 2,000 points, probabilities are exact to 1e-5.
        mode, _, low, high, _ = posterior.frames.T
        members = np.arange(len(mode), dtype=np.float64)
        grid = np.linspace(low, high, 2000, axis=1)
        density = posterior.densities(members, grid)
        cumulative = np.cumsum((density[:, 1:] + density[:, :-1]) / 2, axis=1)
        uniform = rng.random((size, len(mode)))
        draws = [
            np.interp(uniform[:, i], np.concatenate(([0.0], cumulative[i] / cumulative[i, -1])), grid[i])
            for i in range(len(mode))
        ]
        return np.asarray(np.exp(mode + np.stack(draws, axis=1)))


@dataclass(frozen=True)
class GammaShape(_GammaShapes):
    r"""Posterior over the shapes of Gamma likelihoods of known rate: loss (19), posterior (21).

    The weights :math:`\lambda_i` are the shapes; the ensemble loss of a label is
    :math:`\sum_i (1 - \lambda_i) \log g_i + \theta \sum_i g_i`, so a smaller one is trusted more. Needs losses above 0,
    such as ``logistic``.

    Parameters
    ----------
    theta : float
        Rate of the likelihood (20).
    a, b, c : float
        The prior, :math:`a^{\lambda - 1} \theta^{c \lambda} / \Gamma(\lambda)^b`.
    cap : float, optional
        Bound on b and c as they grow with the samples (the paper used 1000, as its integrals did not converge).
    forgetting : float
        Factor by which the past fades with each sample; 1 keeps all of it.

    Examples
    --------
    >>> weighter = GammaShape()
    >>> state = weighter.update(weighter.init(2), [[0.1, 0.9], [0.3, 0.7]])
    >>> weighter.mean(state)
    array([0.38492626, 0.51628162])
    """

    theta: float = 0.1
    a: float = 1.0
    b: float = 1.0
    c: float = 1.0
    cap: float | None = None
    forgetting: float = 1.0

    def __post_init__(self) -> None:
        for name in ("theta", "a", "b", "c"):
            _checks.positive("GammaShape", name, getattr(self, name))
        if self.cap is not None:
            _checks.positive("GammaShape", "cap", self.cap)
        _checks.fraction("GammaShape", "forgetting", self.forgetting)

    def _statistics(self, g: Array) -> Array:
        return np.log(g)[None]

    def _parameters(self, state: SumState) -> Array:
        count, sum_log = state.value
        r, c = self.b + count, self.c + count
        if self.cap is not None:
            r, c = np.minimum(r, self.cap), np.minimum(c, self.cap)
        p = np.full((len(r), 6), np.inf)
        p[:, 0] = np.log(self.a) + sum_log + c * np.log(self.theta)
        p[:, 1] = p[:, 3] = r
        p[:, 2] = r / 2 + 1
        return p

    def mean(self, state: SumState) -> Array:
        """Return the posterior mean of (21)."""
        return self._integrate(state).mean

    def variance(self, state: SumState) -> Array:
        """Return the posterior variance."""
        return self._integrate(state).variance

    def _quantile(self, state: SumState, probability: float) -> Array:
        return self._shape_quantile(self._integrate(state), probability)

    def _sample(self, state: SumState, size: int, rng: np.random.Generator) -> Array:
        return self._shape_sample(self._integrate(state), size, rng)

    def trust(self, draws: Array) -> Array:
        """Return minus the shape: the smallest one is the best."""
        return -draws

    def terms(self, weights: Array, G: Array) -> Array:
        """Return each member's part of (19), as far as it depends on the label."""
        return (1 - weights) * np.log(G) + self.theta * G


@dataclass(frozen=True)
class GammaShapeRate(_GammaShapes):
    r"""Posterior over the shapes and rates of Gamma likelihoods: loss (22), posterior (24).

    The weights are pairs :math:`(\alpha_i, \beta_i)`, so ``mean`` has the shape (m, 2); the ensemble loss of a label is
    :math:`\sum_i (1 - \alpha_i) \log g_i + \sum_i \beta_i g_i`. Needs losses above 0, such as ``logistic``. The rate is
    integrated out: given the shape it is Gamma(alpha s + 1, q + sum g), with s grown by the count.

    Parameters
    ----------
    p, q, r, s : float
        The prior, :math:`p^{\alpha - 1} e^{-q \beta} \beta^{\alpha s} / \Gamma(\alpha)^r`; r must be above s.
    cap : float, optional
        Bound on s, and r - s above it on r, as they grow with the samples (the paper used 200).
    forgetting : float
        Factor by which the past fades with each sample; 1 keeps all of it.

    Examples
    --------
    >>> weighter = GammaShapeRate()
    >>> state = weighter.update(weighter.init(2), [[0.1, 0.9], [0.3, 0.7]])
    >>> weighter.mean(state)
    array([[2.07652698, 5.16398638],
           [4.18842644, 5.21741513]])
    """

    p: float = 1.0
    q: float = 1.0
    r: float = 1.5
    s: float = 1.0
    cap: float | None = None
    forgetting: float = 1.0

    def __post_init__(self) -> None:
        for name in ("p", "q", "r", "s"):
            _checks.positive("GammaShapeRate", name, getattr(self, name))
        if self.r <= self.s:
            must = "must be above s, or the prior has no integral"
            raise InputError("GammaShapeRate", "r", must, f"r={self.r}, s={self.s}")
        if self.cap is not None:
            _checks.positive("GammaShapeRate", "cap", self.cap)
        _checks.fraction("GammaShapeRate", "forgetting", self.forgetting)

    @property
    def n_statistics(self) -> int:
        """Number of sums: count, sum of g, sum of log g."""
        return 3

    def _statistics(self, g: Array) -> Array:
        return np.stack((g, np.log(g)))

    def validate(self, state: SumState) -> None:
        """Reject negative sums of losses, too, and mean logarithms above the logarithm of the mean."""
        super().validate(state)
        count, sum_g, sum_log = state.value
        require(not np.any(sum_g < -1e-9 * self.q), "sums of losses must be at least 0")
        seen = count > 0
        # Jensen's inequality. If it holds for two sums, it holds for their total.
        most = np.zeros(len(count))
        most[seen] = count[seen] * np.log(np.maximum(sum_g[seen], np.finfo(float).tiny) / count[seen])
        require(not np.any(sum_log > most + _slack(count)), "sums of logarithms must fit the sums")

    def _s(self, state: SumState) -> Array:
        return np.asarray(np.minimum(self.s + state.value[0], np.inf if self.cap is None else self.cap))

    def _parameters(self, state: SumState) -> Array:
        # D is a small difference of large numbers if all losses are nearly equal, so compute it in extended precision.
        count, sum_g, sum_log = state.total.astype(np.longdouble) + state.carry
        exact_s = np.minimum(self.s + count, np.inf if self.cap is None else self.cap)
        D = np.log(np.longdouble(self.p)) + sum_log - exact_s * np.log((self.q + sum_g) / exact_s)
        s = self._s(state)
        e = np.full(len(s), self.r - self.s)
        r = s + e
        return np.stack((D.astype(np.float64), e, (r + 3) / 2, r, s, np.log(s)), axis=1)

    def mean(self, state: SumState) -> Array:
        """Return the posterior means of shape and rate under (24)."""
        shape = self._integrate(state).mean
        return np.stack((shape, (shape * self._s(state) + 1) / (self.q + state.value[1])), axis=1)

    def variance(self, state: SumState) -> Array:
        """Return the posterior variances of shape and rate."""
        posterior, s, rate = self._integrate(state), self._s(state), self.q + state.value[1]
        of_rate = (posterior.mean * s + 1 + posterior.variance * s**2) / rate**2
        return np.stack((posterior.variance, of_rate), axis=1)

    def _quantile(self, state: SumState, probability: float) -> Array:
        posterior = self._integrate(state)
        of_shape = self._shape_quantile(posterior, probability)
        return np.stack((of_shape, self._rate_quantile(state, posterior, probability)), axis=1)

    def _rate_quantile(self, state: SumState, posterior: _Integrated, probability: float) -> Array:
        from scipy.optimize.elementwise import bracket_root, find_root
        from scipy.special import gammainc

        mode, _, low, high, _ = posterior.frames.T
        s, Q = self._s(state), self.q + state.value[1]

        def excess(log_rate: Array, member: Array) -> Array:
            """Return P(rate <= exp(log_rate)) - probability, by integration over the shape.

            Given the shape, this probability falls from 1 to 0 within nine standard deviations of shape * s = rate * Q.
            Below these the distribution function of the shape is enough.
            """
            i = member.astype(np.intp)
            x = np.exp(log_rate) * Q[i]
            width = 9 * np.sqrt(x + 81)
            step_low = np.log(np.maximum((x - width) / s[i], 1e-300)) - mode[i]
            step_high = np.log((x + width) / s[i]) - mode[i]
            start, stop = (np.clip(end, low[i], high[i]) for end in (step_low, step_high))
            nodes, weights = _panel(start, stop)
            shape = np.exp(mode[i][:, None] + nodes)
            given_shape = gammainc(shape * s[i][:, None] + 1, x[:, None])
            inside = (weights * posterior.densities(member, nodes) * given_shape).sum(axis=1)
            return np.asarray(posterior.cdf(member, start) + inside - probability)

        mean, variance = self.mean(state)[:, 1], self.variance(state)[:, 1]
        members, sd = np.arange(len(mode), dtype=np.float64), np.sqrt(variance) / mean
        bracket = bracket_root(excess, np.log(mean) - sd, np.log(mean) + sd, args=(members,))
        return np.asarray(np.exp(find_root(excess, bracket.bracket, args=(members,)).x))

    def _sample(self, state: SumState, size: int, rng: np.random.Generator) -> Array:
        shape = self._shape_sample(self._integrate(state), size, rng)
        rate = rng.gamma(shape * self._s(state) + 1) / (self.q + state.value[1])
        return np.stack((shape, rate), axis=2)

    def trust(self, draws: Array) -> Array:
        """Return rate/shape, one over the mean loss: the largest one is the best."""
        return draws[..., 1] / draws[..., 0]

    def terms(self, weights: Array, G: Array) -> Array:
        """Return each member's part of (22), as far as it depends on the label."""
        shape, rate = weights[..., 0], weights[..., 1]
        return (1 - shape) * np.log(G) + rate * G
