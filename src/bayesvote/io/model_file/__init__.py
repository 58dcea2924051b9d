"""Saved models: one safetensors file with a checksum, that can be loaded from anybody without running their code."""

import os
from collections.abc import Mapping
from contextlib import nullcontext
from typing import Any

from bayesvote.core.checks import InputTypeError
from bayesvote.core.files import replace_file
from bayesvote.core.state import Part
from bayesvote.io.model_file.decode import decode
from bayesvote.io.model_file.encode import encode
from bayesvote.io.model_file.file import ModelFileError, pack, read, refusing, unpack
from bayesvote.io.model_file.version1 import upgraded

__all__ = ["ModelFileError", "dumps", "load", "loads", "pack", "save", "unpack"]

MAX_BYTES = 2**30


def save(model: Any, path: str | os.PathLike[str]) -> None:
    """Save a model: an ensemble, a booster, or an estimator of this library, started or not.

    The file is replaced in one step once the new one is safely on the disk: whenever the process is killed, there is
    the old file or the new one. (A file ``.name.*.tmp`` may be left beside it then, which can be deleted.)

    What is not the library's own is not in the file, only its place is: the classifiers of an
    :class:`EstimatorBank` (the bank itself, if it learns), a :class:`NumericalPosterior`, a loss that is a function.
    It must be given again to :func:`load`. A random generator among an estimator's parameters becomes None.

    Parameters
    ----------
    model
        The model; it stays as it is.
    path
        Where to; an existing file is replaced.
    """
    replace_file(path, dumps(model))


def load(path: str | os.PathLike[str], *, objects: Mapping[str, Any] | None = None, max_bytes: int = MAX_BYTES) -> Any:
    """Load a model that :func:`save` has saved. It predicts and goes on learning bit for bit as the saved one.

    Nothing in the file is run, and no name in it is imported.

    Parameters
    ----------
    path
        The file.
    objects
        What the file does not hold, by its place in the model, such as
        ``{"weighter": NumericalPosterior(...)}``, ``{"bank.estimators": [...]}``, ``{"bank": EstimatorBank(...)}``,
        ``{"loss": function}`` or, of an estimator, ``{"members": [...]}``; each as it was when the model was saved.
        Classifiers of other types, or in another order of types, are refused.
        Without them, the error names what is missing.
    max_bytes
        A larger file is refused.

    Raises
    ------
    ModelFileError
        If the file is damaged, no model, too large, of a newer library, or needs other objects.

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
    """Return what :func:`save` writes."""
    with model.read_lock() if isinstance(model, Part) else nullcontext():
        return pack(*encode(model))


def loads(data: bytes, *, objects: Mapping[str, Any] | None = None) -> Any:
    """Load a model from what :func:`dumps` has returned."""
    if not isinstance(objects, Mapping | None):
        must = "must be a dictionary of places and what belongs there, such as {'members': [...]}"
        raise InputTypeError("load", "objects", must, type(objects).__name__)
    version, description, arrays = unpack(data)
    if version == 1:
        with refusing():
            description, arrays = upgraded(description, arrays)
    return decode(description, arrays, objects=dict(objects or {}), room=len(data))
