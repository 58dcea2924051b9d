"""The state of ``run`` in one file, replaced in one step: it is complete whenever the process is stopped."""

import hashlib
import json
import zlib
from pathlib import Path
from typing import Any, NamedTuple

import numpy as np
from numpy.typing import NDArray

from bayesvote._checks import InputError
from bayesvote._files import replace_file
from bayesvote.persistence import dumps, loads

_FORMAT = "bayesvote checkpoint 2"


class Checkpoint(NamedTuple):
    """A run after some rows.

    Attributes
    ----------
    settings
        The options of the run.
    classes
        The labels.
    total
        How many rows the stream has, if known.
    sums
        Checksums of the rows so far, by which the stream is recognised.
    predictions
        The length of the file of predictions in bytes, None if there is none.
    tally
        The figures so far.
    model
        The model so far.
    """

    settings: dict[str, Any]
    classes: list[Any]
    total: int | None
    sums: list[int]
    predictions: int | None
    tally: dict[str, Any]
    model: Any

    def save(self, path: Path) -> None:
        """Replace the file."""
        about = json.dumps({name: value for name, value in self._asdict().items() if name != "model"}).encode()
        body = about + b"\n" + dumps(self.model)
        replace_file(path, f"{_FORMAT} {hashlib.sha256(body).hexdigest()}\n".encode() + body)

    @classmethod
    def load(cls, path: Path) -> "Checkpoint":
        """Read the file, if it is complete."""
        head, _, body = path.read_bytes().partition(b"\n")
        if not head.startswith(_FORMAT.encode()):
            raise InputError("", str(path), "must be a checkpoint of this version of bayesvote", "another file")
        if head.split()[-1] != hashlib.sha256(body).hexdigest().encode():
            must = "must be as it was written, but it is cut or altered"
            raise InputError("", str(path), must, do="Delete it and start again.")
        about, _, model = body.partition(b"\n")
        return cls(**json.loads(about), model=loads(model))


class Fingerprint:
    """Checksums of rows and their labels, the same for chunks of any size."""

    def __init__(self) -> None:
        self.sums = [0, 0, 0, 0]

    def add(self, X: Any, y: NDArray[Any]) -> None:
        """Add rows."""
        arrays = [X] if isinstance(X, np.ndarray) else [X.data, X.indices, np.diff(X.indptr)]
        labels = "".join(f"{label}\n" for label in y.tolist())
        for k, data in enumerate([labels.encode(), *(array.tobytes() for array in arrays)]):
            self.sums[k] = zlib.crc32(data, self.sums[k])
