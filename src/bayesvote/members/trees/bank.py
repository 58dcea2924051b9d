"""A bank of trees: some from the first rows, some from recent ones, and members refined over the leaves of all."""

from collections.abc import Callable, Sequence
from dataclasses import dataclass
from functools import partial
from typing import Any

import numpy as np

from bayesvote.core.checks import Array, Labels, integer, positive
from bayesvote.core.rows import Rows, started
from bayesvote.core.state import Arrays, Shape
from bayesvote.core.threads import parallel_for
from bayesvote.members.attribution import Attribution
from bayesvote.members.base import Bank
from bayesvote.members.trees.attribution import attributions, kept_rows
from bayesvote.members.trees.state import (
    BLOCK,
    Longs,
    Settings,
    Sizes,
    TreeState,
    check,
    empty,
    least_bytes,
    sizes_of,
    without_rows,
    without_zeros,
)

_FIRST_GROWTH = 4  # rows
_OFTEN_UNTIL = 500  # rows; trees are grown anew whenever there are half as many rows again
_SELDOM_FROM = 1000  # rows; then whenever they have doubled
_MOST_ROWS = 2**24  # kept
_MOST_NODES = 2**30
_MOST_RATES = 64
_LEAST_BYTES = 2**16
_WORTH_SHARING = 16  # rows; below, starting threads costs more than they save


@dataclass
class TreeBank(Bank[TreeState]):
    """Trees grown online from rows that are kept, and members refined over their leaves.

    A tree is grown breadth first from rows that are kept: a node asks the best, by Gini impurity, of 16 random
    questions "is feature j at most t?", until its rows are of one class. A leaf with class weights n_k scores half
    the log-odds of its probabilities, ``(n_k + 0.3 q_k) / (n + 0.3)``, q being those of its parent when it was split;
    for more than two classes, half the log-probability of each. A missing value goes to the side on which it told most.

    - ``n_trees`` trees are of the first rows. They are grown again from all rows as these become more, for the last
      time from ``rows_kept``. From then on their leaves split one by one: a leaf keeps counts for eight random cuts,
      and splits when one of them tells enough.
    - ``recent`` trees are of the last rows, and so follow a change: ``(window, count, every)`` means ``count``
      trees, each from the last ``window`` rows, one of them grown again after ``every`` rows, in turn.
    - ``refined`` members are logistic regressions (softmax, for more classes) on the leaves that a row falls into
      in all trees, by AdaGrad with these rates: what the trees say together, corrected row by row. A leaf has one sum
      of squared gradients for each rate, over all classes.

    No row waits for a tree to be grown. Each row grows a few nodes of the new tree. The tree replaces the old one when
    it is complete and has counted the rows that arrived in the meantime.

    Features are kept and compared in single precision: values of a feature that differ by less than one part in
    ten million are the same. A feature counts from the row on in which it is first other than 0. Rows of weight zero
    are scored and otherwise ignored; weights beyond 1e12, or below its inverse, count as that. No member abstains.

    Parameters
    ----------
    n_trees : int
        Trees of the first rows.
    recent : sequence of (window, count, every)
        Groups of trees of recent rows.
    refined : sequence of float
        Rates of the refined members.
    rows_kept : int
        Rows that trees are grown from. They take 5 bytes a row and feature.
    max_nodes : int
        Nodes that a tree may have. A node needs about 40 bytes, 2 for each class, and 12 for each class that occurred
        there. A leaf that keeps growing needs 100 more, and 70 for each class that occurred since. A leaf that refined
        members visited needs 4 for each of them and each class, and 4 more for each of them; with two classes 8.
    max_features : int
        Features that trees may ask about: the first that are seen to be other than 0.
    max_bytes : int or None
        Memory that rows, trees and refined members may need together, at least 65,536 bytes. Near the bound, trees
        give up the splits and candidates that are worth least, and keep growing where it matters more. The memory is
        checked after every 256 rows learned. Rows take at most half of it: trees ask about the first features that
        fit. None means no bound.

    Examples
    --------
    >>> import numpy as np
    >>> X = np.random.default_rng(0).normal(size=(500, 2))
    >>> y = (X[:, 0] * X[:, 1] > 0).astype(int)
    >>> bank = TreeBank(n_trees=8, recent=[(128, 2, 64)], refined=[10.0]).start(n_features=2, rng=0)
    >>> scores = bank.scores_then_learn(X, y)
    >>> scores.shape
    (500, 11)
    >>> float(np.mean((scores[100:, -1] > 0) == y[100:])) > 0.9
    True
    """

    n_trees: int = 32
    recent: Sequence[Sequence[int]] = ((2048, 6, 256), (512, 10, 64))
    refined: Sequence[float] = (1.0, 3.0, 10.0, 20.0)
    rows_kept: int = 8192
    max_nodes: int = 16384
    max_features: int = 4096
    max_bytes: int | None = None

    version = 2

    def __post_init__(self) -> None:
        """Check the configuration."""
        who = type(self).__name__
        integer(who, "n_trees", self.n_trees, least=0)
        integer(who, "rows_kept", self.rows_kept, least=_FIRST_GROWTH)
        integer(who, "max_nodes", self.max_nodes)
        integer(who, "max_features", self.max_features)
        for name, most in (("rows_kept", _MOST_ROWS), ("max_nodes", _MOST_NODES)):
            if getattr(self, name) > most:
                raise ValueError(f"{who}: {name} must be at most {most}, got {getattr(self, name)}.")
        if self.max_bytes is not None:
            integer(who, "max_bytes", self.max_bytes, least=_LEAST_BYTES)
        for group in self.recent:
            if not isinstance(group, Sequence) or len(group) != 3:
                raise ValueError(f"{who}: recent must hold groups (window, count, every), got {group!r}.")
            for name, value in zip(("window", "count", "every"), group, strict=True):
                integer(who, f"{name} of recent trees", value)
            if not _FIRST_GROWTH <= group[0] <= self.rows_kept:
                raise ValueError(
                    f"{who}: window of recent trees must be from {_FIRST_GROWTH} to rows_kept = {self.rows_kept}, "
                    f"got {group[0]}. Keep more rows, or take a shorter window."
                )
        for rate in self.refined:
            positive(who, "rates of refined members", rate)
        if len(self.refined) > _MOST_RATES:
            raise ValueError(
                f"{who}: refined must hold at most {_MOST_RATES} rates, got {len(self.refined)}. Leave some out."
            )
        if self.total_trees == 0:
            raise ValueError(f"{who}: there must be a tree, got n_trees=0 and no recent ones.")
        self._forest: Any = None

    @property
    def total_trees(self) -> int:
        """How many trees there are, of the first rows and of recent ones."""
        return self.n_trees + sum(group[1] for group in self.recent)

    @property
    def n_members(self) -> int:
        """All trees, and the refined members after them."""
        return self.total_trees + len(self.refined)

    def member_names(self) -> list[str]:
        """What each member is."""
        recent = [f"Tree of {window} rows" for window, count, _ in self.recent for _ in range(count)]
        return ["Tree"] * self.n_trees + recent + [f"Refined({rate:g})" for rate in self.refined]

    @property
    def state(self) -> TreeState | None:
        """What was learned, without room to spare; None before the start."""
        with self.read_lock():
            return None if self._forest is None else TreeState(phases=self._phases, **self._forest.state())

    def ready(self, state: TreeState, shape: Shape) -> Callable[[], None]:
        """Make a forest of a state."""
        from bayesvote.members.trees._tree_kernels import Forest

        forest = Forest(self._settings(shape, state.phases), state)

        def take_over() -> None:
            self._forest, self._phases, self._shape = forest, state.phases, shape

        return take_over

    def snapshot(self) -> TreeState | None:
        """The state, which is a copy already."""
        return self.state

    def init(self, n_features: int, n_classes: int, rng: np.random.Generator) -> TreeState:
        """Trees that are one leaf each."""
        m = self.total_trees
        phases = rng.permutation(m)
        settings = self._settings(Shape(n_features, n_classes), phases)
        return empty(settings, Sizes(m))._replace(
            phases=phases,
            column_of=np.full(n_features, -1, dtype=np.int32),
            random=rng.integers(2**64, size=m, dtype=np.uint64),
            sizes=np.ones(m, dtype=np.int64),
            columns=np.full(m, -1, dtype=np.int32),
        )

    def score(self, rows: Rows) -> Array:
        """Score checked rows."""
        forest, out = started(self.who, self._forest), self.empty_scores(rows.n)
        parallel_for(lambda first, last: forest.score(rows, first, last, out), rows.n, worth=rows.n >= _WORTH_SHARING)
        return self.shaped(out)

    def advance(self, rows: Rows, y: Labels, w: Array) -> Array:
        """Score checked row t before learning row t."""
        forest, out = started(self.who, self._forest), self.empty_scores(rows.n)
        top = 0
        while top < rows.n:
            end = forest.take(rows, y, w, top, min(top + BLOCK, rows.n))
            # Trees do not know of each other: each thread takes the next one, until there is none.
            trees = partial(self._advance_trees, top, out)
            parallel_for(trees, self.total_trees, worth=end - top >= _WORTH_SHARING)
            if self.refined:
                forest.refine(top, out)
            forest.prune()
            top = end
        return self.shaped(out)

    def attributions(self, rows: Rows, coefficients: Array, shares: Array) -> Attribution:
        """Share out scores over the features asked on a row's way down; the start is what the roots say."""
        return attributions(started(self.who, self.state), rows, coefficients, shares)

    def kept_rows(self) -> Array | None:
        """The last rows of the stream."""
        return kept_rows(started(self.who, self.state))

    def frozen_state(self) -> TreeState:
        """Trees without the rows they were grown from, without trees that are being grown, and leaves that stay."""
        return without_rows(started(self.who, self.state))

    def wider(self, n_features: int, rng: np.random.Generator) -> TreeState:  # noqa: ARG002
        """Go on with room for features that were 0 so far."""
        old = started(self.who, self.state)
        unseen = np.full(n_features - len(old.column_of), -1, dtype=np.int32)
        return old._replace(column_of=np.concatenate([old.column_of, unseen]))

    def least_bytes(self, n_features: int, n_classes: int) -> int:
        """The size of trees that are one leaf each."""
        return least_bytes(self.total_trees, Shape(n_features, n_classes))

    def template(self, shape: Shape, arrays: Arrays) -> TreeState:
        """Return a state of the sizes that a file says, which may be of an older version."""
        given = arrays if "root_counts" in arrays else without_zeros(arrays)
        return empty(self._settings(shape, np.arange(self.total_trees)), sizes_of(given))

    def upgraded(self, version: int, arrays: Arrays) -> Arrays:
        """Version 1 kept numbers for every node and class."""
        return without_zeros(arrays) if version == 1 else super().upgraded(version, arrays)

    def age(self, state: TreeState) -> int:
        """The rows seen."""
        return int(state.seen[0])

    def validate(self, state: TreeState) -> None:
        """Refuse what the kernels would take for an index, and negative counts."""
        shape = Shape(len(state.column_of), state.root_counts.shape[1])
        check(state, self._settings(shape, np.arange(self.total_trees)))

    def memory(self) -> int:
        """How many bytes the rows kept, the trees and the refined members take."""
        return int(started(self.who, self._forest).bytes())

    def _advance_trees(self, top: int, out: Array, *_: int) -> None:
        self._forest.advance(top, out)

    def _settings(self, shape: Shape, phases: Longs) -> Settings:
        first = [(self.rows_kept, 0, 0)] * self.n_trees
        recent = [
            (window, every * count, window + every * (turn + 1))
            for window, count, every in self.recent
            for turn in range(count)
        ]
        windows, periods, offsets = zip(*first, *recent, strict=True)
        slack = max(BLOCK, self.rows_kept // 4)
        capacity = -(-(self.rows_kept + slack + BLOCK) // BLOCK) * BLOCK
        most = self.max_features if self.max_bytes is None else max(1, self.max_bytes // 2 // (4 * capacity))
        return Settings(
            *shape,
            windows=list(windows),
            schedules=[_growths(p / len(phases), window) for p, window in zip(phases, windows, strict=True)],
            periods=list(periods),
            offsets=list(offsets),
            rates=tuple(map(float, self.refined)),
            max_nodes=self.max_nodes,
            max_columns=min(most, self.max_features, shape.n_features),
            capacity=capacity,
            longest_growth=slack // 2,
            max_bytes=self.max_bytes or 0,
        )


def _growths(phase: float, last: int) -> Longs:
    """Numbers of rows after which a tree is grown anew, up to the last; phases spread the trees between them.

    >>> _growths(0.0, 2048)
    array([   4,    6,    9,   14,   21,   31,   46,   69,  103,  154,  231,
            346,  519, 1000, 2000])
    """
    found = []
    rows = _FIRST_GROWTH * 1.5**phase
    while rows < _OFTEN_UNTIL * 1.5:
        found.append(rows)
        rows *= 1.5
    rows = _SELDOM_FROM * 2**phase
    while rows <= last:
        found.append(rows)
        rows *= 2
    due = np.unique(np.ceil(found).astype(np.int64))
    return due[due <= last]
