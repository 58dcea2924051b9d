"""The scikit-learn classifiers: validation, label encoding and calibration around the models."""

from typing import Any

from bayesvote.boosting import BOOSTERS
from bayesvote.estimators._calibration import Calibration
from bayesvote.estimators._class_weight import weighted
from bayesvote.estimators.base import OnlineClassifier
from bayesvote.estimators.bayesian import BayesianEnsembleClassifier
from bayesvote.estimators.boosters import OGBoostClassifier, OSBoostClassifier, OzaBoostClassifier
from bayesvote.model import Model

# Every classifier by its name on the command line. Names of boosters are as in boosting.BOOSTERS.
CLASSIFIERS: dict[str, type[OnlineClassifier[Any]]] = {
    "bayesian": BayesianEnsembleClassifier,
    "ozaboost": OzaBoostClassifier,
    "ogboost": OGBoostClassifier,
    "osboost": OSBoostClassifier,
}


def around(model: Model[Any]) -> OnlineClassifier[Any]:
    """Return a classifier around a started model. Its labels are the class indices."""
    kind = next((name for name, booster in BOOSTERS.items() if type(model) is booster), "bayesian")
    return CLASSIFIERS[kind].around(model)


__all__ = [
    "CLASSIFIERS",
    "BayesianEnsembleClassifier",
    "Calibration",
    "OGBoostClassifier",
    "OSBoostClassifier",
    "OnlineClassifier",
    "OzaBoostClassifier",
    "around",
    "weighted",
]
