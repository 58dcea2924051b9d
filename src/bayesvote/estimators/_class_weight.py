"""Class weights: given ones, or balanced ones, which follow the stream."""

from collections.abc import Mapping
from numbers import Real
from typing import Any

import numpy as np
from numpy.typing import NDArray

from bayesvote.core.checks import MOST_WEIGHT, Array, InputError, InputTypeError, Labels, overflows

BALANCED = "balanced"


def check(who: str, class_weight: Any, classes: NDArray[Any]) -> None:
    """Require None, "balanced", or a dict of weights above 0 for some of the classes."""
    if class_weight is None or (isinstance(class_weight, str) and class_weight == BALANCED):
        return
    if not isinstance(class_weight, Mapping):
        must = "must be None, 'balanced' or a dict of weights by label"
        raise InputTypeError(who, "class_weight", must, repr(class_weight))
    known = set(classes.tolist())
    for label, weight in class_weight.items():
        if label not in known:
            must = f"must have labels in {classes.tolist()} only"
            raise InputError(who, "class_weight", must, repr(label), "Remove it or fix its spelling.")
        number = isinstance(weight, Real) and not isinstance(weight, bool) and not overflows(weight)
        if not number or not 0 < float(weight) < np.inf:
            raise InputError(who, "class_weight", f"must be a number above 0 for {label!r}", repr(weight))


def weighted(who: str, class_weight: Any, classes: NDArray[Any], counts: Array, codes: Labels, w: Array) -> Array:
    """Return the weights of rows: their own times those of their classes.

    ``counts`` (K,) are the sums of the rows' own weights by class. With balanced classes, a row of a class with n_k of
    the N rows so far has the factor (N + K) / (K (n_k + 1)). scikit-learn counts all rows instead, and adds no row per
    class.
    """
    if class_weight is None:
        return w
    if class_weight == BALANCED:
        k = len(counts)
        own = np.zeros((len(w) + 1, k))
        own[0] = counts
        own[np.arange(1, len(w) + 1), codes] = w
        # Sums row by row do not depend on the size of the chunks.
        before = np.cumsum(own, axis=0)[:-1]
        factor = (before.sum(axis=1) + k) / (k * (before[np.arange(len(w)), codes] + 1))
        return np.asarray(np.minimum(w * factor, MOST_WEIGHT))
    of_class = np.array([class_weight.get(label, 1.0) for label in classes.tolist()], dtype=np.float64)
    found = w * of_class[codes]
    if np.any(found > MOST_WEIGHT):
        must = f"must lead to sample weights of at most {MOST_WEIGHT:g}"
        raise InputError(who, "class_weight", must, f"{found.max():g}", "Pass smaller weights.")
    return np.asarray(found)


def counted(class_weight: Any, counts: Array, codes: Labels, w: Array) -> Array:
    """Return the class counts after further rows. Only balanced class weights need them."""
    if class_weight is None or class_weight != BALANCED:
        return counts
    new = counts.copy()
    np.add.at(new, codes, w)  # row by row, like the sums in ``weighted``
    return new
