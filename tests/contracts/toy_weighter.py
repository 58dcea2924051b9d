"""Weights that follow the member with the lowest loss."""

from dataclasses import dataclass
from typing import NamedTuple

import numpy as np

from bayesvote.core.checks import Array
from bayesvote.core.state import all_finite, require
from bayesvote.losses import LossScale
from bayesvote.weighting.base import Weighter


class BestState(NamedTuple):
    """The learned state."""

    mistakes: Array  # (m,)


@dataclass(frozen=True)
class FollowTheBest(Weighter[BestState]):
    """Equal weights for the members with the lowest sum of losses so far, and 0 for all others."""

    loss_scale = LossScale.SHARE

    def init(self, n_members: int) -> BestState:
        return BestState(np.zeros(n_members))

    def n_members(self, state: BestState) -> int:
        return len(state.mistakes)

    def mean(self, state: BestState) -> Array:
        best = state.mistakes == state.mistakes.min()
        return np.asarray(best / best.sum())

    def terms(self, weights: Array, G: Array) -> Array:
        return weights * G

    def _update(self, state: BestState, g: Array, w: Array) -> BestState:
        mistakes = state.mistakes
        for row, weight in zip(np.nan_to_num(g), w, strict=True):  # row by row, so that chunks give the same bits
            mistakes = mistakes + weight * row
        return BestState(mistakes)

    def validate(self, state: BestState) -> None:
        all_finite(state)
        require(not np.any(state.mistakes < 0), "mistakes must be at least 0")
