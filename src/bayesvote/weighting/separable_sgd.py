"""Stochastic gradient descent (6) on any separable loss, with which Theorem 2 compares Algorithm 1."""

from collections.abc import Callable, Sequence
from dataclasses import dataclass
from functools import cached_property
from typing import Any, NamedTuple

import numpy as np
from numpy.typing import ArrayLike

from bayesvote.core import checks as _checks
from bayesvote.core.checks import Array, InputError, InputTypeError
from bayesvote.core.state import all_finite, require
from bayesvote.losses import LossScale
from bayesvote.weighting.base import Weighter

DIFFERENCE = 6e-6  # relative step of numerical gradients, the cube root of machine epsilon


def _numbers(given: Any) -> Array | None:
    """Return an array of finite numbers; None if the argument is something else."""
    try:
        array = np.asarray(given)
    except ValueError:  # rows of different lengths
        return None
    return array.astype(np.float64) if array.dtype.kind in "iuf" and np.all(np.isfinite(array)) else None


class DescentState(NamedTuple):
    """Weights (m, parameters), and the number of samples of each member."""

    weights: Array
    counts: Array


@dataclass(frozen=True)
class SeparableSGD(Weighter[DescentState]):
    r"""Stochastic gradient descent (6) on a separable loss :math:`\sum_i r(\lambda_i; g_i)` of the user's.

    At the t-th sample the weights go by :math:`-\frac{1}{t} K \nabla \ell`. With the inverse of the expected loss's
    Hessian for K they have the asymptotic covariance (7) of the posterior mean, and with no other K a smaller one
    (Theorem 2). Weights are kept at or above 1e-6, as in :class:`SGD`, which is this for loss (8) and much faster.

    Parameters
    ----------
    loss : callable
        ``loss(weight, g)``, as in :class:`NumericalPosterior`; with two parameters ``loss(first, second, g)``.
    step : float or square matrix
        K: a number, or a row for every parameter of every member, those of the first member first. The symmetric part
        of a matrix must be positive definite, or the weights would go up the loss.
    gradient : callable, optional
        Derivative of the loss in the weight, with the same arguments; for two parameters a pair of derivatives.
        Without it the derivative is taken by central differences, right to some 1e-10 of the larger of the loss and its
        derivative: add no large constant to the loss.
    n_parameters : {1, 2}
        How many parameters a weight has. With two, ``mean`` has the shape (m, 2).
    start : float or sequence of float
        First value of every weight; of every parameter.
    delay : float
        The t-th step is divided by t + delay. It tames the first steps and changes no limit.

    Examples
    --------
    Loss (8), which is what :class:`SGD` has built in:

    >>> weighter = SeparableSGD(lambda weight, g: 0.1 * weight * g - np.log(weight))
    >>> state = weighter.update(weighter.init(2), [[0.1, 0.9], [0.3, 0.7]])
    >>> weighter.mean(state)
    array([2.22625628, 2.1367801 ])
    """

    loss_scale = LossScale.LOG_LIKELIHOOD
    reference = ("step", "n_parameters", "start", "delay")  # the loss is the user's own

    loss: Callable[..., Array]
    step: ArrayLike = 1.0
    gradient: Callable[..., Array | tuple[Array, Array]] | None = None
    n_parameters: int = 1
    start: float | Sequence[float] = 1.0
    delay: float = 0.0

    def __post_init__(self) -> None:
        who = "SeparableSGD"
        if not callable(self.loss) or not (self.gradient is None or callable(self.gradient)):
            must = "must be functions, loss(weight, g) and gradient(weight, g)"
            raise InputTypeError(who, "loss and gradient", must)
        _checks.one_or_two(who, "n_parameters", self.n_parameters)
        if np.isscalar(self.step) or getattr(self.step, "ndim", 2) == 0:
            _checks.positive(who, "step", np.asarray(self.step).item())
        else:
            matrix = _numbers(self.step)
            if matrix is None or matrix.ndim != 2 or matrix.shape[0] != matrix.shape[1] or not matrix.size:
                got = repr(self.step) if matrix is None else str(matrix.shape)
                raise InputError(who, "step", "must be a number or a square matrix of finite numbers", got)
            if np.linalg.eigvalsh(matrix + matrix.T)[0] <= 0:
                raise InputError(who, "the symmetric part of step", "must be positive definite", repr(self.step))
            object.__setattr__(self, "step", tuple(map(tuple, matrix.tolist())))  # so that it compares and hashes
        if isinstance(self.start, Sequence | np.ndarray):
            start = _numbers(self.start)
            if start is None or start.shape != (self.n_parameters,):
                must = f"must hold n_parameters={self.n_parameters} numbers"
                raise InputError(who, "start", must, repr(self.start))
            object.__setattr__(self, "start", tuple(start.tolist()))
        for value in self._start:
            _checks.positive(who, "start", float(value))
        _checks.positive(who, "delay", self.delay, zero=True)

    @property
    def _start(self) -> Array:
        return np.atleast_1d(np.asarray(self.start, dtype=np.float64))

    @cached_property
    def _matrix(self) -> Array:
        return np.asarray(self.step, dtype=np.float64)

    def init(self, n_members: int) -> DescentState:
        """Return the state before any sample."""
        _checks.integer("SeparableSGD.init", "n_members", n_members)
        n = n_members * self.n_parameters
        if self._matrix.ndim == 2 and len(self._matrix) != n:
            raise InputError("SeparableSGD.init", "step", f"must have the shape ({n}, {n})", str(self._matrix.shape))
        start = np.broadcast_to(self._start, (n_members, self.n_parameters))
        return DescentState(start.copy(), np.zeros(n_members))

    def n_members(self, state: DescentState) -> int:
        """Return the number of members of the state."""
        return len(state.counts)

    def least_bytes(self, n_members: int) -> int:
        """The size of the weights."""
        return 8 * n_members * self.n_parameters

    def validate(self, state: DescentState) -> None:
        """Refuse weights below the floor and negative counts."""
        from bayesvote.weighting._gradient_kernels import FLOOR

        all_finite(state)
        require(not np.any(state.weights < min(FLOOR, self._start.min())), "weights must be above 0")
        require(not np.any(state.counts < 0) and not np.any(state.counts % 1), "counts must be whole numbers")

    def mean(self, state: DescentState) -> Array:
        """Weights of the members."""
        return np.asarray(state.weights[:, 0] if self.n_parameters == 1 else state.weights).copy()

    def terms(self, weights: Array, G: Array) -> Array:
        """The user's loss at the weights."""
        parameters = (weights,) if self.n_parameters == 1 else (weights[..., 0], weights[..., 1])
        answers = ~np.isnan(G)
        return np.where(answers, self.loss(*parameters, np.where(answers, G, 1.0)), np.nan)

    def _update(self, state: DescentState, g: Array, w: Array) -> DescentState:
        from bayesvote.weighting._gradient_kernels import FLOOR

        weights, counts = state.weights.copy(), state.counts.copy()
        for row, sample_weight in zip(g, w, strict=True):
            if sample_weight == 0:
                continue
            answers = ~np.isnan(row)
            slope = np.zeros(weights.shape)
            slope[answers] = sample_weight * self._gradient(weights[answers], row[answers])
            if self._matrix.ndim == 0:
                change = self._matrix * slope
            else:  # not by BLAS: its bits depend on the number of threads
                change = (self._matrix * slope.ravel()).sum(axis=1).reshape(slope.shape)
            counts += answers
            moved = weights[answers] - change[answers] / (counts[answers, None] + self.delay)
            weights[answers] = np.maximum(moved, FLOOR)
        return DescentState(weights, counts)

    def _pair(self, given: Any, g: Array) -> list[Any]:
        """Both derivatives; one array for both must have a row for each, or two members' would pass for a pair."""
        if isinstance(given, tuple | list) and len(given) == 2:
            return list(given)
        if np.shape(given) == (2, *g.shape):
            return list(np.asarray(given))
        must = f"must return a pair of derivatives, each of shape {g.shape}"
        raise InputError("SeparableSGD", "gradient", must, f"{type(given).__name__} of shape {np.shape(given)}")

    def _gradient(self, weights: Array, g: Array) -> Array:
        """Derivatives (m, parameters) of the loss at the weights."""
        if self.gradient is not None:
            given = self.gradient(*weights.T, g)
            parts = [given] if self.n_parameters == 1 else self._pair(given, g)
        else:
            parts = []
            for k in range(self.n_parameters):
                step = np.zeros(weights.shape)
                step[:, k] = DIFFERENCE * weights[:, k]
                rise = self.loss(*(weights + step).T, g) - self.loss(*(weights - step).T, g)
                parts.append(rise / (2 * step[:, k]))
        out = np.stack([np.broadcast_to(part, g.shape) for part in parts], axis=1).astype(np.float64)
        if not np.all(np.isfinite(out)):
            do = "Shorten the step, raise the delay, or check that the loss is finite at these losses g."
            raise InputError("SeparableSGD", "the gradient", "must be finite", str(out[~np.isfinite(out)][0]), do)
        return out
