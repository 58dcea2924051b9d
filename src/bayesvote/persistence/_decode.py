"""Models from their descriptions and arrays."""

from importlib import import_module
from typing import Any

import numpy as np
from numpy.typing import NDArray

from bayesvote import losses
from bayesvote._checks import whole
from bayesvote.ensemble import Ensemble
from bayesvote.members import EstimatorBank, Frozen, Union
from bayesvote.persistence._file import DTYPES, Arrays, ModelFileError, refusing
from bayesvote.persistence._kinds import (
    BOOSTERS,
    CALIBRATION_MODULE,
    ESTIMATOR_MODULE,
    ESTIMATORS,
    FITTED,
    LEAVES,
    REFERENCES,
    WEIGHTERS,
    Node,
)
from bayesvote.persistence._states import check_room, check_state, check_weighter_room, filled, shape_of
from bayesvote.weighting import NumericalPosterior

_WIDEST = 10_000_000  # features that a small file may speak of, as foreign members have no arrays in it


def decode(description: Any, arrays: Arrays, *, objects: dict[str, Any], room: int) -> Any:
    """Return the model again; no state may be larger than ``room`` bytes."""
    reader = _Reader(arrays, objects, room)
    with refusing(), np.errstate(all="ignore"):
        reader.find_references(description)
        model = reader.model(description, "")
        if reader.arrays:
            raise ValueError(f"the array {min(reader.arrays)[:50]}, which belongs to nothing")
    return model


class _Reader:
    """Builds a model from its description, taking the arrays of each part away."""

    def __init__(self, arrays: Arrays, objects: dict[str, Any], room: int) -> None:
        self.arrays = dict(arrays)
        self.objects = objects
        self.room = room

    def find_references(self, description: Any) -> None:
        """Refuse objects that do not fit the file's, before anything else is done."""
        wanted: dict[str, str] = {}

        def walk(node: Any) -> None:
            if isinstance(node, dict) and "reference" in node:
                wanted[str(node["reference"])] = str(node["kind"])
            elif isinstance(node, (dict, list)):
                for part in node.values() if isinstance(node, dict) else node:
                    walk(part)

        walk(description)
        if wanted.keys() != self.objects.keys():
            needs = ", ".join(f"{place!r}: {kind}" for place, kind in sorted(wanted.items()))
            raise ModelFileError(
                f"load: objects must hold exactly what the file does not, {{{needs}}}, got {sorted(self.objects)}. "
                "Give each as it was when the model was saved."
            )

    def model(self, node: Node, at: str) -> Any:
        kind = node["kind"]
        if kind == "Ensemble":
            return self.ensemble(node, at)
        if kind in BOOSTERS:
            return self.leaf(BOOSTERS[kind], node, at)
        if kind in ESTIMATORS:
            return self.estimator(node, at)
        raise ValueError(f"the unknown kind {kind!r}")

    def ensemble(self, node: Node, at: str) -> Ensemble:
        _only(node, "kind", "bank", "weighter", "loss", "shape")
        bank, weighter = self.bank(node["bank"], f"{at}bank"), self.weighter(node["weighter"])
        loss = self.reference(node["loss"], None) if isinstance(node["loss"], dict) else node["loss"]
        losses.get(loss)
        model = Ensemble(bank, weighter, loss)
        if node["shape"] is None:
            return model
        shape = _shape(node["shape"])
        if _bank_shape(bank) != shape:
            raise ValueError(f"members for {_bank_shape(bank)} features and classes instead of {shape}")
        check_weighter_room(weighter, bank.n_members, self.room)
        # Frozen members are not started anew; all else is checked as for any model.
        fresh = Ensemble(Frozen(bank), weighter, loss).start(*shape)
        model.state = filled(fresh.state, self.taken(f"{at}state."))
        check_state(weighter, model.state)
        model.n_features, model.n_classes = shape
        return model

    def bank(self, node: Node, at: str) -> Any:
        if "reference" in node:
            return self.reference(node, EstimatorBank)
        kind = node["kind"]
        if kind == "Union":
            _only(node, "kind", "banks", "shape")
            union = Union([self.bank(part, f"{at}.banks[{i}]") for i, part in enumerate(node["banks"])])
            if node["shape"] is not None:
                union.shape = _shape(node["shape"])
                _bank_shape(union)
            return union
        if kind == "Frozen":
            _only(node, "kind", "bank")
            return Frozen(self.bank(node["bank"], f"{at}.bank"))
        if kind == "EstimatorBank":
            return self.foreign(node)
        if kind not in LEAVES:
            raise ValueError(f"the unknown bank {kind!r}")
        return self.leaf(LEAVES[kind], node, f"{at}.")

    def foreign(self, node: Node) -> EstimatorBank:
        _only(node, "kind", "estimators", "n_members", "classes", "shape")
        bank = EstimatorBank(self.reference(node["estimators"], None), classes=self.plain(node["classes"]))
        if bank.n_members != node["n_members"]:
            raise ModelFileError(
                f"load: {node['estimators']['reference']!r} must hold {node['n_members']} classifiers, as when the "
                f"model was saved, got {bank.n_members}."
            )
        if node["shape"] is not None:
            shape = _shape(node["shape"])
            if shape[0] > max(self.room, _WIDEST):
                raise ValueError(f"{shape[0]} features in a file of {self.room} bytes")
            bank.start(*shape)
        return bank

    def leaf(self, kind: Any, node: Node, at: str) -> Any:
        _only(node, "kind", "parameters", "shape")
        part = kind(**self.parameters(node))
        if node["shape"] is None:
            return part
        shape = _shape(node["shape"])
        check_room(part, *shape, self.room)
        part.start(*shape, rng=0)
        state = filled(part.state, self.taken(f"{at}state."))
        check_state(part, state)
        part.state = state
        return part

    def weighter(self, node: Node) -> Any:
        if "reference" in node:
            return self.reference(node, NumericalPosterior)
        _only(node, "kind", "parameters")
        if node["kind"] not in WEIGHTERS:
            raise ValueError(f"the unknown weighter {node['kind']!r}")
        return WEIGHTERS[node["kind"]](**self.parameters(node))

    def parameters(self, node: Node) -> dict[str, Any]:
        return {name: self.plain(value) for name, value in node["parameters"].items()}

    def estimator(self, node: Node, at: str) -> Any:
        _only(node, "kind", "parameters", "fitted", "model")
        cls = getattr(import_module(ESTIMATOR_MODULE), node["kind"])
        parameters = {}
        for name, value in node["parameters"].items():
            kind = value.get("kind") if isinstance(value, dict) and "reference" not in value else None
            if kind in WEIGHTERS:
                parameters[name] = self.weighter(value)
            elif kind is not None:
                parameters[name] = self.bank(value, f"{at}{name}")
            else:
                parameters[name] = self.plain(value)
        estimator = cls(**parameters)
        if node["fitted"] is None:
            return estimator
        _only(node["fitted"], *FITTED)
        for name, value in node["fitted"].items():
            setattr(estimator, name, self.plain(value))
        estimator.model_ = self.model(node["model"], f"{at}model_.")
        fresh = import_module(CALIBRATION_MODULE).Calibration.start()
        estimator.calibration_ = filled(fresh, self.taken(f"{at}calibration_.state."))
        check_state(estimator, estimator.calibration_)
        self.check_fitted(estimator)
        return estimator

    def check_fitted(self, estimator: Any) -> None:
        model, classes, width = estimator.model_, estimator.classes_, estimator.n_features_in_
        shape = (model.n_features, model.n_classes) if isinstance(model, Ensemble) else shape_of(model)
        ordered = isinstance(classes, np.ndarray) and np.array_equal(np.unique(classes), classes)
        if not ordered or type(width) is not int or (width, len(classes)) != shape:
            raise ValueError(f"classes_ or n_features_in_ that do not fit the model's {shape}")
        names = getattr(estimator, "feature_names_in_", np.empty(width))
        if not isinstance(names, np.ndarray) or names.shape != (width,):
            raise ValueError(f"feature names that are not {width}")

    def plain(self, value: Any) -> Any:
        """Return a parameter that is neither bank nor weighter."""
        if isinstance(value, list):
            return [self.plain(item) for item in value]
        if not isinstance(value, dict):
            return value
        if "reference" in value:
            return self.reference(value, None)
        if "tuple" in value:
            _only(value, "tuple")
            return tuple(self.plain(item) for item in value["tuple"])
        _only(value, "array", "dtype")
        return self.array(value["array"], value["dtype"])

    def array(self, items: Any, dtype: str) -> NDArray[Any]:
        if dtype in ("U", "O"):
            if not all(type(item) is str or (dtype == "O" and type(item) in (int, float, bool)) for item in items):
                raise ValueError("labels that are no strings")
            if dtype == "U" and len(items) * max(map(len, items), default=0) > self.room:
                raise ValueError("labels of very different lengths")
            return np.array(items, dtype=np.dtype(dtype))
        array = np.array(items, dtype=DTYPES[dtype].newbyteorder("="))
        if array.ndim != 1 or array.tolist() != items:
            raise ValueError(f"numbers that are not of type {dtype!r}")
        return array

    def reference(self, node: Node, kind: type | None) -> Any:
        """Return the object given for a place; banks and weighters must be of their kind."""
        _only(node, "reference", "kind", "same")
        given = self.objects[node["reference"]]
        if kind is not None and not isinstance(given, kind):
            raise ModelFileError(
                f"load: the object given as {node['reference']!r} must be of type {kind.__name__}, "
                f"got {type(given).__name__}."
            )
        for name, get in REFERENCES.get(kind, {}).items():
            said = self.plain(node["same"][name])
            if get(given) != said:
                raise ModelFileError(
                    f"load: the {node['kind']} given as {node['reference']!r} must have the {name} {said!r}, got "
                    f"{get(given)!r}. Give it as it was when the model was saved."
                )
        return given

    def taken(self, prefix: str) -> Arrays:
        """Take the arrays of a part away."""
        names = [name for name in self.arrays if name.startswith(prefix)]
        return {name.removeprefix(prefix): self.arrays.pop(name) for name in names}


def _only(node: Node, *names: str) -> None:
    unknown = set(node) - set(names)
    if unknown:
        raise ValueError(f"the unknown entry {min(unknown)[:50]!r}")


def _shape(given: Any) -> tuple[int, int]:
    n_features, n_classes = given
    whole("shape", "n_features", n_features)
    whole("shape", "n_classes", n_classes, least=2)
    return n_features, n_classes


def _bank_shape(bank: Any) -> tuple[int, int] | None:
    """Return the features and classes that a bank was started with."""
    if isinstance(bank, Frozen):
        return _bank_shape(bank.bank)
    if isinstance(bank, EstimatorBank):
        return None if bank.state is None else (bank.state.n_features, bank.state.n_classes)
    if not isinstance(bank, Union):
        return shape_of(bank)
    shape: tuple[int, int] | None = bank.shape
    if shape is not None and any(_bank_shape(part) != shape for part in bank.banks):
        raise ValueError(f"banks that are not all of {shape} features and classes")
    return shape
