"""A bank of nearest centroids, with one feature per member."""

from dataclasses import dataclass
from typing import NamedTuple

import numpy as np

from bayesvote.core.checks import Array, Labels
from bayesvote.core.rows import Rows, started
from bayesvote.core.state import all_finite, padded, require, within
from bayesvote.members.base import Bank


class CentroidState(NamedTuple):
    """The learned state."""

    features: Labels  # (m,)
    weight: Array  # (K,)
    sums: Array  # (K, d)


@dataclass
class CentroidBank(Bank[CentroidState]):
    """Each member sees one feature and prefers the class with the nearest mean. It abstains on rows with NaN."""

    n_members: int = 100

    def init(self, n_features: int, n_classes: int, rng: np.random.Generator) -> CentroidState:
        features = rng.integers(n_features, size=self.n_members)
        return CentroidState(features, np.zeros(n_classes), np.zeros((n_classes, n_features)))

    def score(self, rows: Rows) -> Array:
        return self.advance(rows, np.zeros(rows.n, dtype=np.intp), np.zeros(rows.n))

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

    def validate(self, state: CentroidState) -> None:
        all_finite(state)
        d = state.sums.shape[1]
        require(within(state.features, 0, d - 1), f"features must be from 0 to {d - 1}")
        require(not np.any(state.weight < 0), "weight must be at least 0")
