"""The command ``predict``."""

from pathlib import Path
from typing import Annotated

import typer

from bayesvote.apps.cli.options import FileArgument, with_option_groups
from bayesvote.apps.cli.outputs import must_be_writable, must_differ, must_exist
from bayesvote.apps.cli.read_flags import FileFlags


@with_option_groups
def predict(
    model: Annotated[Path, typer.Argument(metavar="MODEL", exists=True, dir_okay=False, help="A saved model.")],
    file: FileArgument,
    reading: FileFlags,
    out: Annotated[
        Path | None,
        typer.Option("--out", "-o", help="Write the predictions to this file instead of standard output."),
    ] = None,
    proba: Annotated[bool, typer.Option("--proba", help="Add the probability of every label.")] = False,
    target: Annotated[
        str | None,
        typer.Option(
            help="Label column, to be ignored. Not needed if the model stores feature names.",
            rich_help_panel="Input",
        ),
    ] = None,
) -> int:
    """Predict the labels of a file's rows, as CSV. The file may or may not contain labels."""
    from bayesvote.apps.cli.predict import predict as work

    must_exist(file)
    must_be_writable("--out", out, terminal=True)
    must_differ({"MODEL": model, "FILE": None if file == "-" else Path(file), "--out": out})
    return work(model, file, out, proba=proba, options=reading.read_options(target))
