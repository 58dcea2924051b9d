"""Experiments that are tables of mean errors, with standard errors, the best of each row, and its ties."""

from collections.abc import Mapping
from dataclasses import dataclass, field

import numpy as np

from bayesvote.core.checks import Array
from bayesvote_paper.experiment import Experiment, Results
from bayesvote_paper.members import MEMBERS, in_words
from bayesvote_paper.shown import EQUAL, Entry, ErrorTable, Method, Row

TIED = 0.05  # a method is tied with the best if the p-value of their paired difference is above this

SINGLE = Method("single")
VOTING = Method("Voting")
GAMMA_RATE = Method("GammaRate", "Gamma\u00adRate (the paper's)", "Gamma Rate")
JOINT_GAUSSIAN = Method("JointGaussian", "Joint\u00adGaussian (ours)", "Joint")


@dataclass(frozen=True, kw_only=True, eq=False)
class Table(Experiment):
    """A table: a row for each set, a column for each method, a block for each kind of members.

    Parameters
    ----------
    methods
        Its columns.
    published
        Published figures for comparison, by kind of members, method and data set.
    digits
        Number of digits shown.
    reference, publisher
        The method whose published figures a terminal shows, and their source.
    """

    methods: tuple[Method, ...]
    published: Mapping[str, Mapping[str, Mapping[str, float]]] = field(default_factory=dict)
    digits: int = 3
    reference: str = "GammaRate"
    publisher: str = "paper"

    def lead(self, trials: int) -> str:
        """Return the explanation of the figures."""
        beside = "its standard error and the paper's figure" if self.published else "its standard error"
        return (
            f"Mean error over {trials} orders of the rows, with {beside}. "
            f"Ties are by a paired t-test at {TIED}. {self.remark}"
        ).strip()

    def caption(self, members: str) -> str:
        """Return the heading of the block of a kind of members."""
        return MEMBERS[members].caption

    def lines(self, results: Results, members: str) -> Results:
        """Return the results of a block."""
        return [line for line in results if line["members"] == members]

    def with_derived(self, errors: Mapping[str, Array]) -> Mapping[str, Array]:
        """Return the errors of the trials by method, including methods that are derived from others."""
        return errors

    def show(self, results: Results) -> list[ErrorTable]:
        """Return a table for each kind of members that has results."""
        found = []
        for members in self.members:
            lines = self.lines(results, members)
            sets = [name for name in self.sets if any(line["dataset"] == name for line in lines)]
            rows = [self._row(members, name, [line for line in lines if line["dataset"] == name]) for name in sets]
            if rows:
                title = self.heading + (f": {in_words(members)}" if len(self.members) > 1 else "")
                found.append(
                    ErrorTable(
                        self.name,
                        members,
                        title,
                        self.caption(members),
                        self.methods,
                        rows,
                        self.digits,
                        self.reference,
                        self.publisher,
                    )
                )
        return found

    def _row(self, members: str, dataset: str, lines: Results) -> Row:
        trials = [line["errors"] for line in lines]
        in_all = [name for name in trials[0] if all(name in one for one in trials)]
        known = self.with_derived({name: np.array([one[name] for one in trials]) for name in in_all})
        errors = {method.name: known[method.name] for method in self.methods if method.name in known}
        means = {name: float(values.mean()) for name, values in errors.items()}
        best = min(means, key=means.__getitem__)
        published = self.published.get(MEMBERS[members].kind if members in MEMBERS else members, {})
        entries = {
            name: Entry(
                means[name],
                _standard_error(values),
                means[name] == means[best],
                means[name] != means[best] and _p_value(values - errors[best]) > TIED,
                published.get(name, {}).get(dataset),
            )
            for name, values in errors.items()
        }
        return Row(dataset, lines[0]["rows"], lines[0]["partial"], entries)


def columns(sets: tuple[str, ...], **errors: str) -> Mapping[str, Mapping[str, float]]:
    """Return published errors by method and data set, from columns of numbers."""
    return {method: dict(zip(sets, map(float, numbers.split()), strict=True)) for method, numbers in errors.items()}


def _standard_error(values: Array) -> float:
    return float(values.std(ddof=1) / np.sqrt(len(values))) if len(values) > 1 else float("nan")


def _p_value(differences: Array) -> float:
    """Return the p-value of the two-sided paired t-test."""
    from scipy.stats import ttest_1samp

    if len(differences) < 2:
        return 1.0
    if np.ptp(differences) < EQUAL:  # all differences are equal, so the test has no variance
        return float(abs(differences[0]) < EQUAL)
    return float(ttest_1samp(differences, 0.0).pvalue)
