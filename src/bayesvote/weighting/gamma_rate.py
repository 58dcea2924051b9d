"""The paper's closed-form weights: exponential likelihood, Gamma prior (Algorithm 2)."""

from dataclasses import dataclass
from functools import partial

import numpy as np

from bayesvote.core import checks as _checks
from bayesvote.core.checks import Array, Labels
from bayesvote.core.state import Rng, require
from bayesvote.losses import Loss, LossScale, kernel
from bayesvote.weighting.agreement import Agreement, OfGammas
from bayesvote.weighting.base import Additive, LinearRule, SumState

_NO_SCORES = np.empty((0, 0))


@dataclass(frozen=True)
class GammaRate(LinearRule, Additive):
    r"""Gamma posterior over rates, in closed form (Algorithm 2).

    The ensemble loss is (8), :math:`\theta \sum_i \lambda_i g_i - \sum_i \log \lambda_i`; read as a likelihood (9)
    with the Gamma prior (10) it gives :math:`\lambda_i \sim` Gamma(alpha + t, beta + theta sum g_i), of mean (11).

    Parameters
    ----------
    alpha, beta : float
        Shape and rate of the prior. alpha cancels in every decision.
    theta : float
        Factor of the losses: how much they count against the prior.
    forgetting : float
        Factor by which the past fades with each sample; 1 keeps all of it.

    Examples
    --------
    >>> weighter = GammaRate()
    >>> state = weighter.update(weighter.init(2), [[0.1, 0.9], [0.3, 0.7]])
    >>> weighter.mean(state)
    array([2.88461538, 2.5862069 ])
    """

    loss_scale = LossScale.SHARE

    alpha: float = 1.0
    beta: float = 1.0
    theta: float = 0.1
    forgetting: float = 1.0

    def __post_init__(self) -> None:
        for name in ("alpha", "beta", "theta"):
            _checks.positive("GammaRate", name, getattr(self, name))
        _checks.fraction("GammaRate", "forgetting", self.forgetting)

    def _statistics(self, g: Array) -> Array:
        return g[None]

    def validate(self, state: SumState) -> None:
        """Reject negative sums of losses, too."""
        super().validate(state)
        require(not np.any(self._shape_rate(state)[1] < self.beta * (1 - 1e-9)), "sums of losses must be at least 0")

    def _shape_rate(self, state: SumState) -> tuple[Array, Array]:
        count, sum_g = state.value
        return self.alpha + count, self.beta + self.theta * sum_g

    def mean(self, state: SumState) -> Array:
        """Return the posterior mean (11)."""
        shape, rate = self._shape_rate(state)
        return shape / rate

    def variance(self, state: SumState) -> Array:
        """Return the posterior variance."""
        shape, rate = self._shape_rate(state)
        return shape / rate**2

    def _quantile(self, state: SumState, probability: float) -> Array:
        from scipy.special import gammaincinv

        shape, rate = self._shape_rate(state)
        return np.asarray(gammaincinv(shape, probability) / rate)

    def _sample(self, state: SumState, size: int, rng: np.random.Generator) -> Array:
        shape, rate = self._shape_rate(state)
        return rng.gamma(shape, 1 / rate, size=(size, len(shape)))

    def draws_agreement(self, n_labels: int) -> bool:
        """Return True for more than two labels."""
        return n_labels > 2

    def agreement(self, state: SumState, size: int, rng: Rng = 0) -> Agreement:
        """Use numerical inversion for two labels, and ``size`` draws for more."""
        return OfGammas(*self._shape_rate(state), partial(self.sample, state, size, rng))

    @property
    def _scale(self) -> float:
        return self.theta

    def advance(self, state: SumState, G: Array, y: Labels, w: Array) -> tuple[Array, SumState]:
        """Do what ``losses_then_update`` does for checked input, in place."""
        return self._rows(state, 0, _NO_SCORES, np.ascontiguousarray(G), y, w)

    def advance_scores(
        self, state: SumState, loss: str | Loss, scores: Array, y: Labels, w: Array
    ) -> tuple[Array, SumState]:
        """Do what ``advance`` does; with two classes and a named loss, without an array of all losses."""
        kind = kernel(loss)
        if kind is None or scores.ndim != 2:
            return super().advance_scores(state, loss, scores, y, w)
        return self._rows(state, kind, np.ascontiguousarray(scores), np.empty((1, 2, scores.shape[1])), y, w)

    def _rows(self, state: SumState, kind: int, scores: Array, G: Array, y: Labels, w: Array) -> tuple[Array, SumState]:
        from bayesvote.weighting._sum_kernels import rate_rows

        out = np.empty((len(y), G.shape[1]))
        prior = self.alpha, self.beta, self.theta, self.forgetting
        rate_rows(state.total, state.carry, kind, scores, G, y, w, *prior, out)
        return out, state
