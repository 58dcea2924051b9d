"""Kernels of Perceptrons and passive-aggressive members; weights have the layout (features, scores).

Sums run over a row's features in order. They are never reordered or fused, so that leaving out zeros, and dividing rows
into chunks and among threads, does not change a bit of the results.
"""

cimport numpy as cnp
from libc.stdint cimport int32_t, int64_t, uint8_t, uint32_t
from libc.string cimport memcpy, memset

from bayesvote.core.arrays cimport (
    aligned,
    contiguous,
    dim,
    doubles,
    labels,
    octets,
    own_doubles,
    own_ints,
    own_longs,
    places,
    room,
    zeros,
)
from bayesvote.core.rows cimport RowView, columns_of, view_rows

cdef extern from "rows.h" nogil:
    enum:
        _BLOCK "BLOCK"
    void product(
        const double *values,
        const int32_t *columns,
        Py_ssize_t n,
        const double *W,
        Py_ssize_t width,
        const double *start,
        double *out,
    )
    void product_block(
        const double *values, const int32_t *columns, Py_ssize_t n, const double *X, const double *start, double *out
    )
    void teach_rows(
        const double *values,
        const int32_t *columns,
        Py_ssize_t n,
        const uint8_t *uses,
        const double *steps,
        double *W,
        Py_ssize_t width,
    )

cnp.import_array()

cdef enum:
    WORTH_VECTORS = 8  # updating this many weights as vectors takes about as long as updating one by itself

# Rows that are scored together when none is learned: as many as the lanes of a product.
BLOCK = _BLOCK


# Pointers into the state of a bank of linear members, or into a copy of some of its scores.
cdef struct LinearView:
    Py_ssize_t n_members
    Py_ssize_t n_own  # number of features that each member sees
    Py_ssize_t n_scores
    Py_ssize_t width  # of a row of weights, which may be padded to more than the scores
    const uint32_t *own
    const uint8_t *uses
    double *W
    double *bias
    double *W_past  # NULL unless averaged
    double *bias_past  # NULL except for Perceptrons, like the age
    double *age
    const double *limits  # aggressiveness of each score; NULL for Perceptrons
    bint squared  # True if the slack is squared


cdef int view_state(object state, LinearView *out) except -1:
    out.n_members = dim(state.features, 0)
    out.n_own = dim(state.features, 1)
    out.n_scores = dim(state.weights, 1)
    out.width = out.n_scores
    out.own = places(state.features)
    out.uses = octets(state.mask)
    out.W = own_doubles(state.weights)
    out.bias = own_doubles(state.bias)
    out.W_past = out.bias_past = out.age = NULL
    out.limits = NULL
    if hasattr(state, "age"):
        out.W_past = own_doubles(state.past_weights) if dim(state.past_weights, 0) > 0 else NULL
        out.bias_past = own_doubles(state.past_bias)
        out.age = own_doubles(state.age)
    return 0


# Rows to score and to learn.
cdef struct Lesson:
    RowView rows
    bint has_nan
    const double *values  # those of the rows, with 0 for NaN
    const Py_ssize_t *y  # NULL if no row is learned
    const double *weight
    double *out


cdef int view_lesson(
    object rows,
    object values,
    object y,
    object weight,
    object state,
    object limits,
    bint squared,
    object out,
    Lesson *lesson,
    LinearView *bank,
) except -1:
    """Set up the pointers; ``y`` and ``weight`` must be contiguous."""
    view_rows(rows, &lesson.rows)
    view_state(state, bank)
    if dim(limits, 0) > 0:
        bank.limits = doubles(limits)
        bank.squared = squared
    lesson.has_nan = rows.has_nan
    lesson.values = doubles(values)
    lesson.y = labels(y) if dim(y, 0) > 0 else NULL
    lesson.weight = doubles(weight)
    lesson.out = own_doubles(out)
    return 0


cdef inline void find_steps(
    const double *raw, Py_ssize_t label, double weight, Py_ssize_t per, Py_ssize_t n, double *steps
) noexcept nogil:
    """Compute the step of each score's weights along x: 0 without a mistake, and for NaN."""
    cdef double sign = 1.0 if label == 1 else -1.0
    cdef double step = sign * weight
    cdef Py_ssize_t c, member, start, right, rival
    if per == 1:
        for c in range(n):
            steps[c] = step if sign * raw[c] <= 0.0 else 0.0
        return
    for c in range(n):
        steps[c] = 0.0
    for member in range(n // per):
        start = member * per
        right = start + label
        rival = start if label else start + 1
        for c in range(start, start + per):
            if c != right and raw[c] > raw[rival]:
                rival = c
        if raw[right] <= raw[rival]:
            steps[right] = weight
            steps[rival] = -weight


cdef inline double square_length(
    const RowView *rows, Py_ssize_t t, const double *values, const LinearView *bank, Py_ssize_t c
) noexcept nogil:
    """Squared length of a row in the features that a score sees, with a 1 for the bias; zeros may be left out."""
    cdef const int32_t *columns
    cdef const uint32_t *own
    cdef double total = 1.0
    cdef Py_ssize_t a = rows.starts[t]
    cdef Py_ssize_t q
    if rows.dense:
        own = bank.own + c // (bank.n_scores // bank.n_members) * bank.n_own
        for q in range(bank.n_own):
            total += values[a + own[q]] * values[a + own[q]]
        return total
    columns = columns_of(rows, t)
    for q in range(rows.starts[t + 1] - a):
        if bank.uses[columns[q] * bank.width + c]:
            total += values[a + q] * values[a + q]
    return total


cdef inline double bounded(double loss, double length, double limit, bint squared) noexcept nogil:
    return loss / (length + 0.5 / limit) if squared else min(limit, loss / length)


cdef inline void find_bounded_steps(
    const RowView *rows,
    Py_ssize_t t,
    const double *values,
    const LinearView *bank,
    const double *raw,
    Py_ssize_t label,
    double weight,
    double *steps,
) noexcept nogil:
    """Compute the step of each score's weights along x that makes the hinge loss 0, within limits; 0 for NaN."""
    cdef Py_ssize_t per = bank.n_scores // bank.n_members
    cdef double sign = 1.0 if label == 1 else -1.0
    cdef double length = 0.0
    cdef bint all_see_all = bank.n_own == rows.width
    cdef Py_ssize_t c, member, start, right, rival
    cdef double loss
    for c in range(bank.n_scores):
        steps[c] = 0.0
    for member in range(bank.n_members):
        start = member * per
        right = rival = start
        loss = 1.0 - sign * raw[start]
        if per > 1:
            right = start + label
            rival = start if label else start + 1
            for c in range(start, start + per):
                if c != right and raw[c] > raw[rival]:
                    rival = c
            loss = 1.0 - (raw[right] - raw[rival])
        if not loss > 0.0:
            continue
        if length == 0.0 or not all_see_all:
            length = square_length(rows, t, values, bank, start)
        if per == 1:
            steps[start] = sign * bounded(loss, length, weight * bank.limits[start], bank.squared)
        else:
            steps[right] = bounded(loss, 2.0 * length, weight * bank.limits[start], bank.squared)
            steps[rival] = -steps[right]


cdef inline bint teach_dense(
    const double *row, Py_ssize_t d, const LinearView *bank, const double *steps, Py_ssize_t *wrong
) noexcept nogil:
    """Add step times x to the weights of the mistaken scores, for the features that each member sees.

    If many scores are mistaken, do nothing and return False: updating all weights as vectors is faster then.
    """
    cdef Py_ssize_t per = bank.n_scores // bank.n_members
    cdef Py_ssize_t width = bank.width
    cdef Py_ssize_t n_own = bank.n_own
    cdef Py_ssize_t found = 0
    cdef Py_ssize_t c, r, q, member
    cdef const uint32_t *own
    cdef double *W
    cdef double step
    for c in range(bank.n_scores):
        # Always write, and count only if wrong: the processor would mispredict a branch here too often.
        wrong[found] = c
        found += steps[c] != 0.0
    if found * n_own * WORTH_VECTORS > d * width:
        return False
    for r in range(found):
        c = wrong[r]
        member = c if per == 1 else c // per
        own = bank.own + member * n_own
        step = steps[c]
        W = bank.W + c
        for q in range(n_own):
            W[own[q] * width] += step * row[own[q]]
        if bank.W_past != NULL:
            step *= bank.age[c]
            W = bank.W_past + c
            for q in range(n_own):
                W[own[q] * width] += step * row[own[q]]
    return True


cdef inline void mark_missing(
    const double *given, const int32_t *columns, Py_ssize_t n, const LinearView *bank, double *row
) noexcept nogil:
    abstain(given, columns, n, bank.uses, bank.width, bank.n_scores, row)


cdef inline double average(double plain, double past, double age) noexcept nogil:
    """Score by the averaged weights, from the scores by the plain and the past weights."""
    return plain - past / age if age > 0.0 else plain


cdef void run_rows(
    const Lesson *lesson,
    const LinearView *bank,
    Py_ssize_t top,
    Py_ssize_t end,
    double *out,
    Py_ssize_t out_width,
    double *scratch,
) noexcept nogil:
    """Score rows top to end, each before it is learned; without labels none is. ``scratch`` holds 4 rows of weights."""
    cdef const RowView *rows = &lesson.rows
    cdef const double *values = lesson.values
    cdef const Py_ssize_t *y = lesson.y
    cdef const double *weight = lesson.weight
    cdef bint has_nan = lesson.has_nan
    cdef double *raw = scratch
    cdef double *past = scratch + bank.width
    cdef double *steps = scratch + 2 * bank.width
    cdef Py_ssize_t *wrong = <Py_ssize_t *> (scratch + 3 * bank.width)
    cdef Py_ssize_t n = bank.n_scores
    cdef Py_ssize_t per = n // bank.n_members
    cdef bint averaged = bank.W_past != NULL
    cdef Py_ssize_t t, a, size, c
    cdef const int32_t *columns
    cdef double *result
    cdef double w
    cdef bint singly
    memset(steps, 0, bank.width * sizeof(double))
    for t in range(top, end):
        a = rows.starts[t]
        size = rows.starts[t + 1] - a
        columns = columns_of(rows, t)
        result = out + t * out_width
        product(values + a, columns, size, bank.W, bank.width, bank.bias, raw)
        if has_nan:
            mark_missing(rows.values + a, columns, size, bank, raw)
        if averaged:
            product(values + a, columns, size, bank.W_past, bank.width, bank.bias_past, past)
            for c in range(n):
                result[c] = average(raw[c], past[c], bank.age[c])
        else:
            memcpy(result, raw, n * sizeof(double))
        if y == NULL or weight[t] == 0.0:
            continue
        w = weight[t]
        if bank.limits == NULL:
            find_steps(raw, y[t], w, per, n, steps)
        else:
            find_bounded_steps(rows, t, values, bank, raw, y[t], w, steps)
        for c in range(n):
            bank.bias[c] += steps[c]
        singly = rows.dense and teach_dense(values + a, size, bank, steps, wrong)
        if not singly:
            teach_rows(values + a, columns, size, bank.uses, steps, bank.W, bank.width)
        if averaged:
            for c in range(n):
                steps[c] *= bank.age[c]
            for c in range(n):
                bank.bias_past[c] += steps[c]
            if not singly:
                teach_rows(values + a, columns, size, bank.uses, steps, bank.W_past, bank.width)
            for c in range(n):
                bank.age[c] += w if raw[c] == raw[c] else 0.0


def run(rows, values, y, weight, state, limits, bint squared, Py_ssize_t top, Py_ssize_t end, out):
    """Score rows top to end into ``out``, each before it is learned; without labels none is.

    ``values`` are those of the rows with 0 for NaN. The average of the weights over all learned rows is
    W - W_past / age, where W_past sums up every step times the age at which it was made. So the average itself is
    never stored (Freund and Schapire 1999).
    """
    y, weight = contiguous(y), contiguous(weight)
    cdef Lesson lesson
    cdef LinearView bank
    view_lesson(rows, values, y, weight, state, limits, squared, out, &lesson, &bank)
    scratch = room(4 * bank.width + 1)
    cdef double *scratch_ = own_doubles(scratch)
    with nogil:
        run_rows(&lesson, &bank, top, end, lesson.out, bank.n_scores, scratch_)


cdef inline void copy_columns(
    const double *source, Py_ssize_t from_width, double *target, Py_ssize_t to_width, Py_ssize_t rows, Py_ssize_t n
) noexcept nogil:
    cdef Py_ssize_t j
    for j in range(rows):
        memcpy(target + j * to_width, source + j * from_width, n * sizeof(double))


def run_some(rows, values, y, weight, state, limits, bint squared, Py_ssize_t lo, Py_ssize_t hi, out):
    """Do what `run` does with all rows, for scores lo to hi, on a copy that fits the first-level cache.

    Without the copy, cores that write to adjacent weights would invalidate each other's cache lines.
    """
    y, weight = contiguous(y), contiguous(weight)
    cdef Lesson lesson
    cdef LinearView bank
    view_lesson(rows, values, y, weight, state, limits, squared, out, &lesson, &bank)
    cdef LinearView part = bank
    cdef Py_ssize_t per = bank.n_scores // bank.n_members
    cdef Py_ssize_t n = hi - lo
    cdef Py_ssize_t d = dim(state.weights, 0)
    cdef bint averaged = bank.W_past != NULL
    cdef Py_ssize_t j
    cdef uint8_t *uses
    part.n_members = n // per
    part.n_scores = n
    part.width = (n + 7) // 8 * 8  # whole vectors
    part.own = bank.own + lo // per * bank.n_own
    part.limits = bank.limits + lo if bank.limits != NULL else NULL
    copy = zeros((2 * d + 3) * part.width + d * part.width // 8 + 8)
    scratch = room(4 * part.width + 1)
    cdef double *scratch_ = own_doubles(scratch)
    part.W = aligned(own_doubles(copy))
    part.bias = part.W + d * part.width
    part.bias_past = part.bias + part.width
    part.age = part.bias_past + part.width
    part.W_past = part.age + part.width if averaged else NULL
    uses = <uint8_t *> (part.age + (1 + d) * part.width)
    part.uses = uses
    with nogil:
        for j in range(d):
            memcpy(uses + j * part.width, bank.uses + j * bank.width + lo, n)
        copy_columns(bank.W + lo, bank.width, part.W, part.width, d, n)
        copy_columns(bank.bias + lo, 0, part.bias, 0, 1, n)
        if bank.age != NULL:
            copy_columns(bank.bias_past + lo, 0, part.bias_past, 0, 1, n)
            copy_columns(bank.age + lo, 0, part.age, 0, 1, n)
        if averaged:
            copy_columns(bank.W_past + lo, bank.width, part.W_past, part.width, d, n)
        run_rows(&lesson, &part, 0, lesson.rows.n, lesson.out + lo, bank.n_scores, scratch_)
        copy_columns(part.W, part.width, bank.W + lo, bank.width, d, n)
        copy_columns(part.bias, 0, bank.bias + lo, 0, 1, n)
        if bank.age != NULL:
            copy_columns(part.bias_past, 0, bank.bias_past + lo, 0, 1, n)
            copy_columns(part.age, 0, bank.age + lo, 0, 1, n)
        if averaged:
            copy_columns(part.W_past, part.width, bank.W_past + lo, bank.width, d, n)


cdef void own_weights(const double *W, const LinearView *bank, double *out) noexcept nogil:
    """Copy the weights of the features that each member sees, to (scores, k)."""
    cdef Py_ssize_t per = bank.n_scores // bank.n_members
    cdef const uint32_t *own
    cdef Py_ssize_t c, q
    for c in range(bank.n_scores):
        own = bank.own + c // per * bank.n_own
        for q in range(bank.n_own):
            out[c * bank.n_own + q] = W[own[q] * bank.width + c]


def score_dense(values, state, Py_ssize_t first, Py_ssize_t last, out):
    """Score dense rows without NaN, first to last: results identical to those of `run`, but a block at a time.

    Vectors run over rows, so the cost is only that of the features that a member sees; the others would add 0.
    """
    cdef LinearView bank
    view_state(state, &bank)
    cdef Py_ssize_t d = dim(state.weights, 0)
    cdef Py_ssize_t per = bank.n_scores // bank.n_members
    cdef bint averaged = bank.W_past != NULL
    cdef Py_ssize_t n_weights = bank.n_scores * bank.n_own
    cdef const double *values_ = doubles(values)
    cdef double *out_ = own_doubles(out)
    scratch = zeros((d + 3) * _BLOCK + (2 if averaged else 1) * n_weights + 8)
    cdef double *X = aligned(own_doubles(scratch))
    cdef double *start = X + d * _BLOCK
    cdef double *plain = start + _BLOCK
    cdef double *past = plain + _BLOCK
    cdef double *weights = past + _BLOCK
    cdef double *past_weights = weights + n_weights
    cdef const int32_t *own
    cdef Py_ssize_t t = first
    cdef Py_ssize_t n, c, r
    with nogil:
        own_weights(bank.W, &bank, weights)
        if averaged:
            own_weights(bank.W_past, &bank, past_weights)
        while t < last:
            n = min(<Py_ssize_t> _BLOCK, last - t)
            transpose(values_ + t * d, n, d, _BLOCK, X)
            for c in range(bank.n_scores):
                own = <const int32_t *> bank.own + c // per * bank.n_own
                for r in range(_BLOCK):
                    start[r] = bank.bias[c]
                product_block(weights + c * bank.n_own, own, bank.n_own, X, start, plain)
                if averaged:
                    for r in range(_BLOCK):
                        start[r] = bank.bias_past[c]
                    product_block(past_weights + c * bank.n_own, own, bank.n_own, X, start, past)
                    for r in range(n):
                        plain[r] = average(plain[r], past[r], bank.age[c])
                for r in range(n):
                    out_[(t + r) * bank.n_scores + c] = plain[r]
            t += _BLOCK


def compress(X, values, columns, starts):
    """Compress dense rows: copy the values other than 0, and their columns."""
    cdef const double *X_ = doubles(X)
    cdef double *values_ = own_doubles(values)
    cdef int32_t *columns_ = own_ints(columns)
    cdef int64_t *starts_ = own_longs(starts)
    cdef Py_ssize_t rows = dim(X, 0)
    cdef Py_ssize_t width = dim(X, 1)
    cdef Py_ssize_t n = 0
    cdef Py_ssize_t t, j
    with nogil:
        for t in range(rows):
            for j in range(width):
                values_[n] = X_[t * width + j]
                columns_[n] = <int32_t> j
                n += X_[t * width + j] != 0.0
            starts_[t + 1] = n
