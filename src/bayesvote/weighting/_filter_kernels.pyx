"""Kernels of joint posteriors whose weights drift: Gaussian filters side by side, for the squared and the logistic loss.

After each row that is learned the weights take a step of an autoregressive process around the prior mean, so a filter
is ready for the next row. The update of a covariance is delayed until the next row's product with it, because each
reads the whole matrix.
"""

cimport numpy as cnp
from libc.math cimport exp, fabs, log, pow, sqrt
from libc.stdint cimport int64_t
from libc.string cimport memcpy, memset

from bayesvote.core.arrays cimport contiguous, dim, doubles, labels, longs, own_doubles, room
from bayesvote.core.logistic cimport PI_EIGHTH, settled, sigmoid
from bayesvote.weighting._mixture cimport inner, label_losses, largest, mix_means, to_margins

cdef extern from "triangle.h" nogil:
    void subtract_and_multiply(double *A, Py_ssize_t m, const double *u, const double *x, double *out)
    void only_multiply(double *A, Py_ssize_t m, const double *x, double *out)
    void only_subtract(double *A, Py_ssize_t m, const double *u)
    void add_and_multiply(double *A, Py_ssize_t m, const double *u, const double *x, double *out)
    void only_add(double *A, Py_ssize_t m, const double *u)
    void drift_and_multiply(
        double *A, Py_ssize_t m, const double *u, double scale, double added, const double *x, double *out
    )
    void only_drift(double *A, Py_ssize_t m, const double *u, double scale, double added)

cnp.import_array()

cdef extern from *:
    """
    #define LEAST_LOG -27.631021115928547 /* log 1e-12: bounds the effect of one surprising label on a filter */
    #define TINY 1e-300
    /* The lag is at most n / RAMP after n rows, so that short streams can choose a prior. */
    #define RAMP 8
    /* Predictions from the same weights have correlated errors: at this horizon their log-likelihoods count half. */
    #define HALF 50.0
    """
    const double LEAST_LOG
    const double TINY
    const Py_ssize_t RAMP
    const double HALF

# A kept row holds the gradient of its label's log-odds in the weights (m numbers), then these numbers.
cdef enum:
    OFFSET  # the log-odds at weights of 0
    CURVATURE  # minus the second derivative of the log-likelihood in the log-odds, where it was last learned
    SLOPE  # first derivative, at log-odds of 0, of the parabola that approximates the log-likelihood
    WEIGHT  # of the row
    KEPT_NUMBERS

cdef enum:
    SOON = 64  # rows after which a kept row is learned again; it is learned once more when it leaves the ring


cdef struct Filters:
    Py_ssize_t n
    Py_ssize_t n_near  # the first ones: half of them, or all
    Py_ssize_t m
    double prior_mean  # of every weight
    double discount
    double least
    const double *precisions
    const double *persistence
    double *covariances
    double *means
    double *evidence
    double *samples
    Py_ssize_t lag  # of the means by which filters are compared, in learned rows
    double *past  # the last lag + 1 means (lag + 1, n, m), a ring; NULL without lag
    int64_t *rows  # number learned
    int64_t *horizon  # rows between the last label that was learned and the row that is predicted
    Py_ssize_t ring  # how many rows a filter keeps, to learn them again
    double *kept  # the last rows of the filters without drift, (number of these, ring, m + KEPT_NUMBERS); NULL without
    int64_t *n_kept  # (number of these,): how many rows each has kept so far
    double *updates  # u of each filter: u u' is to be taken from its covariance, which then drifts
    int *put_off  # 1 to take u u' from the covariance, -1 to add it, 0 for neither


cdef Py_ssize_t space_for(Py_ssize_t n, Py_ssize_t m) noexcept:
    """Return the number of doubles that filters need besides their state."""
    return n * m + n


cdef int view(
    Filters *all, precisions, persistence, double discount, double prior_mean, state, double *space
) except -1:
    """Fill a view of a state; only learning may write to it."""
    all.n = dim(state.means, 0)
    all.n_near = all.n
    all.m = dim(state.means, 1)
    all.prior_mean = prior_mean
    all.discount = discount
    all.precisions = doubles(precisions)
    all.persistence = doubles(persistence)
    all.covariances = <double *> doubles(state.covariances)
    all.means = <double *> doubles(state.means)
    all.evidence = <double *> doubles(state.evidence)
    all.samples = <double *> doubles(state.samples)
    all.least = LEAST_LOG
    all.lag, all.past, all.rows, all.horizon = 0, NULL, NULL, NULL
    all.ring, all.kept, all.n_kept = 0, NULL, NULL
    all.updates = space
    all.put_off = <int *> (space + all.n * all.m)
    memset(all.put_off, 0, all.n * sizeof(int))
    return 0


cdef int view_past(Filters *all, state, double least) except -1:
    """Add the earlier means and the kept rows to a view."""
    all.rows = <int64_t *> longs(state.rows)
    all.horizon = <int64_t *> longs(state.horizon)
    if dim(state.kept, 0) > 0:
        all.ring = dim(state.kept, 1)
        all.kept = <double *> doubles(state.kept)
        all.n_kept = <int64_t *> longs(state.n_kept)
    if dim(state.past, 0) > 0:
        all.lag = dim(state.past, 0) - 1
        all.past = <double *> doubles(state.past)
        all.least = least
    return 0


cdef inline const double *earlier_mean(const Filters *all, Py_ssize_t p) noexcept nogil:
    """Return the mean by which a filter is compared: of ``lag`` rows earlier, or of fewer early in a stream."""
    cdef int64_t n = all.rows[0]
    cdef int64_t lag = min(<int64_t> all.lag, n // RAMP)
    return all.past + (((n - lag) % (all.lag + 1)) * all.n + p) * all.m


cdef inline void remember(Filters *all) noexcept nogil:
    """Count a learned row, and store the means after it."""
    all.rows[0] += 1
    if all.past != NULL:
        memcpy(all.past + (all.rows[0] % (all.lag + 1)) * all.n * all.m, all.means, all.n * all.m * sizeof(double))


cdef inline double noise(const Filters *all, Py_ssize_t p) noexcept nogil:
    """Return the variance that a step adds, with which the prior stays the same."""
    return (1.0 - all.persistence[p] * all.persistence[p]) / all.precisions[p]


cdef inline void multiply(Filters *all, Py_ssize_t p, const double *x, double *s) noexcept nogil:
    """Apply the delayed update, and write the product of the covariance with x to s."""
    cdef Py_ssize_t m = all.m
    cdef double *covariance = all.covariances + p * m * m
    cdef double rho = all.persistence[p]
    if not all.put_off[p]:
        only_multiply(covariance, m, x, s)
    elif all.put_off[p] < 0:
        add_and_multiply(covariance, m, all.updates + p * m, x, s)
    elif rho == 1.0:
        subtract_and_multiply(covariance, m, all.updates + p * m, x, s)
    else:
        drift_and_multiply(covariance, m, all.updates + p * m, rho * rho, noise(all, p), x, s)
    all.put_off[p] = 0


cdef inline void catch_up(Filters *all) noexcept nogil:
    """Apply the delayed updates."""
    cdef Py_ssize_t m = all.m
    cdef Py_ssize_t p
    cdef double *covariance
    cdef double rho
    for p in range(all.n):
        covariance = all.covariances + p * m * m
        rho = all.persistence[p]
        if all.put_off[p] < 0:
            only_add(covariance, m, all.updates + p * m)
        elif all.put_off[p] and rho == 1.0:
            only_subtract(covariance, m, all.updates + p * m)
        elif all.put_off[p]:
            only_drift(covariance, m, all.updates + p * m, rho * rho, noise(all, p))
        all.put_off[p] = 0


cdef inline void move(Filters *all, Py_ssize_t p, const double *s, double shift, double gain) noexcept nogil:
    """Move a mean by shift s; delay subtracting gain s s' from the covariance."""
    cdef Py_ssize_t m = all.m
    cdef double *mean = all.means + p * m
    cdef double *u = all.updates + p * m
    cdef double root = sqrt(fabs(gain))
    cdef Py_ssize_t i
    for i in range(m):
        mean[i] += shift * s[i]
        u[i] = root * s[i]
    all.put_off[p] = 1 if gain >= 0.0 else -1


cdef inline void absorb(
    Filters *all, Py_ssize_t p, const double *s, double shift, double gain, double w
) noexcept nogil:
    """Move a mean by shift s and let it drift; delay subtracting gain s s' from the covariance, and its drift."""
    cdef double *mean = all.means + p * all.m
    cdef double rho = all.persistence[p]
    cdef double prior = all.prior_mean
    cdef Py_ssize_t i
    move(all, p, s, shift, gain)
    if rho != 1.0:
        for i in range(all.m):
            mean[i] = prior + rho * (mean[i] - prior)
    all.samples[p] = rho * all.samples[p] + w


cdef void squared_rows(
    Filters *all,
    const double *G,
    const double *truth,
    const double *w,
    Py_ssize_t n,
    Py_ssize_t n_labels,
    double theta,
    double *out,
    double *space,
) noexcept nogil:
    cdef Py_ssize_t m = all.m
    cdef double *s = space
    cdef double *x = space + m
    cdef double *weights = space + 2 * m
    cdef double spread, gain, residual
    cdef Py_ssize_t t, p
    for t in range(n):
        mix_means(all.evidence, all.means, all.n, m, weights)
        label_losses(weights, G + t * n_labels * m, n_labels, m, s, out + t * n_labels)
        if w[t] == 0.0:
            continue
        to_margins(truth + t * m, m, x)
        for p in range(all.n):
            multiply(all, p, x, s)
            spread = 1.0 + theta * w[t] * inner(s, x, m)
            gain, residual = theta * w[t] / spread, 1.0 - inner(all.means + p * m, x, m)
            absorb(all, p, s, gain * residual, gain, w[t])
            all.evidence[p] = all.discount * all.evidence[p] - 0.5 * (log(spread) + gain * residual * residual)
    catch_up(all)


def squared_stream(G, truth, w, double theta, double discount, precisions, persistence, state, out):
    """Compute the losses (1 - weighted margin)/2 of each row, then learn it with every filter."""
    G, truth, w = contiguous(G), contiguous(truth), contiguous(w)
    cdef Filters all
    cdef Py_ssize_t n = dim(G, 0)
    cdef Py_ssize_t n_labels = dim(G, 1)
    cdef Py_ssize_t m = dim(G, 2)
    cdef const double *G_ = doubles(G)
    cdef const double *truth_ = doubles(truth)
    cdef const double *w_ = doubles(w)
    cdef double *out_ = own_doubles(out)
    scratch = room(3 * m + space_for(dim(state.means, 0), m))
    cdef double *space = own_doubles(scratch)
    view(&all, precisions, persistence, discount, 1.0 / m, state, space + 3 * m)
    with nogil:
        squared_rows(&all, G_, truth_, w_, n, n_labels, theta, out_, space)


cdef inline double lead(
    const double *X, const double *z, Py_ssize_t n_labels, Py_ssize_t label, Py_ssize_t m, double *d
) noexcept nogil:
    """Return the log-odds of a label against all others; write their gradient in the weights to d.

    They are z of the label less the log-sum-exp of the others'; z is half the weighted sum of the margins X.
    """
    cdef double top = -1e308
    cdef double total = 0.0
    cdef double share
    cdef Py_ssize_t k, i
    for k in range(n_labels):
        if k != label:
            top = max(top, z[k])
    for k in range(n_labels):
        if k != label:
            total += exp(z[k] - top)
    for i in range(m):
        d[i] = 0.5 * X[label * m + i]
    for k in range(n_labels):
        if k != label:
            share = 0.5 * exp(z[k] - top) / total
            for i in range(m):
                d[i] -= share * X[k * m + i]
    return z[label] - top - log(total)


cdef struct Scratch:
    double *X  # margins of every label
    double *d  # what the log-odds of each filter grow by with the weights
    double *s  # its product with the covariance
    double *z  # of every label
    double *prior  # z at the prior mean
    double *moved  # z at the horizon
    double *mixed  # probability of every label by one half of the filters
    double *probabilities  # of every label, by each filter
    double *log_likelihood  # of every label, by each filter: the logarithm of its probability by which the filter is judged
    double *odds  # log-odds of the likeliest label
    double *variance  # of these
    Py_ssize_t *likeliest


cdef inline void moderate(
    const Scratch *own, Py_ssize_t p, Py_ssize_t n_labels, const double *z, double variance
) noexcept nogil:
    """Compute the probabilities of logits z, averaged over log-odds of this variance (MacKay 1992)."""
    cdef double kappa = 1.0 / sqrt(1.0 + PI_EIGHTH * variance)
    cdef double top = kappa * largest(z, n_labels)
    cdef double total = 0.0
    cdef double *out = own.probabilities + p * n_labels
    cdef Py_ssize_t k
    for k in range(n_labels):
        out[k] = exp(kappa * z[k] - top)
        total += out[k]
    for k in range(n_labels):
        out[k] /= total


cdef inline void moderate_logs(
    const double *z, Py_ssize_t n_labels, double variance, double *out
) noexcept nogil:
    """Compute the logarithms of the probabilities of logits z with this variance."""
    cdef double kappa = 1.0 / sqrt(1.0 + PI_EIGHTH * variance)
    cdef double top = kappa * largest(z, n_labels)
    cdef double total = 0.0
    cdef Py_ssize_t k
    for k in range(n_labels):
        total += exp(kappa * z[k] - top)
    total = log(total)
    for k in range(n_labels):
        out[k] = kappa * z[k] - top - total


cdef inline void ahead(
    const Filters *all, Py_ssize_t p, Py_ssize_t n_labels, const Scratch *own, double *z, double *variance
) noexcept nogil:
    """Let logits and the variance of their difference drift to the predicted row."""
    cdef const double *d = own.d + p * all.m
    cdef double rho
    cdef Py_ssize_t k
    if all.horizon[0] > 0 and all.persistence[p] != 1.0:
        rho = pow(all.persistence[p], <double> all.horizon[0])
        for k in range(n_labels):
            z[k] = own.prior[k] + rho * (z[k] - own.prior[k])
        if variance != NULL:
            variance[0] = rho * rho * variance[0] + (1.0 - rho * rho) / all.precisions[p] * inner(d, d, all.m)


cdef inline void note_log_likelihoods(
    const Filters *all, Py_ssize_t p, Py_ssize_t n_labels, const Scratch *own, double variance
) noexcept nogil:
    """Store the log-probabilities of the labels by which filters are compared when the label is known."""
    cdef double *out = own.log_likelihood + p * n_labels
    cdef const double *mean
    cdef Py_ssize_t k
    if all.past == NULL:
        for k in range(n_labels):
            out[k] = log(max(own.probabilities[p * n_labels + k], TINY))
        return
    mean = earlier_mean(all, p)
    for k in range(n_labels):
        out[k] = 0.5 * inner(mean, own.X + k * all.m, all.m)
    ahead(all, p, n_labels, own, out, NULL)
    moderate_logs(out, n_labels, variance, out)


cdef inline void predict(Filters *all, const double *G, Py_ssize_t n_labels, const Scratch *own, double *out) noexcept nogil:
    """Compute minus the log-probabilities of the labels under the mixture; leave what `learn` needs in ``own``."""
    cdef Py_ssize_t m = all.m
    cdef double best = largest(all.evidence, all.n)
    cdef double total = 0.0
    cdef double of_half = 0.0
    cdef double weight, variance
    cdef double *d
    cdef double *s
    cdef Py_ssize_t p, k, i
    for k in range(n_labels):
        to_margins(G + k * m, m, own.X + k * m)
        own.prior[k] = 0.0
        for i in range(m):
            own.X[k * m + i] = max(own.X[k * m + i], -1.0)
            own.prior[k] += own.X[k * m + i]
        own.prior[k] *= 0.5 * all.prior_mean
        out[k] = own.mixed[k] = 0.0
    for p in range(all.n):
        d, s = own.d + p * m, own.s + p * m
        for k in range(n_labels):
            own.z[k] = 0.5 * inner(all.means + p * m, own.X + k * m, m)
        own.likeliest[p] = n_labels - 1
        for k in range(n_labels - 2, -1, -1):
            if own.z[k] > own.z[own.likeliest[p]]:
                own.likeliest[p] = k
        own.odds[p] = lead(own.X, own.z, n_labels, own.likeliest[p], m, d)
        multiply(all, p, d, s)
        own.variance[p] = max(inner(s, d, m), 0.0)
        variance = own.variance[p]
        memcpy(own.moved, own.z, n_labels * sizeof(double))
        ahead(all, p, n_labels, own, own.moved, &variance)
        moderate(own, p, n_labels, own.moved, variance)
        note_log_likelihoods(all, p, n_labels, own, variance)
        weight = exp(all.evidence[p] - best)
        of_half += weight
        for k in range(n_labels):
            own.mixed[k] += weight * own.probabilities[p * n_labels + k]
        if p == all.n_near - 1 or p == all.n - 1:
            # Add by halves, so that two equal halves give the same bits as one.
            total += of_half
            of_half = 0.0
            for k in range(n_labels):
                out[k] += own.mixed[k]
                own.mixed[k] = 0.0
    for k in range(n_labels):
        out[k] = -log(max(out[k] / total, TINY))


cdef inline void learn_again(Filters *all, Py_ssize_t p, double *row, double *s) noexcept nogil:
    """Remove a kept row from a filter and learn it again at its present log-odds.

    The parabola that approximates the row's log-likelihood was fitted at the log-odds of that time, which may be far
    from the present ones.
    """
    cdef Py_ssize_t m = all.m
    cdef double *own = row + m
    cdef double odds, variance, rest, mode, miss, curvature, slope, change, spread
    multiply(all, p, row, s)
    variance = inner(s, row, m)
    rest = 1.0 - own[CURVATURE] * variance
    if not (variance > 0.0 and rest > 1e-6):
        return  # without the row, the variance would be infinite or lost in rounding
    odds = inner(all.means + p * m, row, m) + own[OFFSET]
    mode = settled((odds - own[SLOPE] * variance) / rest, own[WEIGHT] * variance / rest)
    miss = sigmoid(-mode)
    curvature = own[WEIGHT] * miss * (1.0 - miss)
    slope = own[WEIGHT] * miss + curvature * mode
    change = curvature - own[CURVATURE]
    spread = 1.0 + change * variance
    move(all, p, s, (slope - own[SLOPE] - change * odds) / spread, change / spread)
    own[CURVATURE], own[SLOPE] = curvature, slope


cdef inline void keep(
    Filters *all, Py_ssize_t p, Py_ssize_t place, const double *d, double sign, double mode, double offset, double w, double *s
) noexcept nogil:
    """Store a row that a filter has just learned, and learn two earlier rows again."""
    cdef Py_ssize_t m = all.m
    cdef Py_ssize_t width = m + KEPT_NUMBERS
    cdef double *kept = all.kept + place * all.ring * width
    cdef int64_t n = all.n_kept[place]
    cdef double *row = kept + (n % all.ring) * width
    cdef double miss = sigmoid(-mode)
    cdef Py_ssize_t i
    if n >= all.ring:
        learn_again(all, p, row, s)
    for i in range(m):
        row[i] = sign * d[i]
    row[m + OFFSET] = offset
    row[m + CURVATURE] = w * miss * (1.0 - miss)
    row[m + SLOPE] = w * miss + row[m + CURVATURE] * mode
    row[m + WEIGHT] = w
    all.n_kept[place] += 1
    if n >= SOON:
        learn_again(all, p, kept + ((n - SOON) % all.ring) * width, s)


cdef inline void learn(
    Filters *all, Py_ssize_t first, Py_ssize_t last, Py_ssize_t label, double w, Py_ssize_t n_labels, const Scratch *own
) noexcept nogil:
    """Learn a label with some filters: move to the mode along its log-odds, and add the curvature there."""
    cdef Py_ssize_t m = all.m
    cdef double odds, variance, sign, miss, curvature, offset
    cdef double *d
    cdef double *s
    cdef Py_ssize_t place = 0
    cdef Py_ssize_t p, k
    for p in range(first):
        place += all.persistence[p] == 1.0
    for p in range(first, last):
        d, s = own.d + p * m, own.s + p * m
        odds, variance, sign = own.odds[p], own.variance[p], 1.0
        if label != own.likeliest[p] and n_labels == 2:
            odds, sign = -odds, -1.0
        elif label != own.likeliest[p]:
            for k in range(n_labels):
                own.z[k] = 0.5 * inner(all.means + p * m, own.X + k * m, m)
            odds = lead(own.X, own.z, n_labels, label, m, d)
            multiply(all, p, d, s)
            variance = max(inner(s, d, m), 0.0)
        offset = odds - sign * inner(all.means + p * m, d, m)
        odds = settled(odds, w * variance)
        miss = sigmoid(-odds)
        curvature = w * miss * (1.0 - miss)
        absorb(all, p, s, sign * w * miss, curvature / (1.0 + curvature * variance), w)
        if all.kept != NULL and all.persistence[p] == 1.0:
            keep(all, p, place, d, sign, odds, offset, w, s)
            place += 1


cdef inline void compare(
    Filters *all, Py_ssize_t label, double w, Py_ssize_t n_labels, const double *log_likelihood
) noexcept nogil:
    """Update the evidence by the log-probabilities of a label when its row was predicted."""
    cdef double share = 1.0 / (1.0 + <double> all.horizon[0] / HALF)
    cdef double fade = all.discount if share == 1.0 else pow(all.discount, share)
    cdef Py_ssize_t p
    for p in range(all.n):
        all.evidence[p] = fade * all.evidence[p] + share * w * max(log_likelihood[p * n_labels + label], all.least)


cdef void logistic_rows(
    Filters *all,
    const double *G,
    const Py_ssize_t *y,
    const double *w,
    Py_ssize_t n,
    Py_ssize_t n_labels,
    bint only_near,
    const double *G_now,
    double *out,
    double *log_likelihoods,
    const Scratch *own,
) noexcept nogil:
    """Do what `logistic_stream` does; without labels, only predict."""
    cdef Py_ssize_t size = all.n * n_labels
    cdef double *late
    cdef Py_ssize_t t
    for t in range(n):
        late = NULL if log_likelihoods == NULL else log_likelihoods + t * (size + 1)
        predict(all, G + t * n_labels * all.m, n_labels, own, out + t * n_labels)
        if y == NULL or w[t] == 0.0:
            if late != NULL:
                memcpy(late, own.log_likelihood, size * sizeof(double))
                late[size] = <double> all.rows[0]
            continue
        if G_now == NULL:
            learn(all, 0, all.n_near if only_near else all.n, y[t], w[t], n_labels, own)
        else:
            learn(all, all.n_near, all.n, y[t], w[t], n_labels, own)
        if not only_near:
            all.horizon[0] = 0 if late == NULL else max(all.rows[0] - <int64_t> late[size], <int64_t> 0)
            compare(all, y[t], w[t], n_labels, own.log_likelihood if late == NULL else late)
        if G_now != NULL:
            predict(all, G_now + t * n_labels * all.m, n_labels, own, out + t * n_labels)
            learn(all, 0, all.n_near, y[t], w[t], n_labels, own)
        remember(all)
    catch_up(all)


def logistic_stream(
    G,
    y,
    w,
    double prior_mean,
    double discount,
    precisions,
    persistence,
    state,
    out,
    log_likelihoods=None,
    double least=LEAST_LOG,
    Py_ssize_t n_near=0,
    bint only_near=False,
    G_now=None,
):
    """Compute minus the log-probabilities of each row's labels, then learn the row with every filter.

    Without labels nothing is learned, and the state is only read. ``log_likelihoods`` (n, filters * labels + 1) are for
    late labels: written for rows of weight 0, and read for the others. They hold the log-probabilities by which filters
    are compared, and the number of rows learned then; by default those at the time of learning. The first ``n_near``
    filters are the first half; with ``only_near`` only these learn, and none are compared. With ``G_now``, the losses
    when the labels arrived, the first half learns from these and the second half from G. ``least`` is a lower bound on
    the log-probability of a label where filters are compared by earlier means.
    """
    G, y, w, now = contiguous(G), contiguous(y), contiguous(w), None if G_now is None else contiguous(G_now)
    cdef Filters all
    cdef Scratch own
    cdef Py_ssize_t n = dim(G, 0)
    cdef Py_ssize_t n_labels = dim(G, 1)
    cdef Py_ssize_t m = dim(G, 2)
    cdef Py_ssize_t n_filters = dim(state.means, 0)
    cdef Py_ssize_t size = n_filters * n_labels
    cdef const double *G_ = doubles(G)
    cdef const Py_ssize_t *y_ = labels(y) if dim(y, 0) > 0 else NULL
    cdef const double *w_ = doubles(w)
    cdef double *out_ = own_doubles(out)
    cdef double *late = NULL if log_likelihoods is None else own_doubles(log_likelihoods)
    cdef const double *now_ = NULL if now is None else doubles(now)
    scratch = room((n_labels + 2 * n_filters) * m + 4 * n_labels + 2 * size + 3 * n_filters + space_for(n_filters, m))
    own.X = own_doubles(scratch)
    own.d = own.X + n_labels * m
    own.s = own.d + n_filters * m
    own.z = own.s + n_filters * m
    own.prior = own.z + n_labels
    own.moved = own.prior + n_labels
    own.mixed = own.moved + n_labels
    own.probabilities = own.mixed + n_labels
    own.log_likelihood = own.probabilities + size
    own.odds = own.log_likelihood + size
    own.variance = own.odds + n_filters
    own.likeliest = <Py_ssize_t *> (own.variance + n_filters)
    view(&all, precisions, persistence, discount, prior_mean, state, own.variance + 2 * n_filters)
    view_past(&all, state, least)
    if n_near > 0:
        all.n_near = n_near
    if y_ != NULL:
        own_doubles(state.covariances)  # raises an error if it is read-only
    with nogil:
        logistic_rows(&all, G_, y_, w_, n, n_labels, only_near, now_, out_, late, &own)
