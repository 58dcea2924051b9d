"""Probabilities of the labels from a model's losses, and their calibration as the stream goes on."""

from typing import NamedTuple, Self

import numpy as np

from bayesvote._checks import Array, Labels
from bayesvote.ensemble import decided

LEAST = 1e-9  # no label is impossible, so that logarithms are finite
# What the calibration can tell apart, times the number of labels: votes of one accord, whose odds know no bound, would
# drown the others. Of the floors tried on the paper's data sets it serves best.
FAINT = 0.02
PRIOR = 1.0  # precision of the calibration's prior around leaving everything as it is


def from_losses(losses: Array) -> Array:
    """Probability of each label inverse to its loss; for two labels, the share of the other's loss in the sum.

    Losses below 0, which a label that is more than certain may have, count as 0.

    >>> from_losses(np.array([[1.0, 3.0], [0.0, 0.0]]))
    array([[0.75, 0.25],
           [0.5 , 0.5 ]])
    """
    return shares(1 / np.maximum(losses, LEAST))


def from_log_losses(losses: Array, n_members: int) -> Array:
    """Softmax of minus the losses per member, for losses that are log-likelihoods: the members' geometric mean.

    >>> from_log_losses(np.log([[4.0, 1.0]]), n_members=1)
    array([[0.2, 0.8]])
    """
    scaled = losses / n_members
    return shares(np.exp(scaled.min(axis=1, keepdims=True) - scaled))


def from_votes(losses: Array) -> Array:
    """Logistic function of the votes, minus the losses, of labels that were each learned against the rest.

    >>> from_votes(np.log([[0.25, 4.0]]))
    array([[0.8, 0.2]])
    """
    from scipy.special import expit

    return shares(expit(-losses))


def shares(values: Array) -> Array:
    """Rows scaled to sum to one; no value below ``LEAST``."""
    values = np.maximum(values, LEAST)
    return np.asarray(values / values.sum(axis=1, keepdims=True))


def agreeing(values: Array, losses: Array) -> Array:
    """Values of the labels, the largest being the decision's: where rounding or a tie has it otherwise, by a last bit.

    >>> agreeing(np.array([[0.5, 0.5]]), np.array([[1.0, 1.0]])).argmax(axis=1)
    array([1])
    """
    rows, decision = np.arange(len(losses)), decided(losses)
    others = values.copy()
    others[rows, decision] = -np.inf
    values[rows, decision] = np.maximum(values[rows, decision], np.nextafter(others.max(axis=1), np.inf))
    return values


def _logs(probabilities: Array) -> Array:
    return np.asarray(np.log(np.maximum(probabilities, FAINT / probabilities.shape[1])))


class Calibration(NamedTuple):
    r"""Platt scaling learned online: :math:`\mathrm{softmax}(a \log p_k + b [k = \text{decision}])`.

    For two labels the log-odds of the decision become a times what they were, plus b; probabilities below 0.02/K count
    as that. Both a and b stay at or above 0, so the decision stays the likeliest label. They follow the log-likelihood
    by a Newton step per row, with its Fisher information so far, from the prior N((1, 0), I) that leaves probabilities
    as they are.
    """

    mean: Array  # (2,): a, b
    information: Array  # (2, 2), upper triangle, without the prior's

    @classmethod
    def start(cls) -> Self:
        """Return a calibration that changes nothing yet."""
        return cls(np.array([1.0, 0.0]), np.zeros((2, 2)))

    def learn(self, probabilities: Array, losses: Array, y: Labels, w: Array, forgetting: float) -> Array:
        """Learn from probabilities that were given before the labels were known; return a, b (n, 2) before each."""
        from bayesvote.estimators._probability_kernels import learn

        before = np.empty((len(losses), 2))
        learn(self.mean, self.information, _logs(probabilities), decided(losses), y, w, forgetting, PRIOR, before)
        return before

    def calibrated(self, probabilities: Array, losses: Array, mean: Array | None = None) -> Array:
        """Calibrated probabilities, by a and b as they are or, as ``mean`` (n, 2), as they were at each row."""
        a, b = (self.mean if mean is None else mean).T
        logs = a[..., None] * _logs(probabilities)
        logs[np.arange(len(logs)), decided(losses)] += b
        return shares(np.exp(logs - logs.max(axis=1, keepdims=True)))

    def merged(self, other: "Calibration") -> "Calibration":
        """Return the calibration that has seen both streams, up to its Newton steps' linearisation."""
        whole = [np.triu(c.information) + np.triu(c.information, 1).T + PRIOR * np.eye(2) for c in (self, other)]
        start = Calibration.start().mean
        total = whole[0] + whole[1] - PRIOR * np.eye(2)
        mean = np.linalg.solve(total, whole[0] @ self.mean + whole[1] @ other.mean - PRIOR * start)
        return Calibration(np.maximum(mean, 0.0), self.information + other.information)
