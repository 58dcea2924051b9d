"""Kernels of the random ferns: choosing the questions; scoring and counting many rows at a time."""

import numpy as np
from numba import njit
from numpy.typing import NDArray

from bayesvote._checks import Array, Labels

Ints = NDArray[np.int32]

# Rows answered at a time: few enough for their features to stay in the first cache.
BLOCK = 64
# Members counted side by side: their counts do not wait for each other, and their scores fill a cache line.
GROUP = 8


@njit(cache=True, nogil=True)
def cuts(ordered: Array, found: Array, n_found: Labels) -> None:
    """Find the midpoints between neighbouring values of each feature, given in order with NaN last."""
    width, n = ordered.shape
    for j in range(width):
        n_found[j] = 0
        found[j, 0] = 0.0 if np.isnan(ordered[j, 0]) else ordered[j, 0]
        for r in range(1, n):
            low, high = ordered[j, r - 1], ordered[j, r]
            if low < high:
                middle = low + (high - low) / 2.0
                found[j, n_found[j]] = middle if middle < high else low
                n_found[j] += 1


@njit(cache=True, nogil=True)
def _xlogx(x: float) -> float:
    return x * np.log(x) if x > 0.0 else 0.0


@njit(cache=True, nogil=True)
def _gain(no: Array, yes: Array) -> float:
    """Return total weight times information gain of a question, from the class counts of its answers."""
    n_no, n_yes = no.sum(), yes.sum()
    if n_no == 0.0 or n_yes == 0.0:
        return 0.0
    gain = _xlogx(n_no + n_yes) - _xlogx(n_no) - _xlogx(n_yes)
    for k in range(len(no)):
        gain += _xlogx(no[k]) + _xlogx(yes[k]) - _xlogx(no[k] + yes[k])
    return gain


@njit(cache=True, nogil=True)
def _tally(x: Array, t: float, y: Labels, w: Array, rows: Labels, leaf: Labels, n_leaves: int, counts: Array) -> None:
    """Sum the weights per leaf, answer and class."""
    counts[:n_leaves] = 0.0
    for a in range(len(rows)):
        r = rows[a]
        if x[r] == x[r]:
            counts[leaf[a], int(x[r] <= t), y[r]] += w[r]


@njit(cache=True, nogil=True)
def choose(
    values: Array,
    y: Labels,
    w: Array,
    candidates: Ints,
    places: Array,
    found: Array,
    n_found: Labels,
    n_classes: int,
    features: Ints,
    thresholds: Array,
    first: int,
    last: int,
) -> None:
    """Choose the questions of members first to last: the candidates that tell most beside those before.

    Rows go on from question to question in leaves, one per pattern of answers so far. Only leaves with more
    than one class are kept, as no question could tell more about the others.
    """
    _, depth, n_candidates = candidates.shape
    n = values.shape[1]
    rows = np.empty(n, dtype=np.intp)
    leaf = np.empty(n, dtype=np.intp)
    counts = np.empty((n, 2, n_classes))
    number = np.empty((n, 2), dtype=np.intp)
    rounding = 1e-10 * w.sum()  # gains that differ by less are equal, and the first of them is taken
    for i in range(first, last):
        n_rows, n_leaves = n, 1
        rows[:] = np.arange(n)
        leaf[:] = 0
        for q in range(depth):
            best = -np.inf
            for c in range(n_candidates):
                j = candidates[i, q, c]
                t = found[j, int(places[i, q, c] * n_found[j])]
                _tally(values[j], t, y, w, rows[:n_rows], leaf, n_leaves, counts)
                gain = 0.0
                for k in range(n_leaves):
                    gain += _gain(counts[k, 0], counts[k, 1])
                if gain > best + rounding:
                    best = gain
                    features[i, q] = j
                    thresholds[i, q] = t
            x, t = values[features[i, q]], thresholds[i, q]
            _tally(x, t, y, w, rows[:n_rows], leaf, n_leaves, counts)
            n_next = 0
            for k in range(n_leaves):
                for side in range(2):
                    number[k, side] = -1
                    if np.sum(counts[k, side] > 0.0) > 1:
                        number[k, side] = n_next
                        n_next += 1
            kept = 0
            for a in range(n_rows):
                r = rows[a]
                if x[r] == x[r] and number[leaf[a], int(x[r] <= t)] >= 0:
                    leaf[kept] = number[leaf[a], int(x[r] <= t)]
                    rows[kept] = r
                    kept += 1
            n_rows, n_leaves = kept, n_next


@njit(cache=True, nogil=True)
def _transpose(
    values: Array,
    columns: Ints,
    starts: NDArray[np.int64],
    shared: bool,
    slot_of: Ints,
    top: int,
    n: int,
    tile: Array,
) -> bool:
    """Fill tile[slot, row] with the features in use; return whether one of them is NaN."""
    if not shared:
        tile[:] = 0.0
    total = 0.0
    for b in range(n):
        start = starts[top + b]
        offset = start if shared else 0
        for k in range(start, starts[top + b + 1]):
            slot = slot_of[columns[k - offset]]
            if slot >= 0:
                tile[slot, b] = values[k]
                total += values[k]
    return bool(np.isnan(total))


@njit(cache=True, nogil=True)
def _log(x: float) -> float:
    """Return the logarithm of a positive normal number, or NaN for NaN.

    The method and coefficients of FreeBSD's e_log.c (error below 1 ulp) without its branches, so that the
    compiler can take several numbers at once; library calls are taken one by one.
    """
    bits = np.float64(x).view(np.int64)
    # x = 2**e * m with m in [sqrt(1/2), sqrt(2)); the exponent is biased by 1024 to stay positive.
    shifted = bits + np.int64(0x4000000000000000 - 0x3FE6A09E667F3BCD)
    scale = (shifted & np.int64(-0x10000000000000)) - np.int64(0x4000000000000000)
    m = np.int64(bits - scale).view(np.float64)
    # An integer below 2**52 as the last bits of 2**52 + integer: a conversion in plain arithmetic.
    biased = np.uint64(shifted) >> np.uint64(52) | np.uint64(0x4330000000000000)
    e = np.uint64(biased).view(np.float64) - (2.0**52 + 1024.0)
    f = m - 1.0
    s = f / (m + 1.0)
    z = s * s
    p = 0.1531383769920937332 + z * 0.1479819860511658591
    p = 0.2222219843214978396 + z * (0.1818357216161805012 + z * p)
    p = 0.3999999999940941908 + z * (0.2857142874366239149 + z * p)
    p = z * (0.6666666666666735130 + z * p)
    h = 0.5 * f * f
    # x - x is zero, or NaN for NaN, which the bits above do not carry on.
    return e * 0.693147180369123816490 - ((h - (s * (h + p) + e * 1.90821492927058770002e-10)) - f) + (x - x)


@njit(cache=True, nogil=True)
def _cells(tile: Array, missing: bool, slots: Ints, thresholds: Array, n_classes: int, cell: NDArray[np.int64]) -> None:
    """Answer one member's questions for all rows of the tile: where their counts begin, -1 to abstain."""
    cell[:] = 0
    for q in range(len(slots)):
        column = tile[slots[q]]
        threshold = thresholds[q]
        step = np.int64(n_classes << q)
        for b in range(len(cell)):
            cell[b] += step if column[b] <= threshold else np.int64(0)
    if missing:
        for slot in slots:
            for b in range(len(cell)):
                if np.isnan(tile[slot, b]):
                    cell[b] = -1


@njit(cache=True, nogil=True)
def _count_two(
    counts: Array,
    cell: NDArray[np.int64],
    smoothing: float,
    y: Labels,
    w: Array,
    learn: bool,
    above: Array,
    below: Array,
) -> None:
    """Read the smoothed counts of each row and member, as odds; then add the row to them."""
    group, n = cell.shape
    for b in range(n):
        label = y[b]
        weight = w[b]
        for g in range(group):
            at = b * group + g
            c = cell[g, b]
            if c < 0:
                above[at] = np.nan
                continue
            above[at] = counts[g, c + 1] + smoothing
            below[at] = counts[g, c] + smoothing
            if learn:
                counts[g, c + label] += weight


@njit(cache=True, nogil=True)
def _count_many(
    counts: Array,
    cell: NDArray[np.int64],
    smoothing: float,
    y: Labels,
    w: Array,
    learn: bool,
    above: Array,
    below: Array,
) -> None:
    """Read the smoothed counts of each row and member, as parts of their sum; then add the row to them."""
    group, n = cell.shape
    width = len(above) // (group * n)
    at = 0
    for b in range(n):
        for g in range(group):
            c = cell[g, b]
            if c < 0:
                above[at : at + width] = np.nan
            else:
                total = width * smoothing
                for k in range(width):
                    above[at + k] = counts[g, c + k] + smoothing
                    total += counts[g, c + k]
                below[at : at + width] = total
                if learn:
                    counts[g, c + y[b]] += w[b]
            at += width


@njit(cache=True, nogil=True, error_model="numpy")
def answer(
    values: Array,
    columns: Ints,
    starts: NDArray[np.int64],
    shared: bool,
    slot_of: Ints,
    slots: Ints,
    thresholds: Array,
    counts: Array,
    smoothing: float,
    y: Labels,
    w: Array,
    learn: bool,
    begin: int,
    end: int,
    out: Array,
    first: int,
    last: int,
) -> None:
    """Score rows begin to end by members first to last; with learn, count each row after its scores.

    Scores are half log-odds where out has one column per member, else half log-probabilities.
    """
    n_members, _, n_classes = counts.shape
    flat = counts.reshape(n_members, -1)
    width = out.shape[1] // n_members
    tile = np.empty((slots.max() + 1, BLOCK))
    cell = np.empty((GROUP, BLOCK), dtype=np.int64)
    above = np.empty(BLOCK * GROUP * width)
    below = np.ones(BLOCK * GROUP * width)
    for top in range(begin, end, BLOCK):
        n = min(BLOCK, end - top)
        missing = _transpose(values, columns, starts, shared, slot_of, top, n, tile)
        for i in range(first, last, GROUP):
            group = min(GROUP, last - i)
            for g in range(group):
                _cells(tile, missing, slots[i + g], thresholds[i + g], n_classes, cell[g, :n])
            size = n * group * width
            rows = slice(top, top + n)
            members = slice(i, i + group)
            if n_classes == 2:
                _count_two(
                    flat[members],
                    cell[:group, :n],
                    smoothing,
                    y[rows],
                    w[rows],
                    learn,
                    above[:size],
                    below[:size],
                )
            else:
                _count_many(
                    flat[members],
                    cell[:group, :n],
                    smoothing,
                    y[rows],
                    w[rows],
                    learn,
                    above[:size],
                    below[:size],
                )
            for k in range(size):
                above[k] = 0.5 * _log(above[k] / below[k])
            for b in range(n):
                for k in range(group * width):
                    out[top + b, i * width + k] = above[b * group * width + k]
