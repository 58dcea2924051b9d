"""Banks that no longer learn: the paper's static setting."""

from dataclasses import dataclass
from typing import Any

import numpy as np
from numpy.typing import ArrayLike

from bayesvote.core.checks import Array, InputError, Labels, integer
from bayesvote.core.rows import Rows, RowsLike
from bayesvote.members.base import Bank
from bayesvote.members.wrappers.base import WrapperBank


@dataclass
class Frozen(WrapperBank[Any]):
    """A bank whose members do not learn.

    ``start`` keeps what the wrapped bank has learned. A wrapped bank that was never started is started.

    Examples
    --------
    >>> from bayesvote.members.perceptron import PerceptronBank
    >>> bank = PerceptronBank(n_members=1, max_features=None).start(n_features=1)
    >>> frozen = pretrain(bank, [[1.0]], [1])
    >>> frozen.scores_then_learn([[1.0], [1.0]], [0, 0])
    array([[2.],
           [2.]])
    """

    def compose(self) -> None:
        """Derive what depends on the wrapped bank, which does not learn."""
        super().compose()
        self.learns, self._weight_checkers = False, ()

    def init(self, n_features: int, n_classes: int, rng: np.random.Generator) -> Any:
        """Return what the wrapped bank has learned; start a bank that was never started."""
        shape = self.shape
        if shape is None:
            return self.bank.init(n_features, n_classes, rng)
        if shape != (n_features, n_classes):
            raise InputError(
                "Frozen",
                "n_features and n_classes",
                f"must be those of the frozen bank, {tuple(shape)}",
                str((n_features, n_classes)),
                "Freeze a bank that learned such rows.",
            )
        return self.state

    def advance(self, rows: Rows, y: Labels, w: Array) -> Array:  # noqa: ARG002
        """Score checked rows without learning them."""
        return self.bank.score(rows)


def pretrain(
    bank: Bank[Any], X: RowsLike, y: ArrayLike, sample_weight: ArrayLike | None = None, epochs: int = 1
) -> Frozen:
    """Train a started bank on the first part of a stream, then freeze it.

    The paper trains its static members in this way, on at most a tenth of the data.

    Parameters
    ----------
    bank
        A bank that was started.
    X, y, sample_weight
        The rows to learn.
    epochs
        Number of passes over them.
    """
    integer("pretrain", "epochs", epochs)
    for _ in range(epochs):
        bank.scores_then_learn(X, y, sample_weight)
    return Frozen(bank)
