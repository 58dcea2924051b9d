"""Poisson draws from a counter: draw ``number`` under a key is the same whatever else was drawn."""

import math

import numpy as np
from numba import njit

_GOLDEN = np.uint64(0x9E3779B97F4A7C15)
_MIX1 = np.uint64(0xBF58476D1CE4E5B9)
_MIX2 = np.uint64(0x94D049BB133111EB)
_INVERSE = 1.0 / np.arange(1.0, 129.0)  # of more than are ever tried


@njit(cache=True, nogil=True)
def _mix(z: np.uint64) -> np.uint64:
    """Scramble 64 bits (the finaliser of SplitMix64; Steele, Lea and Flood 2014)."""
    z = (z ^ (z >> np.uint64(30))) * _MIX1
    z = (z ^ (z >> np.uint64(27))) * _MIX2
    return z ^ (z >> np.uint64(31))


@njit(cache=True, nogil=True)
def uniform(key: np.uint64, number: np.uint64, step: int) -> float:
    """Return value ``step`` of stream ``number``, strictly between 0 and 1."""
    stream = _mix(key + number * _GOLDEN)
    bits = _mix(stream + np.uint64(step + 1) * _GOLDEN)
    return (float(bits >> np.uint64(12)) + 0.5) / 4503599627370496.0  # 2 ** 52, so that all values are exact


@njit(cache=True, nogil=True, error_model="numpy", forceinline=True)
def poisson(mean: float, key: np.uint64, number: np.uint64) -> float:
    """Draw from Poisson(mean): by inversion, or for large means by rejection (PTRS; Hoermann 1993)."""
    if not mean < 1e300:  # nothing to choose from so far out, and NaN would never be accepted
        return mean
    if mean < 10.0:
        u = uniform(key, number, 0)
        k = 0
        mass = math.exp(-mean)
        below = mass
        while u > below and mass > 1e-20:  # further out the sum can no longer reach u
            mass *= mean * _INVERSE[k]
            k += 1
            below += mass
        return float(k)
    b = 0.931 + 2.53 * math.sqrt(mean)
    a = -0.059 + 0.02483 * b
    inverse_alpha = 1.1239 + 1.1328 / (b - 3.4)
    step = 0
    while True:
        u = uniform(key, number, step) - 0.5
        v = uniform(key, number, step + 1)
        step += 2
        tail = 0.5 - abs(u)
        k = math.floor((2.0 * a / tail + b) * u + mean + 0.43)
        if tail >= 0.07 and v <= 0.9277 - 3.6224 / (b - 2.0):
            return k
        if k < 0.0 or (tail < 0.013 and v > tail):
            continue
        accept = math.log(v * inverse_alpha / (a / (tail * tail) + b))
        if accept <= k * math.log(mean) - mean - math.lgamma(k + 1.0):
            return k
