"""Weights that know that members are correlated: a joint Gaussian posterior, in closed form."""

from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from functools import cached_property
from typing import NamedTuple

import numpy as np
from numpy.typing import ArrayLike, NDArray

from bayesvote.core import checks as _checks
from bayesvote.core.checks import Array, Labels
from bayesvote.core.gaussian import check_definite, symmetric
from bayesvote.core.state import MOST_TOTAL, Arrays, all_finite, require, within
from bayesvote.losses import LossScale
from bayesvote.weighting.base import require_memory
from bayesvote.weighting.gaussian import (
    FilterState,
    Gaussians,
    MarginPosterior,
    check_filters,
    filters,
    kept,
    mixed_by,
    plain,
    refusal,
    start_filters,
)

_MOST_RATIO = 1e9  # of what a row counts to what the prior does
REFRESH = 512  # rows between two refreshes from the sums; keeps rounding from piling up in the covariances


class JointState(NamedTuple):
    """Sums of weight, margins and their products, flat, and the posteriors that follow from them.

    Of the products and of the covariances only the lower triangles count.

    ``sums`` has three rows: the total at the last refresh, what rounding took from it, and the sums since;
    ``rows`` counts the rows since. The posteriors, one per prior precision: covariance, mean, log of the evidence. One
    whose share of the evidence does not count rests: it is ``behind`` by so many rows, and its evidence is a bound.
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
class JointGaussian(MarginPosterior[JointState | FilterState]):
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
        Of the prior. With several, as many posteriors run side by side and are averaged by their evidence.
    theta : float
        Precision of the margins: how much a sample counts against the prior.
    forgetting : float
        Factor by which the past fades with each sample; 1 keeps all of it. The prior fades with it, by a tenth of its
        precision at most, and is made whole again every min(512, 0.1/(1 - forgetting)) rows; at 0.93 or less, at every
        row.
    persistence : float or sequence of float
        How much of its way from the uniform vote a weight keeps with each row, one for every precision or one for all.
        Below 1 the weights drift: they are taken for an autoregressive process whose spread is that of the prior, and
        the posterior is an exact Kalman filter. It then depends on the order of the rows, so that it can neither be
        merged nor unlearn.
    discount : float
        Factor by which the evidence fades with each row, so that the precision and persistence that serve now are
        believed; 1 keeps all of it.

    Examples
    --------
    >>> weighter = JointGaussian()
    >>> state = weighter.update(weighter.init(2), [[0.1, 0.9], [0.3, 0.7]])
    >>> weighter.mean(state).round(3)
    array([0.53, 0.47])
    """

    version = 2
    needs_bounded = True
    loss_scale = LossScale.SHARE

    precision: float | Sequence[float] = (10.0, 100.0, 1000.0, 10000.0)
    theta: float = 1.0
    forgetting: float = 1.0
    persistence: float | Sequence[float] = 1.0
    discount: float = 1.0

    def __post_init__(self) -> None:
        filters("JointGaussian", self.precision, self.persistence)
        object.__setattr__(self, "precision", plain(self.precision))
        object.__setattr__(self, "persistence", plain(self.persistence))
        _checks.positive("JointGaussian", "theta", self.theta)
        least = float(self._precisions.min())
        if self.theta > _MOST_RATIO * least:
            raise ValueError(
                f"JointGaussian: theta must be at most {_MOST_RATIO:g} times the least precision, or a prior is lost "
                f"in the rounding of one row, got {self.theta} and {least}. Use a larger precision."
            )
        _checks.fraction("JointGaussian", "forgetting", self.forgetting)
        _checks.fraction("JointGaussian", "discount", self.discount)
        if self.drifts and self.forgetting != 1:
            raise ValueError(
                f"JointGaussian: forgetting must be 1 for weights that drift, got {self.forgetting}. "
                "Leave persistence and discount at 1, or forgetting."
            )

    @property
    def drifts(self) -> bool:
        """Whether the weights are a filter's; otherwise the state is a sum."""
        return not kept(self.persistence, self.discount)

    @cached_property
    def _filters(self) -> tuple[Array, Array]:
        return filters("JointGaussian", self.precision, self.persistence)

    @property
    def _precisions(self) -> Array:
        return self._filters[0]

    @property
    def _refresh_every(self) -> int:
        # Between refreshes the prior fades with the samples; refresh before it has lost a tenth.
        if self.forgetting == 1:
            return REFRESH
        return max(1, min(REFRESH, round(0.1 / (1 - self.forgetting))))

    @property
    def persistences(self) -> Array:
        """Those of the posteriors."""
        return self._filters[1]

    def init(self, n_members: int) -> JointState | FilterState:
        """State before any sample."""
        _checks.integer("JointGaussian.init", "n_members", n_members)
        if self.drifts:
            return start_filters(self._precisions, n_members, 1 / n_members)
        return self._refreshed(np.zeros((3, 1 + n_members + n_members**2)))

    def n_members(self, state: JointState | FilterState) -> int:
        """How many members the state is about."""
        return int(state.means.shape[1])

    def least_bytes(self, n_members: int) -> int:
        """The size of the covariances."""
        return 8 * len(self._precisions) * n_members**2

    @cached_property
    def _most_samples(self) -> float:
        """How many samples leave a digit or two of the widest prior."""
        return min(float(1e13 * self._precisions.min() / self.theta), MOST_TOTAL)

    def check_room(self, state: JointState | FilterState, w: Array) -> None:
        """Refuse samples so heavy that a wide prior would be lost in their rounding."""
        before = float(state.samples.max()) if isinstance(state, FilterState) else sum(state.sums[:, 0].tolist())
        if before + len(w) * _checks.MOST_WEIGHT > self._most_samples:  # or a row need not wait for a sum
            self._check_samples("JointGaussian", before + float(w.sum()))

    def _check_samples(self, who: str, samples: float) -> None:
        if samples > self._most_samples:
            raise ValueError(
                f"{who}: sample weights must sum to at most {self._most_samples:g} with the least precision "
                f"{self._precisions.min():g}, got {samples:g}. Use smaller weights, or a larger precision."
            )

    def validate(self, state: JointState | FilterState) -> None:
        """Refuse posteriors that do not follow from the sums, and sums of no margins in [-1, 1]."""
        if isinstance(state, FilterState):
            self._check_filters(state)
        else:
            self._check_sums(state)

    def _check_filters(self, state: FilterState) -> None:
        check_filters(state, self._precisions, self.theta)
        highest = self._most_samples * (1 + 1e-9)
        require(within(state.samples, 0, highest), f"samples must be at most {self._most_samples:g}")
        # Squared distances from the uniform vote, by the covariances: a row adds at most theta (1 - margin)**2, and a
        # step makes them less.
        off = state.means - 1 / self.n_members(state)
        squares = (off[:, None] @ np.linalg.solve(symmetric(state.covariances), off[..., None]))[:, 0, 0]
        most = 4 * self.theta * state.samples
        require(bool(np.all(squares <= 1.001 * most + 1e-9)), "means must be within reach of the samples")

    def _check_sums(self, state: JointState) -> None:
        all_finite(state)
        # The count, and margins of at most 1 and their products times it; with more, no digit of a prior is left.
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
            again, awake = self._refreshed(self._sums(state)), state.behind == 0
            # With forgetting the prior fades by up to a tenth between refreshes.
            count = float(most)
            slack = max(1e-6 if self.forgetting == 1 else 0.2, self._rounding(count, m, self._precisions[awake]))
            for name, given, found in (
                ("covariances", np.tril(state.covariances), np.tril(again.covariances)),
                ("means", state.means, again.means),
                ("evidence", state.evidence, again.evidence),
            ):
                size = 1 + np.abs(found[awake]).max()
                if name == "covariances":  # of each posterior by its own prior, as one may be far narrower than another
                    size = (2 / self._precisions[awake])[:, None, None]
                near = np.abs(given[awake] - found[awake]) <= slack * size
                require(bool(np.all(near)), f"{name} must follow from the sums")
        if not np.all(awake):
            self._check_resting(state, again, count)

    def _rounding(self, count: float, m: int, precisions: Array) -> float:
        """By what part rounding differs between refreshes: more, where samples count for much more than the prior."""
        return float(1e-13 * (1 + self.theta * count * m / precisions.min()))

    def _check_resting(self, state: JointState, again: JointState, count: float) -> None:
        """Refuse posteriors at rest that count, or that no part of the rows leads to; ``again`` has all the rows."""
        from bayesvote.weighting._joint_kernels import TOO_LITTLE_EVIDENCE

        require(self.forgetting == 1, "no posterior may be behind where samples fade")
        rest = state.behind > 0
        precisions, off = self._precisions[rest], state.means[rest] - 1 / self.n_members(state)
        # As of a filter: squared distances from the uniform vote are at most those that the rows lead to.
        near = precisions * np.sum(off**2, axis=1) <= 1.001 * 4 * self.theta * count + 1e-9
        require(bool(np.all(near)), "means at rest must be within reach of the sums")
        widest = np.diagonal(state.covariances[rest], axis1=1, axis2=2).max(axis=1)
        require(bool(np.all(widest * precisions <= 1 + 1e-6)), "covariances at rest must not be wider than the prior's")
        rounding = max(1e-6, self._rounding(count, self.n_members(state), self._precisions))
        slack = rounding * (1 + np.abs(again.evidence).max())
        most = state.evidence[~rest].max() + TOO_LITTLE_EVIDENCE + slack
        bound = within(state.evidence[rest], -np.inf, most) and np.all(state.evidence >= again.evidence - slack)
        require(bool(bound), "evidence at rest must be a bound that does not count")

    def upgraded(self, version: int, arrays: Arrays) -> Arrays:
        """In version 1 no posterior was ever behind."""
        if version != 1 or "behind" in arrays:
            return super().upgraded(version, arrays)
        return {**arrays, "behind": np.zeros(len(self._precisions), dtype=np.int64)}

    def _sums(self, state: JointState | JointSums) -> Array:
        """Total and carry, (2, sums), with all that is recent in it."""
        from bayesvote.weighting._sum_kernels import add

        total, carry = state.sums[:2] * self.forgetting ** int(state.rows)
        add(total, carry, state.sums[2], 1.0)
        return np.stack((total, carry))

    def _refreshed(self, sums: Array) -> JointState:
        """Posteriors anew from the sums, by Cholesky."""
        from bayesvote.weighting._joint_kernels import solve

        value, p = sums[0] + sums[1], self._precisions
        m = int(np.sqrt(len(value) - 0.75))  # len = 1 + m + m**2
        covariances, means, evidence = np.empty((len(p), m, m)), np.empty((len(p), m)), np.empty(len(p))
        solve(value, self.theta, p, covariances, means, evidence)
        sums = np.stack((sums[0], sums[1], np.zeros_like(value)))
        since = np.array(0, dtype=np.int64), np.zeros(len(p), dtype=np.int64)
        return JointState(sums, *since, covariances, means, evidence)

    def _update(self, state: JointState | FilterState, g: Array, w: Array) -> JointState | FilterState:
        return self._learn(state, g[:, None], g, w)[1]

    def of_truth(self, G: Array, y: Labels) -> Array:
        """Losses of the true label; with more than two classes, of its lead over the others."""
        own = super().of_truth(G, y)
        if G.shape[1] == 2:
            return own
        lead = (G.sum(axis=1) - own) / (G.shape[1] - 1) - own
        return np.asarray(np.maximum(0.5 - lead / 2, 0.0))  # an unbounded loss could lead by more than 1

    def advance(
        self, state: JointState | FilterState, G: Array, y: Labels, w: Array
    ) -> tuple[Array, JointState | FilterState]:
        """Do what losses_then_update does, for a caller that has checked its input."""
        return self._learn(state, G, self.of_truth(G, y), w)

    def _learn(
        self, state: JointState | FilterState, G: Array, truth: Array, w: Array
    ) -> tuple[Array, JointState | FilterState]:
        """Losses of the labels G, row by row before its truth is learned."""
        if isinstance(state, FilterState):
            return self._filter(state, G, truth, w)
        return self._add(state, G, truth, w)

    def _filter(self, state: FilterState, G: Array, truth: Array, w: Array) -> tuple[Array, FilterState]:
        from bayesvote.weighting._filter_kernels import squared_stream

        out = np.empty(G.shape[:2])
        squared_stream(G, truth, w, self.theta, self.discount, *self._filters, state, out)
        return out, state

    def _add(self, state: JointState, G: Array, truth: Array, w: Array) -> tuple[Array, JointState]:
        from bayesvote.weighting._joint_kernels import stream

        out, precisions = np.empty(G.shape[:2]), self._precisions
        for rows, full in self._blocks(int(state.rows), w):
            stream(G[rows], truth[rows], w[rows], self.theta, self.forgetting, precisions, state, out[rows])
            state.rows[()] += np.count_nonzero(w[rows])
            if full:
                state = self._refreshed(self._sums(state))
        return out, state

    def _blocks(self, before: int, w: Array) -> Iterator[tuple[slice, bool]]:
        """Rows between refreshes, and whether one is due after them: at fixed counts, so that chunks change nothing."""
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
        """Sums over no rows."""
        _checks.integer("JointGaussian.sums", "n_members", n_members)
        if self.drifts:
            raise refusal("JointGaussian", "merge")
        require_memory(self.who, "merge", self.forgetting)
        return JointSums(np.zeros((3, 1 + n_members + n_members**2)), np.array(0, dtype=np.int64))

    def summed(self, sums: JointSums, g: Array, w: Array) -> JointSums:
        """Sums after further rows: the same bits as those of ``update``, which works out the posteriors, too."""
        from bayesvote.weighting._joint_kernels import add_losses

        for rows, full in self._blocks(int(sums.rows), w):
            add_losses(g[rows], w[rows], sums.sums[2])
            sums.rows[()] += np.count_nonzero(w[rows])
            if full:
                sums.sums[:2], sums.sums[2], sums.rows[()] = self._sums(sums), 0.0, 0
        return sums

    def added(self, sums: JointSums, others: JointSums) -> JointSums:
        """Sums over the rows of both."""
        if sums.sums.shape != others.sums.shape:
            raise ValueError(
                f"JointGaussian.added: sums must be about the same members, got {sums.sums.shape} and "
                f"{others.sums.shape}."
            )
        total = self._total(sums, others, 1.0)
        self._check_samples("JointGaussian.added", float(total[:, 0].sum()))
        return JointSums(np.stack((*total, np.zeros_like(total[0]))), np.array(0, dtype=np.int64))

    def completed(self, sums: JointSums, heard: Array) -> JointSums:
        """Sums as if every member had been asked about every row, not counted as undecided where it was not.

        Means of margins and of their products are taken over the rows that they are known of. With few rows, such
        products need not be those of any margins; then what cannot be is left out, and the squares stay as they are.
        """
        whole = np.concatenate(([1.0], 1 / np.diag(heard), (1 / heard).ravel()))
        total = self._sums(sums) * whole
        m, rest = len(heard), np.zeros_like(total[0])
        products = total.sum(axis=0)[1 + m :].reshape(m, m)  # of which the lower triangle counts
        values, vectors = np.linalg.eigh(products)
        if values[0] < -1e-12 * values[-1]:  # by more than rounding
            possible = (vectors * np.maximum(values, 0.0)) @ vectors.T
            known = np.sqrt(np.diag(products) / np.maximum(np.diag(possible), 1e-300))  # the squares stay as they are
            total[0, 1 + m :], total[1, 1 + m :] = np.tril(possible * known * known[:, None]).ravel(), 0.0
        return JointSums(np.stack((*total, rest)), np.array(0, dtype=np.int64))

    def rescale_for_abstentions(
        self, state: JointState | FilterState, losses: Array, silent: NDArray[np.bool_]
    ) -> Array:
        """Losses of margins made larger by the share of the mean margin that the silent members would have brought."""
        if isinstance(state, FilterState):
            return losses
        brought = self.mean(state) * self._sums(state).sum(axis=0)[1 : 1 + self.n_members(state)]
        share = brought[~silent].sum() / brought.sum() if brought.sum() > 0 else 1.0
        return np.asarray(0.5 - (0.5 - losses) / share) if share > 0 else losses

    def from_sums(self, sums: JointSums) -> JointState:
        """Posteriors after the rows of the sums."""
        total = self._sums(sums)
        self._check_samples("JointGaussian.from_sums", float(total[:, 0].sum()))
        return self._refreshed(total)

    def merge(self, a: JointState | FilterState, b: JointState | FilterState) -> JointState | FilterState:
        """State that has seen both streams."""
        require_memory(self.who, "merge", self.forgetting)
        return self._combined("merge", a, b, 1.0)

    def unlearn(
        self, state: JointState | FilterState, g: ArrayLike, sample_weight: ArrayLike | None = None
    ) -> JointState | FilterState:
        """State as if the rows g, learned before, had never been seen.

        Rows that were never learned are refused if no stream leads to what would be left; the sums cannot tell more.
        """
        if isinstance(state, FilterState):
            raise refusal("JointGaussian", "unlearn")
        require_memory(self.who, "unlearn", self.forgetting)
        seen = self.update(self.init(self.n_members(state)), g, sample_weight)
        if self.effective_samples(seen)[0] > self.effective_samples(state)[0] * (1 + 1e-9):
            raise ValueError(
                "JointGaussian.unlearn: only rows that were learned can be unlearned, got "
                f"{self.effective_samples(seen)[0]:g} to take from {self.effective_samples(state)[0]:g}."
            )
        after = self._combined("unlearn", state, seen, -1.0)
        if not self._possible(after, slack=1e-9 * (1 + self.effective_samples(state)[0])):
            raise ValueError(
                "JointGaussian.unlearn: only rows that were learned can be unlearned; "
                "no stream leads to what would be left."
            )
        return after

    def _possible(self, state: JointState, slack: float) -> bool:
        """Whether the sums are those of margins in [-1, 1]: their moments, with 1, have no negative direction."""
        sums, m = self._sums(state).sum(axis=0), self.n_members(state)
        moments = np.empty((m + 1, m + 1))
        moments[0, 0], moments[1:, 0], moments[1:, 1:] = sums[0], sums[1 : 1 + m], sums[1 + m :].reshape(m, m)
        return bool(np.diag(moments).max() <= sums[0] + slack and np.linalg.eigvalsh(moments)[0] >= -slack)

    def _combined(
        self, method: str, a: JointState | FilterState, b: JointState | FilterState, sign: float
    ) -> JointState:
        if isinstance(a, FilterState) or isinstance(b, FilterState):
            raise refusal("JointGaussian", method)
        if a.means.shape != b.means.shape:
            raise ValueError(
                f"JointGaussian.{method}: states must be about the same members and precisions, "
                f"got {a.means.shape} and {b.means.shape}."
            )
        total = self._total(a, b, sign)
        self._check_samples(f"JointGaussian.{method}", float(total[:, 0].sum()))
        return self._refreshed(total)

    def _total(self, a: JointState | JointSums, b: JointState | JointSums, sign: float) -> Array:
        """Total and carry, (2, sums), of both."""
        from bayesvote.weighting._sum_kernels import add

        sums, other = self._sums(a), self._sums(b)
        add(sums[0], sums[1], other[0], sign)
        add(sums[0], sums[1], other[1], sign)
        return sums

    def effective_samples(self, state: JointState | FilterState) -> Array:
        """How many samples the posterior rests on, the same for every member.

        With weights that drift a row counts by the correlation of the weights then and now.
        """
        if isinstance(state, FilterState):
            return np.full(self.n_members(state), mixed_by(state.evidence) @ state.samples)
        return np.full(self.n_members(state), self._sums(state)[:, 0].sum())

    @property
    def counts_rows(self) -> bool:
        """Whether nothing fades."""
        return self.forgetting == 1 and bool(np.all(self._filters[1] == 1))

    def gaussians(self, state: JointState | FilterState) -> Gaussians:
        """One posterior for each precision, by their evidence."""
        return Gaussians(mixed_by(state.evidence), state.means, state.covariances)

    def mean(self, state: JointState | FilterState) -> Array:
        """Posterior mean, averaged over the precisions by their evidence."""
        from bayesvote.weighting._joint_kernels import mix

        out = np.empty(self.n_members(state))
        mix(state.evidence, state.means, out)
        return out

    def terms(self, weights: Array, G: Array) -> Array:
        """Members' parts of the ensemble loss, minus half their weighted margins."""
        return -0.5 * weights * self.margins(G)

    def margins(self, G: Array) -> Array:
        """1 - 2g."""
        return 1 - 2 * G

    def losses_at(self, weights: Array, G: Array) -> Array:
        """(1 - weighted margin)/2: smallest for the label of largest weighted margin."""
        from bayesvote.weighting._joint_kernels import margin_losses

        out = np.empty(G.shape[:2])
        margin_losses(weights, G, out)
        return out
