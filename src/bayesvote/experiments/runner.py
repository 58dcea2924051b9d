"""Running experiments: in parallel, resumable, every result a line of JSON with its settings."""

import json
import os
from collections.abc import Callable, Iterable, Sequence
from pathlib import Path
from typing import Any

import joblib

from bayesvote._checks import integer, one_of
from bayesvote._files import replace_file
from bayesvote._versions import versions
from bayesvote.datasets import DATASETS, locate
from bayesvote.experiments import figures, setup, tables
from bayesvote.experiments.setup import EXPERIMENTS, Job

RUN: dict[str, Callable[[Job], dict[str, Any]]] = {
    "table1": tables.static,
    "table2": tables.static,
    "table3": tables.online,
    "table4": tables.online,
    "table5": tables.losses,
    "table6": tables.default,
    "settings": tables.settings,
    "figure1": figures.curves,
    "figure2": figures.sensitivity,
    "figure3": figures.sensitivity,
    "figure4": figures.convergence,
    "figure5": figures.weights,
    "figure6": figures.drift,
}

Progress = Callable[[int, int, str], None]


def reproduce(
    experiments: Sequence[str] = setup.DEFAULT,
    folder: str | os.PathLike[str] = "reproduced",
    *,
    trials: int = 5,
    datasets: Sequence[str] | None = None,
    jobs: int | None = None,
    on_progress: Progress | None = None,
) -> Path:
    """Run tables and figures of the paper, and of ours.

    Each line of the file that is written is one job: an experiment on one kind of members, one data set and one order
    of its rows, with every setting and seed, so that a rerun gives the same errors. Jobs that the file already has,
    with the same settings and version, are not run again.

    Parameters
    ----------
    experiments
        Names among "table1" to "table6", "figure1" to "figure6" and "settings"; by default all but the last.
    folder
        Where ``results.jsonl`` is written.
    trials
        Orders of the rows, each a seed from 0.
    datasets
        The sets to run on; by default all that are at hand without a download, see ``datasets.locate``.
    jobs
        How many processes; by default one per core.
    on_progress
        Called with the work done, all the work (both in rows), and what was done last.

    Returns
    -------
    Path
        The file.
    """
    for name in experiments:
        one_of("reproduce", "experiments", name, EXPERIMENTS)
    for name in datasets or ():
        one_of("reproduce", "datasets", name, DATASETS)
    integer("reproduce", "trials", trials)
    if jobs is not None:
        integer("reproduce", "jobs", jobs)
    at_hand = tuple(name for name in DATASETS if locate(name)[0] != "download")
    todo = setup.jobs(tuple(experiments), tuple(datasets or at_hand), trials)
    path = Path(folder) / "results.jsonl"
    path.parent.mkdir(parents=True, exist_ok=True)
    kept = [line for line in read(path) if _is_current(line)]
    replace_file(path, "".join(json.dumps(line) + "\n" for line in kept).encode())
    done = {_job(line) for line in kept}
    todo = [job for job in todo if job not in done]
    total, finished = sum(setup.rows(job.dataset) for job in todo), 0
    with path.open("a", encoding="utf-8") as file:
        for result in _results(todo, -1 if jobs is None else jobs):
            file.write(json.dumps(result) + "\n")
            file.flush()
            job = _job(result)
            finished += setup.rows(job.dataset)
            if on_progress:
                on_progress(finished, total, f"{job.experiment}, {job.dataset}, trial {job.trial + 1}")
    return path


def read(path: str | os.PathLike[str]) -> list[dict[str, Any]]:
    """Results of a file; a line that was cut off by an interruption is left out."""
    found: list[dict[str, Any]] = []
    if Path(path).exists():
        for line in Path(path).read_text(encoding="utf-8").splitlines():
            try:
                found.append(json.loads(line))
            except json.JSONDecodeError:
                continue
    return found


def _results(todo: list[Job], jobs: int) -> Iterable[dict[str, Any]]:
    if jobs == 1:
        return map(_result, todo)
    results: Iterable[dict[str, Any]] = joblib.Parallel(n_jobs=jobs, batch_size=1, return_as="generator_unordered")(
        joblib.delayed(_result)(job) for job in todo
    )
    return results


def _result(job: Job) -> dict[str, Any]:
    return job._asdict() | {"settings": setup.settings(job), "versions": versions()} | RUN[job.experiment](job)


def _job(result: dict[str, Any]) -> Job:
    return Job(*(result[name] for name in Job._fields))


def _is_current(result: dict[str, Any]) -> bool:
    job = _job(result)
    return bool(
        job.experiment in EXPERIMENTS
        and result["settings"] == json.loads(json.dumps(setup.settings(job)))
        and result["versions"] == versions()
    )
