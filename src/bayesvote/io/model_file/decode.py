"""Models from their descriptions and arrays."""

from typing import Any

import numpy as np
from numpy.typing import NDArray

from bayesvote.core.state import Learned, Part
from bayesvote.io.model_file.encode import Node, types_of
from bayesvote.io.model_file.file import DTYPES, LARGEST, TIMES, Arrays, ModelFileError, refusing
from bayesvote.io.model_file.kinds import class_of


def decode(description: Any, arrays: Arrays, *, objects: dict[str, Any], room: int) -> Any:
    """Return the model again; no state may be larger than ``room`` bytes."""
    reader = _Reader(arrays, objects, room)
    with refusing(), np.errstate(all="ignore"):
        reader.find_references(description)
        model = reader.part(description, "")
        if not model.complete:
            raise ValueError(f"{type(model).__name__}, which is only a part of a model")
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
            must = f"must hold exactly what the file does not, {{{needs}}}"
            do = "Give each as it was when the model was saved."
            raise ModelFileError("load", "objects", must, str(sorted(self.objects)), do)

    def part(self, node: Node, at: str) -> Any:
        """Build a part from its parameters, then let it take up what it had learned."""
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
        """Return a parameter or a fact."""
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
                raise ValueError("labels that are not strings")
            if dtype == "U" and any(item.endswith("\0") for item in items):
                raise ValueError("labels that end in NUL, which only objects can")
            if dtype == "U" and len(items) * max(map(len, items), default=0) > self.room:
                raise ValueError("labels of very different lengths")
            return np.array(items, dtype=np.dtype(dtype))
        if dtype in TIMES:
            return self.array(items, "I64").view(dtype)
        array = np.array(items, dtype=DTYPES[dtype].newbyteorder("="))
        if array.ndim != 1 or array.tolist() != items:
            raise ValueError(f"numbers that are not of type {dtype!r}")
        return array

    def reference(self, node: Node) -> Any:
        """Return the object given for a place; a part must be of the same kind and settings as the saved one."""
        _only(node, "reference", "kind", "same")
        given, place, kind = self.objects[node["reference"]], node["reference"], node["kind"]
        if node["same"] and "__len__" not in node["same"] and type(given).__name__ != kind:
            subject = f"the object given as {place!r}"
            raise ModelFileError("load", subject, f"must be of type {kind}", type(given).__name__)
        if "__len__" in node["same"] and not isinstance(given, (list, tuple)):
            subject = f"the object given as {place!r}"
            raise ModelFileError("load", subject, "must be a list", type(given).__name__, "Give it as it was saved.")
        for name, value in node["same"].items():
            saved = self.value(value, "")
            # Read attributes of our own parts only, never of arbitrary objects.
            if name == "__len__":
                found: Any = len(given)
            elif name == "__types__":  # older files have none
                found = [_as_said(found, said) for found, said in zip(types_of(given), saved, strict=True)]
            elif isinstance(given, Part) and name in (given.reference or ()):
                found = getattr(given, name)
            else:
                raise ValueError(f"the unknown entry {name[:50]!r}")
            if found != saved:
                whats = {"__len__": f"hold {saved} classifiers", "__types__": f"hold {saved}, in this order"}
                what = whats.get(name, f"have the {name} {saved!r}")
                subject, do = f"the {kind} given as {place!r}", "Give it as it was when the model was saved."
                raise ModelFileError("load", subject, f"must {what}", repr(found), do)
        return given

    def taken(self, prefix: str) -> Arrays:
        """Take the arrays of a part away."""
        names = [name for name in self.arrays if name.startswith(prefix)]
        return {name.removeprefix(prefix): self.arrays.pop(name) for name in names}


def _integer(item: Node) -> int:
    """Return an integer that is too large to stand in a file as a number."""
    _only(item, "integer")
    found = int(item["integer"])
    if str(found) != item["integer"] or abs(found) <= LARGEST:
        raise ValueError("an integer that is not written as it should be")
    return found


def _as_said(found: str, said: str) -> str:
    """Return what a file says of a type if it is that, which may have moved into or out of the main script."""
    moved = "__main__" in (found.partition(".")[0], said.partition(".")[0])
    return said if moved and found.partition(".")[2] == said.partition(".")[2] else found


def _only(node: Node, *names: str) -> None:
    unknown = set(node) - set(names)
    if unknown:
        raise ValueError(f"the unknown entry {min(unknown)[:50]!r}")
