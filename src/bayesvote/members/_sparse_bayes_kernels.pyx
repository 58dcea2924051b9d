"""Kernel of naive Bayes over many features: a row costs what it holds other than 0.

Absent features count together: the rates at which they occur add up, per member and class, and the sum changes only by
what a row holds. Zeros are skipped, so that dense and sparse rows give the same bits.
"""

cimport numpy as cnp
from libc.math cimport fabs, log
from libc.stdint cimport int32_t
from libc.string cimport memset

from bayesvote._arrays cimport contiguous, dim, doubles, labels, own_doubles, room
from bayesvote._input cimport RowView, columns_of, view_rows
from bayesvote.members._perceptron_kernels cimport abstain

cnp.import_array()

cdef extern from *:
    """
    #define OCCURRENCES 0.1 /* occurrences of a feature that are added to those of each class */
    #define RARE 1e-100 /* a feature that weighs less, relative to the rows, tells nothing: quotients could overflow */
    #define FARTHEST 1e12 /* squared distances in variances above this are cut off, as larger ones could overflow */
    #define LEAST 1e-200 /* sums of squares below this are taken for none */
    """
    const double OCCURRENCES
    const double RARE
    const double FARTHEST
    const double LEAST

cdef double GAUSSIAN = 3.0


cdef struct Bayes:
    Py_ssize_t d
    Py_ssize_t m
    Py_ssize_t n_classes
    double rows  # added to the means and variances of each class, and to its rate of occurrences
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
    """The value as it counts: features declared Bernoulli tell only if they are above 0."""
    if bank.declared[j] > 0.0 and x == x:
        return 1.0 if x > 0.0 else 0.0
    return x


cdef inline void start_row(const Bayes *bank, Py_ssize_t k, double *out) noexcept nogil:
    """Log-ratios of class k to class 0, per member, of a row that is all 0."""
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


cdef inline void gaussian_evidence(const Bayes *bank, Py_ssize_t j, double x, double *out) noexcept nogil:
    """Add the log-likelihood ratios of a value among those that are not 0."""
    cdef double n = bank.count[j]
    cdef double middle = bank.mean[j]
    cdef double spread = bank.scatter[j]
    cdef double rows = bank.rows
    cdef double count, apart, mu, var, var_0, near, far
    cdef Py_ssize_t k, at
    for k in range(1, bank.n_classes):
        at = k * bank.d + j
        count = bank.count[at]
        if count > 0.0:
            apart = bank.mean[at] - middle
            spread += bank.scatter[at] + n * count / (n + count) * (apart * apart)
            middle += count / (n + count) * apart
            n += count
    if not spread > LEAST:
        return
    mu = (bank.count[j] * bank.mean[j] + rows * middle) / (bank.count[j] + rows)
    var_0 = (bank.scatter[j] + rows * (spread / n)) / (bank.count[j] + rows)
    near = min((x - mu) * (x - mu) / var_0, FARTHEST)
    for k in range(1, bank.n_classes):
        at = k * bank.d + j
        count = bank.count[at]
        mu = (count * bank.mean[at] + rows * middle) / (count + rows)
        var = (bank.scatter[at] + rows * (spread / n)) / (count + rows)
        far = min((x - mu) * (x - mu) / var, FARTHEST)
        out[k - 1] += 0.5 * (log(var_0 / var) + (near - far))


cdef inline void evidence(const Bayes *bank, Py_ssize_t j, double x, double *out) noexcept nogil:
    """Log-likelihood ratios of each class to class 0 of a value other than 0."""
    cdef double occurred = 0.0
    cdef double all_rows = 0.0
    cdef double less, rows_0, rows_k
    cdef Py_ssize_t k
    memset(out, 0, (bank.n_classes - 1) * sizeof(double))
    for k in range(bank.n_classes):
        occurred += bank.count[k * bank.d + j]
        all_rows += max(bank.total[k] - bank.missing[k * bank.d + j], 0.0)
    if x != x or not occurred > RARE * all_rows or all_rows <= 0.0:
        return
    less = OCCURRENCES * (all_rows / occurred)  # as many rows as hold so many occurrences
    rows_0 = max(bank.total[0] - bank.missing[j], 0.0) + less
    for k in range(1, bank.n_classes):
        rows_k = max(bank.total[k] - bank.missing[k * bank.d + j], 0.0) + less
        out[k - 1] = log(
            (bank.count[k * bank.d + j] + OCCURRENCES) / (bank.count[j] + OCCURRENCES) * (rows_0 / rows_k)
        )
    # The values of a feature that is 0 in most rows are few, and mislead until they are many.
    if (4.0 * occurred >= all_rows or bank.kind[j] == GAUSSIAN) and not bank.declared[j] > 0.0:
        gaussian_evidence(bank, j, x, out)


cdef inline void learn_value(const Bayes *bank, Py_ssize_t j, double x, Py_ssize_t c, double w) noexcept nogil:
    """Add a value other than 0 of a row of class c, before the row counts in the total."""
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
        # Rounding may carry the mean past a row that is all of the weight, and squares would fall below 0.
        step = step if fabs(step) < fabs(far) else far
        bank.scatter[at] += w * far * (far - step)
        bank.mean[at] += step
    else:  # taken to be other than 0 as often as it was so far
        for k in range(bank.n_classes):
            occurred += bank.count[k * bank.d + j]
            all_rows += max(bank.total[k] - bank.missing[k * bank.d + j], 0.0)
        bank.missing[at] += w
        w *= min(occurred / all_rows, 1.0) if all_rows > 0.0 else 0.0
    for i in range(bank.m):
        present[i] += w * uses[i]


def start(state, double rows, out):
    """Log-ratios (K - 1, m) of a row that is all 0."""
    cdef Bayes bank
    view_bayes(state, rows, &bank)
    cdef double *out_ = own_doubles(out)
    cdef Py_ssize_t k
    with nogil:
        for k in range(1, bank.n_classes):
            start_row(&bank, k, out_ + (k - 1) * bank.m)


def run(rows, y, weight, state, double smoothing, Py_ssize_t first, Py_ssize_t last, out, told):
    """Put the log-ratios (K - 1, n, m) of rows first to last into ``out``, each before it is learned.

    Without labels none is. ``told`` (K - 1, values) gets those of every value, unless it is empty.
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
    cdef double *told_ = own_doubles(told) if dim(told, 1) > 0 else NULL
    cdef Py_ssize_t n_told = dim(told, 1)
    cdef bint has_nan = rows.has_nan
    scratch = room(n_ratios)
    cdef double *found = own_doubles(scratch)
    cdef const int32_t *columns
    cdef const double *values
    cdef const double *uses
    cdef double *sums
    cdef double x
    cdef Py_ssize_t t, p, n, k, i, j
    with nogil:
        for t in range(first, last):
            columns = columns_of(&view, t)
            values = view.values + view.starts[t]
            n = view.starts[t + 1] - view.starts[t]
            for k in range(n_ratios):
                start_row(&bank, k + 1, out_ + (k * view.n + t) * m)
            for p in range(n):
                j = columns[p]
                x = value_of(&bank, j, values[p])
                if x == 0.0:
                    continue
                evidence(&bank, j, x, found)
                uses = bank.mask + j * m
                for k in range(n_ratios):
                    sums = out_ + (k * view.n + t) * m
                    for i in range(m):
                        sums[i] += found[k] * uses[i]
                    if told_ != NULL:
                        told_[k * n_told + view.starts[t] + p] = found[k]
            if has_nan:
                for k in range(n_ratios):
                    abstain(values, columns, n, bank.mask, m, m, out_ + (k * view.n + t) * m)
            if y_ == NULL or weight_[t] == 0.0:
                continue
            for p in range(n):
                x = value_of(&bank, columns[p], values[p])
                if x != 0.0:
                    learn_value(&bank, columns[p], x, y_[t], weight_[t])
            bank.total[y_[t]] += weight_[t]
