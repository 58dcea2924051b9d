"""Weights by the logistic loss of the ensemble's margin, whose probabilities are calibrated by nature."""

from collections.abc import Callable, Sequence
from dataclasses import dataclass
from functools import cached_property

import numpy as np

from bayesvote import _checks
from bayesvote._checks import Array, Labels
from bayesvote._parts import require
from bayesvote.losses import LossScale
from bayesvote.weighting.gaussian import (
    FilterState,
    Gaussians,
    MarginPosterior,
    check_filters,
    counted,
    filters,
    mixed_by,
    plain,
    start_filters,
)

_NO_LABELS = np.zeros(0, dtype=np.intp)
_NO_WEIGHTS = np.zeros(0)


@dataclass(frozen=True)
class JointLogistic(MarginPosterior[FilterState]):
    r"""Gaussian posterior over all weights together under the logistic loss of the ensemble's margin.

    The labels have the probabilities :math:`\mathrm{softmax}_y(\tfrac12 \sum_i \lambda_i (1 - 2 g_i(y)))`; for two
    labels, whose margins are opposite, that is the logistic function of the ensemble's margin. The posterior is
    Gaussian, an online Laplace approximation: each row moves it to the mode of what it was times the row's likelihood,
    and adds its curvature there; :class:`LaplacePosterior` written out. The prior is N(scale/m, I/precision).
    Probabilities are averaged over the weights' uncertainty, and over the precisions by
    how likely each found the labels so far; so they need no calibration. Weights may be negative.

    Parameters
    ----------
    precision : float or sequence of float
        Of the prior. With several, as many posteriors run side by side.
    persistence : float or sequence of float
        As in :class:`JointGaussian`: below 1 the weights drift.
    discount : float
        Factor by which the evidence fades with each row.
    scale : float
        Sum of the weights before any row: how large the log-odds of members that agree are taken to be.

    Examples
    --------
    >>> weighter = JointLogistic()
    >>> state = weighter.update(weighter.init(2), [[0.1, 0.9], [0.3, 0.7]])
    >>> weighter.mean(state).round(3)
    array([2.132, 1.868])
    """

    needs_bounded = True
    usual_loss = "wide_ramp"
    learns_all_labels = True
    loss_scale = LossScale.LOG_PROBABILITY

    precision: float | Sequence[float] = (1.0, 10.0, 100.0, 1000.0)
    persistence: float | Sequence[float] = 1.0
    discount: float = 1.0
    scale: float = 4.0

    def __post_init__(self) -> None:
        filters("JointLogistic", self.precision, self.persistence)
        object.__setattr__(self, "precision", plain(self.precision))
        object.__setattr__(self, "persistence", plain(self.persistence))
        _checks.fraction("JointLogistic", "discount", self.discount)
        _checks.positive("JointLogistic", "scale", self.scale)

    @cached_property
    def _filters(self) -> tuple[Array, Array]:
        return filters("JointLogistic", self.precision, self.persistence)

    @property
    def persistences(self) -> Array:
        """Those of the posteriors."""
        return self._filters[1]

    def init(self, n_members: int) -> FilterState:
        """State before any sample."""
        _checks.integer("JointLogistic.init", "n_members", n_members)
        return start_filters(self._filters[0], n_members, self.scale / n_members)

    def n_members(self, state: FilterState) -> int:
        """How many members the state is about."""
        return int(state.means.shape[1])

    def least_bytes(self, n_members: int) -> int:
        """The size of the covariances."""
        return 8 * len(self._filters[0]) * n_members**2

    def check_state(self, state: FilterState) -> None:
        """Refuse posteriors that no stream leads to."""
        precisions, m = self._filters[0], self.n_members(state)
        check_filters(state, precisions)
        # A row moves the mean by at most S x, whose length is at most that of x over the precision.
        off = np.linalg.norm(state.means - self.scale / m, axis=1)
        most = np.sqrt(m) * state.samples / precisions
        require(bool(np.all(off <= 1.001 * most + 1e-9)), "means must be within reach of the samples")

    def gaussians(self, state: FilterState) -> Gaussians:
        """One posterior for each precision, by their evidence."""
        return Gaussians(mixed_by(state.evidence), state.means, state.covariances)

    def effective_samples(self, state: FilterState) -> Array:
        """How many samples the posterior rests on, the same for every member; see :class:`JointGaussian`."""
        return np.full(self.n_members(state), mixed_by(state.evidence) @ state.samples)

    @property
    def counts_rows(self) -> bool:
        """Whether no weight drifts."""
        return bool(np.all(self._filters[1] == 1))

    def learned_weight(self, state: FilterState) -> float | None:
        """How many samples were learned, if one of the posteriors lets no weight drift."""
        return counted(state, self._filters[1])

    def of_truth(self, G: Array, y: Labels) -> Array:
        """Losses whose margins are half the lead of the true label over the mean of the others.

        With more than two labels that is not all that a row teaches: ``losses_then_update`` learns the lead over the
        others by their probabilities, which differ from posterior to posterior.
        """
        G = np.minimum(G, 1.0)
        own = super().of_truth(G, y)
        return np.asarray(0.5 + (own - (G.sum(axis=1) - own) / (G.shape[1] - 1)) / 2)

    def _update(self, state: FilterState, g: Array, w: Array) -> FilterState:
        # As a label against one whose margins are opposite.
        both = np.stack((1 - np.minimum(g, 1.0), g), axis=1)
        return self.advance(state, both, np.ones(len(g), dtype=np.intp), w)[1]

    def advance(self, state: FilterState, G: Array, y: Labels, w: Array) -> tuple[Array, FilterState]:
        """Do what losses_then_update does, for a caller that has checked its input."""
        state = FilterState._make(field.copy() for field in state)
        return self._run(state, G, y, w), state

    def rule(self, state: FilterState) -> Callable[[Array], Array]:
        """Minus the log-probabilities of the labels, averaged over the posterior."""
        return lambda G: self._run(state, G, _NO_LABELS, _NO_WEIGHTS)

    def _run(self, state: FilterState, G: Array, y: Labels, w: Array) -> Array:
        from bayesvote.weighting._filter_kernels import logistic_stream

        out = np.empty(G.shape[:2])
        if len(G):
            logistic_stream(G, y, w, self.scale / self.n_members(state), self.discount, *self._filters, state, out)
        return out

    def terms(self, weights: Array, G: Array) -> Array:
        """Members' parts of minus the label's logit, half their weighted margins; a loss above 1 counts as 1."""
        return np.asarray(-0.5 * weights * self.margins(G))

    def margins(self, G: Array) -> Array:
        """1 - 2g, at least -1."""
        return np.asarray(1 - 2 * np.minimum(G, 1.0))

    def losses_at(self, weights: Array, G: Array) -> Array:
        """Minus the log-probabilities of the labels at given weights."""
        from scipy.special import logsumexp

        logits = -super().losses_at(weights, G)
        return np.asarray(logsumexp(logits, axis=1, keepdims=True) - logits)


def drifting(
    precision: Sequence[float] = (1.0, 30.0, 1.0, 3.0),
    persistence: Sequence[float] = (1.0, 1.0, 0.9997, 0.995),
    discount: float = 0.995,
) -> JointLogistic:
    """Return the weights of the default classifier: what ``weighter="drifting"`` means.

    Two posteriors take the weights for constant, with a wide and a narrow prior, and two let them drift, so that
    half of what was known is left after some 2,300 or 140 rows. Those are believed that found the last rows' labels
    likeliest: about two hundred rows count.
    """
    return JointLogistic(precision, persistence, discount)
