"""Banks that no longer learn: the paper's static setting."""

from collections.abc import Callable
from dataclasses import dataclass
from typing import Any

import numpy as np
from numpy.typing import ArrayLike

from bayesvote.core.checks import Array, Labels, integer
from bayesvote.core.rows import Rows, RowsLike
from bayesvote.core.state import Learned, Shape
from bayesvote.members.attribution import Attribution
from bayesvote.members.base import Bank, check_bank


@dataclass
class Frozen(Bank[Any]):
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

    bank: Bank[Any]

    def __post_init__(self) -> None:
        """Check the bank."""
        check_bank("Frozen", self.bank)
        self.share(self.bank.lock)

    @property
    def n_members(self) -> int:
        """How many members the bank holds."""
        return self.bank.n_members

    @property
    def learns(self) -> bool:
        """Never."""
        return False

    @property
    def parts(self) -> tuple[Bank[Any], ...]:
        """The bank."""
        return (self.bank,)

    @property
    def state(self) -> Any:
        """What the bank has learned."""
        return self.bank.state

    @property
    def shape(self) -> Shape | None:
        """Features and classes of the bank."""
        return self.bank.shape

    def ready(self, state: Any, shape: Shape) -> Callable[[], None]:
        """Get the bank ready for a state."""
        return self.bank.ready(state, shape)

    def init(self, n_features: int, n_classes: int, rng: np.random.Generator) -> Any:
        """Return what the bank has learned; a bank that was never started is started."""
        if self.shape is None:
            return self.bank.init(n_features, n_classes, rng)
        if self.shape != (n_features, n_classes):
            raise ValueError(
                f"Frozen: n_features and n_classes must be those of the frozen bank, {tuple(self.shape)}, "
                f"got {(n_features, n_classes)}. Freeze a bank that learned such rows."
            )
        return self.state

    def score(self, rows: Rows) -> Array:
        """Score checked rows."""
        return self.bank.score(rows)

    def advance(self, rows: Rows, y: Labels, w: Array) -> Array:  # noqa: ARG002
        """Score checked rows and learn nothing."""
        return self.bank.score(rows)

    def attributions(self, rows: Rows, coefficients: Array, shares: Array) -> Attribution:
        """Share out scores over the features as the bank does."""
        return self.bank.attributions(rows, coefficients, shares)

    def kept_rows(self) -> Any:
        """Rows that the bank keeps."""
        return self.bank.kept_rows()

    def frozen_state(self) -> Any:
        """That of the bank."""
        return self.bank.frozen_state()

    def wider(self, n_features: int, rng: np.random.Generator) -> Any:
        """Widen the bank."""
        return self.bank.wider(n_features, rng)

    def member_names(self) -> list[str]:
        """What each member is."""
        return self.bank.member_names()

    def least_bytes(self, n_features: int, n_classes: int) -> int:
        """The size of the bank's state."""
        return self.bank.least_bytes(n_features, n_classes)

    def validate(self, state: Any) -> None:
        """Check the bank's state."""
        self.bank.validate(state)

    def learned(self) -> Learned | None:
        """Nothing of its own."""
        return None


def pretrain(
    bank: Bank[Any], X: RowsLike, y: ArrayLike, sample_weight: ArrayLike | None = None, epochs: int = 1
) -> Frozen:
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
    integer("pretrain", "epochs", epochs)
    for _ in range(epochs):
        bank.scores_then_learn(X, y, sample_weight)
    return Frozen(bank)
