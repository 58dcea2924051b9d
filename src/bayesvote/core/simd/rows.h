/* Product of a row and a matrix, and addition of a row to a matrix, with sums in vector registers.
 *
 * By itself, a compiler writes the sums to memory in every step. Sums run over a row's values in order, without
 * reordering or fused operations. So leaving out zeros, or dividing rows among chunks and threads, changes no bit. */

#ifndef BAYESVOTE_ROWS_H
#define BAYESVOTE_ROWS_H

#include "lanes.h"

#ifdef __AVX2__
#include <immintrin.h>
#endif

/* Write start + x W to out for `vectors` vectors of columns, by n values and the rows of W they go with. */
#define PRODUCT_TILE(vectors)                                                                                         \
    static inline void product_##vectors(const double *values, const int32_t *columns, ptrdiff_t n, const double *W,  \
                                         ptrdiff_t width, const double *start, double *out) {                         \
        vector s[vectors];                                                                                            \
        _Pragma("GCC unroll 16") for (int k = 0; k < vectors; k++) s[k] = load(start + k * IN_VECTOR);                \
        for (ptrdiff_t p = 0; p < n; p++) {                                                                           \
            const double *row = W + (ptrdiff_t)columns[p] * width;                                                    \
            const double x = values[p];                                                                               \
            _Pragma("GCC unroll 16") for (int k = 0; k < vectors; k++) s[k] += x * load(row + k * IN_VECTOR);         \
        }                                                                                                             \
        _Pragma("GCC unroll 16") for (int k = 0; k < vectors; k++) store(out + k * IN_VECTOR, s[k]);                  \
    }

PRODUCT_TILE(1)
PRODUCT_TILE(2)
PRODUCT_TILE(3)
PRODUCT_TILE(4)
PRODUCT_TILE(5)
PRODUCT_TILE(6)
PRODUCT_TILE(7)
PRODUCT_TILE(8)

#define TILE (8 * IN_VECTOR)

/* Write start + x W to out, in tiles of at most eight vectors of about equal size. The last tile is moved back to end
 * with the row, so that it computes some columns again. */
static inline void product(const double *values, const int32_t *columns, ptrdiff_t n, const double *W, ptrdiff_t width,
                           const double *start, double *out) {
    const ptrdiff_t tiles = (width + TILE - 1) / TILE;
    if (width < IN_VECTOR) {
        for (ptrdiff_t c = 0; c < width; c++) {
            double s = start[c];
            for (ptrdiff_t p = 0; p < n; p++)
                s += values[p] * W[(ptrdiff_t)columns[p] * width + c];
            out[c] = s;
        }
        return;
    }
    ptrdiff_t vectors = (width + tiles * IN_VECTOR - 1) / (tiles * IN_VECTOR);
    if (vectors * IN_VECTOR > width)
        vectors = width / IN_VECTOR;
    const ptrdiff_t step = vectors * IN_VECTOR;
    for (ptrdiff_t c = 0; c < width; c += step) {
        const ptrdiff_t at = c < width - step ? c : width - step;
        switch (vectors) {
        case 1: product_1(values, columns, n, W + at, width, start + at, out + at); break;
        case 2: product_2(values, columns, n, W + at, width, start + at, out + at); break;
        case 3: product_3(values, columns, n, W + at, width, start + at, out + at); break;
        case 4: product_4(values, columns, n, W + at, width, start + at, out + at); break;
        case 5: product_5(values, columns, n, W + at, width, start + at, out + at); break;
        case 6: product_6(values, columns, n, W + at, width, start + at, out + at); break;
        case 7: product_7(values, columns, n, W + at, width, start + at, out + at); break;
        default: product_8(values, columns, n, W + at, width, start + at, out + at); break;
        }
    }
}

/* Rows scored together if none is learned: they become the columns of a product. */
#define BLOCK 32

static inline void product_block(const double *values, const int32_t *columns, ptrdiff_t n, const double *X,
                                 const double *start, double *out) {
    for (int at = 0; at < BLOCK; at += TILE)
        product_8(values, columns, n, X + at, BLOCK, start + at, out + at);
}

/* Add, of one row of W for each value, its rows of X, a block of columns: the product with ones. */
static inline void sum_block(const int32_t *columns, ptrdiff_t n, const double *X, const double *start, double *out) {
    for (int at = 0; at < BLOCK; at += TILE) {
        vector s[8];
#pragma GCC unroll 8
        for (int k = 0; k < 8; k++)
            s[k] = load(start + at + k * IN_VECTOR);
        for (ptrdiff_t p = 0; p < n; p++) {
            const double *row = X + (ptrdiff_t)columns[p] * BLOCK + at;
#pragma GCC unroll 8
            for (int k = 0; k < 8; k++)
                s[k] += load(row + k * IN_VECTOR);
        }
#pragma GCC unroll 8
        for (int k = 0; k < 8; k++)
            store(out + at + k * IN_VECTOR, s[k]);
    }
}

/* Convert bytes, each 0 or 1, to a mask for a vector. */
static inline vector_mask mask_of(const uint8_t *uses) {
#ifdef __AVX2__
    int32_t all;
    __builtin_memcpy(&all, uses, sizeof all);
    return -(vector_mask)_mm256_cvtepu8_epi64(_mm_cvtsi32_si128(all));
#else
    vector_mask mask;
    for (int k = 0; k < IN_VECTOR; k++)
        mask[k] = -(int64_t)uses[k];
    return mask;
#endif
}

/* Add x times step to the weights of all scores that use each value's feature. */
static inline void teach_rows(const double *values, const int32_t *columns, ptrdiff_t n, const uint8_t *uses,
                              const double *steps, double *W, ptrdiff_t width) {
    ptrdiff_t c = 0;
    for (; c + 4 * IN_VECTOR <= width; c += 4 * IN_VECTOR) {
        vector step[4];
#pragma GCC unroll 4
        for (int k = 0; k < 4; k++)
            step[k] = load(steps + c + k * IN_VECTOR);
        for (ptrdiff_t p = 0; p < n; p++) {
            const ptrdiff_t at = (ptrdiff_t)columns[p] * width + c;
            const double x = values[p];
#pragma GCC unroll 4
            for (int k = 0; k < 4; k++) {
                double *w = W + at + k * IN_VECTOR;
                store(w, load(w) + x * keep(mask_of(uses + at + k * IN_VECTOR), step[k]));
            }
        }
    }
    for (; c + IN_VECTOR <= width; c += IN_VECTOR) {
        const vector step = load(steps + c);
        for (ptrdiff_t p = 0; p < n; p++) {
            const ptrdiff_t at = (ptrdiff_t)columns[p] * width + c;
            store(W + at, load(W + at) + values[p] * keep(mask_of(uses + at), step));
        }
    }
    for (; c < width; c++)
        for (ptrdiff_t p = 0; p < n; p++) {
            const ptrdiff_t at = (ptrdiff_t)columns[p] * width + c;
            W[at] += values[p] * (uses[at] ? steps[c] : 0.0);
        }
}

#endif
