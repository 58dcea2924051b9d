/* Statistics of one feature's values for growing a tree. Sums run over eight lanes. The lane of a number is its index
 * modulo 8 on every processor, whatever its vector size, so that all processors give the same bits. */

#ifndef BAYESVOTE_CUTS_H
#define BAYESVOTE_CUTS_H

#include <stddef.h>
#include <stdint.h>

#define CUT_LANES 8

typedef float cut_vector __attribute__((vector_size(4 * CUT_LANES)));
typedef int32_t cut_mask __attribute__((vector_size(4 * CUT_LANES)));
typedef float loose_cut_vector __attribute__((vector_size(4 * CUT_LANES), aligned(4), may_alias));

#define CUT_LOAD(p) (*(const loose_cut_vector *)(p))

/* Least and largest of n values, n up to whole lanes; NaN is ignored. Returns whether there was one. */
static inline int extent(const float *x, ptrdiff_t n, float *least, float *largest) {
    cut_vector low = (cut_vector){0} + __builtin_inff(), high = -low;
    cut_mask missing = {0};
    for (ptrdiff_t i = 0; i < n; i += CUT_LANES) {
        const cut_vector v = CUT_LOAD(x + i);
        const cut_mask below = v < low, above = v > high;
        low = (cut_vector)(((cut_mask)v & below) | ((cut_mask)low & ~below));
        high = (cut_vector)(((cut_mask)v & above) | ((cut_mask)high & ~above));
        missing |= v != v;
    }
    int32_t any = 0;
    *least = low[0];
    *largest = high[0];
    for (int k = 0; k < CUT_LANES; k++) {
        *least = low[k] < *least ? low[k] : *least;
        *largest = high[k] > *largest ? high[k] : *largest;
        any |= missing[k];
    }
    return any != 0;
}

static inline float sum_of_lanes(cut_vector v) {
    float s[CUT_LANES];
    __builtin_memcpy(s, &v, sizeof s);
    for (int half = CUT_LANES / 2; half > 0; half /= 2)
        for (int k = 0; k < half; k++)
            s[k] += s[k + half];
    return s[0];
}

/* Sums of two kinds of weights where a value is at most the cut; n up to whole lanes, of which the rest weighs 0. */
static inline void weights_below(
    const float *x, float cut, const float *w, const float *w1, ptrdiff_t n, double *sum, double *sum1) {
    cut_vector s = {0}, s1 = {0};
    for (ptrdiff_t i = 0; i < n; i += CUT_LANES) {
        const cut_mask below = CUT_LOAD(x + i) <= cut;
        s += (cut_vector)((cut_mask)CUT_LOAD(w + i) & below);
        s1 += (cut_vector)((cut_mask)CUT_LOAD(w1 + i) & below);
    }
    *sum = sum_of_lanes(s);
    *sum1 = sum_of_lanes(s1);
}

/* Prefetch memory that will be read and written. */
static inline void fetch(const void *p) { __builtin_prefetch(p, 1); }

/* Take the next item of work that several threads share. */
static inline ptrdiff_t take_next(ptrdiff_t *next) { return __atomic_fetch_add(next, 1, __ATOMIC_RELAXED); }

#endif
