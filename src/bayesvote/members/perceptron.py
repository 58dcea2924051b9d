"""Perceptrons, each on its own random features."""

from dataclasses import dataclass
from typing import NamedTuple

import numpy as np
from numpy.typing import NDArray

from bayesvote.core.checks import Array
from bayesvote.core.rows import LARGEST
from bayesvote.core.state import MOST_TOTAL, Arrays, padded, renamed, require, within
from bayesvote.members.linear import LinearMembers

_NO_LIMITS = np.zeros(0)  # a Perceptron's step does not depend on the loss
# Relative slack of the bounds in ``validate``: sums of 2**53 rounded numbers may exceed them by far less than 0.1%.
_SLACK = 1.001


class PerceptronState(NamedTuple):
    """State of a bank of Perceptrons. A member has one score for two classes, else one per class."""

    features: NDArray[np.uint32]  # (m, k): features that each member sees
    mask: NDArray[np.uint8]  # (d, scores): the same features as ones and zeros
    weights: Array  # (d, scores)
    bias: Array  # (scores,)
    past_weights: Array  # (d, scores): sum of each step times the age at which it was made; empty unless averaged
    past_bias: Array
    age: Array  # (scores,): sum of the sample weights that the member has learned


@dataclass
class PerceptronBank(LinearMembers[PerceptronState]):
    """Mistake-driven Perceptrons with a bias (Rosenblatt 1958), each on its own random features.

    A member's score is w.x + b, with the weights from before the row is learned. With y = -1, 1, a row with
    y (w.x + b) <= 0 is a mistake. It adds y x to w and y to b, times its sample weight. With more classes, each class
    has its own weights. If the right class does not score above all others, x is added to its weights and subtracted
    from those of the highest other class (Crammer and Singer 2003).

    Parameters
    ----------
    n_members
        Number of Perceptrons.
    max_features
        Features that each member sees: a fraction, a count, or None for all.
    averaged
        Score with the average of the weights over all learned rows (Freund and Schapire 1999), which is far better on
        noisy data. The plain weights still decide what is a mistake.

    Examples
    --------
    >>> bank = PerceptronBank(n_members=2, max_features=None).start(n_features=1)
    >>> bank.scores_then_learn([[1.0], [1.0], [-1.0]], [1, 1, 0])
    array([[0., 0.],
           [2., 2.],
           [0., 0.]])
    """

    n_members: int = 100
    max_features: float | int | None = 0.5
    averaged: bool = False

    version = 2

    def init(self, n_features: int, n_classes: int, rng: np.random.Generator) -> PerceptronState:
        """Draw the features of each member and set all weights to zero."""
        blank = self.blank_weights(n_features, n_classes, rng)
        n_scores = len(blank.bias)
        past = np.zeros((n_features if self.averaged else 0, n_scores))
        return PerceptronState(*blank, past_weights=past, past_bias=np.zeros(n_scores), age=np.zeros(n_scores))

    def limits(self, n_scores: int) -> tuple[Array, bool]:  # noqa: ARG002
        """Return no limits: a mistake moves the weights by the whole row."""
        return _NO_LIMITS, False

    def scoring(self, state: PerceptronState) -> tuple[Array, Array]:
        """Return the weights and the bias that rows are scored with, which are averages if ``averaged``."""
        if not self.averaged:
            return super().scoring(state)
        age = np.where(state.age > 0, state.age, np.inf)
        return state.weights - state.past_weights / age, state.bias - state.past_bias / age

    @property
    def doubled(self) -> bool:
        """True if there are past weights."""
        return self.averaged

    def wider(self, n_features: int, rng: np.random.Generator) -> PerceptronState:
        """Return a wider state, in which a member sees the same share of the new features as of the old ones."""
        wide = super().wider(n_features, rng)
        return wide._replace(past_weights=padded(wide.past_weights, 0, n_features if self.averaged else 0))

    def validate(self, state: PerceptronState) -> None:
        """Raise an error also for past weights of features that are not seen, and for an impossible age."""
        super().validate(state)
        if len(state.past_weights):
            require(not np.any(state.past_weights[state.mask == 0]), "past_weights must be 0 for features not seen")
        require(within(state.age, 0, MOST_TOTAL), f"age must be from 0 to {MOST_TOTAL:g}")
        if self.averaged:
            # A row moves a weight by at most its sample weight times a value, and the age sums up sample weights.
            step = _SLACK * state.age
            for name, value, most in (
                ("bias", state.bias, step),
                ("past_bias", state.past_bias, step * state.age),
                ("weights", state.weights, step * LARGEST),
                ("past_weights", state.past_weights, step * LARGEST * state.age),
            ):
                require(bool(np.all(np.abs(value) <= most)), f"{name} must be within reach of the age")

    def upgraded(self, version: int, arrays: Arrays) -> Arrays:
        """Return arrays of version 1 under their present names."""
        if version != 1:
            return super().upgraded(version, arrays)
        return renamed(arrays, own="features", uses="mask")
