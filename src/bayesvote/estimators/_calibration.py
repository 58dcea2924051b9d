"""Calibration of a model's probabilities as the stream goes on."""

from typing import NamedTuple, Self

import numpy as np
from numpy.typing import NDArray

from bayesvote.core.checks import MOST_WEIGHT, Array, Labels
from bayesvote.core.state import MOST_ROWS, all_finite, require
from bayesvote.losses import LossScale
from bayesvote.model import decided, shares


class Trust(NamedTuple):
    """How far a model's own probabilities are trusted before any row."""

    precision: float  # of the calibration's prior around leaving everything as it is
    floor: float  # over the number of labels: smaller probabilities count as this


# Unanimous votes have unbounded odds and would drown out the others. The best of the floors tried on the paper's sets.
OF_VOTES = Trust(1.0, 0.02)
# The weaker priors that were tried cost short streams more than they gained on long ones.
OF_PROBABILITIES = Trust(100.0, 1e-6)


def trust_in(scale: LossScale) -> Trust:
    """Return the trust in probabilities that come from losses of that scale."""
    return OF_PROBABILITIES if scale is LossScale.LOG_PROBABILITY else OF_VOTES


def _logs(probabilities: Array, trust: Trust) -> Array:
    return np.asarray(np.log(np.maximum(probabilities, trust.floor / probabilities.shape[1])))


def tied(losses: Array) -> NDArray[np.bool_]:
    """Rows whose two least losses are the same.

    >>> tied(np.array([[1.0, 1.0, 2.0], [2.0, 2.0, 1.0]]))
    array([ True, False])
    """
    if losses.shape[1] < 2:
        return np.zeros(len(losses), dtype=np.bool_)
    least = losses if losses.shape[1] == 2 else np.partition(losses, 1, axis=1)
    return np.asarray(least[:, 0] == least[:, 1])


# Of information: a row adds at most its weight times the square of half a logarithm.
_MOST = 100 * MOST_WEIGHT * MOST_ROWS
_SHARP = 1e12  # above it, information that is all about one direction loses that of the prior to rounding


class Calibration(NamedTuple):
    r"""Platt scaling learned online: :math:`\mathrm{softmax}(a \log p_k + b [k = \text{decision}])`.

    For two labels the log-odds of the decision become a times what they were, plus b. Both a and b stay at or above 0,
    so the decision stays the likeliest label. They follow the log-likelihood by a Newton step per row, with its Fisher
    information so far, from the prior N((1, 0), I/precision) that leaves probabilities as they are. Probabilities below
    floor/K count as that. The precision is 1 and the floor 0.02 for votes; for models whose losses are
    log-probabilities, which need little correction, they are 100 and 1e-6. Where the best labels are tied, as on rows
    about which no member votes, there is no decision to speak of: b is left out, and nothing is learned.
    """

    mean: Array  # (2,): a, b
    information: Array  # (2, 2), upper triangle, without the prior's

    @classmethod
    def start(cls) -> Self:
        """Return a calibration that changes nothing yet."""
        return cls(np.array([1.0, 0.0]), np.zeros((2, 2)))

    def learn(
        self, probabilities: Array, losses: Array, y: Labels, w: Array, forgetting: float, trust: Trust = OF_VOTES
    ) -> Array:
        """Learn from probabilities that were given before the labels were known; return a, b (n, 2) before each."""
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
        """Calibrated probabilities, by a and b as they are or, as ``mean`` (n, 2), as they were at each row."""
        a, b = (self.mean if mean is None else mean).T
        logs = a[..., None] * _logs(probabilities, trust)
        logs[np.arange(len(logs)), decided(losses)] += np.where(tied(losses), 0.0, b)
        return shares(np.exp(logs - logs.max(axis=1, keepdims=True)))

    def check(self) -> None:
        """Refuse what no stream leads to."""
        all_finite(self, most=_MOST)
        require(not np.any(self.mean < 0), "the calibration's mean must be at least 0")
        (aa, ab), (_, bb) = self.information
        require(min(aa, bb) >= 0, "information must be definite")
        # As the Newton steps have it, which divide by it; where information is semidefinite, 1 + aa + bb or more.
        least_prior = OF_VOTES.precision
        determinant = (aa + least_prior) * (bb + least_prior) - ab * ab
        least = (1 + aa + bb) / 2 if max(aa, bb) <= _SHARP else 1e-14 * aa * bb
        require(determinant >= least, "information must be definite")

    def merged(self, other: "Calibration", trust: Trust = OF_VOTES) -> "Calibration":
        """Return the calibration that has seen both streams, up to its Newton steps' linearisation."""
        prior, start = trust.precision * np.eye(2), Calibration.start().mean
        whole = [np.triu(c.information) + np.triu(c.information, 1).T + prior for c in (self, other)]
        total = whole[0] + whole[1] - prior
        mean = np.linalg.solve(total, whole[0] @ self.mean + whole[1] @ other.mean - prior @ start)
        return Calibration(np.maximum(mean, 0.0), self.information + other.information)
