/* Passes over symmetric matrices of which the lower triangle is stored, four rows at a time.
 *
 * The sum of a row runs over four lanes, the lane of a number being its column modulo 4, on every processor. */

#ifndef BAYESVOTE_TRIANGLE_H
#define BAYESVOTE_TRIANGLE_H

#include "lanes.h"

#define QUAD (4 / IN_VECTOR) /* vectors of four numbers */

/* Apply a delayed update: subtract u u' from the matrix A, or add it if ``subtract`` is -1, and, with drift, multiply
 * it by a scale and add to its diagonal. Then, with x, A x into out. In one pass, as both read all of A.
 *
 * Squares of four rows on the diagonal are kept whole: u u' is symmetric to the last bit, and so they stay. */
static inline __attribute__((always_inline)) void pass(double *A, ptrdiff_t m, const double *u, const double scale,
                                                       const double added, const double *x, double *out,
                                                       const int subtract, const int drift, const int multiply) {
    double diagonal[4][4] = {{0.0}};
    for (int r = 0; r < 4; r++)
        diagonal[r][r] = added;
    ptrdiff_t i = 0;
    for (; i + 4 <= m; i += 4) {
        vector sums[4][QUAD], ui[4], xi[4];
        for (int r = 0; r < 4; r++) {
            if (subtract)
                ui[r] = (vector){0.0} + (subtract < 0 ? -u[i + r] : u[i + r]);
            if (multiply)
                xi[r] = (vector){0.0} + x[i + r];
        }
        for (int r = 0; r < 4; r++)
            for (int k = 0; k < QUAD; k++)
                sums[r][k] = (vector){0.0};
        for (ptrdiff_t j = 0; j <= i; j += 4) {
#pragma GCC unroll 2
            for (int k = 0; k < QUAD; k++) {
                const ptrdiff_t at = j + k * IN_VECTOR;
                vector uj, xj, result;
                if (subtract)
                    uj = load(u + at);
                if (multiply) {
                    xj = load(x + at);
                    if (j < i)
                        result = load(out + at);
                    else
                        result = (vector){0.0};
                }
#pragma GCC unroll 4
                for (int r = 0; r < 4; r++) {
                    double *place = A + (i + r) * m + at;
                    vector a = load(place);
                    if (subtract) {
                        a -= ui[r] * uj;
                        if (drift) {
                            a *= scale;
                            if (j == i)
                                a += load(diagonal[r] + k * IN_VECTOR);
                        }
                        store(place, a);
                    }
                    if (multiply) {
                        sums[r][k] += a * xj;
                        result += xi[r] * a;
                    }
                }
                if (multiply && j < i)
                    store(out + at, result);
            }
        }
        if (multiply)
            for (int r = 0; r < 4; r++) {
                double s[4];
                __builtin_memcpy(s, sums[r], sizeof s);
                out[i + r] = (s[0] + s[1]) + (s[2] + s[3]);
            }
    }
    for (; i < m; i++) {
        double *row = A + i * m;
        double sum = 0.0;
        for (ptrdiff_t j = 0; j <= i; j++) {
            if (subtract) {
                row[j] -= (subtract < 0 ? -u[i] : u[i]) * u[j];
                if (drift)
                    row[j] = scale * row[j] + (j == i ? added : 0.0);
            }
            if (multiply) {
                sum += row[j] * x[j];
                if (j < i)
                    out[j] += row[j] * x[i];
            }
        }
        if (multiply)
            out[i] = sum;
    }
}

static void subtract_and_multiply(double *A, ptrdiff_t m, const double *u, const double *x, double *out) {
    pass(A, m, u, 1.0, 0.0, x, out, 1, 0, 1);
}

static void only_multiply(double *A, ptrdiff_t m, const double *x, double *out) {
    pass(A, m, 0, 1.0, 0.0, x, out, 0, 0, 1);
}

static void only_subtract(double *A, ptrdiff_t m, const double *u) { pass(A, m, u, 1.0, 0.0, 0, 0, 1, 0, 0); }

static void add_and_multiply(double *A, ptrdiff_t m, const double *u, const double *x, double *out) {
    pass(A, m, u, 1.0, 0.0, x, out, -1, 0, 1);
}

static void only_add(double *A, ptrdiff_t m, const double *u) { pass(A, m, u, 1.0, 0.0, 0, 0, -1, 0, 0); }

static void drift_and_multiply(double *A, ptrdiff_t m, const double *u, double scale, double added, const double *x,
                               double *out) {
    pass(A, m, u, scale, added, x, out, 1, 1, 1);
}

static void only_drift(double *A, ptrdiff_t m, const double *u, double scale, double added) {
    pass(A, m, u, scale, added, 0, 0, 1, 1, 0);
}

/* Fill the upper half of the 4 by 4 blocks on the diagonal from the lower half. */
static void complete_squares(double *A, ptrdiff_t m) {
    for (ptrdiff_t i = 0; i + 4 <= m; i += 4)
        for (int r = 0; r < 4; r++)
            for (int c = r + 1; c < 4; c++)
                A[(i + r) * m + i + c] = A[(i + c) * m + i + r];
}

/* Add `count` other rows of n numbers to a row, in order, each times a factor. */
static inline void add_rows(double *restrict row, ptrdiff_t n, const double *restrict others, ptrdiff_t width,
                            const double *restrict factors, ptrdiff_t step, ptrdiff_t count) {
    ptrdiff_t k = 0;
    for (; k + 4 <= count; k += 4) {
        const double *a = others + k * width, *b = a + width, *c = b + width, *d = c + width;
        const double f = factors[k * step], g = factors[(k + 1) * step], h = factors[(k + 2) * step],
                     l = factors[(k + 3) * step];
        for (ptrdiff_t j = 0; j < n; j++)
            row[j] = (((row[j] + f * a[j]) + g * b[j]) + h * c[j]) + l * d[j];
    }
    for (; k < count; k++) {
        const double f = factors[k * step];
        const double *a = others + k * width;
        for (ptrdiff_t j = 0; j < n; j++)
            row[j] += f * a[j];
    }
}

#endif
