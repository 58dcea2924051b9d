"""The command ``datasets``."""

from typing import Annotated

import typer

from bayesvote.apps.cli.errors import usage
from bayesvote.apps.cli.options import Json


def datasets(
    name: Annotated[str | None, typer.Argument(help="Show this data set and its source.")] = None,
    json: Json = False,
) -> None:
    """List the paper's thirteen data sets."""
    from bayesvote.apps.cli import catalogue

    if name is None:
        catalogue.list_all(as_json=json)
    else:
        with usage():
            catalogue.check(name)
        catalogue.describe(name, as_json=json)
