"""Gaussian filters: joint posteriors over weights that drift from row to row."""

from collections.abc import Sequence
from dataclasses import dataclass
from functools import cached_property
from typing import Any, NamedTuple

import numpy as np

from bayesvote.core import checks as _checks
from bayesvote.core.checks import Array, InputError, InputTypeError, Labels
from bayesvote.core.gaussian import check_covariances, symmetric
from bayesvote.core.state import MOST_TOTAL, all_finite, require, within
from bayesvote.weighting.gaussian import Gaussians, mixed_by, plain
from bayesvote.weighting.squared_margin import SquaredMarginPosterior


class FilterState(NamedTuple):
    """Posteriors of weights that drift, ready for the next row: one for each pair of precision and persistence.

    Only the lower triangles of the covariances count, and the 4 by 4 blocks along the diagonal, which are whole.
    """

    covariances: Array  # (k, m, m)
    means: Array  # (k, m)
    evidence: Array  # (k,): log of the discounted evidence
    samples: Array  # (k,): sum of the rows' weights, each times the correlation of the members' weights then and now


@dataclass(frozen=True)
class DriftingJointGaussian(SquaredMarginPosterior[FilterState]):
    r"""Gaussian posterior over weights that drift, by exact Kalman filters.

    ``JointGaussian(persistence=..., discount=...)`` makes one. The loss and the prior are those of
    :class:`JointGaussian`. The weights are autoregressive processes around the uniform vote whose spread is that of the
    prior. The posterior depends on the order of the rows, so states cannot be merged, and rows cannot be unlearned.

    Parameters
    ----------
    precision : float or sequence of float
        Precision of the prior. With several, one filter runs for each, and they are averaged by their evidence.
    theta : float
        Precision of the margins: how much a sample counts against the prior.
    persistence : float or sequence of float
        Factor by which a weight's distance from the uniform vote shrinks with each row: one for every precision, or one
        for all. 1 keeps the weight constant.
    discount : float
        Factor by which the evidence fades with each row, so that recent rows choose the precision and persistence.

    Examples
    --------
    >>> weighter = DriftingJointGaussian(precision=100.0, persistence=0.99)
    >>> state = weighter.update(weighter.init(2), [[0.1, 0.9], [0.3, 0.7]])
    >>> weighter.mean(state).round(3)
    array([0.512, 0.488])
    """

    version = 2  # as in JointGaussian, whose files held these states, too

    precision: float | Sequence[float] = (10.0, 1000.0, 100.0, 100.0)
    theta: float = 1.0
    persistence: float | Sequence[float] = (1.0, 1.0, 0.9997, 0.995)
    discount: float = 0.99

    def __post_init__(self) -> None:
        filter_settings(self.who, self.precision, self.persistence)
        object.__setattr__(self, "precision", plain(self.precision))
        object.__setattr__(self, "persistence", plain(self.persistence))
        self._check_theta()
        _checks.fraction(self.who, "discount", self.discount)

    @cached_property
    def _settings(self) -> tuple[Array, Array]:
        return filter_settings(self.who, self.precision, self.persistence)

    @property
    def _precisions(self) -> Array:
        return self._settings[0]

    @property
    def persistences(self) -> Array:
        """Persistence of every filter."""
        return self._settings[1]

    def init(self, n_members: int) -> FilterState:
        """Return the state before any sample."""
        _checks.integer(f"{self.who}.init", "n_members", n_members)
        return start_filters(self._precisions, n_members, 1 / n_members)

    def n_members(self, state: FilterState) -> int:
        """Return the number of members of the state."""
        return int(state.means.shape[1])

    def check_room(self, state: FilterState, w: Array) -> None:
        """Reject sample weights so large that a wide prior would be lost in their rounding."""
        self._check_added_samples(float(state.samples.max()), w)

    def validate(self, state: FilterState) -> None:
        """Reject posteriors that no stream leads to."""
        check_filters(state, self._precisions, self.theta)
        highest = self._most_samples * (1 + 1e-9)  # the sum was checked before it was rounded
        require(within(state.samples, 0, highest), f"samples must be at most {self._most_samples:g}")
        # Squared distance of the means from the uniform vote, by the covariances: a row adds at most
        # theta (1 - margin)**2, which is at most 4 theta, and a drift step shrinks it.
        off = state.means - 1 / self.n_members(state)
        squares = (off[:, None] @ np.linalg.solve(symmetric(state.covariances), off[..., None]))[:, 0, 0]
        most = 4 * self.theta * state.samples
        slack = 1.001 * most + 1e-9  # the covariances may be ill-conditioned: solve loses digits
        require(bool(np.all(squares <= slack)), "means must be within reach of the samples")

    def _not_a_sum(self, method: str) -> InputTypeError:
        must = "must be 1, as weights that drift depend on the order of the rows"
        do = "Use JointGaussian() without them."
        return InputTypeError(f"{self.who}.{method}", "persistence and discount", must, do=do)

    def _update(self, state: FilterState, g: Array, w: Array) -> FilterState:
        return self._learn(state, g[:, None], g, w)[1]

    def advance(self, state: FilterState, G: Array, y: Labels, w: Array) -> tuple[Array, FilterState]:
        """Do what ``losses_then_update`` does for checked input, in place."""
        return self._learn(state, G, self.of_truth(G, y), w)

    def _learn(self, state: FilterState, G: Array, truth: Array, w: Array) -> tuple[Array, FilterState]:
        """Return the losses of the labels G, row by row before its truth is learned, and the state."""
        from bayesvote.weighting._filter_kernels import squared_stream

        out = np.empty(G.shape[:2])
        squared_stream(G, truth, w, self.theta, self.discount, *self._settings, state, out)
        return out, state

    def effective_samples(self, state: FilterState) -> Array:
        """Return the number of samples behind the posterior, the same for every member.

        A row counts by the correlation of the weights then and now.
        """
        return np.full(self.n_members(state), mixed_by(state.evidence) @ state.samples)

    @property
    def counts_rows(self) -> bool:
        """True if no weight drifts, so that every row counts in full."""
        return bool(np.all(self.persistences == 1))

    def gaussians(self, state: FilterState) -> Gaussians:
        """Return one posterior per filter, weighted by their evidence."""
        return Gaussians(mixed_by(state.evidence), state.means, state.covariances)

    def mean(self, state: FilterState) -> Array:
        """Return the posterior mean, averaged over the filters by their evidence."""
        from bayesvote.weighting._joint_kernels import mix

        out = np.empty(self.n_members(state))
        mix(state.evidence, state.means, out)
        return out


def filter_settings(
    who: str, precision: float | Sequence[float], persistence: float | Sequence[float]
) -> tuple[Array, Array]:
    """Check and return the precision and the persistence of every filter."""
    given = [_numbers(who, "precision", precision), _numbers(who, "persistence", persistence)]
    for name, values, check in zip(
        ("precision", "persistence"), given, (_checks.positive, _checks.fraction), strict=True
    ):
        if values.ndim != 1 or len(values) == 0:
            raise InputError(who, name, "must hold at least one number", str(values.tolist()))
        for value in values:
            check(who, name, float(value))
    sizes = {len(values) for values, own in zip(given, (precision, persistence), strict=True) if np.ndim(own)}
    if len(sizes) > 1:
        must = "must be of the same length, or one of them a single number"
        raise InputError(who, "precision and persistence", must, f"{len(given[0])} and {len(given[1])}")
    p, rho = np.broadcast_arrays(*given)
    return np.ascontiguousarray(p), np.ascontiguousarray(rho)


def _numbers(who: str, name: str, values: float | Sequence[float]) -> Array:
    """Return a number or several as an array."""
    try:
        return np.atleast_1d(np.asarray(values, dtype=np.float64))
    except OverflowError:
        raise InputError(who, name, "must be a finite number above 0", "a number too large for float64") from None


def is_constant(persistence: Any, discount: float) -> bool:
    """Return True if no weight drifts and no evidence fades."""
    return discount == 1 and bool(np.all(np.asarray(persistence) == 1))


def start_filters(precisions: Array, n_members: int, prior_mean: float) -> FilterState:
    """Return the filters before any row: their priors."""
    k = len(precisions)
    covariances = np.eye(n_members) / precisions[:, None, None]
    return FilterState(covariances, np.full((k, n_members), prior_mean), np.zeros(k), np.zeros(k))


def check_filters(state: FilterState, precisions: Array, theta: float = 1.0) -> None:
    """Reject covariances that are not definite, wider than the prior or too narrow, and evidence above certainty."""
    all_finite(state)
    require(within(state.samples, 0, MOST_TOTAL), f"samples must be from 0 to {MOST_TOTAL:g}")
    require(not np.any(state.evidence > 0), "evidence must be at most 0")
    # A row adds at most theta times its squared margins, one per member, to a precision; drift only reduces it.
    check_covariances(state.covariances, precisions, precisions + theta * state.means.shape[1] * state.samples)


def constant_samples(state: FilterState, persistence: Array) -> float | None:
    """Return the sum of sample weights by a filter whose weights do not drift; None without one."""
    return float(state.samples[persistence == 1][0]) if np.any(persistence == 1) else None
