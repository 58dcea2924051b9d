"""Work of ``predict``: labels and probabilities of a file's rows, as CSV."""

import csv
import io
import os
import secrets
import sys
from collections.abc import Iterator
from contextlib import contextmanager, suppress
from dataclasses import replace
from pathlib import Path
from typing import TextIO

import numpy as np

from bayesvote.apps.cli import show
from bayesvote.apps.cli.interrupts import interrupts
from bayesvote.apps.cli.models import Classifier, load_classifier
from bayesvote.apps.cli.settings import target_usage
from bayesvote.core.checks import InputError
from bayesvote.core.files import naming
from bayesvote.datasets import Stream
from bayesvote.io.open_stream import is_replayable, listed, open_unlabelled
from bayesvote.io.read_options import ReadOptions


def predict(model_path: Path, file: str, out: Path | None, *, proba: bool, options: ReadOptions) -> int:
    """Write the prediction of every row; return the exit code."""
    model = load_classifier(model_path)
    done = 0
    with interrupts() as stop:
        try:
            chunks = _opened(model, file, options)
            with _sink(out, live=not is_replayable(file)) as sink:
                for text, n in _texts(model, chunks, proba, sink):
                    sink.write(text)
                    sink.flush()  # the reader of a pipe gets each answer immediately
                    done += n
        except KeyboardInterrupt:
            kept = "" if out is None else f" The predictions are in {out}." if out.exists() else " Nothing was written."
            show.note(f"Stopped after {done:,} rows.{kept}")
            return stop.code
    show.skipped(chunks.skipped, chunks.reports)
    return 0


def _opened(model: Classifier, file: str, options: ReadOptions) -> Stream:
    """Open the file for the columns that the model knows."""
    names = model.columns_.names if hasattr(model, "columns_") else getattr(model, "feature_names_in_", None)
    kinds = None
    if hasattr(model, "columns_"):
        # Number columns are read as numbers. For stated dates and booleans, other text makes a bad line. All other
        # columns are passed on as text: the model encodes them.
        stated = model.columns_.columns or {}
        kinds = {
            about["name"]: "number"
            if about["kind"] == "number" and not about["texts"]
            else stated[about["name"]]
            if about["kind"] in ("boolean", "date") and about["name"] in stated
            else "category"
            for about in model.columns_.describe()
        }
    elif names is not None:
        model.name_features(None)  # the reader reorders the columns
    with target_usage():
        rows = open_unlabelled(
            file,
            replace(options, columns=kinds),
            model.n_features_in_,
            None if names is None else list(names),
            flush_after=0.0,
        )
    if len(rows.ignored) > (options.target is None):  # without --target, one extra column may be the label
        show.note(f"{file} has columns that the model was not fitted with; they are ignored: {listed(rows.ignored)}.")
    if kinds and rows.feature_names is None:
        raise InputError("", file, f"must have the columns of the model, {listed(list(kinds))}", "LIBSVM text")
    return rows


def _texts(model: Classifier, chunks: Stream, proba: bool, sink: TextIO) -> Iterator[tuple[str, int]]:
    """Yield the predictions of each chunk as CSV, and their number; the first text starts with the header."""
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
    """Open the output. A file appears when it is complete, unless the rows come from a pipe."""
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
