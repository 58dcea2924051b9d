"""Naive Bayes kernels: the evidence of each feature from shared statistics, then its sum per member.

The first runs row by row over a range of features, the second over a range of rows. Gaussian features and binary ones,
which cost far less, are kept apart. Many short loops with unsigned indices, few arrays and no branches: such the
compiler vectorises.
"""

import numpy as np
from numba import njit

from bayesvote._checks import Array, Labels
from bayesvote.members._perceptron_kernels import (
    BLOCK,
    Features,
    Places,
    abstain,
    transpose,
)
from bayesvote.members._vectors import product_32

# Kinds of features by the values seen: none, one, two, more (or declared Gaussian).
NOTHING, ONE, TWO, MANY = 0.0, 1.0, 2.0, 3.0
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
def gaussian_ratios(x: Array, spread: Array, mu: Array, var: Array, k: int, room: Array, out: Array) -> None:
    """Log-likelihood ratios of class k to class 0 for Gaussian features; none where x is missing or nothing spread."""
    width = np.uint64(len(x))
    for j in range(width):
        out[j] = var[0, j] / var[k, j] if spread[j] > _LEAST else 1.0
    log_all(out, room)
    for j in range(width):
        near = min((x[j] - mu[0, j]) ** 2 / var[0, j], _FARTHEST)
        far = min((x[j] - mu[k, j]) ** 2 / var[k, j], _FARTHEST)
        out[j] = 0.5 * (out[j] + (near - far)) if (x[j] == x[j]) & (spread[j] > _LEAST) else 0.0


@njit(cache=True, nogil=True, error_model="numpy")
def bernoulli_ratios(
    x: Array, first: Array, count: Array, other: Array, k: int, extra: float, room: Array, out: Array
) -> None:
    """Log-likelihood ratios of class k to class 0 for binary features, ``extra`` rows added to each value."""
    for j in range(np.uint64(len(x))):
        mine = other[k, j] if x[j] != first[j] else count[k, j] - other[k, j]
        base = other[0, j] if x[j] != first[j] else count[0, j] - other[0, j]
        ratio = (mine + extra) * (count[0, j] + 2.0 * extra) / ((base + extra) * (count[k, j] + 2.0 * extra))
        out[j] = ratio if x[j] == x[j] else 1.0
    log_all(out, room)


@njit(cache=True, nogil=True, error_model="numpy")
def news(x: Array, first: Array, second: Array) -> int:
    """How many values are neither missing nor one of the two shown."""
    found = 0
    for j in range(np.uint64(len(x))):
        found += 0 if (x[j] == first[j]) | (x[j] == second[j]) | (x[j] != x[j]) else 1
    return found


@njit(cache=True, nogil=True, error_model="numpy")
def learn_kinds(x: Array, first: Array, second: Array, kind: Array) -> None:
    """Take note of the first and the second value shown."""
    for j in range(len(x)):
        if x[j] == first[j] or x[j] == second[j] or np.isnan(x[j]):
            continue
        if kind[j] == NOTHING:
            first[j] = x[j]
        else:
            second[j] = x[j]
        kind[j] += 1.0


@njit(cache=True, nogil=True, error_model="numpy")
def learn_counts(x: Array, c: int, weight: float, first: Array, count: Array, other: Array) -> None:
    """Count a row of class c; missing values add nothing."""
    for j in range(np.uint64(len(x))):
        count[c, j] += weight if x[j] == x[j] else 0.0
    for j in range(np.uint64(len(x))):
        other[c, j] += weight if (x[j] == x[j]) & (x[j] != first[j]) else 0.0


@njit(cache=True, nogil=True, error_model="numpy")
def learn_moments(x: Array, c: int, weight: float, count: Array, mean: Array, scatter: Array) -> None:
    """Add a row of class c, counted already, to the means and sums of squares (West 1979)."""
    for j in range(np.uint64(len(x))):
        far = x[j] - mean[c, j] if x[j] == x[j] else 0.0
        step = weight * far / count[c, j] if x[j] == x[j] else 0.0
        scatter[c, j] += weight * far * (far - step)
        mean[c, j] += step


@njit(cache=True, nogil=True, error_model="numpy")
def moments_of_two(statistics: Array, shown: Array, j: int) -> None:
    """Means and sums of squares of a feature with at most two values, from their counts."""
    for k in range(statistics.shape[1]):
        n, others = statistics[0, k, j], statistics[3, k, j]
        apart = shown[1, j] - shown[0, j] if others > 0.0 else 0.0
        statistics[1, k, j] = shown[0, j] + apart * (others / n) if n > 0.0 else 0.0
        statistics[2, k, j] = apart * apart * (others * ((n - others) / n)) if n > 0.0 else 0.0


@njit(cache=True, nogil=True, error_model="numpy")
def take(source: Array, places: Places) -> Array:
    """Some features of each row, and zeros up to whole lanes."""
    out = np.zeros((len(source), -(-len(places) // _LANES) * _LANES))
    for k in range(len(source)):
        for i in range(len(places)):
            out[k, i] = source[k, places[i]]
    return out


@njit(cache=True, nogil=True, error_model="numpy")
def put(source: Array, places: Places, target: Array) -> None:
    """Put back what `take` took."""
    for k in range(len(source)):
        for i in range(len(places)):
            target[k, places[i]] = source[k, i]


@njit(cache=True, nogil=True, error_model="numpy")
def take_values(X: Array, t: int, places: Places, declared: Array, x: Array) -> None:
    """Take some features of a row; of those declared Bernoulli, whether they are above 0."""
    for i in range(np.uint64(len(places))):
        v = X[t, places[i]]
        x[i] = (1.0 if v > 0.0 else 0.0) if (declared[i] > 0.0) & (v == v) else v


@njit(cache=True, nogil=True, error_model="numpy")
def divide(X: Array, start: int, shown: Array, lo: int, hi: int) -> tuple[Places, Places, Places]:
    """Features from lo to hi that are Gaussian, those among them since this row's third value, and binary ones."""
    kind = shown[2, lo:hi]
    x = X[start, lo:hi]
    third = (kind == TWO) & (shown[3, lo:hi] == 0.0) & (x == x) & (x != shown[0, lo:hi]) & (x != shown[1, lo:hi])
    many = third | (kind == MANY)
    first = np.uint64(lo)
    return (
        np.nonzero(many)[0].astype(np.uint64) + first,
        np.nonzero(third)[0].astype(np.uint64) + first,
        np.nonzero(~many)[0].astype(np.uint64) + first,
    )


@njit(cache=True, nogil=True, error_model="numpy")
def weigh_some(
    X: Array,
    y: Labels,
    weight: Array,
    statistics: Array,
    shown: Array,
    rows: float,
    extra: float,
    lo: int,
    hi: int,
    start: int,
    out: Array,
) -> int:
    """Do what `weigh` does from one row on up to the next that shows a binary feature's new value, and return that."""
    many, third, few = divide(X, start, shown, lo, hi)
    shown_many, shown_few = take(shown, many), take(shown, few)
    count, mean, scatter = take(statistics[0], many), take(statistics[1], many), take(statistics[2], many)
    other, count_few, other_few = take(statistics[3], many), take(statistics[0], few), take(statistics[3], few)
    n_classes, width = count.shape
    room = np.zeros((6 + 2 * n_classes, width))
    x, spare, result, n, middle, spread = room[0], room[1], room[2], room[3], room[4], room[5]
    mu, var = room[6 : 6 + n_classes], room[6 + n_classes :]
    room_few = np.zeros((3, count_few.shape[1]))
    x_few, spare_few, result_few = room_few[0], room_few[1], room_few[2]
    pool(count, mean, scatter, n, middle, spread)
    gaussians(count, mean, scatter, n, middle, spread, rows, mu, var)
    for_now = len(third) > 0  # until this row is learned, if it is
    t = start
    while t < len(X):
        take_values(X, t, many, shown_many[3], x)
        take_values(X, t, few, shown_few[3], x_few)
        if t > start and (for_now or news(x_few, shown_few[0], shown_few[1])):
            break
        for k in range(1, n_classes):
            gaussian_ratios(x, spread, mu, var, k, spare, result)
            put(room[2:3], many, out[k - 1, t : t + 1])
            bernoulli_ratios(x_few, shown_few[0], count_few, other_few, k, extra, spare_few, result_few)
            put(room_few[2:3], few, out[k - 1, t : t + 1])
        if len(y) and weight[t] != 0.0:
            if t == start:
                for_now = False
                shown_many[2, : len(many)] = MANY
                learn_kinds(x_few, shown_few[0], shown_few[1], shown_few[2])
            learn_counts(x_few, y[t], weight[t], shown_few[0], count_few, other_few)
            learn_counts(x, y[t], weight[t], shown_many[0], count, other)
            learn_moments(x, y[t], weight[t], count, mean, scatter)
            pool(count, mean, scatter, n, middle, spread)
            gaussians(count, mean, scatter, n, middle, spread, rows, mu, var)
        t += 1
    if len(y):
        put(shown_many, many, shown)
        put(shown_few, few, shown)
        put(count, many, statistics[0])
        put(mean, many, statistics[1])
        put(scatter, many, statistics[2])
        put(other, many, statistics[3])
        put(count_few, few, statistics[0])
        put(other_few, few, statistics[3])
        for j in few:
            moments_of_two(statistics, shown, j)
    return t


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
    if lo == 0:
        for t in range(len(X)):
            for k in range(1, len(total)):
                prior[k - 1, t] = np.log((total[k] + 1.0) / (total[0] + 1.0))
            if len(y):
                total[y[t]] += weight[t]
    t = 0
    while t < len(X):
        t = weigh_some(X, y, weight, statistics, shown, rows, extra, lo, hi, t, out)


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
    """Sum the log-ratios per member, rows start to last; ``out[k]`` is (rows, members). The lanes are rows."""
    d, m = uses.shape
    columns = np.arange(d).astype(np.int32)
    size, lanes = np.uint64(own.shape[1]), np.uint64(BLOCK)
    ones, features = np.ones(size), own.reshape(-1)
    X = np.zeros((d, BLOCK))
    flat = X.reshape(-1)
    first, total = np.zeros(BLOCK), np.empty(BLOCK)
    for k in range(len(ratio)):
        values = ratio[k].reshape(-1)
        for t in range(start, last, BLOCK):
            n = min(BLOCK, last - t)
            transpose(values, t * d, n, d, X)
            first[:n] = prior[k, t : t + n]
            for i in range(np.uint64(m)):
                product_32(ones, np.uint64(0), features, i * size, size, flat, lanes, first, total, np.uint64(0))
                for r in range(np.uint64(n)):
                    out[k, np.uint64(t) + r, i] = total[r]
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
