"""Many Perceptrons, each on its own random features."""

from dataclasses import dataclass
from typing import NamedTuple

import numpy as np
from numpy.typing import NDArray

from bayesvote.core.checks import Array
from bayesvote.core.rows import LARGEST
from bayesvote.core.state import MOST_TOTAL, Arrays, padded, renamed, require, within
from bayesvote.members.linear import LinearMembers

_NO_LIMITS = np.zeros(0)


class PerceptronState(NamedTuple):
    """What a bank of Perceptrons has learned; a member has one score for two classes, else one per class."""

    features: NDArray[np.uint32]  # (m, k): those that each member sees
    mask: NDArray[np.uint8]  # (d, scores): the same as ones and zeros
    weights: Array  # (d, scores)
    bias: Array  # (scores,)
    past_weights: Array  # as weights: each step times the age it was taken at; empty unless averaged
    past_bias: Array
    age: Array  # (scores,): the sample weights the member has learned


@dataclass
class PerceptronBank(LinearMembers[PerceptronState]):
    """Classic mistake-driven Perceptrons with a bias (Rosenblatt 1958), each on its own random features.

    A member's score is w.x + b, with the weights from before the row is learned. With y = -1, 1, a row with
    y (w.x + b) <= 0 is a mistake and adds y x to w and y to b, times its sample weight. With more classes,
    each has weights of its own; when the right class does not score above all others, x is added to its
    weights and subtracted from those of the highest other class (Crammer and Singer 2003).

    Parameters
    ----------
    n_members
        How many Perceptrons.
    max_features
        How many features each sees: a fraction, a count, or None for all.
    averaged
        Score with the average of the weights over all rows learned (Freund and Schapire 1999), far better on
        noisy data. Mistakes are still those of the plain weights.

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
        """None: a mistake moves the weights by the whole row."""
        return _NO_LIMITS, False

    def scoring(self, state: PerceptronState) -> tuple[Array, Array]:
        """Weights and bias that rows are scored with: averages over all rows learned, if so asked."""
        if not self.averaged:
            return super().scoring(state)
        age = np.where(state.age > 0, state.age, np.inf)
        return state.weights - state.past_weights / age, state.bias - state.past_bias / age

    @property
    def doubled(self) -> bool:
        """Whether there are past weights."""
        return self.averaged

    def wider(self, n_features: int, rng: np.random.Generator) -> PerceptronState:
        """Give every member as large a share of the new features as it has of the old ones."""
        wide = super().wider(n_features, rng)
        return wide._replace(past_weights=padded(wide.past_weights, 0, n_features if self.averaged else 0))

    def validate(self, state: PerceptronState) -> None:
        """Refuse past weights of features that are not seen, and rows of negative weight, too."""
        super().validate(state)
        if len(state.past_weights):
            require(not np.any(state.past_weights[state.mask == 0]), "past_weights must be 0 for features not seen")
        require(within(state.age, 0, MOST_TOTAL), f"age must be from 0 to {MOST_TOTAL:g}")
        if self.averaged:
            # A row moves a weight by its sample weight times a value at most, which its age counts.
            step = 1.001 * state.age
            for name, value, most in (
                ("bias", state.bias, step),
                ("past_bias", state.past_bias, step * state.age),
                ("weights", state.weights, step * LARGEST),
                ("past_weights", state.past_weights, step * LARGEST * state.age),
            ):
                require(bool(np.all(np.abs(value) <= most)), f"{name} must be within reach of the age")

    def upgraded(self, version: int, arrays: Arrays) -> Arrays:
        """Version 1 had two other names."""
        if version != 1:
            return super().upgraded(version, arrays)
        return renamed(arrays, own="features", uses="mask")
