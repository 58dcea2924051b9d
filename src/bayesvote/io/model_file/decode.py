"""Decoding of models from descriptions and arrays."""

from typing import Any

import numpy as np
from numpy.typing import NDArray

from bayesvote.core.state import Learned, Part
from bayesvote.io.model_file.encode import Node, types_of
from bayesvote.io.model_file.file import DTYPES, LARGEST, TIMES, Arrays, ModelFileError, as_model_file_errors
from bayesvote.io.model_file.kinds import class_of


def decode(description: Any, arrays: Arrays, *, objects: dict[str, Any], room: int) -> Any:
    """Return the model of a description; no state may be larger than ``room`` bytes."""
    reader = _Reader(arrays, objects, room)
    with as_model_file_errors(), np.errstate(all="ignore"):
        reader.find_references(description)
        model = reader.part(description, "")
        if not model.complete:
            raise ValueError(f"{type(model).__name__} is a part of a model, not a whole one")
        if reader.arrays:
            raise ValueError(f"the array {min(reader.arrays)[:50]!r} belongs to no part of the model")
    return model


class _Reader:
    """Builder of a model from its description; it removes the arrays of each part once they are used."""

    def __init__(self, arrays: Arrays, objects: dict[str, Any], room: int) -> None:
        self.arrays = dict(arrays)
        self.objects = objects
        self.room = room

    def find_references(self, description: Any) -> None:
        """Require exactly the objects that the file refers to, before anything else is done."""
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
            must = f"must contain exactly the objects that the file does not, {{{needs}}}"
            do = "Pass each as it was when the model was saved."
            raise ModelFileError("load", "objects", must, str(sorted(self.objects)), do)

    def part(self, node: Node, at: str) -> Any:
        """Build a part from its parameters, then restore its learned state."""
        _only(node, "kind", "parameters", "learned")
        parameters = {name: self.value(value, f"{at}{name}") for name, value in node["parameters"].items()}
        part = class_of(node["kind"])(**parameters)
        if node["learned"] is not None:
            _only(node["learned"], "facts", "parts")
            facts = {name: self.value(value, f"{at}{name}") for name, value in node["learned"]["facts"].items()}
            parts = {name: self.part(inner, f"{at}{name}.") for name, inner in node["learned"]["parts"].items()}
            part.restore(Learned(facts, self.taken(f"{at}state."), parts), self.room)
        return part

    def value(self, value: Any, at: str) -> Any:
        """Decode a parameter, or a value of the learned state."""
        if isinstance(value, list):
            return [self.value(item, f"{at}[{i}]") for i, item in enumerate(value)]
        if not isinstance(value, dict):
            return value
        if "reference" in value:
            return self.reference(value)
        if "kind" in value:
            return self.part(value, f"{at}.")
        if "tuple" in value:
            _only(value, "tuple")
            return tuple(self.value(value["tuple"], at))
        if "dict" in value:
            _only(value, "dict")
            return {key: self.value(item, at) for key, item in value["dict"]}
        _only(value, "array", "dtype")
        return self.array(value["array"], value["dtype"])

    def array(self, items: Any, dtype: str) -> NDArray[Any]:
        if dtype in ("O", "I64", "U64"):
            items = [_integer(item) if isinstance(item, dict) else item for item in items]
        if dtype in ("U", "O"):
            if not all(type(item) is str or (dtype == "O" and type(item) in (int, float, bool)) for item in items):
                raise ValueError("labels must be strings")
            if dtype == "U" and any(item.endswith("\0") for item in items):
                raise ValueError("labels that end in NUL must have the type object")
            if dtype == "U" and len(items) * max(map(len, items), default=0) > self.room:
                raise ValueError("labels must not need more memory than the file as an array of strings")
            return np.array(items, dtype=np.dtype(dtype))
        if dtype in TIMES:
            return self.array(items, "I64").view(dtype)
        array = np.array(items, dtype=DTYPES[dtype].newbyteorder("="))
        if array.ndim != 1 or array.tolist() != items:
            raise ValueError(f"numbers must be of type {dtype!r}")
        return array

    def reference(self, node: Node) -> Any:
        """Return the object passed for a place; it must have the same type and settings as the saved one."""
        _only(node, "reference", "kind", "same")
        given, place, kind = self.objects[node["reference"]], node["reference"], node["kind"]
        if node["same"] and "__len__" not in node["same"] and type(given).__name__ != kind:
            subject = f"the object passed as {place!r}"
            raise ModelFileError("load", subject, f"must be of type {kind}", type(given).__name__)
        if "__len__" in node["same"] and not isinstance(given, (list, tuple)):
            subject, do = f"the object passed as {place!r}", "Pass it as it was when the model was saved."
            raise ModelFileError("load", subject, "must be a list", type(given).__name__, do)
        for name, value in node["same"].items():
            saved = self.value(value, "")
            # Read attributes of the library's parts only: reading one of another object could run its code.
            if name == "__len__":
                found: Any = len(given)
            elif name == "__types__":  # absent from files of older versions
                found = [_same_or_moved(found, name) for found, name in zip(types_of(given), saved, strict=True)]
            elif isinstance(given, Part) and name in (given.reference or ()):
                found = getattr(given, name)
            else:
                raise ValueError(f"the entry {name[:50]!r} is unknown")
            if found != saved:
                of_list = {
                    "__len__": f"must contain {saved} classifiers",
                    "__types__": f"must contain {saved}, in this order",
                }
                must = of_list.get(name, f"must have the {name} {saved!r}")
                subject, do = f"the {kind} passed as {place!r}", "Pass it as it was when the model was saved."
                raise ModelFileError("load", subject, must, repr(found), do)
        return given

    def taken(self, prefix: str) -> Arrays:
        """Remove and return the arrays of a part."""
        names = [name for name in self.arrays if name.startswith(prefix)]
        return {name.removeprefix(prefix): self.arrays.pop(name) for name in names}


def _integer(item: Node) -> int:
    """Decode an integer that is too large for a JSON number, and is written as text."""
    _only(item, "integer")
    found = int(item["integer"])
    if str(found) != item["integer"] or abs(found) <= LARGEST:
        raise ValueError(f"an integer must be written in decimal digits, and as a number up to {LARGEST}")
    return found


def _same_or_moved(found: str, saved: str) -> str:
    """Return the saved name of a type if only its module differs, and one of the modules is the main script."""
    moved = "__main__" in (found.partition(".")[0], saved.partition(".")[0])
    return saved if moved and found.partition(".")[2] == saved.partition(".")[2] else found


def _only(node: Node, *names: str) -> None:
    unknown = set(node) - set(names)
    if unknown:
        raise ValueError(f"the entry {min(unknown)[:50]!r} is unknown")
