"""Counter-based Poisson draws: draw ``number`` of a key does not depend on what else was drawn."""

from libc.math cimport exp, fabs, floor, lgamma, log, sqrt
from libc.stdint cimport uint64_t

cdef extern from *:
    """
    /* The constants of SplitMix64: 2^64 divided by the golden ratio, and two multipliers found by search. */
    #define GOLDEN 0x9E3779B97F4A7C15ULL
    #define MIX_1 0xBF58476D1CE4E5B9ULL
    #define MIX_2 0x94D049BB133111EBULL
    """
    const uint64_t GOLDEN
    const uint64_t MIX_1
    const uint64_t MIX_2


cdef inline uint64_t mix(uint64_t z) noexcept nogil:
    """Scramble 64 bits (the finaliser of SplitMix64; Steele, Lea and Flood 2014)."""
    z = (z ^ (z >> 30)) * MIX_1
    z = (z ^ (z >> 27)) * MIX_2
    return z ^ (z >> 31)


cdef inline double uniform(uint64_t key, uint64_t number, uint64_t step) noexcept nogil:
    """Return value ``step`` of stream ``number``, strictly between 0 and 1."""
    cdef uint64_t stream = mix(key + number * GOLDEN)
    cdef uint64_t bits = mix(stream + (step + 1) * GOLDEN)
    return (<double> (bits >> 12) + 0.5) / 4503599627370496.0  # 2 ** 52: all values are exact


cdef inline double draw_poisson(double mean, uint64_t key, uint64_t number) noexcept nogil:
    """Draw from Poisson(mean): by inversion, or by rejection if the mean is at least 10 (PTRS; Hoermann 1993)."""
    cdef double u, v, k, mass, below, a, b, inverse_alpha, tail, accept
    cdef uint64_t step = 0
    if not mean < 1e300:  # the spread is below rounding there, and NaN would never be accepted
        return mean
    if mean < 10.0:
        u = uniform(key, number, 0)
        k = 0.0
        mass = exp(-mean)
        below = mass
        while u > below and mass > 1e-20:  # smaller masses no longer change the sum, which may stay below u
            k += 1.0
            mass *= mean * (1.0 / k)
            below += mass
        return k
    # All constants below are those of PTRS in the paper.
    b = 0.931 + 2.53 * sqrt(mean)
    a = -0.059 + 0.02483 * b
    inverse_alpha = 1.1239 + 1.1328 / (b - 3.4)
    while True:
        u = uniform(key, number, step) - 0.5
        v = uniform(key, number, step + 1)
        step += 2
        tail = 0.5 - fabs(u)
        k = floor((2.0 * a / tail + b) * u + mean + 0.43)
        if tail >= 0.07 and v <= 0.9277 - 3.6224 / (b - 2.0):
            return k
        if k < 0.0 or (tail < 0.013 and v > tail):
            continue
        accept = log(v * inverse_alpha / (a / (tail * tail) + b))
        if accept <= k * log(mean) - mean - lgamma(k + 1.0):
            return k
