"""What the boosters share: start, state, input checks, and several classes through one against the rest."""

from abc import ABC, abstractmethod
from dataclasses import dataclass
from functools import partial
from typing import Self

import numpy as np
from numpy.typing import ArrayLike

from bayesvote._checks import Array, Labels, one_of, whole
from bayesvote._input import Rows, RowsLike, ahead, check_labelled, check_rows, check_start, n_threads, started
from bayesvote.boosting._state import GROUP, OZA, SMOOTH, BoosterState, Rule

# Rows that one half of the members hands on to the other at a time.
_BLOCK = 1024


@dataclass
class Booster(ABC):
    """Base of the boosters.

    Every member uses all features. A Perceptron has a constant term, starts from weights drawn from U(-1, 1),
    and on a mistake on the t-th row adds y times the row, times the sample's weight, times a step, which the papers
    leave open: here 1 in OGBoost and :math:`t^{-1/2}` in the others, by their mean error over the paper's sets. Naive
    Bayes models a feature by a Bernoulli distribution while it has shown two values at most, then by Gaussians.

    A row with a NaN feature gets the votes 0 and is not learned, since every member needs the missing value;
    nor is a row of weight 0.

    Parameters
    ----------
    member : {"perceptron", "naive_bayes"}
        The kind of the members.
    n_members : int
        How many there are.
    """

    member: str = "perceptron"
    n_members: int = 100

    def __post_init__(self) -> None:
        self.state: BoosterState | None = None

    @abstractmethod
    def _rule(self) -> Rule:
        """Check the configuration; return how the kernels are to work."""

    @abstractmethod
    def _book(self, n_boosters: int) -> Array:
        """Return the booster's empty book about its members, (n_boosters, b, m)."""

    def start(self, n_features: int, n_classes: int = 2, rng: np.random.Generator | int | None = None) -> Self:
        """Forget everything and make ready for rows of n_features and labels 0 to n_classes - 1."""
        who = type(self).__name__
        one_of(who, "member", self.member, ("naive_bayes", "perceptron"))
        whole(who, "n_members", self.n_members)
        generator = check_start(who, n_features, n_classes, rng)
        self._rule()
        b = 1 if n_classes == 2 else n_classes
        book = self._book(b)
        m = book.shape[2]
        linear = self.member == "perceptron"
        d = 0 if linear else n_features
        self.state = BoosterState(
            weights=generator.uniform(-1.0, 1.0, (b, 1 + n_features if linear else 0, m)),
            totals=np.zeros((b, 2, 0 if linear else m)),
            stats=np.zeros((b, 2, 2, d, m)),
            overall=np.zeros((b, 2, d, 1)),
            pair=np.full((b, 2, d), np.nan),
            order=np.tile(np.arange(d, dtype=np.int64), (b, 1)),
            n_continuous=np.zeros((b, 1), dtype=np.int64),
            book=book,
            seen=np.zeros((b, 1)),
            clock=np.stack([generator.integers(2**64, size=b, dtype=np.uint64), np.zeros(b, np.uint64)], axis=1),
        )
        return self

    def decide(self, X: RowsLike) -> Array:
        """Return minus each label's vote, (n, K): the least one is the decision, the last of equals.

        Nothing is learned.
        """
        who = type(self).__name__
        state = started(who, self.state)
        rows = check_rows(who, X, self._n_features(state))
        return self._run(state, rows, np.zeros(rows.n, dtype=np.intp), np.zeros(rows.n))

    def decide_then_learn(self, X: RowsLike, y: ArrayLike, sample_weight: ArrayLike | None = None) -> Array:
        """Decide as ``decide`` does, on row t before row t is learned; equal to doing so row by row."""
        who = type(self).__name__
        state = started(who, self.state)
        n_classes = max(2, len(state.seen))
        rows, label, weight = check_labelled(who, X, y, sample_weight, self._n_features(state), n_classes)
        return self._run(state, rows, label, weight)

    def _n_features(self, state: BoosterState) -> int:
        return int(state.weights.shape[1] - 1 if self.member == "perceptron" else state.order.shape[1])

    def _run(self, state: BoosterState, rows: Rows, label: Labels, weight: Array) -> Array:
        rule = self._rule()._replace(n_members=state.book.shape[2])
        votes = np.zeros((len(state.seen), rows.n))
        for k, own in enumerate(votes):
            one = BoosterState._make(array[k] for array in state)
            mine = label if len(votes) == 1 else (label == k).astype(np.intp)
            _boost(rule, one, rows, mine, weight, own)
        return np.stack([votes[0], -votes[0]], axis=1) if len(votes) == 1 else -votes.T


def _boost(rule: Rule, state: BoosterState, rows: Rows, label: Labels, weight: Array, votes: Array) -> None:
    """Run one booster; over many rows its second half of members on another core, a block of rows behind.

    A member needs of a row what the members before it made of that row, and nothing of later rows.
    """
    from bayesvote.boosting._kernels import run

    carry = weight.copy() if rule.kind == OZA else np.zeros(rows.n)

    def work(of: BoosterState, first_member: int, first: int, last: int) -> None:
        x, at = rows.part(first, last), slice(first, last)
        run(rule._replace(first=first_member), of, x, label[at], weight[at], carry[at], votes[at])

    half = rule.n_members // 2 // GROUP * GROUP
    worth = rows.n >= 2 * _BLOCK and np.any(weight)  # without weight nothing is learned, nor may be written
    if not worth or half == 0 or rule.kind > SMOOTH or rule.pool > 1 or n_threads() == 1:
        work(state, 0, 0, rows.n)
        return
    front, back = state.part(0, half), state.part(half, rule.n_members)
    jobs = []
    for first in range(0, rows.n, _BLOCK):
        last = min(first + _BLOCK, rows.n)
        work(front, 0, first, last)
        jobs.append(ahead(partial(work, back, half, first, last)))
    for job in jobs:
        job.result()
    state.put(front, 0, half)
    state.put(back, half, rule.n_members)
