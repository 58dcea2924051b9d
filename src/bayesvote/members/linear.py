"""Linear classifiers, each on its own random features: a base class, and passive-aggressive members."""

from abc import abstractmethod
from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any, NamedTuple

import numpy as np
from numpy.typing import NDArray

from bayesvote.core.checks import Array, InputError, Labels, integer, one_of, positive
from bayesvote.core.rows import Rows
from bayesvote.core.state import Arrays, S, Shape, all_finite, padded, require
from bayesvote.core.threads import parallel_for
from bayesvote.members.attribution import Attribution
from bayesvote.members.base import NO_LABELS, NO_WEIGHTS, Bank
from bayesvote.members.subsets import agree, random_subsets, resized, with_more

_WORTH_SHARING = 500_000  # multiplications; with fewer, starting a second thread costs more time than it saves
# Members are processed in blocks whose weights fit the first-level cache: 3,000 numbers of 8 bytes take 24 of its
# usual 32 KiB. A block has at least 32 scores, four vectors of eight numbers.
_CACHED, _FEW = 3_000, 32
RULES = {"passive_aggressive": False, "passive_aggressive_squared": True}  # True if the slack is squared


class LinearState(NamedTuple):
    """State of linear classifiers. A member has one score for two classes, else one per class."""

    features: NDArray[np.uint32]  # (m, k): features that each member sees
    mask: NDArray[np.uint8]  # (d, scores): the same features as ones and zeros
    weights: Array  # (d, scores)
    bias: Array  # (scores,)


class LinearMembers(Bank[S]):
    """Base class of banks of linear classifiers. Their states begin with the fields of :class:`LinearState`."""

    draws_features = True
    n_members: int
    max_features: float | int | None

    @property
    def wants_scaled(self) -> bool:
        """True: a weight moves by the size of its feature."""
        return True

    @abstractmethod
    def limits(self, n_scores: int) -> tuple[Array, bool]:
        """Return the aggressiveness of every score, and True if the slack is squared; empty for Perceptrons."""

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
        return self._run(rows, NO_LABELS, NO_WEIGHTS)

    def advance(self, rows: Rows, y: Labels, w: Array) -> Array:
        """Score checked row t before learning row t."""
        return self._run(rows, y, w)

    def scoring(self, state: S) -> tuple[Array, Array]:
        """Return the weights (d, scores) and the bias (scores,) that rows are scored with."""
        return state.weights, state.bias

    def attributions(self, rows: Rows, coefficients: Array, shares: Array) -> Attribution:
        """Attribute scores exactly: a feature adds its value times its weight, and the bias is the start."""
        state = self.current_state
        weights, bias = self.scoring(state)
        flat = coefficients.reshape(rows.n, len(bias))
        seen = state.mask[:, :: len(bias) // self.n_members]
        parts = np.nan_to_num(rows.todense()) * (flat @ weights.T)
        return Attribution(parts, flat @ bias, shares @ seen.T)

    def wider(self, n_features: int, rng: np.random.Generator) -> S:
        """Return a wider state, in which a member sees the same share of the new features as of the old ones."""
        old = self.current_state
        features, more = with_more(old.features, len(old.weights), n_features, rng)
        mask = np.repeat(more, len(old.bias) // self.n_members, axis=0).T.astype(np.uint8)
        wide: S = old._replace(
            features=features,
            mask=np.ascontiguousarray(np.concatenate([old.mask, mask])),  # one row could come out in column order
            weights=padded(old.weights, 0, n_features),
        )
        return wide

    def least_bytes(self, n_features: int, n_classes: int) -> int:
        """Size of the weights."""
        integer(self.who, "n_members", self.n_members)
        return 8 * n_features * self.n_members * (1 if n_classes == 2 else n_classes)

    def template(self, shape: Shape, arrays: Arrays) -> S:
        """Return a blank state with the file's number of features per member, which depends on how it was widened."""
        fresh = super().template(shape, arrays)
        wide: S = fresh._replace(features=resized(fresh.features, arrays))
        return wide

    def validate(self, state: S) -> None:
        """Raise an error for features that do not match the mask, and for weights of features that are not seen."""
        all_finite(state, most=1e160)  # times the largest value, 1e100, a score is still finite
        per = len(state.bias) // len(state.features)
        require(agree(state.features, state.mask, per), "features and mask must agree")
        unseen = state.mask == 0
        require(not np.any(state.weights[unseen]), "weights must be 0 for features that a member does not see")

    def _run(self, rows: Rows, y: Labels, weight: Array) -> Array:
        from bayesvote.members._perceptron_kernels import BLOCK, run, run_some, score_dense

        state = self.current_state
        n, n_scores = rows.n, len(state.bias)
        per = n_scores // self.n_members
        out = np.empty((n, n_scores))
        if rows.dense is not None and n >= BLOCK and 2 * np.count_nonzero(rows.dense[:BLOCK]) < BLOCK * rows.width:
            rows = _without_zeros(rows)
        values = np.nan_to_num(rows.values, nan=0.0) if rows.has_nan else rows.values
        dense = rows.dense is not None
        given = (rows, values, y, weight, state, *self.limits(n_scores))
        some = max(_CACHED // (rows.width * (2 if self.doubled else 1)), _FEW) // per * per
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
        """True if a row also needs a second set of weights."""
        return False


def _without_zeros(rows: Rows) -> Rows:
    from bayesvote.members._perceptron_kernels import compress

    X = rows.todense()
    # The kernel writes each value before it decides to keep it, hence one extra place.
    values = np.empty(X.size + 1)
    columns = np.empty(X.size + 1, dtype=np.int32)
    starts = np.zeros(rows.n + 1, dtype=np.int64)
    compress(X, values, columns, starts)
    return rows._replace(dense=None, values=values[: starts[-1]], columns=columns[: starts[-1]], starts=starts)


@dataclass
class LinearBank(LinearMembers[LinearState]):
    """Passive-aggressive linear classifiers with a bias (Crammer et al. 2006), each on its own random features.

    A member's score is w.x + b, with the weights from before the row is learned. With y = -1, 1, the hinge loss of a
    row is h = 1 - y (w.x + b). If it is above 0, the weights make the smallest move after which it is 0, limited by
    the aggressiveness C: w += t y x and b += t y with t = min(C, h/(1 + x.x)). With more classes, each class has its
    own weights, and h is 1 minus the lead of the right class over the best other class. Then t = min(C, h/(2 + 2 x.x))
    times x is added to the weights of the right class and subtracted from those of the other. The sample weight
    multiplies C.

    A Perceptron makes equally large steps on every mistake. A passive-aggressive step depends on the loss of the row,
    so these members follow a change at once. With a large C they also follow noise.

    Parameters
    ----------
    n_members
        Number of members.
    max_features
        Features that each member sees: a fraction, a count, or None for all.
    aggressiveness
        C, or a sequence of values, which the members use in turn.
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
        """Check the configuration."""
        one_of(self.who, "rule", self.rule, RULES)
        given: Any = self.aggressiveness
        for value in given if np.ndim(given) else (given,):
            positive(self.who, "aggressiveness", value)
        if np.size(given) == 0:
            raise InputError(self.who, "aggressiveness", "must hold at least one number", "none")
        self._limits = np.zeros(0)

    def init(self, n_features: int, n_classes: int, rng: np.random.Generator) -> LinearState:
        """Draw the features of each member and set all weights to zero."""
        return self.blank_weights(n_features, n_classes, rng)

    def limits(self, n_scores: int) -> tuple[Array, bool]:
        """Return the aggressiveness of every score, and True if the slack is squared."""
        limits = self._limits
        if len(limits) != n_scores:  # computed once after each start
            given = np.atleast_1d(np.asarray(self.aggressiveness, dtype=np.float64))
            member = np.arange(n_scores) // (n_scores // self.n_members)
            self._limits = limits = given[member % len(given)]
        return limits, RULES[self.rule]

    def member_names(self) -> list[str]:
        """Names of the members."""
        return ["PassiveAggressive"] * self.n_members
