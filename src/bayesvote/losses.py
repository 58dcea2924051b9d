"""The loss g of one member, as a function of its margin z.

With two classes the margin of a signed score c(x) for the label y is ``z = y c(x)``; with several classes it is the
label's score less the best other score. The first is the second for the scores ``(-c/2, c/2)``.
"""

from collections.abc import Callable
from typing import NamedTuple

import numpy as np
from numpy.typing import ArrayLike

from bayesvote.core import checks as _checks
from bayesvote.core.checks import Array, InputError
from bayesvote.core.loss_scale import LossScale as LossScale

Loss = Callable[[Array], Array]

MOST_LOSS = 1e200  # sums of 1e100 such losses stay finite; an infinite sum would never leave a weight again
# Smallest normal double. Logistic losses are precise down to it, so its logarithm is as exact as one from the margin.
SMALLEST = float(np.finfo(np.float64).tiny)


def ramp(margin: ArrayLike) -> Array:
    """Ramp loss, ``clip((1 - z) / 2, 0, 1)``, which the paper uses in its experiments.

    >>> ramp([-2.0, 0.0, 0.5, 2.0])
    array([1.  , 0.5 , 0.25, 0.  ])
    """
    return np.clip((1.0 - np.asarray(margin, dtype=np.float64)) / 2.0, 0.0, 1.0)


def wide_ramp(margin: ArrayLike) -> Array:
    """Ramp of twice the width, for members that score half their log-odds: it is linear up to probabilities of 0.98.

    >>> wide_ramp([-3.0, -1.0, 0.0, 1.0, 3.0])
    array([1.  , 0.75, 0.5 , 0.25, 0.  ])
    """
    return ramp(0.5 * np.asarray(margin, dtype=np.float64))


def logistic(margin: ArrayLike) -> Array:
    """Logistic loss, ``log(1 + exp(-z))``, floored at the smallest normal double so that its logarithm is finite.

    >>> logistic([0.0, 800.0])
    array([6.93147181e-001, 2.22507386e-308])
    """
    z = np.asarray(margin, dtype=np.float64)
    return np.asarray(np.maximum(np.maximum(-z, 0.0) + np.log1p(np.exp(-np.abs(z))), SMALLEST))


def hinge(margin: ArrayLike) -> Array:
    """Hinge loss, ``max(0, 1 - z)``.

    >>> hinge([-1.0, 0.5, 3.0])
    array([2. , 0.5, 0. ])
    """
    return np.maximum(1.0 - np.asarray(margin, dtype=np.float64), 0.0)


def zero_one(margin: ArrayLike) -> Array:
    """Zero-one loss: 0 for a positive margin, 1 for a negative one, and 1/2 at a margin of 0.

    >>> zero_one([-3.0, 0.0, 0.1])
    array([1. , 0.5, 0. ])
    """
    return (1.0 - np.sign(np.asarray(margin, dtype=np.float64))) / 2.0


class NamedLoss(NamedTuple):
    """A loss that the kernels implement."""

    function: Loss
    kernel: int  # number of the loss in the kernels


LOSSES: dict[str, NamedLoss] = {
    "ramp": NamedLoss(ramp, 0),
    "logistic": NamedLoss(logistic, 1),
    "hinge": NamedLoss(hinge, 2),
    "zero_one": NamedLoss(zero_one, 3),
    "wide_ramp": NamedLoss(wide_ramp, 4),
}


def get(loss: str | Loss) -> Loss:
    """Return the loss of that name; a function of the margin is returned unchanged.

    >>> get("ramp")(0.0)
    np.float64(0.5)
    """
    if callable(loss):
        return loss
    _checks.one_of("losses.get", "loss", loss, LOSSES)
    return LOSSES[loss].function


def kernel(loss: str | Loss) -> int | None:
    """Return the number of a loss in the kernels; None for a function."""
    return LOSSES[loss].kernel if isinstance(loss, str) else None


def margins(scores: Array) -> Array:
    """Return the margin of every label: (n, K, m) from scores (n, m) for two classes or (n, m, K) for K.

    >>> margins(np.array([[0.5, -2.0]]))
    array([[[-0.5,  2. ],
            [ 0.5, -2. ]]])
    """
    if scores.ndim == 2:
        return np.stack((-scores, scores), axis=1)
    by_label = np.moveaxis(scores, -1, 1)
    best_two = np.sort(by_label, axis=1)[:, -2:]  # ascending: runner-up, best
    best_other = np.where(by_label == best_two[:, 1:], best_two[:, :1], best_two[:, 1:])
    return by_label - best_other


def of_labels(loss: str | Loss, scores: Array) -> Array:
    """Return G, the losses (n, K, m) of every label for every member; NaN where a member abstains.

    >>> of_labels("ramp", np.array([[0.5, np.nan]]))
    array([[[0.75,  nan],
            [0.25,  nan]]])
    """
    kind = kernel(loss)
    if kind is None:
        return _checked_losses(loss, margins(scores))
    if scores.ndim != 2:
        return get(loss)(margins(scores))
    from bayesvote.core.loss_kernels import two_classes

    out = np.empty((len(scores), 2, scores.shape[1]))
    two_classes(kind, np.ascontiguousarray(scores, dtype=np.float64), out)
    return out


def _checked_losses(loss: str | Loss, z: Array) -> Array:
    """Return the losses by a user's function after checking them, because kernels do not check."""
    found = np.ascontiguousarray(get(loss)(z), dtype=np.float64)
    if found.shape != z.shape:
        must = f"must give one value for each margin, shape {z.shape}"
        raise InputError("", "loss", must, f"shape {found.shape}")
    bad = ~((found >= 0) & (found <= MOST_LOSS)) & ~np.isnan(z)
    if np.any(bad):
        must = f"must be at least 0 and at most {MOST_LOSS:g}"
        raise InputError("", "loss", must, f"{found[bad][0]} at the margin {z[bad][0]}")
    return found
