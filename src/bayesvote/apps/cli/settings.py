"""What ``run`` is asked to do: the model, and how the file is read."""

import inspect
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from dataclasses import asdict, dataclass
from typing import Any

import numpy as np
import typer
from numpy.typing import NDArray

from bayesvote.apps.cli.errors import WrongUsageError, option, usage
from bayesvote.apps.cli.lists import split
from bayesvote.apps.cli.models import Classifier
from bayesvote.core.checks import InputError
from bayesvote.datasets import Chunk, Stream, Survey, stream, survey
from bayesvote.estimators import CLASSIFIERS
from bayesvote.io.open_stream import is_code, listed

_READING = ("format", "chunk_size", "bad_lines", "header", "decimal", "columns", "features")
_MOST_CLASSES = 100  # more labels than this, if they were not named, are probably those of a wrong column


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
    scale: bool | None = None
    class_weight: str | None = None
    seed: int = 0
    format: str = "auto"
    target: str | None = None
    classes: str | None = None
    n_features: int | None = None
    delay: int = 0
    bad_lines: str = "error"
    chunk_size: int = 4096
    header: bool | None = None
    decimal: str | None = None
    columns: dict[str, str] | None = None
    features: list[str] | None = None

    def classifier(self) -> Classifier:
        """Make a new model."""
        self.named_classes()
        kind: Any = CLASSIFIERS[self.model]
        known = inspect.signature(kind).parameters
        options: dict[str, Any] = {"n_members": self.n_members, "random_state": self.seed}
        for name in ("members", "max_features", "weighter", "loss", "forgetting", "scale"):
            value = getattr(self, name)
            if value is None:
                continue
            parameter = name if name in known else name.removesuffix("s")
            if parameter not in known:
                message = f"a booster has none. Leave it out with --model {self.model}."
                raise typer.BadParameter(message, param_hint=option(name))
            options[parameter] = value
        if self.max_features == "all":
            options["max_features"] = None
        stated = _stated(self.columns)
        found: Classifier = kind(**options, columns=stated or None, class_weight=self._class_weight())
        with usage():
            try:
                found.check()
            except InputError as error:
                if self.weighter != "sag" or error.subject != "horizon":
                    raise
                must, do = (
                    "must be told how many rows will come",
                    "Give the number as in --weighter 'sag(horizon=5000)'.",
                )
                raise InputError("", "--weighter sag", must, do=do) from error
        return found

    def open(self, file: str, n_features: int | None, flush_after: float | None, classes: NDArray[Any]) -> Stream:
        """Open the file to learn from; ``classes`` are its labels, if they are known."""
        text = classes.dtype.kind == "U" or any(map(is_code, self.named_classes()))
        labels = "text" if text else "auto"
        with target_usage():
            return stream(file, n_features=n_features, flush_after=flush_after, labels=labels, **self.reading())

    def survey(self, file: str, on_rows: Callable[[int], None]) -> Survey:
        """Find the labels of the file."""
        with target_usage():
            return survey(file, n_features=self.n_features, on_rows=on_rows, **self.reading())

    def reading(self) -> dict[str, Any]:
        """How files are read, as ``stream`` and ``survey`` take it."""
        return {"target": place_or_name(self.target), **{name: getattr(self, name) for name in _READING}}

    def _class_weight(self) -> dict[str, float] | str | None:
        """What the labels weigh, by their texts."""
        if self.class_weight in (None, "balanced"):
            return self.class_weight
        found = {}
        for given in split(self.class_weight or ""):
            label, _, weight = given.rpartition("=")
            try:
                found[label.strip()] = float(weight)
            except ValueError:
                label = ""
            if not label.strip():
                message = f"it must be balanced or label=weight,label=weight, got {self.class_weight!r}."
                raise typer.BadParameter(message, param_hint="--class-weight")
        return found

    def class_weights(self, classes: NDArray[Any]) -> Any:
        """What the labels weigh, by the labels of the file."""
        given = self._class_weight()
        if not isinstance(given, dict):
            return given
        known = {str(label): label for label in classes.tolist()}
        return {known.get(text, text): weight for text, weight in given.items()}

    def known_classes(self, first: Chunk) -> NDArray[Any]:
        """The labels that were named, as numbers if those of the file are."""
        texts = self.named_classes()
        kind = {"i": int, "f": float}.get(first.y.dtype.kind, str)
        try:
            found = np.unique(np.array([kind(text) for text in texts]))
        except ValueError:
            raise typer.BadParameter(
                f"they must be numbers, as {first.y[0]} in the file is, got {self.classes!r}.", param_hint="--classes"
            ) from None
        if len(found) < len(texts):
            raise typer.BadParameter(f"every label must be named once, got {self.classes!r}.", param_hint="--classes")
        return found

    def named_classes(self) -> list[str]:
        """The texts of the labels that were named; none if they were not."""
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

    def differences(self, other: dict[str, Any]) -> list[str]:
        """Say which options differ from those before, apart from those that leave the rows and the labels the same.

        Whether they do is for the caller to compare: ``classes``, ``bad_lines``, and columns that are left out.
        """
        found, before = [], other.get("columns")
        for name, value in asdict(self).items():
            if name not in ("classes", "bad_lines", "columns") and other.get(name) != value:
                found.append(f"{option(name)} was {_said(other.get(name))} and is {_said(value)}")
        if _stated(self.columns) != _stated(before):
            found.append(f"the kinds of columns were {_kinds(before)} and are {_kinds(self.columns)}")
        return found


def _stated(columns: dict[str, str] | None) -> dict[str, str]:
    """The kinds of columns that are learned from."""
    return {name: kind for name, kind in (columns or {}).items() if kind != "drop"}


def _said(value: Any) -> str:
    """What was said by an option.

    >>> _said(None), _said(False), _said("fern")
    ('not given', 'off', "'fern'")
    """
    if value is None:
        return "not given"
    if isinstance(value, bool):
        return "on" if value else "off"
    return repr(value)


def _kinds(columns: dict[str, str] | None) -> str:
    """Options that state kinds of columns.

    >>> _kinds({"zip": "category"}), _kinds(None)
    ("--category 'zip'", 'not stated')
    """
    return " ".join(f"--{kind.replace('_', '-')} {name!r}" for name, kind in (columns or {}).items()) or "not stated"


def place_or_name(column: str | None) -> str | int | None:
    """A column's place, if a number was given, or its name.

    >>> place_or_name("-1"), place_or_name("age")
    (-1, 'age')
    """
    return int(column) if column is not None and column.removeprefix("-").isdigit() else column


@contextmanager
def target_usage() -> Iterator[None]:
    """Report a column that does not exist as wrong usage of ``--target``."""
    try:
        yield
    except InputError as error:
        if error.subject in ("target", "columns", "features"):
            raise WrongUsageError from error
        raise


def check_classes(source: str, classes: NDArray[Any], columns: list[str] | None, target: str | None) -> None:
    """Refuse so few or so many labels that the column must be wrong; ``columns`` has the label's last."""
    where = ""
    if columns:
        default = "" if target is not None else "Without --target, the label is the last column. "
        where = f" {default}It was looked for in {columns[-1]!r}. The columns are {listed(columns)}."
    if len(classes) < 2:
        got = f"only {classes.tolist()[0]!r}" if len(classes) else "no rows"
        do = "If others are to come, name all with --classes." if len(classes) else ""
        if columns and target is None:
            do = "Pass --target or --classes."
        raise InputError("", source, "must have two labels or more", got, f"{do}{where}".lstrip())
    if len(classes) > _MOST_CLASSES:
        must = f"must have at most {_MOST_CLASSES} labels that are not named"
        do = f"Is --target the right column? If so, name the labels with --classes.{where}"
        raise InputError("", source, must, f"{len(classes):,}", do)
