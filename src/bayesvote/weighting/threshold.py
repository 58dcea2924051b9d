"""Threshold on predictions of rows with late labels, below which the most common label is predicted."""

from typing import NamedTuple, Self

import numpy as np

from bayesvote.core.checks import Array, Labels
from bayesvote.core.state import MOST_TOTAL, all_finite, require

# Another label is predicted if it is that many times as probable as the most common one. Almost none is 1,000 times as
# probable, so with the last factor the prediction is almost constant.
_FACTORS = (1.0, 1.25, 1.5, 2.0, 3.0, 5.0, 10.0, 1000.0)
_LOGS = np.log(_FACTORS)
_FADES = np.array([1 - 1 / 50_000, 1 - 1 / 2_500])  # factors of the counts per row: long run, recent rows
_NO_LABELS = np.zeros(0, dtype=np.intp)
_NO_WEIGHTS = np.zeros(0)
WIDTH = 3  # of a decision: the most common label, the best other one, and the difference of their losses


class Threshold(NamedTuple):
    """Factor by which another label must be more probable than the most common one to be predicted.

    It is learned from late labels and the decisions when their rows were predicted. The factor is 1 unless another one
    would have made fewer mistakes, by more than one standard deviation in the long run, and no more mistakes in recent
    rows. So the most common label is predicted if the members know nothing that long after a label.
    """

    counts: Array  # (K,): weights of the labels
    mistakes: Array  # (2, factors): weights of the rows that each factor would have got wrong; long run, recent rows

    @classmethod
    def start(cls, n_classes: int) -> Self:
        """Return a threshold that has no effect yet."""
        return cls(np.zeros(n_classes), np.zeros((2, len(_FACTORS))))

    def answer(self, losses: Array) -> Array:
        """Change losses (n, K) where the most common label is to be predicted; return the decisions.

        The losses are minus log-probabilities. ``learn`` takes the decisions (n, 3) when the labels arrive.
        """
        decisions = np.empty((len(losses), WIDTH))
        self._run(losses, _NO_LABELS, _NO_WEIGHTS, decisions)
        return decisions

    def learn(self, losses: Array, y: Labels, w: Array, decisions: Array) -> None:
        """Learn rows from their decisions; predict rows of weight 0, whose decisions are written."""
        self._run(losses, y, w, decisions)

    def _run(self, losses: Array, y: Labels, w: Array, decisions: Array) -> None:
        from bayesvote.weighting._threshold_kernels import threshold_rows

        threshold_rows(losses, y, w, decisions, _LOGS, self.counts, self.mistakes, _FADES)

    def check(self) -> None:
        """Reject a threshold that no stream leads to."""
        all_finite(self, most=MOST_TOTAL)
        require(not np.any(self.counts < 0) and not np.any(self.mistakes < 0), "counts must be at least 0")
