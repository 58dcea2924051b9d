"""Many naive Bayes classifiers over shared statistics, each on its own random features."""

from collections.abc import Sequence
from dataclasses import dataclass, field
from typing import NamedTuple, Self

import numpy as np
from numpy.typing import ArrayLike, NDArray

from bayesvote._checks import Array, Labels, one_of, positive, whole
from bayesvote._input import Rows, RowsLike, check_labelled, check_rows, check_start, share_out, started
from bayesvote.members.subsets import random_subsets

_KINDS = ("auto", "bernoulli", "gaussian")
# Numbers of evidence held at a time, so that memory stays constant; fewer would mean to hand on work too often.
_PIECE = 120_000
# Below so many, starting a second thread costs more than it saves.
_WORTH_SHARING = 5_000
# Fewer features than this to a core would be short loops, whose beginnings cost more than sharing saves.
_FEATURES = 64
_NO_LABELS = np.zeros(0, dtype=np.intp)
_NO_WEIGHTS = np.zeros(0)


class NaiveBayesState(NamedTuple):
    """What a bank of naive Bayes classifiers has learned: statistics per class and feature, for all members."""

    own: NDArray[np.uint32]  # (m, k): the features each member sees
    uses: Array  # (d, m): the same as ones and zeros
    total: Array  # (K,): sample weights
    # (4, K, d): sample weights of the rows where the feature was not missing, mean, weighted sum of squares around
    # the mean, sample weights of the rows where the feature was not at its first value.
    statistics: Array
    # (4, d): the first value shown, the second, how many values (3 for more, which is Gaussian; less is Bernoulli),
    # and one where the feature was declared Bernoulli.
    shown: Array


@dataclass
class NaiveBayesBank:
    """Naive Bayes classifiers, each on its own random features.

    A member's score is the log of the classes' odds plus, for each of its features, the log-likelihood ratio of the
    value: Gaussian for continuous features, Bernoulli for binary ones. For more than two classes the scores are the
    log-likelihoods, shifted to mean zero. All members see the same rows, so the statistics are kept once per feature,
    and only their sums differ. A missing value adds nothing to its feature; the members that use it abstain.

    Parameters
    ----------
    n_members
        How many classifiers.
    max_features
        How many features each sees: a fraction, a count, or None for all.
    kinds
        "auto": a feature is binary until it shows a third value, and Gaussian from then on. "gaussian" and
        "bernoulli" declare it, for all features or in a sequence for each; a feature declared Bernoulli only tells
        whether it is above 0.
    gaussian_smoothing
        So many rows with the mean and variance of all classes together are added to each class.
    bernoulli_smoothing
        So many rows are added to each of the two values.

    Examples
    --------
    >>> bank = NaiveBayesBank(n_members=1, max_features=None).start(n_features=1)
    >>> bank.scores_then_learn([[0.0], [1.0], [1.0]], [0, 1, 1]).round(2).tolist()
    [[0.0], [5.52], [6.91]]
    """

    n_members: int = 100
    max_features: float | int | None = 0.5
    kinds: str | Sequence[str] = "auto"
    gaussian_smoothing: float = 5.0
    bernoulli_smoothing: float = 1e-3
    state: NaiveBayesState | None = field(default=None, init=False, repr=False)

    def start(self, n_features: int, n_classes: int = 2, rng: np.random.Generator | int | None = None) -> Self:
        """Forget everything; draw the features of each member."""
        who = "NaiveBayesBank"
        generator = check_start(who, n_features, n_classes, rng)
        whole(who, "n_members", self.n_members)
        positive(who, "gaussian_smoothing", self.gaussian_smoothing)
        positive(who, "bernoulli_smoothing", self.bernoulli_smoothing)
        kinds = np.array([self.kinds] * n_features if isinstance(self.kinds, str) else list(self.kinds))
        for name in kinds:
            one_of(who, "kinds", name, _KINDS)
        if len(kinds) != n_features:
            raise ValueError(f"{who}: kinds must have one entry for each of {n_features} features, got {len(kinds)}.")
        mask = random_subsets(n_features, self.n_members, self.max_features, generator)
        bernoulli = kinds == "bernoulli"
        self.state = NaiveBayesState(
            own=np.nonzero(mask)[1].reshape(self.n_members, -1).astype(np.uint32),
            uses=mask.T.astype(np.float64, order="C"),
            total=np.zeros(n_classes),
            statistics=np.zeros((4, n_classes, n_features)),
            shown=np.array(
                [
                    np.where(bernoulli, 0.0, np.nan),
                    np.where(bernoulli, 1.0, np.nan),
                    np.select([bernoulli, kinds == "gaussian"], [2.0, 3.0], 0.0),
                    bernoulli,
                ]
            ),
        )
        return self

    def scores(self, X: RowsLike) -> Array:
        """Score rows without learning from them."""
        state = started("NaiveBayesBank", self.state)
        rows = check_rows("NaiveBayesBank", X, len(state.uses))
        return self._run(state, rows, _NO_LABELS, _NO_WEIGHTS)

    def scores_then_learn(self, X: RowsLike, y: ArrayLike, sample_weight: ArrayLike | None = None) -> Array:
        """Score row t before learning row t."""
        state = started("NaiveBayesBank", self.state)
        n_features, n_classes = len(state.uses), len(state.total)
        return self._run(state, *check_labelled("NaiveBayesBank", X, y, sample_weight, n_features, n_classes))

    def _run(self, state: NaiveBayesState, rows: Rows, y: Labels, weight: Array) -> Array:
        from bayesvote.members._naive_bayes_kernels import centre

        n_ratios, m = len(state.total) - 1, self.n_members
        out = np.empty((rows.n, m) if n_ratios == 1 else (rows.n, m, n_ratios + 1))
        size = max(1, _PIECE // (rows.width * n_ratios))
        for a in range(0, rows.n, size):
            piece = slice(a, a + size)
            part = out[piece]
            sums = part[np.newaxis] if n_ratios == 1 else np.empty((n_ratios, len(part), m))
            self._sum(state, rows.todense(a, a + size), y[piece], weight[piece], rows.has_nan, sums)
            if n_ratios > 1:
                centre(sums, part)
        return out

    def _sum(self, state: NaiveBayesState, X: Array, y: Labels, weight: Array, has_nan: bool, out: Array) -> None:
        from bayesvote.members._naive_bayes_kernels import add_up, weigh
        from bayesvote.members._perceptron_kernels import BLOCK

        n, d = X.shape
        prior = np.empty((len(out), n))
        ratio = np.empty((len(out), n, d))
        given = (X, y, weight, state, self.gaussian_smoothing, self.bernoulli_smoothing)
        worth = X.size > _WORTH_SHARING
        share_out(lambda lo, hi: weigh(*given, lo, hi, prior, ratio), d, _FEATURES, worth=worth)
        share_out(
            lambda top, end: add_up(X, has_nan, prior, ratio, state, top, end, out),
            n,
            BLOCK,
            worth=worth,
        )
