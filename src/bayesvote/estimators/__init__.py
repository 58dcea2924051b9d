"""The scikit-learn shells: validation, label encoding and probabilities around the models."""

from bayesvote.estimators.bayesian import BayesianEnsembleClassifier
from bayesvote.estimators.boosters import OGBoostClassifier, OSBoostClassifier, OzaBoostClassifier

__all__ = ["BayesianEnsembleClassifier", "OGBoostClassifier", "OSBoostClassifier", "OzaBoostClassifier"]
