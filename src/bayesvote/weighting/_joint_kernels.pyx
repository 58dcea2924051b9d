"""Kernels of :class:`JointGaussian`: rank-one updates of several Gaussian posteriors side by side.

A posterior with a negligible share of the evidence is not updated: it rests. Evidence only decreases with each row, so
the old value is an upper bound. While the bound is negligible, the posterior may rest. Later the evidence is computed
from the sums, which include all rows; and if it counts again, so is the posterior.
"""

cimport numpy as cnp
from libc.math cimport INFINITY, exp, log, sqrt
from libc.stdint cimport int64_t
from libc.stdlib cimport free, malloc
from libc.string cimport memset

from bayesvote.core.arrays cimport contiguous, dim, doubles, own_doubles, own_longs, room
from bayesvote.weighting._mixture cimport inner, label_losses, largest, mix_means, to_margins

cdef extern from "triangle.h" nogil:
    void subtract_and_multiply(double *A, Py_ssize_t m, const double *u, const double *x, double *out)
    void only_multiply(double *A, Py_ssize_t m, const double *x, double *out)
    void only_subtract(double *A, Py_ssize_t m, const double *u)
    void complete_squares(double *A, Py_ssize_t m)
    void add_rows(
        double *row,
        Py_ssize_t n,
        const double *others,
        Py_ssize_t width,
        const double *factors,
        Py_ssize_t step,
        Py_ssize_t count,
    )

cnp.import_array()

cdef enum:
    BATCH = 16  # rows whose products are added to the sums together

cdef extern from *:
    """
    /* Logarithms of shares of the evidence. 1e-12 is negligible. A posterior wakes above exp(-34) = 2e-15 and rests
     * below exp(-40) = 4e-18. From one of these to the next it takes some tens of rows, and computing the evidence from
     * the sums costs as much as learning them. */
    #define TOO_LITTLE -27.631021115928547
    #define WORTH_WAKING -34.0
    #define WORTH_RESTING -40.0
    """
    const double TOO_LITTLE
    const double WORTH_WAKING
    const double WORTH_RESTING

TOO_LITTLE_EVIDENCE = TOO_LITTLE


def margin_losses(weights, G, out):
    """Compute (1 - weighted margin)/2 of every row and label."""
    weights, G = contiguous(weights), contiguous(G)
    cdef Py_ssize_t n = dim(G, 0) * dim(G, 1)
    cdef Py_ssize_t m = dim(G, 2)
    cdef const double *weights_ = doubles(weights)
    cdef const double *G_ = doubles(G)
    cdef double *out_ = own_doubles(out)
    scratch = room(m)
    cdef double *x = own_doubles(scratch)
    with nogil:
        label_losses(weights_, G_, n, m, x, out_)


def mix(evidence, means, out):
    """Compute the average of the means, weighted by exp(evidence)."""
    cdef const double *evidence_ = doubles(evidence)
    cdef const double *means_ = doubles(means)
    cdef double *out_ = own_doubles(out)
    cdef Py_ssize_t n = dim(means, 0)
    cdef Py_ssize_t m = dim(means, 1)
    with nogil:
        mix_means(evidence_, means_, n, m, out_)


cdef double factorise(
    const double *value, Py_ssize_t m, double theta, double precision, double *U, double *shift
) noexcept nogil:
    """Compute a posterior's evidence from the sums, the factor U of its precision U'U, and the solved shift.

    The sums are weight, margins (m,) and the lower triangle of their products (m, m). The Cholesky decomposition is not
    LAPACK's, whose bits depend on the number of threads.
    """
    cdef const double *cross = value + 1
    cdef const double *gram = value + 1 + m
    cdef double misfit = value[0]
    cdef double square = 0.0
    cdef double log_det = 0.0
    cdef double total, diagonal, inverse
    cdef double *row
    cdef Py_ssize_t i, j
    for i in range(m):
        shift[i] = 0.0
    for i in range(m):
        total = 0.0
        for j in range(i):
            total += gram[i * m + j]
            shift[j] += gram[i * m + j]
            U[j * m + i] = theta * gram[i * m + j]
        shift[i] += total + gram[i * m + i]
        U[i * m + i] = theta * gram[i * m + i] + precision
    # Deviations from the uniform prior mean 1/m; the misfit is the sum of squared errors of the uniform vote.
    for i in range(m):
        misfit += (shift[i] / m - 2.0 * cross[i]) / m
        shift[i] = theta * (cross[i] - shift[i] / m)
    for i in range(m):
        row = U + i * m
        for j in range(i):
            # Stored below the diagonal too, so that they are contiguous.
            row[j] = -U[j * m + i]
        add_rows(row + i, m - i, U + i, m, row, 1, i)
        # A pivot is below the prior's precision only by rounding, where the samples count 1e15 times as much.
        diagonal = sqrt(row[i] if row[i] > 0.5 * precision else precision)
        inverse = 1.0 / diagonal
        row[i] = diagonal
        for j in range(i + 1, m):
            row[j] *= inverse
        shift[i] = (shift[i] + inner(row, shift, i)) * inverse
        log_det += 2.0 * log(diagonal)
        square += shift[i] * shift[i]
    # Log of the Gaussian integral, without the terms that all precisions share.
    return 0.5 * (square - log_det + m * log(precision) - theta * misfit)


cdef void invert(double *U, Py_ssize_t m, const double *shift, double *V, double *covariance, double *mean) noexcept nogil:
    """Compute the covariance's lower triangle and the mean from the output of `factorise`; V is scratch."""
    cdef double *row
    cdef double inverse
    cdef Py_ssize_t i, j
    memset(V, 0, m * m * sizeof(double))
    for i in range(m):  # V is the inverse of the factor's transpose, L V = I
        row = V + i * m
        add_rows(row, i, V, m, U + i * m, 1, i)
        inverse = 1.0 / U[i * m + i]
        for j in range(i):
            row[j] *= inverse
        row[i] = inverse
    memset(covariance, 0, m * m * sizeof(double))
    for i in range(m):
        mean[i] = 1.0 / m
    for j in range(m):
        add_rows(covariance + j * m, j + 1, V + j * m, m, V + j * m + j, m, m - j)
    add_rows(mean, m, V, m, shift, 1, m)


def solve(value, double theta, precisions, covariances, means, evidence):
    """Compute posteriors from the sums: lower triangles of covariances, means and logs of the evidence."""
    cdef const double *value_ = doubles(value)
    cdef const double *precisions_ = doubles(precisions)
    cdef double *covariances_ = own_doubles(covariances)
    cdef double *means_ = own_doubles(means)
    cdef double *evidence_ = own_doubles(evidence)
    cdef Py_ssize_t n = dim(means, 0)
    cdef Py_ssize_t m = dim(means, 1)
    scratch = room(2 * m * m + m)
    cdef double *U = own_doubles(scratch)
    cdef double *V = U + m * m
    cdef double *shift = V + m * m
    cdef Py_ssize_t p
    with nogil:
        for p in range(n):
            evidence_[p] = factorise(value_, m, theta, precisions_[p], U, shift)
            invert(U, m, shift, V, covariances_ + p * m * m, means_ + p * m)


cdef void add_products(
    double *sums, Py_ssize_t m, const double *rows, const double *weighted, Py_ssize_t n
) noexcept nogil:
    """Add the products of n rows of margins to the lower triangle of their sums, row by row."""
    cdef Py_ssize_t i
    if n > 0:
        for i in range(m):
            add_rows(sums + i * m, i + 1, rows, m, weighted + i, m, n)


cdef inline void put_row(
    const double *truth, double w, Py_ssize_t m, Py_ssize_t at, double *rows, double *weighted, double *sums
) noexcept nogil:
    """Store a row's margins, whose products are added later, and add the row to the sums of weight and margins."""
    cdef double *x = rows + at * m
    cdef Py_ssize_t i
    to_margins(truth, m, x)
    sums[0] += w
    for i in range(m):
        weighted[at * m + i] = w * x[i]
        sums[1 + i] += w * x[i]


# Posteriors, and the delayed updates: subtracting u u' from a covariance.
cdef struct Posteriors:
    Py_ssize_t n
    Py_ssize_t m
    double theta
    double forgetting
    const double *precisions
    const double *sums  # total and carry
    double *recent
    double *covariances
    double *means
    double *evidence
    int64_t *behind  # rows not seen while at rest
    bint *put_off
    double *updates  # u, of each posterior


cdef inline void condition(Posteriors *all, Py_ssize_t p, const double *x, double w, double *s) noexcept nogil:
    """Condition a Gaussian on "the margin of x is 1"; the update of the covariance is delayed."""
    cdef Py_ssize_t m = all.m
    cdef double *covariance = all.covariances + p * m * m
    cdef double *mean = all.means + p * m
    cdef double *u = all.updates + p * m
    cdef double scale = 1.0 / all.forgetting
    cdef double spread, gain, residual, root
    cdef Py_ssize_t i
    if all.put_off[p]:
        subtract_and_multiply(covariance, m, u, x, s)
    else:
        only_multiply(covariance, m, x, s)
    if all.forgetting != 1.0:
        for i in range(m * m):
            covariance[i] *= scale
        for i in range(m):
            s[i] *= scale
    spread = 1.0 + all.theta * w * inner(s, x, m)
    gain, residual = all.theta * w / spread, 1.0 - inner(mean, x, m)
    root = sqrt(gain)
    for i in range(m):
        mean[i] += gain * residual * s[i]
        u[i] = root * s[i]
    all.put_off[p] = True
    all.evidence[p] = all.forgetting * all.evidence[p] - 0.5 * (log(spread) + gain * residual * residual)


cdef inline void catch_up(Posteriors *all, Py_ssize_t p) noexcept nogil:
    """Apply the delayed updates."""
    if all.put_off[p]:
        only_subtract(all.covariances + p * all.m * all.m, all.m, all.updates + p * all.m)
        all.put_off[p] = False


cdef int look_after(Posteriors *all, Py_ssize_t p, double top) noexcept nogil:
    """Compute the evidence of a resting posterior, and wake it if that nearly counts; -1 if out of memory."""
    cdef Py_ssize_t m = all.m
    cdef Py_ssize_t size = 1 + m + m * m
    cdef double *value = <double *> malloc((size + 2 * m * m + m) * sizeof(double))
    cdef double *U = value + size
    cdef double *V = U + m * m
    cdef double *shift = V + m * m
    cdef Py_ssize_t i
    if value == NULL:
        return -1
    for i in range(size):
        value[i] = (all.sums[i] + all.sums[size + i]) + all.recent[i]
    all.evidence[p] = factorise(value, m, all.theta, all.precisions[p], U, shift)
    if all.evidence[p] > top + WORTH_WAKING:
        invert(U, m, shift, V, all.covariances + p * m * m, all.means + p * m)
        complete_squares(all.covariances + p * m * m, m)
        all.behind[p] = 0
    free(value)
    return 0


cdef int learn(
    Posteriors *all, const double *x, double w, double *s, Py_ssize_t *n_waiting, const double *rows, const double *weighted
) noexcept nogil:
    """Learn a row, whose products are added to the sums later; return -1 if out of memory."""
    cdef double top = largest(all.evidence, all.n)
    cdef bint resting = False
    cdef Py_ssize_t p
    for p in range(all.n):
        if all.behind[p] == 0 and (all.forgetting != 1.0 or all.evidence[p] >= top + WORTH_RESTING):
            condition(all, p, x, w, s)
        else:
            catch_up(all, p)
            all.behind[p] += 1
            resting = True
    if not resting:
        return 0
    # The evidence of a resting posterior is a bound, and a row of large weight may lower all others below it.
    top = -INFINITY
    for p in range(all.n):
        if all.behind[p] == 0:
            top = max(top, all.evidence[p])
    for p in range(all.n):
        if all.behind[p] > 0 and all.evidence[p] > top + TOO_LITTLE:
            add_products(all.recent + 1 + all.m, all.m, rows, weighted, n_waiting[0])
            n_waiting[0] = 0
            if look_after(all, p, top) < 0:
                return -1
    return 0


cdef int stream_rows(
    Posteriors *all,
    const double *G,
    const double *truth,
    const double *w,
    Py_ssize_t n,
    Py_ssize_t n_labels,
    double *out,
    double *space,
) noexcept nogil:
    """Do what `stream` does; return -1 if out of memory."""
    cdef Py_ssize_t m = all.m
    cdef double *s = space
    cdef double *weights = space + m
    cdef double *rows = space + 2 * m
    cdef double *weighted = rows + BATCH * m
    cdef double *recent = all.recent
    cdef double *x
    cdef Py_ssize_t n_waiting = 0
    cdef Py_ssize_t t, p, i
    for p in range(all.n):
        all.put_off[p] = False
        complete_squares(all.covariances + p * m * m, m)
    for t in range(n):
        mix_means(all.evidence, all.means, all.n, m, weights)
        label_losses(weights, G + t * n_labels * m, n_labels, m, s, out + t * n_labels)
        if w[t] == 0.0:
            continue
        if n_waiting == BATCH or all.forgetting != 1.0:
            add_products(recent + 1 + m, m, rows, weighted, n_waiting)
            n_waiting = 0
        if all.forgetting != 1.0:
            for i in range(1 + m + m * m):
                recent[i] *= all.forgetting
        put_row(truth + t * m, w[t], m, n_waiting, rows, weighted, recent)
        x = rows + n_waiting * m
        n_waiting += 1
        if learn(all, x, w[t], s, &n_waiting, rows, weighted) < 0:
            return -1
    add_products(recent + 1 + m, m, rows, weighted, n_waiting)
    for p in range(all.n):
        catch_up(all, p)
    return 0


def stream(G, truth, w, double theta, double forgetting, precisions, state, out):
    """Compute the losses of each row, then add it to the posteriors and the recent sums."""
    G, truth, w = contiguous(G), contiguous(truth), contiguous(w)
    cdef Posteriors all
    cdef Py_ssize_t n = dim(G, 0)
    cdef Py_ssize_t n_labels = dim(G, 1)
    cdef Py_ssize_t m = dim(G, 2)
    cdef const double *G_ = doubles(G)
    cdef const double *truth_ = doubles(truth)
    cdef const double *w_ = doubles(w)
    cdef double *out_ = own_doubles(out)
    cdef int done
    all.n = dim(state.evidence, 0)
    all.m = m
    all.theta = theta
    all.forgetting = forgetting
    all.precisions = doubles(precisions)
    all.sums = own_doubles(state.sums)
    all.recent = own_doubles(state.sums) + 2 * (1 + m + m * m)
    all.covariances = own_doubles(state.covariances)
    all.means = own_doubles(state.means)
    all.evidence = own_doubles(state.evidence)
    all.behind = own_longs(state.behind)
    scratch = room((2 + 2 * BATCH + all.n) * m + all.n)
    cdef double *space = own_doubles(scratch)
    all.updates = space + (2 + 2 * BATCH) * m
    all.put_off = <bint *> (all.updates + all.n * m)
    with nogil:
        done = stream_rows(&all, G_, truth_, w_, n, n_labels, out_, space)
    if done < 0:
        raise MemoryError("JointGaussian: no memory to work out a posterior.")


def add_losses(truth, w, recent):
    """Add rows to the recent sums, as `stream` does without forgetting, without updating the posteriors."""
    truth, w = contiguous(truth), contiguous(w)
    cdef Py_ssize_t n = dim(truth, 0)
    cdef Py_ssize_t m = dim(truth, 1)
    cdef const double *truth_ = doubles(truth)
    cdef const double *w_ = doubles(w)
    cdef double *sums = own_doubles(recent)
    scratch = room(2 * BATCH * m)
    cdef double *rows = own_doubles(scratch)
    cdef double *weighted = rows + BATCH * m
    cdef Py_ssize_t n_waiting = 0
    cdef Py_ssize_t t
    with nogil:
        for t in range(n):
            if w_[t] == 0.0:
                continue
            if n_waiting == BATCH:
                add_products(sums + 1 + m, m, rows, weighted, n_waiting)
                n_waiting = 0
            put_row(truth_ + t * m, w_[t], m, n_waiting, rows, weighted, sums)
            n_waiting += 1
        add_products(sums + 1 + m, m, rows, weighted, n_waiting)
