"""Members: banks of weak classifiers, which are trained together."""

from collections.abc import Callable
from functools import partial
from inspect import signature
from typing import Any

from bayesvote.members.base import Bank
from bayesvote.members.external import EstimatorBank
from bayesvote.members.ferns import FernBank
from bayesvote.members.linear import LinearBank
from bayesvote.members.logistic import LogisticBank
from bayesvote.members.mixtures import adaptive, fast, mixed, tree
from bayesvote.members.naive_bayes import NaiveBayesBank
from bayesvote.members.neighbours import NeighbourBank
from bayesvote.members.perceptron import PerceptronBank
from bayesvote.members.subsets import random_subsets
from bayesvote.members.trees import TreeBank
from bayesvote.members.union import Union
from bayesvote.members.wrappers import Committees, Compact, Frozen, Scaled, pretrain, scaled

# Every kind of bank, by the name that estimators and the command line use. Model files can name no others.
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
# Presets: names for common settings.
PRESETS: dict[str, Callable[..., Bank[Any]]] = {
    "adaptive": adaptive,
    "averaged_perceptron": partial(PerceptronBank, averaged=True),
    "fast": fast,
    "mixed": mixed,
    "tree": tree,
}


def named() -> dict[str, Callable[..., Bank[Any]]]:
    """Return the banks that can be made from a number of members, by name."""
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
