"""Naive Bayes kernels: the evidence of each feature from shared statistics, then its sum per member.

The first runs row by row over a range of features, the second over a range of rows. Many short loops with unsigned
indices, few arrays and no branches: such the compiler vectorises.
"""

import numpy as np
from numba import njit

from bayesvote._checks import Array, Labels
from bayesvote.members._perceptron_kernels import (
    BLOCK,
    Features,
    abstain,
    add_own_product,
    add_product,
    transpose,
)

# Kinds of features by the values seen: none, one, two, more (or declared Gaussian).
NOTHING, ONE, TWO, MANY = 0.0, 1.0, 2.0, 3.0
# Evidence of a value: none, that of a binary feature's first or other value, or Gaussian.
_NONE, _FIRST, _OTHER, _GAUSS = 0.0, 1.0, 2.0, 3.0
# Features are worked on in so many at a time, as the compiler does: a rest would be slow.
_LANES = 16
# Squared distances in variances above this are as good as certain; larger ones could overflow.
_FARTHEST = 1e12
# Sums of squares below this are taken for none, or their quotients would overflow.
_LEAST = 1e-200

_HALF_ROOT = 0x3FE6A09E667F3BCD  # the bits of sqrt(1/2)
_MAGIC = 0x4338000000000000  # the bits of 1.5 * 2**52, whose last digits are units
_LOG2 = 0.6931471805599453


@njit(cache=True, nogil=True, error_model="numpy")
def log_all(x: Array, k: Array) -> None:
    """Replace positive normal numbers by their logarithms, to within one or two units in the last place.

    A loop the compiler vectorises, as it does not the library's logarithm: x = 2**k m with m from sqrt(1/2)
    to sqrt(2), log m = 2 artanh s with s = (m - 1) / (m + 1). ``k`` is room for as many numbers.
    """
    bits = x.view(np.uint64)
    powers = k.view(np.uint64)
    one = np.uint64(1023) << np.uint64(52)
    for j in range(np.uint64(len(x))):
        up = bits[j] + (one - np.uint64(_HALF_ROOT))
        powers[j] = (up >> np.uint64(52)) + np.uint64(_MAGIC - 1023)
        bits[j] -= ((up >> np.uint64(52)) << np.uint64(52)) - one
    for j in range(np.uint64(len(x))):
        s = (x[j] - 1.0) / (x[j] + 1.0)
        z = s * s
        # The rest of the series in s**2, with the coefficients of fdlibm's log.
        r = 1.479819860511658591e-01
        r = r * z + 1.531383769920937332e-01
        r = r * z + 1.818357216161805012e-01
        r = r * z + 2.222219843214978396e-01
        r = r * z + 2.857142874366239149e-01
        r = r * z + 3.999999999940941908e-01
        r = r * z + 6.666666666666735130e-01
        x[j] = (k[j] - 6755399441055744.0) * _LOG2 + (2.0 * s + s * z * r)


@njit(cache=True, nogil=True, error_model="numpy")
def pool(count: Array, mean: Array, scatter: Array, n: Array, middle: Array, spread: Array) -> None:
    """Count, mean and sum of squares of all classes together, class by class (Chan, Golub and LeVeque 1979)."""
    width = np.uint64(len(n))
    for j in range(width):
        n[j] = count[0, j]
    for j in range(width):
        middle[j] = mean[0, j]
    for j in range(width):
        spread[j] = scatter[0, j]
    for k in range(1, len(count)):
        for j in range(width):
            share = n[j] * count[k, j] / (n[j] + count[k, j]) if count[k, j] > 0.0 else 0.0
            spread[j] += scatter[k, j] + share * (mean[k, j] - middle[j]) ** 2
        for j in range(width):
            share = count[k, j] / (n[j] + count[k, j]) if count[k, j] > 0.0 else 0.0
            middle[j] += share * (mean[k, j] - middle[j])
        for j in range(width):
            n[j] += count[k, j]


@njit(cache=True, nogil=True, error_model="numpy")
def gaussians(
    count: Array,
    mean: Array,
    scatter: Array,
    n: Array,
    middle: Array,
    spread: Array,
    rows: float,
    mu: Array,
    var: Array,
) -> None:
    """Mean and variance per class, each with so many ``rows`` of all classes together added to its own."""
    width = np.uint64(len(n))
    for k in range(len(count)):
        for j in range(width):
            mu[k, j] = (count[k, j] * mean[k, j] + rows * middle[j]) / (count[k, j] + rows)
        for j in range(width):
            var[k, j] = (scatter[k, j] + rows * (spread[j] / n[j])) / (count[k, j] + rows)


@njit(cache=True, nogil=True, error_model="numpy")
def bernoulli(count: Array, other: Array, c: int, extra: float, p_first: Array, p_other: Array) -> None:
    """Probabilities of a binary feature's two values in class c, ``extra`` rows added to each."""
    for j in range(np.uint64(count.shape[1])):
        p_other[c, j] = (other[c, j] + extra) / (count[c, j] + 2.0 * extra)
    for j in range(np.uint64(count.shape[1])):
        p_first[c, j] = (count[c, j] - other[c, j] + extra) / (count[c, j] + 2.0 * extra)


@njit(cache=True, nogil=True, error_model="numpy")
def sort_out(x: Array, first: Array, second: Array, kind: Array, spread: Array, case: Array) -> None:
    """Tell which evidence each value gives; a third value makes a binary feature Gaussian on the spot."""
    for j in range(np.uint64(len(x))):
        old = (x[j] == first[j]) | (x[j] == second[j]) | (kind[j] == ONE)
        binary = _FIRST if x[j] == first[j] else _OTHER
        gauss = _GAUSS if spread[j] > _LEAST else _NONE
        seen = binary if (kind[j] != MANY) & old else gauss
        case[j] = seen if (x[j] == x[j]) & (kind[j] != NOTHING) else _NONE


@njit(cache=True, nogil=True, error_model="numpy")
def ratios(
    x: Array, case: Array, mu: Array, var: Array, p_first: Array, p_other: Array, k: int, room: Array, out: Array
) -> None:
    """Log-likelihood ratios of class k to class 0, feature by feature, into out."""
    width = np.uint64(len(x))
    for j in range(width):
        binary = p_first[k, j] / p_first[0, j] if case[j] == _FIRST else p_other[k, j] / p_other[0, j]
        ratio = var[0, j] / var[k, j] if case[j] == _GAUSS else binary
        out[j] = ratio if case[j] != _NONE else 1.0
    log_all(out, room)
    for j in range(width):
        near = min((x[j] - mu[0, j]) ** 2 / var[0, j], _FARTHEST)
        far = min((x[j] - mu[k, j]) ** 2 / var[k, j], _FARTHEST)
        out[j] = 0.5 * (out[j] + (near - far)) if case[j] == _GAUSS else out[j]


@njit(cache=True, nogil=True, error_model="numpy")
def learn_kinds(x: Array, first: Array, second: Array, kind: Array) -> None:
    """Take note of the values shown, up to the third."""
    news = 0
    for j in range(np.uint64(len(x))):
        old = (kind[j] == MANY) | (x[j] == first[j]) | (x[j] == second[j]) | (x[j] != x[j])
        news += 0 if old else 1
    if news == 0:
        return
    for j in range(len(x)):
        if kind[j] == MANY or x[j] == first[j] or x[j] == second[j] or np.isnan(x[j]):
            continue
        if kind[j] == NOTHING:
            first[j] = x[j]
        elif kind[j] == ONE:
            second[j] = x[j]
        kind[j] += 1.0


@njit(cache=True, nogil=True, error_model="numpy")
def learn(
    x: Array, c: int, weight: float, first: Array, count: Array, mean: Array, scatter: Array, other: Array
) -> None:
    """Add a row to the statistics of class c (West 1979); missing values add nothing."""
    width = np.uint64(len(x))
    for j in range(width):
        count[c, j] += weight if x[j] == x[j] else 0.0
    for j in range(width):
        other[c, j] += weight if (x[j] == x[j]) & (x[j] != first[j]) else 0.0
    for j in range(width):
        far = x[j] - mean[c, j] if x[j] == x[j] else 0.0
        step = weight * far / count[c, j] if x[j] == x[j] else 0.0
        scatter[c, j] += weight * far * (far - step)
        mean[c, j] += step


@njit(cache=True, nogil=True, error_model="numpy")
def move(source: Array, at: int, target: Array, to: int, n: int) -> None:
    """Copy n features of each row."""
    for k in range(len(source)):
        for j in range(n):
            target[k, to + j] = source[k, at + j]


@njit(cache=True, nogil=True, error_model="numpy")
def weigh(
    X: Array,
    y: Labels,
    weight: Array,
    total: Array,
    statistics: Array,
    shown: Array,
    rows: float,
    extra: float,
    lo: int,
    hi: int,
    prior: Array,
    out: Array,
) -> None:
    """Evidence of features lo to hi for each row, before it is learned; without labels none is.

    ``prior[k - 1, t]`` and ``out[k - 1, t]`` are the log-ratios of class k to class 0, of the classes and of each
    feature's value. The share that holds feature 0 does the classes.
    """
    n_classes, last = len(total), hi - lo
    width = -(-last // _LANES) * _LANES
    mine = np.zeros((8, n_classes, width))
    count, mean, scatter, other = mine[0], mine[1], mine[2], mine[3]
    mu, var, p_first, p_other = mine[4], mine[5], mine[6], mine[7]
    for s in range(4):
        move(statistics[s], lo, mine[s], 0, last)
    values = np.full((4, width), MANY)
    move(shown, lo, values, 0, last)
    first, second, kind, declared = values[0], values[1], values[2], values[3]
    room = np.zeros((7, width))
    x, case, spare, result, n, middle, spread = room[0], room[1], room[2], room[3], room[4], room[5], room[6]
    pool(count, mean, scatter, n, middle, spread)
    gaussians(count, mean, scatter, n, middle, spread, rows, mu, var)
    for k in range(n_classes):
        bernoulli(count, other, k, extra, p_first, p_other)
    for t in range(len(X)):
        for j in range(np.uint64(last)):
            v = X[t, np.uint64(lo) + j]
            x[j] = (1.0 if v > 0.0 else 0.0) if (declared[j] > 0.0) & (v == v) else v
        sort_out(x, first, second, kind, spread, case)
        for k in range(1, n_classes):
            ratios(x, case, mu, var, p_first, p_other, k, spare, result)
            for j in range(np.uint64(last)):
                out[k - 1, t, np.uint64(lo) + j] = result[j]
            if lo == 0:
                prior[k - 1, t] = np.log((total[k] + 1.0) / (total[0] + 1.0))
        if len(y) == 0 or weight[t] == 0.0:
            continue
        learn_kinds(x, first, second, kind)
        learn(x, y[t], weight[t], first, count, mean, scatter, other)
        bernoulli(count, other, y[t], extra, p_first, p_other)
        pool(count, mean, scatter, n, middle, spread)
        gaussians(count, mean, scatter, n, middle, spread, rows, mu, var)
        if lo == 0:
            total[y[t]] += weight[t]
    if len(y):
        for s in range(4):
            move(mine[s], 0, statistics[s], lo, last)
        move(values, 0, shown, lo, last)


@njit(cache=True, nogil=True, error_model="numpy")
def add_up(
    given: Array,
    has_nan: bool,
    prior: Array,
    ratio: Array,
    own: Features,
    uses: Array,
    start: int,
    last: int,
    out: Array,
) -> None:
    """Sum the log-ratios per member, rows start to last; ``out[k]`` is (rows, members).

    Whole blocks of rows go feature by feature of a member's own, the rest row by row: the bits are the same.
    """
    d, m = uses.shape
    columns = np.arange(d).astype(np.int32)
    X = np.empty((d, BLOCK))
    total = np.empty(BLOCK)
    left = last - (last - start) % BLOCK
    for k in range(len(ratio)):
        values = ratio[k].reshape(-1)
        for t in range(start, left, BLOCK):
            transpose(values, t * d, BLOCK, d, X)
            for i in range(m):
                total[:] = prior[k, t : t + BLOCK]
                add_own_product(X, own, i, uses, i, BLOCK, total)
                for r in range(BLOCK):
                    out[k, t + r, i] = total[r]
        for t in range(left, last):
            out[k, t, :] = prior[k, t]
            add_product(values, columns, t * d, (t + 1) * d, 0, uses, out[k], t, 0)
        if has_nan:
            for t in range(start, last):
                abstain(given.reshape(-1), columns, t * d, (t + 1) * d, 0, uses, out[k, t])


@njit(cache=True, nogil=True, error_model="numpy")
def centre(ratios: Array, out: Array) -> None:
    """Scores of K classes with mean zero, from the K - 1 log-ratios to class 0."""
    n_ratios, n, m = ratios.shape
    for t in range(n):
        for i in range(m):
            mean = 0.0
            for k in range(n_ratios):
                mean += ratios[k, t, i]
            mean /= n_ratios + 1
            out[t, i, 0] = -mean
            for k in range(n_ratios):
                out[t, i, k + 1] = ratios[k, t, i] - mean
