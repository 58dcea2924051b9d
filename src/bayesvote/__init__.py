"""Online classifier ensembles with Bayesian weights."""

from typing import TYPE_CHECKING, Any

from bayesvote import losses, theory
from bayesvote.boosting import OGBoost, OSBoost, OzaBoost
from bayesvote.core.version import __version__ as __version__
from bayesvote.datasets import load_dataset
from bayesvote.ensemble import Ensemble
from bayesvote.evaluation import Prequential, prequential
from bayesvote.io.model_file import ModelFileError, load, save
from bayesvote.members import (
    Committees,
    Compact,
    EstimatorBank,
    FernBank,
    Frozen,
    LinearBank,
    LogisticBank,
    NaiveBayesBank,
    NeighbourBank,
    PerceptronBank,
    Scaled,
    TreeBank,
    Union,
    adaptive,
    fast,
    mixed,
    pretrain,
    random_subsets,
)
from bayesvote.model import decided
from bayesvote.weighting import (
    SAG,
    SGD,
    AveragedSGD,
    GammaRate,
    GammaShape,
    GammaShapeRate,
    JointGaussian,
    JointLogistic,
    LaplacePosterior,
    NumericalPosterior,
    SeparableSGD,
    Voting,
)

if TYPE_CHECKING:
    from bayesvote.estimators import (
        BayesianEnsembleClassifier,
        OGBoostClassifier,
        OSBoostClassifier,
        OzaBoostClassifier,
    )

__all__ = [
    "SAG",
    "SGD",
    "AveragedSGD",
    "BayesianEnsembleClassifier",
    "Committees",
    "Compact",
    "Ensemble",
    "EstimatorBank",
    "FernBank",
    "Frozen",
    "GammaRate",
    "GammaShape",
    "GammaShapeRate",
    "JointGaussian",
    "JointLogistic",
    "LaplacePosterior",
    "LinearBank",
    "LogisticBank",
    "ModelFileError",
    "NaiveBayesBank",
    "NeighbourBank",
    "NumericalPosterior",
    "OGBoost",
    "OGBoostClassifier",
    "OSBoost",
    "OSBoostClassifier",
    "OzaBoost",
    "OzaBoostClassifier",
    "PerceptronBank",
    "Prequential",
    "Scaled",
    "SeparableSGD",
    "TreeBank",
    "Union",
    "Voting",
    "adaptive",
    "decided",
    "fast",
    "load",
    "load_dataset",
    "losses",
    "mixed",
    "prequential",
    "pretrain",
    "random_subsets",
    "save",
    "theory",
]


if not TYPE_CHECKING:  # with it, a type checker would accept any attribute of this module

    def __getattr__(name: str) -> Any:
        """Load the scikit-learn classifiers when they are first asked for: scikit-learn is slow to import."""
        if name.endswith("Classifier") and name in __all__:
            from bayesvote import estimators

            return getattr(estimators, name)
        raise AttributeError(f"module {__name__!r} has no attribute {name!r}")
