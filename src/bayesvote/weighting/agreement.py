"""Posterior probability of weights that make the same decision as a rule.

These objects are called with losses G (n, K, m) and decisions (n,), and return probabilities (n,). The probability of a
row does not depend on the other rows of the call.
"""

from collections.abc import Callable, Iterator
from dataclasses import dataclass, field
from functools import cached_property

import numpy as np
from numpy.typing import NDArray

from bayesvote.core.checks import Array, Labels
from bayesvote.model import decided

Agreement = Callable[[Array, Labels], Array]
_AT_ONCE = 2**20  # numbers compared at a time: 8 MB


@dataclass
class ByDraws:
    """Share of the posterior draws that make the same decision, for any rule."""

    draws: Array
    losses_at: Callable[[Array, Array], Array]

    def __call__(self, G: Array, decision: Labels) -> Array:
        """Return the shares for rows."""
        agreed = np.zeros(len(G))
        for draw in self.draws:
            agreed += decided(self.losses_at(draw, G)) == decision
        return np.asarray(agreed / len(self.draws))


@dataclass
class OfGammas:
    """Probability that the same label has the least weighted loss, with independent Gamma weights.

    For two labels it is computed by numerical inversion, to six digits. For more labels, and where the inversion takes
    too long, it is estimated from draws (size, m).
    """

    shape: Array
    rate: Array
    draw: Callable[[], Array]

    @cached_property
    def _draws(self) -> Array:
        return self.draw()

    def __call__(self, G: Array, decision: Labels) -> Array:
        """Return the probabilities for rows."""
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
    """Probability that the same label has the largest weighted margin, under a mixture of Gaussians.

    The lead of the decision over another label is linear in the weights, so it is Gaussian. For two labels the
    probability has a closed form. For more it is estimated from ``size`` draws of the leads.
    """

    shares: Array  # (k,)
    means: Array  # (k, m)
    covariances: Array  # (k, m, m), of which the lower triangles count
    margins: Callable[[Array], Array]
    size: int
    rng: np.random.Generator
    _kept: tuple[Labels, Array] | None = field(default=None, init=False)

    def __call__(self, G: Array, decision: Labels) -> Array:
        """Return the probabilities for rows."""
        from bayesvote.weighting._agreement_kernels import lead_moments

        leads, others = leads_of(-self.margins(G), decision)
        n, n_leads = leads.shape[:2]
        mean = np.empty((n, len(self.shares), n_leads))
        covariance = np.empty((n, len(self.shares), n_leads, n_leads))
        lead_moments(leads, self.means, self.covariances, mean, covariance)
        if n_leads == 1:
            return self._of_one(mean[..., 0], covariance[..., 0, 0], others < decision[:, None])
        found = np.empty(n)
        differs = np.any(leads, axis=2, keepdims=True)  # False for labels with the same losses as the decision
        for part in _parts(n, n_leads * self.size):
            drawn = np.where(differs[part], self._drawn(mean[part], covariance[part]), 0.0)
            found[part] = _agreed(drawn, others[part], decision[part]).mean(axis=1)
        return found

    def _of_one(self, mean: Array, variance: Array, wins_ties: NDArray[np.bool_]) -> Array:
        from scipy.special import ndtr

        sd = np.sqrt(np.maximum(variance, 0.0))
        surely = (mean > 0) | ((mean == 0) & wins_ties)
        by_part = np.where(sd > 0, ndtr(mean / np.where(sd > 0, sd, 1.0)), surely)
        return np.asarray((by_part * self.shares).sum(axis=1))

    def _drawn(self, mean: Array, covariance: Array) -> Array:
        """Draw (n, K - 1, size) leads."""
        which, normal = self._random(mean.shape[2])
        values, vectors = np.linalg.eigh(covariance)  # tied labels have singular covariances, so not Cholesky
        roots = vectors * np.sqrt(np.maximum(values, 0.0))[..., None, :]
        out = np.empty((len(mean), mean.shape[2], self.size))
        for k in np.unique(which):
            out[..., which == k] = mean[:, k, :, None] + roots[:, k] @ normal[:, which == k]
        return out

    def _random(self, n_leads: int) -> tuple[Labels, Array]:
        """Draw components of the mixture and standard normal numbers, the same for all rows."""
        if self._kept is None:
            which = self.rng.choice(len(self.shares), size=self.size, p=self.shares)
            self._kept = which, self.rng.standard_normal((n_leads, self.size))
        return self._kept


def leads_of(losses: Array, decision: Labels) -> tuple[Array, Labels]:
    """Return the other labels' losses minus the decision's (n, K - 1, m), and these labels (n, K - 1)."""
    n, n_labels = losses.shape[:2]
    others = np.arange(n_labels - 1) + (np.arange(n_labels - 1) >= decision[:, None])
    rows = np.arange(n)[:, None]
    return np.nan_to_num(losses[rows, others] - losses[rows, decision[:, None]]), others


def _agreed(leads: Array, others: Labels, decision: Labels) -> Array:
    """Return True where the decision leads all others (n, K - 1, size); a tie goes to the last label."""
    wins_ties = (others < decision[:, None])[..., None]
    return np.asarray(((leads > 0) | ((leads == 0) & wins_ties)).all(axis=1))


def _parts(n: int, each: int) -> Iterator[slice]:
    """Yield slices of rows with at most _AT_ONCE numbers, ``each`` per row."""
    step = max(1, _AT_ONCE // each)
    for start in range(0, n, step):
        yield slice(start, start + step)
