"""A floor under the decisions about rows whose labels come late: the commonest label."""

from typing import NamedTuple, Self

import numpy as np

from bayesvote._checks import Array, Labels
from bayesvote._parts import MOST_TOTAL, all_finite, require

# How many times as probable as the commonest label another one must be to be answered. The last is hardly ever reached,
# so the commonest label is answered.
_FACTORS = (1.0, 1.25, 1.5, 2.0, 3.0, 5.0, 10.0, 1000.0)
_LOGS = np.log(_FACTORS)
_FADE = 1 - 1 / 50_000  # of the counts, with each row
_NO_LABELS = np.zeros(0, dtype=np.intp)
_NO_WEIGHTS = np.zeros(0)
WIDTH = 3  # of a decision: the commonest label, the best other one, and how much less its loss is


class Threshold(NamedTuple):
    """How much more probable than the commonest label another one must be to be answered.

    It is learned from rows whose labels come late, each of them by the decision that was made when the row was
    predicted: the factor is 1, unless with another one there would have been fewer mistakes, by more than one standard
    deviation. So where nothing is to be known so long after the last label, the answer is the commonest label.
    """

    counts: Array  # (K,): weights of the labels
    mistakes: Array  # (factors,): weights of the rows that each factor would have got wrong

    @classmethod
    def start(cls, n_classes: int) -> Self:
        """Return a threshold that changes nothing yet."""
        return cls(np.zeros(n_classes), np.zeros(len(_FACTORS)))

    def answer(self, losses: Array) -> Array:
        """Change losses (n, K), minus log-probabilities, where the commonest label is to be answered; return decisions.

        The decisions (n, 3) are what ``learn`` takes once the labels are known.
        """
        decisions = np.empty((len(losses), WIDTH))
        self._run(losses, _NO_LABELS, _NO_WEIGHTS, decisions)
        return decisions

    def learn(self, losses: Array, y: Labels, w: Array, decisions: Array) -> None:
        """Learn rows from their decisions, and answer those of weight 0, whose decisions are written."""
        self._run(losses, y, w, decisions)

    def _run(self, losses: Array, y: Labels, w: Array, decisions: Array) -> None:
        from bayesvote.weighting._threshold_kernels import threshold_rows

        threshold_rows(losses, y, w, decisions, _LOGS, self.counts, self.mistakes, _FADE)

    def check(self) -> None:
        """Refuse what no stream leads to."""
        all_finite(self, most=MOST_TOTAL)
        require(not np.any(self.counts < 0) and not np.any(self.mistakes < 0), "counts must be at least 0")
