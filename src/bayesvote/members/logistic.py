"""Logistic regressions that know how sure they are of each weight."""

from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any, NamedTuple

import numpy as np
from numpy.typing import NDArray

from bayesvote.core.checks import Array, Labels, integer, positive
from bayesvote.core.gaussian import check_rounded, symmetric
from bayesvote.core.rows import LARGEST, Rows, started
from bayesvote.core.state import MOST_TOTAL, all_finite, require
from bayesvote.core.threads import parallel_for
from bayesvote.members.attribution import Attribution, nothing
from bayesvote.members.base import Bank
from bayesvote.members.subsets import agree, random_subsets

_WORTH_SHARING = 200_000  # multiplications; with fewer, a second thread costs more than it saves
_ROUNDING = 1e-12  # as in the kernels: a variance that is less beside the sizes of its parts is taken for none
_LEAST_PRECISION = 1e-40  # of a prior: with wider ones, the log-odds of the largest rows leave the range of numbers
_NO_LABELS = np.zeros(0, dtype=np.intp)
_NO_WEIGHTS = np.zeros(0)


class LogisticState(NamedTuple):
    """Gaussians over the weights, the bias first; one per member for two classes, else one per class, too.

    Of the covariances the lower triangles count, and the squares of four along the diagonal, which are whole.
    """

    features: NDArray[np.uint32]  # (m, k): those that each member sees
    mask: NDArray[np.uint8]  # (d, m): the same as ones and zeros
    means: Array  # (m, 1 or K, k + 1)
    covariances: Array  # (m, 1 or K, k + 1, k + 1)


@dataclass
class LogisticBank(Bank[LogisticState]):
    r"""Bayesian logistic regressions: each keeps a Gaussian over its weights and a bias, with all correlations.

    A row with the label y = -1, 1 has the likelihood :math:`1/(1 + e^{-y w'x})`, x beginning with a 1 for the bias. The
    prior is N(0, I/precision). Each row moves the Gaussian to the mode of what it was times the row's likelihood, and
    adds its curvature there. There is no rate to choose: a weight moves as far as it is unknown. With more than two
    classes there is a regression of each class against the rest.

    The score is half the log-odds of the probability averaged over the weights, a/sqrt(1 + v pi/8) of log-odds a with
    variance v; with more classes, half the log-probability of each. A missing value counts as 0. No member abstains.

    A row costs the square of the features that a member sees, so these are bounded.

    Parameters
    ----------
    n_members : int
        How many members.
    precision : float or sequence of float
        Of the prior; members take several in turn. They suit features of a size about 1.
    max_features : int
        How many features a member sees at most; where there are more, random ones.

    Examples
    --------
    >>> bank = LogisticBank(n_members=1, precision=1.0).start(n_features=1)
    >>> bank.scores_then_learn([[1.0], [1.0], [-1.0]], [1, 1, 0]).round(3)
    array([[0.   ],
           [0.272],
           [0.   ]])
    """

    n_members: int = 4
    precision: float | Sequence[float] = (0.03, 0.3, 3.0, 30.0)
    max_features: int = 128

    def __post_init__(self) -> None:
        """Check the configuration."""
        integer(self.who, "n_members", self.n_members)
        integer(self.who, "max_features", self.max_features)
        given: Any = self.precision
        for value in given if np.ndim(given) else (given,):
            positive(self.who, "precision", value)
        if np.size(given) == 0:
            raise ValueError(f"{self.who}: precision must hold at least one number, got none.")
        if np.min(given) < _LEAST_PRECISION:
            raise ValueError(f"{self.who}: precision must be at least {_LEAST_PRECISION:g}, got {np.min(given)}.")

    @property
    def wants_scaled(self) -> bool:
        """They do."""
        return True

    @property
    def _precisions(self) -> Array:
        return np.resize(np.asarray(self.precision, dtype=np.float64), self.n_members)

    def init(self, n_features: int, n_classes: int, rng: np.random.Generator) -> LogisticState:
        """Draw the features of each member; all weights are at their prior."""
        m, k, per = self.n_members, min(self.max_features, n_features), 1 if n_classes == 2 else n_classes
        mask = random_subsets(n_features, m, k, rng)
        covariances = np.eye(k + 1) / self._precisions[:, None, None, None]
        return LogisticState(
            features=np.nonzero(mask)[1].reshape(m, k).astype(np.uint32),
            mask=mask.T.astype(np.uint8, order="C"),
            means=np.zeros((m, per, k + 1)),
            covariances=np.repeat(covariances, per, axis=1),
        )

    def score(self, rows: Rows) -> Array:
        """Score checked rows."""
        return self._run(rows, _NO_LABELS, _NO_WEIGHTS)

    def advance(self, rows: Rows, y: Labels, w: Array) -> Array:
        """Score checked row t before learning row t."""
        return self._run(rows, y, w)

    def attributions(self, rows: Rows, coefficients: Array, shares: Array) -> Attribution:
        """Exact: log-odds are sums over the features, and a score is a multiple of them, or moves with them."""
        state, X = started(self.who, self.state), np.nan_to_num(rows.todense())
        total = nothing(rows)
        for i, features in enumerate(state.features):
            x = np.column_stack((np.ones(rows.n), X[:, features]))
            for c, (mean, covariance) in enumerate(zip(state.means[i], symmetric(state.covariances[i]), strict=True)):
                parts = (x @ covariance) * x
                variance = np.where(parts.sum(axis=1) > _ROUNDING * np.abs(parts).sum(axis=1), parts.sum(axis=1), 0.0)
                odds = x @ mean / np.sqrt(1 + np.pi / 8 * variance)
                if len(state.means[i]) == 1:
                    at_zero, score, coefficient = 0.0, odds / 2, coefficients[:, i]
                else:
                    at_zero, score, coefficient = np.log(0.5) / 2, -np.logaddexp(0, -odds) / 2, coefficients[:, i, c]
                sums = x @ mean
                slope = coefficient * np.divide(score - at_zero, sums, out=np.zeros(rows.n), where=sums != 0)
                total.start[:] += coefficient * at_zero + slope * mean[0]
                total.parts[:, features] += slope[:, None] * x[:, 1:] * mean[1:]
            total.looked[:, features] += shares[:, i, None]
        return total

    def wider(self, n_features: int, rng: np.random.Generator) -> LogisticState:
        """Let every member see new features, as many as it has room for."""
        old = started(self.who, self.state)
        (d, m), k = old.mask.shape, old.features.shape[1]
        mask = np.zeros((n_features, m), dtype=np.uint8)
        mask[:d] = old.mask
        more = min(n_features - d, self.max_features - k)
        if more <= 0:
            return old._replace(mask=mask)
        new = random_subsets(n_features - d, m, more, rng)
        mask[d:] = new.T
        features = np.nonzero(new)[1].reshape(m, more).astype(np.uint32) + np.uint32(d)
        wide = self.init(n_features, self.n_classes, rng)
        wide.means[..., : k + 1] = old.means
        wide.covariances[..., : k + 1, : k + 1] = symmetric(old.covariances)
        return wide._replace(features=np.concatenate([old.features, features], axis=1), mask=mask)

    def least_bytes(self, n_features: int, n_classes: int) -> int:
        """The size of the covariances."""
        size = 1 + min(self.max_features, n_features)
        return 8 * self.n_members * (1 if n_classes == 2 else n_classes) * size**2

    def validate(self, state: LogisticState) -> None:
        """Refuse features that are none, and Gaussians that no stream leads to."""
        all_finite(state)
        require(agree(state.features, state.mask, 1), "features and mask must agree")
        size = state.covariances.shape[-1]
        precisions = np.repeat(self._precisions, state.means.shape[1])
        check_rounded(state.covariances.reshape(-1, size, size), precisions)
        # A row moves a mean by at most its weight times its values times covariances, none larger than the prior's.
        most = size * LARGEST * MOST_TOTAL / precisions
        off = np.abs(state.means).reshape(-1, size).max(axis=1)
        require(bool(np.all(off <= most)), "means must be within reach of the rows")

    def _run(self, rows: Rows, y: Labels, w: Array) -> Array:
        from bayesvote.members._logistic_kernels import run

        state = started(self.who, self.state)
        m, per, size = state.means.shape
        out = np.empty((rows.n, m * per))

        def some(first: int, last: int) -> None:
            run(rows, y, w, state.features, state.means, state.covariances, first, last, out)

        parallel_for(some, m * per, worth=rows.n * m * per * size**2 > _WORTH_SHARING)
        return out if per == 1 else out.reshape(rows.n, m, per)
