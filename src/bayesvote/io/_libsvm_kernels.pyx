"""LIBSVM text to numbers: one pass over a chunk's bytes, exact to the last bit, odd cases left to the caller."""

cimport numpy as cnp
from libc.stdint cimport int8_t, int32_t, int64_t, uint8_t

from bayesvote.core.arrays cimport dim, octets, own_codes, own_doubles, own_ints, own_longs

cnp.import_array()

# What became of a line.
BLANK, GOOD, NO_LABEL, NOT_A_PAIR, ZERO, TOO_WIDE, UNSORTED = -1, 0, 1, 2, 3, 4, 5

cdef enum:
    _BLANK = -1
    _GOOD = 0
    _NO_LABEL = 1
    _NOT_A_PAIR = 2
    _ZERO_INDEX = 3
    _TOO_WIDE = 4
    _UNSORTED = 5
    _NEWLINE = 10
    _HASH = 35
    _PLUS = 43
    _MINUS = 45
    _DOT = 46
    _ZERO = 48
    _NINE = 57
    _COLON = 58
    _CAPITAL_E = 69
    _SMALL_E = 101
    # A product or quotient of two exact numbers is rounded once, hence rightly: whole numbers of up to 15 digits are
    # exact, and so are powers of ten up to 22.
    _DIGITS = 15

cdef int64_t _LARGEST_INDEX = 2**31 - 1
cdef double[23] _POWERS
for _power in range(23):
    _POWERS[_power] = float(f"1e{_power}")


cdef inline bint read_number(const uint8_t *text, Py_ssize_t *at, double *value) noexcept nogil:
    """Read a number that ends before a blank; return whether its value is sure to be exact, and move past it."""
    cdef Py_ssize_t p = at[0]
    cdef int64_t whole = 0
    cdef int digits = 0
    cdef int64_t places = 0
    cdef int64_t power = 0
    cdef bint negative = text[p] == _MINUS
    cdef bint some = False
    cdef bint point = False
    cdef bint down, plain
    if negative or text[p] == _PLUS:
        p += 1
    while _ZERO <= text[p] <= _NINE or (text[p] == _DOT and not point):
        if text[p] == _DOT:
            point = True
        else:
            some = True
            if digits <= _DIGITS:
                whole = 10 * whole + (text[p] - _ZERO)
            if whole > 0 and digits <= _DIGITS:
                digits += 1
            if point:
                places += 1
        p += 1
    if some and (text[p] == _CAPITAL_E or text[p] == _SMALL_E):
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
    at[0] = p
    value[0] = 0.0
    if plain:
        value[0] = whole * _POWERS[power] if power >= 0 else whole / _POWERS[-power]
        if negative:
            value[0] = -value[0]
    return plain


cdef Py_ssize_t read_lines(
    const uint8_t *text,
    int64_t width,
    int8_t *codes,
    Py_ssize_t n_lines,
    int64_t *spans,
    int64_t *starts,
    int32_t *columns,
    double *values,
    int64_t *odd,
) noexcept nogil:
    cdef Py_ssize_t p = 0
    cdef Py_ssize_t k = 0
    cdef Py_ssize_t n_odd = 0
    cdef Py_ssize_t i, n_odd_before, first
    cdef int64_t last, index
    cdef bint rising
    for i in range(n_lines):
        starts[i] = k
        codes[i] = _GOOD
        while text[p] <= 32 and text[p] != _NEWLINE:
            p += 1
        if text[p] == _NEWLINE or text[p] == _HASH:
            codes[i] = _BLANK
        spans[2 * i] = p
        while text[p] > 32:
            if text[p] == _COLON and codes[i] == _GOOD:
                codes[i] = _NO_LABEL
            p += 1
        spans[2 * i + 1] = p
        n_odd_before = n_odd
        last = 0
        rising = True
        while codes[i] == _GOOD:
            while text[p] <= 32 and text[p] != _NEWLINE:
                p += 1
            if text[p] == _NEWLINE or text[p] == _HASH:
                break
            index = 0
            while _ZERO <= text[p] <= _NINE and index <= _LARGEST_INDEX:
                index = 10 * index + (text[p] - _ZERO)
                p += 1
            if text[p] != _COLON:
                codes[i] = _NOT_A_PAIR
            elif index == 0:
                codes[i] = _ZERO_INDEX
            elif index > width:
                codes[i] = _TOO_WIDE
            else:
                rising = rising and index > last
                last = index
                p += 1
                first = p
                if not read_number(text, &p, values + k):
                    odd[4 * n_odd] = i
                    odd[4 * n_odd + 1] = k
                    odd[4 * n_odd + 2] = first
                    odd[4 * n_odd + 3] = p
                    n_odd += 1
                columns[k] = <int32_t> (index - 1)
                k += 1
        if codes[i] != _GOOD:
            k = starts[i]
            n_odd = n_odd_before
        elif not rising:
            codes[i] = _UNSORTED
        while text[p] != _NEWLINE:
            p += 1
        p += 1
    starts[n_lines] = k
    return n_odd


def parse(text, int64_t width, codes, spans, starts, columns, values, odd):
    """Read the lines of a text that ends with a newline; return how many values are odd.

    Line i gets ``codes[i]``, its label's place ``spans[i]``, and the pairs ``starts[i]`` to ``starts[i + 1]``, none
    if it can not be read. The pairs of an unsorted line are in the order of the text. An odd value is listed with its line, its place among the values and its place in the text.
    """
    cdef const uint8_t *text_ = octets(text)
    cdef int8_t *codes_ = own_codes(codes)
    cdef int64_t *spans_ = own_longs(spans)
    cdef int64_t *starts_ = own_longs(starts)
    cdef int32_t *columns_ = own_ints(columns)
    cdef double *values_ = own_doubles(values)
    cdef int64_t *odd_ = own_longs(odd)
    cdef Py_ssize_t n_lines = dim(codes, 0)
    cdef Py_ssize_t n_odd
    with nogil:
        n_odd = read_lines(text_, width, codes_, n_lines, spans_, starts_, columns_, values_, odd_)
    return n_odd
