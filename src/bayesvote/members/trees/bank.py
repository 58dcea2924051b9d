"""Bank of decision trees for streams: trees of the first rows, trees of recent rows, and refined members."""

from collections.abc import Callable, Sequence
from dataclasses import dataclass
from functools import partial
from typing import Any

import numpy as np

from bayesvote.core.checks import Array, InputError, Labels, integer, positive
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

_FIRST_GROWTH = 4  # rows that the first tree is grown from
_OFTEN_UNTIL = 500  # rows; up to here, trees are grown again each time the number of rows is 1.5 times as large
_SELDOM_FROM = 1000  # rows; from here on, each time the number of rows has doubled, because growing costs more
_MOST_ROWS = 2**24  # kept rows; their numbers fit in an int32
_MOST_NODES = 2**30  # per tree; their numbers fit in an int32
_MOST_RATES = 64  # bounds the memory of a leaf
_LEAST_BYTES = 2**16  # a single block of stored rows needs 6 KB without the values
_WORTH_SHARING = 16  # with fewer rows, starting threads costs more time than they save


@dataclass
class TreeBank(Bank[TreeState]):
    """Decision trees grown online from stored rows, and refined members on top of their leaves.

    A tree is grown breadth first from stored rows. A node draws 16 random tests "is feature j at most t?" and splits on
    the one with the largest decrease in Gini impurity, until its rows are of one class. A leaf with class weights n_k
    and total n has the class probabilities ``(n_k + 0.3 q_k) / (n + 0.3)``. Here q_k are the probabilities of its
    parent when the parent was split. The score is half the log-odds, or with more than two classes half the
    log-probability of each class. Missing values go to the side with the larger gain.

    - ``n_trees`` trees learn the first rows. They are grown again from all rows as the stream becomes longer, the last
      time at ``rows_kept`` rows. After that their leaves split one by one: a leaf counts the classes on both sides of
      eight random cuts, and splits once the gain of a cut is large enough.
    - ``recent`` trees learn the last rows, and so follow drift. ``(window, count, every)`` means ``count`` trees, each
      grown from the last ``window`` rows. Every ``every`` rows, the next of them in turn is grown again.
    - ``refined`` members are logistic regressions (softmax with more than two classes), one per rate. Their inputs are
      the leaves that a row reaches in all trees. They are trained by AdaGrad, row by row. A leaf has one sum of squared
      gradients per rate, shared by all classes.

    Growing a tree never blocks a row: each row grows a few nodes of the new tree. The new tree replaces the old one
    when it is complete and has counted the rows that arrived in the meantime.

    Features are stored and compared in single precision: values that differ by less than one part in ten million are
    equal. A feature is used from the first row in which it is not 0. Rows of weight 0 are scored but not learned.
    Weights are clipped to the range from 1e-12 to 1e12. No member abstains.

    Parameters
    ----------
    n_trees : int
        Number of trees of the first rows.
    recent : sequence of (window, count, every)
        Groups of trees of recent rows.
    refined : sequence of float
        Learning rates, one refined member for each.
    rows_kept : int
        Number of rows that are stored to grow trees. They need 5 bytes per row and feature.
    max_nodes : int
        Maximum number of nodes of a tree. A node needs about 40 bytes, 2 per class, and 12 per class that occurred
        there. A leaf with candidate splits needs 100 more, and 70 per class that it counted for them. A leaf that was
        visited by refined members needs for each of them 4 bytes per class, and 4 more; with two classes 8 in all.
    max_features : int
        Maximum number of features that trees use: the first ones that are seen to be other than 0.
    max_bytes : int or None
        Target for the memory of rows, trees and refined members together, at least 65,536 bytes. Near the target,
        trees drop the splits and candidates with the smallest gains, and continue to grow where gains are larger. The
        memory is checked after every 256 learned rows. About half is for stored rows: trees use the first features
        that fit. From about 8 MB the saved state stays below the target, and the process needs up to one and a half
        times as much. Trees of one leaf each, and a block of rows, need some memory in any case: with a target of 64
        KB, the default trees take several times that, and more with many classes. None means no limit.

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
        """Check the parameters."""
        who = type(self).__name__
        integer(who, "n_trees", self.n_trees, least=0)
        integer(who, "rows_kept", self.rows_kept, least=_FIRST_GROWTH)
        integer(who, "max_nodes", self.max_nodes)
        integer(who, "max_features", self.max_features)
        for name, most in (("rows_kept", _MOST_ROWS), ("max_nodes", _MOST_NODES)):
            if getattr(self, name) > most:
                raise InputError(who, name, f"must be at most {most}", str(getattr(self, name)))
        if self.max_bytes is not None:
            integer(who, "max_bytes", self.max_bytes, least=_LEAST_BYTES)
        for group in self.recent:
            if not isinstance(group, Sequence) or len(group) != 3:
                do = "Give three integers per group, such as (512, 10, 64)."
                raise InputError(who, "recent", "must hold groups (window, count, every)", repr(group), do)
            for name, value in zip(("window", "count", "every"), group, strict=True):
                integer(who, f"{name} of recent trees", value)
            if not _FIRST_GROWTH <= group[0] <= self.rows_kept:
                must = f"must be from {_FIRST_GROWTH} to rows_kept = {self.rows_kept}"
                do = "Increase rows_kept, or use a shorter window."
                raise InputError(who, "window of recent trees", must, str(group[0]), do)
        for rate in self.refined:
            positive(who, "rates of refined members", rate)
        if len(self.refined) > _MOST_RATES:
            must = f"must hold at most {_MOST_RATES} rates"
            raise InputError(who, "refined", must, str(len(self.refined)), "Leave some out.")
        if self.total_trees == 0:
            do = "Increase n_trees, or add a group to recent."
            raise InputError(who, "the bank", "must have at least one tree", "n_trees=0 and no recent trees", do)
        self._forest: Any = None

    @property
    def total_trees(self) -> int:
        """Number of trees: those of the first rows and those of recent rows."""
        return self.n_trees + sum(group[1] for group in self.recent)

    @property
    def n_members(self) -> int:
        """Number of members: all trees, then the refined members."""
        return self.total_trees + len(self.refined)

    def member_names(self) -> list[str]:
        """Names of the members."""
        recent = [f"Tree of {window} rows" for window, count, _ in self.recent for _ in range(count)]
        return ["Tree"] * self.n_trees + recent + [f"Refined({rate:g})" for rate in self.refined]

    @property
    def state(self) -> TreeState | None:
        """A copy of the state as compact arrays; None before the start."""
        with self.read_lock():
            return self._copied_state()

    def _copied_state(self) -> TreeState | None:
        """Return ``state`` without the lock, for methods whose caller holds it, possibly in another thread."""
        return None if self._forest is None else TreeState(phases=self._phases, **self._forest.state())

    def ready(self, state: TreeState, shape: Shape) -> Callable[[], None]:
        """Build the forest of a state; return the function that installs it."""
        from bayesvote.members.trees._tree_kernels import Forest

        forest = Forest(self._settings(shape, state.phases), state)

        def commit() -> None:
            self._forest, self._phases, self._shape = forest, state.phases, shape

        return commit

    def snapshot(self) -> TreeState | None:
        """Return the state, which is a copy already."""
        return self.state

    def init(self, n_features: int, n_classes: int, rng: np.random.Generator) -> TreeState:
        """Return the state of trees that consist of one leaf each."""
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
            # Trees are independent: each thread takes the next tree, until none is left.
            trees = partial(self._advance_trees, top, out)
            parallel_for(trees, self.total_trees, worth=end - top >= _WORTH_SHARING)
            if self.refined:
                forest.refine(top, out)
            forest.prune()
            top = end
        return self.shaped(out)

    def attributions(self, rows: Rows, coefficients: Array, shares: Array) -> Attribution:
        """Attribute scores to the features tested on the paths of a row; the start is the sum of the roots' scores."""
        return attributions(started(self.who, self.state), rows, coefficients, shares)

    def kept_rows(self) -> Array | None:
        """Return the last rows of the stream."""
        return kept_rows(started(self.who, self.state))

    def frozen_state(self) -> TreeState:
        """Return the state without stored rows, unfinished trees and candidate splits: it scores the same."""
        return without_rows(started(self.who, self.state))

    def wider(self, n_features: int, rng: np.random.Generator) -> TreeState:  # noqa: ARG002
        """Return the state with more features, which were 0 so far."""
        old = started(self.who, self._copied_state())
        unseen = np.full(n_features - len(old.column_of), -1, dtype=np.int32)
        return old._replace(column_of=np.concatenate([old.column_of, unseen]))

    def least_bytes(self, n_features: int, n_classes: int) -> int:
        """Return the size in bytes of trees that consist of one leaf each."""
        return least_bytes(self.total_trees, Shape(n_features, n_classes))

    def template(self, shape: Shape, arrays: Arrays) -> TreeState:
        """Return a state with the array sizes of a file, also of an older version."""
        given = arrays if "root_counts" in arrays else without_zeros(arrays)
        return empty(self._settings(shape, np.arange(self.total_trees)), sizes_of(given))

    def upgraded(self, version: int, arrays: Arrays) -> Arrays:
        """Convert version 1, which stored numbers for every node and class."""
        return without_zeros(arrays) if version == 1 else super().upgraded(version, arrays)

    def age(self, state: TreeState) -> int:
        """Return the number of rows learned."""
        return int(state.seen[0])

    def validate(self, state: TreeState) -> None:
        """Reject a state with invalid indices or negative counts: the kernels do not check them."""
        shape = Shape(len(state.column_of), state.root_counts.shape[1])
        check(state, self._settings(shape, np.arange(self.total_trees)))

    def memory(self) -> int:
        """Return the memory of the stored rows, the trees and the refined members, in bytes."""
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
    """Return the numbers of rows, up to ``last``, after which a tree is grown again.

    The phase, from 0 to 1, shifts them, so that not all trees are grown at the same time.

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
