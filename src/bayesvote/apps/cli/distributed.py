"""``run`` and ``reproduce`` on many processes: the options, and learning from shards."""

import time
from dataclasses import asdict, dataclass
from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Any

import typer

from bayesvote.apps.cli.errors import usage

if TYPE_CHECKING:
    from bayesvote.apps.cli.settings import Settings

_ENGINES = ("dask", "loop")


def _engine(value: str | None) -> str | None:
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
        callback=_engine,
        help="dask, or loop for one process. FILE is then a glob in quotes, and each file a shard.",
    ),
]
Workers = Annotated[
    int | None, _option(min=1, metavar="N", help="Worker processes on this machine; one per core by default.")
]
Scheduler = Annotated[
    str | None, _option(metavar="ADDRESS", help="A Dask scheduler that runs already, such as tls://node:8786.")
]
Insecure = Annotated[
    bool, _option("--insecure", help="Talk to a scheduler on another machine without TLS. Dask runs what it is sent.")
]
RecordFolder = Annotated[
    Path | None, _option(metavar="FOLDER", help="Keeps finished shards; the same command goes on from there.")
]
BadShards = Annotated[
    str,
    _option(metavar="NAME", callback=_bad_shards, help="What to do with a file that cannot be learned: error or skip."),
]
TimeLimit = Annotated[float | None, _option(min=0.001, metavar="SECONDS", help="Stop with an error after so long.")]


@dataclass(frozen=True)
class Sharding:
    """What does the work, and what becomes of shards that fail."""

    name: str | None
    workers: int | None = None
    scheduler: str | None = None
    insecure: bool = False
    record: Path | None = None
    bad_shards: str = "error"
    time_limit: float | None = None

    def check(self) -> None:
        """Refuse options that need others."""
        given: dict[str, Any] = {
            "--workers": self.workers,
            "--scheduler": self.scheduler,
            "--insecure": self.insecure or None,
        }
        shards: dict[str, Any] = {"--record": self.record, "--time-limit": self.time_limit}
        shards["--bad-shards"] = None if self.bad_shards == "error" else self.bad_shards
        for option, value in (given | shards).items():
            if value is not None and self.name is None:
                raise typer.BadParameter("it needs --engine.", param_hint=option)
            if value is not None and self.name != "dask" and option in given:
                raise typer.BadParameter("it needs --engine dask.", param_hint=option)
        if self.workers is not None and self.scheduler is not None:
            raise typer.BadParameter("a scheduler has workers of its own.", param_hint="--workers")

    def refuse(self, options: dict[str, Any]) -> None:
        """Refuse options that only a single stream has."""
        for option, value in options.items():
            if value is not None:
                raise typer.BadParameter("shards have none. Leave out --engine, or this.", param_hint=option)

    def engine(self) -> Any:
        """The engine, which is to be entered; None if none is asked for."""
        if self.name is None:
            return None
        from bayesvote.apps.distributed import Dask, Loop

        if self.name == "loop":
            return Loop()
        with usage():
            return Dask(self.workers, scheduler=self.scheduler, insecure=self.insecure)

    def learn(self, file: str, settings: "Settings", *, model_out: Path | None, as_json: bool) -> int:
        """Learn from the files that a glob names, and show the result; return the exit code."""
        from bayesvote.apps.cli import show
        from bayesvote.apps.distributed import Job, Reading
        from bayesvote.io.model_file import save

        if file == "-" or settings.model != "bayesian" or settings.delay:
            what = {"FILE": file == "-", "--model": settings.model != "bayesian", "--delay": bool(settings.delay)}
            raise typer.BadParameter("it must be left as it is with --engine.", param_hint=next(filter(what.get, what)))
        with usage():
            classifier: Any = settings.classifier()
        classes = settings.named_classes() or None
        start = time.perf_counter()
        engine = self.engine()
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
            reading = Reading(**settings.reading(), labels="text" if text else "auto")
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
            "settings": asdict(settings),
            "model": model_out and str(model_out),
        }
        if as_json:
            show.as_json(figures)
        else:
            _print(figures)
        for name, fault in job.skipped.items():
            show.note(f"Skipped {name}: {fault}")
        if job.duplicates:
            show.note(
                f"{len(job.duplicates)} files were named twice, and counted once: {', '.join(job.duplicates[:5])}"
            )
        return 0


class _Bar:
    """Progress over the shards, and the time left."""

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
        """Show how far a stage is."""
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
    "weigh": "Weighing them",
    "check": "Calibrating",
}


def _numbers(classes: Any) -> Any:
    """Labels as numbers, if they all are."""
    from bayesvote.io.open_stream import is_code

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

    instead = figures["settings"]["weighter"] in (None, "drifting")
    facts = {
        "shards": f"{figures['shards']:,}"
        + (f", {len(figures['skipped_shards'])} skipped" * bool(figures["skipped_shards"])),
        "rows": f"{figures['rows']:,}",
        "members": f"{figures['members']:,}, trained on shards and frozen",
        "weights": figures["weighter"] + ", as drifting ones depend on the order of the rows" * instead,
        "error": f"{figures['error']:.4f} on the first rows of every shard, by members that did not see them",
        "time": f"{figures['seconds']:.2f} s",
    }
    if figures["model"]:
        facts["written"] = figures["model"]
    show.console().print(show.facts(facts))
