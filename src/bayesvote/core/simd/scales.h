/* Standardisation of numbers by statistics of their features.
 *
 * Only numbers other than 0 are summed, so that sparse rows cost their stored values; the other rows are zeros. A
 * feature that is rarely 0 is centred at its mean. One that is mostly 0 is centred at 0, so that zeros stay zeros. If a
 * quarter to three quarters of the rows are zeros, the centre lies in between, so that it does not jump at a border. */

#ifndef BAYESVOTE_SCALES_H
#define BAYESVOTE_SCALES_H

#include <math.h>
#include <stddef.h>

/* Smaller spreads lose digits near the smallest doubles. */
#define LEAST_SPREAD 1e-280

/* Centre of a feature, and one over its spread, or 0 if it has none. There are n numbers; `count` of them are not 0,
 * with this mean and sum of squared deviations. */
static inline double centre_of(double n, double count, double mean) {
    double part = count / n;
    double share = 2.0 * part - 0.5;
    share = share < 0.0 ? 0.0 : share;
    share = share > 1.0 ? 1.0 : share;
    return share * part * mean;
}

static inline double inverse_spread(double n, double count, double mean, double squares, double centre) {
    double share = 2.0 * (count / n) - 0.5;
    share = share < 0.0 ? 0.0 : share;
    share = share > 1.0 ? 1.0 : share;
    double zeros = share * (n - count); /* zeros that are counted */
    double off = mean - centre;
    double sum = squares + count * off * off + zeros * centre * centre;
    double total = count + zeros;
    return sum > LEAST_SPREAD ? sqrt(total / sum) : 0.0;
}

/* Standardise one number of a feature, the n-th; update its count, mean and squares. */
static inline double standardised(double x, double n, double *count, double *mean, double *squares) {
    double k = *count + 1.0;
    double delta = x - *mean;
    double moved = *mean + delta / k;
    double spread = *squares + delta * (x - moved);
    int counts = x != 0.0; /* NaN, too */
    k = counts ? k : *count;
    moved = counts ? moved : *mean;
    spread = counts ? spread : *squares;
    double centre = centre_of(n, k, moved);
    double z = (x - centre) * inverse_spread(n, k, moved, spread, centre);
    int number = x == x;
    *count = number ? k : *count;
    *mean = number ? moved : *mean;
    *squares = number ? spread : *squares;
    return z;
}

/* Standardise a dense row. `rows` includes it; with `learn` the statistics are updated. */
static inline void standardise_row(const double *x, ptrdiff_t d, double rows, int learn, double *restrict missing,
                                   double *restrict count, double *restrict mean, double *restrict squares,
                                   double *restrict out) {
    if (learn)
        for (ptrdiff_t j = 0; j < d; j++) {
            double k = count[j], m = mean[j], s = squares[j];
            out[j] = standardised(x[j], rows - missing[j], &k, &m, &s);
            missing[j] += x[j] == x[j] ? 0.0 : 1.0;
            count[j] = k;
            mean[j] = m;
            squares[j] = s;
        }
    else
        for (ptrdiff_t j = 0; j < d; j++) {
            double k = count[j], m = mean[j], s = squares[j];
            out[j] = standardised(x[j], rows - missing[j], &k, &m, &s);
        }
}

#endif
