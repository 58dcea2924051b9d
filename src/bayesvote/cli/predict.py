"""``predict``: labels and probabilities of a file's rows, as CSV."""

import csv
import sys
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import TextIO

import numpy as np

from bayesvote.cli import show
from bayesvote.cli.models import load_classifier
from bayesvote.cli.rows import unlabelled
from bayesvote.datasets._readers import BadLines


def predict(
    model_path: Path, file: str, out: Path | None, *, proba: bool, file_format: str, target: str | None, bad_lines: str
) -> None:
    """Write the prediction of every row."""
    model = load_classifier(model_path)
    names = getattr(model, "feature_names_in_", None)
    if names is not None:
        del model.feature_names_in_  # columns are put in order here, by name
    bad = BadLines("standard input" if file == "-" else file, bad_lines)
    chunks = unlabelled(file, file_format, model.n_features_in_, None if names is None else names.tolist(), target, bad)
    header = ["row", "predicted"]
    if proba:
        header += [f"probability_{label}" for label in model.classes_.tolist()]
    row = 0
    with _opened(out) as sink:
        writer = csv.writer(sink, lineterminator="\n")
        writer.writerow(header)
        for X in chunks:
            numbers = range(row + 1, row + 1 + X.shape[0])
            row += X.shape[0]
            if proba:
                probabilities = model.predict_proba(X)
                labels = model.classes_[np.argmax(probabilities, axis=1)].tolist()
                writer.writerows(
                    (i, label, *p) for i, label, p in zip(numbers, labels, probabilities.tolist(), strict=True)
                )
            else:
                writer.writerows(zip(numbers, model.predict(X).tolist(), strict=True))
    show.skipped(bad.count, bad.reports)


@contextmanager
def _opened(path: Path | None) -> Iterator[TextIO]:
    if path is None:
        yield sys.stdout
        return
    with path.open("w", encoding="utf-8", newline="") as file:
        yield file
