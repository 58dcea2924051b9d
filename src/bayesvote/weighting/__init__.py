"""The weights: how much to trust each member, learned from its losses."""

from collections.abc import Callable
from inspect import signature
from typing import Any

from bayesvote.weighting.base import Additive, Posterior, SumState, Weighter
from bayesvote.weighting.baselines import SAG, SGD, AveragedSGD, Voting
from bayesvote.weighting.drifting import DriftingJointGaussian, FilterState
from bayesvote.weighting.gamma_rate import GammaRate
from bayesvote.weighting.gamma_shape import GammaShape, GammaShapeRate
from bayesvote.weighting.gaussian import GaussianPosterior, Gaussians
from bayesvote.weighting.joint_gaussian import JointGaussian, JointState
from bayesvote.weighting.joint_logistic import JointLogistic, drifting
from bayesvote.weighting.laplace import LaplacePosterior, LaplaceState
from bayesvote.weighting.numerical import NumericalPosterior
from bayesvote.weighting.separable_sgd import DescentState, SeparableSGD

# Every kind of weighter, by the name that estimators and command line know. Model files can name no others.
WEIGHTERS: dict[str, type[Weighter[Any]]] = {
    "averaged_sgd": AveragedSGD,
    "drifting_joint_gaussian": DriftingJointGaussian,
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
# Presets: further names for common settings.
PRESETS: dict[str, Callable[..., Weighter[Any]]] = {"drifting": drifting}


def named() -> dict[str, Callable[..., Weighter[Any]]]:
    """Weighters that can be made from their name alone, or with parameters that are plain values."""
    return PRESETS | {
        name: kind
        for name, kind in WEIGHTERS.items()
        if all(parameter.default is not parameter.empty for parameter in signature(kind).parameters.values())
    }


__all__ = [
    "PRESETS",
    "SAG",
    "SGD",
    "WEIGHTERS",
    "Additive",
    "AveragedSGD",
    "DescentState",
    "DriftingJointGaussian",
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
    "drifting",
    "named",
]
