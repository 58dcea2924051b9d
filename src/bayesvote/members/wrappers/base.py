"""Base classes of the banks that wrap one other bank."""

from abc import abstractmethod
from collections.abc import Callable
from dataclasses import dataclass
from typing import Any, Generic, TypeVar

import numpy as np

from bayesvote.core.checks import Array, InputError, Labels
from bayesvote.core.rows import Rows, started
from bayesvote.core.state import Learned, S, Shape, like, read_locked, require, restored_shape
from bayesvote.members.attribution import Attribution
from bayesvote.members.base import Bank, CompositeBank, check_bank

O = TypeVar("O", bound=Any)  # noqa: E741 - a NamedTuple of arrays, the wrapper's own state


@dataclass
class WrapperBank(CompositeBank[S]):
    """A bank that wraps another one and forwards every method to it.

    A subclass overrides the methods in which it differs from the wrapped bank.
    """

    bank: Bank[Any]

    def __post_init__(self) -> None:
        """Check the bank and share its lock."""
        check_bank(self.who, self.bank)
        self.compose()
        self.share(self.bank.lock)

    @property
    def n_members(self) -> int:
        """Number of members."""
        return self.bank.n_members

    @property
    def parts(self) -> tuple[Bank[Any], ...]:
        """The wrapped bank."""
        return (self.bank,)

    def rebuilt(self, change: Callable[[Bank[Any]], Bank[Any]]) -> Bank[Any]:  # noqa: ARG002
        """Return this bank unchanged."""
        return self

    @property
    def state(self) -> S | None:
        """State of the wrapped bank."""
        return self.bank.state

    def shape_of_parts(self) -> Shape | None:
        """Return the shape of the wrapped bank."""
        return self.bank.shape

    def init(self, n_features: int, n_classes: int, rng: np.random.Generator) -> S:
        """Return the initial state of the wrapped bank."""
        state: S = self.bank.init(n_features, n_classes, rng)
        return state

    def ready(self, state: S, shape: Shape) -> Callable[[], None]:
        """Prepare the wrapped bank for a state."""
        return self.bank.ready(state, shape)

    def snapshot(self) -> Any:
        """Copy what learning changes in the wrapped bank."""
        return self.bank.snapshot() if self.learns else None

    def returning(self, snapshot: Any) -> Callable[[], None]:
        """Prepare the wrapped bank to restore a snapshot."""
        return self.bank.returning(snapshot) if self.learns else lambda: None

    def score(self, rows: Rows) -> Array:
        """Score checked rows."""
        return self.bank.score(rows)

    def advance(self, rows: Rows, y: Labels, w: Array) -> Array:
        """Score checked row t before learning row t."""
        return self.bank.advance(rows, y, w)

    def attributions(self, rows: Rows, coefficients: Array, shares: Array) -> Attribution:
        """Attribute scores to features as the wrapped bank does."""
        return self.bank.attributions(rows, coefficients, shares)

    def kept_rows(self) -> Any:
        """Return the rows that the wrapped bank keeps."""
        return self.bank.kept_rows()

    def frozen_state(self) -> S:
        """Return the frozen state of the wrapped bank."""
        state: S = self.bank.frozen_state()
        return state

    def wider(self, n_features: int, rng: np.random.Generator) -> S:
        """Return the state of the wrapped bank with room for more features."""
        state: S = self.bank.wider(n_features, rng)
        return state

    def member_names(self) -> list[str]:
        """Names of the members."""
        return self.bank.member_names()

    def least_bytes(self, n_features: int, n_classes: int) -> int:
        """Size of the wrapped bank's state."""
        return self.bank.least_bytes(n_features, n_classes)

    def validate(self, state: S) -> None:
        """Check the state of the wrapped bank."""
        self.bank.validate(state)

    def learned(self) -> Learned | None:
        """Return None: a file stores the state with the wrapped bank."""
        return None


class TransformerBank(WrapperBank[tuple[O, Any]], Generic[O]):
    """A wrapper that changes the rows and has a state of its own, which it learns from the rows.

    The state is a pair: the wrapper's own state, and that of the wrapped bank.
    """

    _internal = "blank_own inner_shape install_own own own_bytes validate_own"
    _own: O | None = None

    @abstractmethod
    def blank_own(self, n_features: int) -> O:
        """Return the wrapper's own state before any row."""

    @abstractmethod
    def validate_own(self, own: O) -> None:
        """Raise an error if no stream leads to this own state."""

    @abstractmethod
    def inner_shape(self, own: O, shape: Shape) -> Shape:
        """Return the shape of the rows that the wrapped bank sees."""

    @property
    @abstractmethod
    def own_bytes(self) -> int:
        """Bytes per feature of the own state."""

    @property
    def state(self) -> tuple[O, Any] | None:
        """The own state and that of the wrapped bank; None before the start."""
        return None if self._own is None else (self._own, self.bank.state)

    @property
    def own(self) -> O:
        """The wrapper's own state, which must exist."""
        own = self._own
        return own if own is not None else started(self.who, own)

    def install_own(self, own: O) -> None:
        """Replace the own state."""
        self._own = own

    def ready(self, state: tuple[O, Any], shape: Shape) -> Callable[[], None]:
        """Prepare the wrapped bank for its state; the own state is installed with it."""
        own, of_bank = state
        install_in_bank = self.bank.ready(of_bank, self.inner_shape(own, shape))

        def install() -> None:
            install_in_bank()
            self.install_own(own)
            self._shape = shape

        return install

    def snapshot(self) -> Any:
        """Copy what learning changes: both states."""
        return Bank.snapshot(self)

    def returning(self, snapshot: Any) -> Callable[[], None]:
        """Prepare to restore a snapshot."""
        return Bank.returning(self, snapshot)

    def frozen_state(self) -> tuple[O, Any]:
        """Return the own state, and the frozen state of the wrapped bank."""
        return self.own, self.bank.frozen_state()

    def least_bytes(self, n_features: int, n_classes: int) -> int:
        """Size of both states."""
        return self.own_bytes * n_features + self.bank.least_bytes(n_features, n_classes)

    def validate(self, state: tuple[O, Any]) -> None:
        """Check both states."""
        own, of_bank = state
        self.validate_own(own)
        self.bank.validate(of_bank)

    @read_locked
    def learned(self) -> Learned | None:
        """Return the own state, checked; a file stores the other state with the wrapped bank."""
        if self._own is None:
            return None
        self.validate((self._own, self.bank.state))
        facts = {"shape": list(map(int, started(self.who, self.shape))), "version": self.version}
        return Learned(facts, self._own._asdict())

    def restore(self, learned: Learned, room: int) -> None:
        """Restore the own state from a file; the wrapped bank was restored before."""
        shape = restored_shape(learned)
        least = self.own_bytes * shape.n_features
        if least > room:
            must = f"must fit into a file of {room} bytes"
            raise InputError(self.who, f"a state of {shape.n_features} features", must, f"at least {least}")
        require(learned.facts["version"] == self.version, f"version must be {self.version}")
        own = like(self.blank_own(shape.n_features), learned.arrays)
        inner = self.inner_shape(own, shape)
        if self.bank.shape != inner:
            must, got = f"must have the shape {tuple(inner)}", str(self.bank.shape and tuple(self.bank.shape))
            raise InputError(self.who, "the wrapped bank", must, got)
        self.validate((own, self.bank.state))
        self.install_own(own)
        self._shape = shape
