"""The weights: how much to trust each member, learned from its losses."""

from inspect import signature
from typing import Any

from bayesvote.weighting.base import Additive, Posterior, SumState, Weighter
from bayesvote.weighting.baselines import SAG, SGD, AveragedSGD, Voting
from bayesvote.weighting.gamma_rate import GammaRate
from bayesvote.weighting.gamma_shape import GammaShape, GammaShapeRate
from bayesvote.weighting.gaussian import FilterState, GaussianPosterior, Gaussians
from bayesvote.weighting.joint_gaussian import JointGaussian, JointState
from bayesvote.weighting.joint_logistic import JointLogistic
from bayesvote.weighting.laplace import LaplacePosterior, LaplaceState
from bayesvote.weighting.numerical import NumericalPosterior
from bayesvote.weighting.separable_sgd import DescentState, SeparableSGD

# Every kind of weighter, by the name that estimators and command line know. Model files can name no others.
WEIGHTERS: dict[str, type[Weighter[Any]]] = {
    "averaged_sgd": AveragedSGD,
    "gamma_rate": GammaRate,
    "gamma_shape": GammaShape,
    "gamma_shape_rate": GammaShapeRate,
    "joint_gaussian": JointGaussian,
    "joint_logistic": JointLogistic,
    "laplace": LaplacePosterior,
    "numerical": NumericalPosterior,
    "sag": SAG,
    "separable_sgd": SeparableSGD,
    "sgd": SGD,
    "voting": Voting,
}


def named() -> dict[str, type[Weighter[Any]]]:
    """Weighters that can be made from their name alone, or with parameters that are plain values."""
    return {
        name: kind
        for name, kind in WEIGHTERS.items()
        if all(parameter.default is not parameter.empty for parameter in signature(kind).parameters.values())
    }


__all__ = [
    "SAG",
    "SGD",
    "WEIGHTERS",
    "Additive",
    "AveragedSGD",
    "DescentState",
    "FilterState",
    "GammaRate",
    "GammaShape",
    "GammaShapeRate",
    "GaussianPosterior",
    "Gaussians",
    "JointGaussian",
    "JointLogistic",
    "JointState",
    "LaplacePosterior",
    "LaplaceState",
    "NumericalPosterior",
    "Posterior",
    "SeparableSGD",
    "SumState",
    "Voting",
    "Weighter",
    "named",
]
