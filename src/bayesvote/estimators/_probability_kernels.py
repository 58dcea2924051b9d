"""Kernel of the online calibration."""

import numpy as np
from numba import njit

from bayesvote._checks import Array, Labels


@njit(cache=True, nogil=True)
def learn(
    mean: Array,
    information: Array,
    logs: Array,
    decisions: Labels,
    y: Labels,
    w: Array,
    forgetting: float,
    prior: float,
    before: Array,
) -> None:
    """One Newton step per row on the log-likelihood of (a, b), in place; see :class:`Calibration`.

    What (a, b) were before each row goes to ``before``.
    """
    n, n_classes = logs.shape
    p = np.empty(n_classes)
    for t in range(n):
        before[t, 0], before[t, 1] = mean
        if w[t] == 0.0:
            continue
        d = decisions[t]
        top = -np.inf
        for k in range(n_classes):
            p[k] = mean[0] * logs[t, k] + (mean[1] if k == d else 0.0)
            top = max(top, p[k])
        total = 0.0
        for k in range(n_classes):
            p[k] = np.exp(p[k] - top)
            total += p[k]
        first = second = 0.0
        for k in range(n_classes):
            p[k] /= total
            first += p[k] * logs[t, k]
        for k in range(n_classes):
            second += p[k] * (logs[t, k] - first) ** 2
        # Gradient and Fisher information of the features (log-probability, whether it is the decision).
        slope = w[t] * (logs[t, y[t]] - first)
        lift = w[t] * ((1.0 if y[t] == d else 0.0) - p[d])
        information *= forgetting
        information[0, 0] += w[t] * second
        information[0, 1] += w[t] * p[d] * (logs[t, d] - first)
        information[1, 1] += w[t] * p[d] * (1.0 - p[d])
        aa, ab, bb = information[0, 0] + prior, information[0, 1], information[1, 1] + prior
        determinant = aa * bb - ab * ab
        # Neither may fall below 0, or a label other than the decision would become the likeliest.
        mean[0] = max(mean[0] + (bb * slope - ab * lift) / determinant, 0.0)
        mean[1] = max(mean[1] + (aa * lift - ab * slope) / determinant, 0.0)
