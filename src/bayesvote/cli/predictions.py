"""The CSV file of a run's predictions, which is continued after an interruption."""

import csv
import io
import os
from pathlib import Path
from typing import Any, Self

from numpy.typing import NDArray

from bayesvote._checks import Array, InputError


class Predictions:
    """A file with the number, label, prediction and its probability of every row.

    Parameters
    ----------
    path
        The file.
    kept
        How many bytes to keep and continue after; None for a new file.
    """

    def __init__(self, path: Path, kept: int | None) -> None:
        if kept is not None and (not path.exists() or path.stat().st_size < kept):
            must = "must be the file of predictions of the interrupted run"
            do = "Delete the checkpoint and start again."
            raise InputError("", str(path), must, "none or a shorter one", do)
        self._file = path.open("wb" if kept is None else "r+b")
        if kept is None:
            self._file.write(b"row,label,predicted,probability\n")
        else:
            self._file.truncate(kept)
            self._file.seek(kept)

    def add(self, first: int, labels: NDArray[Any], predicted: NDArray[Any], probabilities: Array) -> None:
        """Write rows, the first of them having this number."""
        text = io.StringIO(newline="")
        numbers = range(first, first + len(labels))
        columns = (numbers, labels.tolist(), predicted.tolist(), probabilities.tolist())
        csv.writer(text, lineterminator="\n").writerows(zip(*columns, strict=True))
        self._file.write(text.getvalue().encode())

    def safe_size(self) -> int:
        """Put everything on the disk; return how many bytes there are."""
        self._file.flush()
        os.fsync(self._file.fileno())
        return self._file.tell()

    def __enter__(self) -> Self:
        return self

    def __exit__(self, *_: object) -> None:
        self._file.close()
