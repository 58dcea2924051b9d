"""Weights by the logistic loss of the ensemble's margin."""

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

# With ``burst``, a label that a posterior found less likely than this share of an even chance counts as if it had been
# as likely as that: a surprise says that a label or a posterior is wrong, but not which.
_LEAST_SHARE = 0.2
# Rows that a filter keeps; it learns a row again when it has learned 64 others, and when the row leaves. The kernel
# reads the number off the state.
KEPT = 512
_NO_LABELS = np.zeros(0, dtype=np.intp)
_NO_WEIGHTS = np.zeros(0)


class LogisticState(NamedTuple):
    """Filters as in :class:`FilterState`, and what they are compared by.

    There are k of them, or twice as many: see ``advance_near``.
    """

    covariances: Array  # (k, m, m)
    means: Array  # (k, m)
    evidence: Array  # (k,): log of the discounted evidence
    samples: Array  # (k,): weights of the rows, each times the correlation of the weights then and now
    past: Array  # (burst + 1, k, m): the means after the last rows, those after row n at n % (burst + 1)
    rows: NDArray[np.int64]  # (1,): number of rows learned
    horizon: NDArray[np.int64]  # (1,): rows between the last label that was learned and the row that is predicted
    kept: Array  # (c, KEPT, m + 4): the last rows of the c filters whose weights do not drift, row n at n % KEPT
    n_kept: NDArray[np.int64]  # (c,): how many rows each of these has learned


@dataclass(frozen=True)
class JointLogistic(MarginPosterior[LogisticState]):
    r"""Gaussian posterior over all weights together under the logistic loss of the ensemble's margin.

    The labels have the probabilities :math:`\mathrm{softmax}_y(\tfrac12 \sum_i \lambda_i (1 - 2 g_i(y)))`; for two
    labels, whose margins are opposite, that is the logistic function of the ensemble's margin. The posterior is
    Gaussian, an online Laplace approximation: each row moves it to the mode of what it was times the row's likelihood,
    and adds its curvature there, as in :class:`LaplacePosterior`. Where weights do not drift, each row is learned again
    when 64 and 512 further rows have been learned. The prior is N(scale/m, I/precision).
    Probabilities are averaged over the weights' uncertainty, and over the precisions by
    how likely each found the labels so far. Weights may be negative.

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
    burst : int
        Longest run of wrong labels that must not look like a change. The posteriors are compared by the probabilities
        that their weights of ``burst`` rows earlier gave to a label; after n rows, of n/8 rows earlier at most. So a
        posterior gains nothing from following a shorter run. It also follows a real change that much later.

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
        """Those of the posteriors."""
        return self._filters[1]

    def init(self, n_members: int) -> LogisticState:
        """State before any sample."""
        _checks.integer("JointLogistic.init", "n_members", n_members)
        state = start_filters(self._filters[0], n_members, self.scale / n_members)
        past = np.repeat(state.means[None], self.burst + 1 if self.burst else 0, axis=0)
        zero = np.zeros(1, dtype=np.int64)
        return LogisticState(*state, past, zero, zero.copy(), *self._nothing_kept(self._filters[1], n_members))

    def _nothing_kept(self, persistence: Array, n_members: int) -> tuple[Array, NDArray[np.int64]]:
        constant = int(np.sum(persistence == 1))
        return np.zeros((constant, KEPT, n_members + 4)), np.zeros(constant, dtype=np.int64)

    def n_members(self, state: LogisticState) -> int:
        """Return how many members the state is about."""
        return int(state.means.shape[1])

    def age(self, state: LogisticState) -> int:
        """Return how many rows were learned."""
        return int(state.rows[0])

    def least_bytes(self, n_members: int) -> int:
        """Size of the covariances, the earlier means and the kept rows."""
        kept = int(np.sum(self._filters[1] == 1)) * KEPT * n_members
        return 8 * (len(self._filters[0]) * n_members * (n_members + self.burst) + kept)

    def validate(self, state: LogisticState) -> None:
        """Refuse posteriors that no stream leads to."""
        precisions, persistence = self._filters_of(state)
        m = self.n_members(state)
        all_finite(state)
        check_filters(FilterState(*state[:4]), precisions)
        require(within(state.rows, 0, MOST_ROWS), f"rows must be from 0 to {MOST_ROWS}")
        require(within(state.horizon, 0, int(state.rows[0])), "horizon must be from 0 to rows")
        # A row moves the mean by at most S x times the slope of its parabola at the log-odds of the prior mean. These
        # are at most the scale and the logarithm of the number of labels, say 12.
        most = (1.3 + 0.25 * (self.scale + 12)) * np.sqrt(m) * state.samples / precisions
        earlier = most / np.maximum(persistence**self.burst, 1e-300)
        for means, reach in ((state.means, most), (state.past, earlier)):
            off = np.linalg.norm(means - self.scale / m, axis=-1)
            require(bool(np.all(off <= reach + 1e-9)), "means must be within reach of the samples")
        self._check_kept(state, persistence)
        if self.burst:
            now = state.past[int(state.rows[0]) % (self.burst + 1)]
            require(np.array_equal(now, state.means), "the last of the earlier means must be the means")

    def _check_kept(self, state: LogisticState, persistence: Array) -> None:
        """Refuse kept rows that no margins lead to."""
        constant, m = persistence == 1, self.n_members(state)
        require(within(state.n_kept, 0, MOST_ROWS), f"numbers of kept rows must be from 0 to {MOST_ROWS}")
        require(bool(np.all(state.n_kept <= state.rows)), "no more rows may be kept than were learned")
        for rows, n in zip(state.kept, state.n_kept, strict=True):
            require(not np.any(rows[min(int(n), KEPT) :]), "rows that were not kept must be 0")
        growth, (offset, curvature, slope, w) = state.kept[..., :m], np.moveaxis(state.kept[..., m:], -1, 0)
        require(within(growth, -1 - 1e-9, 1 + 1e-9), "log-odds must grow by at most 1 with a weight")
        require(within(w, 0, MOST_WEIGHT), f"weights of kept rows must be from 0 to {MOST_WEIGHT:g}")
        bounded = (curvature >= 0) & (curvature <= 0.2500001 * w) & (np.abs(slope) <= 1.3 * w)
        require(bool(np.all(bounded)), "parabolas of kept rows must be those of logistic losses")
        require(bool(np.all(np.abs(offset) <= 1e6)), "offsets of log-odds must be bounded")
        require(int(np.sum(constant)) == len(state.kept), "rows are kept by posteriors without drift")

    def upgraded(self, version: int, arrays: Arrays) -> Arrays:
        """Bring a state of version 1, without earlier means, or 2, without kept rows, to this version."""
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

    def load_state(self, blank: LogisticState, version: int, arrays: Arrays) -> LogisticState:
        """Return a state with these arrays, of as many posteriors as they have."""
        if "means" in arrays and len(arrays["means"]) == 2 * len(blank.means):
            blank = _twice(blank)
        return super().load_state(blank, version, arrays)

    def _filters_of(self, state: LogisticState) -> tuple[Array, Array]:
        """Precisions and persistences of the posteriors of a state."""
        precisions, persistence = self._filters
        copies = len(state.means) // len(precisions)
        return np.tile(precisions, copies), np.tile(persistence, copies)

    def gaussians(self, state: LogisticState) -> Gaussians:
        """One posterior for each precision, by their evidence, as it will be at the horizon of the next prediction."""
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

    def drift(self, state: LogisticState) -> float:
        """Return how much the posteriors are believed whose weights drift."""
        return float(mixed_by(state.evidence) @ (self._filters_of(state)[1] < 1))

    def effective_samples(self, state: LogisticState) -> Array:
        """How many samples the posterior rests on, the same for every member; see :class:`JointGaussian`."""
        return np.full(self.n_members(state), mixed_by(state.evidence) @ state.samples)

    @property
    def counts_rows(self) -> bool:
        """Whether no weight drifts."""
        return bool(np.all(self._filters[1] == 1))

    def learned_weight(self, state: LogisticState) -> float | None:
        """How many samples were learned, if one of the posteriors lets no weight drift."""
        return constant_samples(FilterState(*state[:4]), self._filters_of(state)[1])

    def of_truth(self, G: Array, y: Labels) -> Array:
        """Losses whose margins are half the lead of the true label over the mean of the others.

        With more than two labels that is not all that a row teaches: ``losses_then_update`` learns the lead over the
        others by their probabilities, which differ from posterior to posterior.
        """
        G = np.minimum(G, 1.0)
        own = super().of_truth(G, y)
        return np.asarray(0.5 + (own - (G.sum(axis=1) - own) / (G.shape[1] - 1)) / 2)

    def _update(self, state: LogisticState, g: Array, w: Array) -> LogisticState:
        # As a label against one whose margins are opposite.
        both = np.stack((1 - np.minimum(g, 1.0), g), axis=1)
        return self.advance(state, both, np.ones(len(g), dtype=np.intp), w)[1]

    def n_log_likelihoods(self, n_classes: int) -> int:
        """Return one for each posterior and label, of two halves, and one for the number of rows learned then."""
        return 2 * len(self._filters[0]) * n_classes + 1

    def advance(self, state: LogisticState, G: Array, y: Labels, w: Array) -> tuple[Array, LogisticState]:
        """Do what losses_then_update does, for a caller that has checked its input and gives the state up."""
        return self._run(state, G, y, w), state

    def check_log_likelihoods(self, log_likelihoods: Array) -> None:
        """Refuse probabilities above 1, and numbers of rows that are none."""
        require(within(log_likelihoods[:, :-1], -1e4, 1e-9), "log-likelihoods must be at most 0")
        rows = log_likelihoods[:, -1]  # by a later state, perhaps, than the one that a service finds in a snapshot
        require(within(rows, 0, MOST_ROWS) and not np.any(rows % 1), "forecasts must count rows")

    def forecast(self, state: LogisticState, G: Array) -> tuple[Array, Array]:
        """Return minus the log-probabilities of the labels, averaged over the posteriors, and those of each."""
        found = np.empty((len(G), len(state.means) * G.shape[1] + 1))
        out = self._run(state, G, _NO_LABELS, _NO_WEIGHTS, found)
        if found.shape[1] < self.n_log_likelihoods(G.shape[1]):
            found = np.concatenate((found[:, :-1], found), axis=1)
        return out, found

    def advance_late(
        self, state: LogisticState, G: Array, y: Labels, w: Array, log_likelihoods: Array, G_now: Array
    ) -> tuple[Array, LogisticState]:
        """Let one half of the posteriors learn from G_now, the other from G; compare all by what they said then.

        The first call makes a copy of every posterior for the other half.
        """
        state = self._halves(state)
        return self._run(state, G, y, w, log_likelihoods, G_now=G_now), state

    def advance_near(self, state: LogisticState, G: Array, y: Labels, w: Array) -> tuple[Array, LogisticState]:
        """Let one half of the posteriors learn, those that learn from rows as they come, and compare none."""
        state = self._halves(state)
        return self._run(state, G, y, w, only_near=True), state

    def _halves(self, state: LogisticState) -> LogisticState:
        return _twice(state) if len(state.means) == len(self._filters[0]) else state

    def rule(self, state: LogisticState) -> Callable[[Array], Array]:
        """Minus the log-probabilities of the labels, averaged over the posterior."""
        return lambda G: self._run(state, G, _NO_LABELS, _NO_WEIGHTS)

    def _run(
        self,
        state: LogisticState,
        G: Array,
        y: Labels,
        w: Array,
        log_likelihoods: Array | None = None,
        only_near: bool = False,
        G_now: Array | None = None,
    ) -> Array:
        from bayesvote.weighting._filter_kernels import logistic_stream

        out, prior = np.empty(G.shape[:2]), self.scale / self.n_members(state)
        least = float(np.log(_LEAST_SHARE / G.shape[1]))
        if len(G):
            given = (*self._filters_of(state), state, out, log_likelihoods, least)
            logistic_stream(G, y, w, prior, self.discount, *given, len(self._filters[0]), only_near, G_now)
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


def _twice(state: LogisticState) -> LogisticState:
    """Return a state with every posterior twice."""
    return LogisticState(
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
    """Return the weights of the default classifier: what ``weighter="drifting"`` means.

    Two posteriors take the weights for constant, with a wide and a narrow prior, and two let them drift, so that
    half of what was known is left after some 2,300 or 140 rows. Those are believed that found the last rows' labels
    likeliest: about two hundred rows count.
    """
    return JointLogistic(precision, persistence, discount, burst=burst)
