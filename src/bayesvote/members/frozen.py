"""Banks that no longer learn: the paper's static setting."""

from dataclasses import dataclass
from typing import Self

import numpy as np
from numpy.typing import ArrayLike

from bayesvote._checks import Array, labels, weights, whole
from bayesvote._input import RowsLike
from bayesvote.members.base import Bank


@dataclass
class Frozen:
    """A bank whose learning does nothing.

    Starting it keeps what the bank has learned, too; a bank that was never started is started.

    Examples
    --------
    >>> from bayesvote.members.perceptron import PerceptronBank
    >>> bank = PerceptronBank(n_members=1, max_features=None).start(n_features=1)
    >>> frozen = pretrain(bank, [[1.0]], [1])
    >>> frozen.scores_then_learn([[1.0], [1.0]], [0, 0])
    array([[2.],
           [2.]])
    """

    bank: Bank

    @property
    def n_members(self) -> int:
        """How many members the bank holds."""
        return self.bank.n_members

    @property
    def state(self) -> object:
        """What the bank has learned."""
        return getattr(self.bank, "state", None)

    def start(self, n_features: int, n_classes: int = 2, rng: np.random.Generator | int | None = None) -> Self:
        """Start the bank if it never was."""
        if self.state is None:
            self.bank.start(n_features, n_classes, rng)
        return self

    def scores(self, X: RowsLike) -> Array:
        """Score rows."""
        return self.bank.scores(X)

    def scores_then_learn(self, X: RowsLike, y: ArrayLike, sample_weight: ArrayLike | None = None) -> Array:
        """Score rows; check the labels and weights, and learn nothing from them."""
        scores = self.bank.scores(X)
        labels("Frozen", y, len(scores), 2 if scores.ndim == 2 else scores.shape[2])
        weights("Frozen", sample_weight, len(scores))
        return scores


def pretrain(bank: Bank, X: RowsLike, y: ArrayLike, sample_weight: ArrayLike | None = None, epochs: int = 1) -> Frozen:
    """Teach a started bank the first part of a stream, then freeze it.

    The paper's static members saw at most a tenth of the data so.

    Parameters
    ----------
    bank
        A bank that was started.
    X, y, sample_weight
        The rows to learn.
    epochs
        How often to go over them.
    """
    whole("pretrain", "epochs", epochs)
    for _ in range(epochs):
        bank.scores_then_learn(X, y, sample_weight)
    return Frozen(bank)
