"""The command ``bayesvote reproduce``, an entry point of bayesvote's command line."""

from pathlib import Path
from typing import Annotated

import typer

from bayesvote.apps.cli.distributed import Insecure, Scheduler, Sharding, Workers, check_engine
from bayesvote.apps.cli.errors import usage


def reproduce(
    tables: Annotated[
        list[str] | None,
        typer.Argument(metavar="[TABLE]...", help="Names such as table1, figure1 or settings; all by default."),
    ] = None,
    folder: Annotated[Path, typer.Option(help="Folder of the results. A second run continues from them.")] = Path(
        "reproduced"
    ),
    trials: Annotated[
        int, typer.Option(min=1, metavar="N", help="Number of random orders of the rows of each data set.")
    ] = 5,
    jobs: Annotated[
        int | None, typer.Option(min=1, metavar="N", help="Number of processes. Default: one per core.")
    ] = None,
    dataset: Annotated[
        list[str] | None, typer.Option(metavar="NAME", help="Run on this data set only. Can be repeated.")
    ] = None,
    report: Annotated[Path | None, typer.Option(help="Write an HTML page to this file.")] = None,
    json: Annotated[bool, typer.Option("--json", help="Print the result as JSON.")] = False,
    engine: Annotated[
        str | None,
        typer.Option(
            metavar="NAME",
            callback=check_engine,
            help="Run the experiments with dask, or in this process with loop.",
        ),
    ] = None,
    workers: Workers = None,
    scheduler: Scheduler = None,
    insecure: Insecure = False,
) -> None:
    """Reproduce the tables and figures of the paper, on all data sets that need no download."""
    from bayesvote.apps.cli import catalogue
    from bayesvote_paper import command as work

    sharding = Sharding(engine, workers, scheduler, insecure)
    sharding.check()
    if engine is not None and jobs is not None:
        raise typer.BadParameter("--engine has --workers instead.", param_hint="--jobs")
    with usage():
        for name in dataset or []:
            catalogue.check(name)
        for name in tables or []:
            work.check(name)
    work.reproduce(
        tables or [],
        folder,
        trials=trials,
        jobs=jobs,
        datasets=dataset or None,
        report=report,
        as_json=json,
        engine=sharding.started(),
    )
