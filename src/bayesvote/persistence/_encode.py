"""Models as descriptions and arrays."""

import dataclasses
from typing import Any

import numpy as np

from bayesvote.ensemble import Ensemble
from bayesvote.members import EstimatorBank, Frozen, Union
from bayesvote.persistence._file import LARGEST, Arrays, code_of
from bayesvote.persistence._kinds import (
    BOOSTERS,
    ESTIMATOR_MODULE,
    ESTIMATORS,
    FITTED,
    LEAVES,
    REFERENCES,
    WEIGHTERS,
    Node,
)
from bayesvote.persistence._states import check_state, shape_of
from bayesvote.weighting import NumericalPosterior


def encode(model: Any) -> tuple[Node, Arrays]:
    """Return a model's description, which JSON can hold, and its arrays."""
    writer = _Writer()
    return writer.model(model, ""), writer.arrays


def _is_estimator(model: Any) -> bool:
    cls = type(model)
    return cls.__name__ in ESTIMATORS and f"{cls.__module__}.".startswith(f"{ESTIMATOR_MODULE}.")


def _is_plain(value: Any) -> bool:
    return value is None or isinstance(value, (bool, int, float, str, np.generic))


class _Writer:
    """Puts the arrays of a model aside, each under its place in the model."""

    def __init__(self) -> None:
        self.arrays: Arrays = {}
        self.places: dict[int, str] = {}  # of the objects that are not saved

    def model(self, model: Any, at: str) -> Node:
        if type(model) is Ensemble:
            node = {
                "kind": "Ensemble",
                "bank": self.part(model.bank, f"{at}bank", EstimatorBank),
                "weighter": self.part(model.weighter, f"{at}weighter", NumericalPosterior),
                "loss": self.value(model.loss, f"{at}loss"),
                "shape": None if model.state is None else [int(model.n_features), int(model.n_classes)],
            }
            if model.state is not None:
                self.state(model.weighter, model.state, at)
            return node
        if type(model) in BOOSTERS.values():
            return self.leaf(model, at)
        if _is_estimator(model):
            return self.estimator(model, at)
        raise TypeError(
            f"save: model must be an Ensemble, a booster or an estimator of this library, got {type(model).__name__}."
        )

    def leaf(self, part: Any, at: str) -> Node:
        shape = shape_of(part)
        if shape is not None:
            self.state(part, part.state, at)
        return {"kind": type(part).__name__, "parameters": self.parameters(part, at), "shape": shape and list(shape)}

    def estimator(self, estimator: Any, at: str) -> Node:
        parameters = {}
        for name, value in estimator.get_params(deep=False).items():
            drawing = isinstance(value, (np.random.RandomState, np.random.Generator))
            parameters[name] = None if drawing else self.value(value, f"{at}{name}")
        node = {"kind": type(estimator).__name__, "parameters": parameters, "fitted": None}
        if hasattr(estimator, "model_"):
            node["fitted"] = {
                name: self.value(getattr(estimator, name), name) for name in FITTED if hasattr(estimator, name)
            }
            node["model"] = self.model(estimator.model_, f"{at}model_.")
            self.state(estimator, estimator.calibration_, f"{at}calibration_.")
        return node

    def parameters(self, part: Any, at: str) -> Node:
        return {
            field.name: self.value(getattr(part, field.name), f"{at}{field.name}")
            for field in dataclasses.fields(part)
            if field.init
        }

    def state(self, part: Any, state: Any, at: str) -> None:
        try:
            check_state(part, state)
        except ValueError as error:
            raise ValueError(f"save: the model's state must be sound, got one where {error}.") from error
        self.arrays |= {f"{at}state.{name}": array for name, array in state._asdict().items()}

    def part(self, value: Any, at: str, foreign: type) -> Any:
        """Encode a bank or a weighter; it is of this library or of the one kind that holds the user's objects."""
        node = self.value(value, at)
        if "reference" in node and type(value) is not foreign:
            raise TypeError(
                f"save: {at} must be of this library, got {type(value).__name__}, which load would not know. "
                "Save what it has learned by your own means."
            )
        return node

    def value(self, value: Any, at: str) -> Any:
        """Encode a bank, a weighter or a plain value; anything else by its place."""
        kind = type(value)
        if kind in LEAVES.values():
            return self.leaf(value, f"{at}.")
        if kind is Union:
            banks = [self.part(bank, f"{at}.banks[{i}]", EstimatorBank) for i, bank in enumerate(value.banks)]
            return {"kind": "Union", "banks": banks, "shape": value.shape and [int(n) for n in value.shape]}
        if kind is Frozen:
            return {"kind": "Frozen", "bank": self.part(value.bank, f"{at}.bank", EstimatorBank)}
        if kind is EstimatorBank and not value.online:
            return {
                "kind": "EstimatorBank",
                "estimators": self.reference(value.estimators, f"{at}.estimators"),
                "n_members": value.n_members,
                "classes": self.value(value.classes, f"{at}.classes"),
                "shape": value.state and [int(value.state.n_features), int(value.state.n_classes)],
            }
        if kind in WEIGHTERS.values():
            return {"kind": kind.__name__, "parameters": self.parameters(value, f"{at}.")}
        if isinstance(value, np.generic):
            value = value.item()
        if isinstance(value, int) and abs(value) > LARGEST:
            raise ValueError(f"save: {at} must be at most {LARGEST}, got {value}.")
        if value is None or isinstance(value, (bool, int, float, str)):
            return value
        if kind is np.ndarray and value.ndim == 1 and value.dtype.kind in "biufUO":
            return {"array": value.tolist(), "dtype": value.dtype.kind if value.dtype.kind in "UO" else code_of(value)}
        if kind in (list, tuple) and all(_is_plain(item) for item in value):
            items = [self.value(item, at) for item in value]
            return items if kind is list else {"tuple": items}
        return self.reference(value, at)

    def reference(self, value: Any, at: str) -> Node:
        same = {name: self.value(get(value), at) for name, get in REFERENCES.get(type(value), {}).items()}
        return {"reference": self.places.setdefault(id(value), at), "kind": type(value).__name__, "same": same}
