"""Several banks as one, and the mixture of families that serves most data."""

from collections.abc import Sequence
from dataclasses import dataclass, field
from typing import Any, Protocol, Self

import numpy as np
from numpy.typing import ArrayLike

from bayesvote._checks import Array, whole
from bayesvote._input import RowsLike, check_labelled, check_rows, check_start, started
from bayesvote.members.base import Bank
from bayesvote.members.ferns import FernBank
from bayesvote.members.foreign import EstimatorBank
from bayesvote.members.naive_bayes import NaiveBayesBank
from bayesvote.members.perceptron import PerceptronBank


class StatefulBank(Bank, Protocol):
    """A bank that shows what it has learned."""

    @property
    def state(self) -> Any:
        """What the bank has learned; None before its start."""


@dataclass
class Union:
    """Several banks as one: their members side by side, in the order given.

    Each bank draws from a random stream of its own: a bank added at the end leaves the others as they were.

    Parameters
    ----------
    banks
        The banks, each once.

    Examples
    --------
    >>> bank = Union([PerceptronBank(2), FernBank(3)]).start(n_features=4, rng=0)
    >>> bank.n_members
    5
    >>> bank.scores([[0.0, 1.0, 0.0, 1.0]])
    array([[ 0.,  0., nan, nan, nan]])
    """

    banks: Sequence[StatefulBank]
    shape: tuple[int, int] | None = field(default=None, init=False, repr=False, compare=False)

    def __post_init__(self) -> None:
        """Check the banks."""
        if len(self.banks) == 0:
            raise ValueError("Union: banks must hold at least one bank, got none.")
        if len({id(bank) for bank in self.banks}) < len(self.banks):
            raise ValueError("Union: banks must be different objects, got one twice. Make a bank for each place.")

    @property
    def n_members(self) -> int:
        """How many members the banks hold in all."""
        return sum(bank.n_members for bank in self.banks)

    @property
    def state(self) -> tuple[Any, ...]:
        """The banks' states."""
        return tuple(bank.state for bank in self.banks)

    def start(self, n_features: int, n_classes: int = 2, rng: np.random.Generator | int | None = None) -> Self:
        """Start every bank."""
        generator = check_start("Union", n_features, n_classes, rng)
        for bank, child in zip(self.banks, generator.spawn(len(self.banks)), strict=True):
            bank.start(n_features, n_classes, child)
        self.shape = (n_features, n_classes)
        return self

    def scores(self, X: RowsLike) -> Array:
        """Score rows without learning from them."""
        n_features, _ = started("Union", self.shape)
        rows: Any = check_rows("Union", X, n_features)
        return np.concatenate([bank.scores(rows) for bank in self.banks], axis=1)

    def scores_then_learn(self, X: RowsLike, y: ArrayLike, sample_weight: ArrayLike | None = None) -> Array:
        """Score row t before learning row t."""
        rows: Any
        rows, encoded, w = check_labelled("Union", X, y, sample_weight, *started("Union", self.shape))
        self.check_weights(w)
        return np.concatenate([bank.scores_then_learn(rows, encoded, w) for bank in self.banks], axis=1)

    def check_weights(self, w: Array) -> None:
        """Refuse weights that one of the banks cannot learn from, before any bank learns."""
        for bank in self.banks:
            if isinstance(bank, (Union, EstimatorBank)):
                bank.check_weights(w)


def mixed(n_members: int = 99) -> Union:
    """Return a third each of averaged Perceptrons, naive Bayes and ferns: what ``members="mixed"`` means.

    Perceptrons see half the features each, naive Bayes three tenths; ferns are of depth 8.
    """
    whole("mixed", "n_members", n_members, least=3)
    return Union(
        [
            PerceptronBank((n_members + 2) // 3, max_features=0.5, averaged=True),
            NaiveBayesBank((n_members + 1) // 3, max_features=0.3),
            FernBank(n_members // 3, depth=8),
        ]
    )
