"""Base class of the boosters: start, state, validation, and one-against-rest for more than two classes."""

from abc import abstractmethod
from dataclasses import dataclass, field
from functools import partial
from typing import Any

import numpy as np

from bayesvote.boosting._state import GROUP, OZA, SMOOTH, BoosterState, Rule
from bayesvote.core.checks import MOST_WEIGHT, Array, Labels, integer, one_of
from bayesvote.core.rows import LARGEST, Rows, started
from bayesvote.core.scales import NO_WEIGHTS
from bayesvote.core.state import MOST_ROWS, Arrays, all_finite, padded, read_locked, renamed, require, within
from bayesvote.core.threads import in_background, n_threads
from bayesvote.model import Model

_MOST = LARGEST * (1 + 1e-9)  # size of a mean of values, with its rounding
# Relative slack of the bounds in ``validate``: sums of up to 2**53 rounded numbers may exceed exact bounds by far less
# than 0.1%, and a file beyond it is corrupted.
_SLACK = 1.001
_BLOCK = 128  # rows that the first half of the members hands to the second at a time; few, so that both start early


@dataclass
class Booster(Model[BoosterState]):
    """Base class of the boosters.

    Every member uses all features. A Perceptron has a constant term, and starts with weights drawn from U(-1, 1). On a
    mistake in the t-th row it adds y times the row, times the sample weight, times a step size. The papers do not give
    the step size. It is 1 in OGBoost and :math:`t^{-1/2}` in the others, which have the lowest mean error over the
    paper's data sets. Naive Bayes models a feature by Bernoulli distributions while it has at most two values, and by
    Gaussians from then on.

    A row with a NaN feature gets the votes 0 and is not learned, since every member needs the missing value. A row of
    weight 0 is not learned either. Perceptrons with ``scale`` see the mean so far in place of a missing value.

    Parameters
    ----------
    member : {"perceptron", "naive_bayes"}
        The kind of the members.
    n_members : int
        Number of members.
    scale : bool
        If True, Perceptrons see standardised rows, as with :class:`bayesvote.Scaled`. Naive Bayes always sees rows as
        they are, as the members in the papers do.
    """

    member: str = "perceptron"
    n_members: int = 100
    scale: bool = field(default=False, kw_only=True)

    version = 3
    _internal = "most_learned most_record"

    @abstractmethod
    def _rule(self) -> Rule:
        """Check the configuration; return the settings of the kernels."""

    @abstractmethod
    def _record(self, n_boosters: int) -> Array:
        """Return the members' record before any row, (n_boosters, b, m)."""

    @property
    def _scales(self) -> bool:
        return self.scale and self.member == "perceptron"

    @property
    def total_members(self) -> int:
        """Number of members that vote."""
        return self.n_members

    def init(self, n_features: int, n_classes: int, rng: np.random.Generator) -> BoosterState:
        """Draw the Perceptrons' initial weights, for one two-class booster or, with more classes, one per class."""
        one_of(self.who, "member", self.member, ("naive_bayes", "perceptron"))
        integer(self.who, "n_members", self.n_members)
        self._rule()
        b = 1 if n_classes == 2 else n_classes
        record = self._record(b)
        m = record.shape[2]
        linear = self.member == "perceptron"
        d = 0 if linear else n_features
        return BoosterState(
            weights=rng.uniform(-1.0, 1.0, (b, 1 + n_features if linear else 0, m)),
            totals=np.zeros((b, 2, 0 if linear else m)),
            stats=np.zeros((b, 2, 2, d, m)),
            overall=np.zeros((b, 2, d, 1)),
            pair=np.full((b, 2, d), np.nan),
            order=np.tile(np.arange(d, dtype=np.int64), (b, 1)),
            n_continuous=np.zeros((b, 1), dtype=np.int64),
            record=record,
            seen=np.zeros((b, 1)),
            clock=np.stack([rng.integers(2**64, size=b, dtype=np.uint64), np.zeros(b, np.uint64)], axis=1),
            scales=np.zeros((1, 5, n_features if self._scales else 0)),
        )

    def _losses(self, rows: Rows) -> Array:
        """Return minus each label's vote, (n, K)."""
        if self._scales:
            rows = started(self.who, self.state).known_scales().standardised(rows, NO_WEIGHTS)
        return self._votes(rows, np.zeros(rows.n, dtype=np.intp), np.zeros(rows.n))

    def step(self, rows: Rows, y: Labels, w: Array) -> Array:
        """Return minus each label's vote, (n, K), row t before row t is learned."""
        if self._scales:
            rows = started(self.who, self.state).known_scales().standardised(rows, w)
        return self._votes(rows, y, w)

    def _votes(self, rows: Rows, y: Labels, w: Array) -> Array:
        """Return minus each label's vote, (n, K), for rows as the members see them."""
        state = started(self.who, self.state)
        rule = self._rule()._replace(n_members=state.record.shape[2])
        votes = np.zeros((len(state.seen), rows.n))
        for k, own in enumerate(votes):
            mine = y if len(votes) == 1 else (y == k).astype(np.intp)
            _boost(rule, state.of_booster(k), rows, mine, w, own)
        return np.stack([votes[0], -votes[0]], axis=1) if len(votes) == 1 else np.ascontiguousarray(-votes.T)

    def wider(self, n_features: int, rng: np.random.Generator) -> BoosterState:
        """Draw initial weights for the new features, or count the value 0 for every row so far."""
        old = started(self.who, self.state)
        if self.member == "perceptron":
            b, rows, m = old.weights.shape
            new = rng.uniform(-1.0, 1.0, (b, 1 + n_features - rows, m))  # as at the start
            scales = padded(old.scales, 2, n_features) if self._scales else old.scales
            return old._replace(weights=np.concatenate([old.weights, new], axis=1), scales=scales)
        b, d = old.order.shape
        pair = np.full((b, 2, n_features), np.nan)
        pair[:, :, :d] = old.pair
        pair[:, 0, d:] = np.where(old.seen > 0, 0.0, np.nan)  # rows were learned, and new features were 0 in them
        return old._replace(
            stats=padded(old.stats, 3, n_features),
            overall=padded(old.overall, 2, n_features),
            pair=pair,
            order=np.concatenate([old.order, np.tile(np.arange(d, n_features), (b, 1))], axis=1),
        )

    @read_locked
    def about(self) -> dict[str, Any]:
        """Return the members, and the number of rows learned."""
        rows = None if self.state is None else int(self.state.clock[0, 1])
        return {"members": f"{self.n_members} {self.member}", "rows_learned": rows}

    def least_bytes(self, n_features: int, n_classes: int) -> int:
        """Size of the members."""
        integer(self.who, "n_members", self.n_members)
        self._rule()
        return 8 * n_features * self.total_members * (1 if n_classes == 2 else n_classes)

    def most_record(self, rows: Array, seen: Array) -> Array:  # noqa: ARG002
        """Return the largest possible number in the record after these many rows of this total weight."""
        return np.maximum(seen, 1.0)

    def most_learned(self, state: BoosterState) -> Array:
        """Return the largest possible weight that a naive Bayes member has learned, (b, m)."""
        return np.broadcast_to(state.seen, state.totals[:, 0].shape)

    def age(self, state: BoosterState) -> int:
        """Number of rows on the clock."""
        return int(state.clock[:, 1].max())

    def validate(self, state: BoosterState) -> None:
        """Raise an error for indices outside the arrays, which kernels do not check, and for impossible sums."""
        all_finite(state, but=("pair",))
        if self._scales:
            state.known_scales().check()
            require(not np.any(state.scales[0, 0, 1:]), "scales must count rows in their first place only")
        rows, seen = state.clock[:, 1].astype(np.float64), state.seen[:, 0]
        require(self.age(state) <= MOST_ROWS, f"clock must count at most {MOST_ROWS} rows")
        d = state.order.shape[1]
        require(within(state.n_continuous, 0, d), f"n_continuous must be from 0 to {d}")
        fitting = ((seen > 0) == (rows > 0)) & (seen >= 0) & (seen <= _SLACK * MOST_WEIGHT * rows)
        require(bool(np.all(fitting)), "seen must be at least 0 and a possible weight of the rows")
        require(not np.any(state.record < 0), "record must be at least 0")
        most = _SLACK * self.most_record(rows, seen)[:, None, None]
        require(bool(np.all(state.record <= most)), "record must be within reach of the rows")
        # A row moves a weight by at most its sample weight, or its length, times a value.
        far = _SLACK * LARGEST * state.weights.shape[1] * (1 + np.maximum(rows, seen))[:, None, None]
        require(bool(np.all(np.abs(state.weights) <= far)), "weights must be within reach of the rows")
        if self.member == "naive_bayes":
            self._check_statistics(state)

    def _check_statistics(self, state: BoosterState) -> None:
        """Raise an error for statistics of naive Bayes that no rows have."""
        b, d = state.order.shape
        in_order = np.array_equal(np.sort(state.order), np.tile(np.arange(d), (b, 1)))
        require(in_order, f"order must be a permutation of 0 to {d - 1}")
        require(not np.any(np.abs(state.pair) > LARGEST), f"pair must be at most {LARGEST:g} in size")
        require(not np.any(np.isnan(state.pair[:, 0]) > np.isnan(state.pair[:, 1])), "pair must have a first value")
        require(not np.any(state.totals < 0), "totals must be at least 0")
        most = _SLACK * self.most_learned(state)
        require(bool(np.all(state.totals.sum(axis=1) <= most)), "totals must be within reach of the rows")
        continuous = (np.arange(d) < state.n_continuous)[:, :, None]  # (b, d, 1): in the order of ``order``
        overall = state.overall[:, None], state.seen[:, None]  # as a class of one member
        for name, found, weight in (("overall", *overall), ("stats", state.stats, state.totals)):
            first, squares, total = found[:, :, 0], found[:, :, 1], weight[:, :, None]
            means, counts = np.where(continuous[:, None], first, 0.0), np.where(continuous[:, None], 0.0, first)
            require(within(means, -_MOST, _MOST), f"means in {name} must be at most {_MOST:g} in size")
            # No slack here: counts sum up some of the numbers that the totals sum up, in the same order.
            require(bool(np.all((counts >= 0) & (counts <= total))), f"counts in {name} must be from 0 to the totals")
            require(not np.any(squares < 0), f"squared deviations in {name} must be at least 0")
            reach = np.all(squares <= _SLACK * (2 * _MOST) ** 2 * total)
            require(bool(reach), f"squared deviations in {name} must be within reach of the totals")

    def upgraded(self, version: int, arrays: Arrays) -> Arrays:
        """Return arrays of version 1, which named the record differently, or 2, which had no scales."""
        if version not in (1, 2):
            return super().upgraded(version, arrays)
        require("scales" not in arrays, "scales must not be in version 1 or 2")
        found = renamed(arrays, book="record") if version == 1 else arrays
        return {**found, "scales": np.zeros((1, 5, 0))}


def _boost(rule: Rule, state: BoosterState, rows: Rows, label: Labels, weight: Array, votes: Array) -> None:
    """Run one booster; with many rows, run the second half of its members on another core, one block behind.

    A member needs the results of the members before it for the same row, and nothing of later rows.
    """
    from bayesvote.boosting._kernels import run

    carry = weight.copy() if rule.kind == OZA else np.zeros(rows.n)

    def work(of: BoosterState, first_member: int, first: int, last: int) -> None:
        x, at = rows.part(first, last), slice(first, last)
        run(rule._replace(first=first_member), of, x, label[at], weight[at], carry[at], votes[at])

    half = rule.n_members // 2 // GROUP * GROUP
    worth = rows.n >= 4 * _BLOCK and np.any(weight)  # prediction must not write to the state
    if not worth or half == 0 or rule.kind > SMOOTH or rule.pool > 1 or n_threads() == 1:
        work(state, 0, 0, rows.n)
        return
    front, back = state.part(0, half), state.part(half, rule.n_members)
    jobs = []
    for first in range(0, rows.n, _BLOCK):
        last = min(first + _BLOCK, rows.n)
        work(front, 0, first, last)
        jobs.append(in_background(partial(work, back, half, first, last)))
    for job in jobs:
        job.result()
    state.put(front, 0, half)
    state.put(back, half, rule.n_members)
