"""Online calibration of a model's probabilities."""

from typing import NamedTuple, Self

import numpy as np
from numpy.typing import NDArray

from bayesvote.core.checks import MOST_WEIGHT, Array, Labels
from bayesvote.core.state import MOST_ROWS, all_finite, require
from bayesvote.losses import LossScale
from bayesvote.model import decided, shares


class Trust(NamedTuple):
    """Prior trust in a model's own probabilities."""

    precision: float  # of the prior around the identity
    floor: float  # divided by the number of labels, the least probability


# Unanimous votes have unbounded odds, so they need a floor. This one was the best on the paper's data sets.
OF_VOTES = Trust(1.0, 0.02)
# Weaker priors lost more on short streams than they gained on long ones.
OF_PROBABILITIES = Trust(100.0, 1e-6)


def trust_in(scale: LossScale) -> Trust:
    """Return the trust in probabilities from losses of a scale."""
    return OF_PROBABILITIES if scale is LossScale.LOG_PROBABILITY else OF_VOTES


def _logs(probabilities: Array, trust: Trust) -> Array:
    return np.asarray(np.log(np.maximum(probabilities, trust.floor / probabilities.shape[1])))


def tied(losses: Array) -> NDArray[np.bool_]:
    """Return True for rows whose two least losses are equal.

    >>> tied(np.array([[1.0, 1.0, 2.0], [2.0, 2.0, 1.0]]))
    array([ True, False])
    """
    if losses.shape[1] < 2:
        return np.zeros(len(losses), dtype=np.bool_)
    least = losses if losses.shape[1] == 2 else np.partition(losses, 1, axis=1)
    return np.asarray(least[:, 0] == least[:, 1])


# Bound of the information: a row adds at most its weight times the square of half a logarithm.
_MOST = 100 * MOST_WEIGHT * MOST_ROWS
_SHARP = 1e12  # above it, the prior of a rank-one information matrix is lost to rounding


class Calibration(NamedTuple):
    r"""Platt scaling learned online: :math:`\mathrm{softmax}(a \log p_k + b [k = \text{decision}])`.

    For two labels, the log-odds of the decision are multiplied by a and increased by b. Both stay at or above 0, so the
    decision stays the likeliest label. Each row makes a Newton step on the log-likelihood, with the Fisher information
    so far. The prior N((1, 0), I/precision) leaves probabilities unchanged. Probabilities below floor/K are raised to
    it. The precision is 1 and the floor 0.02 for votes. Log-probabilities need little correction, so theirs are 100 and
    1e-6. Rows whose best labels are tied, such as rows on which all members abstain, use no b and teach nothing.
    """

    mean: Array  # (2,): a, b
    information: Array  # (2, 2), upper triangle, without the prior

    @classmethod
    def start(cls) -> Self:
        """Return the identity, before any row."""
        return cls(np.array([1.0, 0.0]), np.zeros((2, 2)))

    def learn(
        self, probabilities: Array, losses: Array, y: Labels, w: Array, forgetting: float, trust: Trust = OF_VOTES
    ) -> Array:
        """Learn from probabilities that were predicted before the labels; return a, b (n, 2) before each row."""
        from bayesvote.estimators._probability_kernels import learn

        before, tie = np.empty((len(losses), 2)), tied(losses)
        if tie.any():
            w = np.where(tie, 0.0, w)
        logs, prior = _logs(probabilities, trust), trust.precision
        learn(self.mean, self.information, logs, decided(losses), y, w, forgetting, prior, before)
        return before

    def calibrated(
        self, probabilities: Array, losses: Array, mean: Array | None = None, trust: Trust = OF_VOTES
    ) -> Array:
        """Return calibrated probabilities, with the present a and b or those of each row, ``mean`` (n, 2)."""
        a, b = (self.mean if mean is None else mean).T
        logs = a[..., None] * _logs(probabilities, trust)
        logs[np.arange(len(logs)), decided(losses)] += np.where(tied(losses), 0.0, b)
        return shares(np.exp(logs - logs.max(axis=1, keepdims=True)))

    def check(self) -> None:
        """Reject values that no stream leads to."""
        all_finite(self, most=_MOST)
        require(not np.any(self.mean < 0), "the calibration's mean must be at least 0")
        (aa, ab), (_, bb) = self.information
        require(min(aa, bb) >= 0, "information must be definite")
        # The Newton steps divide by it. For semidefinite information it is at least 1 + aa + bb.
        least_prior = OF_VOTES.precision
        determinant = (aa + least_prior) * (bb + least_prior) - ab * ab
        least = (1 + aa + bb) / 2 if max(aa, bb) <= _SHARP else 1e-14 * aa * bb
        require(determinant >= least, "information must be definite")

    def merged(self, other: "Calibration", trust: Trust = OF_VOTES) -> "Calibration":
        """Return the calibration of both streams, up to the linearisation of the Newton steps."""
        prior, start = trust.precision * np.eye(2), Calibration.start().mean
        whole = [np.triu(c.information) + np.triu(c.information, 1).T + prior for c in (self, other)]
        total = whole[0] + whole[1] - prior
        mean = np.linalg.solve(total, whole[0] @ self.mean + whole[1] @ other.mean - prior @ start)
        return Calibration(np.maximum(mean, 0.0), self.information + other.information)
