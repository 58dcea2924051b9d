"""A floor under the decisions about rows whose labels come late: the commonest label."""

from typing import NamedTuple, Self

import numpy as np

from bayesvote.core.checks import Array, Labels
from bayesvote.core.state import MOST_TOTAL, all_finite, require

# Another label must be that many times as probable as the commonest one to be answered. Almost none is 1,000 times as
# probable, so the last factor stands for the constant answer.
_FACTORS = (1.0, 1.25, 1.5, 2.0, 3.0, 5.0, 10.0, 1000.0)
_LOGS = np.log(_FACTORS)
_FADES = np.array([1 - 1 / 50_000, 1 - 1 / 2_500])  # of the counts with each row: in the long run, and of the last rows
_NO_LABELS = np.zeros(0, dtype=np.intp)
_NO_WEIGHTS = np.zeros(0)
WIDTH = 3  # of a decision: the commonest label, the best other one, and how much less its loss is


class Threshold(NamedTuple):
    """Factor by which another label must be more probable than the commonest one to be answered.

    It is learned from rows whose labels come late, by the decisions that were made when they were predicted. The factor
    is 1, unless another one would have made fewer mistakes, by more than one standard deviation in the long run and not
    more in the last rows. So the answer is the commonest label where members know nothing that long after a label.
    """

    counts: Array  # (K,): weights of the labels
    mistakes: Array  # (2, factors): weights of the rows that each factor would have got wrong; of the last rows

    @classmethod
    def start(cls, n_classes: int) -> Self:
        """Return a threshold that changes nothing yet."""
        return cls(np.zeros(n_classes), np.zeros((2, len(_FACTORS))))

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

        threshold_rows(losses, y, w, decisions, _LOGS, self.counts, self.mistakes, _FADES)

    def check(self) -> None:
        """Refuse what no stream leads to."""
        all_finite(self, most=MOST_TOTAL)
        require(not np.any(self.counts < 0) and not np.any(self.mistakes < 0), "counts must be at least 0")
