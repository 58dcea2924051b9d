"""The base class of experiments, which hold all facts of a table or figure.

A new experiment is a new object of one of these classes or of a new one, and one line in ``registry.py``.
"""

import re
from abc import ABC, abstractmethod
from collections.abc import Collection, Mapping, Sequence
from dataclasses import dataclass, field
from typing import Any, NamedTuple

from bayesvote.datasets import DATASETS
from bayesvote_paper.shown import Aim, ErrorTable, Shown, TextTable

Result = dict[str, Any]
Results = Sequence[Mapping[str, Any]]


class Job(NamedTuple):
    """The unit of work: an experiment on a kind of members, a data set, and an order of its rows."""

    experiment: str
    members: str
    dataset: str
    trial: int


def job_of(result: Mapping[str, Any]) -> Job:
    """Return the job of a result."""
    return Job(*(result[name] for name in Job._fields))


@dataclass(frozen=True, kw_only=True, eq=False)
class Experiment(ABC):
    """A table or figure: its members and data sets, the code that runs it, and the code that shows its results.

    Parameters
    ----------
    name
        Its name in results and on the command line, such as "table1".
    title
        A short title.
    members, sets
        The kinds of members and the data sets. The experiment runs on every pair of them.
    most_trials
        Maximum number of trials of large data sets.
    simulated_rows
        Number of rows of generated streams; 0 if ``sets`` are data sets.
    remark
        A remark for its readers.
    by_name_only
        If True, it runs only when it is named.
    """

    name: str
    title: str
    members: tuple[str, ...]
    sets: tuple[str, ...]
    most_trials: Mapping[str, int] = field(default_factory=dict)
    simulated_rows: int = 0
    remark: str = ""
    by_name_only: bool = False

    @abstractmethod
    def settings(self, job: Job) -> dict[str, Any]:
        """Return everything except the data on which the job's figures depend."""

    @abstractmethod
    def run(self, job: Job) -> Result:
        """Run a job and return its figures, which are stored with the job and its settings."""

    @abstractmethod
    def show(self, results: Results) -> Sequence[Shown]:
        """Return tables or plots of results that ``own_results`` returned."""

    def lead(self, trials: int) -> str:
        """Return the sentences above its tables or plots."""
        return " ".join(filter(None, (f"Mean over {trials} runs." if trials > 1 else "", self.remark)))

    def comparison(self, tables: Sequence[ErrorTable]) -> TextTable | None:  # noqa: ARG002
        """Return a comparison of its methods in counts and means, or None."""
        return None

    def aim(self, tables: Sequence[ErrorTable]) -> Aim | None:  # noqa: ARG002
        """Return its aim, with its result, or None."""
        return None

    @property
    def label(self) -> str:
        """Its name in a sentence, such as "table 1"."""
        return re.sub(r"(?<=[a-z])(?=\d)", " ", self.name)

    @property
    def heading(self) -> str:
        """Its name and title."""
        return f"{self.label.capitalize()}. {self.title}"

    def rows(self, dataset: str) -> int:
        """Return the approximate number of rows of one of its data sets."""
        return self.simulated_rows or DATASETS[dataset].whole.rows

    def jobs(self, datasets: Collection[str], trials: int) -> list[Job]:
        """Return its jobs on these data sets."""
        return [
            Job(self.name, members, dataset, trial)
            for members in self.members
            for dataset in self.sets
            if self.simulated_rows or dataset in datasets
            for trial in range(min(trials, self.most_trials.get(dataset, trials)))
        ]

    def includes(self, job: Job) -> bool:
        """Return True if the experiment has the job."""
        return job.experiment == self.name and job.members in self.members and job.dataset in self.sets

    def own_results(self, results: Results) -> Results:
        """Return its own results, sorted, because jobs end in any order and no figure may depend on it."""
        own = {job: line for line in results if self.includes(job := job_of(line))}
        return [
            own[job]
            for job in sorted(
                own, key=lambda job: (self.sets.index(job.dataset), self.members.index(job.members), job.trial)
            )
        ]
