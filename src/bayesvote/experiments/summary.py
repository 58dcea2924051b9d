"""What the results say: means over trials, standard errors, the best of a row, and what cannot be told from it."""

from collections.abc import Iterable, Mapping, Sequence
from typing import Any, NamedTuple

import numpy as np

from bayesvote._checks import Array
from bayesvote.experiments.published import PAPER, PEERS
from bayesvote.experiments.setup import ABLATION, BLOCKS, EXPERIMENTS, STEPS

Results = Sequence[Mapping[str, Any]]

WEIGHTERS = (
    "single",
    "Voting",
    "SGD",
    "AveragedSGD",
    "SAG",
    "SGD, best step",
    "SAG, best step",
    "GammaRate",
    "JointGaussian",
)
BOOSTERS = ("single", "OzaBoost", "OGBoost", "OSBoost", "Voting", "GammaRate", "JointGaussian")
LOSSES = (
    "GammaRate",
    "GammaShape",
    "GammaShapeRate",
    "GammaShape, capped",
    "GammaShapeRate, capped",
    "Voting",
    "JointGaussian",
)
METHODS: Mapping[str, tuple[str, ...]] = {
    "table1": WEIGHTERS,
    "table2": WEIGHTERS,
    "table3": BOOSTERS,
    "table4": BOOSTERS,
    "table5": LOSSES,
    "table6": tuple(ABLATION),
}
TIED = 0.05  # a method whose paired difference to the best is less sure than this is called tied with it


class Entry(NamedTuple):
    """A cell of a table: the error's mean over trials and its standard error, the paper's figure if it has one."""

    mean: float
    error: float
    best: bool
    tied: bool
    published: float | None

    def reaches(self, published: float | None) -> bool:
        """Whether the mean is at or below a published figure, rounded as that is printed."""
        if published is None:
            return False
        digits = len(f"{published}".partition(".")[2])
        return round(self.mean, max(digits, 3)) <= published


class Row(NamedTuple):
    """A data set's errors by method."""

    dataset: str
    rows: int
    partial: bool
    entries: Mapping[str, Entry]


class Block(NamedTuple):
    """A table's rows for one kind of members."""

    experiment: str
    members: str
    methods: tuple[str, ...]
    rows: list[Row]


def kind(members: str) -> str:
    """The kind of members in the paper's words."""
    return next((name for name, pair in BLOCKS.items() if members in pair), members)


def blocks(results: Results) -> list[Block]:
    """The tables, those that there are results of."""
    found = []
    for experiment, methods in METHODS.items():
        for members in EXPERIMENTS[experiment].members:
            errors = _errors(results, experiment, members)
            paper = PAPER.get((experiment, kind(members)), {"default": PEERS})
            rows = [
                _row(lines[0], _methods([line["errors"] for line in lines], methods), dataset, paper)
                for dataset in EXPERIMENTS[experiment].sets
                if (lines := errors.get(dataset))
            ]
            if rows:
                found.append(Block(experiment, members, methods, rows))
    return found


def _errors(results: Results, experiment: str, members: str) -> dict[str, list[dict[str, Any]]]:
    """Results by set, in the order of the trials; those of boosters stand in both blocks, as they are the same."""
    pair = BLOCKS.get(kind(members), (members, members))
    of_both = {
        name: {
            (line["dataset"], line["trial"]): line
            for line in results
            if line["experiment"] == experiment and line["members"] == name
        }
        for name in pair
    }
    found: dict[str, list[dict[str, Any]]] = {}
    for dataset, trial in sorted(of_both[members], key=lambda place: place[1]):
        line = dict(of_both[members][dataset, trial])
        if (papers := of_both[pair[0]].get((dataset, trial))) is not None:
            line["errors"] = papers["errors"] | line["errors"]
        found.setdefault(dataset, []).append(line)
    return found


def _methods(errors: list[Mapping[str, float]], methods: Iterable[str]) -> dict[str, Array]:
    """Errors over the trials by method, with the step of SGD and SAG that is best in hindsight on these trials."""
    found = {name: np.array([one[name] for one in errors]) for name in errors[0] if all(name in one for one in errors)}
    for name in ("SGD", "SAG"):
        steps = [found[key] for step in STEPS if (key := f"{name}, step {step:g}") in found]
        if steps:
            found[f"{name}, best step"] = min(steps, key=lambda values: float(values.mean()))
    return {name: found[name] for name in methods if name in found}


def _row(
    line: Mapping[str, Any], errors: Mapping[str, Array], dataset: str, paper: Mapping[str, Mapping[str, float]]
) -> Row:
    means = {name: float(values.mean()) for name, values in errors.items()}
    best = min(means, key=means.__getitem__)
    entries = {
        name: Entry(
            means[name],
            _standard_error(values),
            means[name] == means[best],
            means[name] != means[best] and _chance(values - errors[best]) > TIED,
            paper.get(name, {}).get(dataset),
        )
        for name, values in errors.items()
    }
    return Row(dataset, line["rows"], line["partial"], entries)


def _standard_error(values: Array) -> float:
    return float(values.std(ddof=1) / np.sqrt(len(values))) if len(values) > 1 else float("nan")


def _chance(differences: Array) -> float:
    """Chance of differences as large as these if there were none: the paired t-test, two-sided."""
    from scipy.stats import ttest_1samp

    if len(differences) < 2:
        return 1.0
    if np.ptp(differences) < 1e-12:  # equal but for rounding
        return float(abs(differences[0]) < 1e-12)
    return float(ttest_1samp(differences, 0.0).pvalue)
