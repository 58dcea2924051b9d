"""Chunks of rows, and the interface of the readers of all formats."""

from collections.abc import Callable, Iterator, Sequence
from itertools import compress
from typing import Any, NamedTuple

import numpy as np
from numpy.typing import NDArray

from bayesvote.core.checks import InputError
from bayesvote.io.faults import BadLines
from bayesvote.io.labels import LabelReader

MOST_FEATURES = 2**20  # if the number of features is not stated: one wrong index must not decide the model's size


class Chunk(NamedTuple):
    """Some rows of a stream.

    Attributes
    ----------
    X
        The features, NaN where missing: CSR for LIBSVM text, dense for tables of numbers. For a table with other
        columns, a dictionary by their names: an array of numbers, or a list of values as they are in the file.
    y
        The labels as they are in the file: integers, numbers or strings, like the stream's first label. Empty for a
        stream without labels.
    lines
        The number of each row's line, from 1; of each row in a Parquet file.
    """

    X: Any
    y: NDArray[Any]
    lines: NDArray[np.int64]

    @property
    def n(self) -> int:
        """The number of rows."""
        return len(self.lines)

    def part(self, rows: slice) -> "Chunk":
        """Return some of the rows."""
        return Chunk(_selected(self.X, rows), self.y[rows], self.lines[rows])


def _selected(X: Any, rows: "slice | NDArray[np.bool_]") -> Any:
    """Return the rows of a slice or a mask."""
    if not isinstance(X, dict):
        return X[rows]
    return {
        name: list(compress(values, rows))
        if isinstance(values, list) and isinstance(rows, np.ndarray)
        else values[rows]
        for name, values in X.items()
    }


class OpenedFile(NamedTuple):
    """A file that is being read.

    Attributes
    ----------
    n_features, feature_names, label_name
        Its columns; the names are None if the format has none.
    chunks
        Its rows.
    categories
        Returns the labels that the file declares, or None.
    n_rows
        The number of rows that the file declares, or None.
    labels
        The reader of its labels, if it has labels.
    """

    n_features: int
    feature_names: list[str] | None
    chunks: Iterator[Chunk]
    label_name: str | None = None
    categories: Callable[[], NDArray[Any] | None] = lambda: None
    n_rows: int | None = None
    labels: LabelReader | None = None


class ChunkAssembler:
    """Makes chunks of parsed rows: reads their labels, and reports and removes bad rows."""

    def __init__(self, bad: BadLines, labels: LabelReader) -> None:
        self._bad = bad
        self._labels = labels

    def chunk(
        self,
        X: Any,
        labels: Sequence[str] | None,
        lines: NDArray[np.int64],
        faults: dict[int, InputError],
    ) -> Iterator[Chunk]:
        """Yield the good rows as one chunk, if there are any.

        ``faults`` maps the numbers of bad lines to errors; these lines may be missing from the rows.
        """
        y = []
        for number, label in zip(lines.tolist(), labels, strict=True) if labels is not None else ():
            if number not in faults:
                try:
                    y.append(self._labels.read(label))
                except InputError as error:
                    faults[number] = error
        for number in sorted(faults):
            self._bad.report(number, faults[number])
        if faults:
            keep = ~np.isin(lines, list(faults))
            X, lines = _selected(X, keep), lines[keep]
        if len(lines):
            yield Chunk(X, np.array(y), lines)
