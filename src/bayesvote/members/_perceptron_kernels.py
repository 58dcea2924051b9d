"""Perceptron kernels; weights are laid out (features, scores).

Sums run over a row's features in their order and are never reordered or fused, so that zeros can be left out,
and rows, chunks and threads cut anywhere, without changing a bit. Indices are unsigned, and slices are not
taken in loops, for the compiler to vectorise them.
"""

import numpy as np
from numba import njit
from numpy.typing import NDArray

from bayesvote._checks import Array, Labels

Columns = NDArray[np.int32]
Starts = NDArray[np.int64]
Features = NDArray[np.uint32]
Places = NDArray[np.uint64]
Mask = NDArray[np.uint8] | Array

# Rows taken together where none is learned: enough to vectorise over, few enough to stay in the nearest cache.
BLOCK = 64


@njit(cache=True, nogil=True, error_model="numpy")
def add_product(
    values: Array,
    columns: Columns,
    a: int,
    e: int,
    f: int,
    W: Array,
    out: Array,
    t: int,
    at: int,
) -> None:
    """Add x W to ``out[t, at:]``; eight features at a time, added one by one."""
    first = np.uint64(at)
    n = np.uint64(W.shape[1])
    eights = e - a - (e - a) % 8
    for p in range(0, eights, 8):
        v, k = a + p, f + p
        x0, x1, x2, x3 = values[v], values[v + 1], values[v + 2], values[v + 3]
        x4, x5, x6, x7 = values[v + 4], values[v + 5], values[v + 6], values[v + 7]
        j0, j1, j2, j3 = columns[k], columns[k + 1], columns[k + 2], columns[k + 3]
        j4, j5, j6, j7 = columns[k + 4], columns[k + 5], columns[k + 6], columns[k + 7]
        for c in range(n):
            s = (((out[t, first + c] + x0 * W[j0, c]) + x1 * W[j1, c]) + x2 * W[j2, c]) + x3 * W[j3, c]
            out[t, first + c] = (((s + x4 * W[j4, c]) + x5 * W[j5, c]) + x6 * W[j6, c]) + x7 * W[j7, c]
    fours = e - a - (e - a) % 4
    for p in range(eights, fours, 4):
        v, k = a + p, f + p
        x0, x1, x2, x3 = values[v], values[v + 1], values[v + 2], values[v + 3]
        j0, j1, j2, j3 = columns[k], columns[k + 1], columns[k + 2], columns[k + 3]
        for c in range(n):
            s = ((out[t, first + c] + x0 * W[j0, c]) + x1 * W[j1, c]) + x2 * W[j2, c]
            out[t, first + c] = s + x3 * W[j3, c]
    for p in range(fours, e - a):
        x = values[a + p]
        j = columns[f + p]
        for c in range(n):
            out[t, first + c] += x * W[j, c]


@njit(cache=True, nogil=True, error_model="numpy")
def transpose(values: Array, start: int, n: int, width: int, X: Array) -> None:
    """Put n dense rows into X, one row of X per feature."""
    for r in range(np.uint64(n)):
        row = np.uint64(start) + r * np.uint64(width)
        for j in range(np.uint64(width)):
            X[j, r] = values[row + j]


@njit(cache=True, nogil=True, error_model="numpy")
def add_own_product(X: Array, own: Features, member: int, W: Array, c: int, n: int, out: Array) -> None:
    """Add column c of W times the member's own features to out, for n rows that are transposed in X.

    The inner loop runs over rows, so only the features the member sees cost anything. Bit for bit the sums of
    `add_product`: what is left out there adds zero.
    """
    rows = np.uint64(n)
    size = own.shape[1]
    whole = size - size % 8
    for q in range(0, whole, 8):
        j0, j1, j2, j3 = own[member, q], own[member, q + 1], own[member, q + 2], own[member, q + 3]
        j4, j5, j6, j7 = own[member, q + 4], own[member, q + 5], own[member, q + 6], own[member, q + 7]
        w0, w1, w2, w3 = W[j0, c], W[j1, c], W[j2, c], W[j3, c]
        w4, w5, w6, w7 = W[j4, c], W[j5, c], W[j6, c], W[j7, c]
        for r in range(rows):
            s = (((out[r] + X[j0, r] * w0) + X[j1, r] * w1) + X[j2, r] * w2) + X[j3, r] * w3
            out[r] = (((s + X[j4, r] * w4) + X[j5, r] * w5) + X[j6, r] * w6) + X[j7, r] * w7
    for q in range(whole, size):
        j = own[member, q]
        w = W[j, c]
        for r in range(rows):
            out[r] += X[j, r] * w


@njit(cache=True, nogil=True, error_model="numpy")
def find_steps(raw: Array, label: int, weight: float, per: int, steps: Array) -> None:
    """Find how far each score's weights must move along x: zero without a mistake, and for NaN."""
    if per == 1:
        sign = 1.0 if label == 1 else -1.0
        for c in range(np.uint64(len(steps))):
            steps[c] = sign * weight if sign * raw[0, c] <= 0.0 else 0.0
        return
    steps[:] = 0.0
    for start in range(0, len(steps), per):
        right = start + label
        rival = start if label else start + 1
        for c in range(start, start + per):
            if c != right and raw[0, c] > raw[0, rival]:
                rival = c
        if raw[0, right] <= raw[0, rival]:
            steps[right], steps[rival] = weight, -weight


@njit(cache=True, nogil=True, error_model="numpy")
def teach_sparse(values: Array, columns: Columns, a: int, e: int, uses: Mask, steps: Array, W: Array) -> None:
    """Add step times x to the weights of all scores, value by value."""
    for p in range(a, e):
        x = values[p]
        j = columns[p]
        for c in range(np.uint64(len(steps))):
            W[j, c] += x * (steps[c] * uses[j, c])


@njit(cache=True, nogil=True, error_model="numpy")
def teach_dense(
    values: Array, a: int, own: Features, steps: Array, places: Places, W: Array, W_past: Array, age: Array
) -> None:
    """Add step times x to the weights of the mistaken scores, by the features that each member sees."""
    found = 0
    for c in range(np.uint64(len(steps))):
        # Written always and counted only when wrong: a branch here would be guessed wrongly too often.
        places[found] = c
        found += steps[c] != 0.0
    per = np.uint64(len(steps) // len(own))
    start = np.uint64(a)
    for r in range(found):
        c = places[r]
        member = c if per == 1 else c // per
        step = steps[c]
        if len(W_past) == 0:
            for q in range(np.uint64(own.shape[1])):
                j = own[member, q]
                W[j, c] += step * values[start + j]
        else:
            past = step * age[c]
            for q in range(np.uint64(own.shape[1])):
                j = own[member, q]
                W[j, c] += step * values[start + j]
                W_past[j, c] += past * values[start + j]


@njit(cache=True, nogil=True, error_model="numpy")
def compress(X: Array, values: Array, columns: Columns, starts: Starts) -> None:
    """Copy what is not zero, row after row."""
    n = np.uint64(0)
    for t in range(np.uint64(X.shape[0])):
        for j in range(np.uint64(X.shape[1])):
            values[n] = X[t, j]
            columns[n] = j
            n += np.uint64(X[t, j] != 0.0)
        starts[t + np.uint64(1)] = n


@njit(cache=True, nogil=True, error_model="numpy")
def abstain(given: Array, columns: Columns, a: int, e: int, f: int, uses: Mask, row: Array) -> None:
    """Put NaN for the scores that use a missing value."""
    for p in range(e - a):
        if np.isnan(given[a + p]):
            for c in range(len(row)):
                if uses[columns[f + p], c] != 0:
                    row[c] = np.nan


@njit(cache=True, nogil=True, error_model="numpy")
def average(plain: float, past: float, age: float) -> float:
    """Score of the averaged weights, from those of the plain and the past ones."""
    return plain - past / age if age > 0.0 else plain


@njit(cache=True, nogil=True, error_model="numpy")
def run(
    given: Array,
    values: Array,
    columns: Columns,
    starts: Starts,
    dense: bool,
    has_nan: bool,
    y: Labels,
    weight: Array,
    own: Features,
    uses: Mask,
    W: Array,
    bias: Array,
    W_past: Array,
    bias_past: Array,
    age: Array,
    top: int,
    end: int,
    out: Array,
    at: int,
) -> None:
    """Score rows top to end into ``out[:, at:]``, each before it is learned; without labels none is.

    ``values`` are the given ones with zero for NaN. The average of the weights over all rows learned is
    W - W_past / age, where W_past adds up every step times the age it was taken at, so that no average is
    ever formed (Freund and Schapire 1999).
    """
    scores = W.shape[1]
    per = scores // len(own)
    averaged = len(W_past) > 0
    first, n = np.uint64(at), np.uint64(scores)
    raw = np.empty((1, scores))
    steps = np.empty(scores)
    places = np.empty(scores + 1, dtype=np.uint64)
    for t in range(top, end):
        a, e = starts[t], starts[t + 1]
        f = 0 if dense else a
        for c in range(n):
            raw[0, c] = bias[c]
        add_product(values, columns, a, e, f, W, raw, 0, 0)
        if has_nan:
            abstain(given, columns, a, e, f, uses, raw[0])
        if averaged:
            for c in range(n):
                out[t, first + c] = bias_past[c]
            add_product(values, columns, a, e, f, W_past, out, t, at)
            for c in range(n):
                out[t, first + c] = average(raw[0, c], out[t, first + c], age[c])
        else:
            for c in range(n):
                out[t, first + c] = raw[0, c]
        if len(y) == 0 or weight[t] == 0.0:
            continue
        find_steps(raw, y[t], weight[t], per, steps)
        for c in range(n):
            bias[c] += steps[c]
        if dense:
            teach_dense(values, a, own, steps, places, W, W_past, age)
        else:
            teach_sparse(values, columns, a, e, uses, steps, W)
        if averaged:
            for c in range(n):
                steps[c] *= age[c]
            for c in range(n):
                bias_past[c] += steps[c]
            if not dense:
                teach_sparse(values, columns, a, e, uses, steps, W_past)
            for c in range(n):
                age[c] += weight[t] if raw[0, c] == raw[0, c] else 0.0


@njit(cache=True, nogil=True, error_model="numpy")
def score_dense(
    values: Array,
    own: Features,
    W: Array,
    bias: Array,
    W_past: Array,
    bias_past: Array,
    age: Array,
    first: int,
    last: int,
    out: Array,
) -> None:
    """Score the dense rows first to last, none with NaN: bit for bit what `run` gives, but a block at a time."""
    per = W.shape[1] // len(own)
    X = np.empty((len(W), BLOCK))
    plain = np.empty(BLOCK)
    past = np.empty(BLOCK)
    for t in range(first, last, BLOCK):
        n = min(BLOCK, last - t)
        transpose(values, t * len(W), n, len(W), X)
        for c in range(W.shape[1]):
            plain[:] = bias[c]
            add_own_product(X, own, c // per, W, c, n, plain)
            if len(W_past):
                past[:] = bias_past[c]
                add_own_product(X, own, c // per, W_past, c, n, past)
                for r in range(n):
                    plain[r] = average(plain[r], past[r], age[c])
            for r in range(n):
                out[t + r, c] = plain[r]
