"""Kernel of naive Bayes over many features, in which the cost of a row is that of its values other than 0.

Absent features are counted together: the sum of their rates of occurrence, per member and class, changes only with the
values of a row. Zeros are skipped, so that dense and sparse rows give identical results.
"""

cimport numpy as cnp
from libc.math cimport fabs, log
from libc.stdint cimport int32_t
from libc.string cimport memcpy

from bayesvote.core.arrays cimport aligned, contiguous, dim, doubles, labels, own_doubles, room
from bayesvote.core.rows cimport RowView, columns_of, view_rows
from bayesvote.members._perceptron_kernels cimport abstain

cdef extern from "logs.h" nogil:
    void log_all(double *x, Py_ssize_t n)

cnp.import_array()

cdef enum:
    LANES = 16  # loops run over a multiple of two vectors of eight numbers, so that no slow scalar loop is left over

cdef extern from *:
    """
    #define OCCURRENCES 0.1 /* pseudo-count: occurrences of a feature that are added to those of each class */
    #define RARE 1e-100 /* features of less weight, relative to the rows, are ignored: quotients could overflow */
    #define FARTHEST 1e12 /* larger squared distances, in variances, are clipped: they could overflow */
    #define LEAST 1e-200 /* smaller sums of squares count as 0: quotients could overflow */
    """
    const double OCCURRENCES
    const double RARE
    const double FARTHEST
    const double LEAST

cdef double GAUSSIAN = 3.0  # a kind in ``values_seen``


cdef struct Bayes:
    Py_ssize_t d
    Py_ssize_t m
    Py_ssize_t n_classes
    double rows  # pseudo-count: rows of all classes that are added to each class
    const double *mask
    double *total
    double *missing
    double *mean
    double *scatter
    double *count
    double *present
    const double *kind
    const double *declared


cdef int view_bayes(object state, double rows, Bayes *out) except -1:
    out.d, out.m = dim(state.mask, 0), dim(state.mask, 1)
    out.n_classes = dim(state.total, 0)
    cdef Py_ssize_t block = out.n_classes * out.d
    out.rows = rows
    out.mask = doubles(state.mask)
    out.total = own_doubles(state.total)
    out.missing = own_doubles(state.statistics)
    out.mean = out.missing + block
    out.scatter = out.mean + block
    out.count = out.scatter + block
    out.present = own_doubles(state.present)
    out.kind = doubles(state.values_seen) + 2 * out.d
    out.declared = out.kind + out.d
    return 0


cdef inline double value_of(const Bayes *bank, Py_ssize_t j, double x) noexcept nogil:
    """Return the value of a feature; of a feature declared Bernoulli, 1 if it is above 0, else 0."""
    if bank.declared[j] > 0.0 and x == x:
        return 1.0 if x > 0.0 else 0.0
    return x


cdef inline void start_row(const Bayes *bank, Py_ssize_t k, double *out) noexcept nogil:
    """Compute the log-ratios of class k to class 0, per member, for a row of zeros."""
    cdef double prior = log((bank.total[k] + 1.0) / (bank.total[0] + 1.0))
    cdef double all_rows = 0.0
    cdef double rate, occurred
    cdef Py_ssize_t c, i
    for c in range(bank.n_classes):
        all_rows += bank.total[c]
    for i in range(bank.m):
        out[i] = prior
        if all_rows <= 0.0:
            continue
        occurred = 0.0
        for c in range(bank.n_classes):
            occurred += bank.present[c * bank.m + i]
        rate = bank.rows * (occurred / all_rows)
        out[i] -= (bank.present[k * bank.m + i] + rate) / (bank.total[k] + bank.rows)
        out[i] += (bank.present[i] + rate) / (bank.total[0] + bank.rows)


# The values of a row that are not 0, with the statistics of their features.
cdef struct Held:
    Py_ssize_t n
    Py_ssize_t width  # n up to whole lanes
    Py_ssize_t *places
    Py_ssize_t *features
    double *x
    double *kind
    double *declared
    double *occurred
    double *all_rows
    double *less
    double *middle
    double *spread
    double *mu
    double *var
    double *quotient
    double *rest
    double *count  # per class, like those below
    double *mean
    double *scatter
    double *rows
    double *out  # per class except class 0


cdef Py_ssize_t needed(Py_ssize_t n, Py_ssize_t n_classes) noexcept nogil:
    """Return the size of the space that `hold` needs for n values."""
    return (n + LANES) * (14 + 5 * n_classes) + 8


cdef void hold(
    const Bayes *bank, const double *values, const int32_t *columns, Py_ssize_t n, double *space, Held *held
) noexcept nogil:
    """Collect the values of a row that are not 0."""
    cdef Py_ssize_t width = (n + LANES - 1) // LANES * LANES
    cdef Py_ssize_t p, k, j
    cdef double x
    held.places = <Py_ssize_t *> space
    held.features = <Py_ssize_t *> (space + width)
    held.x = space + 2 * width
    held.n = 0
    for p in range(n):
        x = value_of(bank, columns[p], values[p])
        held.x[held.n] = x
        held.places[held.n] = p
        held.features[held.n] = columns[p]
        held.n += x != 0.0
    held.width = (held.n + LANES - 1) // LANES * LANES
    held.kind = held.x + width
    held.declared = held.kind + width
    held.occurred = held.declared + width
    held.all_rows = held.occurred + width
    held.less = held.all_rows + width
    held.middle = held.less + width
    held.spread = held.middle + width
    held.mu = held.spread + width
    held.var = held.mu + width
    held.quotient = held.var + width
    held.rest = held.quotient + width
    held.count = held.rest + width
    held.mean = held.count + bank.n_classes * held.width
    held.scatter = held.mean + bank.n_classes * held.width
    held.rows = held.scatter + bank.n_classes * held.width
    held.out = held.rows + bank.n_classes * held.width
    for p in range(held.n, held.width):
        held.x[p] = held.kind[p] = held.declared[p] = 0.0
    for p in range(held.n):
        held.kind[p] = bank.kind[held.features[p]]
        held.declared[p] = bank.declared[held.features[p]]
    for k in range(bank.n_classes):
        for p in range(held.n):
            j = k * bank.d + held.features[p]
            held.count[k * held.width + p] = bank.count[j]
            held.mean[k * held.width + p] = bank.mean[j]
            held.scatter[k * held.width + p] = bank.scatter[j]
            held.rows[k * held.width + p] = max(bank.total[k] - bank.missing[j], 0.0)
        for p in range(held.n, held.width):
            held.count[k * held.width + p] = held.rows[k * held.width + p] = 1.0
            held.mean[k * held.width + p] = held.scatter[k * held.width + p] = 0.0


cdef inline void pool(const Held *held, Py_ssize_t n_classes) noexcept nogil:
    """Pool all classes: rows, and values other than 0 with their mean and sum of squares (Chan et al. 1979)."""
    cdef Py_ssize_t width = held.width
    cdef double *n = held.occurred
    cdef double *all_rows = held.all_rows
    cdef double *middle = held.middle
    cdef double *spread = held.spread
    cdef const double *count
    cdef const double *mean
    cdef const double *scatter
    cdef const double *rows
    cdef double share, apart
    cdef Py_ssize_t k, p
    memcpy(n, held.count, width * sizeof(double))
    memcpy(all_rows, held.rows, width * sizeof(double))
    memcpy(middle, held.mean, width * sizeof(double))
    memcpy(spread, held.scatter, width * sizeof(double))
    for k in range(1, n_classes):
        count = held.count + k * width
        mean = held.mean + k * width
        scatter = held.scatter + k * width
        rows = held.rows + k * width
        for p in range(width):
            share = count[p] / (n[p] + count[p]) if count[p] > 0.0 else 0.0
            apart = mean[p] - middle[p]
            spread[p] += scatter[p] + n[p] * share * (apart * apart)
            middle[p] += share * apart
            n[p] += count[p]
            all_rows[p] += rows[p]


cdef inline void gaussian(const Bayes *bank, const Held *held, Py_ssize_t k) noexcept nogil:
    """Compute the mean and variance of the values of class k, smoothed by those of all classes."""
    cdef const double *n = held.occurred
    cdef const double *middle = held.middle
    cdef const double *spread = held.spread
    cdef const double *count = held.count + k * held.width
    cdef const double *mean = held.mean + k * held.width
    cdef const double *scatter = held.scatter + k * held.width
    cdef double *mu = held.mu
    cdef double *var = held.var
    cdef double rows = bank.rows
    cdef Py_ssize_t p
    for p in range(held.width):
        mu[p] = (count[p] * mean[p] + rows * middle[p]) / (count[p] + rows)
    for p in range(held.width):
        var[p] = (scatter[p] + rows * (spread[p] / n[p])) / (count[p] + rows)


cdef void evidence(const Bayes *bank, const Held *held) noexcept nogil:
    """Compute the log-likelihood ratios of the values, of each class to class 0.

    A feature that is 0 in most rows has few other values, whose mean and variance are unreliable. Then only the
    occurrence of a value counts.
    """
    cdef Py_ssize_t width = held.width
    cdef const double *x = held.x
    cdef const double *n = held.occurred
    cdef const double *all_rows = held.all_rows
    cdef const double *count_0 = held.count
    cdef const double *rows_0 = held.rows
    cdef const double *mu = held.mu
    cdef const double *var = held.var
    cdef const double *count
    cdef const double *rows
    cdef double *less = held.less
    cdef double *quotient = held.quotient
    cdef double *rest = held.rest
    cdef double *near_0 = held.spread
    cdef double *var_0 = held.middle
    cdef double *out
    cdef double odds, far, ratio
    cdef Py_ssize_t k, p
    cdef bint counts
    pool(held, bank.n_classes)
    for p in range(width):  # expected number of rows with OCCURRENCES occurrences
        less[p] = OCCURRENCES * (all_rows[p] / n[p])
    # Set kinds to 1 where the value itself counts: at least a quarter of the rows have one, or it is declared.
    for p in range(width):
        counts = (4.0 * n[p] >= all_rows[p]) | (held.kind[p] == GAUSSIAN)
        held.kind[p] = 1.0 if counts & (held.declared[p] == 0.0) & (held.spread[p] > LEAST) else 0.0
    # Set declared to 1 where the feature counts at all.
    for p in range(width):
        counts = (x[p] == x[p]) & (n[p] > RARE * all_rows[p]) & (all_rows[p] > 0.0)
        held.declared[p] = 1.0 if counts else 0.0
    for k in range(1, bank.n_classes):
        gaussian(bank, held, k)
        memcpy(held.mean + k * width, var, width * sizeof(double))
        memcpy(held.scatter + k * width, mu, width * sizeof(double))
    gaussian(bank, held, 0)
    for p in range(width):
        var_0[p] = var[p]
        near_0[p] = (x[p] - mu[p]) * (x[p] - mu[p]) / var[p]
        near_0[p] = near_0[p] if near_0[p] < FARTHEST else FARTHEST
    for k in range(1, bank.n_classes):
        count = held.count + k * width
        rows = held.rows + k * width
        mu = held.scatter + k * width
        var = held.mean + k * width
        out = held.out + (k - 1) * width
        for p in range(width):
            odds = (count[p] + OCCURRENCES) * (rows_0[p] + less[p]) / ((count_0[p] + OCCURRENCES) * (rows[p] + less[p]))
            far = (x[p] - mu[p]) * (x[p] - mu[p]) / var[p]
            far = far if far < FARTHEST else FARTHEST
            ratio = var_0[p] / var[p]
            ratio = ratio if held.kind[p] > 0.0 else 1.0
            quotient[p] = odds * odds * ratio if held.declared[p] > 0.0 else 1.0
            rest[p] = near_0[p] - far if held.kind[p] > 0.0 else 0.0
        log_all(quotient, width)
        for p in range(width):
            out[p] = 0.5 * (quotient[p] + rest[p]) if held.declared[p] > 0.0 else 0.0


cdef inline void learn_value(const Bayes *bank, Py_ssize_t j, double x, Py_ssize_t c, double w) noexcept nogil:
    """Add a value other than 0 of a row of class c, before the row is added to the total."""
    cdef Py_ssize_t at = c * bank.d + j
    cdef double *present = bank.present + c * bank.m
    cdef const double *uses = bank.mask + j * bank.m
    cdef double occurred = 0.0
    cdef double all_rows = 0.0
    cdef double far, step
    cdef Py_ssize_t i, k
    if x == x:
        bank.count[at] += w
        far = x - bank.mean[at]
        step = w * far / bank.count[at]
        # If this row has all of the weight, rounding may move the mean beyond x, and the sum of squares below 0.
        step = step if fabs(step) < fabs(far) else far
        bank.scatter[at] += w * far * (far - step)
        bank.mean[at] += step
    else:  # a missing value counts as other than 0 with the rate so far
        for k in range(bank.n_classes):
            occurred += bank.count[k * bank.d + j]
            all_rows += max(bank.total[k] - bank.missing[k * bank.d + j], 0.0)
        bank.missing[at] += w
        w *= min(occurred / all_rows, 1.0) if all_rows > 0.0 else 0.0
    for i in range(bank.m):
        present[i] += w * uses[i]


def start(state, double rows, out):
    """Compute the log-ratios (K - 1, m) of a row of zeros."""
    cdef Bayes bank
    view_bayes(state, rows, &bank)
    cdef double *out_ = own_doubles(out)
    cdef Py_ssize_t k
    with nogil:
        for k in range(1, bank.n_classes):
            start_row(&bank, k, out_ + (k - 1) * bank.m)


def run(rows, y, weight, state, double smoothing, Py_ssize_t first, Py_ssize_t last, out, per_value):
    """Store the log-ratios (K - 1, n, m) of rows first to last in ``out``, each before it is learned.

    Without labels no row is learned. ``per_value`` (K - 1, values) gets those of every value, unless it is empty.
    """
    y, weight = contiguous(y), contiguous(weight)
    cdef RowView view
    cdef Bayes bank
    view_rows(rows, &view)
    view_bayes(state, smoothing, &bank)
    cdef Py_ssize_t n_ratios = bank.n_classes - 1
    cdef Py_ssize_t m = bank.m
    cdef const Py_ssize_t *y_ = labels(y) if dim(y, 0) > 0 else NULL
    cdef const double *weight_ = doubles(weight)
    cdef double *out_ = own_doubles(out)
    cdef double *per_value_ = own_doubles(per_value) if dim(per_value, 1) > 0 else NULL
    cdef Py_ssize_t n_values = dim(per_value, 1)
    cdef bint has_nan = rows.has_nan
    cdef Py_ssize_t longest = 0
    cdef Held held
    cdef const int32_t *columns
    cdef const double *values
    cdef const double *uses
    cdef double *sums
    cdef double found
    cdef Py_ssize_t t, p, n, k, i
    for t in range(first, last):
        longest = max(longest, <Py_ssize_t> (view.starts[t + 1] - view.starts[t]))
    scratch = room(needed(longest, bank.n_classes))
    cdef double *space = aligned(own_doubles(scratch))
    with nogil:
        for t in range(first, last):
            columns = columns_of(&view, t)
            values = view.values + view.starts[t]
            n = view.starts[t + 1] - view.starts[t]
            hold(&bank, values, columns, n, space, &held)
            evidence(&bank, &held)
            for k in range(n_ratios):
                sums = out_ + (k * view.n + t) * m
                start_row(&bank, k + 1, sums)
                for p in range(held.n):
                    found = held.out[k * held.width + p]
                    uses = bank.mask + held.features[p] * m
                    for i in range(m):
                        sums[i] += found * uses[i]
                    if per_value_ != NULL:
                        per_value_[k * n_values + view.starts[t] + held.places[p]] = found
                if has_nan:
                    abstain(values, columns, n, bank.mask, m, m, sums)
            if y_ == NULL or weight_[t] == 0.0:
                continue
            for p in range(held.n):
                learn_value(&bank, held.features[p], held.x[p], y_[t], weight_[t])
            bank.total[y_[t]] += weight_[t]
