"""The command ``merge``."""

from pathlib import Path
from typing import Annotated

import typer

from bayesvote.apps.cli.outputs import must_be_writable


def merge(
    models: Annotated[
        list[Path], typer.Argument(metavar="MODEL...", exists=True, dir_okay=False, help="Two or more saved models.")
    ],
    out: Annotated[Path, typer.Option("--out", "-o", help="Save the merged model to this file.")],
) -> None:
    """Merge models with the same frozen members that learned parts of a stream. The merged weights are exact."""
    from bayesvote.apps.cli import saved

    if len(models) < 2:
        raise typer.BadParameter("pass two or more models.", param_hint="MODEL...")
    must_be_writable("--out", out)
    saved.merge(models, out)
