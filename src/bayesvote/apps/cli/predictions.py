"""The CSV file of a run's predictions, which is continued after an interruption."""

import csv
import hashlib
import io
import os
from pathlib import Path
from typing import Any, Self

from numpy.typing import NDArray

from bayesvote.apps.cli import show
from bayesvote.core.checks import Array, InputError
from bayesvote.core.files import naming, sync_folder

_BLOCK = 2**20


class Predictions:
    """A file with the number, label, prediction and its probability of every row.

    Parameters
    ----------
    path
        The file.
    kept
        What a checkpoint has kept of it, ``safe()`` at that time, to go on after; None for a new file.
    """

    def __init__(self, path: Path, kept: list[Any] | None) -> None:
        self._path = path
        self._sum = hashlib.sha256()
        if kept is not None:
            self._check(kept)
        with naming(path):
            self._file = path.open("wb" if kept is None else "r+b")
            if kept is None:
                self._write(b"row,label,predicted,probability\n")
            else:
                self._file.truncate(kept[0])
                self._file.seek(kept[0])

    def add(self, first: int, labels: NDArray[Any], predicted: NDArray[Any], probabilities: Array) -> None:
        """Write rows, the first of them having this number."""
        text = io.StringIO(newline="")
        numbers = range(first, first + len(labels))
        truth, said = (show.shown(values.tolist(), self._file) for values in (labels, predicted))
        columns = (numbers, truth, said, probabilities.tolist())
        csv.writer(text, lineterminator="\n").writerows(zip(*columns, strict=True))
        with naming(self._path):
            self._write(text.getvalue().encode())

    def show(self) -> None:
        """Let others see the rows so far."""
        with naming(self._path):
            self._file.flush()

    def safe(self) -> list[Any]:
        """Put everything on the disk; return how many bytes there are, and their checksum."""
        with naming(self._path):
            self._file.flush()
            os.fsync(self._file.fileno())
            sync_folder(self._path.resolve().parent)  # a new file's name must be there, too
        return [self._file.tell(), self._sum.hexdigest()]

    def __enter__(self) -> Self:
        return self

    def __exit__(self, *_: object) -> None:
        with naming(self._path):
            self._file.close()

    def _write(self, data: bytes) -> None:
        self._file.write(data)
        self._sum.update(data)

    def _check(self, kept: list[Any]) -> None:
        """Refuse a file that is not the one that was kept."""
        must = "must be the file of predictions of the interrupted run"
        do = "Delete the checkpoint and start again."
        if not self._path.exists() or self._path.stat().st_size < kept[0]:
            raise InputError("", str(self._path), must, "none or a shorter one", do)
        left = kept[0]
        with self._path.open("rb") as file:
            while left and (block := file.read(min(left, _BLOCK))):
                self._sum.update(block)
                left -= len(block)
        if self._sum.hexdigest() != kept[1]:
            raise InputError("", str(self._path), must, "one that was altered since", do)
