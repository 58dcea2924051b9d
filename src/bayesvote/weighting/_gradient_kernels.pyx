"""Kernels of the gradient baselines of loss (8): one row of losses at a time."""

cimport numpy as cnp
from libc.math cimport pow

from bayesvote.core.arrays cimport contiguous, dim, doubles, labels, own_doubles, room

cdef extern from "lanes.h" nogil:
    double dot(const double *a, const double *b, Py_ssize_t n)

cnp.import_array()

SGD, AVERAGED, SAG = 0, 1, 2

cdef enum:
    _SGD = 0
    _AVERAGED = 1

# Least weight: the gradient has a pole at 0. Optimal weights 1/(theta E g) are at least 1/theta for losses up to 1.
FLOOR = 1e-6
cdef double _FLOOR = FLOOR


cdef void step(
    int kind, double *fields, const double *g, Py_ssize_t m, double w, double size, double theta
) noexcept nogil:
    """Take one step (14) on the losses g, with the additions of the averaging schemes.

    ``fields`` are the weights, the members' counts of samples and, for the averaging schemes, the average of the
    weights or the sum of the gradients.
    """
    cdef double *weights = fields
    cdef double *counts = fields + m
    cdef double *extra = fields + 2 * m
    cdef double gradient, change
    cdef Py_ssize_t i
    for i in range(m):
        if g[i] != g[i]:
            continue
        counts[i] += 1.0
        gradient = w * (theta * g[i] - 1.0 / weights[i])
        if kind == _SGD:
            change = size / counts[i] * gradient
        elif kind == _AVERAGED:
            change = size / pow(counts[i], 0.75) * gradient
        else:
            extra[i] += gradient
            change = size * extra[i]
        weights[i] = max(weights[i] - change, _FLOOR)
        if kind == _AVERAGED:
            extra[i] += (weights[i] - extra[i]) / counts[i]


def stream(int kind, fields, G, y, w, double size, double theta, out):
    """Apply rule (12) to each row, then take a step on it."""
    G, y, w = contiguous(G), contiguous(y), contiguous(w)
    cdef Py_ssize_t n = dim(G, 0)
    cdef Py_ssize_t n_labels = dim(G, 1)
    cdef Py_ssize_t m = dim(G, 2)
    cdef double *state = own_doubles(fields)
    cdef const double *losses = doubles(G)
    cdef const Py_ssize_t *truth = labels(y)
    cdef const double *weight = doubles(w)
    cdef double *result = own_doubles(out)
    scratch = room(m)
    cdef double *voting = own_doubles(scratch)
    cdef const double *weights = state + (2 * m if kind == _AVERAGED else 0)
    cdef Py_ssize_t t, k, i
    with nogil:
        for t in range(n):
            for i in range(m):
                voting[i] = theta * weights[i]
            for k in range(n_labels):
                result[t * n_labels + k] = dot(voting, losses + (t * n_labels + k) * m, m)
            if weight[t] != 0.0:
                step(kind, state, losses + (t * n_labels + truth[t]) * m, m, weight[t], size, theta)
