"""A bank and a weighter as a newcomer would write them: one file each, and one line in a table."""

from dataclasses import dataclass
from typing import NamedTuple

import numpy as np

from bayesvote._checks import Array, Labels
from bayesvote._input import Rows, started
from bayesvote._parts import all_finite, padded, require
from bayesvote.losses import LossScale
from bayesvote.members import Bank
from bayesvote.weighting import Weighter


class CentroidState(NamedTuple):
    features: Labels  # (m,)
    weight: Array  # (K,)
    sums: Array  # (K, d)


@dataclass
class CentroidBank(Bank[CentroidState]):
    """Each member looks at one feature, and scores a class by how near its mean is; a row with NaN is abstained on."""

    n_members: int = 100

    def fresh(self, n_features: int, n_classes: int, rng: np.random.Generator) -> CentroidState:
        features = rng.integers(n_features, size=self.n_members)
        return CentroidState(features, np.zeros(n_classes), np.zeros((n_classes, n_features)))

    def score(self, rows: Rows) -> Array:
        return np.concatenate([self._row(x) for x in rows.todense()]) if rows.n else self._row(np.zeros(rows.width))[:0]

    def advance(self, rows: Rows, y: Labels, w: Array) -> Array:
        state = started(self.who, self.state)
        out = [self._row(np.zeros(rows.width))[:0]]
        for x, k, weight in zip(rows.todense(), y, w, strict=True):
            out.append(self._row(x))
            if weight and not np.isnan(x).any():
                state.weight[k] += weight
                state.sums[k] += weight * x
        return np.concatenate(out)

    def _row(self, x: Array) -> Array:
        state = started(self.who, self.state)
        means = state.sums / np.maximum(state.weight, 1e-9)[:, None]
        near = -np.abs(x - means).T[state.features]  # (m, K)
        scores = near[:, 1] - near[:, 0] if len(state.weight) == 2 else near
        return scores[None] + (np.nan if np.isnan(x).any() else 0.0)

    def wider(self, n_features: int, rng: np.random.Generator) -> CentroidState:  # noqa: ARG002
        state = started(self.who, self.state)
        return state._replace(sums=padded(state.sums, 1, n_features))

    def least_bytes(self, n_features: int, n_classes: int) -> int:
        return 8 * (self.n_members + n_features * n_classes)

    def check_state(self, state: CentroidState) -> None:
        all_finite(state)
        d = state.sums.shape[1]
        require(bool(np.all((state.features >= 0) & (state.features < d))), f"features must be from 0 to {d - 1}")
        require(not np.any(state.weight < 0), "weight must be at least 0")


class BestState(NamedTuple):
    mistakes: Array  # (m,)


@dataclass(frozen=True)
class FollowTheBest(Weighter[BestState]):
    """All the weight to the members of the least sum of losses so far."""

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
        for row, weight in zip(np.nan_to_num(g), w, strict=True):  # one by one, so that chunks change nothing
            mistakes = mistakes + weight * row
        return BestState(mistakes)

    def check_state(self, state: BestState) -> None:
        all_finite(state)
        require(not np.any(state.mistakes < 0), "mistakes must be at least 0")
