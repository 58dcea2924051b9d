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
    """Merge models that share the same frozen members and were trained on different parts of a stream.

    The weights equal those of one model trained on all parts.
    """
    from bayesvote.apps.cli import saved

    if len(models) < 2:
        raise typer.BadParameter("pass two or more models.", param_hint="MODEL...")
    must_be_writable("--out", out)
    saved.merge(models, out)
