"""Former name of :mod:`bayesvote.integrations.capymoa`."""

from bayesvote.integrations.capymoa import (
    BayesianEnsembleClassifier,
    OGBoostClassifier,
    OSBoostClassifier,
    OzaBoostClassifier,
)

__all__ = ["BayesianEnsembleClassifier", "OGBoostClassifier", "OSBoostClassifier", "OzaBoostClassifier"]
