"""Model files: a safetensors file with a checksum. Loading a file from an unknown source runs no code from it."""

import os
from collections.abc import Mapping
from contextlib import nullcontext
from typing import Any

from bayesvote.core.checks import InputTypeError
from bayesvote.core.files import replace_file
from bayesvote.core.state import Part
from bayesvote.io.model_file.decode import decode
from bayesvote.io.model_file.encode import encode
from bayesvote.io.model_file.file import ModelFileError, as_model_file_errors, pack, read, unpack
from bayesvote.io.model_file.version1 import upgraded

__all__ = ["ModelFileError", "dumps", "load", "loads", "pack", "save", "unpack"]

MAX_BYTES = 2**30


def save(model: Any, path: str | os.PathLike[str]) -> None:
    """Save an ensemble, a booster or an estimator of this library, started or not.

    The new file replaces an existing one atomically, after it has been written to disk. If the process is killed, the
    old file or the new one is there. A temporary file ``.name.*.tmp`` may remain in the folder, and can be deleted.

    Objects of other libraries and user code are not saved, only their place in the model. These are the classifiers of
    an :class:`EstimatorBank` (the bank itself, if it learns), a :class:`NumericalPosterior`, and a loss that is a
    function. Pass them to :func:`load` again. A random generator among an estimator's parameters is saved as None.

    Parameters
    ----------
    model
        The model; it is not changed.
    path
        Path of the file; an existing file is replaced.
    """
    replace_file(path, dumps(model))


def load(path: str | os.PathLike[str], *, objects: Mapping[str, Any] | None = None, max_bytes: int = MAX_BYTES) -> Any:
    """Load a model saved by :func:`save`. Its predictions and further learning are bit for bit those of the saved one.

    Loading runs no code from the file, and imports no module that the file names.

    Parameters
    ----------
    path
        Path of the file.
    objects
        Objects that the file does not contain, by their place in the model, such as
        ``{"weighter": NumericalPosterior(...)}``, ``{"bank.estimators": [...]}``, ``{"bank": EstimatorBank(...)}``,
        ``{"loss": function}`` or, for an estimator, ``{"members": [...]}``. Each must be as it was when the model was
        saved: classifiers of other types, or in another order of types, raise an error. If objects are missing, the
        error names them.
    max_bytes
        Maximum size of the file in bytes.

    Raises
    ------
    ModelFileError
        If the file is damaged, not a model, too large, written by a newer version, or needs other objects.

    Examples
    --------
    >>> import tempfile
    >>> from bayesvote import Ensemble, PerceptronBank
    >>> model = Ensemble(PerceptronBank(n_members=5)).start(n_features=2, rng=0)
    >>> with tempfile.TemporaryDirectory() as folder:
    ...     save(model, folder + "/model.safetensors")
    ...     again = load(folder + "/model.safetensors")
    >>> again.decide([[1.0, 2.0]]) == model.decide([[1.0, 2.0]])
    array([[ True,  True]])
    """
    try:
        return loads(read(path, max_bytes), objects=objects)
    except ModelFileError as error:
        who = f"load({os.fspath(path)!r})"
        raise ModelFileError(who, error.subject, error.must, error.got, error.do, error.using) from error


def dumps(model: Any) -> bytes:
    """Return the bytes that :func:`save` writes."""
    with model.read_lock() if isinstance(model, Part) else nullcontext():
        return pack(*encode(model))


def loads(data: bytes, *, objects: Mapping[str, Any] | None = None) -> Any:
    """Load a model from the bytes that :func:`dumps` returned."""
    if not isinstance(objects, Mapping | None):
        must = "must be a dictionary of places and objects, such as {'members': [...]}"
        raise InputTypeError("load", "objects", must, type(objects).__name__)
    version, description, arrays = unpack(data)
    if version == 1:
        with as_model_file_errors():
            description, arrays = upgraded(description, arrays)
    return decode(description, arrays, objects=dict(objects or {}), room=len(data))
