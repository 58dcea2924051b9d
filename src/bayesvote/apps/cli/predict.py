"""``predict``: labels and probabilities of a file's rows, as CSV."""

import csv
import io
import os
import secrets
import sys
from collections.abc import Iterator
from contextlib import contextmanager, suppress
from pathlib import Path
from typing import Any, TextIO

import numpy as np

from bayesvote.apps.cli import show
from bayesvote.apps.cli.interrupts import interrupts
from bayesvote.apps.cli.models import Classifier, load_classifier
from bayesvote.apps.cli.settings import place_or_name, target_usage
from bayesvote.core.checks import InputError
from bayesvote.core.files import naming
from bayesvote.datasets import Stream, stream_unlabelled
from bayesvote.io.open_stream import is_replayable, listed


def predict(model_path: Path, file: str, out: Path | None, *, proba: bool, target: str | None, **reading: Any) -> int:
    """Write the prediction of every row; return the exit code."""
    model = load_classifier(model_path)
    done = 0
    with interrupts() as stop:
        try:
            chunks = _opened(model, file, target, reading)
            with _sink(out, live=not is_replayable(file)) as sink:
                for text, n in _texts(model, chunks, proba, sink):
                    sink.write(text)
                    sink.flush()  # whoever waits at the other end of a pipe gets the answers now
                    done += n
        except KeyboardInterrupt:
            kept = "" if out is None else f" They are in {out}." if out.exists() else " Nothing was written."
            show.note(f"Stopped after {done:,} rows.{kept}")
            return stop.code
    show.skipped(chunks.skipped, chunks.reports)
    return 0


def _opened(model: Classifier, file: str, target: str | None, reading: dict[str, Any]) -> Stream:
    """The rows of the file, in the columns that the model knows."""
    names = model.columns_.names if hasattr(model, "columns_") else getattr(model, "feature_names_in_", None)
    kinds = None
    if hasattr(model, "columns_"):
        # Columns that were numbers are read as such, and what the user has stated to be a date or a truth value is one,
        # so that another text is a fault of its line. All others are handed over as they are: the model knows them.
        said = model.columns_.columns or {}
        kinds = {
            about["name"]: "number"
            if about["kind"] == "number" and not about["texts"]
            else said[about["name"]]
            if about["kind"] in ("boolean", "date") and about["name"] in said
            else "category"
            for about in model.columns_.describe()
        }
    elif names is not None:
        model.name_features(None)  # the reader puts the columns in order
    with target_usage():
        rows = stream_unlabelled(
            file,
            n_features=model.n_features_in_,
            feature_names=None if names is None else list(names),
            target=place_or_name(target),
            columns=kinds,
            flush_after=0.0,
            **reading,
        )
    if len(rows.ignored) > (target is None):  # without --target, one more column may be the label
        show.note(f"{file} has columns that the model was not fitted with; they are ignored: {listed(rows.ignored)}.")
    if kinds and rows.feature_names is None:
        raise InputError("", file, f"must have the columns of the model, {listed(list(kinds))}", "LIBSVM text")
    return rows


def _texts(model: Classifier, chunks: Stream, proba: bool, sink: TextIO) -> Iterator[tuple[str, int]]:
    """CSV text of each chunk's predictions, with how many there are; the header comes with the first of them."""
    header = ["row", "predicted"]
    if proba:
        header += [f"probability_{label}" for label in show.shown(model.classes_.tolist(), sink)]
    text = io.StringIO(newline="")
    writer = csv.writer(text, lineterminator="\n")
    writer.writerow(header)
    row = 0
    for chunk in chunks:
        numbers = range(row + 1, row + 1 + chunk.n)
        row += chunk.n
        if proba:
            probabilities = model.predict_proba(chunk.X)
            labels = show.shown(model.classes_[np.argmax(probabilities, axis=1)].tolist(), sink)
            writer.writerows(
                (i, label, *p) for i, label, p in zip(numbers, labels, probabilities.tolist(), strict=True)
            )
        else:
            writer.writerows(zip(numbers, show.shown(model.predict(chunk.X).tolist(), sink), strict=True))
        yield text.getvalue(), chunk.n
        text.seek(0)
        text.truncate()
    if not row:
        yield text.getvalue(), 0


@contextmanager
def _sink(path: Path | None, *, live: bool) -> Iterator[TextIO]:
    """Where to write. A file is there when it is complete, or grows with a stream that has no end."""
    if path is None:
        yield sys.stdout
        return
    target = Path(os.path.realpath(path))
    regular = not path.exists() or path.is_file()
    unfinished = target if live or not regular else target.with_name(f".{target.name}.{secrets.token_hex(8)}.tmp")
    with naming(path):
        try:
            file: TextIO
            with unfinished.open("w", encoding="utf-8", newline="") as file:
                yield file
                file.flush()
                if regular:
                    os.fsync(file.fileno())
            if unfinished != target:
                os.replace(unfinished, target)
        except BaseException:
            if unfinished != target:
                with suppress(OSError):
                    unfinished.unlink()
            raise
