"""Naive Bayes classifiers over shared statistics, each on its own random features."""

from collections.abc import Sequence
from dataclasses import dataclass
from typing import NamedTuple

import numpy as np
from numpy.typing import NDArray

from bayesvote.core.checks import Array, InputError, Labels, integer, one_of, positive
from bayesvote.core.rows import LARGEST, Rows
from bayesvote.core.state import MOST_TOTAL, Arrays, Shape, all_finite, padded, renamed, require, within
from bayesvote.core.threads import parallel_for
from bayesvote.members import sparse_bayes
from bayesvote.members.attribution import Attribution
from bayesvote.members.base import NO_LABELS, NO_WEIGHTS, Bank
from bayesvote.members.subsets import agree, random_subsets, resized, with_more

_KINDS = ("auto", "bernoulli", "gaussian")
# Log-likelihood ratios held at a time: 120,000 numbers of 8 bytes take 1 MB. Smaller pieces would cost more calls.
_PIECE = 120_000
_WORTH_SHARING = 5_000  # values; with fewer, starting a second thread costs more time than it saves
_FEATURES = 64  # per thread at least: shorter loops cost more to start than sharing saves
_SLACK = 1 + 1e-9  # relative rounding of sums and means, which may exceed their exact bounds by a little
_MOST = LARGEST * _SLACK  # size of a mean of values


class NaiveBayesState(NamedTuple):
    """Statistics per class and feature, which all members share."""

    features: NDArray[np.uint32]  # (m, k): features that each member sees
    mask: Array  # (d, m): the same features as ones and zeros
    total: Array  # (K,): sum of the sample weights
    # (4, K, d): weight of the rows where the feature is not missing; mean; weighted sum of squares around the mean;
    # weight of the rows where the feature differs from its first value.
    # With more than ``WIDE`` features: weight of the rows where the feature is missing; mean and sum of squares of its
    # values other than 0; weight of the rows with such a value.
    statistics: Array
    # (4, d): first value; second value; number of values (up to 2 is Bernoulli; 3 stands for more, and is Gaussian);
    # 1 if the feature was declared Bernoulli.
    values_seen: Array
    present: Array  # (K, m): with more than ``WIDE`` features, sum of the last statistic over a member's features


@dataclass
class NaiveBayesBank(Bank[NaiveBayesState]):
    """Naive Bayes classifiers, each on its own random features.

    A member's score is the log-odds of the classes plus the log-likelihood ratios of its features: Gaussian for
    continuous features, Bernoulli for binary ones. With more than two classes, the scores are the log-likelihoods,
    shifted to mean 0. All members see the same rows, so the statistics are kept once per feature, and members differ
    only in which features they sum up. A missing value is left out of the statistics and of the sum.

    With more than 1,024 features, the cost of a row is that of its values other than 0. The occurrence of such a value
    is then what counts: features occur independently of each other, at a rate per class (Poisson). The value itself
    counts too, as Gaussian among the feature's values other than 0, if at least a quarter of the rows have such a
    value, or if the feature is declared Gaussian. A member that uses a missing value then abstains.

    Parameters
    ----------
    n_members
        Number of classifiers.
    max_features
        Features that each member sees: a fraction, a count, or None for all.
    kinds
        With "auto", a feature is binary until it has a third value, and Gaussian from then on. "gaussian" and
        "bernoulli" declare the kind, for all features or as a sequence with one entry per feature. Of a feature
        declared Bernoulli only the sign counts: above 0 or not.
    gaussian_smoothing
        Number of rows that are added to each class, with the mean and variance of all classes together. With more
        than 1,024 features, these rows also have the overall rate of values other than 0.
    bernoulli_smoothing
        Number of rows that are added to each of the two values.

    Examples
    --------
    >>> bank = NaiveBayesBank(n_members=1, max_features=None).start(n_features=1)
    >>> bank.scores_then_learn([[0.0], [1.0], [1.0]], [0, 1, 1]).round(2).tolist()
    [[0.0], [5.52], [6.91]]
    """

    draws_features = True

    n_members: int = 100
    max_features: float | int | None = 0.5
    kinds: str | Sequence[str] = "auto"
    gaussian_smoothing: float = 5.0
    bernoulli_smoothing: float = 1e-3

    version = 3

    def init(self, n_features: int, n_classes: int, rng: np.random.Generator) -> NaiveBayesState:
        """Draw the features of each member."""
        integer(self.who, "n_members", self.n_members)
        positive(self.who, "gaussian_smoothing", self.gaussian_smoothing)
        positive(self.who, "bernoulli_smoothing", self.bernoulli_smoothing)
        kinds = np.array([self.kinds] * n_features if isinstance(self.kinds, str) else list(self.kinds))
        for name in kinds:
            one_of(self.who, "kinds", name, _KINDS)
        if len(kinds) != n_features:
            must = f"must have one entry for each of {n_features} features"
            raise InputError(self.who, "kinds", must, str(len(kinds)))
        mask = random_subsets(n_features, self.n_members, self.max_features, rng)
        return NaiveBayesState(
            features=np.nonzero(mask)[1].reshape(self.n_members, -1).astype(np.uint32),
            mask=mask.T.astype(np.float64, order="C"),
            total=np.zeros(n_classes),
            statistics=np.zeros((4, n_classes, n_features)),
            values_seen=_declared(kinds),
            present=np.zeros((n_classes, self.n_members)),
        )

    def score(self, rows: Rows) -> Array:
        """Score checked rows."""
        return self._run(rows, NO_LABELS, NO_WEIGHTS)

    def advance(self, rows: Rows, y: Labels, w: Array) -> Array:
        """Score checked row t before learning row t."""
        return self._run(rows, y, w)

    def attributions(self, rows: Rows, coefficients: Array, shares: Array) -> Attribution:
        """Attribute scores exactly: features add log-likelihood ratios; the start is the log-odds of the classes."""
        from bayesvote.members._naive_bayes_kernels import weigh

        state = self.current_state
        (n, d), n_ratios = (rows.n, rows.width), len(state.total) - 1
        # With more than two classes, scores are log-ratios to class 0, minus their mean.
        of_class = coefficients[..., None] if n_ratios == 1 else coefficients
        of_ratio = of_class if n_ratios == 1 else (of_class - of_class.mean(axis=2, keepdims=True))[:, :, 1:]
        if sparse_bayes.is_wide(d):
            return sparse_bayes.attributions(state, rows, of_ratio, shares, self.gaussian_smoothing)
        prior, ratio = np.empty((n_ratios, n)), np.empty((n_ratios, n, d))
        smoothing = self.gaussian_smoothing, self.bernoulli_smoothing
        weigh(rows.todense(), NO_LABELS, NO_WEIGHTS, state, *smoothing, 0, d, prior, ratio)
        parts, start = np.zeros((n, d)), np.zeros(n)
        for k in range(n_ratios):
            parts += np.nan_to_num(ratio[k]) * (of_ratio[:, :, k] @ state.mask.T)
            start += prior[k] * of_ratio[:, :, k].sum(axis=1)
        return Attribution(parts, start, shares @ state.mask.T)

    def wider(self, n_features: int, rng: np.random.Generator) -> NaiveBayesState:
        """Return a wider state, in which a member sees the same share of the new features as of the old ones."""
        old = self.current_state
        d = len(old.mask)
        features, more = with_more(old.features, d, n_features, rng)
        kind = self.kinds if isinstance(self.kinds, str) else "auto"
        new = _declared(np.full(n_features - d, kind))
        statistics, values_seen = padded(old.statistics, 2, n_features), np.hstack([old.values_seen, new])
        wide = old._replace(
            features=features,
            mask=np.ascontiguousarray(np.concatenate([old.mask, more.T])),
            statistics=statistics,
            values_seen=values_seen,
        )
        if sparse_bayes.is_wide(d):
            return wide
        statistics[0, :, d:] = old.total[:, np.newaxis]
        if old.total.any() and kind == "auto":  # rows were learned, and new features were 0 in them
            values_seen[[0, 2], d:] = [[0.0], [1.0]]
        return self._converted(wide) if sparse_bayes.is_wide(n_features) else wide

    def least_bytes(self, n_features: int, n_classes: int) -> int:
        """Size of the mask and the statistics."""
        integer(self.who, "n_members", self.n_members)
        return 8 * n_features * (self.n_members + 4 * n_classes)

    def template(self, shape: Shape, arrays: Arrays) -> NaiveBayesState:
        """Return a blank state with the file's number of features per member, which depends on how it was widened."""
        fresh = super().template(shape, arrays)
        return fresh._replace(features=resized(fresh.features, arrays))

    def validate(self, state: NaiveBayesState) -> None:
        """Raise an error for features that do not match the mask, impossible sums and unknown kinds of features."""
        all_finite(state, but=("values_seen",))
        require(agree(state.features, state.mask, 1), "features and mask must agree")
        if sparse_bayes.is_wide(len(state.mask)):
            sparse_bayes.check(state)
            return
        require(not np.any(state.present), f"present must be 0 for at most {sparse_bayes.WIDE} features")
        present, mean, squares, other_value = state.statistics
        require(within(mean, -_MOST, _MOST), f"means in statistics must be at most {_MOST:g} in size")
        require(not np.any(np.abs(state.values_seen) > _MOST), f"values_seen must be at most {_MOST:g} in size")
        require(within(state.total, 0, MOST_TOTAL), "total must be at least 0, and the weight of rows")
        require(not np.any(state.statistics[[0, 2, 3]] < 0), "weights and squares in statistics must be at least 0")
        most = state.total[:, None] * _SLACK
        require(not np.any(present > most), "a feature must not weigh more than its class in statistics")
        more = present * _SLACK
        require(not np.any(other_value > more), "a value must not weigh more than its feature in statistics")
        require(not np.any(squares > 4 * _MOST**2 * more), "squares in statistics must be of values")
        require(not np.any(squares[present == 0]), "squares must be 0 where nothing was seen")
        first, second, kinds, declared = state.values_seen
        require(bool(np.all(np.isin(kinds, (0, 1, 2, 3)))), "values_seen must count 0 to 3 values")
        require(bool(np.all(np.isin(declared, (0, 1)))), "values_seen must mark declared features by 0 or 1")
        known = kinds < 3  # a feature that was declared Gaussian may have no value yet
        require(
            np.array_equal(np.isnan(first[known]), kinds[known] < 1)
            and np.array_equal(np.isnan(second[known]), kinds[known] < 2),
            "values_seen must hold as many values as it counts",
        )
        require(not np.any(present[:, kinds < 1]), "a feature without values must not weigh in statistics")
        require(not np.any(other_value[:, kinds < 2]), "a second value must not weigh before it was seen")

    def upgraded(self, version: int, arrays: Arrays) -> Arrays:
        """Return arrays of version 1, which had other names, or 2, which had the same statistics for any width."""
        if version not in (1, 2):
            return super().upgraded(version, arrays)
        if version == 1:
            arrays = renamed(arrays, own="features", uses="mask", shown="values_seen")
        require(arrays.keys() == set(NaiveBayesState._fields) - {"present"}, "arrays must be those of version 2")
        old = NaiveBayesState(**arrays, present=np.zeros((len(arrays["total"]), self.n_members)))
        found: Arrays = (self._converted(old) if sparse_bayes.is_wide(len(old.mask)) else old)._asdict()
        return found

    def _converted(self, state: NaiveBayesState) -> NaiveBayesState:
        gaussian = np.zeros(len(state.mask), dtype=np.bool_)
        if isinstance(self.kinds, str):
            gaussian[:] = self.kinds == "gaussian"
        else:
            gaussian[: len(self.kinds)] = np.array(self.kinds) == "gaussian"
        return sparse_bayes.converted(state, gaussian)

    def _run(self, rows: Rows, y: Labels, weight: Array) -> Array:
        from bayesvote.members._naive_bayes_kernels import centre

        state = self.current_state
        n_ratios, m = len(state.total) - 1, self.n_members
        if sparse_bayes.is_wide(rows.width):
            ratios = sparse_bayes.log_ratios(state, rows, y, weight, self.gaussian_smoothing)
            if n_ratios == 1:
                return np.asarray(ratios[0])
            out = np.empty((rows.n, m, n_ratios + 1))
            centre(ratios, out)
            return out
        out = np.empty((rows.n, m) if n_ratios == 1 else (rows.n, m, n_ratios + 1))
        size = max(1, _PIECE // (rows.width * n_ratios))
        for a in range(0, rows.n, size):
            piece = slice(a, a + size)
            part = out[piece]
            sums = part[np.newaxis] if n_ratios == 1 else np.empty((n_ratios, len(part), m))
            self._sum(state, rows.todense(a, a + size), y[piece], weight[piece], sums)
            if n_ratios > 1:
                centre(sums, part)
        return out

    def _sum(self, state: NaiveBayesState, X: Array, y: Labels, weight: Array, out: Array) -> None:
        from bayesvote.members._naive_bayes_kernels import add_up, weigh
        from bayesvote.members._perceptron_kernels import BLOCK

        n, d = X.shape
        prior = np.empty((len(out), n))
        ratio = np.empty((len(out), n, d))
        given = (X, y, weight, state, self.gaussian_smoothing, self.bernoulli_smoothing)
        if X.size > _WORTH_SHARING:
            parallel_for(lambda lo, hi: weigh(*given, lo, hi, prior, ratio), d, _FEATURES)
            parallel_for(lambda top, end: add_up(prior, ratio, state, top, end, out), n, BLOCK)
        else:
            weigh(*given, 0, d, prior, ratio)
            add_up(prior, ratio, state, 0, n, out)


def _declared(kinds: NDArray[np.str_]) -> Array:
    """Return ``values_seen`` before any row, for features of these kinds."""
    bernoulli, gaussian = kinds == "bernoulli", kinds == "gaussian"
    first, second = np.where(bernoulli, 0.0, np.nan), np.where(bernoulli, 1.0, np.nan)
    return np.array([first, second, np.select([bernoulli, gaussian], [2.0, 3.0], 0.0), bernoulli])
