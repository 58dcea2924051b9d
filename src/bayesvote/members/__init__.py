"""The members: weak classifiers, many at a time."""

from collections.abc import Callable
from functools import partial
from inspect import signature
from typing import Any

from bayesvote.members.base import Bank
from bayesvote.members.committees import Committees
from bayesvote.members.compact import Compact
from bayesvote.members.external import EstimatorBank
from bayesvote.members.ferns import FernBank
from bayesvote.members.frozen import Frozen, pretrain
from bayesvote.members.linear import LinearBank
from bayesvote.members.logistic import LogisticBank
from bayesvote.members.mixtures import adaptive, fast, mixed, tree
from bayesvote.members.naive_bayes import NaiveBayesBank
from bayesvote.members.neighbours import NeighbourBank
from bayesvote.members.perceptron import PerceptronBank
from bayesvote.members.scaled import Scaled, scaled
from bayesvote.members.subsets import random_subsets
from bayesvote.members.trees import TreeBank
from bayesvote.members.union import Union

# Every kind of bank, by the name that estimators and command line know. Model files can name no others.
BANKS: dict[str, type[Bank[Any]]] = {
    "committees": Committees,
    "compact": Compact,
    "estimators": EstimatorBank,
    "fern": FernBank,
    "frozen": Frozen,
    "linear": LinearBank,
    "logistic": LogisticBank,
    "naive_bayes": NaiveBayesBank,
    "neighbour": NeighbourBank,
    "perceptron": PerceptronBank,
    "scaled": Scaled,
    "tree": TreeBank,
    "union": Union,
}
# Presets: further names for common settings.
PRESETS: dict[str, Callable[..., Bank[Any]]] = {
    "adaptive": adaptive,
    "averaged_perceptron": partial(PerceptronBank, averaged=True),
    "fast": fast,
    "mixed": mixed,
    "tree": tree,
}


def named() -> dict[str, Callable[..., Bank[Any]]]:
    """Banks that can be made from a number of members, by name."""
    return {name: bank for name, bank in BANKS.items() if "n_members" in signature(bank).parameters} | PRESETS


__all__ = [
    "BANKS",
    "PRESETS",
    "Bank",
    "Committees",
    "Compact",
    "EstimatorBank",
    "FernBank",
    "Frozen",
    "LinearBank",
    "LogisticBank",
    "NaiveBayesBank",
    "NeighbourBank",
    "PerceptronBank",
    "Scaled",
    "TreeBank",
    "Union",
    "adaptive",
    "fast",
    "mixed",
    "named",
    "pretrain",
    "random_subsets",
    "scaled",
]
