"""What can be in a saved model. Kinds are looked up here and nowhere else: a file can name no others."""

from collections.abc import Callable
from operator import attrgetter
from typing import Any

from bayesvote.boosting import OGBoost, OSBoost, OzaBoost
from bayesvote.members import EstimatorBank, FernBank, NaiveBayesBank, PerceptronBank
from bayesvote.weighting import (
    SAG,
    SGD,
    AveragedSGD,
    GammaRate,
    GammaShape,
    GammaShapeRate,
    JointGaussian,
    NumericalPosterior,
    Voting,
)

Node = dict[str, Any]  # the description of a part

LEAVES: dict[str, Any] = {bank.__name__: bank for bank in (PerceptronBank, NaiveBayesBank, FernBank)}
BOOSTERS: dict[str, Any] = {booster.__name__: booster for booster in (OzaBoost, OGBoost, OSBoost)}
WEIGHTERS: dict[str, Any] = {
    weighter.__name__: weighter
    for weighter in (GammaRate, GammaShape, GammaShapeRate, JointGaussian, Voting, SGD, AveragedSGD, SAG)
}
# What holds the user's own objects is asked for again at loading, and must then be the same in this.
REFERENCES: dict[Any, dict[str, Callable[[Any], Any]]] = {
    EstimatorBank: {  # one that learns; of others, only the classifiers are asked for
        "n_members": lambda bank: bank.n_members,
        "online": lambda bank: bank.online,
        "shape": lambda bank: bank.state and (bank.state.n_features, bank.state.n_classes),
    },
    NumericalPosterior: {name: attrgetter(name) for name in ("n_parameters", "support", "forgetting")},
}
# The estimators are beside this package, not below it, hence their names.
ESTIMATOR_MODULE = "bayesvote.estimators"
CALIBRATION_MODULE = "bayesvote.estimators._probabilities"
ESTIMATORS = ("BayesianEnsembleClassifier", "OGBoostClassifier", "OSBoostClassifier", "OzaBoostClassifier")
# What a fitted one has besides its parameters, its ``model_`` and its ``calibration_``.
FITTED = ("classes_", "n_features_in_", "feature_names_in_")
