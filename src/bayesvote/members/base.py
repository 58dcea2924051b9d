"""The contract of a bank: m weak classifiers over d features, scored and taught many rows at a time."""

from typing import Protocol, Self

import numpy as np
from numpy.typing import ArrayLike

from bayesvote._checks import Array
from bayesvote._input import RowsLike


class Bank(Protocol):
    """m weak classifiers over d features.

    Scores are signed, positive for class 1, of shape (n, m); for K > 2 classes one per class, (n, m, K).
    NaN marks a member that abstains on a row.
    """

    @property
    def n_members(self) -> int:
        """How many members the bank holds."""

    def start(self, n_features: int, n_classes: int = 2, rng: np.random.Generator | int | None = None) -> Self:
        """Forget everything and make ready for rows of n_features and labels 0 to n_classes - 1."""

    def scores(self, X: RowsLike) -> Array:
        """Score rows without learning from them."""

    def scores_then_learn(self, X: RowsLike, y: ArrayLike, sample_weight: ArrayLike | None = None) -> Array:
        """Score row t before learning row t; equal to doing so row by row."""
