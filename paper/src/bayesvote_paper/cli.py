"""The command ``bayesvote reproduce``, which the command line of bayesvote finds by its entry point."""

from pathlib import Path
from typing import Annotated

import typer

from bayesvote.apps.cli.distributed import EngineName, Insecure, Scheduler, Sharding, Workers
from bayesvote.apps.cli.errors import usage


def reproduce(
    tables: Annotated[
        list[str] | None,
        typer.Argument(metavar="[TABLE]...", help="table1 to table6, figure1 to figure6; all by default."),
    ] = None,
    folder: Annotated[Path, typer.Option(help="Where the results are kept; a second run goes on from them.")] = Path(
        "reproduced"
    ),
    trials: Annotated[int, typer.Option(min=1, metavar="N", help="Random orders of the rows of each set.")] = 5,
    jobs: Annotated[int | None, typer.Option(min=1, metavar="N", help="Processes; one per core by default.")] = None,
    dataset: Annotated[
        list[str] | None, typer.Option(metavar="NAME", help="Only this data set; may be given several times.")
    ] = None,
    report: Annotated[Path | None, typer.Option(help="Where to write the HTML page.")] = None,
    json: Annotated[bool, typer.Option("--json", help="Print the result as JSON.")] = False,
    engine: EngineName = None,
    workers: Workers = None,
    scheduler: Scheduler = None,
    insecure: Insecure = False,
) -> None:
    """Run the experiments of the paper again, on all data sets that need no download."""
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
