"""What members looked at: weighted sums of their scores, shared out over the features."""

from typing import Any, NamedTuple

import numpy as np
from numpy.typing import NDArray

from bayesvote.core.checks import Array, Labels
from bayesvote.core.rows import Rows

_ROUNDING = 1e-6  # of the sizes of all parts; trees keep values in single precision
_TINY = 1e-150  # scores below take no side: a quotient by them could overflow


class Attribution(NamedTuple):
    """Sums over the members' scores, each score times its coefficient, shared out over the features of every row.

    What members that cannot tell have said is in none of them: the sum less all of these is what remains.
    """

    parts: Array  # (n, d): what each feature added
    start: Array  # (n,): what the members said before they looked at any feature
    looked: Array  # (n, d): shares of the members that looked at the feature

    def plus(self, other: "Attribution") -> "Attribution":
        """Those of both."""
        return Attribution(*(mine + theirs for mine, theirs in zip(self, other, strict=True)))


def nothing(rows: Rows) -> Attribution:
    """Nothing is told of any row."""
    return Attribution(np.zeros((rows.n, rows.width)), np.zeros(rows.n), np.zeros((rows.n, rows.width)))


def added_up(row: NDArray[Any], column: NDArray[Any], values: Array, width: int, n: int) -> Array:
    """Values added up at their rows and columns in a table (n, width)."""
    flat = np.broadcast_to(row * width + column, values.shape)
    total = np.bincount(flat.ravel(), weights=values.ravel(), minlength=n * width)
    return np.asarray(total, dtype=np.float64).reshape(n, width)


class Explanation(NamedTuple):
    """How decisions came about, by feature. A row's parts, start and remainder add up to its lead."""

    decision: Labels  # (n,)
    runner_up: Labels  # (n,): the next best label
    lead: Array  # (n,): of the one over the other
    parts: Array  # (n, d): how much each feature moved the lead
    start: Array  # (n,): what the members said before they looked at any feature
    looked: Array  # (n, d): share of the vote, by size, that came from members that looked at the feature

    @property
    def remainder(self) -> Array:
        """What no member told of, (n,); 0 where that is rounding."""
        rest = self.lead - self.start - self.parts.sum(axis=1)
        size = np.abs(self.lead) + np.abs(self.start) + np.abs(self.parts).sum(axis=1)
        return np.where(np.abs(rest) <= _ROUNDING * size, 0.0, rest)


def per_score(added: Array, scores: Array, decision: Labels, runner_up: Labels) -> Array:
    """Coefficients, shaped like the scores, with which each member's scores add up to what it added to the lead.

    A member that took neither side, or abstained, has 0.
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
    """Size of every member's part (n, m) of the vote, as a share of all; 0 where nobody votes."""
    return _ratio(np.abs(added), np.abs(added).sum(axis=1, keepdims=True))


def _ratio(above: Array, below: Array) -> Array:
    below = np.nan_to_num(np.broadcast_to(below, above.shape))
    sound = np.abs(below) > _TINY
    return np.where(sound, above / np.where(sound, below, 1.0), 0.0)
