"""Load saved models of any kind as classifiers."""

import os
from pathlib import Path
from typing import Any

from bayesvote.core.checks import InputError
from bayesvote.estimators import OnlineClassifier, around
from bayesvote.io.model_file import MAX_BYTES, ModelFileError, load, unpack

Classifier = OnlineClassifier[Any]


def load_classifier(path: str | os.PathLike[str]) -> Classifier:
    """Load a fitted model as a classifier; the labels of a plain ensemble or booster are numbers."""
    model = load_model(path)
    if model.learned() is None:
        raise InputError("", os.fspath(path), "must contain a fitted model", "one that has not been fitted")
    return model if isinstance(model, OnlineClassifier) else around(model)


def load_model(path: str | os.PathLike[str]) -> Any:
    """Load a model; an error names the file."""
    try:
        return load(path)
    except ModelFileError as error:
        left_out = _left_out(path)
        if left_out:
            must = "must contain the whole model to be used on the command line"
            do = f"Use it in Python, with load(path, objects={{{', '.join(f'{place!r}: ...' for place in left_out)}}})."
            raise InputError("", os.fspath(path), must, f"one without its {' and '.join(left_out)}", do) from error
        subject = f"{os.fspath(path)}: {error.subject}"
        raise ModelFileError("", subject, error.must, error.got, error.do) from error


def _left_out(path: str | os.PathLike[str]) -> list[str]:
    """Return the paths of a model's parts that are not in its file, such as members of other libraries."""
    found: list[str] = []

    def walk(node: Any) -> None:
        if isinstance(node, dict) and "reference" in node:
            found.append(str(node["reference"]))
        elif isinstance(node, (dict, list)):
            for part in node.values() if isinstance(node, dict) else node:
                walk(part)

    try:
        if Path(path).stat().st_size <= MAX_BYTES:
            walk(unpack(Path(path).read_bytes())[1])
    except (ModelFileError, RecursionError):
        return []
    return sorted(set(found))
