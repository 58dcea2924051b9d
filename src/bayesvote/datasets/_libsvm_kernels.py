"""LIBSVM text to numbers: one pass over a chunk's bytes, exact to the last bit, odd cases left to the caller."""

import numpy as np
from numba import njit
from numpy.typing import NDArray

from bayesvote._checks import Array

# What was found in a line.
BLANK, GOOD, NO_LABEL, NOT_A_PAIR, NOT_RISING, TOO_WIDE = -1, 0, 1, 2, 3, 4

_NEWLINE, _HASH, _PLUS, _MINUS, _DOT, _ZERO, _NINE, _COLON = 10, 35, 43, 45, 46, 48, 57, 58
_LARGEST_INDEX = 2**31 - 1

# A product or quotient of two exact numbers is rounded once, so correctly: whole numbers of up to 15 digits are
# exact, and so are powers of ten up to 22.
_DIGITS = 15
_POWERS = np.array([float(f"1e{power}") for power in range(23)])


@njit(cache=True, nogil=True)
def parse(
    text: NDArray[np.uint8],
    width: int,
    codes: NDArray[np.int8],
    spans: NDArray[np.int64],
    starts: NDArray[np.int64],
    columns: NDArray[np.int32],
    values: Array,
    odd: NDArray[np.int64],
) -> int:
    """Read the lines of a text that ends with a newline; return how many values are odd.

    Line i gets ``codes[i]``, its label's place ``spans[i]``, and the pairs ``starts[i]`` to ``starts[i + 1]``, none
    if it is not good. An odd value is listed with its line, its place among the values and its place in the text.
    """
    p = k = n_odd = 0
    for i in range(len(codes)):
        starts[i] = k
        codes[i] = GOOD
        while text[p] <= 32 and text[p] != _NEWLINE:
            p += 1
        if text[p] == _NEWLINE or text[p] == _HASH:
            codes[i] = BLANK
        spans[i, 0] = p
        while text[p] > 32:
            if text[p] == _COLON and codes[i] == GOOD:
                codes[i] = NO_LABEL
            p += 1
        spans[i, 1] = p
        n_odd_before = n_odd
        last = 0
        while codes[i] == GOOD:
            while text[p] <= 32 and text[p] != _NEWLINE:
                p += 1
            if text[p] == _NEWLINE or text[p] == _HASH:
                break
            index = 0
            while _ZERO <= text[p] <= _NINE and index <= _LARGEST_INDEX:
                index = 10 * index + (text[p] - _ZERO)
                p += 1
            if text[p] != _COLON:
                codes[i] = NOT_A_PAIR
            elif index <= last:
                codes[i] = NOT_RISING
            elif index > width:
                codes[i] = TOO_WIDE
            else:
                last = index
                first = p + 1
                p, values[k], plain = _number(text, first)
                if not plain:
                    odd[n_odd, 0], odd[n_odd, 1], odd[n_odd, 2], odd[n_odd, 3] = i, k, first, p
                    n_odd += 1
                columns[k] = index - 1
                k += 1
        if codes[i] != GOOD:
            k = starts[i]
            n_odd = n_odd_before
        while text[p] != _NEWLINE:
            p += 1
        p += 1
    starts[len(codes)] = k
    return n_odd


@njit(cache=True, nogil=True)
def _number(text: NDArray[np.uint8], p: int) -> tuple[int, float, bool]:
    """Read a number that ends before a blank: where it ends, its value, and whether this is sure to be exact."""
    negative = text[p] == _MINUS
    if negative or text[p] == _PLUS:
        p += 1
    whole = digits = places = 0
    some = point = False
    while _ZERO <= text[p] <= _NINE or (text[p] == _DOT and not point):
        if text[p] == _DOT:
            point = True
        else:
            some = True
            if digits <= _DIGITS:
                whole = 10 * whole + (text[p] - _ZERO)
            if whole > 0:
                digits += 1
            if point:
                places += 1
        p += 1
    power = 0
    exponent = some and (text[p] == 69 or text[p] == 101)  # E or e
    if exponent:
        p += 1
        down = text[p] == _MINUS
        if down or text[p] == _PLUS:
            p += 1
        some = False
        while _ZERO <= text[p] <= _NINE:
            some = True
            power = min(10 * power + (text[p] - _ZERO), 1000)
            p += 1
        if down:
            power = -power
    power -= places
    plain = some and text[p] <= 32 and digits <= _DIGITS and -23 < power < 23
    while text[p] > 32:
        p += 1
    if not plain:
        return p, 0.0, False
    value = whole * _POWERS[power] if power >= 0 else whole / _POWERS[-power]
    return p, -value if negative else value, True
