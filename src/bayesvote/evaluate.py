"""Prequential evaluation: every row is first predicted, then learned."""

import time
from dataclasses import dataclass
from typing import Protocol

import numpy as np
from numpy.typing import ArrayLike

from bayesvote._checks import Array, Labels, whole
from bayesvote._input import RowsLike, as_rows
from bayesvote.ensemble import decided


class Model(Protocol):
    """What can be evaluated: an ensemble or a booster that was started."""

    def decide_then_learn(self, X: RowsLike, y: ArrayLike, sample_weight: ArrayLike | None = None) -> Array:
        """Losses (n, K) of every label, row t before row t is learned."""


@dataclass(frozen=True)
class Prequential:
    """How a model did on a stream."""

    predictions: Labels
    mistakes: np.ndarray[tuple[int], np.dtype[np.bool_]]
    seconds: float

    @property
    def error(self) -> float:
        """Share of the rows that were predicted wrongly."""
        return float(self.mistakes.mean()) if len(self.mistakes) else 0.0

    @property
    def curve(self) -> Array:
        """Error up to and including every row."""
        return np.cumsum(self.mistakes) / np.arange(1, len(self.mistakes) + 1)


def prequential(model: Model, X: RowsLike, y: ArrayLike, chunk_size: int = 65_536) -> Prequential:
    """Test, then train, row by row: each row is predicted by what was learned from the rows before it.

    Parameters
    ----------
    model
        An ensemble or a booster that was started. It is left as it is after the last row.
    X, y
        The stream; labels are class indices.
    chunk_size
        How many rows to hand over at a time. It changes the speed only.

    Examples
    --------
    >>> from bayesvote.ensemble import Ensemble
    >>> from bayesvote.members.perceptron import PerceptronBank
    >>> X = np.random.default_rng(0).standard_normal((500, 4))
    >>> model = Ensemble(PerceptronBank(n_members=10)).start(n_features=4, rng=0)
    >>> prequential(model, X, (X[:, 0] > X[:, 1]).astype(int)).error < 0.2
    True
    """
    rows, labels = as_rows("prequential", X), np.asarray(y)
    whole("prequential", "chunk_size", chunk_size)
    if labels.shape != (rows.n,):
        raise ValueError(f"prequential: y must have one label per row, shape ({rows.n},), got {labels.shape}.")
    start = time.perf_counter()
    predictions = []
    for first in range(0, rows.n, chunk_size):
        last = min(first + chunk_size, rows.n)
        predictions.append(decided(model.decide_then_learn(rows.part(first, last), labels[first:last])))
    seconds = time.perf_counter() - start
    predicted = np.concatenate([np.empty(0, dtype=np.intp), *predictions])
    return Prequential(predicted, predicted != labels, seconds)
