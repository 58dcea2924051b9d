/* Vectorised logarithms; the C library computes one at a time. */

#ifndef BAYESVOTE_LOGS_H
#define BAYESVOTE_LOGS_H

#include "lanes.h"

typedef uint64_t vector_words __attribute__((vector_size(VECTOR_BYTES)));

/* Logarithms of positive normal numbers, NaN for NaN: the method and coefficients of FreeBSD's e_log.c (error below 1
 * ulp) without its branches. */
static inline vector log_of(vector x) {
    const vector_words bits = (vector_words)x;
    /* x = 2**e * m with m in [sqrt(1/2), sqrt(2)); the exponent is biased by 1024 to stay positive. */
    const vector_words shifted = bits + (0x4000000000000000 - 0x3FE6A09E667F3BCD);
    const vector_words scale = (shifted & 0xFFF0000000000000) - 0x4000000000000000;
    const vector m = (vector)(bits - scale);
    /* An integer below 2**52 as the last bits of 2**52 + integer: a conversion in plain arithmetic. */
    const vector e = (vector)((shifted >> 52) | 0x4330000000000000) - (4503599627370496.0 + 1024.0);
    const vector f = m - 1.0;
    const vector s = f / (m + 1.0);
    const vector z = s * s;
    vector p = 0.1531383769920937332 + z * 0.1479819860511658591;
    p = 0.2222219843214978396 + z * (0.1818357216161805012 + z * p);
    p = 0.3999999999940941908 + z * (0.2857142874366239149 + z * p);
    p = z * (0.6666666666666735130 + z * p);
    const vector h = 0.5 * f * f;
    /* x - x is zero, or NaN for NaN, which the operations on bits above lose. */
    return e * 0.693147180369123816490 - ((h - (s * (h + p) + e * 1.90821492927058770002e-10)) - f) + (x - x);
}

/* Replace numbers by their logarithms. */
static inline void log_all(double *x, ptrdiff_t n) {
    ptrdiff_t i = 0;
    for (; i + IN_VECTOR <= n; i += IN_VECTOR)
        store(x + i, log_of(load(x + i)));
    if (i < n) {
        vector last = (vector){0.0} + 1.0;
        __builtin_memcpy(&last, x + i, (n - i) * sizeof(double));
        last = log_of(last);
        __builtin_memcpy(x + i, &last, (n - i) * sizeof(double));
    }
}

/* Replace each number by half the logarithm of its ratio to another. */
static inline void half_log_ratios(double *above, const double *below, ptrdiff_t n) {
    ptrdiff_t i = 0;
    for (; i + IN_VECTOR <= n; i += IN_VECTOR)
        store(above + i, 0.5 * log_of(load(above + i) / load(below + i)));
    if (i < n) {
        vector top = (vector){0.0} + 1.0, bottom = top;
        __builtin_memcpy(&top, above + i, (n - i) * sizeof(double));
        __builtin_memcpy(&bottom, below + i, (n - i) * sizeof(double));
        top = 0.5 * log_of(top / bottom);
        __builtin_memcpy(above + i, &top, (n - i) * sizeof(double));
    }
}

#endif
