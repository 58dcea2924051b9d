"""The CSV file of a run's predictions, which a resumed run continues."""

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


class PredictionFile:
    """File with the number, label, prediction and probability of every row.

    Parameters
    ----------
    path
        The file.
    kept
        The value of `sync` in a checkpoint, after which the file is continued; None for a new file.
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
        """Write rows; ``first`` is the number of the first one."""
        text = io.StringIO(newline="")
        numbers = range(first, first + len(labels))
        truth, answers = (show.shown(values.tolist(), self._file) for values in (labels, predicted))
        columns = (numbers, truth, answers, probabilities.tolist())
        csv.writer(text, lineterminator="\n").writerows(zip(*columns, strict=True))
        with naming(self._path):
            self._write(text.getvalue().encode())

    def show(self) -> None:
        """Flush, so that other programs see the rows so far."""
        with naming(self._path):
            self._file.flush()

    def sync(self) -> list[Any]:
        """Write everything to the disk; return the number of bytes and their checksum."""
        with naming(self._path):
            self._file.flush()
            os.fsync(self._file.fileno())
            sync_folder(self._path.resolve().parent)  # the name of a new file must be on the disk, too
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
        """Raise an error if the file is not the one of the checkpoint."""
        must = "must be the file of predictions of the interrupted run"
        do = "Delete the checkpoint and start again."
        if not self._path.exists() or self._path.stat().st_size < kept[0]:
            raise InputError("", str(self._path), must, "no file or a shorter one", do)
        left = kept[0]
        with self._path.open("rb") as file:
            while left and (block := file.read(min(left, _BLOCK))):
                self._sum.update(block)
                left -= len(block)
        if self._sum.hexdigest() != kept[1]:
            raise InputError("", str(self._path), must, "a file that was changed since", do)
