"""Attributions: weighted sums of the members' scores, divided among the features."""

from typing import Any, NamedTuple

import numpy as np
from numpy.typing import NDArray

from bayesvote.core.checks import Array, Labels
from bayesvote.core.rows import Rows

_ROUNDING = 1e-6  # relative to the sum of all sizes; trees keep values in single precision, which has 7 digits
_TINY = 1e-150  # smaller scores count as 0: a quotient of two such numbers could overflow


class Attribution(NamedTuple):
    """Sums over the members' scores, each score times its coefficient, divided among the features of every row.

    Scores of members without attributions are in none of these; they are the remainder of the sum.
    """

    parts: Array  # (n, d): contribution of each feature
    start: Array  # (n,): scores of the members before they look at any feature
    looked: Array  # (n, d): total share of the members that look at the feature

    def plus(self, other: "Attribution") -> "Attribution":
        """Return the sums of both."""
        return Attribution(*(mine + theirs for mine, theirs in zip(self, other, strict=True)))


def nothing(rows: Rows) -> Attribution:
    """Return attributions that are 0 for every row."""
    return Attribution(np.zeros((rows.n, rows.width)), np.zeros(rows.n), np.zeros((rows.n, rows.width)))


def added_up(row: NDArray[Any], column: NDArray[Any], values: Array, width: int, n: int) -> Array:
    """Sum up values at their rows and columns in an array (n, width)."""
    flat = np.broadcast_to(row * width + column, values.shape)
    total = np.bincount(flat.ravel(), weights=values.ravel(), minlength=n * width)
    return np.asarray(total, dtype=np.float64).reshape(n, width)


class Explanation(NamedTuple):
    """Contribution of each feature to the decisions. A row's parts, start and remainder add up to its lead."""

    decision: Labels  # (n,)
    runner_up: Labels  # (n,): the second-best label
    lead: Array  # (n,): loss of the runner-up minus that of the decision
    parts: Array  # (n, d): contribution of each feature to the lead
    start: Array  # (n,): lead before the members look at any feature
    looked: Array  # (n, d): share of the vote, by size, of the members that look at the feature

    @property
    def remainder(self) -> Array:
        """Part of the lead that no member attributes, (n,); 0 where it is rounding."""
        rest = self.lead - self.start - self.parts.sum(axis=1)
        size = np.abs(self.lead) + np.abs(self.start) + np.abs(self.parts).sum(axis=1)
        return np.where(np.abs(rest) <= _ROUNDING * size, 0.0, rest)


def per_score(added: Array, scores: Array, decision: Labels, runner_up: Labels) -> Array:
    """Return coefficients, in the shape of the scores, whose sum with a member's scores is its contribution.

    They are 0 for a member that prefers neither label, or abstains.
    """
    if scores.ndim == 2:
        return _ratio(added, scores)
    row, member = np.arange(len(scores))[:, None], np.arange(scores.shape[1])
    one, other = (row, member, decision[:, None]), (row, member, runner_up[:, None])
    out = np.zeros(scores.shape)
    out[one] = _ratio(added, scores[one] - scores[other])
    out[other] = -out[one]
    return out


def shares_of(added: Array) -> Array:
    """Return the size of every member's contribution (n, m) as a share of all; 0 if every member abstains."""
    return _ratio(np.abs(added), np.abs(added).sum(axis=1, keepdims=True))


def _ratio(above: Array, below: Array) -> Array:
    below = np.nan_to_num(np.broadcast_to(below, above.shape))
    sound = np.abs(below) > _TINY
    return np.where(sound, above / np.where(sound, below, 1.0), 0.0)
