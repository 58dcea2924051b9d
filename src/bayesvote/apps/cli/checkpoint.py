"""Checkpoints of ``run``: one file, replaced atomically."""

import hashlib
import json
from base64 import b64decode, b64encode
from pathlib import Path
from typing import Any, NamedTuple

import numpy as np
from numpy.typing import NDArray

from bayesvote.core.checks import InputError
from bayesvote.core.files import replace_file
from bayesvote.core.rollback import Forecast
from bayesvote.datasets import Chunk
from bayesvote.estimators import OnlineClassifier
from bayesvote.evaluation import Tally
from bayesvote.io.model_file import dumps, loads

_FORMAT = "bayesvote checkpoint 4"


class Checkpoint(NamedTuple):
    """The state of a run after some rows.

    Attributes
    ----------
    settings
        The options of the run.
    classes
        The labels.
    columns
        The names of the features and of the label, if the stream has them.
    total
        The number of rows of the stream, if known.
    sums
        Checksums of the rows so far, which identify the stream; None if it was resumed with ``--from-here``.
    predictions
        The length in bytes and the checksum of the file of predictions; None without such a file.
    tally
        The metrics so far.
    waiting
        Predicted rows that wait for their labels, of a stream that cannot be read again; None if there are none.
    forecasts
        Scores and losses of the predicted rows that wait for their labels; None if there are none.
    model
        The model so far.
    """

    settings: dict[str, Any]
    classes: list[Any]
    columns: list[str] | None
    total: int | None
    sums: list[str] | None
    predictions: list[Any] | None
    tally: dict[str, Any]
    waiting: dict[str, Any] | None
    forecasts: dict[str, Any] | None
    model: Any

    def save(self, path: Path) -> None:
        """Replace the file."""
        about = json.dumps({name: value for name, value in self._asdict().items() if name != "model"}).encode()
        body = about + b"\n" + dumps(self.model)
        replace_file(path, f"{_FORMAT} {hashlib.sha256(body).hexdigest()}\n".encode() + body)

    @classmethod
    def load(cls, path: Path) -> "Checkpoint":
        """Read the file and verify its checksum."""
        head, _, body = path.read_bytes().partition(b"\n")
        if not head.startswith(_FORMAT.encode()):
            must = "must be a checkpoint of this version of bayesvote"
            do = "Name the right file with --checkpoint, or a new one to start again."
            raise InputError("", str(path), must, "another file", do)
        must = "must be a complete checkpoint, but it is truncated or changed"
        if head.split()[-1] != hashlib.sha256(body).hexdigest().encode():
            raise InputError("", str(path), must, do="Delete it and start again.")
        about, _, model = body.partition(b"\n")
        try:
            found = cls(**json.loads(about), model=loads(model))
            found.check()
        except (ValueError, TypeError, LookupError, AttributeError, ArithmeticError, RecursionError) as error:
            raise InputError("", str(path), must, do="Delete it and start again.") from error
        return found

    def check(self) -> None:
        """Raise an error for anything that `save` does not write; a checksum can be forged."""
        kinds = {
            "settings": dict,
            "classes": list,
            "columns": list | None,
            "total": int | None,
            "sums": list | None,
            "predictions": list | None,
            "tally": dict,
            "waiting": dict | None,
            "forecasts": dict | None,
            "model": OnlineClassifier,
        }
        for name, kind in kinds.items():
            if not isinstance(getattr(self, name), kind):
                raise TypeError(name)
        if not all(isinstance(text, str) for text in [*(self.columns or []), *(self.sums or [])]):
            raise TypeError("texts")
        if self.predictions is not None and [type(part) for part in self.predictions] != [int, str]:
            raise TypeError("predictions")
        if self.model.classes_.tolist() != self.classes:
            raise ValueError("classes")
        Tally.from_json(self.tally)
        if self.waiting is not None:
            unpacked(self.waiting)
        if self.forecasts is not None:
            self.model.model_.check_forecast(unpacked_forecasts(self.forecasts, self.model.model_.empty_forecast(0)))


class Fingerprint:
    """Checksums of rows and their labels, independent of the chunk size."""

    def __init__(self) -> None:
        self._sums: dict[str, Any] = {}
        self.rows = 0

    def copy(self) -> "Fingerprint":
        """Return a copy."""
        other = Fingerprint()
        other._sums = {name: digest.copy() for name, digest in self._sums.items()}
        other.rows = self.rows
        return other

    def add(self, X: Any, y: NDArray[Any]) -> None:
        """Add rows."""
        self.rows += len(y)
        self._add("labels", "".join(f"{label!r}\n" for label in y.tolist()).encode())
        if isinstance(X, dict):
            for name, values in X.items():
                text = isinstance(values, list)
                data = "".join(f"{value!r}\n" for value in values).encode() if text else np.asarray(values).tobytes()
                self._add(f"column {name}", data)
        elif isinstance(X, np.ndarray):
            self._add("rows", X.tobytes())
        else:
            for name, array in (("values", X.data), ("indices", X.indices), ("lengths", np.diff(X.indptr))):
                self._add(name, array.tobytes())

    def _add(self, name: str, data: bytes) -> None:
        self._sums.setdefault(name, hashlib.sha256()).update(data)

    @property
    def sums(self) -> list[str]:
        """One checksum for each part of the rows."""
        return [f"{name} {digest.hexdigest()}" for name, digest in self._sums.items()]


def joined(rows: list[Chunk]) -> tuple[Any, NDArray[Any]]:
    """Concatenate rows of the same kind."""
    X: Any = [row.X for row in rows]
    if isinstance(X[0], dict):
        together: Any = {
            name: np.concatenate([x[name] for x in X])
            if isinstance(values, np.ndarray)
            else [value for x in X for value in x[name]]
            for name, values in X[0].items()
        }
    elif isinstance(X[0], np.ndarray):
        together = np.concatenate(X)
    else:
        from scipy.sparse import csr_array, vstack

        together = csr_array(vstack(X, format="csr"))
    return together, np.concatenate([row.y for row in rows])


def packed(X: Any, y: NDArray[Any]) -> dict[str, Any]:
    """Convert rows to types of JSON."""
    if isinstance(X, dict):
        columns = {name: list(values) for name, values in X.items()}
        return {"columns": columns, "numbers": [name for name in X if isinstance(X[name], np.ndarray)], "y": y.tolist()}
    if isinstance(X, np.ndarray):
        return {"dense": X.tolist(), "y": y.tolist()}
    parts = [part.tolist() for part in (X.data, X.indices, X.indptr)]
    return {"sparse": parts, "width": X.shape[1], "y": y.tolist()}


def unpacked(rows: dict[str, Any]) -> Chunk:
    """Convert rows back; their line numbers are lost."""
    y = np.array(rows["y"])
    X: Any
    if "columns" in rows:
        X = {name: np.array(v) if name in rows["numbers"] else v for name, v in rows["columns"].items()}
    elif "dense" in rows:
        X = np.array(rows["dense"]).reshape(len(y), -1)
    else:
        from scipy.sparse import csr_array

        X = csr_array(tuple(np.array(part) for part in rows["sparse"]), shape=(len(y), rows["width"]))
    return Chunk(X, y, np.zeros(len(y), dtype=np.int64))


def packed_forecasts(forecasts: Forecast | None) -> dict[str, Any] | None:
    """Convert forecasts to types of JSON."""
    if forecasts is None:
        return None
    return {
        name: {"shape": list(array.shape), "bytes": b64encode(array.tobytes()).decode()}
        for name, array in forecasts._asdict().items()
    }


def unpacked_forecasts(packed: dict[str, Any], blank: Forecast) -> Forecast:
    """Convert forecasts back; ``blank`` is a forecast of no rows by the same model."""
    if packed.keys() != set(Forecast._fields):
        raise ValueError("forecasts")
    arrays = {
        name: np.frombuffer(b64decode(part["bytes"]), dtype=np.float64).reshape(part["shape"]).copy()
        for name, part in packed.items()
    }
    found = Forecast(**arrays)
    if len({len(array) for array in found}) > 1 or any(
        array.shape[1:] != like.shape[1:] for array, like in zip(found, blank, strict=True)
    ):
        raise ValueError("forecasts")
    return found
