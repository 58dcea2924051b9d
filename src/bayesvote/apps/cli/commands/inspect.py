"""The command ``inspect``."""

from pathlib import Path
from typing import Annotated

import typer

from bayesvote.apps.cli.options import Json
from bayesvote.apps.cli.outputs import must_be_writable, must_differ


def inspect(
    model: Annotated[Path, typer.Argument(metavar="MODEL", exists=True, dir_okay=False, help="A saved model.")],
    everything: Annotated[bool, typer.Option("--all", help="Show all members instead of the first 20.")] = False,
    report: Annotated[Path | None, typer.Option(help="Also write an HTML report to this file.")] = None,
    json: Json = False,
) -> None:
    """Show a model, and its weights with 95% credible intervals."""
    from bayesvote.apps.cli import saved

    must_be_writable("--report", report)
    must_differ({"MODEL": model, "--report": report})
    saved.inspect(model, everything=everything, report=report, as_json=json)
