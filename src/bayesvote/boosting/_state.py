"""State of a booster, in arrays that its kernels change in place."""

from typing import NamedTuple

import numpy as np
from numpy.typing import NDArray

from bayesvote.core.checks import Array
from bayesvote.core.scales import Scales


class BoosterState(NamedTuple):
    """The state of a booster of m members over d features.

    The first axis of every array is left out below. It runs over two-class boosters: one for two classes, K
    one-against-rest boosters for K > 2. They share ``scales``, whose first axis has length 1. Arrays that the chosen
    kind of members does not need are empty.

    Attributes
    ----------
    weights : (1 + d, m)
        Perceptrons: the constant term, then a row per feature.
    totals : (2, m)
        Naive Bayes: the weight that a member has learned of each class.
    stats : (2, 2, d, m)
        Naive Bayes, per class: mean and sum of squared deviations of a continuous feature; weight of the second
        value, and 0, of a feature with at most two values. Features are in the order of ``order``.
    overall : (2, d, 1)
        Naive Bayes: the same two numbers over all rows, by sample weights.
    pair : (2, d)
        Naive Bayes: the first two different values of each feature, NaN where not yet seen.
    order : (d,)
        Naive Bayes: the columns, continuous features first.
    n_continuous : (1,)
        Naive Bayes: number of features with more than two values.
    record : (b, m)
        Performance of the members so far; the class of each booster documents its content.
    seen : (1,)
        The sum of the sample weights learned.
    clock : (2,)
        The key of the random draws, and the number of rows learned.
    scales : (5, d)
        Perceptrons that see standardised rows: the fields of :class:`Scales`, with ``rows`` in the first place.
    """

    weights: Array
    totals: Array
    stats: Array
    overall: Array
    pair: Array
    order: NDArray[np.int64]
    n_continuous: NDArray[np.int64]
    record: Array
    seen: Array
    clock: NDArray[np.uint64]
    scales: Array

    def of_booster(self, k: int) -> "BoosterState":
        """Return the arrays of one booster, and those that all boosters share."""
        return BoosterState._make(array[k % len(array)] for array in self)

    def known_scales(self) -> Scales:
        """Return the scales, as views that change in place."""
        rows, *others = self.scales[0]
        return Scales(rows[:1], *others)

    def part(self, first: int, last: int) -> "BoosterState":
        """Copy the state of one booster's members first to last, and what its members share."""
        pairs = zip(self._fields, self, strict=True)
        return BoosterState._make(
            (array[..., first:last] if name in _OF_MEMBERS else array).copy() for name, array in pairs
        )

    def put(self, part: "BoosterState", first: int, last: int) -> None:
        """Copy the state of such members back."""
        for name, own, array in zip(self._fields, self, part, strict=True):
            (own[..., first:last] if name in _OF_MEMBERS else own)[...] = array


# Fields whose last axis runs over the members.
_OF_MEMBERS = ("weights", "totals", "stats", "record")

# Numbers of the boosters in the kernels.
OZA, GRADIENT, SMOOTH, SMOOTH_EXPERT, SMOOTH_CONVEX = range(5)


# Votes are summed in groups of this many members, two vectors of eight numbers. A booster is divided only between
# groups, so that rounding does not depend on it.
GROUP = 16


class Rule(NamedTuple):
    """Settings of a booster's kernels."""

    kind: int
    gamma: float = 0.0
    pool: int = 1  # members per selector
    n_members: int = 0
    first: int = 0  # number of members before those of the state
