"""What ``run`` remarks on a file's first rows: columns that are probably not meant to be learned from."""

from typing import Any

import numpy as np

from bayesvote.apps.cli import show
from bayesvote.apps.cli.settings import Settings
from bayesvote.datasets import Chunk

_UNEVEN = 100.0  # features whose sizes differ by more than this make Perceptrons slow to learn
_COUNTED = 5  # rows that must be numbered one by one to be taken for an index


def advise(first: Chunk, names: list[str] | None, settings: Settings) -> None:
    """Look at the first chunk of a stream."""
    if names is not None:
        _advise_to_drop(first.X, names)
    if settings.scale is False and settings.model != "bayesian" and settings.members in (None, "perceptron"):
        _advise_to_scale(first.X)


def _advise_to_drop(X: Any, names: list[str]) -> None:
    """Warn of columns that number the rows."""
    for j, name in enumerate(names):
        values = X[name] if isinstance(X, dict) else X[:, j]
        nameless = not name or name.startswith("Unnamed: ")  # as pandas writes and reads its index
        counts = isinstance(values, np.ndarray) and len(values) >= _COUNTED and bool(np.all(np.diff(values) == 1))
        if nameless or counts:
            what = "has no name" if nameless else "numbers the rows"
            show.note(
                f"Column {name!r} {what}: it is probably an index, and is learned from as a feature. "
                f"--drop '{name}' leaves it out."
            )


def _advise_to_scale(X: Any) -> None:
    """Advise against Perceptrons that see the features as they are, if these differ much in size."""
    if not isinstance(X, np.ndarray):
        return
    sizes = np.fmax.reduce(np.abs(X), axis=0)
    sizes = sizes[sizes > 0]
    if len(sizes) and sizes.max() > _UNEVEN * sizes.min():
        show.note(
            f"Features differ in size by a factor of {sizes.max() / sizes.min():,.0f}. Perceptrons learn better "
            "from features of similar size: leave out --no-scale."
        )
