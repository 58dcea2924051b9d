"""Nearest neighbours among the most recent rows."""

from collections.abc import Sequence
from dataclasses import dataclass
from typing import NamedTuple

import numpy as np
from numpy.typing import NDArray

from bayesvote.core.checks import MOST_WEIGHT, Array, InputError, Labels, integer
from bayesvote.core.rows import Rows
from bayesvote.core.state import MOST_ROWS, all_finite, require, within
from bayesvote.core.threads import parallel_for
from bayesvote.members.base import Bank
from bayesvote.members.subsets import agree, random_subsets

# Rows are kept in blocks of 256, and each block is scored after it is kept. There are as many slots more than the
# longest window has rows, so that no row is overwritten that the block still has to look at.
BLOCK = 256
_FARTHEST = 1e15  # as in the kernels: larger values are clipped, so that squared distances stay finite
_SLACK = 1.001  # of a bound on numbers in single precision, which rounds by one part in ten million
_MOST_ROWS = 2**24  # of a window: slots are numbered by 32-bit integers, and a row of 64 features takes 256 bytes
_WORTH_SHARING = 400_000  # differences; with fewer, starting a second thread costs more time than it saves


class NeighbourState(NamedTuple):
    """The most recent rows in a ring buffer: row t is in slot t modulo the number of slots."""

    features: NDArray[np.uint32]  # (k,): features that are compared
    mask: NDArray[np.uint8]  # (d, 1): the same features as ones and zeros
    columns: NDArray[np.float32]  # (k, slots)
    weights: Array  # (K, slots): weight of each row at its label, and 0 at the other labels
    seen: NDArray[np.int64]  # (1,): number of rows kept so far, including overwritten ones


@dataclass
class NeighbourBank(Bank[NeighbourState]):
    r"""Nearest neighbours: each member searches a window of the most recent rows.

    Each of the nearest rows votes for its label with :math:`1 - d/d_{max}`, so that nearer rows count more, and the
    farthest of them has no vote. With votes :math:`v_k` for K classes, the score is half the log-odds of the
    probabilities :math:`(v_k + 0.3/K) / (v + 0.3)`. With more than two classes it is half the log-probability of each.

    Distances are Euclidean, in single precision, and need features of similar scale. A missing value counts as 0.
    Rows of weight 0 are scored but not kept. The weight of a row multiplies its vote. No member abstains. The cost of
    a row is the longest window times the number of compared features, so this number is limited.

    Parameters
    ----------
    windows : sequence of int
        Number of recent rows that each member searches, in increasing order.
    neighbours : int
        Number of nearest rows that vote.
    max_features : int
        Maximum number of compared features. If there are more, random ones are compared.

    Examples
    --------
    >>> import numpy as np
    >>> X = np.random.default_rng(0).normal(size=(500, 2))
    >>> y = (X[:, 0] * X[:, 1] > 0).astype(int)
    >>> bank = NeighbourBank(windows=[50, 400]).start(n_features=2, rng=0)
    >>> scores = bank.scores_then_learn(X, y)
    >>> np.mean((scores[100:] > 0) == y[100:, None], axis=0).round(2)
    array([0.89, 0.94])
    """

    windows: Sequence[int] = (256, 1024)
    neighbours: int = 5
    max_features: int = 64

    def __post_init__(self) -> None:
        """Check the configuration."""
        for window in self.windows:
            integer(self.who, "windows", window)
        rising = list(self.windows) == sorted(set(self.windows))
        if not self.windows or not rising or self.windows[-1] > _MOST_ROWS:
            must = f"must hold at least one number, in increasing order, up to {_MOST_ROWS}"
            raise InputError(self.who, "windows", must, str(list(self.windows)))
        integer(self.who, "neighbours", self.neighbours)
        integer(self.who, "max_features", self.max_features)
        if self.neighbours > self.windows[0]:
            must = f"must be at most the {self.windows[0]} rows of the shortest window"
            raise InputError(self.who, "neighbours", must, str(self.neighbours))
        self._longs = np.asarray(self.windows, dtype=np.int64)

    @property
    def wants_scaled(self) -> bool:
        """True: all features count equally in a distance."""
        return True

    @property
    def n_members(self) -> int:
        """Number of members: one per window."""
        return len(self.windows)

    def member_names(self) -> list[str]:
        """Names of the members."""
        return [f"Neighbours of {window} rows" for window in self.windows]

    def init(self, n_features: int, n_classes: int, rng: np.random.Generator) -> NeighbourState:
        """Choose the features to compare; no row is kept yet."""
        k, slots = min(self.max_features, n_features), self._slots
        mask = random_subsets(n_features, 1, k, rng)
        return NeighbourState(
            features=np.flatnonzero(mask).astype(np.uint32),
            mask=mask.T.astype(np.uint8, order="C"),
            columns=np.zeros((k, slots), dtype=np.float32),
            weights=np.zeros((n_classes, slots)),
            seen=np.zeros(1, dtype=np.int64),
        )

    def score(self, rows: Rows) -> Array:
        """Score checked rows."""
        state, out = self.current_state, self.empty_scores(rows.n)
        self._score(state, rows, np.full(rows.n, state.seen[0]), 0, rows.n, out)
        return self.shaped(out)

    def advance(self, rows: Rows, y: Labels, w: Array) -> Array:
        """Score checked row t before learning row t.

        A whole block is kept before it is scored. Each row is compared only with the rows that came before it.
        """
        from bayesvote.members._neighbour_kernels import keep

        state, out = self.current_state, self.empty_scores(rows.n)
        y, w = np.ascontiguousarray(y), np.ascontiguousarray(w)
        before = np.empty(rows.n, dtype=np.int64)
        for top in range(0, rows.n, BLOCK):
            end = min(top + BLOCK, rows.n)
            keep(rows, y, w, top, end, state.features, state.columns, state.weights, state.seen, before)
            self._score(state, rows, before, top, end, out)
        return self.shaped(out)

    def wider(self, n_features: int, rng: np.random.Generator) -> NeighbourState:
        """Return a wider state, in which new features are compared up to ``max_features``."""
        old = self.current_state
        d, k = len(old.mask), len(old.features)
        more = min(n_features - d, self.max_features - k)
        mask = np.zeros((n_features, 1), dtype=np.uint8)
        mask[:d] = old.mask
        if more <= 0:
            return old._replace(mask=mask)
        mask[d:, 0] = random_subsets(n_features - d, 1, more, rng)[0]
        columns = np.concatenate([old.columns, np.zeros((more, self._slots), dtype=np.float32)])
        return old._replace(features=np.flatnonzero(mask).astype(np.uint32), mask=mask, columns=columns)

    def least_bytes(self, n_features: int, n_classes: int) -> int:
        """Size of the slots."""
        return self._slots * (4 * min(self.max_features, n_features) + 8 * n_classes)

    def age(self, state: NeighbourState) -> int:
        """Number of rows kept so far."""
        return int(state.seen[0])

    def validate(self, state: NeighbourState) -> None:
        """Raise an error for invalid features, and for slots that do not hold one row each."""
        all_finite(state)
        require(agree(state.features[None], state.mask, 1), "features and mask must agree")
        require(within(state.columns, -_SLACK * _FARTHEST, _SLACK * _FARTHEST), "columns must be of values")
        require(0 <= state.seen[0] <= MOST_ROWS, f"seen must be from 0 to {MOST_ROWS}")
        used = np.arange(self._slots) < state.seen[0]
        require(not np.any(state.columns[:, ~used]), "columns must be 0 where no row is")
        require(within(state.weights, 0, MOST_WEIGHT), f"weights must be from 0 to {MOST_WEIGHT:g}")
        labels = np.count_nonzero(state.weights, axis=0)
        require(np.array_equal(labels, used), "weights must be above 0 for the one label of each row, and only there")

    @property
    def _slots(self) -> int:
        return max(self.windows) + BLOCK

    def _score(
        self, state: NeighbourState, rows: Rows, before: NDArray[np.int64], first: int, last: int, out: Array
    ) -> None:
        from bayesvote.members._neighbour_kernels import score

        given = state.features, state.columns, state.weights, self._longs, self.neighbours, out
        if (last - first) * state.columns.size > _WORTH_SHARING:
            parallel_for(lambda start, end: score(rows, before, first + start, first + end, *given), last - first)
        else:
            score(rows, before, first, last, *given)
