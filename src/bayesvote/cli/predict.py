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
from bayesvote.cli.settings import place_or_name, target_usage
from bayesvote.datasets import stream_unlabelled


def predict(
    model_path: Path, file: str, out: Path | None, *, proba: bool, file_format: str, target: str | None, bad_lines: str
) -> None:
    """Write the prediction of every row."""
    model = load_classifier(model_path)
    names = getattr(model, "feature_names_in_", None)
    if names is not None:
        del model.feature_names_in_  # the reader puts the columns in order
    with target_usage():
        chunks = stream_unlabelled(
            file,
            file_format,
            n_features=model.n_features_in_,
            feature_names=None if names is None else names.tolist(),
            target=place_or_name(target),
            bad_lines=bad_lines,
        )
    header = ["row", "predicted"]
    if proba:
        header += [f"probability_{label}" for label in model.classes_.tolist()]
    row = 0
    with _opened(out) as sink:
        writer = csv.writer(sink, lineterminator="\n")
        writer.writerow(header)
        for chunk in chunks:
            X = chunk.X
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
    show.skipped(chunks.skipped, chunks.reports)


@contextmanager
def _opened(path: Path | None) -> Iterator[TextIO]:
    if path is None:
        yield sys.stdout
        return
    with path.open("w", encoding="utf-8", newline="") as file:
        yield file
