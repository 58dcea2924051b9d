"""The state of a run in one file: it is replaced in one step, so that it is whole whenever the run is stopped."""

import hashlib
import json
import zlib
from pathlib import Path
from typing import Any, NamedTuple

import numpy as np
from numpy.typing import NDArray

from bayesvote.persistence import dumps, loads
from bayesvote.persistence._file import write

_FORMAT = "bayesvote checkpoint 1"


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
        write(path, f"{_FORMAT} {hashlib.sha256(body).hexdigest()}\n".encode() + body)

    @classmethod
    def load(cls, path: Path) -> "Checkpoint":
        """Read the file, if it is whole."""
        head, _, body = path.read_bytes().partition(b"\n")
        if not head.startswith(_FORMAT.encode()):
            raise ValueError(f"{path} must be a checkpoint of this version of bayesvote, got another file.")
        if head.split()[-1] != hashlib.sha256(body).hexdigest().encode():
            raise ValueError(f"{path} must be as it was written, but it is cut or altered. Delete it and start anew.")
        about, _, model = body.partition(b"\n")
        return cls(**json.loads(about), model=loads(model))


class Fingerprint:
    """Checksums of a stream's rows, the same for chunks of any size."""

    def __init__(self) -> None:
        self.sums = [0, 0, 0, 0]

    def add(self, X: Any, codes: NDArray[np.intp]) -> None:
        """Go on with some rows and the places of their labels among the classes."""
        arrays = [X] if isinstance(X, np.ndarray) else [X.data, X.indices, np.diff(X.indptr)]
        for k, array in enumerate([codes, *arrays]):
            self.sums[k] = zlib.crc32(array.tobytes(), self.sums[k])
