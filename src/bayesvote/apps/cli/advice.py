"""Notes of ``run`` on a file's first rows, about columns that are probably not features."""

from typing import Any

import numpy as np

from bayesvote.apps.cli import show
from bayesvote.apps.cli.errors import written_kinds
from bayesvote.apps.cli.model_options import ModelOptions
from bayesvote.datasets import Chunk

_UNEVEN = 100.0  # Perceptrons learn slowly if the scales of features differ by more than this factor
_COUNTED = 5  # rows that must be numbered consecutively to look like an index


def advise(first: Chunk, names: list[str] | None, model: ModelOptions) -> None:
    """Print notes on the first chunk of a stream."""
    if names is not None:
        _advise_to_drop(first.X, names)
    if model.scale is False and model.model != "bayesian" and model.members in (None, "perceptron"):
        _advise_to_scale(first.X)


def _advise_to_drop(X: Any, names: list[str]) -> None:
    """Print a note on columns that number the rows."""
    for j, name in enumerate(names):
        values = X[name] if isinstance(X, dict) else X[:, j]
        nameless = not name or name.startswith("Unnamed: ")  # as pandas writes and reads its index
        counts = isinstance(values, np.ndarray) and len(values) >= _COUNTED and bool(np.all(np.diff(values) == 1))
        if nameless or counts:
            what = "has no name" if nameless else "numbers the rows"
            show.note(
                f"Column {name!r} {what}: it is probably an index, but is used as a feature. "
                f"Leave it out with {written_kinds({name: 'drop'})}."
            )


def _advise_to_scale(X: Any) -> None:
    """Print a note if unscaled features differ much in scale."""
    if not isinstance(X, np.ndarray):
        return
    sizes = np.fmax.reduce(np.abs(X), axis=0)
    sizes = sizes[sizes > 0]
    if len(sizes) and sizes.max() > _UNEVEN * sizes.min():
        show.note(
            f"Features differ in scale by a factor of {sizes.max() / sizes.min():,.0f}. Perceptrons learn better "
            "from features of similar scale: leave out --no-scale."
        )
