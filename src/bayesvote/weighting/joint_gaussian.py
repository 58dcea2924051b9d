"""Weights that know that members are correlated: a joint Gaussian posterior, in closed form."""

from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from functools import cached_property
from typing import NamedTuple, Self, cast

import numpy as np
from numpy.typing import ArrayLike, NDArray

from bayesvote.core import checks as _checks
from bayesvote.core.checks import Array, InputError, Labels
from bayesvote.core.gaussian import check_definite
from bayesvote.core.state import Arrays, all_finite, require, within
from bayesvote.weighting.base import require_memory
from bayesvote.weighting.drifting import DriftingJointGaussian, filter_settings, is_constant
from bayesvote.weighting.gaussian import Gaussians, mixed_by, plain
from bayesvote.weighting.squared_margin import SquaredMarginPosterior

# Rows between two refreshes of the posteriors from the sums. Rounding then grows over 512 rank-one updates at most, and
# a refresh, which costs m**3 instead of m**2, adds little for the usual hundred members.
REFRESH = 512
_MOST_FADED = 0.1  # share of its precision that a prior may lose between two refreshes
_TINY = 1e-300  # in place of a zero to divide by; above the smallest normal double, so that its inverse is finite


class JointState(NamedTuple):
    """Sums of weights, margins and their products, flat, and the posteriors that follow from them.

    ``sums`` has three rows: the total at the last refresh, its rounding error, and the sums since. ``rows`` counts the
    rows since. There is one posterior per prior precision: a covariance, a mean, and the log of the evidence. A
    posterior whose share of the evidence is negligible is not updated: it is ``behind`` by that many rows, and its
    evidence is an upper bound. Only the lower triangles of the products and of the covariances count.
    """

    sums: Array
    rows: NDArray[np.int64]
    behind: NDArray[np.int64]
    covariances: Array
    means: Array
    evidence: Array


class JointSums(NamedTuple):
    """The sums of a :class:`JointState` without the posteriors."""

    sums: Array
    rows: NDArray[np.int64]


@dataclass(frozen=True)
class JointGaussian(SquaredMarginPosterior[JointState]):
    r"""Gaussian posterior over all weights together, in closed form.

    The ensemble loss is the squared loss of the ensemble's margin,
    :math:`\tfrac{\theta}{2} (1 - \sum_i \lambda_i (1 - 2 g_i))^2`, with the prior N(1/m, I/precision) around a uniform
    vote. Its Hessian is free of the weights, so the posterior is exact; and unlike any separable loss it sees that two
    members make the same mistakes. Weights may be negative: a member that is mostly wrong votes for the other label.
    The decision is the label of largest weighted margin. With more than two classes the margin that is learned is half
    the lead of the true label's over the mean of the others'; for two that is the same if g(z) + g(-z) = 1, as for
    ``ramp`` and ``zero_one``.

    Parameters
    ----------
    precision : float or sequence of float
        Precision of the prior. With several, one posterior runs for each, and they are averaged by their evidence.
    theta : float
        Precision of the margins: how much a sample counts against the prior.
    forgetting : float
        Factor by which the past fades with each sample; 1 keeps all of it. The prior fades, too, and is restored every
        min(512, 0.1/(1 - forgetting)) rows, when it has lost a tenth of its precision at most; at 0.93 or less, at
        every row.
    persistence : float or sequence of float
        Factor by which a weight's distance from the uniform vote shrinks with each row: one for every precision, or one
        for all. Below 1 the weights drift, and the result is a :class:`DriftingJointGaussian`.
    discount : float
        Factor by which the evidence fades with each row, so that recent rows choose the precision. Below 1 the result
        is a :class:`DriftingJointGaussian`.

    Examples
    --------
    >>> weighter = JointGaussian()
    >>> state = weighter.update(weighter.init(2), [[0.1, 0.9], [0.3, 0.7]])
    >>> weighter.mean(state).round(3)
    array([0.53, 0.47])
    """

    version = 2

    precision: float | Sequence[float] = (10.0, 100.0, 1000.0, 10000.0)
    theta: float = 1.0
    forgetting: float = 1.0
    persistence: float | Sequence[float] = 1.0
    discount: float = 1.0

    # As pathlib.Path returns a PosixPath: states of weights that drift are not sums, and have a class of their own.
    def __new__(
        cls,
        precision: float | Sequence[float] = precision,
        theta: float = theta,
        forgetting: float = forgetting,
        persistence: float | Sequence[float] = persistence,
        discount: float = discount,
    ) -> Self:
        """Return a :class:`DriftingJointGaussian` if the weights drift."""
        if is_constant(persistence, discount):
            return super().__new__(cls)
        if forgetting != 1:
            must = "must be 1 for weights that drift"
            do = "Leave persistence and discount at 1, or forgetting."
            raise InputError("JointGaussian", "forgetting", must, str(forgetting), do)
        return cast(Self, DriftingJointGaussian(precision, theta, persistence, discount))

    def __post_init__(self) -> None:
        filter_settings("JointGaussian", self.precision, self.persistence)
        object.__setattr__(self, "precision", plain(self.precision))
        object.__setattr__(self, "persistence", plain(self.persistence))
        self._check_theta()
        _checks.fraction("JointGaussian", "forgetting", self.forgetting)
        _checks.fraction("JointGaussian", "discount", self.discount)

    @cached_property
    def _precisions(self) -> Array:
        return filter_settings("JointGaussian", self.precision, self.persistence)[0]

    @property
    def _refresh_every(self) -> int:
        # Between refreshes the prior fades with the samples.
        if self.forgetting == 1:
            return REFRESH
        return max(1, min(REFRESH, round(_MOST_FADED / (1 - self.forgetting))))

    def init(self, n_members: int) -> JointState:
        """Return the state before any sample."""
        _checks.integer("JointGaussian.init", "n_members", n_members)
        return self._refreshed(np.zeros((3, 1 + n_members + n_members**2)))

    def n_members(self, state: JointState) -> int:
        """Return the number of members of the state."""
        return int(state.means.shape[1])

    def check_room(self, state: JointState, w: Array) -> None:
        """Reject sample weights so large that a wide prior would be lost in their rounding."""
        self._check_added_samples(sum(state.sums[:, 0].tolist()), w)

    def validate(self, state: JointState) -> None:
        """Reject posteriors that do not follow from the sums, and sums that margins in [-1, 1] cannot have."""
        all_finite(state)
        # Factors 1 +- 1e-9 and 1e-9 in the bounds below allow for rounding, which is 1e-12 or less.
        highest = self._most_samples * (1 + 1e-9)
        require(within(state.sums, -highest, highest), f"sums must be at most {self._most_samples:g} in size")
        require(0 <= int(state.rows) < self._refresh_every, f"rows must be from 0 to {self._refresh_every - 1}")
        require(within(state.behind, 0, int(state.rows)), "behind must be from 0 to rows")
        require(bool(np.any(state.behind == 0)), "one posterior must not be behind")
        sums, m = self._sums(state).sum(axis=0), self.n_members(state)
        require(sums[0] <= highest, f"the count must be at most {self._most_samples:g}")
        most = sums[0] * (1 + 1e-9) + 1e-9
        require(bool(np.all(np.abs(sums[1 : 1 + m]) <= most)), "sums of margins must not exceed the count")
        products = np.tril(sums[1 + m :].reshape(m, m))
        require(
            bool(np.all(np.abs(products) <= most) and np.all(np.diag(products) >= 0)), "products must be of margins"
        )
        with np.errstate(invalid="ignore"):
            check_definite(state.covariances)
            again, current = self._refreshed(self._sums(state)), state.behind == 0
            self._check_current(state, again, current, float(most))
        if not np.all(current):
            self._check_behind(state, again, float(most))

    def _check_current(self, state: JointState, again: JointState, current: NDArray[np.bool_], count: float) -> None:
        """Reject up-to-date posteriors that differ from ``again``, which was computed from the sums."""
        precisions = self._precisions[current]
        # Rank-one updates differ from a refresh by rounding, of at least 1e-6. With forgetting the prior fades by up to
        # a tenth between refreshes, which may change a result by twice as much.
        rounding = self._rounding(count, self.n_members(state), precisions)
        slack = max(1e-6 if self.forgetting == 1 else 2 * _MOST_FADED, rounding)
        for name, given, found in (
            ("covariances", np.tril(state.covariances), np.tril(again.covariances)),
            ("means", state.means, again.means),
            ("evidence", state.evidence, again.evidence),
        ):
            size = 1 + np.abs(found[current]).max()
            if name == "covariances":  # relative to each prior, as one may be far narrower than another
                size = (2 / precisions)[:, None, None]
            near = np.abs(given[current] - found[current]) <= slack * size
            require(bool(np.all(near)), f"{name} must follow from the sums")

    def _rounding(self, count: float, m: int, precisions: Array) -> float:
        """Return the relative rounding error between refreshes: larger where samples outweigh the prior."""
        # 1e-13: the rounding of 512 updates at 2e-16 each. It is multiplied by the condition number of the posterior.
        return float(1e-13 * (1 + self.theta * count * m / precisions.min()))

    def _check_behind(self, state: JointState, again: JointState, count: float) -> None:
        """Reject posteriors that are behind if they count, or if no part of the rows leads to them.

        ``again`` was computed from all rows.
        """
        from bayesvote.weighting._joint_kernels import TOO_LITTLE_EVIDENCE

        require(self.forgetting == 1, "no posterior may be behind where samples fade")
        behind = state.behind > 0
        precisions, off = self._precisions[behind], state.means[behind] - 1 / self.n_members(state)
        # As for a drifting filter: the rows lead to squared distances of at most 4 theta each.
        near = precisions * np.sum(off**2, axis=1) <= 1.001 * 4 * self.theta * count + 1e-9
        require(bool(np.all(near)), "means at rest must be within reach of the sums")
        widest = np.diagonal(state.covariances[behind], axis1=1, axis2=2).max(axis=1)
        require(bool(np.all(widest * precisions <= 1 + 1e-6)), "covariances at rest must not be wider than the prior's")
        rounding = max(1e-6, self._rounding(count, self.n_members(state), self._precisions))
        slack = rounding * (1 + np.abs(again.evidence).max())
        most = state.evidence[~behind].max() + TOO_LITTLE_EVIDENCE + slack
        bound = within(state.evidence[behind], -np.inf, most) and np.all(state.evidence >= again.evidence - slack)
        require(bool(bound), "evidence at rest must be a bound that does not count")

    def upgraded(self, version: int, arrays: Arrays) -> Arrays:
        """Return the arrays of version 1, in which no posterior was ever behind, with those of this version."""
        if version != 1 or "behind" in arrays:
            return super().upgraded(version, arrays)
        return {**arrays, "behind": np.zeros(len(self._precisions), dtype=np.int64)}

    def _sums(self, state: JointState | JointSums) -> Array:
        """Return the sums and their rounding errors, (2, sums), with the rows since the last refresh."""
        from bayesvote.weighting._sum_kernels import add

        total, carry = state.sums[:2] * self.forgetting ** int(state.rows)
        add(total, carry, state.sums[2], 1.0)
        return np.stack((total, carry))

    def _refreshed(self, sums: Array) -> JointState:
        """Return the posteriors that follow from the sums, by Cholesky decomposition."""
        from bayesvote.weighting._joint_kernels import solve

        value, p = sums[0] + sums[1], self._precisions
        m = int(np.sqrt(len(value) - 0.75))  # len = 1 + m + m**2
        covariances, means, evidence = np.empty((len(p), m, m)), np.empty((len(p), m)), np.empty(len(p))
        solve(value, self.theta, p, covariances, means, evidence)
        sums = np.stack((sums[0], sums[1], np.zeros_like(value)))
        since = np.array(0, dtype=np.int64), np.zeros(len(p), dtype=np.int64)
        return JointState(sums, *since, covariances, means, evidence)

    def _update(self, state: JointState, g: Array, w: Array) -> JointState:
        return self._learn(state, g[:, None], g, w)[1]

    def advance(self, state: JointState, G: Array, y: Labels, w: Array) -> tuple[Array, JointState]:
        """Do what ``losses_then_update`` does for checked input, in place; refreshes replace the state."""
        return self._learn(state, G, self.of_truth(G, y), w)

    def _learn(self, state: JointState, G: Array, truth: Array, w: Array) -> tuple[Array, JointState]:
        """Return the losses of the labels G, row by row before its truth is learned, and the state after the rows."""
        from bayesvote.weighting._joint_kernels import stream

        out, precisions = np.empty(G.shape[:2]), self._precisions
        for rows, full in self._blocks(int(state.rows), w):
            stream(G[rows], truth[rows], w[rows], self.theta, self.forgetting, precisions, state, out[rows])
            state.rows[()] += np.count_nonzero(w[rows])
            if full:
                state = self._refreshed(self._sums(state))
        return out, state

    def _blocks(self, before: int, w: Array) -> Iterator[tuple[slice, bool]]:
        """Give the rows between refreshes, and True if a refresh is due after them.

        Refreshes are due at fixed row counts, so that results do not depend on the chunk size.
        """
        start, left = 0, self._refresh_every - before
        while start < len(w):
            learned = np.flatnonzero(w[start : start + left] != 0)
            if len(learned) < left:  # rows of weight 0 are among them
                learned = np.flatnonzero(w[start:] != 0)
            full = len(learned) >= left
            stop = start + int(learned[left - 1]) + 1 if full else len(w)
            yield slice(start, stop), full
            start, left = stop, self._refresh_every

    def sums(self, n_members: int) -> JointSums:
        """Return the sums over no rows."""
        _checks.integer("JointGaussian.sums", "n_members", n_members)
        require_memory(self.who, "merge", self.forgetting)
        return JointSums(np.zeros((3, 1 + n_members + n_members**2)), np.array(0, dtype=np.int64))

    def summed(self, sums: JointSums, g: Array, w: Array) -> JointSums:
        """Return the sums after further rows, bit for bit those of ``update``, which also computes the posteriors."""
        from bayesvote.weighting._joint_kernels import add_losses

        for rows, full in self._blocks(int(sums.rows), w):
            add_losses(g[rows], w[rows], sums.sums[2])
            sums.rows[()] += np.count_nonzero(w[rows])
            if full:
                sums.sums[:2], sums.sums[2], sums.rows[()] = self._sums(sums), 0.0, 0
        return sums

    def added(self, sums: JointSums, others: JointSums) -> JointSums:
        """Return the sums over the rows of both."""
        if sums.sums.shape != others.sums.shape:
            must, got = "must be about the same members", f"{sums.sums.shape} and {others.sums.shape}"
            raise InputError("JointGaussian.added", "sums", must, got)
        total = self._total(sums, others, 1.0)
        self._check_samples("JointGaussian.added", float(total[:, 0].sum()))
        return JointSums(np.stack((*total, np.zeros_like(total[0]))), np.array(0, dtype=np.int64))

    def completed(self, sums: JointSums, heard: Array) -> JointSums:
        """Return the sums as if every member had scored every row; it would else count as undecided on the others.

        Means of margins and of their products are taken over the rows on which they are known. With few rows, the
        matrix of products may have negative eigenvalues, which no margins lead to. These are set to 0, and the
        diagonal is kept.
        """
        whole = np.concatenate(([1.0], 1 / np.diag(heard), (1 / heard).ravel()))
        total = self._sums(sums) * whole
        m, rest = len(heard), np.zeros_like(total[0])
        products = total.sum(axis=0)[1 + m :].reshape(m, m)  # eigh reads the lower triangle
        values, vectors = np.linalg.eigh(products)
        if values[0] < -1e-12 * values[-1]:  # by more than the rounding of eigenvalues
            possible = (vectors * np.maximum(values, 0.0)) @ vectors.T
            known = np.sqrt(np.diag(products) / np.maximum(np.diag(possible), _TINY))
            total[0, 1 + m :], total[1, 1 + m :] = np.tril(possible * known * known[:, None]).ravel(), 0.0
        return JointSums(np.stack((*total, rest)), np.array(0, dtype=np.int64))

    def rescale_for_abstentions(self, state: JointState, losses: Array, silent: NDArray[np.bool_]) -> Array:
        """Return the losses after dividing the margins by the share of the mean margin that the other members have."""
        brought = self.mean(state) * self._sums(state).sum(axis=0)[1 : 1 + self.n_members(state)]
        share = brought[~silent].sum() / brought.sum() if brought.sum() > 0 else 1.0
        return np.asarray(0.5 - (0.5 - losses) / share) if share > 0 else losses

    def from_sums(self, sums: JointSums) -> JointState:
        """Return the posteriors after the rows of the sums."""
        total = self._sums(sums)
        self._check_samples("JointGaussian.from_sums", float(total[:, 0].sum()))
        return self._refreshed(total)

    def merge(self, a: JointState, b: JointState) -> JointState:
        """Return the state that has seen both streams."""
        require_memory(self.who, "merge", self.forgetting)
        return self._combined("merge", a, b, 1.0)

    def unlearn(self, state: JointState, g: ArrayLike, sample_weight: ArrayLike | None = None) -> JointState:
        """Return the state as if the rows g, learned before, had never been seen.

        Rows that were never learned are rejected if no stream leads to the sums without them.
        """
        require_memory(self.who, "unlearn", self.forgetting)
        seen = self.update(self.init(self.n_members(state)), g, sample_weight)
        if self.effective_samples(seen)[0] > self.effective_samples(state)[0] * (1 + 1e-9):
            got = f"{self.effective_samples(seen)[0]:g} to take from {self.effective_samples(state)[0]:g}"
            raise InputError("JointGaussian.unlearn", "only rows that were learned", "can be unlearned", got)
        after = self._combined("unlearn", state, seen, -1.0)
        if not self._possible(after, slack=1e-9 * (1 + self.effective_samples(state)[0])):
            must = "can be unlearned; no stream leads to what would be left"
            raise InputError("JointGaussian.unlearn", "only rows that were learned", must)
        return after

    def _possible(self, state: JointState, slack: float) -> bool:
        """Return True if margins in [-1, 1] can have these sums: the moment matrix has no negative eigenvalue."""
        sums, m = self._sums(state).sum(axis=0), self.n_members(state)
        moments = np.empty((m + 1, m + 1))
        moments[0, 0], moments[1:, 0], moments[1:, 1:] = sums[0], sums[1 : 1 + m], sums[1 + m :].reshape(m, m)
        return bool(np.diag(moments).max() <= sums[0] + slack and np.linalg.eigvalsh(moments)[0] >= -slack)

    def _combined(self, method: str, a: JointState, b: JointState, sign: float) -> JointState:
        if a.means.shape != b.means.shape:
            must, got = "must be about the same members and precisions", f"{a.means.shape} and {b.means.shape}"
            raise InputError(f"JointGaussian.{method}", "states", must, got)
        total = self._total(a, b, sign)
        self._check_samples(f"JointGaussian.{method}", float(total[:, 0].sum()))
        return self._refreshed(total)

    def _total(self, a: JointState | JointSums, b: JointState | JointSums, sign: float) -> Array:
        """Return the sums of both and their rounding errors, (2, sums)."""
        from bayesvote.weighting._sum_kernels import add

        sums, other = self._sums(a), self._sums(b)
        add(sums[0], sums[1], other[0], sign)
        add(sums[0], sums[1], other[1], sign)
        return sums

    def effective_samples(self, state: JointState) -> Array:
        """Return the number of samples behind the posterior, the same for every member."""
        return np.full(self.n_members(state), self._sums(state)[:, 0].sum())

    def gaussians(self, state: JointState) -> Gaussians:
        """Return one posterior for each precision, weighted by their evidence."""
        return Gaussians(mixed_by(state.evidence), state.means, state.covariances)

    def mean(self, state: JointState) -> Array:
        """Return the posterior mean, averaged over the precisions by their evidence."""
        from bayesvote.weighting._joint_kernels import mix

        out = np.empty(self.n_members(state))
        mix(state.evidence, state.means, out)
        return out
