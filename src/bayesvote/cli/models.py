"""Saved models as classifiers, whatever kind was saved."""

import os
from collections.abc import Callable
from typing import Any

import numpy as np

from bayesvote.ensemble import Ensemble
from bayesvote.estimators import (
    BayesianEnsembleClassifier,
    OGBoostClassifier,
    OSBoostClassifier,
    OzaBoostClassifier,
)
from bayesvote.estimators._probabilities import Calibration
from bayesvote.estimators.base import OnlineClassifier
from bayesvote.persistence import ModelFileError, load
from bayesvote.persistence._states import shape_of

Classifier = OnlineClassifier[Any]

BOOSTERS: dict[str, Callable[[str, int], Classifier]] = {
    "ogboost": OGBoostClassifier,
    "osboost": OSBoostClassifier,
    "ozaboost": OzaBoostClassifier,
}


def load_classifier(path: str | os.PathLike[str]) -> Classifier:
    """Load a model that has learned, as a classifier; of an ensemble or a booster alone, the labels are numbers."""
    model = load_model(path)
    whole = isinstance(model, OnlineClassifier)
    if not hasattr(model, "model_") if whole else model.state is None:
        raise ValueError(f"{os.fspath(path)} must hold a model that was started, got one that never learned.")
    if isinstance(model, OnlineClassifier):
        return model
    shell: Classifier
    if isinstance(model, Ensemble):
        shell, shape = BayesianEnsembleClassifier(), (model.n_features, model.n_classes)
    else:
        shell = BOOSTERS[type(model).__name__.lower()](model.member, model.n_members)
        shape = shape_of(model) or (0, 2)
    shell.model_, shell.calibration_ = model, Calibration.start()
    shell.n_features_in_, shell.classes_ = shape[0], np.arange(shape[1])
    return shell


def load_model(path: str | os.PathLike[str]) -> Any:
    """Load a model; an error names the file."""
    try:
        return load(path)
    except ModelFileError as error:
        raise ModelFileError(f"{os.fspath(path)}: {str(error).removeprefix('load: ')}") from error
