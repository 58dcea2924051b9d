"""What a booster has learned, in arrays that its kernels change in place."""

from typing import NamedTuple

import numpy as np
from numpy.typing import NDArray

from bayesvote.core.checks import Array
from bayesvote.core.scales import Scales


class BoosterState(NamedTuple):
    """The state of a booster of m members over d features.

    The first axis of every array, left out below, runs over two-class boosters: one for two classes, K
    one-against-rest ones for K > 2; that of ``scales``, which they share, has one place. Arrays that the chosen members
    do not need have no elements.

    Attributes
    ----------
    weights : (1 + d, m)
        Perceptrons: the constant term, then a row per feature.
    totals : (2, m)
        Naive Bayes: the weight of each class that a member has learned.
    stats : (2, 2, d, m)
        Naive Bayes, per class: mean and sum of squared deviations of a continuous feature; of a feature with
        two values so far the weight of the second one, and 0. Features stand as in ``order``.
    overall : (2, d, 1)
        Naive Bayes: the same two numbers over all rows, with the rows' own weights.
    pair : (2, d)
        Naive Bayes: the first two different values of each feature, NaN where not yet seen.
    order : (d,)
        Naive Bayes: the columns, the continuous ones first.
    n_continuous : (1,)
        Naive Bayes: how many features showed more than two values.
    record : (b, m)
        How the members have done so far; each booster's class says what it keeps.
    seen : (1,)
        The sum of the sample weights learned.
    clock : (2,)
        The key of the random draws, and the number of rows learned.
    scales : (5, d)
        Perceptrons that see standardised numbers: what :class:`Scales` has, its ``rows`` in the first place.
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
        """One booster's own arrays, and those that all share."""
        return BoosterState._make(array[k % len(array)] for array in self)

    def known_scales(self) -> Scales:
        """The scales, which change in place."""
        rows, *others = self.scales[0]
        return Scales(rows[:1], *others)

    def part(self, first: int, last: int) -> "BoosterState":
        """Copy the state of one booster's members first to last, and what all members share."""
        pairs = zip(self._fields, self, strict=True)
        return BoosterState._make(
            (array[..., first:last] if name in _OF_MEMBERS else array).copy() for name, array in pairs
        )

    def put(self, part: "BoosterState", first: int, last: int) -> None:
        """Take over such a part again."""
        for name, own, array in zip(self._fields, self, part, strict=True):
            (own[..., first:last] if name in _OF_MEMBERS else own)[...] = array


# Fields whose last axis runs over the members.
_OF_MEMBERS = ("weights", "totals", "stats", "record")

# The boosters by number, as the kernels know them.
OZA, GRADIENT, SMOOTH, SMOOTH_EXPERT, SMOOTH_CONVEX = range(5)


# Votes are summed in groups of this many members; a booster is only split between groups.
GROUP = 16


class Rule(NamedTuple):
    """How a booster works: what its kernels need to know of it, and which of its members they have."""

    kind: int
    gamma: float = 0.0
    pool: int = 1  # members per selector
    n_members: int = 0
    first: int = 0  # of the members at hand
