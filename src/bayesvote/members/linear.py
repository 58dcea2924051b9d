"""Many linear classifiers, each on its own random features: what all share, and passive-aggressive ones."""

from abc import abstractmethod
from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any, NamedTuple

import numpy as np
from numpy.typing import NDArray

from bayesvote.core.checks import Array, Labels, integer, one_of, positive
from bayesvote.core.rows import Rows, started
from bayesvote.core.state import Arrays, S, Shape, all_finite, padded, require
from bayesvote.core.threads import parallel_for
from bayesvote.members.attribution import Attribution
from bayesvote.members.base import Bank
from bayesvote.members.subsets import agree, random_subsets, resized, with_more

# With fewer multiplications than this, a second thread costs more than it saves.
_WORTH_SHARING = 500_000
# Members are processed in blocks whose weights fit the L1 cache, but never fewer than one vector's worth of scores.
_NEAREST, _FEW = 3_000, 32
_NO_LABELS = np.zeros(0, dtype=np.intp)
_NO_WEIGHTS = np.zeros(0)
RULES = {"passive_aggressive": False, "passive_aggressive_squared": True}  # whether the slack is squared


class LinearState(NamedTuple):
    """Linear classifiers; a member has one score for two classes, else one per class."""

    features: NDArray[np.uint32]  # (m, k): those that each member sees
    mask: NDArray[np.uint8]  # (d, scores): the same as ones and zeros
    weights: Array  # (d, scores)
    bias: Array  # (scores,)


class LinearMembers(Bank[S]):
    """What banks of linear classifiers share; their states begin with the fields of :class:`LinearState`."""

    draws_features = True
    n_members: int
    max_features: float | int | None

    @property
    def wants_scaled(self) -> bool:
        """They do."""
        return True

    @abstractmethod
    def limits(self, n_scores: int) -> tuple[Array, bool]:
        """How far a row may move the weights of every score, and whether its square counts; no limits: Perceptrons."""

    def blank_weights(self, n_features: int, n_classes: int, rng: np.random.Generator) -> LinearState:
        """Draw the features of each member and set all weights to zero."""
        integer(self.who, "n_members", self.n_members)
        mask = random_subsets(n_features, self.n_members, self.max_features, rng)
        per = 1 if n_classes == 2 else n_classes
        n_scores = per * self.n_members
        return LinearState(
            features=np.nonzero(mask)[1].reshape(self.n_members, -1).astype(np.uint32),
            mask=np.repeat(mask, per, axis=0).T.astype(np.uint8, order="C"),
            weights=np.zeros((n_features, n_scores)),
            bias=np.zeros(n_scores),
        )

    def score(self, rows: Rows) -> Array:
        """Score checked rows."""
        return self._run(rows, _NO_LABELS, _NO_WEIGHTS)

    def advance(self, rows: Rows, y: Labels, w: Array) -> Array:
        """Score checked row t before learning row t."""
        return self._run(rows, y, w)

    def scoring(self, state: S) -> tuple[Array, Array]:
        """Weights (d, scores) and bias (scores,) that rows are scored with."""
        return state.weights, state.bias

    def attributions(self, rows: Rows, coefficients: Array, shares: Array) -> Attribution:
        """Share out scores exactly: a feature adds its value times its weight, and the bias is the start."""
        state: S = started(self.who, self.state)
        weights, bias = self.scoring(state)
        flat = coefficients.reshape(rows.n, len(bias))
        seen = state.mask[:, :: len(bias) // self.n_members]
        parts = np.nan_to_num(rows.todense()) * (flat @ weights.T)
        return Attribution(parts, flat @ bias, shares @ seen.T)

    def wider(self, n_features: int, rng: np.random.Generator) -> S:
        """Give every member as large a share of the new features as it has of the old ones."""
        old: S = started(self.who, self.state)
        features, more = with_more(old.features, len(old.weights), n_features, rng)
        mask = np.repeat(more, len(old.bias) // self.n_members, axis=0).T.astype(np.uint8)
        wide: S = old._replace(
            features=features,
            mask=np.ascontiguousarray(np.concatenate([old.mask, mask])),  # of one row, it could come out by columns
            weights=padded(old.weights, 0, n_features),
        )
        return wide

    def least_bytes(self, n_features: int, n_classes: int) -> int:
        """The size of the weights."""
        integer(self.who, "n_members", self.n_members)
        return 8 * n_features * self.n_members * (1 if n_classes == 2 else n_classes)

    def template(self, shape: Shape, arrays: Arrays) -> S:
        """Return a fresh state; how many features a member sees depends on how it was widened."""
        fresh = super().template(shape, arrays)
        wide: S = fresh._replace(features=resized(fresh.features, arrays))
        return wide

    def validate(self, state: S) -> None:
        """Refuse features that do not fit, and weights of features that are not seen."""
        all_finite(state, most=1e160)  # times the largest value, a score is still finite
        per = len(state.bias) // len(state.features)
        require(agree(state.features, state.mask, per), "features and mask must agree")
        unseen = state.mask == 0
        require(not np.any(state.weights[unseen]), "weights must be 0 for features that a member does not see")

    def _run(self, rows: Rows, y: Labels, weight: Array) -> Array:
        from bayesvote.members._perceptron_kernels import BLOCK, run, run_some, score_dense

        state: S = started(self.who, self.state)
        n, n_scores = rows.n, len(state.bias)
        per = n_scores // self.n_members
        out = np.empty((n, n_scores))
        if rows.dense is not None and n >= BLOCK and 2 * np.count_nonzero(rows.dense[:BLOCK]) < BLOCK * rows.width:
            rows = _without_zeros(rows)
        values = np.nan_to_num(rows.values, nan=0.0) if rows.has_nan else rows.values
        dense = rows.dense is not None
        given = (rows, values, y, weight, state, *self.limits(n_scores))
        some = max(_NEAREST // (rows.width * (2 if self.doubled else 1)), _FEW) // per * per
        block = max(some, per) if dense else n_scores

        def learn(lo: int, hi: int) -> None:
            for a in range(lo, hi, block):
                run_some(*given, a, min(a + block, hi), out)

        if len(values) * n_scores < _WORTH_SHARING or (len(y) and not dense and len(values) < rows.width):
            run(*given, 0, n, out)
        elif len(y):
            parallel_for(learn, n_scores, per)
        elif dense and not rows.has_nan:
            parallel_for(lambda top, end: score_dense(values, state, top, end, out), n, BLOCK)
        else:
            parallel_for(lambda top, end: run(*given, top, end, out), n)
        return out if per == 1 else out.reshape(n, self.n_members, per)

    @property
    def doubled(self) -> bool:
        """Whether there is a second set of weights to go through."""
        return False


def _without_zeros(rows: Rows) -> Rows:
    from bayesvote.members._perceptron_kernels import compress

    X = rows.todense()
    # The kernel writes each value before deciding to keep it, hence one extra place.
    values = np.empty(X.size + 1)
    columns = np.empty(X.size + 1, dtype=np.int32)
    starts = np.zeros(rows.n + 1, dtype=np.int64)
    compress(X, values, columns, starts)
    return rows._replace(dense=None, values=values[: starts[-1]], columns=columns[: starts[-1]], starts=starts)


@dataclass
class LinearBank(LinearMembers[LinearState]):
    """Passive-aggressive linear classifiers with a bias (Crammer et al. 2006), each on its own random features.

    A member's score is w.x + b, with the weights from before the row is learned. With y = -1, 1, a row with the hinge
    loss h = 1 - y (w.x + b) above 0 moves the weights as little as makes it 0, but by no more than the aggressiveness C
    allows: w += t y x and b += t y with t = min(C, h/(1 + x.x)). With more classes, each has weights of its own; h is
    1 less the lead of the right class over the best other, and t = min(C, h/(2 + 2 x.x)) is added to the weights of
    the one and taken from those of the other. The sample weight multiplies C.

    A Perceptron steps as far on its last mistake as on its first; these step as far as a row asks for. So they follow a
    change at once, and noise as well unless C is small.

    Parameters
    ----------
    n_members
        How many members.
    max_features
        How many features each sees: a fraction, a count, or None for all.
    aggressiveness
        C, or several, which the members take in turn.
    rule
        "passive_aggressive" is PA-I, as above; "passive_aggressive_squared" is PA-II, t = h/(1 + x.x + 1/(2 C)).

    Examples
    --------
    >>> bank = LinearBank(n_members=2, aggressiveness=(0.1, 1.0)).start(n_features=1)
    >>> bank.scores_then_learn([[1.0], [1.0], [-1.0]], [1, 1, 0])
    array([[0. , 0. ],
           [0.2, 1. ],
           [0. , 0. ]])
    """

    n_members: int = 100
    max_features: float | int | None = None
    aggressiveness: float | Sequence[float] = (0.01, 0.1, 1.0)
    rule: str = "passive_aggressive"

    def __post_init__(self) -> None:
        one_of(self.who, "rule", self.rule, RULES)
        given: Any = self.aggressiveness
        for value in given if np.ndim(given) else (given,):
            positive(self.who, "aggressiveness", value)
        if np.size(given) == 0:
            raise ValueError(f"{self.who}: aggressiveness must hold at least one number, got none.")

    def init(self, n_features: int, n_classes: int, rng: np.random.Generator) -> LinearState:
        """Draw the features of each member and set all weights to zero."""
        return self.blank_weights(n_features, n_classes, rng)

    def limits(self, n_scores: int) -> tuple[Array, bool]:
        """The aggressiveness of every score."""
        given = np.atleast_1d(np.asarray(self.aggressiveness, dtype=np.float64))
        member = np.arange(n_scores) // (n_scores // self.n_members)
        return given[member % len(given)], RULES[self.rule]

    def member_names(self) -> list[str]:
        """What each member is."""
        return ["PassiveAggressive"] * self.n_members
