"""Former name of :mod:`bayesvote.integrations.river`."""

from bayesvote.integrations.river import (
    BayesianEnsembleClassifier,
    OGBoostClassifier,
    OSBoostClassifier,
    OzaBoostClassifier,
)

__all__ = ["BayesianEnsembleClassifier", "OGBoostClassifier", "OSBoostClassifier", "OzaBoostClassifier"]
