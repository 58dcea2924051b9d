"""The options about labels."""

from dataclasses import dataclass
from typing import Annotated, Any

import numpy as np
import typer
from numpy.typing import NDArray

from bayesvote.apps.cli.lists import split
from bayesvote.io.chunks import Chunk


@dataclass(frozen=True)
class LabelOptions:
    """The labels, and when they become known."""

    classes: Annotated[
        str | None,
        typer.Option(
            help="Comma-separated list of all possible labels, such as a,b,c. By default they are found in an extra "
            "pass over the file, unless it is Parquet with a categorical label; on standard input, they are the "
            "labels of the first chunk.",
            rich_help_panel="Input",
        ),
    ] = None
    delay: Annotated[
        int,
        typer.Option(
            min=0, metavar="N", help="Number of rows after which a row's label becomes known.", rich_help_panel="Input"
        ),
    ] = 0

    def named(self) -> list[str]:
        """Return the labels of ``--classes`` as text; empty if they are not given."""
        if self.classes is None:
            return []
        texts = split(self.classes)
        wrong = None
        if "" in texts:
            wrong = "labels must not be empty"
        elif len(set(texts)) < len(texts):
            wrong = "every label must be named once"
        elif len(texts) < 2:
            wrong = "two labels or more must be named, as a,b"
        if wrong:
            raise typer.BadParameter(f"{wrong}, got {self.classes!r}.", param_hint="--classes")
        return texts

    def known(self, first: Chunk) -> NDArray[Any]:
        """Return the labels of ``--classes``, as numbers if those of the file are."""
        texts = self.named()
        kind = {"i": int, "f": float}.get(first.y.dtype.kind, str)
        try:
            found = np.unique(np.array([kind(text) for text in texts]))
        except ValueError:
            raise typer.BadParameter(
                f"they must be numbers, like {first.y[0]} in the file, got {self.classes!r}.", param_hint="--classes"
            ) from None
        if len(found) < len(texts):
            raise typer.BadParameter(f"every label must be named once, got {self.classes!r}.", param_hint="--classes")
        return found
