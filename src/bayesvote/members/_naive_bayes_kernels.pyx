"""Naive Bayes kernels: log-likelihood ratios of each feature from shared statistics, then their sum per member.

`weigh` runs row by row over a range of features, `add_up` over a range of rows. Gaussian features are kept apart from
binary ones, which cost far less. Loops are short, with few arrays and no branches, so that compilers vectorise them.
"""

cimport numpy as cnp
from libc.math cimport fabs, log
from libc.stdint cimport int32_t, uint32_t
from libc.string cimport memcpy, memset

from bayesvote.core.arrays cimport aligned, contiguous, dim, doubles, labels, own_doubles, places, room, zeros
from bayesvote.members._perceptron_kernels cimport transpose

cdef extern from "logs.h" nogil:
    void log_all(double *x, Py_ssize_t n)

cdef extern from "rows.h" nogil:
    enum:
        BLOCK
    void sum_block(const int32_t *columns, Py_ssize_t n, const double *X, const double *start, double *out)

cnp.import_array()

# Kinds of features, by the number of values seen: 0, 1, 2, or 3 for more values and for features declared Gaussian.
cdef double NOTHING = 0.0
cdef double TWO = 2.0
cdef double MANY = 3.0

cdef enum:
    LANES = 16  # loops run over a multiple of two vectors of eight numbers, so that no slow scalar loop is left over

cdef extern from *:
    """
    /* Larger squared distances, in variances, are clipped: they are certain, and could overflow. */
    #define FARTHEST 1e12
    /* Smaller sums of squares count as 0: their quotients could overflow. */
    #define LEAST 1e-200
    """
    const double FARTHEST
    const double LEAST


# Some of the features in adjacent places: arrays of one row per class, and single rows.
cdef struct Features:
    Py_ssize_t n
    Py_ssize_t width  # of a row: n rounded up to whole lanes
    Py_ssize_t n_classes
    Py_ssize_t *places
    double *shown  # four rows
    double *count
    double *mean
    double *scatter
    double *other
    double *mu
    double *var
    double *x
    double *ratio
    double *total
    double *middle
    double *spread


cdef Py_ssize_t needed(Py_ssize_t n, Py_ssize_t n_classes) noexcept nogil:
    """Return the size of the space that `arrange` needs for n features."""
    return (n + LANES) * (1 + 4 + 5 + 6 * n_classes)


cdef void arrange(Features *f, Py_ssize_t n, Py_ssize_t n_classes, double *space) noexcept nogil:
    """Divide the space among the arrays."""
    cdef Py_ssize_t width = (n + LANES - 1) // LANES * LANES
    cdef Py_ssize_t block = n_classes * width
    f.n, f.width, f.n_classes = n, width, n_classes
    f.places = <Py_ssize_t *> space
    f.shown = space + width
    f.x = f.shown + 4 * width
    f.ratio = f.x + width
    f.total = f.ratio + width
    f.middle = f.total + width
    f.spread = f.middle + width
    f.count = f.spread + width
    f.mean = f.count + block
    f.scatter = f.mean + block
    f.other = f.scatter + block
    f.mu = f.other + block
    f.var = f.mu + block
    memset(f.shown, 0, (9 * width + 6 * block) * sizeof(double))


cdef inline void take(
    const double *source, Py_ssize_t d, Py_ssize_t rows, const Features *f, double *out
) noexcept nogil:
    """Copy some features of each row."""
    cdef Py_ssize_t k, i
    for k in range(rows):
        for i in range(f.n):
            out[k * f.width + i] = source[k * d + f.places[i]]


cdef inline void put(
    const double *source, const Features *f, Py_ssize_t rows, Py_ssize_t d, double *target
) noexcept nogil:
    """Copy the features back to where `take` found them."""
    cdef Py_ssize_t k, i
    for k in range(rows):
        for i in range(f.n):
            target[k * d + f.places[i]] = source[k * f.width + i]


cdef inline void take_values(const double *row, const Features *f) noexcept nogil:
    """Copy some features of a row; of a feature declared Bernoulli, 1 if it is above 0, else 0."""
    cdef const double *declared = f.shown + 3 * f.width
    cdef double v
    cdef Py_ssize_t i
    for i in range(f.n):
        v = row[f.places[i]]
        f.x[i] = (1.0 if v > 0.0 else 0.0) if (declared[i] > 0.0) & (v == v) else v


cdef inline void pool(const Features *f) noexcept nogil:
    """Pool count, mean and sum of squares of all classes (Chan, Golub and LeVeque 1979)."""
    cdef Py_ssize_t width = f.width
    cdef double *n = f.total
    cdef double *middle = f.middle
    cdef double *spread = f.spread
    cdef const double *count
    cdef const double *mean
    cdef const double *scatter
    cdef double share, apart
    cdef Py_ssize_t j, k
    memcpy(n, f.count, width * sizeof(double))
    memcpy(middle, f.mean, width * sizeof(double))
    memcpy(spread, f.scatter, width * sizeof(double))
    for k in range(1, f.n_classes):
        count = f.count + k * width
        mean = f.mean + k * width
        scatter = f.scatter + k * width
        for j in range(width):
            share = n[j] * count[j] / (n[j] + count[j]) if count[j] > 0.0 else 0.0
            apart = mean[j] - middle[j]
            spread[j] += scatter[j] + share * (apart * apart)
        for j in range(width):
            share = count[j] / (n[j] + count[j]) if count[j] > 0.0 else 0.0
            middle[j] += share * (mean[j] - middle[j])
        for j in range(width):
            n[j] += count[j]


cdef inline void gaussians(const Features *f, double rows) noexcept nogil:
    """Compute mean and variance per class, smoothed by ``rows`` rows of all classes together."""
    cdef Py_ssize_t width = f.width
    cdef const double *n = f.total
    cdef const double *middle = f.middle
    cdef const double *spread = f.spread
    cdef const double *count
    cdef const double *mean
    cdef const double *scatter
    cdef double *mu
    cdef double *var
    cdef Py_ssize_t j, k
    for k in range(f.n_classes):
        count = f.count + k * width
        mean = f.mean + k * width
        scatter = f.scatter + k * width
        mu = f.mu + k * width
        var = f.var + k * width
        for j in range(width):
            mu[j] = (count[j] * mean[j] + rows * middle[j]) / (count[j] + rows)
        for j in range(width):
            var[j] = (scatter[j] + rows * (spread[j] / n[j])) / (count[j] + rows)


cdef inline void gaussian_ratios(const Features *f, Py_ssize_t k) noexcept nogil:
    """Compute log-likelihood ratios of class k to class 0 for Gaussian features; 0 if x is missing or all are equal."""
    cdef const double *x = f.x
    cdef const double *spread = f.spread
    cdef const double *mu_0 = f.mu
    cdef const double *var_0 = f.var
    cdef const double *mu_k = f.mu + k * f.width
    cdef const double *var_k = f.var + k * f.width
    cdef double *out = f.ratio
    cdef double near, far
    cdef Py_ssize_t j
    for j in range(f.width):
        out[j] = var_0[j] / var_k[j] if spread[j] > LEAST else 1.0
    log_all(out, f.width)
    for j in range(f.width):
        near = (x[j] - mu_0[j]) * (x[j] - mu_0[j]) / var_0[j]
        far = (x[j] - mu_k[j]) * (x[j] - mu_k[j]) / var_k[j]
        near = near if near < FARTHEST else FARTHEST
        far = far if far < FARTHEST else FARTHEST
        out[j] = 0.5 * (out[j] + (near - far)) if (x[j] == x[j]) & (spread[j] > LEAST) else 0.0


cdef inline void bernoulli_ratios(const Features *f, Py_ssize_t k, double extra) noexcept nogil:
    """Compute log-likelihood ratios of class k to class 0 for binary features, with ``extra`` rows for each value."""
    cdef const double *x = f.x
    cdef const double *first = f.shown
    cdef const double *count_0 = f.count
    cdef const double *other_0 = f.other
    cdef const double *count_k = f.count + k * f.width
    cdef const double *other_k = f.other + k * f.width
    cdef double *out = f.ratio
    cdef double mine, base, ratio
    cdef Py_ssize_t j
    for j in range(f.width):
        mine = other_k[j] if x[j] != first[j] else count_k[j] - other_k[j]
        base = other_0[j] if x[j] != first[j] else count_0[j] - other_0[j]
        ratio = (mine + extra) * (count_0[j] + 2.0 * extra) / ((base + extra) * (count_k[j] + 2.0 * extra))
        out[j] = ratio if x[j] == x[j] else 1.0
    log_all(out, f.width)


cdef inline bint shows_news(const Features *f) noexcept nogil:
    """Return True if a value is neither missing nor one of the first two."""
    cdef const double *x = f.x
    cdef const double *first = f.shown
    cdef const double *second = f.shown + f.width
    cdef Py_ssize_t found = 0
    cdef Py_ssize_t j
    for j in range(f.n):
        found |= 0 if (x[j] == first[j]) | (x[j] == second[j]) | (x[j] != x[j]) else 1
    return found != 0


cdef inline void learn_kinds(const Features *f) noexcept nogil:
    """Store the first and the second value of each feature."""
    cdef const double *x = f.x
    cdef double *first = f.shown
    cdef double *second = f.shown + f.width
    cdef double *kind = f.shown + 2 * f.width
    cdef Py_ssize_t j
    for j in range(f.n):
        if x[j] == first[j] or x[j] == second[j] or x[j] != x[j]:
            continue
        if kind[j] == NOTHING:
            first[j] = x[j]
        else:
            second[j] = x[j]
        kind[j] += 1.0


cdef inline void learn_counts(const Features *f, Py_ssize_t c, double weight) noexcept nogil:
    """Count a row of class c, except its missing values."""
    cdef const double *x = f.x
    cdef const double *first = f.shown
    cdef double *count = f.count + c * f.width
    cdef double *other = f.other + c * f.width
    cdef Py_ssize_t j
    for j in range(f.width):
        count[j] += weight if x[j] == x[j] else 0.0
    for j in range(f.width):
        other[j] += weight if (x[j] == x[j]) & (x[j] != first[j]) else 0.0


cdef inline void learn_moments(const Features *f, Py_ssize_t c, double weight) noexcept nogil:
    """Add a row of class c, which is already counted, to the means and sums of squares (West 1979)."""
    cdef const double *x = f.x
    cdef const double *count = f.count + c * f.width
    cdef double *mean = f.mean + c * f.width
    cdef double *scatter = f.scatter + c * f.width
    cdef double far, step
    cdef Py_ssize_t j
    for j in range(f.width):
        far = x[j] - mean[j] if x[j] == x[j] else 0.0
        step = weight * far / count[j] if x[j] == x[j] else 0.0
        # If this row has all of the weight, rounding may move the mean beyond x, and the sum of squares below 0.
        step = step if fabs(step) < fabs(far) else far
        scatter[j] += weight * far * (far - step)
        mean[j] += step


cdef inline void moments_of_two(
    double *statistics, const double *shown, Py_ssize_t d, Py_ssize_t n_classes, Py_ssize_t j
) noexcept nogil:
    """Compute the means and sums of squares of a feature with at most two values, from their counts."""
    cdef Py_ssize_t block = n_classes * d
    cdef double n, others, apart
    cdef double *at
    cdef Py_ssize_t k
    for k in range(n_classes):
        at = statistics + k * d + j
        n, others = at[0], at[3 * block]
        apart = shown[d + j] - shown[j] if others > 0.0 else 0.0
        at[block] = shown[j] + apart * (others / n) if n > 0.0 else 0.0
        at[2 * block] = apart * apart * (others * ((n - others) / n)) if n > 0.0 else 0.0


cdef Py_ssize_t divide(
    const double *row,
    const double *shown,
    Py_ssize_t d,
    Py_ssize_t lo,
    Py_ssize_t hi,
    Py_ssize_t n_classes,
    double *space,
    Features *many,
    Features *few,
) noexcept nogil:
    """Divide features lo to hi into Gaussian and binary ones; return the number that become Gaussian with this row."""
    cdef Py_ssize_t n_many = 0
    cdef Py_ssize_t n_third = 0
    cdef Py_ssize_t a = 0
    cdef Py_ssize_t b = 0
    cdef Py_ssize_t j
    cdef bint third
    cdef Py_ssize_t *order = <Py_ssize_t *> space  # Gaussian features from the front, the others from the back
    for j in range(lo, hi):
        third = (
            shown[2 * d + j] == TWO
            and shown[3 * d + j] == 0.0
            and row[j] == row[j]
            and row[j] != shown[j]
            and row[j] != shown[d + j]
        )
        n_third += third
        if third or shown[2 * d + j] == MANY:
            order[n_many] = j
            n_many += 1
        else:
            order[hi - lo - 1 - b] = j
            b += 1
    space += hi - lo
    arrange(many, n_many, n_classes, space)
    arrange(few, b, n_classes, space + needed(n_many, n_classes))
    for a in range(n_many):
        many.places[a] = order[a]
    for a in range(b):
        few.places[a] = order[hi - lo - 1 - a]
    return n_third


cdef Py_ssize_t weigh_some(
    const double *X,
    Py_ssize_t n_rows,
    Py_ssize_t d,
    const Py_ssize_t *y,
    const double *weight,
    double *statistics,
    double *shown,
    Py_ssize_t n_classes,
    double rows,
    double extra,
    Py_ssize_t lo,
    Py_ssize_t hi,
    Py_ssize_t start,
    double *out,
    double *space,
) noexcept nogil:
    """Do what `weigh` does, up to the next row with a new value of a binary feature; return that row."""
    cdef Features many, few
    cdef Py_ssize_t block = n_classes * d
    cdef Py_ssize_t t = start
    cdef Py_ssize_t j, k
    # Some features are Gaussian for this row only, unless it is learned.
    cdef bint for_now = divide(X + start * d, shown, d, lo, hi, n_classes, space, &many, &few) > 0
    take(shown, d, 4, &many, many.shown)
    take(shown, d, 4, &few, few.shown)
    take(statistics, d, n_classes, &many, many.count)
    take(statistics + block, d, n_classes, &many, many.mean)
    take(statistics + 2 * block, d, n_classes, &many, many.scatter)
    take(statistics + 3 * block, d, n_classes, &many, many.other)
    take(statistics, d, n_classes, &few, few.count)
    take(statistics + 3 * block, d, n_classes, &few, few.other)
    pool(&many)
    gaussians(&many, rows)
    while t < n_rows:
        take_values(X + t * d, &many)
        take_values(X + t * d, &few)
        if t > start and (for_now or shows_news(&few)):
            break
        for k in range(1, n_classes):
            gaussian_ratios(&many, k)
            put(many.ratio, &many, 1, d, out + ((k - 1) * n_rows + t) * d)
            bernoulli_ratios(&few, k, extra)
            put(few.ratio, &few, 1, d, out + ((k - 1) * n_rows + t) * d)
        if y != NULL and weight[t] != 0.0:
            if t == start:
                for_now = False
                for j in range(many.n):
                    many.shown[2 * many.width + j] = MANY
                learn_kinds(&few)
            learn_counts(&few, y[t], weight[t])
            learn_counts(&many, y[t], weight[t])
            learn_moments(&many, y[t], weight[t])
            pool(&many)
            gaussians(&many, rows)
        t += 1
    if y != NULL:
        put(many.shown, &many, 4, d, shown)
        put(few.shown, &few, 4, d, shown)
        put(many.count, &many, n_classes, d, statistics)
        put(many.mean, &many, n_classes, d, statistics + block)
        put(many.scatter, &many, n_classes, d, statistics + 2 * block)
        put(many.other, &many, n_classes, d, statistics + 3 * block)
        put(few.count, &few, n_classes, d, statistics)
        put(few.other, &few, n_classes, d, statistics + 3 * block)
        for j in range(few.n):
            moments_of_two(statistics, shown, d, n_classes, few.places[j])
    return t


def weigh(X, y, weight, state, double rows, double extra, Py_ssize_t lo, Py_ssize_t hi, prior, out):
    """Compute log-likelihood ratios of features lo to hi for each row, before it is learned; without labels none is.

    ``prior[k - 1, t]`` and ``out[k - 1, t]`` are the log-ratios of class k to class 0, of the class weights and of each
    feature's value. The call with feature 0 also processes the class weights, each increased by 1 (Laplace smoothing).
    """
    y, weight = contiguous(y), contiguous(weight)
    cdef Py_ssize_t n = dim(X, 0)
    cdef Py_ssize_t d = dim(X, 1)
    cdef Py_ssize_t n_classes = dim(state.total, 0)
    cdef const double *X_ = doubles(X)
    cdef const Py_ssize_t *y_ = labels(y) if dim(y, 0) > 0 else NULL
    cdef const double *weight_ = doubles(weight)
    cdef double *total = own_doubles(state.total)
    cdef double *statistics = own_doubles(state.statistics)
    cdef double *shown = own_doubles(state.values_seen)
    cdef double *prior_ = own_doubles(prior)
    cdef double *out_ = own_doubles(out)
    scratch = room(hi - lo + needed(hi - lo + LANES, n_classes) + needed(LANES, n_classes) + 8)
    cdef double *space = aligned(own_doubles(scratch))
    cdef Py_ssize_t t, k
    with nogil:
        if lo == 0:
            for t in range(n):
                for k in range(1, n_classes):
                    prior_[(k - 1) * n + t] = log((total[k] + 1.0) / (total[0] + 1.0))
                if y_ != NULL:
                    total[y_[t]] += weight_[t]
        t = 0
        while t < n:
            t = weigh_some(
                X_, n, d, y_, weight_, statistics, shown, n_classes, rows, extra, lo, hi, t, out_, space
            )


def add_up(prior, ratio, state, Py_ssize_t start, Py_ssize_t last, out):
    """Sum the log-ratios per member, rows start to last; ``out[k]`` is (rows, members). Vectors run over rows."""
    cdef Py_ssize_t n_ratios = dim(ratio, 0)
    cdef Py_ssize_t n_rows = dim(ratio, 1)
    cdef Py_ssize_t d = dim(ratio, 2)
    cdef Py_ssize_t m = dim(state.features, 0)
    cdef Py_ssize_t size = dim(state.features, 1)
    cdef const double *prior_ = doubles(prior)
    cdef const double *ratio_ = doubles(ratio)
    cdef const int32_t *own = <const int32_t *> places(state.features)
    cdef double *out_ = own_doubles(out)
    scratch = zeros(d * BLOCK + 2 * BLOCK + 8)
    cdef double *X = aligned(own_doubles(scratch))
    cdef double *first = X + d * BLOCK
    cdef double *total = first + BLOCK
    cdef double *block
    cdef Py_ssize_t t, n, k, i, r
    with nogil:
        for k in range(n_ratios):
            t = start
            while t < last:
                n = min(<Py_ssize_t> BLOCK, last - t)
                transpose(ratio_ + (k * n_rows + t) * d, n, d, BLOCK, X)
                memcpy(first, prior_ + k * n_rows + t, n * sizeof(double))
                block = out_ + (k * n_rows + t) * m
                for i in range(m):
                    sum_block(own + i * size, size, X, first, total)
                    for r in range(n):
                        block[r * m + i] = total[r]
                t += BLOCK


def centre(ratios, out):
    """Compute scores of K classes with mean 0, from the K - 1 log-ratios to class 0."""
    cdef Py_ssize_t n_ratios = dim(ratios, 0)
    cdef Py_ssize_t size = dim(ratios, 1) * dim(ratios, 2)
    cdef const double *ratios_ = doubles(ratios)
    cdef double *out_ = own_doubles(out)
    cdef Py_ssize_t i, k
    cdef double mean
    with nogil:
        for i in range(size):
            mean = 0.0
            for k in range(n_ratios):
                mean += ratios_[k * size + i]
            mean /= n_ratios + 1
            out_[i * (n_ratios + 1)] = -mean
            for k in range(n_ratios):
                out_[i * (n_ratios + 1) + k + 1] = ratios_[k * size + i] - mean
