"""Summaries of fitted classifiers for people."""

from typing import Any


def facts_of(model: Any) -> dict[str, Any]:
    """Return what the model of a classifier says about itself.

    Posteriors count the weights of rows. With weights of classes, their sum is not the number of rows, and is named so.
    """
    about: dict[str, Any] = dict(model.model_.about())
    if model.class_weight is None or hasattr(model.model_.state, "clock"):  # boosters count rows
        return about
    return {"weight_learned" if name == "rows_learned" else name: value for name, value in about.items()}
