"""Online classifier ensembles with Bayesian weights."""

from bayesvote import losses, theory
from bayesvote.boosting import OGBoost, OSBoost, OzaBoost
from bayesvote.ensemble import Ensemble, decided
from bayesvote.evaluate import Prequential, prequential
from bayesvote.members import (
    EstimatorBank,
    FernBank,
    Frozen,
    NaiveBayesBank,
    PerceptronBank,
    Union,
    mixed,
    pretrain,
    random_subsets,
)
from bayesvote.persistence import ModelFileError, load, save
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

__version__ = "0.1.0"

__all__ = [
    "SAG",
    "SGD",
    "AveragedSGD",
    "Ensemble",
    "EstimatorBank",
    "FernBank",
    "Frozen",
    "GammaRate",
    "GammaShape",
    "GammaShapeRate",
    "JointGaussian",
    "ModelFileError",
    "NaiveBayesBank",
    "NumericalPosterior",
    "OGBoost",
    "OSBoost",
    "OzaBoost",
    "PerceptronBank",
    "Prequential",
    "Union",
    "Voting",
    "decided",
    "load",
    "losses",
    "mixed",
    "prequential",
    "pretrain",
    "random_subsets",
    "save",
    "theory",
]
