"""Perceptron kernels; weights are laid out (features, scores).

Sums run over a row's features in their order and are never reordered or fused, so that zeros can be left out,
and rows, chunks and threads cut anywhere, without changing a bit. Indices are unsigned, and slices are not
taken in loops, for the compiler to vectorise them.
"""

from typing import Any

import numpy as np
from numba import njit
from numpy.typing import NDArray

from bayesvote._checks import Array, Labels
from bayesvote.members._vectors import Columns, Index, Mask, product, product_32, teach_sparse

Starts = NDArray[np.int64]
Features = NDArray[np.uint32]
Places = NDArray[np.uint64]

# Rows taken together where none is learned, as many as a vector has lanes.
BLOCK = 32


@njit(cache=True, nogil=True, error_model="numpy")
def transpose(values: Array, start: int, n: int, width: int, X: Array) -> None:
    """Put n dense rows into X, one row of X per feature."""
    for r in range(np.uint64(n)):
        row = np.uint64(start) + r * np.uint64(width)
        for j in range(np.uint64(width)):
            X[j, r] = values[row + j]


@njit(cache=True, nogil=True, error_model="numpy")
def own_weights(W: Array, own: Features) -> Array:
    """Weights (scores, k) of the features that each member sees."""
    per = W.shape[1] // len(own)
    out = np.empty((W.shape[1], own.shape[1]))
    for c in range(len(out)):
        for q in range(out.shape[1]):
            out[c, q] = W[own[c // per, q], c]
    return out


@njit(cache=True, nogil=True, error_model="numpy")
def find_steps(raw: Array, label: int, weight: float, per: int, steps: Array) -> None:
    """Find how far each score's weights must move along x: zero without a mistake, and for NaN."""
    if per == 1:
        sign = 1.0 if label == 1 else -1.0
        for c in range(np.uint64(len(steps))):
            steps[c] = sign * weight if sign * raw[c] <= 0.0 else 0.0
        return
    steps[:] = 0.0
    for start in range(0, len(steps), per):
        right = start + label
        rival = start if label else start + 1
        for c in range(start, start + per):
            if c != right and raw[c] > raw[rival]:
                rival = c
        if raw[right] <= raw[rival]:
            steps[right], steps[rival] = weight, -weight


@njit(cache=True, nogil=True, error_model="numpy")
def teach_dense(
    values: Array, a: Index, own: Features, steps: Array, wrong: Places, W: Array, W_past: Array, age: Array
) -> None:
    """Add step times x to the weights of the mistaken scores, by the features that each member sees."""
    found = 0
    for c in range(np.uint64(len(age))):
        # Written always and counted only when wrong: a branch here would be guessed wrongly too often.
        wrong[found] = c
        found += steps[c] != 0.0
    per = np.uint64(len(age) // len(own))
    for r in range(found):
        c = wrong[r]
        member = c if per == 1 else c // per
        step = steps[c]
        for q in range(np.uint64(own.shape[1])):
            j = own[member, q]
            W[j, c] += step * values[a + j]
        if len(W_past):
            step *= age[c]
            for q in range(np.uint64(own.shape[1])):
                j = own[member, q]
                W_past[j, c] += step * values[a + j]


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
def abstain(
    given: Array, columns: Columns, a: int | Index, e: int | Index, f: int | Index, uses: Mask, row: Array
) -> None:
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
    ever formed (Freund and Schapire 1999). ``age`` tells how many scores there are; the rest may be wider.
    """
    averaged = len(W_past) > 0
    first, n, width = np.uint64(at), np.uint64(len(age)), np.uint64(W.shape[1])
    per = len(age) // len(own)
    raw = np.empty(len(bias))
    past = np.empty(len(bias))
    steps = np.zeros(len(bias))
    wrong = np.empty(len(age) + 1, dtype=np.uint64)
    flat, past_flat, mask = W.reshape(-1), W_past.reshape(-1), uses.reshape(-1)
    for t in range(np.uint64(top), np.uint64(end)):
        a, e = np.uint64(starts[t]), np.uint64(starts[t + np.uint64(1)])
        f = np.uint64(0) if dense else a
        product(values, a, columns, f, e - a, flat, width, bias, raw)
        if has_nan:
            abstain(given, columns, a, e, f, uses, raw[:n])
        if averaged:
            product(values, a, columns, f, e - a, past_flat, width, bias_past, past)
            for c in range(n):
                out[t, first + c] = average(raw[c], past[c], age[c])
        else:
            for c in range(n):
                out[t, first + c] = raw[c]
        if len(y) == 0 or weight[t] == 0.0:
            continue
        find_steps(raw, y[t], weight[t], per, steps[:n])
        for c in range(n):
            bias[c] += steps[c]
        if dense:
            teach_dense(values, a, own, steps, wrong, W, W_past, age)
        else:
            teach_sparse(values, columns, a, e - a, mask, steps, flat, width)
        if averaged:
            for c in range(n):
                steps[c] *= age[c]
            for c in range(n):
                bias_past[c] += steps[c]
            if not dense:
                teach_sparse(values, columns, a, e - a, mask, steps, past_flat, width)
            for c in range(n):
                age[c] += weight[t] if raw[c] == raw[c] else 0.0


@njit(cache=True, nogil=True, error_model="numpy")
def wider(a: Any, lo: int, hi: int) -> Any:
    """Columns lo to hi of an array, and zeros up to a whole number of vectors."""
    out = np.zeros((len(a), -(-(hi - lo) // 8) * 8), dtype=a.dtype)
    out[:, : hi - lo] = a[:, lo:hi]
    return out


@njit(cache=True, nogil=True, error_model="numpy")
def run_some(
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
    lo: int,
    hi: int,
    out: Array,
) -> None:
    """Do what `run` does, for the scores lo to hi, on a copy that fits the nearest cache.

    Cores that wrote to neighbouring weights would also wait for each other's caches all the time.
    """
    per = len(age) // len(own)
    w, past = wider(W, lo, hi), wider(W_past, lo, hi)
    biases, ages = wider(np.stack((bias, bias_past)), lo, hi), age[lo:hi].copy()
    run(
        given,
        values,
        columns,
        starts,
        dense,
        has_nan,
        y,
        weight,
        own[lo // per : hi // per],
        wider(uses, lo, hi),
        w,
        biases[0],
        past,
        biases[1],
        ages,
        0,
        len(starts) - 1,
        out,
        lo,
    )
    W[:, lo:hi], W_past[:, lo:hi] = w[:, : hi - lo], past[:, : hi - lo]
    bias[lo:hi], bias_past[lo:hi], age[lo:hi] = biases[0, : hi - lo], biases[1, : hi - lo], ages


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
    """Score the dense rows first to last, none with NaN: bit for bit what `run` gives, but a block at a time.

    The rows are the lanes, so only the features that a member sees cost anything; those left out would add zero.
    """
    d, (m, size) = len(W), own.shape
    per = W.shape[1] // m
    averaged = len(W_past) > 0
    columns = own.reshape(-1)
    weights = own_weights(W, own).reshape(-1)
    past_weights = own_weights(W_past, own).reshape(-1) if averaged else weights
    X = np.zeros((d, BLOCK))
    flat, n_features = X.reshape(-1), np.uint64(size)
    start, plain, past = np.empty(BLOCK), np.empty(BLOCK), np.empty(BLOCK)
    for t in range(first, last, BLOCK):
        n = min(BLOCK, last - t)
        transpose(values, t * d, n, d, X)
        for c in range(W.shape[1]):
            start[:] = bias[c]
            at, f = np.uint64(c * size), np.uint64(c // per * size)
            product_32(weights, at, columns, f, n_features, flat, np.uint64(BLOCK), start, plain, np.uint64(0))
            if averaged:
                start[:] = bias_past[c]
                product_32(past_weights, at, columns, f, n_features, flat, np.uint64(BLOCK), start, past, np.uint64(0))
                for r in range(n):
                    plain[r] = average(plain[r], past[r], age[c])
            for r in range(np.uint64(n)):
                out[np.uint64(t) + r, c] = plain[r]
