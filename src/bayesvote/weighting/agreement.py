"""How probably weights that are drawn from a posterior decide as a rule did: by draws, or as good as exactly.

All of these are called with losses G (n, K, m) and the decisions (n,) about them, and give probabilities (n,). That of
a row does not depend on which others come with it.
"""

from collections.abc import Callable, Iterator
from dataclasses import dataclass, field
from functools import cached_property

import numpy as np
from numpy.typing import NDArray

from bayesvote.core.checks import Array, Labels
from bayesvote.model import decided

Agreement = Callable[[Array, Labels], Array]
_AT_ONCE = 2**20  # numbers that are compared at a time


@dataclass
class ByDraws:
    """Share of the draws that agree, for any rule: every draw decides by itself."""

    draws: Array
    losses_at: Callable[[Array, Array], Array]

    def __call__(self, G: Array, decision: Labels) -> Array:
        """Shares of rows."""
        agreed = np.zeros(len(G))
        for draw in self.draws:
            agreed += decided(self.losses_at(draw, G)) == decision
        return np.asarray(agreed / len(self.draws))


@dataclass
class OfGammas:
    """Probability that the label of the least weighted loss stays, with independent Gamma weights.

    For two labels by numerical inversion, to six digits; for more, and where that takes too long, by draws (size, m).
    """

    shape: Array
    rate: Array
    draw: Callable[[], Array]

    @cached_property
    def _draws(self) -> Array:
        return self.draw()

    def __call__(self, G: Array, decision: Labels) -> Array:
        """Probabilities of rows."""
        from bayesvote.weighting._agreement_kernels import gamma_leads

        leads, others = leads_of(G, decision)
        found = np.full(len(G), np.nan)
        if leads.shape[1] == 1:
            gamma_leads(self.shape, self.rate, leads[:, 0], found)
        left = np.flatnonzero(np.isnan(found))
        for part in _parts(len(left), leads.shape[1] * len(self._draws) if len(left) else 1):
            rows = left[part]
            found[rows] = _agreed(leads[rows] @ self._draws.T, others[rows], decision[rows]).mean(axis=1)
        return found


@dataclass
class OfGaussians:
    """Probability that the label of the largest weighted margin stays, under a mixture of Gaussians.

    The lead of the decision over another label is linear in the weights, so it is Gaussian. For two labels that gives
    the probability in closed form; for more, ``size`` draws of the leads, which are fewer than the weights.
    """

    shares: Array  # (k,)
    means: Array  # (k, m)
    covariances: Array  # (k, m, m), of which the lower triangles count
    margins: Callable[[Array], Array]
    size: int
    rng: np.random.Generator
    _kept: tuple[Labels, Array] | None = field(default=None, init=False)

    def __call__(self, G: Array, decision: Labels) -> Array:
        """Probabilities of rows."""
        from bayesvote.weighting._agreement_kernels import lead_moments

        leads, others = leads_of(-self.margins(G), decision)
        n, n_leads = leads.shape[:2]
        mean = np.empty((n, len(self.shares), n_leads))
        covariance = np.empty((n, len(self.shares), n_leads, n_leads))
        lead_moments(leads, self.means, self.covariances, mean, covariance)
        if n_leads == 1:
            return self._of_one(mean[..., 0], covariance[..., 0, 0], others < decision[:, None])
        found = np.empty(n)
        told = np.any(leads, axis=2, keepdims=True)  # others' labels, if any weights tell them from the decision
        for part in _parts(n, n_leads * self.size):
            drawn = np.where(told[part], self._drawn(mean[part], covariance[part]), 0.0)
            found[part] = _agreed(drawn, others[part], decision[part]).mean(axis=1)
        return found

    def _of_one(self, mean: Array, variance: Array, wins_ties: NDArray[np.bool_]) -> Array:
        from scipy.special import ndtr

        sd = np.sqrt(np.maximum(variance, 0.0))
        surely = (mean > 0) | ((mean == 0) & wins_ties)
        by_part = np.where(sd > 0, ndtr(mean / np.where(sd > 0, sd, 1.0)), surely)
        return np.asarray((by_part * self.shares).sum(axis=1))

    def _drawn(self, mean: Array, covariance: Array) -> Array:
        """Draws (n, K - 1, size) of the leads."""
        which, normal = self._random(mean.shape[2])
        values, vectors = np.linalg.eigh(covariance)  # also where labels are tied, and covariances singular
        roots = vectors * np.sqrt(np.maximum(values, 0.0))[..., None, :]
        out = np.empty((len(mean), mean.shape[2], self.size))
        for k in np.unique(which):
            out[..., which == k] = mean[:, k, :, None] + roots[:, k] @ normal[:, which == k]
        return out

    def _random(self, n_leads: int) -> tuple[Labels, Array]:
        """Which Gaussian, and standard normal numbers: the same for all rows."""
        if self._kept is None:
            which = self.rng.choice(len(self.shares), size=self.size, p=self.shares)
            self._kept = which, self.rng.standard_normal((n_leads, self.size))
        return self._kept


def leads_of(losses: Array, decision: Labels) -> tuple[Array, Labels]:
    """By how much each other label's losses (n, K - 1, m) exceed the decision's, and which labels these are."""
    n, n_labels = losses.shape[:2]
    others = np.arange(n_labels - 1) + (np.arange(n_labels - 1) >= decision[:, None])
    rows = np.arange(n)[:, None]
    return np.nan_to_num(losses[rows, others] - losses[rows, decision[:, None]]), others


def _agreed(leads: Array, others: Labels, decision: Labels) -> Array:
    """Whether the decision leads all others (n, K - 1, size); a tie goes to the last label, as in ``decided``."""
    wins_ties = (others < decision[:, None])[..., None]
    return np.asarray(((leads > 0) | ((leads == 0) & wins_ties)).all(axis=1))


def _parts(n: int, each: int) -> Iterator[slice]:
    """Rows of so many numbers each, in parts of moderate size."""
    step = max(1, _AT_ONCE // each)
    for start in range(0, n, step):
        yield slice(start, start + step)
