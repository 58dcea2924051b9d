"""Saved models as classifiers, whatever kind was saved."""

import os
from typing import Any

from bayesvote._checks import InputError
from bayesvote.estimators import OnlineClassifier, around
from bayesvote.persistence import ModelFileError, load

Classifier = OnlineClassifier[Any]


def load_classifier(path: str | os.PathLike[str]) -> Classifier:
    """Load a model that has learned, as a classifier; of an ensemble or a booster alone, the labels are numbers."""
    model = load_model(path)
    if model.learned() is None:
        raise InputError("", os.fspath(path), "must hold a model that was started", "one that never learned")
    return model if isinstance(model, OnlineClassifier) else around(model)


def load_model(path: str | os.PathLike[str]) -> Any:
    """Load a model; an error names the file."""
    try:
        return load(path)
    except ModelFileError as error:
        subject = f"{os.fspath(path)}: {error.subject}"
        raise ModelFileError("", subject, error.must, error.got, error.do) from error
