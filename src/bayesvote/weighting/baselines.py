"""Baselines of the paper: uniform voting, and stochastic gradients on the same loss (8)."""

from abc import abstractmethod
from dataclasses import dataclass
from typing import ClassVar, NamedTuple

import numpy as np

from bayesvote.core import checks as _checks
from bayesvote.core.checks import Array, InputError, Labels
from bayesvote.core.state import all_finite, require
from bayesvote.losses import LossScale
from bayesvote.weighting.base import LinearRule, Weighter


class FieldState(NamedTuple):
    """A row of numbers per field and a column per member; the first field holds the weights."""

    fields: Array


class _Linear(LinearRule, Weighter[FieldState]):
    """Weights that vote by rule (12)."""

    loss_scale = LossScale.SHARE
    _start: ClassVar[tuple[float, ...]]  # first value of every field

    def init(self, n_members: int) -> FieldState:
        """Return the state before any sample."""
        _checks.integer(f"{self.who}.init", "n_members", n_members)
        return FieldState(np.repeat(np.array(self._start)[:, None], n_members, axis=1))

    def n_members(self, state: FieldState) -> int:
        """Return the number of members of the state."""
        return int(state.fields.shape[1])

    def mean(self, state: FieldState) -> Array:
        """Return the weights of the members."""
        return np.asarray(state.fields[0].copy())


@dataclass(frozen=True)
class Voting(_Linear):
    """Uniform voting: every member has the same weight.

    Examples
    --------
    >>> weighter = Voting()
    >>> weighter.losses(weighter.init(3), [[[0.1, 0.2, 0.9], [0.9, 0.8, 0.1]]])
    array([[1.2, 1.8]])
    """

    _start: ClassVar[tuple[float, ...]] = (1.0,)

    def _update(self, state: FieldState, g: Array, w: Array) -> FieldState:  # noqa: ARG002
        return state

    def validate(self, state: FieldState) -> None:
        """Reject weights that are not 1."""
        require(bool(np.all(state.fields == 1)), "weights must be 1")

    def merge(self, a: FieldState, b: FieldState) -> FieldState:
        """Return either state, because voting learns nothing."""
        if a.fields.shape != b.fields.shape:
            must, got = "must be about the same members", f"{self.n_members(a)} and {self.n_members(b)}"
            raise InputError("Voting.merge", "states", must, got)
        return a

    def advance(
        self,
        state: FieldState,
        G: Array,
        y: Labels,  # noqa: ARG002
        w: Array,  # noqa: ARG002
    ) -> tuple[Array, FieldState]:
        """Do what ``losses_then_update`` does for checked input, in place."""
        return self.losses_at(self.mean(state), G), state


class _Gradient(_Linear):
    """Stochastic gradient steps on (8); weights start at 1 and are projected onto [1e-6, inf)."""

    theta: float

    @property
    def _scale(self) -> float:
        return self.theta

    @property
    @abstractmethod
    def _kind(self) -> int: ...

    @property
    @abstractmethod
    def _size(self) -> float: ...

    def validate(self, state: FieldState) -> None:
        """Reject weights below the floor, and counts that are negative or not whole."""
        from bayesvote.weighting._gradient_kernels import FLOOR

        all_finite(state)
        require(not np.any(state.fields[0] < FLOOR) and not np.any(self.mean(state) < FLOOR), "weights must be above 0")
        require(not np.any(state.fields[1] < 0) and not np.any(state.fields[1] % 1), "counts must be whole numbers")

    def _update(self, state: FieldState, g: Array, w: Array) -> FieldState:
        return self.advance(state, g[:, None], np.zeros(len(g), dtype=np.intp), w)[1]

    def advance(self, state: FieldState, G: Array, y: Labels, w: Array) -> tuple[Array, FieldState]:
        """Do what ``losses_then_update`` does for checked input, in place."""
        from bayesvote.weighting._gradient_kernels import stream

        out = np.empty(G.shape[:2])
        stream(self._kind, state.fields, G, y, w, self._size, self.theta, out)
        return out, state


@dataclass(frozen=True)
class _Stepped(_Gradient):
    """Steps that do not depend on the length of the stream."""

    step: float = 1.0
    theta: float = 0.1

    def __post_init__(self) -> None:
        _checks.positive(self.who, "step", self.step)
        _checks.positive(self.who, "theta", self.theta)

    @property
    def _size(self) -> float:
        return self.step


@dataclass(frozen=True)
class SGD(_Stepped):
    r"""Stochastic gradient descent (14) with the step :math:`\gamma/t`.

    Parameters
    ----------
    step : float
        The constant gamma. Only at ``theory.best_step`` is the variance as small as that of the posterior mean.
    theta : float
        As in :class:`GammaRate`.

    Examples
    --------
    >>> weighter = SGD()
    >>> state = weighter.update(weighter.init(2), [[0.1, 0.9], [0.3, 0.7]])
    >>> weighter.mean(state)
    array([2.22625628, 2.1367801 ])
    """

    _start: ClassVar[tuple[float, ...]] = (1.0, 0.0)
    _kind: ClassVar[int] = 0


@dataclass(frozen=True)
class AveragedSGD(_Stepped):
    r"""Polyak-Juditsky averaging: the mean of the iterates of SGD with the longer steps :math:`\gamma t^{-3/4}`.

    The power 3/4 is halfway between 1/2 and 1. Any power between these gives the asymptotic variance (15) of the
    posterior mean; the number of samples it takes depends on gamma.
    """

    _start: ClassVar[tuple[float, ...]] = (1.0, 0.0, 1.0)
    _kind: ClassVar[int] = 1

    def mean(self, state: FieldState) -> Array:
        """Return the averaged weights."""
        return np.asarray(state.fields[2].copy())


@dataclass(frozen=True)
class SAG(_Gradient):
    r"""Stochastic average gradient (Schmidt et al. 2013): steps along the mean of the last gradient of every sample.

    In one pass every sample's gradient is computed once, and later ones count as 0. So the length of the stream must be
    known.

    Parameters
    ----------
    step : float
        Length of the step along the mean gradient.
    horizon : int
        Number of rows in the stream, which must be given; further rows are an error.
    theta : float
        As in :class:`GammaRate`.
    """

    step: float = 1.0
    horizon: int = 0
    theta: float = 0.1

    _start: ClassVar[tuple[float, ...]] = (1.0, 0.0, 0.0, 0.0)
    _kind: ClassVar[int] = 2

    def __post_init__(self) -> None:
        _checks.positive("SAG", "step", self.step)
        _checks.integer("SAG", "horizon", self.horizon)
        _checks.positive("SAG", "theta", self.theta)

    @property
    def _size(self) -> float:
        return self.step / self.horizon

    def validate(self, state: FieldState) -> None:
        """Reject more rows than the horizon, too."""
        super().validate(state)
        rows = state.fields[3]
        require(bool(np.all(rows == rows[0])) and 0 <= rows[0] <= self.horizon, "rows must be within the horizon")

    def check_room(self, state: FieldState, w: Array) -> None:
        """Raise an error if the rows exceed the horizon."""
        rows = int(state.fields[3, 0]) + int(np.count_nonzero(w))
        if rows > self.horizon:
            must = f"must not be longer than horizon={self.horizon} rows"
            raise InputError("SAG", "the stream", must, str(rows), "Pass the whole length of the stream as horizon.")

    def advance(self, state: FieldState, G: Array, y: Labels, w: Array) -> tuple[Array, FieldState]:
        """Do what ``losses_then_update`` does, and count the rows that are learned."""
        out, after = super().advance(state, G, y, w)
        after.fields[3] += np.count_nonzero(w)
        return out, after
