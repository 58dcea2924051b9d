"""Bayesian logistic regressions, which keep the uncertainty of each weight."""

from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any, NamedTuple

import numpy as np
from numpy.typing import NDArray

from bayesvote.core.checks import Array, InputError, Labels, integer, positive
from bayesvote.core.gaussian import check_rounded, symmetric
from bayesvote.core.rows import LARGEST, Rows
from bayesvote.core.state import MOST_TOTAL, all_finite, require
from bayesvote.core.threads import parallel_for
from bayesvote.members.attribution import Attribution, nothing
from bayesvote.members.base import NO_LABELS, NO_WEIGHTS, Bank
from bayesvote.members.subsets import agree, random_subsets

_WORTH_SHARING = 200_000  # multiplications; with fewer, starting a second thread costs more time than it saves
# As in the kernels: a variance this small relative to the sum of its parts' sizes is rounding, and counts as 0.
_ROUNDING = 1e-12
# Least precision of a prior. With features up to 1e100, a variance is then up to 1e240, and the products of the kernels
# stay below the largest double, 1.8e308.
_LEAST_PRECISION = 1e-40


class LogisticRegressionState(NamedTuple):
    """Gaussians over the weights, of which the first is the bias.

    There is one Gaussian per member for two classes, else one per member and class. Only the lower triangles of the
    covariances are up to date, and the blocks of four by four along the diagonal, which kernels update as a whole.
    """

    features: NDArray[np.uint32]  # (m, k): features that each member sees
    mask: NDArray[np.uint8]  # (d, m): the same features as ones and zeros
    means: Array  # (m, 1 or K, k + 1)
    covariances: Array  # (m, 1 or K, k + 1, k + 1)


@dataclass
class LogisticBank(Bank[LogisticRegressionState]):
    r"""Bayesian logistic regressions: each keeps a Gaussian over its weights and a bias, with all correlations.

    A row with the label y = -1, 1 has the likelihood :math:`1/(1 + e^{-y w'x})`, where x begins with a 1 for the bias.
    The prior is N(0, I/precision). The posterior after each row is approximated by a Gaussian at its mode, with the
    curvature there (Laplace). A learning rate is not needed: the more uncertain a weight is, the farther it moves. With
    more than two classes there is one regression of each class against the rest.

    The score is half the log-odds of the probability averaged over the weights, a/sqrt(1 + v pi/8) for log-odds a of
    variance v. With more classes it is half the log-probability of each class. A missing value counts as 0. No member
    abstains.

    The cost of a row grows with the square of the number of features that a member sees, so this number is limited.

    Parameters
    ----------
    n_members : int
        Number of members.
    precision : float or sequence of float
        Precision of the prior, or a sequence of values that members use in turn. The defaults cover features of a
        size about 1.
    max_features : int
        Maximum number of features that a member sees. If there are more, it sees random ones.

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
            raise InputError(self.who, "precision", "must hold at least one number", "none")
        if np.min(given) < _LEAST_PRECISION:
            raise InputError(self.who, "precision", f"must be at least {_LEAST_PRECISION:g}", str(np.min(given)))

    @property
    def wants_scaled(self) -> bool:
        """True: one prior serves all features."""
        return True

    @property
    def _precisions(self) -> Array:
        return np.resize(np.asarray(self.precision, dtype=np.float64), self.n_members)

    def init(self, n_features: int, n_classes: int, rng: np.random.Generator) -> LogisticRegressionState:
        """Draw the features of each member; all weights have their prior."""
        m, k, per = self.n_members, min(self.max_features, n_features), 1 if n_classes == 2 else n_classes
        mask = random_subsets(n_features, m, k, rng)
        covariances = np.eye(k + 1) / self._precisions[:, None, None, None]
        return LogisticRegressionState(
            features=np.nonzero(mask)[1].reshape(m, k).astype(np.uint32),
            mask=mask.T.astype(np.uint8, order="C"),
            means=np.zeros((m, per, k + 1)),
            covariances=np.repeat(covariances, per, axis=1),
        )

    def score(self, rows: Rows) -> Array:
        """Score checked rows."""
        return self._run(rows, NO_LABELS, NO_WEIGHTS)

    def advance(self, rows: Rows, y: Labels, w: Array) -> Array:
        """Score checked row t before learning row t."""
        return self._run(rows, y, w)

    def attributions(self, rows: Rows, coefficients: Array, shares: Array) -> Attribution:
        """Attribute scores exactly: log-odds are sums over the features, and scores are multiples of log-odds.

        With more than two classes, the score less that of log-odds 0 is taken as a multiple of the log-odds.
        """
        state, X = self.current_state, np.nan_to_num(rows.todense())
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

    def wider(self, n_features: int, rng: np.random.Generator) -> LogisticRegressionState:
        """Return a wider state, in which members see new features up to ``max_features``."""
        old = self.current_state
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
        """Size of the covariances."""
        size = 1 + min(self.max_features, n_features)
        return 8 * self.n_members * (1 if n_classes == 2 else n_classes) * size**2

    def validate(self, state: LogisticRegressionState) -> None:
        """Raise an error for invalid features, and for Gaussians that no stream leads to."""
        all_finite(state)
        require(agree(state.features, state.mask, 1), "features and mask must agree")
        size = state.covariances.shape[-1]
        precisions = np.repeat(self._precisions, state.means.shape[1])
        check_rounded(state.covariances.reshape(-1, size, size), precisions)
        # A row moves a mean by at most its weight times its values times covariances, which never exceed the prior's.
        most = size * LARGEST * MOST_TOTAL / precisions
        off = np.abs(state.means).reshape(-1, size).max(axis=1)
        require(bool(np.all(off <= most)), "means must be within reach of the rows")

    def _run(self, rows: Rows, y: Labels, w: Array) -> Array:
        from bayesvote.members._logistic_kernels import run

        state = self.current_state
        m, per, size = state.means.shape
        out = np.empty((rows.n, m * per))

        given = rows, y, w, state.features, state.means, state.covariances
        if rows.n * m * per * size**2 > _WORTH_SHARING:
            parallel_for(lambda first, last: run(*given, first, last, out), m * per)
        else:
            run(*given, 0, m * per, out)
        return out if per == 1 else out.reshape(rows.n, m, per)
