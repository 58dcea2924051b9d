"""The commands and their options. What does the work is imported when a command is called, so that help is fast."""

import os
import stat
from collections.abc import Callable, Iterable, Iterator
from contextlib import contextmanager
from importlib.metadata import entry_points
from pathlib import Path
from typing import Annotated, Any

import typer
from typer.core import TyperGroup

from bayesvote import losses, members, weighting
from bayesvote.apps.cli.distributed import (
    BadShards,
    EngineName,
    Insecure,
    RecordFolder,
    Scheduler,
    Sharding,
    TimeLimit,
    Workers,
)
from bayesvote.apps.cli.errors import ClosedPipeError, InterruptionError, usage
from bayesvote.apps.cli.lists import split
from bayesvote.apps.cli.serve import serve
from bayesvote.boosting import BOOSTERS
from bayesvote.core.checks import did_you_mean
from bayesvote.core.names import name_of


def _formats() -> tuple[str, ...]:
    return ("auto", "csv", "libsvm", "parquet")


def _bad_lines() -> tuple[str, ...]:
    return ("error", "skip")


class _Commands(TyperGroup):
    """All commands. Ctrl-C and a closed pipe are told like errors; Typer would exit without a word."""

    def make_context(self, *arguments: Any, **settings: Any) -> Any:
        with _told():
            return super().make_context(*arguments, **settings)

    def invoke(self, ctx: Any) -> Any:
        with _told():
            return super().invoke(ctx)


@contextmanager
def _told() -> Iterator[None]:
    try:
        yield
    except KeyboardInterrupt as error:
        raise InterruptionError from error
    except BrokenPipeError as error:
        raise ClosedPipeError from error


app = typer.Typer(
    cls=_Commands,
    help="Online classifier ensembles with Bayesian weights.",
    epilog="Every command has its own --help. --debug, anywhere, shows the traceback of an error.",
    no_args_is_help=True,
    rich_markup_mode="rich",
    context_settings={"help_option_names": ["-h", "--help"]},
)


def _models() -> list[str]:
    return ["bayesian", *sorted(BOOSTERS)]


def _listed(names: Callable[[], Iterable[str]]) -> str:
    return ", ".join(sorted(names()))


def _named(names: Callable[[], Iterable[str]]) -> dict[str, Any]:
    """Settings of an option that takes one of these names, with parameters or without."""

    def check(value: str | None) -> str | None:
        known = sorted(names())
        if value is None or name_of(value) in known:
            return value
        meant = did_you_mean(value, known)
        raise typer.BadParameter(f"it must be one of {', '.join(known)}, got {value!r}. {meant}".rstrip())

    def complete(start: str) -> list[str]:
        return [name for name in sorted(names()) if name.startswith(start)]

    return {"callback": check, "autocompletion": complete, "metavar": "NAME"}


def _version(asked: bool) -> None:
    if asked:
        from bayesvote import __version__

        print(f"bayesvote {__version__}")
        raise typer.Exit


_File = Annotated[
    str, typer.Argument(metavar="FILE", help="LIBSVM, CSV or Parquet, plain or gz, bz2, xz, zst; - for standard input.")
]
_Model = Annotated[Path, typer.Argument(metavar="MODEL", exists=True, dir_okay=False, help="A saved model.")]
_Json = Annotated[bool, typer.Option("--json", help="Print the result as JSON.")]
_Format = Annotated[
    str,
    typer.Option(
        "--format", help=f"Of the file: {', '.join(_formats())}.", rich_help_panel="Input", **_named(_formats)
    ),
]
_Target = Annotated[
    str | None,
    typer.Option(
        help="Column of the label, by name or place from 0; the last one by default.", rich_help_panel="Input"
    ),
]
_Header = Annotated[
    bool | None,
    typer.Option(
        "--header/--no-header",
        help="Whether the first line of CSV names the columns. By default it must, and a row in its place is refused.",
        rich_help_panel="Input",
    ),
]
_Decimal = Annotated[
    str | None,
    typer.Option(
        metavar="MARK", help="Decimal mark of CSV, . or , (by default what the numbers show).", rich_help_panel="Input"
    ),
]
_Category = Annotated[
    list[str] | None,
    typer.Option(
        metavar="NAMES", help="Columns of texts or codes, a,b,c: each value is its own.", rich_help_panel="Columns"
    ),
]
_Number = Annotated[
    list[str] | None,
    typer.Option(metavar="NAMES", help="Columns of numbers; other values are bad lines.", rich_help_panel="Columns"),
]
_Boolean = Annotated[
    list[str] | None, typer.Option(metavar="NAMES", help="Columns of truth values.", rich_help_panel="Columns")
]
_Date = Annotated[
    list[str] | None, typer.Option(metavar="NAMES", help="Columns of dates or times.", rich_help_panel="Columns")
]
_DayFirst = Annotated[
    list[str] | None,
    typer.Option(metavar="NAMES", help="Columns of dates such as 31/12/2020.", rich_help_panel="Columns"),
]
_MonthFirst = Annotated[
    list[str] | None,
    typer.Option(metavar="NAMES", help="Columns of dates such as 12/31/2020.", rich_help_panel="Columns"),
]
_Drop = Annotated[
    list[str] | None, typer.Option(metavar="NAMES", help="Columns to leave out.", rich_help_panel="Columns")
]
_Features = Annotated[
    list[str] | None, typer.Option(metavar="NAMES", help="The only columns to learn from.", rich_help_panel="Columns")
]
_BadLines = Annotated[
    str,
    typer.Option(
        help="What to do with a line that cannot be read: error or skip.",
        rich_help_panel="Input",
        **_named(_bad_lines),
    ),
]


@app.callback()
def _top(
    version: Annotated[
        bool, typer.Option("--version", callback=_version, is_eager=True, help="Show the version and exit.")
    ] = False,
) -> None:
    pass


@app.command()
def run(
    file: _File,
    model: Annotated[
        str, typer.Option(help=f"{', '.join(_models())}.", rich_help_panel="Model", **_named(_models))
    ] = "bayesian",
    members: Annotated[
        str | None,
        typer.Option(
            help=f"{_listed(members.named)}; adaptive by default. With parameters: 'fern(depth=6)'. Boosters have "
            "perceptron, the default, or naive_bayes.",
            rich_help_panel="Model",
            **_named(members.named),
        ),
    ] = None,
    n_members: Annotated[
        int, typer.Option(min=1, metavar="N", help="How many members.", rich_help_panel="Model")
    ] = 100,
    max_features: Annotated[
        str | None,
        typer.Option(
            help="Features that a member sees: auto, all, a fraction like 0.5, or a number.", rich_help_panel="Model"
        ),
    ] = None,
    weighter: Annotated[
        str | None,
        typer.Option(
            help=f"{_listed(weighting.named)}; drifting by default. With parameters: 'sag(horizon=5000)'.",
            rich_help_panel="Model",
            **_named(weighting.named),
        ),
    ] = None,
    loss: Annotated[
        str | None,
        typer.Option(
            help=f"{_listed(lambda: losses.LOSSES)}; by default what suits the weighter.",
            rich_help_panel="Model",
            **_named(lambda: losses.LOSSES),
        ),
    ] = None,
    forgetting: Annotated[
        float | None,
        typer.Option(metavar="X", help="Factor by which the past fades with every row.", rich_help_panel="Model"),
    ] = None,
    scale: Annotated[
        bool | None,
        typer.Option(
            "--scale/--no-scale",
            help="Whether linear members see standardised numbers, as by default, or the numbers as they are.",
            rich_help_panel="Model",
        ),
    ] = None,
    class_weight: Annotated[
        str | None,
        typer.Option(
            metavar="WEIGHTS",
            help="balanced, so that all labels count alike, or what rows of some labels count: rare=5,other=0.5.",
            rich_help_panel="Model",
        ),
    ] = None,
    seed: Annotated[
        int, typer.Option(min=0, metavar="N", help="Seed of all random numbers.", rich_help_panel="Model")
    ] = 0,
    file_format: _Format = "auto",
    target: _Target = None,
    classes: Annotated[
        str | None,
        typer.Option(
            help="All labels that can come, as a,b,c. By default the file is read once more to find them, unless it is "
            "Parquet with a categorical label; on standard input, they are those of the first chunk.",
            rich_help_panel="Input",
        ),
    ] = None,
    n_features: Annotated[
        int | None,
        typer.Option(min=1, metavar="N", help="Features of LIBSVM text on standard input.", rich_help_panel="Input"),
    ] = None,
    delay: Annotated[
        int,
        typer.Option(min=0, metavar="N", help="How many rows later a label becomes known.", rich_help_panel="Input"),
    ] = 0,
    bad_lines: _BadLines = "error",
    header: _Header = None,
    decimal: _Decimal = None,
    category: _Category = None,
    number: _Number = None,
    boolean: _Boolean = None,
    date: _Date = None,
    day_first: _DayFirst = None,
    month_first: _MonthFirst = None,
    drop: _Drop = None,
    features: _Features = None,
    chunk_size: Annotated[
        int, typer.Option(min=1, metavar="N", help="Rows read at a time.", rich_help_panel="Input")
    ] = 4096,
    model_out: Annotated[
        Path | None, typer.Option("--model-out", "-o", help="Where to save the model.", rich_help_panel="Output")
    ] = None,
    predictions: Annotated[
        Path | None,
        typer.Option(help="CSV of every row's label, prediction and its probability.", rich_help_panel="Output"),
    ] = None,
    report: Annotated[Path | None, typer.Option(help="HTML page with the results.", rich_help_panel="Output")] = None,
    json: Annotated[bool, typer.Option("--json", help="Print the result as JSON.", rich_help_panel="Output")] = False,
    checkpoint: Annotated[
        Path | None,
        typer.Option(help="File that keeps the state, also on Ctrl-C.", rich_help_panel="Interruptions"),
    ] = None,
    checkpoint_every: Annotated[
        int, typer.Option(min=1, metavar="N", help="Rows between two checkpoints.", rich_help_panel="Interruptions")
    ] = 100_000,
    resume: Annotated[
        bool,
        typer.Option("--resume", help="Go on from the checkpoint, if there is one.", rich_help_panel="Interruptions"),
    ] = False,
    from_here: Annotated[
        bool,
        typer.Option(
            "--from-here",
            help="With --resume: the rows that come now follow those of the checkpoint, which need not be given again.",
            rich_help_panel="Interruptions",
        ),
    ] = False,
    engine: EngineName = None,
    workers: Workers = None,
    scheduler: Scheduler = None,
    insecure: Insecure = False,
    record: RecordFolder = None,
    bad_shards: BadShards = "error",
    time_limit: TimeLimit = None,
) -> int:
    """Learn from a file row by row: every row is predicted, then learned. With --engine, from many files at once."""
    from bayesvote.apps.cli.learn import learn
    from bayesvote.apps.cli.settings import Settings

    sharding = Sharding(engine, workers, scheduler, insecure, record, bad_shards, time_limit)
    sharding.check()
    settings = Settings(
        model=model,
        members=members,
        n_members=n_members,
        max_features=_features(max_features),
        weighter=weighter,
        loss=loss,
        forgetting=forgetting,
        scale=scale,
        class_weight=class_weight,
        seed=seed,
        format=file_format,
        target=target,
        classes=classes,
        n_features=n_features,
        delay=delay,
        bad_lines=bad_lines,
        chunk_size=chunk_size,
        header=header,
        decimal=_mark(decimal),
        columns=_kinds(
            {
                "category": category,
                "number": number,
                "boolean": boolean,
                "date": date,
                "day_first": day_first,
                "month_first": month_first,
                "drop": drop,
            }
        ),
        features=_split(features) or None,
    )
    outputs = {"--model-out": model_out, "--predictions": predictions, "--report": report, "--checkpoint": checkpoint}
    for option, path in outputs.items():
        _must_have_room(option, path, terminal=option == "--predictions")
    if engine is not None:
        sharding.refuse(
            {
                "--predictions": predictions,
                "--report": report,
                "--checkpoint": checkpoint,
                "--resume": resume or None,
                "--from-here": from_here or None,
                "--n-features": n_features,
            }
        )
        return sharding.learn(file, settings, model_out=model_out, as_json=json)
    _must_exist(file)
    _must_differ({"FILE": None if file == "-" else Path(file)} | outputs)
    if checkpoint is not None and checkpoint.exists() and not checkpoint.is_file():
        raise typer.BadParameter(f"it must be a file, got the device {str(checkpoint)!r}.", param_hint="--checkpoint")
    if resume and checkpoint is None:
        raise typer.BadParameter("it needs --checkpoint FILE.", param_hint="--resume")
    if from_here and not resume:
        raise typer.BadParameter("it needs --resume.", param_hint="--from-here")
    if checkpoint is not None and checkpoint.exists() and not resume:
        raise typer.BadParameter(
            f"{checkpoint} exists already. Pass --resume to go on from it, or delete it to start again.",
            param_hint="--checkpoint",
        )
    return learn(
        file,
        settings,
        model_out=model_out,
        predictions=predictions,
        report=report,
        as_json=json,
        checkpoint=checkpoint,
        every=checkpoint_every,
        resume=resume,
        from_here=from_here,
    )


@app.command()
def predict(
    model: _Model,
    file: _File,
    out: Annotated[Path | None, typer.Option("--out", "-o", help="Where to write; standard output by default.")] = None,
    proba: Annotated[bool, typer.Option("--proba", help="Add the probability of every label.")] = False,
    file_format: _Format = "auto",
    target: Annotated[
        str | None,
        typer.Option(
            help="Column of the label, which is left out. Not needed if the model knows its features' names.",
            rich_help_panel="Input",
        ),
    ] = None,
    bad_lines: _BadLines = "error",
    header: _Header = None,
    decimal: _Decimal = None,
) -> int:
    """Predict the labels of rows, as CSV. The rows may have labels or not."""
    from bayesvote.apps.cli.predict import predict as work

    _must_exist(file)
    _must_have_room("--out", out, terminal=True)
    _must_differ({"MODEL": model, "FILE": None if file == "-" else Path(file), "--out": out})
    reading = {"format": file_format, "bad_lines": bad_lines, "header": header, "decimal": _mark(decimal)}
    return work(model, file, out, proba=proba, target=target, **reading)


@app.command()
def inspect(
    model: _Model,
    everything: Annotated[bool, typer.Option("--all", help="Show all members, not the first twenty.")] = False,
    report: Annotated[Path | None, typer.Option(help="Write an HTML page, too.")] = None,
    json: _Json = False,
) -> None:
    """Show what a model is, and its weights with their 95% intervals."""
    from bayesvote.apps.cli.saved import inspect as work

    _must_have_room("--report", report)
    _must_differ({"MODEL": model, "--report": report})
    work(model, everything=everything, report=report, as_json=json)


@app.command()
def merge(
    models: Annotated[
        list[Path], typer.Argument(metavar="MODEL...", exists=True, dir_okay=False, help="Two or more saved models.")
    ],
    out: Annotated[Path, typer.Option("--out", "-o", help="Where to save the merged model.")],
) -> None:
    """Add up what models with the same frozen members learned from parts of a stream; exact."""
    from bayesvote.apps.cli.saved import merge as work

    if len(models) < 2:
        raise typer.BadParameter("give two or more models.", param_hint="MODEL...")
    _must_have_room("--out", out)
    work(models, out)


@app.command()
def datasets(
    name: Annotated[str | None, typer.Argument(help="One of them, for where it comes from.")] = None,
    json: _Json = False,
) -> None:
    """List the paper's thirteen data sets."""
    from bayesvote.apps.cli import catalogue

    if name is None:
        catalogue.list_all(as_json=json)
    else:
        with usage():
            catalogue.check(name)
        catalogue.describe(name, as_json=json)


@app.command()
def bench(json: _Json = False) -> None:
    """Measure on this machine how fast the models are."""
    from bayesvote.apps.cli.bench import bench as work

    work(as_json=json)


app.command()(serve)


def _add_commands() -> None:
    """Add the commands of other packages, such as ``reproduce`` of bayesvote-paper."""
    found = {point.name: point for point in entry_points(group="bayesvote.commands")}
    for name, point in found.items():
        app.command(name)(point.load())
    if "reproduce" not in found:

        @app.command(hidden=True, context_settings={"ignore_unknown_options": True})
        def reproduce(arguments: Annotated[list[str] | None, typer.Argument(hidden=True)] = None) -> None:  # noqa: ARG001
            """Reproduce the tables and figures of the paper."""
            do = "Run: pip install 'bayesvote[paper]'"
            raise ImportError(f"bayesvote reproduce requires the package bayesvote-paper. {do}")


_add_commands()


def _features(text: str | None) -> str | float | int | None:
    """How many features a member sees; None is the default, and "all" means all of them."""
    if text in (None, "auto", "all"):
        return text
    try:
        return int(text or "") if "." not in (text or "") else float(text or "")
    except ValueError:
        raise typer.BadParameter(
            f"it must be auto, all, a fraction like 0.5 or a number, got {text!r}.", param_hint="--max-features"
        ) from None


def _split(names: list[str] | None) -> list[str]:
    """Names of columns, given as a,b,c; one with a comma is put in quotes."""
    return [name for given in names or [] for name in split(given)]


def _kinds(stated: dict[str, list[str] | None]) -> dict[str, str] | None:
    """What was said of columns, by their names."""
    found: dict[str, str] = {}
    for kind, names in stated.items():
        for name in _split(names):
            if found.setdefault(name, kind) != kind:
                message = f"column {name!r} must be of one kind, and --{found[name]} names it, too."
                raise typer.BadParameter(message, param_hint=f"--{kind}")
    return found or None


def _mark(decimal: str | None) -> str | None:
    if decimal not in (None, ".", ","):
        raise typer.BadParameter(f"it must be . or , got {decimal!r}.", param_hint="--decimal")
    return decimal


def _must_exist(file: str) -> None:
    if file == "-":
        return
    if Path(file).is_dir():
        raise typer.BadParameter(f"it must be a file, got the folder {file!r}.", param_hint="FILE")
    if not Path(file).exists():
        raise typer.BadParameter(f"there is no file {file!r}.", param_hint="FILE")


def _must_have_room(option: str, path: Path | None, *, terminal: bool = False) -> None:
    """Refuse a file at once that could not be written at the end, and a terminal where labels go as they are."""
    if path is None:
        return
    folder = path.resolve().parent
    if path.is_dir():
        do = f"Name a file in it, such as {str(path / 'NAME')!r}."
        raise typer.BadParameter(f"it must be a file, got the folder {str(path)!r}. {do}", param_hint=option)
    if not folder.is_dir():
        raise typer.BadParameter(f"it must be a file in a folder that exists, got {str(path)!r}.", param_hint=option)
    device = path.exists() and not path.is_file()  # it is written to as it is, whatever its folder allows
    if not (device or os.access(folder, os.W_OK)) or (path.exists() and not os.access(path, os.W_OK)):
        raise typer.BadParameter(f"it must be a file that can be written, got {str(path)!r}.", param_hint=option)
    if not terminal and _is_terminal(path):
        raise typer.BadParameter(f"it must be a file, got the terminal {str(path)!r}.", param_hint=option)


def _is_terminal(path: Path) -> bool:
    if not path.exists() or not stat.S_ISCHR(path.stat().st_mode):
        return False
    with path.open("rb", buffering=0) as device:
        return device.isatty()


def _must_differ(paths: dict[str, Path | None]) -> None:
    """Refuse to write over what is read, or twice to one file."""
    seen: dict[Path, str] = {}
    for option, path in paths.items():
        if path is not None and seen.setdefault(path.resolve(), option) != option:
            other = seen[path.resolve()]
            raise typer.BadParameter(f"it must be another file than {other}, got {str(path)!r}.", param_hint=option)
