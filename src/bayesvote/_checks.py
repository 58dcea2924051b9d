"""Input checks, each with one error sentence: who, what must hold, what was got, what to do."""

from collections.abc import Iterable
from difflib import get_close_matches
from typing import Any

import numpy as np
from numpy.typing import ArrayLike, NDArray

Array = NDArray[np.float64]
Labels = NDArray[np.intp]


def positive(who: str, name: str, value: float, *, zero: bool = False) -> None:
    """Require a finite real number above zero (or at zero, with ``zero=True``)."""
    floor = "at least 0" if zero else "above 0"
    number = isinstance(value, (int, float, np.integer, np.floating)) and not isinstance(value, bool)
    if not number or not np.isfinite(value) or value < 0 or (value == 0 and not zero):
        raise ValueError(f"{who}: {name} must be a finite number {floor}, got {value!r}.")


def whole(who: str, name: str, value: int, *, least: int = 1) -> None:
    """Require an integer of at least ``least``."""
    if not isinstance(value, (int, np.integer)) or isinstance(value, bool) or value < least:
        raise ValueError(f"{who}: {name} must be an integer of at least {least}, got {value!r}.")


def fraction(who: str, name: str, value: float) -> None:
    """Require a number in (0, 1]."""
    positive(who, name, value)
    if value > 1:
        raise ValueError(f"{who}: {name} must be in (0, 1], got {value!r}.")


def one_of(who: str, name: str, value: Any, options: Iterable[str]) -> None:
    """Require one of the known names, and offer the nearest one otherwise."""
    known = sorted(options)
    if value not in known:
        near = get_close_matches(str(value), known, n=1)
        hint = f" Did you mean {near[0]!r}?" if near else ""
        raise ValueError(f"{who}: {name} must be one of {', '.join(known)}, got {value!r}.{hint}")


def weights(who: str, sample_weight: ArrayLike | None, n_rows: int) -> Array:
    """Sample weights as a float array, one finite non-negative number per row; ones for None."""
    if sample_weight is None:
        return np.ones(n_rows)
    w = np.asarray(sample_weight, dtype=np.float64)
    if w.ndim == 0:
        w = np.full(n_rows, w)
    if w.shape != (n_rows,):
        raise ValueError(f"{who}: sample_weight must have one value per row, shape ({n_rows},), got shape {w.shape}.")
    if not np.all(np.isfinite(w) & (w >= 0)):
        raise ValueError(
            f"{who}: sample_weight must be finite and at least 0, got {w[~(np.isfinite(w) & (w >= 0))][0]}. "
            "Drop such rows or give them weight 0."
        )
    return w


def labels(who: str, y: ArrayLike, n_rows: int, n_classes: int) -> Labels:
    """Class indices as integers in [0, n_classes), one per row."""
    given = np.asarray(y)
    if given.shape != (n_rows,):
        raise ValueError(f"{who}: y must have one label per row, shape ({n_rows},), got shape {given.shape}.")
    if given.dtype.kind not in "iub" and not (given.dtype.kind == "f" and np.all(given == np.floor(given))):
        raise ValueError(f"{who}: y must hold class indices 0 to {n_classes - 1}, got {given.dtype} values.")
    encoded = given.astype(np.intp)
    # Seen as unsigned, a negative index is a large one.
    if n_rows and encoded.view(np.uintp).max() >= n_classes:
        bad = encoded[(encoded < 0) | (encoded >= n_classes)][0]
        raise ValueError(f"{who}: y must hold class indices 0 to {n_classes - 1}, got {bad}. Encode the labels first.")
    return encoded


def encoded(who: str, y: NDArray[Any], classes: NDArray[Any]) -> Labels:
    """Places of labels among the sorted classes, which must hold them all."""
    places = np.searchsorted(classes, y)
    unknown = classes[np.minimum(places, len(classes) - 1)] != y
    if np.any(unknown):
        raise ValueError(
            f"{who}: y must hold the classes {classes.tolist()} only, got {y[unknown].tolist()[0]!r}. "
            "Name all the labels that can come as classes before the first row."
        )
    return places
