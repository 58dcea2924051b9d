"""Joint Gaussian posterior under the logistic loss of the ensemble's margin."""

from collections.abc import Callable, Sequence
from dataclasses import dataclass
from functools import cached_property
from typing import ClassVar, NamedTuple

import numpy as np
from numpy.typing import NDArray

from bayesvote.core import checks as _checks
from bayesvote.core.checks import MOST_WEIGHT, Array, Labels
from bayesvote.core.state import MOST_ROWS, Arrays, all_finite, require, within
from bayesvote.losses import LossScale
from bayesvote.weighting.drifting import (
    FilterState,
    check_filters,
    constant_samples,
    filter_settings,
    start_filters,
)
from bayesvote.weighting.gaussian import Gaussians, MarginPosterior, mixed_by, plain

# With ``burst``, a label counts as at least 0.2 times as likely as by chance when posteriors are compared. A surprising
# label shows that the label or a posterior is wrong, but not which; so a single row costs a posterior a factor of 5 at
# most, compared with one that guesses.
_LEAST_SHARE = 0.2
# Number of rows that a filter keeps. A row is learned again after 64 further rows, and when it leaves after 512. The
# kernel reads the number from the shape of the state; 512 rows of 128 members are half a megabyte.
KEPT = 512
# Bounds on the parabola of a row's log-likelihood at the log-odds z. Its slope at 0 is sigmoid(-z) + z times its
# curvature, at most 1, and 1.3 leaves room for rounding. Its curvature sigmoid(z) sigmoid(-z) is at most 1/4.
_MOST_SLOPE = 1.3
_MOST_CURVATURE = 0.25
_MOST_LOG_LABELS = 12  # logarithm of 160,000 labels
_MOST_OFFSET = 1e6  # of the log-odds at weights of 0, which are at most the logarithm of the number of labels
_TINY = 1e-300  # in place of a factor that has underflowed to 0
_NO_LABELS = np.zeros(0, dtype=np.intp)
_NO_WEIGHTS = np.zeros(0)


class JointLogisticState(NamedTuple):
    """Filters as in :class:`FilterState`, and the numbers by which they are compared.

    There are k filters, or twice as many after the first call of ``advance_near`` or ``advance_late``.
    """

    covariances: Array  # (k, m, m)
    means: Array  # (k, m)
    evidence: Array  # (k,): log of the discounted evidence
    samples: Array  # (k,): sum of the rows' weights, each times the correlation of the members' weights then and now
    past: Array  # (burst + 1, k, m): means after the last rows; those after row n are at n % (burst + 1)
    rows: NDArray[np.int64]  # (1,): number of rows learned
    horizon: NDArray[np.int64]  # (1,): number of rows between the last label learned and the predicted row
    kept: Array  # (c, KEPT, m + 4): last rows of the c filters that do not drift; row n is at n % KEPT
    n_kept: NDArray[np.int64]  # (c,): number of rows that each of these has learned


@dataclass(frozen=True)
class JointLogistic(MarginPosterior[JointLogisticState]):
    r"""Gaussian posterior over all weights together under the logistic loss of the ensemble's margin.

    The labels have the probabilities :math:`\mathrm{softmax}_y(\tfrac12 \sum_i \lambda_i (1 - 2 g_i(y)))`; for two
    labels, whose margins are opposite, that is the logistic function of the ensemble's margin. The posterior is an
    online Laplace approximation: each row moves the mean to the mode of the posterior times the row's likelihood, and
    adds its curvature there, as in :class:`LaplacePosterior`. If weights do not drift, each row is learned again after
    64 and after 512 further rows. The prior is N(scale/m, I/precision). Probabilities are averaged over the posterior,
    and over the precisions by their evidence. Weights may be negative.

    Parameters
    ----------
    precision : float or sequence of float
        Precision of the prior. With several, one posterior runs for each.
    persistence : float or sequence of float
        As in :class:`DriftingJointGaussian`: below 1 the weights drift.
    discount : float
        Factor by which the evidence fades with each row.
    scale : float
        Sum of the weights before any row: the log-odds of a label on which all members agree with a margin of 1.
    burst : int
        Longest run of wrong labels that must not look like a change. The posteriors are compared by the probabilities
        of the labels under the weights of ``burst`` rows earlier; after n rows, of n/8 rows earlier at most. So a
        posterior gains nothing from following a shorter run. A real change is followed that much later, too.

    Examples
    --------
    >>> weighter = JointLogistic()
    >>> state = weighter.update(weighter.init(2), [[0.1, 0.9], [0.3, 0.7]])
    >>> weighter.mean(state).round(3)
    array([2.132, 1.868])
    """

    needs_bounded = True
    usual_loss = "wide_ramp"
    version: ClassVar[int] = 3
    learns_all_labels = True
    compares_horizons = True
    loss_scale = LossScale.LOG_PROBABILITY

    precision: float | Sequence[float] = (1.0, 10.0, 100.0, 1000.0)
    persistence: float | Sequence[float] = 1.0
    discount: float = 1.0
    scale: float = 4.0
    burst: int = 0

    def __post_init__(self) -> None:
        filter_settings("JointLogistic", self.precision, self.persistence)
        object.__setattr__(self, "precision", plain(self.precision))
        object.__setattr__(self, "persistence", plain(self.persistence))
        _checks.fraction("JointLogistic", "discount", self.discount)
        _checks.positive("JointLogistic", "scale", self.scale)
        _checks.integer("JointLogistic", "burst", self.burst, least=0)

    @cached_property
    def _filters(self) -> tuple[Array, Array]:
        return filter_settings("JointLogistic", self.precision, self.persistence)

    @property
    def persistences(self) -> Array:
        """Persistence of every posterior."""
        return self._filters[1]

    def init(self, n_members: int) -> JointLogisticState:
        """Return the state before any sample."""
        _checks.integer("JointLogistic.init", "n_members", n_members)
        state = start_filters(self._filters[0], n_members, self.scale / n_members)
        past = np.repeat(state.means[None], self.burst + 1 if self.burst else 0, axis=0)
        zero = np.zeros(1, dtype=np.int64)
        return JointLogisticState(*state, past, zero, zero.copy(), *self._nothing_kept(self._filters[1], n_members))

    def _nothing_kept(self, persistence: Array, n_members: int) -> tuple[Array, NDArray[np.int64]]:
        constant = int(np.sum(persistence == 1))
        return np.zeros((constant, KEPT, n_members + 4)), np.zeros(constant, dtype=np.int64)

    def n_members(self, state: JointLogisticState) -> int:
        """Return the number of members of the state."""
        return int(state.means.shape[1])

    def age(self, state: JointLogisticState) -> int:
        """Return the number of rows learned."""
        return int(state.rows[0])

    def least_bytes(self, n_members: int) -> int:
        """Return the size of the covariances, the earlier means and the kept rows."""
        kept = int(np.sum(self._filters[1] == 1)) * KEPT * n_members
        return 8 * (len(self._filters[0]) * n_members * (n_members + self.burst) + kept)

    def validate(self, state: JointLogisticState) -> None:
        """Reject posteriors that no stream leads to."""
        precisions, persistence = self._filters_of(state)
        m = self.n_members(state)
        all_finite(state)
        check_filters(FilterState(*state[:4]), precisions)
        require(within(state.rows, 0, MOST_ROWS), f"rows must be from 0 to {MOST_ROWS}")
        require(within(state.horizon, 0, int(state.rows[0])), "horizon must be from 0 to rows")
        # A row moves the mean by at most S x times the slope of its parabola at the log-odds of the prior mean. These
        # are at most the scale plus the logarithm of the number of labels.
        slope = _MOST_SLOPE + _MOST_CURVATURE * (self.scale + _MOST_LOG_LABELS)
        most = slope * np.sqrt(m) * state.samples / precisions
        earlier = most / np.maximum(persistence**self.burst, _TINY)
        for means, reach in ((state.means, most), (state.past, earlier)):
            off = np.linalg.norm(means - self.scale / m, axis=-1)
            require(bool(np.all(off <= reach + 1e-9)), "means must be within reach of the samples")
        self._check_kept(state, persistence)
        if self.burst:
            now = state.past[int(state.rows[0]) % (self.burst + 1)]
            require(np.array_equal(now, state.means), "the last of the earlier means must be the means")

    def _check_kept(self, state: JointLogisticState, persistence: Array) -> None:
        """Reject kept rows that no margins lead to."""
        constant, m = persistence == 1, self.n_members(state)
        require(within(state.n_kept, 0, MOST_ROWS), f"numbers of kept rows must be from 0 to {MOST_ROWS}")
        require(bool(np.all(state.n_kept <= state.rows)), "no more rows may be kept than were learned")
        for rows, n in zip(state.kept, state.n_kept, strict=True):
            require(not np.any(rows[min(int(n), KEPT) :]), "rows that were not kept must be 0")
        growth, (offset, curvature, slope, w) = state.kept[..., :m], np.moveaxis(state.kept[..., m:], -1, 0)
        require(within(growth, -1 - 1e-9, 1 + 1e-9), "log-odds must grow by at most 1 with a weight")
        require(within(w, 0, MOST_WEIGHT), f"weights of kept rows must be from 0 to {MOST_WEIGHT:g}")
        bounded = (curvature >= 0) & (curvature <= (_MOST_CURVATURE + 1e-7) * w) & (np.abs(slope) <= _MOST_SLOPE * w)
        require(bool(np.all(bounded)), "parabolas of kept rows must be those of logistic losses")
        require(bool(np.all(np.abs(offset) <= _MOST_OFFSET)), "offsets of log-odds must be bounded")
        require(int(np.sum(constant)) == len(state.kept), "rows are kept by posteriors without drift")

    def upgraded(self, version: int, arrays: Arrays) -> Arrays:
        """Add the arrays that version 1, without earlier means, and version 2, without kept rows, do not have."""
        added = {1: {"past", "rows", "horizon", "kept", "n_kept"}, 2: {"kept", "n_kept"}}
        if version not in added or added[version] & arrays.keys():
            return super().upgraded(version, arrays)
        copies, m = len(arrays["means"]) // len(self._filters[0]), arrays["means"].shape[1]
        kept, n_kept = self._nothing_kept(np.tile(self._filters[1], copies), m)
        arrays = {**arrays, "kept": kept, "n_kept": n_kept}
        if version == 1:
            past = np.repeat(arrays["means"][None], self.burst + 1 if self.burst else 0, axis=0)
            zero = np.zeros(1, dtype=np.int64)
            arrays = {**arrays, "past": past, "rows": zero, "horizon": zero.copy()}
        return arrays

    def load_state(self, blank: JointLogisticState, version: int, arrays: Arrays) -> JointLogisticState:
        """Return a state with these arrays, which may have twice the posteriors of ``blank``."""
        if "means" in arrays and len(arrays["means"]) == 2 * len(blank.means):
            blank = _twice(blank)
        return super().load_state(blank, version, arrays)

    def _filters_of(self, state: JointLogisticState) -> tuple[Array, Array]:
        """Return precisions and persistences of the posteriors of a state."""
        return self._filters if len(state.means) == len(self._filters[0]) else self._twice_filters

    @cached_property
    def _twice_filters(self) -> tuple[Array, Array]:
        precisions, persistence = self._filters
        return np.tile(precisions, 2), np.tile(persistence, 2)

    def gaussians(self, state: JointLogisticState) -> Gaussians:
        """Return one posterior for each precision, weighted by evidence, at the horizon of the next prediction."""
        shares, horizon = mixed_by(state.evidence), int(state.horizon[0])
        if horizon == 0:
            return Gaussians(shares, state.means, state.covariances)
        precisions, persistence = self._filters_of(state)
        m, kept = self.n_members(state), (persistence**horizon)[:, None]
        prior = self.scale / m
        noise = ((1 - kept**2) / precisions[:, None])[:, :, None] * np.eye(m)
        return Gaussians(
            shares, prior + kept * (state.means - prior), kept[:, :, None] ** 2 * state.covariances + noise
        )

    def drift(self, state: JointLogisticState) -> float:
        """Return the total evidence share of the posteriors whose weights drift."""
        return float(mixed_by(state.evidence) @ (self._filters_of(state)[1] < 1))

    def effective_samples(self, state: JointLogisticState) -> Array:
        """Return the number of samples behind the posterior, as in :class:`DriftingJointGaussian`."""
        return np.full(self.n_members(state), mixed_by(state.evidence) @ state.samples)

    @property
    def counts_rows(self) -> bool:
        """True if no weight drifts."""
        return bool(np.all(self._filters[1] == 1))

    def learned_weight(self, state: JointLogisticState) -> float | None:
        """Return the sum of all sample weights, if the weights of one of the posteriors do not drift."""
        return constant_samples(FilterState(*state[:4]), self._filters_of(state)[1])

    def of_truth(self, G: Array, y: Labels) -> Array:
        """Return losses whose margins are half the lead of the true label over the mean of the others.

        With more than two labels, ``losses_then_update`` learns more: it weights the other labels by their
        probabilities, which differ from posterior to posterior.
        """
        G = np.minimum(G, 1.0)
        own = super().of_truth(G, y)
        return np.asarray(0.5 + (own - (G.sum(axis=1) - own) / (G.shape[1] - 1)) / 2)

    def _update(self, state: JointLogisticState, g: Array, w: Array) -> JointLogisticState:
        # As two labels with opposite margins.
        both = np.stack((1 - np.minimum(g, 1.0), g), axis=1)
        return self.advance(state, both, np.ones(len(g), dtype=np.intp), w)[1]

    def n_log_likelihoods(self, n_classes: int) -> int:
        """Return one number for each label and posterior of both halves, and one for the number of rows learned."""
        return 2 * len(self._filters[0]) * n_classes + 1

    def advance(self, state: JointLogisticState, G: Array, y: Labels, w: Array) -> tuple[Array, JointLogisticState]:
        """Do what ``losses_then_update`` does for checked input, in place."""
        return self._run(state, G, y, w), state

    def check_log_likelihoods(self, log_likelihoods: Array) -> None:
        """Reject probabilities above 1, and numbers of rows that are not whole or out of range."""
        require(within(log_likelihoods[:, :-1], -1e4, 1e-9), "log-likelihoods must be at most 0")
        rows = log_likelihoods[:, -1]  # may be above the state's rows, if that comes from an older snapshot
        require(within(rows, 0, MOST_ROWS) and not np.any(rows % 1), "forecasts must count rows")

    def forecast(self, state: JointLogisticState, G: Array) -> tuple[Array, Array]:
        """Return minus the log-probabilities of the labels under the mixture, and those under each posterior."""
        found = np.empty((len(G), len(state.means) * G.shape[1] + 1))
        out = self._run(state, G, _NO_LABELS, _NO_WEIGHTS, found)
        if found.shape[1] < self.n_log_likelihoods(G.shape[1]):
            found = np.concatenate((found[:, :-1], found), axis=1)
        return out, found

    def advance_late(
        self, state: JointLogisticState, G: Array, y: Labels, w: Array, log_likelihoods: Array, G_now: Array
    ) -> tuple[Array, JointLogisticState]:
        """Update one half of the posteriors from G_now and the other from G; compare all at the time of prediction.

        The first call copies every posterior for the other half. After that the state is updated in place.
        """
        state = self._halves(state)
        return self._run(state, G, y, w, log_likelihoods, G_now=G_now), state

    def advance_near(
        self, state: JointLogisticState, G: Array, y: Labels, w: Array
    ) -> tuple[Array, JointLogisticState]:
        """Update the half of the posteriors that learns from ``G_now``, without comparing any."""
        state = self._halves(state)
        return self._run(state, G, y, w, only_near=True), state

    def _halves(self, state: JointLogisticState) -> JointLogisticState:
        return _twice(state) if len(state.means) == len(self._filters[0]) else state

    def rule(self, state: JointLogisticState) -> Callable[[Array], Array]:
        """Return a function from G to minus the log-probabilities of the labels, averaged over the posterior."""
        return lambda G: self._run(state, G, _NO_LABELS, _NO_WEIGHTS)

    def _run(
        self,
        state: JointLogisticState,
        G: Array,
        y: Labels,
        w: Array,
        log_likelihoods: Array | None = None,
        only_near: bool = False,
        G_now: Array | None = None,
    ) -> Array:
        from bayesvote.weighting._filter_kernels import logistic_stream

        n, k, m = G.shape
        out, filters = np.empty((n, k)), self._filters
        if n:
            given = (*self._filters_of(state), state, out, log_likelihoods, float(np.log(_LEAST_SHARE / k)))
            logistic_stream(G, y, w, self.scale / m, self.discount, *given, len(filters[0]), only_near, G_now)
        return out

    def terms(self, weights: Array, G: Array) -> Array:
        """Return each member's part of minus the label's logit: half its weighted margin, with losses cut at 1."""
        return np.asarray(-0.5 * weights * self.margins(G))

    def margins(self, G: Array) -> Array:
        """Return the margins 1 - 2g, at least -1."""
        return np.asarray(1 - 2 * np.minimum(G, 1.0))

    def losses_at(self, weights: Array, G: Array) -> Array:
        """Return minus the log-probabilities of the labels at given weights."""
        from scipy.special import logsumexp

        logits = -super().losses_at(weights, G)
        return np.asarray(logsumexp(logits, axis=1, keepdims=True) - logits)


def _twice(state: JointLogisticState) -> JointLogisticState:
    """Return a state with every posterior twice."""
    return JointLogisticState(
        np.concatenate((state.covariances, state.covariances)),
        np.concatenate((state.means, state.means)),
        np.tile(state.evidence, 2),
        np.tile(state.samples, 2),
        np.concatenate((state.past, state.past), axis=1),
        state.rows,
        state.horizon,
        np.concatenate((state.kept, state.kept)),
        np.tile(state.n_kept, 2),
    )


def drifting(
    precision: Sequence[float] = (1.0, 30.0, 1.0, 3.0),
    persistence: Sequence[float] = (1.0, 1.0, 0.9997, 0.995),
    discount: float = 0.995,
    burst: int = 12,
) -> JointLogistic:
    """Return the weighter of the default classifier, ``weighter="drifting"``.

    In two posteriors the weights are constant, with a wide and a narrow prior. In the other two they drift, and half of
    a deviation from the prior is left after some 2,300 or 140 rows. The posteriors are weighted by their evidence from
    about the last two hundred rows.
    """
    return JointLogistic(precision, persistence, discount, burst=burst)
