"""What an experiment is: all facts of a table or figure in one object.

A new experiment is a new object of one of these classes, or of a class of its own, and one line in ``registry.py``.
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
    """The unit of work: what is run, on which members and rows, in which order of the rows."""

    experiment: str
    members: str
    dataset: str
    trial: int


def job_of(result: Mapping[str, Any]) -> Job:
    """The job that gave a result."""
    return Job(*(result[name] for name in Job._fields))


@dataclass(frozen=True, kw_only=True, eq=False)
class Experiment(ABC):
    """A table or figure: what it shows, on which members and sets, how it is run, and how its results are shown.

    Parameters
    ----------
    name
        Its name in results and on the command line, such as "table1".
    title
        What it shows, in a few words.
    members, sets
        The kinds of members and the data sets; it is run on every pair of them.
    most_trials
        The most trials of a set that is too large for as many as are asked for.
    simulated_rows
        How many rows its streams have if it makes them itself; 0 if ``sets`` are data sets.
    remark
        What a reader has to know to understand it.
    by_name_only
        Whether it runs only when it is named.
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
        """Everything but the data that a job's numbers depend on."""

    @abstractmethod
    def run(self, job: Job) -> Result:
        """Do a job; its line in the results has what is returned, beside the job and its settings."""

    @abstractmethod
    def show(self, results: Results) -> Sequence[Shown]:
        """Turn results, as ``own_results`` gives them, into tables or plots."""

    def lead(self, trials: int) -> str:
        """The sentences above its tables or plots."""
        return " ".join(filter(None, (f"Mean over {trials} runs." if trials > 1 else "", self.remark)))

    def comparison(self, tables: Sequence[ErrorTable]) -> TextTable | None:  # noqa: ARG002
        """What its tables say, in counts and means, if there is something to say."""
        return None

    def aim(self, tables: Sequence[ErrorTable]) -> Aim | None:  # noqa: ARG002
        """What was aimed at with it, if anything, and whether its tables reach it."""
        return None

    @property
    def label(self) -> str:
        """Its name as it stands in a sentence, such as "table 1"."""
        return re.sub(r"(?<=[a-z])(?=\d)", " ", self.name)

    @property
    def heading(self) -> str:
        """Its name and title."""
        return f"{self.label.capitalize()}. {self.title}"

    def rows(self, dataset: str) -> int:
        """About how many rows one of its sets has."""
        return self.simulated_rows or DATASETS[dataset].whole.rows

    def jobs(self, datasets: Collection[str], trials: int) -> list[Job]:
        """Its jobs on these data sets."""
        return [
            Job(self.name, members, dataset, trial)
            for members in self.members
            for dataset in self.sets
            if self.simulated_rows or dataset in datasets
            for trial in range(min(trials, self.most_trials.get(dataset, trials)))
        ]

    def includes(self, job: Job) -> bool:
        """Whether a job belongs to it."""
        return job.experiment == self.name and job.members in self.members and job.dataset in self.sets

    def own_results(self, results: Results) -> Results:
        """Its own results, sorted: jobs end in any order, and no figure may depend on that."""
        own = {job: line for line in results if self.includes(job := job_of(line))}
        return [
            own[job]
            for job in sorted(
                own, key=lambda job: (self.sets.index(job.dataset), self.members.index(job.members), job.trial)
            )
        ]
