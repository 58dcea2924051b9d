"""What is compared, on what, and with which settings: those of a method are the same on every data set.

The paper says that a member sees a random subset of the features, not how many: here it is half of them everywhere, the
members' default. The passes of frozen Perceptrons over their training rows were chosen among 1, 5 and 20 by the least
mean error of uniform voting, on orders of the rows that no table reports. That gives better members to every method,
voting included. ``reproduce settings`` runs that comparison, and shows what other subsets would have given.
"""

from collections.abc import Callable, Mapping
from functools import lru_cache
from typing import Any, NamedTuple

import numpy as np

from bayesvote._checks import Array, Labels
from bayesvote.datasets import DATASETS, load_dataset, scale
from bayesvote.experiments.published import ONLINE, STATIC
from bayesvote.members import Bank, NaiveBayesBank, PerceptronBank
from bayesvote.weighting import (
    SAG,
    SGD,
    AveragedSGD,
    GammaRate,
    GammaShape,
    GammaShapeRate,
    JointGaussian,
    Voting,
    Weighter,
)

N_MEMBERS = 100
MAX_FEATURES = 0.5
EPOCHS = 20
TRAIN_SHARE = 0.1  # of the rows, for members that are frozen afterwards
TABLE6_ROWS = 30_000
# Orders that no table reports, for choosing settings: so many trials further on.
CHOICE_TRIALS = 100
CHOICE_ROWS = 10_000
CHOICE_SHARES = (0.2, 0.35, 0.5, 0.65, 0.8)
CHOICE_EPOCHS = (1, 5, 20)
STEPS = (0.1, 1.0, 10.0, 100.0, 1_000.0, 10_000.0)  # of SGD and SAG, of which the best is found in hindsight
BETAS = tuple(10.0**k for k in range(-2, 4))
THETAS = tuple(10.0**k for k in range(-3, 2))
# Figure 4: simulated losses, uniform from 0.
CONVERGENCE: Mapping[str, Any] = {"streams": 1000, "rows": 10_000, "theta": 1.0, "losses_to": 0.6}


class Job(NamedTuple):
    """The unit of work: what is run, on which members and rows, in which order of the rows."""

    experiment: str
    members: str
    dataset: str
    trial: int


class Stream(NamedTuple):
    """A data set in the order of a trial."""

    X: Array
    y: Labels
    partial: bool


MEMBERS: Mapping[str, Callable[[int, float | None], Bank[Any]]] = {
    "perceptron": PerceptronBank,
    "averaged_perceptron": lambda m, f: PerceptronBank(m, f, averaged=True),
    "gaussian_naive_bayes": lambda m, f: NaiveBayesBank(m, f, kinds="gaussian"),
    "naive_bayes": NaiveBayesBank,
}
# The kinds of members in the paper's words, with the paper's members first and ours second.
BLOCKS: Mapping[str, tuple[str, str]] = {
    "perceptron": ("perceptron", "averaged_perceptron"),
    "naive_bayes": ("gaussian_naive_bayes", "naive_bayes"),
}
BOTH = tuple(name for pair in BLOCKS.values() for name in pair)


class Experiment(NamedTuple):
    """A table or figure: what it shows, on which members and sets, and over how many trials it is run."""

    title: str
    members: tuple[str, ...]
    sets: tuple[str, ...]
    trials: Mapping[str, int] = {}  # of the sets that have fewer than asked for


EXPERIMENTS: Mapping[str, Experiment] = {
    "table1": Experiment("Frozen Perceptrons, weights learned online", BLOCKS["perceptron"], STATIC),
    "table2": Experiment("Frozen naive Bayes, weights learned online", BLOCKS["naive_bayes"], STATIC),
    "table3": Experiment("Online Perceptrons beside online boosting", BLOCKS["perceptron"], ONLINE),
    "table4": Experiment("Online naive Bayes beside online boosting", BLOCKS["naive_bayes"], ONLINE),
    "table5": Experiment("Three losses for the weights of frozen members", BOTH, STATIC),
    "table6": Experiment(
        "The default classifier beside the best of other libraries",
        ("default",),
        tuple(DATASETS),
        {"adult": 2, "cod-rna": 2, "covtype": 2},
    ),
    "figure1": Experiment(
        "Error as learning goes on",
        ("perceptron", "gaussian_naive_bayes"),
        ("mushrooms", "breast-cancer", "australian"),
    ),
    "figure2": Experiment(
        "Sensitivity to the prior's rate beta", ("perceptron", "gaussian_naive_bayes"), ("heart", "mushrooms")
    ),
    "figure3": Experiment("Sensitivity to theta", ("perceptron", "gaussian_naive_bayes"), ("heart", "mushrooms")),
    "figure4": Experiment("Convergence to the best weights", ("simulated",), ("losses",)),
    "figure5": Experiment(
        "Weights with their 95% intervals along a stream", ("perceptron",), ("mushrooms",), {"mushrooms": 1}
    ),
    "figure6": Experiment("A stream that changes, with and without forgetting", ("perceptron",), ("drift",)),
    "settings": Experiment("How the settings were chosen", BOTH, tuple(DATASETS)),
}
DEFAULT = tuple(name for name in EXPERIMENTS if name != "settings")
MADE_UP = ("losses", "drift")


def jobs(experiments: tuple[str, ...], datasets: tuple[str, ...], trials: int) -> list[Job]:
    """All jobs of some experiments, those on the largest sets first, so that no long one is left for the end."""
    found = [
        Job(name, members, dataset, trial)
        for name in experiments
        for members in EXPERIMENTS[name].members
        for dataset in EXPERIMENTS[name].sets
        if dataset in datasets or dataset in MADE_UP
        for trial in range(min(trials, EXPERIMENTS[name].trials.get(dataset, trials)))
    ]
    order = {dataset: rows(dataset) for dataset in {job.dataset for job in found}}
    return sorted(found, key=lambda job: (-order[job.dataset], job.dataset))


def rows(dataset: str) -> int:
    """How many rows a set has, about."""
    return 10_000 if dataset in MADE_UP else DATASETS[dataset].whole.rows


@lru_cache(maxsize=1)
def _scaled(dataset: str) -> Stream:
    data = load_dataset(dataset, progress=False)
    X = data.X if isinstance(data.X, np.ndarray) else data.X.toarray()
    return Stream(np.asarray(scale(X)), data.y, data.partial)


def stream(dataset: str, trial: int) -> Stream:
    """A set with its features in [-1, 1], in the order of a trial."""
    data = _scaled(dataset)
    order = np.random.default_rng(trial).permutation(len(data.y))
    return Stream(data.X[order], data.y[order], data.partial)


def weighters(horizon: int) -> dict[str, Weighter[Any]]:
    """The ways to weigh frozen members that tables 1 and 2 compare, SGD and SAG with all their steps."""
    return {
        "Voting": Voting(),
        "SGD": SGD(),
        "AveragedSGD": AveragedSGD(),
        "SAG": SAG(horizon=horizon),
        "GammaRate": GammaRate(),
        "JointGaussian": JointGaussian(),
        **{f"SGD, step {step:g}": SGD(step) for step in STEPS},
        **{f"SAG, step {step:g}": SAG(step, horizon=horizon) for step in STEPS},
    }


# The paper's bounds on the counts of (19) and (22), beyond which its integrals did not converge.
LOSSES: Mapping[str, Weighter[Any]] = {
    "GammaRate": GammaRate(),
    "GammaShape": GammaShape(),
    "GammaShapeRate": GammaShapeRate(),
    "GammaShape, capped": GammaShape(cap=1000.0),
    "GammaShapeRate, capped": GammaShapeRate(cap=200.0),
    "Voting": Voting(),
}

# What table 6 compares: the default classifier, one kind of its members only, and its members with simpler weights.
ABLATION: Mapping[str, dict[str, Any]] = {
    "default": {},
    "averaged Perceptrons": {"members": "averaged_perceptron"},
    "naive Bayes": {"members": "naive_bayes"},
    "ferns": {"members": "fern"},
    "mixed, GammaRate": {"weighter": "gamma_rate"},
    "mixed, Voting": {"weighter": "voting"},
}


def settings(job: Job) -> dict[str, Any]:
    """Everything beside the data that a job's numbers depend on."""
    table = job.experiment
    found: dict[str, Any] = {"order_seed": job.trial, "members_seed": job.trial, "scaling": "each feature to [-1, 1]"}
    if table == "figure4":
        return {"seed": job.trial, **CONVERGENCE, "sgd_steps": "the best one, twice the best one"}
    if job.dataset in MADE_UP:
        return {"seed": job.trial}
    if table == "table6":
        return found | {
            "model": "BayesianEnsembleClassifier()",
            "rows_at_most": TABLE6_ROWS,
            "ablation": dict(ABLATION),
        }
    if table == "settings":
        return found | {"order_seed": CHOICE_TRIALS + job.trial, "rows_at_most": CHOICE_ROWS}
    found |= {"n_members": N_MEMBERS, "max_features": MAX_FEATURES, "loss": "logistic" if table == "table5" else "ramp"}
    found |= {"alpha": 1, "beta": 1, "theta": 0.1}
    if table == "table5":
        found |= {"a": 1, "b": 1, "c": 1, "p": 1, "q": 1, "r": 1.5, "s": 1, "loss_of_JointGaussian": "ramp"}
    if table not in ("table3", "table4"):
        found |= {"train_share": TRAIN_SHARE, "epochs": EPOCHS if "perceptron" in job.members else 1}
    return found
