"""Table 7 and figure 7: errors on changing streams, overall, after each change, and over time."""

from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any

from bayesvote.evaluation import prequential
from bayesvote_paper.changing import ROWS, STREAMS
from bayesvote_paper.experiment import Job, Result
from bayesvote_paper.figure import Figure, spaced
from bayesvote_paper.shown import Method
from bayesvote_paper.table import Table

AFTER = 1000  # rows after a change
WHOLE, JUST_AFTER = "whole", "after changes"
OPTIONS: Mapping[str, dict[str, Any]] = {
    "default": {},
    "fast": {"members": "fast"},
    "weights that do not drift": {"weighter": "joint_logistic"},
    "default of 0.1": {"members": "mixed", "weighter": "joint_gaussian", "scale": False},
}


def _settings(job: Job) -> dict[str, Any]:
    return {"seed": job.trial, "options": {name: dict(options) for name, options in OPTIONS.items()}}


def _models(job: Job) -> dict[str, Any]:
    from bayesvote.estimators import BayesianEnsembleClassifier

    return {name: BayesianEnsembleClassifier(**options, random_state=job.trial) for name, options in OPTIONS.items()}


@dataclass(frozen=True, kw_only=True, eq=False)
class ChangingTable(Table):
    """Errors on all rows, or on those after a change."""

    def settings(self, job: Job) -> dict[str, Any]:
        """Return the classifiers, the seed, and the rows that count."""
        return _settings(job) | {"after": AFTER if job.members == JUST_AFTER else None}

    def run(self, job: Job) -> Result:
        """Return the errors on a stream."""
        data = STREAMS[job.dataset](job.trial)
        done = prequential(_models(job), data.X, data.y)
        counted = data.after_changes(AFTER) if job.members == JUST_AFTER else slice(None)
        return {
            "rows": len(data.y),
            "partial": False,
            "errors": {name: float(one.mistakes[counted].mean()) for name, one in done.items()},
            "seconds": {name: round(one.seconds, 4) for name, one in done.items()},
        }

    def jobs(self, datasets: Any, trials: int) -> list[Job]:
        """Return all jobs, except the error after changes on streams that change all the time."""
        steady = {name for name, make in STREAMS.items() if not make(0).changes}
        return [job for job in super().jobs(datasets, trials) if job.members == WHOLE or job.dataset not in steady]

    def caption(self, members: str) -> str:
        """Return the name of the rows that count."""
        return "All rows" if members == WHOLE else f"The {AFTER:,} rows after each change"


@dataclass(frozen=True, kw_only=True, eq=False)
class ChangingCurves(Figure):
    """Windowed errors, with the rows of the changes."""

    def shown_as(self, dataset: str) -> str:
        """Return the name of the stream and the rows of its changes."""
        changes = STREAMS[dataset](0).changes
        return f"{dataset}; it changes at {', '.join(f'{row:,}' for row in changes)}" if changes else dataset

    def settings(self, job: Job) -> dict[str, Any]:
        """Return the classifiers and the seed."""
        return _settings(job)

    def run(self, job: Job) -> Result:
        """Return a curve for each classifier."""
        data = STREAMS[job.dataset](job.trial)
        done = prequential(_models(job), data.X, data.y)
        at = spaced(len(data.y))
        return {"x": (at + 1).tolist(), "series": {name: one.windowed(500)[at].tolist() for name, one in done.items()}}


TABLE7 = ChangingTable(
    name="table7",
    title="Streams that change",
    members=(WHOLE, JUST_AFTER),
    sets=tuple(STREAMS),
    most_trials={"weather": 1},
    simulated_rows=ROWS,
    methods=tuple(Method(name) for name in OPTIONS),
    reference="default",
)
FIGURE7 = ChangingCurves(
    name="figure7",
    title="Streams that change",
    members=("default",),
    sets=("SEA", "Agrawal, abrupt", "sine, recurring", "weather"),
    most_trials=dict.fromkeys(("SEA", "Agrawal, abrupt", "sine, recurring", "weather"), 1),
    simulated_rows=ROWS,
    x_label="rows",
    y_label="error of the last 500 rows",
)
