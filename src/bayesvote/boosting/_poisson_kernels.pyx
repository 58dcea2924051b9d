"""Poisson draws from a counter, one at a time."""

from libc.stdint cimport uint64_t


def poisson(double mean, uint64_t key, uint64_t number):
    """Draw ``number`` from Poisson(mean) under a key."""
    return draw_poisson(mean, key, number)
