"""Conversion of model files of version 1, in which each kind had its own form of description."""

from typing import Any

from bayesvote.io.model_file.encode import Node
from bayesvote.io.model_file.file import Arrays


def upgraded(description: Node, arrays: Arrays) -> tuple[Node, Arrays]:
    """Convert the description and arrays of version 1 to version 2."""
    return _part(description), {name.replace("calibration_.state.", "state."): array for name, array in arrays.items()}


def _part(node: Node) -> Node:
    given = dict(node)
    if "reference" in given:
        return given
    kind = given.pop("kind")
    shape, learned = given.pop("shape", None), None
    if shape is not None:
        learned = {"facts": {"shape": shape, "version": 1}, "parts": {}}
    if kind == "EstimatorBank":
        estimators = given["estimators"] | {"same": {"__len__": given.pop("n_members")}}
        given["parameters"] = {"estimators": estimators, "online": False, "classes": given.pop("classes")}
        del given["estimators"]
    elif kind in ("Ensemble", "Frozen"):
        names = ("bank", "weighter", "loss") if kind == "Ensemble" else ("bank",)
        given["parameters"] = {name: _value(given.pop(name)) for name in names}
    elif kind == "Union":
        given["parameters"] = {"banks": [_part(bank) for bank in given.pop("banks")]}
    elif "fitted" in given:
        given["parameters"] = {name: _value(value) for name, value in given["parameters"].items()}
        if kind == "BayesianEnsembleClassifier":
            given["parameters"]["scale"] = False  # version 1 could not scale features
        fitted = given.pop("fitted")
        if fitted is not None:
            learned = {"facts": fitted, "parts": {"model_": _part(given.pop("model"))}}
    # Decoding raises an error for entries that are left over.
    return {"kind": kind, **given, "learned": learned}


def _value(value: Any) -> Any:
    return _part(value) if isinstance(value, dict) and "kind" in value else value
