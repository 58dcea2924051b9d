"""Counter-based Poisson draws, one at a time."""

from libc.stdint cimport uint64_t


def poisson(double mean, uint64_t key, uint64_t number):
    """Return draw ``number`` of a key from Poisson(mean)."""
    return draw_poisson(mean, key, number)
