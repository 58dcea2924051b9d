"""Training and experiments on many processes: the options, and learning from shards."""

import time
from dataclasses import dataclass, replace
from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Any

import typer

from bayesvote.apps.cli.errors import usage

if TYPE_CHECKING:
    from bayesvote.apps.cli.settings import RunSettings

_ENGINES = ("dask", "loop")


def check_engine(value: str | None) -> str | None:
    """Check the name of an engine."""
    if value not in (None, *_ENGINES):
        raise typer.BadParameter(f"it must be one of {', '.join(_ENGINES)}, got {value!r}.")
    return value


def _bad_shards(value: str) -> str:
    if value not in ("error", "skip"):
        raise typer.BadParameter(f"it must be error or skip, got {value!r}.")
    return value


def _option(*names: str, **settings: Any) -> Any:
    return typer.Option(*names, rich_help_panel="Shards", **settings)


EngineName = Annotated[
    str | None,
    _option(
        metavar="NAME",
        callback=check_engine,
        help="Train on many files in parallel with dask, or in one process with loop. FILE must then be a quoted glob; "
        "each file is one shard.",
    ),
]
Workers = Annotated[
    int | None, _option(min=1, metavar="N", help="Number of worker processes on this machine; one per core by default.")
]
Scheduler = Annotated[
    str | None, _option(metavar="ADDRESS", help="Address of a running Dask scheduler, such as tls://node:8786.")
]
Insecure = Annotated[
    bool,
    _option(
        "--insecure",
        help="Allow a scheduler on another machine without TLS. Anyone who can reach it can then run code.",
    ),
]
RecordFolder = Annotated[
    Path | None,
    _option(
        metavar="FOLDER", help="Save the results of finished shards in this folder. Rerun the same command to resume."
    ),
]
BadShards = Annotated[
    str,
    _option(metavar="NAME", callback=_bad_shards, help="What to do with files that fail: error or skip."),
]
TimeLimit = Annotated[
    float | None, _option(min=0.001, metavar="SECONDS", help="Abort with an error after this many seconds.")
]


@dataclass(frozen=True)
class Sharding:
    """The engine that does the work, and how failing shards are handled."""

    engine: EngineName = None
    workers: Workers = None
    scheduler: Scheduler = None
    insecure: Insecure = False
    record: RecordFolder = None
    bad_shards: BadShards = "error"
    time_limit: TimeLimit = None

    def check(self) -> None:
        """Raise an error for options that need others."""
        given: dict[str, Any] = {
            "--workers": self.workers,
            "--scheduler": self.scheduler,
            "--insecure": self.insecure or None,
        }
        shards: dict[str, Any] = {"--record": self.record, "--time-limit": self.time_limit}
        shards["--bad-shards"] = None if self.bad_shards == "error" else self.bad_shards
        for option, value in (given | shards).items():
            if value is not None and self.engine is None:
                raise typer.BadParameter("it needs --engine.", param_hint=option)
            if value is not None and self.engine != "dask" and option in given:
                raise typer.BadParameter("it needs --engine dask.", param_hint=option)
        if self.workers is not None and self.scheduler is not None:
            raise typer.BadParameter("a scheduler has its own workers.", param_hint="--workers")

    def refuse(self, options: dict[str, Any]) -> None:
        """Raise an error for options that only apply to a single stream."""
        for option, value in options.items():
            if value is not None:
                raise typer.BadParameter("it cannot be used with --engine.", param_hint=option)

    def started(self) -> Any:
        """Return the engine, a context manager; None without ``--engine``."""
        if self.engine is None:
            return None
        from bayesvote.apps.distributed import Dask, Loop

        if self.engine == "loop":
            return Loop()
        with usage():
            return Dask(self.workers, scheduler=self.scheduler, insecure=self.insecure)

    def learn(self, file: str, settings: "RunSettings", *, model_out: Path | None, as_json: bool) -> int:
        """Learn from the files of a glob, and show the result; return the exit code."""
        from bayesvote.apps.cli import show
        from bayesvote.apps.distributed import Job
        from bayesvote.io.model_file import save

        model_name, delay = settings.model.model, settings.labels.delay
        wrong = {"FILE": file == "-", "--model": model_name != "bayesian", "--delay": bool(delay)}
        for option, is_wrong in wrong.items():
            if is_wrong:
                raise typer.BadParameter("this value cannot be used with --engine.", param_hint=option)
        with usage():
            classifier: Any = settings.classifier()
        classes = settings.labels.named() or None
        start = time.perf_counter()
        engine = self.started()
        with _Bar() as bar, engine:
            if engine.link:
                show.note(f"Dask's dashboard: {engine.link}")
            job = Job(
                engine,
                record=self.record,
                bad_shards=self.bad_shards,
                time_limit=self.time_limit,
                on_progress=bar.show,
            )
            named = _numbers(classes)
            text = named is not None and isinstance(named[0], str)
            reading = replace(settings.reading, labels="text" if text else "auto")
            model = job.fit(file, classifier, reading=reading, classes=named)
            error = job.error(model)
        if model_out is not None:
            save(model, model_out)
        figures = {
            "files": file,
            "shards": job.n_shards - len(job.skipped),
            "skipped_shards": job.skipped,
            "duplicates": job.duplicates,
            "rows": job.n_rows,
            "members": model.model_.total_members,
            "weighter": model.weighter,
            "error": error,
            "classes": model.classes_.tolist(),
            "features": model.n_features_in_,
            "seconds": time.perf_counter() - start,
            "settings": settings.stored(),
            "model": model_out and str(model_out),
        }
        if as_json:
            show.as_json(figures)
        else:
            _print(figures)
        for name, fault in job.skipped.items():
            show.note(f"Skipped {name}: {fault}")
        if job.duplicates:
            show.note(f"{len(job.duplicates)} files were given twice, and used once: {', '.join(job.duplicates[:5])}")
        return 0


class _Bar:
    """Progress bar over the shards, with the remaining time."""

    def __enter__(self) -> "_Bar":
        from rich.progress import BarColumn, MofNCompleteColumn, TextColumn, TimeRemainingColumn

        from bayesvote.apps.cli import show

        columns = TextColumn("{task.description}"), BarColumn(bar_width=20), MofNCompleteColumn(), TimeRemainingColumn()
        self._progress = show.progress(*columns)
        self._bar = self._progress.__enter__()
        self._tasks: dict[str, Any] = {}
        return self

    def __exit__(self, *error: Any) -> None:
        self._progress.__exit__(*error)

    def show(self, at: Any) -> None:
        """Show the progress of a stage."""
        if at.stage not in self._tasks:
            self._tasks[at.stage] = self._bar.add_task(_WORDS[at.stage], total=at.total)
        failed = f", {at.failed} failed" if at.failed else ""
        self._bar.update(
            self._tasks[at.stage], completed=at.done, total=at.total, description=_WORDS[at.stage] + failed
        )


_WORDS = {
    "survey": "Finding labels",
    "columns": "Reading columns",
    "train": "Training members",
    "weigh": "Learning weights",
    "check": "Calibrating",
}


def _numbers(classes: Any) -> Any:
    """Convert labels to numbers if all of them are numbers."""
    from bayesvote.io.labels import is_code

    if not classes:
        return None
    for kind in () if any(map(is_code, classes)) else (int, float):
        try:
            return [kind(text) for text in classes]
        except ValueError:
            continue
    return classes


def _print(figures: dict[str, Any]) -> None:
    from bayesvote.apps.cli import show

    replaced = figures["settings"]["weighter"] in (None, "drifting")
    facts = {
        "shards": f"{figures['shards']:,}"
        + (f", {len(figures['skipped_shards'])} skipped" * bool(figures["skipped_shards"])),
        "rows": f"{figures['rows']:,}",
        "members": f"{figures['members']:,}, trained on shards and frozen",
        "weights": figures["weighter"] + ", as drifting needs the rows in order" * replaced,
        "error": f"{figures['error']:.4f} on the first rows of every shard, by members not trained on them",
        "time": f"{figures['seconds']:.2f} s",
    }
    if figures["model"]:
        facts["written"] = figures["model"]
    show.console().print(show.facts(facts))
