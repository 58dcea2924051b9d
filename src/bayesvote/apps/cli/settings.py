"""The settings of a run: the model, and how the file and its labels are read."""

from collections.abc import Callable, Iterator
from contextlib import contextmanager
from dataclasses import dataclass, field, replace
from typing import Any

from numpy.typing import NDArray

from bayesvote.apps.cli.errors import WrongUsageError, option, written_kinds
from bayesvote.apps.cli.label_options import LabelOptions
from bayesvote.apps.cli.model_options import ModelOptions
from bayesvote.apps.cli.models import Classifier
from bayesvote.apps.cli.read_flags import as_position
from bayesvote.core.checks import InputError
from bayesvote.datasets import Stream, Survey
from bayesvote.io.labels import is_code
from bayesvote.io.open_stream import listed, open_labelled
from bayesvote.io.read_options import ReadOptions
from bayesvote.io.survey import survey_file

_MOST_CLASSES = 100  # more labels than this, if they are not named, usually mean that the column is wrong


@dataclass(frozen=True)
class RunSettings:
    """The options that decide what is learned."""

    model: ModelOptions = field(default_factory=ModelOptions)
    reading: ReadOptions = field(default_factory=ReadOptions)
    labels: LabelOptions = field(default_factory=LabelOptions)
    n_features: int | None = None

    def classifier(self) -> Classifier:
        """Make a new model."""
        self.labels.named()
        found: Classifier = self.model.classifier(_stated(self.reading.columns) or None)
        return found

    def open(self, file: str, n_features: int | None, flush_after: float | None, classes: NDArray[Any]) -> Stream:
        """Open the file to learn from it; ``classes`` are its labels, if they are known."""
        text = classes.dtype.kind == "U" or any(map(is_code, self.labels.named()))
        reading = replace(self.reading, labels="text" if text else "auto")
        with target_usage():
            return open_labelled(file, reading, n_features=n_features, flush_after=flush_after)

    def survey(self, file: str, on_rows: Callable[[int], None]) -> Survey:
        """Find the labels of the file."""
        with target_usage():
            return survey_file(file, self.reading, n_features=self.n_features, on_rows=on_rows)

    def stored(self) -> dict[str, Any]:
        """Return the options by name, as checkpoints and results store them."""
        reading = self.reading
        return self.model.parsed() | {
            "format": reading.format,
            "target": None if reading.target is None else str(reading.target),
            "classes": self.labels.classes,
            "n_features": self.n_features,
            "delay": self.labels.delay,
            "bad_lines": reading.bad_lines,
            "chunk_size": reading.chunk_size,
            "header": reading.header,
            "decimal": reading.decimal,
            "columns": None if reading.columns is None else dict(reading.columns),
            "features": None if reading.features is None else list(reading.features),
        }

    def differences(self, other: dict[str, Any]) -> list[str]:
        """Describe the options that differ from stored ones, except those that may leave rows and labels the same.

        The caller checks the effect of these: ``classes``, ``bad_lines``, and dropped columns.
        """
        found, columns = [], other.get("columns")
        for name, value in self.stored().items():
            before = other.get(name)
            if name == "target" and as_position(before) == self.reading.target:
                continue
            if name not in ("classes", "bad_lines", "columns") and before != value:
                found.append(f"{option(name)} was {_described(before)} and is {_described(value)}")
        if _stated(self.reading.columns) != _stated(columns):
            now = _described_kinds(self.reading.columns)
            found.append(f"the kinds of columns were {_described_kinds(columns)} and are {now}")
        return found


def _stated(columns: Any) -> dict[str, str]:
    """Return the kinds of the columns that are not dropped."""
    return {name: kind for name, kind in (columns or {}).items() if kind != "drop"}


def _described(value: Any) -> str:
    """Format the value of an option.

    >>> _described(None), _described(False), _described("fern")
    ('not given', 'off', "'fern'")
    """
    if value is None:
        return "not given"
    if isinstance(value, bool):
        return "on" if value else "off"
    return repr(value)


def _described_kinds(columns: Any) -> str:
    """Format kinds of columns.

    >>> _described_kinds({"zip": "category"}), _described_kinds(None)
    ('--column zip=category', 'not stated')
    """
    return written_kinds(columns or {}) or "not stated"


@contextmanager
def target_usage() -> Iterator[None]:
    """Report a column that does not exist as wrong usage of the options."""
    try:
        yield
    except InputError as error:
        if error.subject in ("target", "columns", "features"):
            raise WrongUsageError from error
        raise


def check_classes(source: str, classes: NDArray[Any], columns: list[str] | None, target: Any) -> None:
    """Raise an error if the number of labels shows that the column is wrong.

    ``columns`` are the names of the columns, the label's last.
    """
    where = ""
    if columns:
        default = "" if target is not None else "Without --target, the label is the last column. "
        where = f" {default}Labels were read from column {columns[-1]!r}. The columns are {listed(columns)}."
    if len(classes) < 2:
        got = f"only {classes.tolist()[0]!r}" if len(classes) else "no rows"
        do = "If more labels can occur, name all of them with --classes." if len(classes) else ""
        if columns and target is None:
            do = "Pass --target or --classes."
        raise InputError("", source, "must have two labels or more", got, f"{do}{where}".lstrip())
    if len(classes) > _MOST_CLASSES:
        must = f"must have at most {_MOST_CLASSES} labels, unless they are named"
        do = f"Is --target the right column? If so, name the labels with --classes.{where}"
        raise InputError("", source, must, f"{len(classes):,}", do)
