"""What a run is asked to do: the model, and how the stream is read."""

import inspect
from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import asdict, dataclass
from typing import Any

import numpy as np
import typer
from numpy.typing import NDArray

from bayesvote.cli.models import Classifier
from bayesvote.cli.rows import near
from bayesvote.datasets import Chunk, Stream, stream
from bayesvote.estimators import CLASSIFIERS

_MOST_CLASSES = 100  # of labels that were not named; more of them are rather a wrong column


@dataclass(frozen=True)
class Settings:
    """The options that decide what is learned; None is the default of the model or the reader."""

    model: str = "bayesian"
    members: str | None = None
    n_members: int = 100
    max_features: str | float | int | None = None
    weighter: str | None = None
    loss: str | None = None
    forgetting: float | None = None
    seed: int = 0
    format: str = "auto"
    target: str | None = None
    classes: str | None = None
    n_features: int | None = None
    delay: int = 0
    bad_lines: str = "error"
    chunk_size: int = 4096

    def classifier(self) -> Classifier:
        """Make the model, new."""
        kind = CLASSIFIERS[self.model]
        known = inspect.signature(kind).parameters
        options: dict[str, Any] = {"n_members": self.n_members, "random_state": self.seed}
        for name in ("members", "max_features", "weighter", "loss", "forgetting"):
            value = getattr(self, name)
            if value is None:
                continue
            parameter = name if name in known else name.removesuffix("s")
            if parameter not in known:
                raise typer.BadParameter(
                    f"a booster has none. Leave it out with --model {self.model}.",
                    param_hint=f"--{name.replace('_', '-')}",
                )
            options[parameter] = value
        if self.max_features == "all":
            options["max_features"] = None
        return kind(**options)

    def started(self, n_features: int, classes: NDArray[Any]) -> Classifier:
        """Make the model and start it; what it cannot be is wrong usage."""
        with usage():
            return self.classifier().start(n_features, classes)

    def open(self, file: str) -> Stream:
        """Open the stream."""
        target = (
            int(self.target) if self.target is not None and self.target.removeprefix("-").isdigit() else self.target
        )
        options: dict[str, Any] = {"chunk_size": self.chunk_size, "bad_lines": self.bad_lines}
        try:
            return stream(file, self.format, target=target, n_features=self.n_features, **options)
        except ValueError as error:
            if "target must be a column" not in str(error):
                raise
            hint = "" if file == "-" else near(str(self.target), _columns(file, self.format))
            raise typer.BadParameter(
                f"it {str(error).removeprefix('stream: target ')}{hint}", param_hint="--target"
            ) from error

    def known_classes(self, first: Chunk) -> NDArray[Any]:
        """The labels that were named, of the kind that the stream's labels are."""
        texts = [text.strip() for text in (self.classes or "").split(",")]
        kind = {"i": int, "f": float}.get(first.y.dtype.kind, str)
        try:
            return np.unique(np.array([kind(text) for text in texts]))
        except ValueError:
            raise typer.BadParameter(
                f"they must be numbers, as {first.y[0]} in the stream is, got {self.classes!r}.", param_hint="--classes"
            ) from None

    def differences(self, other: dict[str, Any]) -> list[str]:
        """Say which options were others before."""
        return [
            f"--{name.replace('_', '-')} was {other.get(name)!r} and is {value!r}"
            for name, value in asdict(self).items()
            if other.get(name) != value
        ]


def check_classes(source: str, classes: NDArray[Any]) -> None:
    """Refuse labels that are too few or too many to be meant."""
    if len(classes) < 2:
        got = f"only {classes.tolist()[0]!r}" if len(classes) else "no rows"
        raise ValueError(f"{source} must have two labels or more, got {got}. Pass --target or --classes.")
    if len(classes) > _MOST_CLASSES:
        raise ValueError(
            f"{source} must have at most {_MOST_CLASSES} labels that are not named, got {len(classes):,}. "
            "Is --target the right column? If so, name them with --classes."
        )


@contextmanager
def usage() -> Iterator[None]:
    """Take the library's refusals for wrong usage of the options."""
    try:
        yield
    except (ValueError, TypeError) as error:
        raise typer.BadParameter(str(error)) from error


def _columns(file: str, file_format: str) -> list[str]:
    """All columns of a file: the first one, and those after it."""
    first, rest = (stream(file, file_format, target=place) for place in (-1, 0))
    first.close()
    rest.close()
    return [*(first.feature_names or [])[:1], *(rest.feature_names or [])]
