/* Numbers standardised by what was seen of their features.
 *
 * Of a feature only what is not 0 is summed, so that sparse rows cost what they hold: the zeros are the rest of the rows. A
 * feature that is seldom 0 is centred at its mean; one that mostly is, at 0, so that its zeros stay zeros; between a
 * quarter and three quarters of the rows one goes over into the other, lest a feature near the border jump. */

#ifndef BAYESVOTE_SCALES_H
#define BAYESVOTE_SCALES_H

#include <math.h>
#include <stddef.h>

/* Below this a spread is lost in the smallest numbers there are. */
#define LEAST_SPREAD 1e-280

/* Where the feature is centred, and one over its spread or 0 if it has none. There are n numbers; `count` of them are not
 * 0, with this mean and sum of squared deviations. */
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
    double zeros = share * (n - count); /* those that count as such */
    double off = mean - centre;
    double sum = squares + count * off * off + zeros * centre * centre;
    double total = count + zeros;
    return sum > LEAST_SPREAD ? sqrt(total / sum) : 0.0;
}

/* One number of a feature, among n with itself; its count, mean and squares take it in. */
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

/* A dense row. `rows` counts it; with `learn` its numbers are taken in for good. */
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
