"""What joint posteriors share: Gaussians side by side, mixed by their evidence, and weights that drift."""

from abc import abstractmethod
from collections.abc import Sequence
from typing import NamedTuple

import numpy as np
from numpy.typing import ArrayLike

from bayesvote.core import checks as _checks
from bayesvote.core.checks import Array, InputError
from bayesvote.core.gaussian import check_covariances, symmetric
from bayesvote.core.state import MOST_TOTAL, Rng, S, all_finite, require, within
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
        """The mixture that a state stands for."""

    @property
    def persistences(self) -> Array:
        """How much of its way from the prior a weight keeps with each row, by posterior; 1 where none drifts."""
        return np.ones(1)

    def drift(self, state: S) -> float:
        """How far the posteriors are believed whose weights drift."""
        return float(np.sum(self.gaussians(state).shares * (self.persistences < 1)))

    def mean(self, state: S) -> Array:
        """Posterior mean."""
        shares, means, _ = self.gaussians(state)
        return np.asarray(shares @ means)

    def variance(self, state: S) -> Array:
        """Posterior variance of every weight."""
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

        # The mixture's quantile lies between those of its parts; a hair wider, so that the ends differ.
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
    """One whose decision is the label of the largest weighted margin."""

    @abstractmethod
    def margins(self, G: Array) -> Array:
        """Members' margins, like G; NaN where one abstains."""

    def draws_agreement(self, n_labels: int) -> bool:
        """Of more than two labels only."""
        return n_labels > 2

    def agreement(self, state: S, size: int, rng: Rng = 0) -> Agreement:
        """In closed form for two labels; for more, by ``size`` draws of the decision's leads over the others."""
        return OfGaussians(*self.gaussians(state), self.margins, size, np.random.default_rng(rng))


def mixed_by(evidence: Array) -> Array:
    """Shares of posteriors of that log-evidence."""
    weights = np.exp(evidence - evidence.max())
    return np.asarray(weights / weights.sum())


class FilterState(NamedTuple):
    """Posteriors of weights that drift, ready for the next row: one for each pair of precision and persistence.

    Of the covariances the lower triangles count, and the squares of four along the diagonal, which are whole.
    """

    covariances: Array  # (k, m, m)
    means: Array  # (k, m)
    evidence: Array  # (k,): log of the discounted evidence
    samples: Array  # (k,): weights of the rows, each times the correlation of the weights then and now


def filters(who: str, precision: float | Sequence[float], persistence: float | Sequence[float]) -> tuple[Array, Array]:
    """Precision and persistence of every posterior, checked."""
    given = [_numbers(who, "precision", precision), _numbers(who, "persistence", persistence)]
    for name, values, check in zip(
        ("precision", "persistence"), given, (_checks.positive, _checks.fraction), strict=True
    ):
        if values.ndim != 1 or len(values) == 0:
            raise ValueError(f"{who}: {name} must hold at least one number, got {values.tolist()}.")
        for value in values:
            check(who, name, float(value))
    sizes = {len(values) for values, own in zip(given, (precision, persistence), strict=True) if np.ndim(own)}
    if len(sizes) > 1:
        raise ValueError(
            f"{who}: precision and persistence must be of the same length, or one of them a single number, "
            f"got {len(given[0])} and {len(given[1])}."
        )
    p, rho = np.broadcast_arrays(*given)
    return np.ascontiguousarray(p), np.ascontiguousarray(rho)


def _numbers(who: str, name: str, values: float | Sequence[float]) -> Array:
    """Return a number or several as an array."""
    try:
        return np.atleast_1d(np.asarray(values, dtype=np.float64))
    except OverflowError:
        raise InputError(who, name, "must be a finite number above 0", "a number too large for float64") from None


def plain(values: float | Sequence[float]) -> float | Sequence[float]:
    """A number as it is; any sequence as one that compares and hashes."""
    return values if isinstance(values, int | float) else tuple(map(float, np.asarray(values).reshape(-1)))


def start_filters(precisions: Array, n_members: int, prior_mean: float) -> FilterState:
    """Filters before any row: their priors."""
    k = len(precisions)
    covariances = np.eye(n_members) / precisions[:, None, None]
    return FilterState(covariances, np.full((k, n_members), prior_mean), np.zeros(k), np.zeros(k))


def check_filters(state: FilterState, precisions: Array, theta: float = 1.0) -> None:
    """Refuse covariances that are none, wider than the prior or too narrow, and evidence for more than certainty."""
    all_finite(state)
    require(within(state.samples, 0, MOST_TOTAL), f"samples must be from 0 to {MOST_TOTAL:g}")
    require(not np.any(state.evidence > 0), "evidence must be at most 0")
    # A row adds at most theta times the square of its margins, and drifting only takes from what was added.
    check_covariances(state.covariances, precisions, precisions + theta * state.means.shape[1] * state.samples)


def counted(state: FilterState, persistence: Array) -> float | None:
    """How many samples were learned, by a filter whose weights do not drift; None if there is none."""
    return float(state.samples[persistence == 1][0]) if np.any(persistence == 1) else None


def refusal(who: str, method: str) -> TypeError:
    """Say why weights that drift are no sums."""
    return TypeError(
        f"{who}.{method}: persistence and discount must be 1, as weights that drift depend on the order of the rows. "
        "Use JointGaussian() without them."
    )


def kept(persistence: ArrayLike, discount: float) -> bool:
    """Whether nothing fades."""
    return discount == 1 and bool(np.all(np.asarray(persistence) == 1))
