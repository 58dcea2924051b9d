"""Weights of the classes: given, or balanced as the stream goes on."""

from collections.abc import Mapping
from numbers import Real
from typing import Any

import numpy as np
from numpy.typing import NDArray

from bayesvote.core.checks import MOST_WEIGHT, Array, InputError, InputTypeError, Labels, overflows

BALANCED = "balanced"


def check(who: str, class_weight: Any, classes: NDArray[Any]) -> None:
    """Refuse what is neither None, "balanced" nor a weight above 0 for some of the classes."""
    if class_weight is None or (isinstance(class_weight, str) and class_weight == BALANCED):
        return
    if not isinstance(class_weight, Mapping):
        must = "must be None, 'balanced' or a dict of weights by label"
        raise InputTypeError(who, "class_weight", must, repr(class_weight))
    known = set(classes.tolist())
    for label, weight in class_weight.items():
        if label not in known:
            must = f"must be about the labels {classes.tolist()}"
            raise InputError(who, "class_weight", must, repr(label), "Leave it out, or mend its spelling.")
        number = isinstance(weight, Real) and not isinstance(weight, bool) and not overflows(weight)
        if not number or not 0 < float(weight) < np.inf:
            raise InputError(who, "class_weight", f"must be a number above 0 for {label!r}", repr(weight))


def weighted(
    who: str, class_weight: Any, classes: NDArray[Any], counts: Array, codes: Labels, w: Array
) -> tuple[Array, Array]:
    """Weights of rows by their own and that of their class, and the classes' sums of weights (K,) after them.

    Balanced, a row of a class that weighs n_k so far, of N in all, weighs (N + K) / (K (n_k + 1)): as in scikit-learn,
    but by the rows before it, and as if each class had been seen once before. What a class weighs is the sum of the
    rows' own weights.
    """
    if class_weight is None:
        return w, counts
    if class_weight == BALANCED:
        k = len(counts)
        own = np.zeros((len(w) + 1, k))
        own[0] = counts
        own[np.arange(1, len(w) + 1), codes] = w
        # One by one, so that the sums do not depend on the size of the chunks.
        sums = np.cumsum(own, axis=0)
        before = sums[:-1]
        factor = (before.sum(axis=1) + k) / (k * (before[np.arange(len(w)), codes] + 1))
        return np.minimum(w * factor, MOST_WEIGHT), sums[-1]
    of_class = np.array([class_weight.get(label, 1.0) for label in classes.tolist()], dtype=np.float64)
    found = w * of_class[codes]
    if np.any(found > MOST_WEIGHT):
        must = f"must lead to sample weights of at most {MOST_WEIGHT:g}"
        raise InputError(who, "class_weight", must, f"{found.max():g}", "Give smaller weights.")
    return found, counts
