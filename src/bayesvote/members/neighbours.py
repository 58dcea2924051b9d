"""Nearest neighbours among the last rows."""

from collections.abc import Sequence
from dataclasses import dataclass
from typing import NamedTuple

import numpy as np
from numpy.typing import NDArray

from bayesvote.core.checks import MOST_WEIGHT, Array, Labels, integer
from bayesvote.core.rows import Rows, started
from bayesvote.core.state import MOST_ROWS, all_finite, require, within
from bayesvote.core.threads import parallel_for
from bayesvote.members.base import Bank
from bayesvote.members.subsets import agree, random_subsets

BLOCK = 256  # rows are kept in blocks of so many; a slot more each, so that none is lost that one of them looks at
_FARTHEST = 1e15  # of a value, as the kernels have it
_MOST_ROWS = 2**24
_WORTH_SHARING = 400_000  # differences; with fewer, a second thread costs more than it saves


class NeighbourState(NamedTuple):
    """The last rows, in slots that are used again and again: row t is in slot t modulo their number."""

    features: NDArray[np.uint32]  # (k,): those that are compared
    mask: NDArray[np.uint8]  # (d, 1): the same as ones and zeros
    columns: NDArray[np.float32]  # (k, slots)
    weights: Array  # (K, slots): of each row for its own label, and 0 for the others
    seen: NDArray[np.int64]  # (1,): rows kept so far, those that others took the place of included


@dataclass
class NeighbourBank(Bank[NeighbourState]):
    r"""Nearest neighbours: each member asks the nearest of the last rows, of as many as its window holds.

    Of the nearest rows each votes for its label with :math:`1 - d/d_{max}`: the nearer, the more, and the farthest of
    them not at all. With the votes :math:`v_k` of K classes the score is half the log-odds of the probabilities
    :math:`(v_k + 0.3/K) / (v + 0.3)`; for more than two classes, half the log-probability of each.

    Distances are Euclidean, in single precision, and want features of the same scale. A missing value counts as 0.
    Rows of weight zero are scored and not kept; a neighbour's vote is weighed by its row's weight. No member abstains.
    A row costs the longest window times the features that are compared, so these are bounded.

    Parameters
    ----------
    windows : sequence of int
        How many of the last rows each member looks at, in rising order.
    neighbours : int
        How many of them are asked.
    max_features : int
        How many features are compared at most; where there are more, random ones.

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
            raise ValueError(
                f"{self.who}: windows must hold at least one number, rising, up to {_MOST_ROWS}, "
                f"got {list(self.windows)}."
            )
        integer(self.who, "neighbours", self.neighbours)
        integer(self.who, "max_features", self.max_features)
        if self.neighbours > self.windows[0]:
            raise ValueError(
                f"{self.who}: neighbours must be at most the {self.windows[0]} rows of the shortest window, "
                f"got {self.neighbours}."
            )
        self._longs = np.asarray(self.windows, dtype=np.int64)

    @property
    def wants_scaled(self) -> bool:
        """They do."""
        return True

    @property
    def n_members(self) -> int:
        """One for each window."""
        return len(self.windows)

    def member_names(self) -> list[str]:
        """What each member is."""
        return [f"Neighbours of {window} rows" for window in self.windows]

    def init(self, n_features: int, n_classes: int, rng: np.random.Generator) -> NeighbourState:
        """Choose the features; no row is kept."""
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
        state, out = started(self.who, self.state), self.empty_scores(rows.n)
        self._score(rows, np.full(rows.n, state.seen[0]), 0, rows.n, out)
        return self.shaped(out)

    def advance(self, rows: Rows, y: Labels, w: Array) -> Array:
        """Score checked row t before learning row t.

        Whole blocks are kept first: a row is compared with those that came before it, whatever else is kept already.
        """
        from bayesvote.members._neighbour_kernels import keep

        state, out = started(self.who, self.state), self.empty_scores(rows.n)
        y, w = np.ascontiguousarray(y), np.ascontiguousarray(w)
        before = np.empty(rows.n, dtype=np.int64)
        for top in range(0, rows.n, BLOCK):
            end = min(top + BLOCK, rows.n)
            keep(rows, y, w, top, end, state.features, state.columns, state.weights, state.seen, before)
            self._score(rows, before, top, end, out)
        return self.shaped(out)

    def wider(self, n_features: int, rng: np.random.Generator) -> NeighbourState:
        """Compare new features, too, as many as there is room for."""
        old = started(self.who, self.state)
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
        """The size of the slots."""
        return self._slots * (4 * min(self.max_features, n_features) + 8 * n_classes)

    def age(self, state: NeighbourState) -> int:
        """The rows seen."""
        return int(state.seen[0])

    def validate(self, state: NeighbourState) -> None:
        """Refuse features that are none, and slots that do not hold one row each, or hold one before it came."""
        all_finite(state)
        require(agree(state.features[None], state.mask, 1), "features and mask must agree")
        require(within(state.columns, -_FARTHEST * 1.001, _FARTHEST * 1.001), "columns must be of values")
        require(0 <= state.seen[0] <= MOST_ROWS, f"seen must be from 0 to {MOST_ROWS}")
        used = np.arange(self._slots) < state.seen[0]
        require(not np.any(state.columns[:, ~used]), "columns must be 0 where no row is")
        require(within(state.weights, 0, MOST_WEIGHT), f"weights must be from 0 to {MOST_WEIGHT:g}")
        labels = np.count_nonzero(state.weights, axis=0)
        require(np.array_equal(labels, used), "weights must be above 0 for the one label of each row, and only there")

    @property
    def _slots(self) -> int:
        return max(self.windows) + BLOCK

    def _score(self, rows: Rows, before: NDArray[np.int64], first: int, last: int, out: Array) -> None:
        from bayesvote.members._neighbour_kernels import score

        state = started(self.who, self.state)

        def some(start: int, end: int) -> None:
            kept = state.features, state.columns, state.weights
            score(rows, before, first + start, first + end, *kept, self._longs, self.neighbours, out)

        parallel_for(some, last - first, worth=(last - first) * state.columns.size > _WORTH_SHARING)
