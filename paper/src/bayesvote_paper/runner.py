"""Run experiments in parallel, and store every result as a line of JSON with its settings."""

import json
import os
from collections.abc import Callable, Collection, Iterable, Sequence
from itertools import starmap
from pathlib import Path
from typing import Any

import joblib

from bayesvote.core.checks import integer, one_of
from bayesvote.core.files import replace_file
from bayesvote.core.version import versions
from bayesvote.datasets import DATASETS, locate
from bayesvote_paper.experiment import Experiment, Job, Result, job_of
from bayesvote_paper.registry import EXPERIMENTS

Progress = Callable[[int, int, str], None]


def reproduce(
    experiments: Sequence[str] | None = None,
    folder: str | os.PathLike[str] = "reproduced",
    *,
    trials: int = 5,
    datasets: Sequence[str] | None = None,
    jobs: int | None = None,
    on_progress: Progress | None = None,
    engine: Callable[..., Iterable[tuple[int, Any]]] | None = None,
) -> Path:
    """Run experiments: the paper's tables and figures, and further ones.

    Each line of the written file is one job: an experiment on one kind of members, one data set and one order of its
    rows. It has every setting and seed, so that another run gives the same errors. Jobs that are in the file already,
    with the same settings and version, are not run again.

    Parameters
    ----------
    experiments
        Names of `EXPERIMENTS`: "table1" to "table7", "figure1" to "figure7" and "settings". Default: all except
        "settings".
    folder
        Folder of ``results.jsonl``.
    trials
        Number of orders of the rows, with seeds from 0.
    datasets
        Data sets to run on. Default: all that need no download, see ``datasets.locate``.
    jobs
        Number of processes. Default: one per core.
    on_progress
        Function that is called with the finished work and the total work, both in rows, and the last job.
    engine
        Engine of :mod:`bayesvote.distributed` that runs the jobs by its ``map``, instead of local processes.

    Returns
    -------
    Path
        The file.
    """
    for name in experiments or ():
        one_of("reproduce", "experiments", name, EXPERIMENTS)
    for name in datasets or ():
        one_of("reproduce", "datasets", name, DATASETS)
    integer("reproduce", "trials", trials)
    if jobs is not None:
        integer("reproduce", "jobs", jobs)
    at_hand = tuple(name for name in DATASETS if locate(name)[0] != "download")
    if experiments is None:
        experiments = [name for name, one in EXPERIMENTS.items() if not one.by_name_only]
    path = Path(folder) / "results.jsonl"
    path.parent.mkdir(parents=True, exist_ok=True)
    kept = [line for line in read(path) if _is_current(line)]
    replace_file(path, "".join(json.dumps(line) + "\n" for line in kept).encode())
    done = {job_of(line) for line in kept}
    todo = [job for job in jobs_of(experiments, datasets or at_hand, trials) if job not in done]
    total, finished = sum(map(_rows, todo)), 0
    with path.open("a", encoding="utf-8") as file:
        for result in _results(todo, -1 if jobs is None else jobs) if engine is None else _on(engine, todo):
            file.write(json.dumps(result) + "\n")
            file.flush()
            job = job_of(result)
            finished += _rows(job)
            if on_progress:
                on_progress(finished, total, f"{job.experiment}, {job.dataset}, trial {job.trial + 1}")
    return path


def read(path: str | os.PathLike[str]) -> list[Result]:
    """Return the results of a file, without a last line that an interruption cut off."""
    found: list[Result] = []
    if Path(path).exists():
        for line in Path(path).read_text(encoding="utf-8").splitlines():
            try:
                found.append(json.loads(line))
            except json.JSONDecodeError:
                continue
    return found


def jobs_of(experiments: Iterable[str], datasets: Collection[str], trials: int) -> list[Job]:
    """Return all jobs of some experiments, those on the largest data sets first, so that no long job comes last."""
    found = (job for name in experiments for job in EXPERIMENTS[name].jobs(datasets, trials))
    return sorted(found, key=lambda job: (-_rows(job), job.dataset))


def _rows(job: Job) -> int:
    return EXPERIMENTS[job.experiment].rows(job.dataset)


def _results(todo: Sequence[Job], processes: int) -> Iterable[Result]:
    work = [(EXPERIMENTS[job.experiment], job) for job in todo]
    if processes == 1:
        return starmap(_result, work)
    results: Iterable[Result] = joblib.Parallel(n_jobs=processes, batch_size=1, return_as="generator_unordered")(
        joblib.delayed(_result)(experiment, job) for experiment, job in work
    )
    return results


def _on(engine: Callable[..., Iterable[tuple[int, Any]]], todo: Sequence[Job]) -> Iterable[Result]:
    """Yield results as the engine finishes them. A failed job raises its error after all others are done."""
    done, failed = set(), {}
    for place, answer in engine(_of_engine, todo):
        if isinstance(answer, dict) and place not in done:
            done.add(place)
            yield answer
        elif place not in done:
            failed[place] = answer
    for place, answer in failed.items():
        raise RuntimeError(f"reproduce: {todo[place]} must run through, got {answer}")


def _of_engine(job: Job, shared: Sequence[Any]) -> Result:  # noqa: ARG001
    return _result(EXPERIMENTS[job.experiment], job)


def _result(experiment: Experiment, job: Job) -> Result:
    return job._asdict() | {"settings": experiment.settings(job), "versions": versions()} | experiment.run(job)


def _is_current(result: Result) -> bool:
    """Return True if a job would now run with the same settings and versions."""
    job = job_of(result)
    experiment = EXPERIMENTS.get(job.experiment)
    return bool(
        experiment
        and experiment.includes(job)
        and result["settings"] == json.loads(json.dumps(experiment.settings(job)))
        and result["versions"] == versions()
    )
