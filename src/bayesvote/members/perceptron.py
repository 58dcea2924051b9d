"""Many Perceptrons, each on its own random features."""

from dataclasses import dataclass
from typing import NamedTuple

import numpy as np
from numpy.typing import NDArray

from bayesvote._checks import Array, Labels, integer
from bayesvote._input import Rows, started
from bayesvote._parts import Arrays, all_finite, padded, renamed, require
from bayesvote._threads import parallel_for
from bayesvote.members.base import Bank
from bayesvote.members.subsets import agree, random_subsets, with_more

# With fewer multiplications than this, a second thread costs more than it saves.
_WORTH_SHARING = 500_000
# Members are processed in blocks whose weights fit the L1 cache, but never fewer than one vector's worth of scores.
_NEAREST, _FEW = 3_000, 32
_NO_LABELS = np.zeros(0, dtype=np.intp)
_NO_WEIGHTS = np.zeros(0)


class PerceptronState(NamedTuple):
    """What a bank of Perceptrons has learned; a member has one score for two classes, else one per class."""

    features: NDArray[np.uint32]  # (m, k): those that each member sees
    mask: NDArray[np.uint8]  # (d, scores): the same as ones and zeros
    weights: Array  # (d, scores)
    bias: Array  # (scores,)
    past_weights: Array  # as weights: each step times the age it was taken at; empty unless averaged
    past_bias: Array
    age: Array  # (scores,): the sample weights the member has learned


@dataclass
class PerceptronBank(Bank[PerceptronState]):
    """Classic mistake-driven Perceptrons with a bias (Rosenblatt 1958), each on its own random features.

    A member's score is w.x + b, with the weights from before the row is learned. With y = -1, 1, a row with
    y (w.x + b) <= 0 is a mistake and adds y x to w and y to b, times its sample weight. With more classes,
    each has weights of its own; when the right class does not score above all others, x is added to its
    weights and subtracted from those of the highest other class (Crammer and Singer 2003).

    Parameters
    ----------
    n_members
        How many Perceptrons.
    max_features
        How many features each sees: a fraction, a count, or None for all.
    averaged
        Score with the average of the weights over all rows learned (Freund and Schapire 1999), far better on
        noisy data. Mistakes are still those of the plain weights.

    Examples
    --------
    >>> bank = PerceptronBank(n_members=2, max_features=None).start(n_features=1)
    >>> bank.scores_then_learn([[1.0], [1.0], [-1.0]], [1, 1, 0])
    array([[0., 0.],
           [2., 2.],
           [0., 0.]])
    """

    n_members: int = 100
    max_features: float | int | None = 0.5
    averaged: bool = False

    version = 2

    def fresh(self, n_features: int, n_classes: int, rng: np.random.Generator) -> PerceptronState:
        """Draw the features of each member and set all weights to zero."""
        integer(self.who, "n_members", self.n_members)
        mask = random_subsets(n_features, self.n_members, self.max_features, rng)
        per = 1 if n_classes == 2 else n_classes
        n_scores = per * self.n_members
        past = (n_features if self.averaged else 0, n_scores)
        return PerceptronState(
            features=np.nonzero(mask)[1].reshape(self.n_members, -1).astype(np.uint32),
            mask=np.repeat(mask, per, axis=0).T.astype(np.uint8, order="C"),
            weights=np.zeros((n_features, n_scores)),
            bias=np.zeros(n_scores),
            past_weights=np.zeros(past),
            past_bias=np.zeros(n_scores),
            age=np.zeros(n_scores),
        )

    def score(self, rows: Rows) -> Array:
        """Score checked rows."""
        return self._run(rows, _NO_LABELS, _NO_WEIGHTS)

    def advance(self, rows: Rows, y: Labels, w: Array) -> Array:
        """Score checked row t before learning row t."""
        return self._run(rows, y, w)

    def wider(self, n_features: int, rng: np.random.Generator) -> PerceptronState:
        """Give every member as large a share of the new features as it has of the old ones."""
        old = started(self.who, self.state)
        features, more = with_more(old.features, len(old.weights), n_features, rng)
        mask = np.repeat(more, len(old.bias) // self.n_members, axis=0).T.astype(np.uint8)
        return old._replace(
            features=features,
            mask=np.concatenate([old.mask, mask]),
            weights=padded(old.weights, 0, n_features),
            past_weights=padded(old.past_weights, 0, n_features if self.averaged else 0),
        )

    def least_bytes(self, n_features: int, n_classes: int) -> int:
        """The size of the weights."""
        integer(self.who, "n_members", self.n_members)
        return 8 * n_features * self.n_members * (1 if n_classes == 2 else n_classes)

    def check_state(self, state: PerceptronState) -> None:
        """Refuse features that do not fit, weights of features that are not seen, and rows of negative weight."""
        all_finite(state)
        per = len(state.bias) // len(state.features)
        require(agree(state.features, state.mask, per), "features and mask must agree")
        unseen = state.mask == 0
        require(not np.any(state.weights[unseen]), "weights must be 0 for features that a member does not see")
        if len(state.past_weights):
            require(not np.any(state.past_weights[unseen]), "past_weights must be 0 for features not seen")
        require(not np.any(state.age < 0), "age must be at least 0")

    def upgraded(self, version: int, arrays: Arrays) -> Arrays:
        """Version 1 had two other names."""
        if version != 1:
            return super().upgraded(version, arrays)
        return renamed(arrays, own="features", uses="mask")

    def _run(self, rows: Rows, y: Labels, weight: Array) -> Array:
        from bayesvote.members._perceptron_kernels import BLOCK, run, run_some, score_dense

        state = started(self.who, self.state)
        n, n_scores = rows.n, len(state.bias)
        per = n_scores // self.n_members
        out = np.empty((n, n_scores))
        if rows.dense is not None and n >= BLOCK and 2 * np.count_nonzero(rows.dense[:BLOCK]) < BLOCK * rows.width:
            rows = _without_zeros(rows)
        values = np.nan_to_num(rows.values, nan=0.0) if rows.has_nan else rows.values
        dense = rows.dense is not None
        given = (rows, values, y, weight, state)
        some = max(_NEAREST // (rows.width * (2 if len(state.past_weights) else 1)), _FEW) // per * per
        block = max(some, per) if dense else n_scores

        def learn(lo: int, hi: int) -> None:
            for a in range(lo, hi, block):
                run_some(*given, a, min(a + block, hi), out)

        if len(values) * n_scores < _WORTH_SHARING:
            run(*given, 0, n, out)
        elif len(y):
            parallel_for(learn, n_scores, per)
        elif dense and not rows.has_nan:
            parallel_for(lambda top, end: score_dense(values, state, top, end, out), n, BLOCK)
        else:
            parallel_for(lambda top, end: run(*given, top, end, out), n)
        return out if per == 1 else out.reshape(n, self.n_members, per)


def _without_zeros(rows: Rows) -> Rows:
    from bayesvote.members._perceptron_kernels import compress

    X = rows.todense()
    # The kernel writes each value before deciding to keep it, hence one extra place.
    values = np.empty(X.size + 1)
    columns = np.empty(X.size + 1, dtype=np.int32)
    starts = np.zeros(rows.n + 1, dtype=np.int64)
    compress(X, values, columns, starts)
    return rows._replace(dense=None, values=values[: starts[-1]], columns=columns[: starts[-1]], starts=starts)
