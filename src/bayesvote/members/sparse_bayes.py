"""Naive Bayes over more than ``WIDE`` features: statistics of values other than 0, and one sum for all zeros."""

from typing import TYPE_CHECKING

import numpy as np
from numpy.typing import NDArray

from bayesvote.core.checks import Array, Labels
from bayesvote.core.rows import LARGEST, Rows
from bayesvote.core.state import MOST_TOTAL, require, within
from bayesvote.core.threads import parallel_for
from bayesvote.members.attribution import Attribution, added_up
from bayesvote.members.base import NO_LABELS, NO_WEIGHTS

if TYPE_CHECKING:
    from bayesvote.members.naive_bayes import NaiveBayesState

WIDE = 1024  # features; rows that are wider are usually sparse, and cost what they hold other than 0
_MOST = LARGEST * (1 + 1e-9)  # size of a mean of values, with its rounding
_SLACK = 1 + 1e-6  # relative rounding of sums over up to all features, which may exceed their exact bounds by a little
_WORTH_SHARING = 20_000  # additions; with fewer, starting a second thread costs more time than it saves


def is_wide(n_features: int) -> bool:
    """Return True if rows are processed by their values other than 0."""
    return n_features > WIDE


def log_ratios(state: "NaiveBayesState", rows: Rows, y: Labels, w: Array, smoothing: float) -> Array:
    """Return the log-ratios (K - 1, n, m) of each class to class 0, per member, row t before it is learned."""
    from bayesvote.members._sparse_bayes_kernels import run

    n_ratios, m = len(state.total) - 1, state.mask.shape[1]
    out, per_value = np.empty((n_ratios, rows.n, m)), np.empty((n_ratios, 0))

    def some(first: int, last: int) -> None:
        run(rows, y, w, state, smoothing, first, last, out, per_value)

    if len(y):  # the score of a row depends on the rows before it
        some(0, rows.n)
    else:
        parallel_for(some, rows.n, worth=len(rows.values) * m > _WORTH_SHARING)
    return out


def attributions(state: "NaiveBayesState", rows: Rows, of_ratio: Array, shares: Array, smoothing: float) -> Attribution:
    """Attribute log-ratios, times coefficients (n, m, K - 1), to the features; the start is that of a row of zeros.

    Members look at all of their features, as the absence of a value counts, too.
    """
    from bayesvote.members import _sparse_bayes_kernels as kernels

    (n, m, n_ratios), values = of_ratio.shape, len(rows.values)
    out, per_value, empty = np.empty((n_ratios, n, m)), np.zeros((n_ratios, values)), np.empty((n_ratios, m))
    kernels.run(rows, NO_LABELS, NO_WEIGHTS, state, smoothing, 0, n, out, per_value)
    kernels.start(state, smoothing, empty)
    row = np.repeat(np.arange(n), np.diff(rows.starts))
    column = rows.columns if rows.sparse else np.tile(rows.columns, n)
    parts, start = np.zeros((n, rows.width)), np.zeros(n)
    for k in range(n_ratios):
        coefficient = np.einsum("vm,vm->v", of_ratio[row, :, k], state.mask[column])
        parts += added_up(row, column.astype(np.intp), per_value[k] * coefficient, rows.width, n)
        start += of_ratio[:, :, k] @ empty[k]
    return Attribution(parts, start, shares @ state.mask.T)


def converted(state: "NaiveBayesState", gaussian: NDArray[np.bool_]) -> "NaiveBayesState":
    """Convert the state of a bank that has become wide.

    The weight of zeros is known for features whose first value was 0, and for binary ones. Other features are assumed
    never to have been 0. ``gaussian`` marks the features that were declared Gaussian.
    """
    count, mean, squares, other = state.statistics
    first, second, kinds, declared = state.values_seen
    nonzero = np.where(first == 0, other, np.where((kinds == 2) & (second == 0), count - other, count))
    nonzero[:, kinds < 1] = 0.0
    nonzero = np.clip(nonzero, 0.0, count)
    known = nonzero > 0
    mean_of = np.where(known, mean * (count / np.where(known, nonzero, 1.0)), 0.0)
    mean_of = np.clip(mean_of, -LARGEST, LARGEST)
    squares_of = np.where(known, np.maximum(squares + count * mean**2 - nonzero * mean_of**2, 0.0), 0.0)
    missing = np.maximum(state.total[:, None] - count, 0.0)
    kinds = np.select([declared > 0, gaussian], [2.0, 3.0], 0.0)
    no_value = np.full(len(kinds), np.nan)
    seen = np.array([np.where(declared > 0, 0.0, no_value), np.where(declared > 0, 1.0, no_value), kinds, declared])
    return state._replace(
        statistics=np.array([missing, mean_of, squares_of, nonzero]),
        values_seen=seen,
        # Not a BLAS product, whose rounding depends on the number of threads.
        present=np.einsum("kd,dm->km", nonzero, state.mask),
    )


def check(state: "NaiveBayesState") -> None:
    """Raise an error for sums that no rows have."""
    missing, mean, squares, nonzero = state.statistics
    require(within(mean, -_MOST, _MOST), f"means in statistics must be at most {_MOST:g} in size")
    require(within(state.total, 0, MOST_TOTAL), "total must be at least 0, and the weight of rows")
    require(not np.any(state.statistics[[0, 2, 3]] < 0), "weights and squares in statistics must be at least 0")
    most = state.total[:, None] * _SLACK
    require(not np.any(missing + nonzero > most), "a feature must not weigh more than its class in statistics")
    require(not np.any(squares > 4 * _MOST**2 * nonzero), "squares in statistics must be of values")
    require(not np.any(state.present < 0), "present must be at least 0")
    require(not np.any(state.present > state.features.shape[1] * most), "present must not be more than all features")
    first, second, kinds, declared = state.values_seen
    require(bool(np.all(np.isin(declared, (0, 1)))), "values_seen must mark declared features by 0 or 1")
    require(bool(np.all(np.isin(kinds, (0, 2, 3)))), "values_seen must be of features declared or not")
    require(np.array_equal(kinds == 2, declared == 1), "values_seen must mark declared features twice")
    require(np.array_equal(first == 0, declared == 1), "values_seen must hold the values of declared features only")
    require(np.array_equal(second == 1, declared == 1), "values_seen must hold the values of declared features only")
