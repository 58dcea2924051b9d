"""Summaries of fitted classifiers."""

from typing import Any


def facts_of(model: Any) -> dict[str, Any]:
    """Return facts about the model of a classifier by name.

    Posteriors sum the weights of rows. With class weights, the sum is not the number of rows, so it is named
    "weight_learned".
    """
    about: dict[str, Any] = dict(model.model_.about())
    if model.class_weight is None or hasattr(model.model_.state, "clock"):  # boosters count rows
        return about
    return {"weight_learned" if name == "rows_learned" else name: value for name, value in about.items()}
