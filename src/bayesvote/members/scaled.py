"""Members that see standardised numbers, learned as the stream goes on."""

from collections.abc import Callable
from dataclasses import dataclass
from typing import Any

import numpy as np

from bayesvote.core.checks import Array, Labels
from bayesvote.core.rows import Rows, started
from bayesvote.core.scales import NO_WEIGHTS, Centred, Scales, no_scales
from bayesvote.core.state import Learned, Shape, like, read_locked, require, restored_shape
from bayesvote.members.attribution import Attribution
from bayesvote.members.base import Bank, check_bank


@dataclass
class Scaled(Bank[tuple[Scales, Any]]):
    """A bank whose members see standardised rows: (x - centre) / spread of every feature.

    Centre and spread are the mean and the standard deviation of the rows learned before, and of the row itself: its own
    numbers tell nothing of its label, and with them the first rows are of a sound size, too. NaN is left out, and
    becomes 0, so that members take a missing value for the centre. All rows count the same, whatever their weight;
    those of weight 0 leave no trace.

    A feature that is 0 in most rows is not centred, and its spread is the root mean square of what is not 0: zeros stay
    zeros, indicators stay 0 and 1, and sparse rows stay sparse. That holds for features that are 0 in three
    quarters of the rows or more; those that are 0 in a quarter or less are standardised in full, and between the
    two one goes over into the other.

    Parameters
    ----------
    bank
        The members.

    Examples
    --------
    >>> from bayesvote.members.perceptron import PerceptronBank
    >>> bank = Scaled(PerceptronBank(n_members=1, max_features=None)).start(n_features=1)
    >>> bank.scores_then_learn([[1000.0], [1010.0], [1000.0]], [0, 1, 0])
    array([[ 0.        ],
           [-1.        ],
           [-0.70710678]])
    """

    bank: Bank[Any]

    def __post_init__(self) -> None:
        """Check the bank."""
        check_bank("Scaled", self.bank)
        self.share(self.bank.lock)
        self._scales: Scales | None = None
        self._centred: Centred | None = None  # features that sparse rows may be centred by, if they are known

    @property
    def n_members(self) -> int:
        """How many members the bank holds."""
        return self.bank.n_members

    @property
    def learns(self) -> bool:
        """Whether the members do; the scales of members that do not stay as they are."""
        return self.bank.learns

    @property
    def parts(self) -> tuple[Bank[Any], ...]:
        """The bank."""
        return (self.bank,)

    @property
    def state(self) -> tuple[Scales, Any] | None:
        """The scales, and what the bank has learned."""
        return None if self._scales is None else (self._scales, self.bank.state)

    @property
    def shape(self) -> Shape | None:
        """Features and classes of the bank."""
        return None if self._scales is None else self.bank.shape

    def ready(self, state: tuple[Scales, Any], shape: Shape) -> Callable[[], None]:
        """Get the bank ready for its state; the scales are taken over with it."""
        scales, of_bank = state
        bank_takes_over = self.bank.ready(of_bank, shape)

        def take_over() -> None:
            bank_takes_over()
            self._scales, self._centred = scales, None

        return take_over

    def init(self, n_features: int, n_classes: int, rng: np.random.Generator) -> tuple[Scales, Any]:
        """Return empty scales, and the bank's state before any row."""
        return no_scales(n_features), self.bank.init(n_features, n_classes, rng)

    def standardised(self, rows: Rows) -> Rows:
        """Checked rows as the members see them."""
        return self._standardised(rows, NO_WEIGHTS)

    def score(self, rows: Rows) -> Array:
        """Score checked rows."""
        return self.bank.score(self.standardised(rows))

    def advance(self, rows: Rows, y: Labels, w: Array) -> Array:
        """Score checked row t before learning row t."""
        learning = w if self.learns else NO_WEIGHTS
        return self.bank.advance(self._standardised(rows, learning), y, w)

    def attributions(self, rows: Rows, coefficients: Array, shares: Array) -> Attribution:
        """Share out scores over the features as the bank does, which sees them standardised."""
        return self.bank.attributions(self.standardised(rows), coefficients, shares)

    def check_weights(self, w: Array) -> None:
        """Refuse weights that the bank cannot learn from."""
        self.bank.check_weights(w)

    def frozen_state(self) -> tuple[Scales, Any]:
        """The scales, and the bank's frozen state."""
        return started(self.who, self._scales), self.bank.frozen_state()

    def wider(self, n_features: int, rng: np.random.Generator) -> tuple[Scales, Any]:
        """Return the states with room for more features."""
        return started(self.who, self._scales).wider(n_features), self.bank.wider(n_features, rng)

    def member_names(self) -> list[str]:
        """What each member is."""
        return self.bank.member_names()

    def least_bytes(self, n_features: int, n_classes: int) -> int:
        """The size of both states."""
        return 32 * n_features + self.bank.least_bytes(n_features, n_classes)

    def validate(self, state: tuple[Scales, Any]) -> None:
        """Refuse counts that do not fit the rows, and spreads without numbers; check the bank's state."""
        scales, of_bank = state
        scales.check()
        self.bank.validate(of_bank)

    @read_locked
    def learned(self) -> Learned | None:
        """The scales; the bank's state goes with the bank."""
        if self._scales is None:
            return None
        self.validate((self._scales, self.bank.state))
        facts = {"shape": list(map(int, started(self.who, self.shape))), "version": self.version}
        return Learned(facts, self._scales._asdict())

    def restore(self, learned: Learned, room: int) -> None:
        """Take up the scales that a file brings; the bank has its state again."""
        shape = restored_shape(learned)
        if self.bank.shape != shape:
            raise ValueError(f"a bank of {self.bank.shape} features and classes instead of {shape}")
        if 32 * shape.n_features > room:
            raise ValueError(f"{self.who}: scales of {shape.n_features} features in a file of {room} bytes")
        require(learned.facts["version"] == self.version, f"version must be {self.version}")
        scales = like(no_scales(shape.n_features), learned.arrays)
        self.validate((scales, self.bank.state))
        self._scales, self._centred = scales, None

    def _standardised(self, rows: Rows, w: Array) -> Rows:
        # Several threads may do so at once when nothing is learned; each finds the same.
        out, self._centred = started(self.who, self._scales).standardised_knowing(rows, w, self._centred)
        return out


def scaled(bank: Bank[Any]) -> Bank[Any]:
    """Return the bank with its linear members, and others that want it, behind :class:`Scaled`.

    >>> from bayesvote.members.mixtures import mixed
    >>> [type(part).__name__ for part in scaled(mixed(9)).parts]
    ['Scaled', 'NaiveBayesBank', 'FernBank']
    """
    return Scaled(bank) if bank.wants_scaled else bank.rebuilt(scaled)
