"""The weights: how much to trust each member, learned from its losses."""

from bayesvote.weighting.base import Additive, Posterior, SumState, Weighter
from bayesvote.weighting.baselines import SAG, SGD, AveragedSGD, Voting
from bayesvote.weighting.gamma_rate import GammaRate
from bayesvote.weighting.gamma_shape import GammaShape, GammaShapeRate
from bayesvote.weighting.joint_gaussian import JointGaussian, JointState
from bayesvote.weighting.numerical import NumericalPosterior
from bayesvote.weighting.separable_sgd import DescentState, SeparableSGD

__all__ = [
    "SAG",
    "SGD",
    "Additive",
    "AveragedSGD",
    "DescentState",
    "GammaRate",
    "GammaShape",
    "GammaShapeRate",
    "JointGaussian",
    "JointState",
    "NumericalPosterior",
    "Posterior",
    "SeparableSGD",
    "SumState",
    "Voting",
    "Weighter",
]
