"""The members: weak classifiers, many at a time."""

from bayesvote.members.base import Bank
from bayesvote.members.ferns import FernBank
from bayesvote.members.foreign import EstimatorBank
from bayesvote.members.frozen import Frozen, pretrain
from bayesvote.members.naive_bayes import NaiveBayesBank
from bayesvote.members.perceptron import PerceptronBank
from bayesvote.members.subsets import random_subsets
from bayesvote.members.union import Union, mixed

__all__ = [
    "Bank",
    "EstimatorBank",
    "FernBank",
    "Frozen",
    "NaiveBayesBank",
    "PerceptronBank",
    "Union",
    "mixed",
    "pretrain",
    "random_subsets",
]
