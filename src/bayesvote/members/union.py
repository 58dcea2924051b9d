"""Several banks as one."""

from collections.abc import Callable, Iterable, Sequence
from dataclasses import dataclass
from functools import reduce
from itertools import pairwise
from typing import Any

import numpy as np

from bayesvote.core.checks import Array, Labels
from bayesvote.core.rows import Rows, started
from bayesvote.core.state import Learned, Shape, restored_shape
from bayesvote.members.attribution import Attribution
from bayesvote.members.base import Bank, check_bank


@dataclass
class Union(Bank[tuple[Any, ...]]):
    """Several banks as one: their members side by side, in the order given.

    Each bank draws from a random stream of its own: a bank added at the end leaves the others as they were.

    Parameters
    ----------
    banks
        The banks, each once.

    Examples
    --------
    >>> from bayesvote.members import FernBank, PerceptronBank
    >>> bank = Union([PerceptronBank(2), FernBank(3)]).start(n_features=4, rng=0)
    >>> bank.n_members
    5
    >>> bank.scores([[0.0, 1.0, 0.0, 1.0]])
    array([[ 0.,  0., nan, nan, nan]])
    """

    banks: Sequence[Bank[Any]]

    def __post_init__(self) -> None:
        """Check the banks."""
        for bank in self.banks:
            check_bank("Union", bank)
        if len(self.banks) == 0:
            raise ValueError("Union: banks must hold at least one bank, got none.")
        if len({id(bank) for bank in self.banks}) < len(self.banks):
            raise ValueError("Union: banks must be different objects, got one twice. Make a new bank for each.")
        self.share(self._lock)

    @property
    def n_members(self) -> int:
        """How many members the banks hold in all."""
        return sum(bank.n_members for bank in self.banks)

    @property
    def wants_scaled(self) -> bool:
        """Whether all of the banks do; otherwise each is scaled by itself."""
        return all(bank.wants_scaled for bank in self.banks)

    @property
    def learns(self) -> bool:
        """Whether one of the banks does."""
        return any(bank.learns for bank in self.banks)

    @property
    def parts(self) -> tuple[Bank[Any], ...]:
        """The banks."""
        return tuple(self.banks)

    def rebuilt(self, change: Callable[[Bank[Any]], Bank[Any]]) -> "Union":
        """Return a union of the banks, each changed."""
        return Union([change(bank) for bank in self.banks])

    @property
    def state(self) -> tuple[Any, ...] | None:
        """The banks' states."""
        return None if self.shape is None else tuple(bank.state for bank in self.banks)

    @property
    def shape(self) -> Shape | None:
        """Features and classes that all banks were started for."""
        first = self.banks[0].shape
        for bank in self.banks:
            other = bank.shape
            if other is not first and other != first:
                return None
        return first

    def snapshot(self) -> tuple[Any, ...]:
        """Copy what learning changes, of every bank."""
        return tuple(bank.snapshot() for bank in self.banks)

    def returning(self, snapshot: tuple[Any, ...]) -> Callable[[], None]:
        """Get every bank ready to take up its copy."""
        return _all(bank.returning(of_bank) for bank, of_bank in zip(self.banks, snapshot, strict=True))

    def ready(self, state: tuple[Any, ...], shape: Shape) -> Callable[[], None]:
        """Get every bank ready for its state."""
        return _all(bank.ready(of_bank, shape) for bank, of_bank in zip(self.banks, state, strict=True))

    def init(self, n_features: int, n_classes: int, rng: np.random.Generator) -> tuple[Any, ...]:
        """Return the states of all banks before any row."""
        children = rng.spawn(len(self.banks))
        return tuple(bank.init(n_features, n_classes, child) for bank, child in zip(self.banks, children, strict=True))

    def score(self, rows: Rows) -> Array:
        """Score checked rows."""
        return np.concatenate([bank.score(rows) for bank in self.banks], axis=1)

    def advance(self, rows: Rows, y: Labels, w: Array) -> Array:
        """Score checked row t before learning row t."""
        return np.concatenate([bank.advance(rows, y, w) for bank in self.banks], axis=1)

    def attributions(self, rows: Rows, coefficients: Array, shares: Array) -> Attribution:
        """Add up what the banks share out over the features."""
        edges = np.cumsum([0, *(bank.n_members for bank in self.banks)]).tolist()
        found = [
            bank.attributions(rows, coefficients[:, first:last], shares[:, first:last])
            for bank, (first, last) in zip(self.banks, pairwise(edges), strict=True)
        ]
        return reduce(Attribution.plus, found)

    def kept_rows(self) -> Any:
        """Rows of the bank that keeps most of them."""
        kept = [rows for bank in self.banks if (rows := bank.kept_rows()) is not None]
        return max(kept, key=lambda rows: rows.shape[0]) if kept else None

    def check_weights(self, w: Array) -> None:
        """Refuse weights that one of the banks cannot learn from, before any bank learns."""
        for bank in self.banks:
            bank.check_weights(w)

    def frozen_state(self) -> tuple[Any, ...]:
        """Those of the banks."""
        return tuple(bank.frozen_state() for bank in self.banks)

    def wider(self, n_features: int, rng: np.random.Generator) -> tuple[Any, ...]:
        """Return the states of all banks with room for more features."""
        return tuple(bank.wider(n_features, rng) for bank in self.banks)

    def member_names(self) -> list[str]:
        """What each member is."""
        return [name for bank in self.banks for name in bank.member_names()]

    def least_bytes(self, n_features: int, n_classes: int) -> int:
        """The size of all states."""
        return sum(bank.least_bytes(n_features, n_classes) for bank in self.banks)

    def validate(self, state: tuple[Any, ...]) -> None:
        """Check every bank's state."""
        for bank, of_bank in zip(self.banks, state, strict=True):
            bank.validate(of_bank)

    def learned(self) -> Learned | None:
        """Nothing of its own but the shape: the banks' states go with the banks."""
        return None if self.shape is None else Learned({"shape": list(map(int, self.shape))})

    def restore(self, learned: Learned, room: int) -> None:  # noqa: ARG002
        """Check that the banks, which have their states again, have one shape."""
        if restored_shape(learned) != started(self.who, self.shape):
            raise ValueError(f"banks that are not all of {learned.facts['shape']} features and classes")


def _all(acts: Iterable[Callable[[], None]]) -> Callable[[], None]:
    """All of these as one, which are made first."""
    made = tuple(acts)

    def act() -> None:
        for one in made:
            one()

    return act
