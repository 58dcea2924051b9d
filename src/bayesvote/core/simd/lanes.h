/* Sums over sixteen lanes. The lane of a number is its index modulo 16 on every processor, whatever its vector size, so
 * that all processors give the same bits. */

#ifndef BAYESVOTE_LANES_H
#define BAYESVOTE_LANES_H

#include <stddef.h>
#include <stdint.h>

#ifdef __AVX__
#define VECTOR_BYTES 32
#else
#define VECTOR_BYTES 16
#endif
#define IN_VECTOR (VECTOR_BYTES / 8)

typedef double vector __attribute__((vector_size(VECTOR_BYTES)));
typedef int64_t vector_mask __attribute__((vector_size(VECTOR_BYTES)));
/* The same at any alignment. */
typedef double loose_vector __attribute__((vector_size(VECTOR_BYTES), aligned(8), may_alias));

#define LANES 16
#define IN_LANES (LANES / IN_VECTOR)

/* Sum of the lanes, in halves. */
static inline double sum_lanes(const vector *lanes) {
    double s[LANES];
    __builtin_memcpy(s, lanes, sizeof s);
    for (int half = LANES / 2; half > 0; half /= 2)
        for (int k = 0; k < half; k++)
            s[k] += s[k + half];
    return s[0];
}

static inline vector load(const double *p) { return *(const loose_vector *)p; }

static inline void store(double *p, vector v) { *(loose_vector *)p = v; }

/* Select a vector's numbers by a mask; zero elsewhere. */
static inline vector keep(vector_mask mask, vector v) { return (vector)((vector_mask)v & mask); }

/* Load the last numbers, fewer than sixteen, padded with zeros. */
static inline void copy_rest(const double *from, ptrdiff_t n, double *to) {
    for (int k = 0; k < LANES; k++)
        to[k] = 0.0;
    for (ptrdiff_t k = 0; k < n; k++)
        to[k] = from[k];
}

/* Dot product. */
static inline double inner(const double *a, const double *b, ptrdiff_t n) {
    vector s[IN_LANES] = {{0.0}};
    ptrdiff_t i = 0;
    for (; i + LANES <= n; i += LANES)
#pragma GCC unroll 8
        for (int k = 0; k < IN_LANES; k++)
            s[k] += load(a + i + k * IN_VECTOR) * load(b + i + k * IN_VECTOR);
    double t[LANES];
    __builtin_memcpy(t, s, sizeof t);
    for (int k = 0; i + k < n; k++)
        t[k] += a[i + k] * b[i + k];
    __builtin_memcpy(s, t, sizeof t);
    return sum_lanes(s);
}

/* Dot product over the places where b is a number. */
static inline double dot(const double *a, const double *b, ptrdiff_t n) {
    vector s[IN_LANES] = {{0.0}};
    ptrdiff_t i = 0;
    for (; i + LANES <= n; i += LANES)
#pragma GCC unroll 8
        for (int k = 0; k < IN_LANES; k++) {
            vector x = load(b + i + k * IN_VECTOR);
            s[k] += keep(x == x, load(a + i + k * IN_VECTOR) * x);
        }
    double t[LANES];
    __builtin_memcpy(t, s, sizeof t);
    for (int k = 0; i + k < n; k++)
        t[k] += b[i + k] == b[i + k] ? a[i + k] * b[i + k] : 0.0;
    __builtin_memcpy(s, t, sizeof t);
    return sum_lanes(s);
}

#endif
