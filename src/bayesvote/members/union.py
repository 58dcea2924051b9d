"""Several banks as one."""

from collections.abc import Callable, Iterable, Sequence
from dataclasses import dataclass
from functools import reduce
from itertools import pairwise
from typing import Any

import numpy as np

from bayesvote.core.checks import Array, InputError, Labels
from bayesvote.core.rows import Rows, started
from bayesvote.core.state import Learned, Shape, restored_shape
from bayesvote.members.attribution import Attribution
from bayesvote.members.base import Bank, CompositeBank, check_bank


@dataclass
class Union(CompositeBank[tuple[Any, ...]]):
    """Several banks as one: the members of all banks, in the order given.

    Each bank has a random stream of its own, so adding a bank at the end does not change the others.

    Parameters
    ----------
    banks
        The banks, each of them once.

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
        """Check the banks and let them share one lock."""
        for bank in self.banks:
            check_bank("Union", bank)
        if len(self.banks) == 0:
            raise InputError("Union", "banks", "must hold at least one bank", "none")
        if len({id(bank) for bank in self.banks}) < len(self.banks):
            raise InputError("Union", "banks", "must be different objects", "one twice", "Make a new bank for each.")
        self.compose()
        self.share(self._lock)

    @property
    def n_members(self) -> int:
        """Number of members of all banks together."""
        total = 0
        for bank in self.banks:
            total += bank.n_members
        return total

    @property
    def wants_scaled(self) -> bool:
        """True if all banks want standardised features; otherwise each bank is scaled by itself."""
        return all(bank.wants_scaled for bank in self.banks)

    @property
    def parts(self) -> tuple[Bank[Any], ...]:
        """The banks."""
        return tuple(self.banks)

    def rebuilt(self, change: Callable[[Bank[Any]], Bank[Any]]) -> "Union":
        """Return a union of the changed banks."""
        return Union([change(bank) for bank in self.banks])

    @property
    def state(self) -> tuple[Any, ...] | None:
        """The banks' states; None before the start."""
        return None if self.shape is None else tuple(bank.state for bank in self.banks)

    def shape_of_parts(self) -> Shape | None:
        """Return the shape of all banks; None if they differ."""
        first, *others = [bank.shape for bank in self.banks]
        return first if all(shape == first for shape in others) else None

    def snapshot(self) -> tuple[Any, ...]:
        """Copy what learning changes in every bank."""
        return tuple(bank.snapshot() for bank in self.banks)

    def returning(self, snapshot: tuple[Any, ...]) -> Callable[[], None]:
        """Prepare every bank to restore its snapshot."""
        return _all(bank.returning(of_bank) for bank, of_bank in zip(self.banks, snapshot, strict=True))

    def ready(self, state: tuple[Any, ...], shape: Shape) -> Callable[[], None]:
        """Prepare every bank for its state."""
        return _all(bank.ready(of_bank, shape) for bank, of_bank in zip(self.banks, state, strict=True))

    def init(self, n_features: int, n_classes: int, rng: np.random.Generator) -> tuple[Any, ...]:
        """Return the initial states of all banks."""
        children = rng.spawn(len(self.banks))
        return tuple(bank.init(n_features, n_classes, child) for bank, child in zip(self.banks, children, strict=True))

    def score(self, rows: Rows) -> Array:
        """Score checked rows."""
        return np.concatenate([bank.score(rows) for bank in self.banks], axis=1)

    def advance(self, rows: Rows, y: Labels, w: Array) -> Array:
        """Score checked row t before learning row t."""
        found = []
        for bank in self.banks:
            found.append(bank.advance(rows, y, w))
        return np.concatenate(found, axis=1)

    def attributions(self, rows: Rows, coefficients: Array, shares: Array) -> Attribution:
        """Sum up what the banks attribute to the features."""
        edges = np.cumsum([0, *(bank.n_members for bank in self.banks)]).tolist()
        found = [
            bank.attributions(rows, coefficients[:, first:last], shares[:, first:last])
            for bank, (first, last) in zip(self.banks, pairwise(edges), strict=True)
        ]
        return reduce(Attribution.plus, found)

    def kept_rows(self) -> Any:
        """Return the rows of the bank that keeps most of them."""
        kept = [rows for bank in self.banks if (rows := bank.kept_rows()) is not None]
        return max(kept, key=lambda rows: rows.shape[0]) if kept else None

    def frozen_state(self) -> tuple[Any, ...]:
        """Return the frozen states of the banks."""
        return tuple(bank.frozen_state() for bank in self.banks)

    def wider(self, n_features: int, rng: np.random.Generator) -> tuple[Any, ...]:
        """Return the states of all banks with room for more features."""
        return tuple(bank.wider(n_features, rng) for bank in self.banks)

    def member_names(self) -> list[str]:
        """Names of the members."""
        return [name for bank in self.banks for name in bank.member_names()]

    def least_bytes(self, n_features: int, n_classes: int) -> int:
        """Size of all states."""
        return sum(bank.least_bytes(n_features, n_classes) for bank in self.banks)

    def validate(self, state: tuple[Any, ...]) -> None:
        """Check every bank's state."""
        for bank, of_bank in zip(self.banks, state, strict=True):
            bank.validate(of_bank)

    def learned(self) -> Learned | None:
        """Return the shape only: a file stores the states with the banks."""
        return None if self.shape is None else Learned({"shape": list(map(int, self.shape))})

    def restore(self, learned: Learned, room: int) -> None:  # noqa: ARG002
        """Check that the banks, which were restored before, have one shape."""
        shape = restored_shape(learned)
        if shape != started(self.who, self.shape):
            must = f"must have {shape.n_features} features and {shape.n_classes} classes each"
            raise InputError(self.who, "the banks of a file", must)


def _all(acts: Iterable[Callable[[], None]]) -> Callable[[], None]:
    """Return one function that calls all of these. All of them are made first, as making one may fail."""
    made = tuple(acts)

    def act() -> None:
        for one in made:
            one()

    return act
