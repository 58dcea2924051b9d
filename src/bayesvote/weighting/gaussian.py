"""Base classes of joint posteriors: mixtures of Gaussians over the weights."""

from abc import abstractmethod
from collections.abc import Sequence
from typing import NamedTuple

import numpy as np

from bayesvote.core.checks import Array
from bayesvote.core.gaussian import symmetric
from bayesvote.core.state import Rng, S
from bayesvote.weighting.agreement import Agreement, OfGaussians
from bayesvote.weighting.base import Posterior


class Gaussians(NamedTuple):
    """A mixture of Gaussians over the weights."""

    shares: Array  # (k,), which sum to 1
    means: Array  # (k, m)
    covariances: Array  # (k, m, m), of which the lower triangles count


class GaussianPosterior(Posterior[S]):
    """A posterior over all weights together that is a mixture of Gaussians."""

    @abstractmethod
    def gaussians(self, state: S) -> Gaussians:
        """Return the mixture of a state."""

    @property
    def persistences(self) -> Array:
        """Factor per row of a weight's distance from its prior mean, for every posterior; 1 without drift."""
        return np.ones(1)

    def drift(self, state: S) -> float:
        """Return the total share of the posteriors whose weights drift."""
        return float(np.sum(self.gaussians(state).shares * (self.persistences < 1)))

    def mean(self, state: S) -> Array:
        """Return the posterior mean."""
        shares, means, _ = self.gaussians(state)
        return np.asarray(shares @ means)

    def variance(self, state: S) -> Array:
        """Return the posterior variance of every weight."""
        shares, means, covariances = self.gaussians(state)
        around = np.diagonal(covariances, axis1=1, axis2=2) + (means - self.mean(state)) ** 2
        return np.asarray(shares @ around)

    def _quantile(self, state: S, probability: float) -> Array:
        from scipy.optimize.elementwise import find_root
        from scipy.special import ndtr, ndtri

        shares, means, covariances = self.gaussians(state)
        sd = np.sqrt(np.diagonal(covariances, axis1=1, axis2=2))
        each = means + sd * ndtri(probability)

        def excess(weight: Array, member: Array) -> Array:
            i = member.astype(np.intp)
            return np.asarray(shares @ ndtr((weight - means[:, i]) / sd[:, i]) - probability)

        # The mixture's quantile lies between those of its parts. Widen the bracket slightly, so that its ends differ.
        margin = 1e-9 * sd.max(axis=0) + 4 * np.finfo(np.float64).eps * np.abs(each).max(axis=0)
        ends = (each.min(axis=0) - margin, each.max(axis=0) + margin)
        return np.asarray(find_root(excess, ends, args=(np.arange(len(margin), dtype=np.float64),)).x)

    def _sample(self, state: S, size: int, rng: np.random.Generator) -> Array:
        shares, means, covariances = self.gaussians(state)
        which = rng.choice(len(shares), size=size, p=shares)
        factors = np.linalg.cholesky(symmetric(covariances))
        normal = rng.standard_normal((size, means.shape[1]))
        draws = np.empty_like(normal)
        for k, factor in enumerate(factors):
            draws[which == k] = means[k] + normal[which == k] @ factor.T
        return draws


class MarginPosterior(GaussianPosterior[S]):
    """A posterior whose decision is the label with the largest weighted margin."""

    @abstractmethod
    def margins(self, G: Array) -> Array:
        """Return the members' margins, with the shape of G; NaN where a member abstains."""

    def draws_agreement(self, n_labels: int) -> bool:
        """Return True for more than two labels."""
        return n_labels > 2

    def agreement(self, state: S, size: int, rng: Rng = 0) -> Agreement:
        """Use the closed form for two labels; for more, ``size`` draws of the decision's leads over the others."""
        return OfGaussians(*self.gaussians(state), self.margins, size, np.random.default_rng(rng))


def mixed_by(evidence: Array) -> Array:
    """Return the shares of posteriors with these log-evidences."""
    weights = np.exp(evidence - evidence.max())
    return np.asarray(weights / weights.sum())


def plain(values: float | Sequence[float]) -> float | Sequence[float]:
    """Return a number unchanged, and a sequence as a tuple, which can be compared and hashed."""
    return values if isinstance(values, int | float) else tuple(map(float, np.asarray(values).reshape(-1)))
