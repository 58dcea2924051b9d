"""Encoding of models as descriptions and arrays: parts, their parameters and their learned state."""

from collections.abc import Mapping, Sequence
from typing import Any

import numpy as np

from bayesvote.core.checks import InputError, InputTypeError
from bayesvote.core.state import Learned, Part
from bayesvote.io.model_file.file import LARGEST, TIMES, Arrays, code_of
from bayesvote.io.model_file.kinds import kind_of

Node = dict[str, Any]  # JSON description of a part


def encode(model: Any) -> tuple[Node, Arrays]:
    """Return the description of a model, for JSON, and its arrays."""
    if not isinstance(model, Part) or not model.complete or kind_of(model) is None:
        must = "must be an Ensemble, a booster or a classifier of this library"
        raise InputTypeError("save", "model", must, type(model).__name__)
    writer = _Writer()
    return writer.part(model, ""), writer.arrays


def _is_plain(value: Any) -> bool:
    if isinstance(value, (list, tuple)):
        return all(map(_is_plain, value))
    return value is None or isinstance(value, (bool, int, float, str, np.generic))


def _item(item: Any, at: str) -> Any:
    """Encode an item of an array. Integers that JSON readers would round are written as text."""
    if type(item) is not int or abs(item) <= LARGEST:
        return item
    try:
        return {"integer": str(item)}
    except ValueError:
        # Python limits the length of integers that it converts to text, by sys.set_int_max_str_digits.
        raise InputError("save", at, "must contain integers of fewer digits") from None


def types_of(items: Sequence[Any]) -> list[str]:
    """Return the types of objects that are not saved; for (object, ...) tuples, the type of the object.

    A type is written as package and name, because other libraries move their modules.
    """
    given = [type(item[0] if isinstance(item, tuple) and item else item) for item in items]
    return [f"{kind.__module__.partition('.')[0]}.{kind.__name__}" for kind in given]


class _Writer:
    """Encoder of a model; it collects the arrays by their place in the model."""

    def __init__(self) -> None:
        self.arrays: Arrays = {}
        self.places: dict[int, str] = {}  # places of the objects that are not saved

    def part(self, part: Part, at: str) -> Node:
        kind = kind_of(part)
        if kind is None:
            do = "Save its state with your own code."
            raise InputTypeError("save", at.removesuffix("."), "must be of this library", type(part).__name__, do)
        if part.reference is not None:
            return self.reference(part, at.removesuffix("."), {name: getattr(part, name) for name in part.reference})
        parameters = {name: self.value(value, f"{at}{name}") for name, value in part.parameters().items()}
        try:
            learned = part.learned()
        except ValueError as error:
            raise InputError("save", "the model's state", f"must be valid, but in {part.who}: {error}") from error
        return {"kind": kind, "parameters": parameters, "learned": learned and self.learned(learned, at)}

    def learned(self, learned: Learned, at: str) -> Node:
        self.arrays |= {f"{at}state.{name}": array for name, array in learned.arrays.items()}
        return {
            "facts": {name: self.fact(value, f"{at}{name}") for name, value in learned.facts.items()},
            "parts": {name: self.part(part, f"{at}{name}.") for name, part in learned.parts.items()},
        }

    def fact(self, value: Any, at: str) -> Any:
        """Encode a value of the learned state, which cannot be a reference: users do not have it to pass it again."""
        encoded = self.value(value, at)
        if isinstance(encoded, dict) and "reference" in encoded:
            got = f"{value.dtype} values" if isinstance(value, np.ndarray) else type(value).__name__
            raise InputTypeError("save", at, "must contain numbers, text or dates", got, "Convert them to text by str.")
        return encoded

    def value(self, value: Any, at: str) -> Any:
        """Encode a part or a plain value; other objects become references to their place."""
        kind = type(value)
        if isinstance(value, Part):
            return self.part(value, f"{at}.")
        if isinstance(value, np.generic):
            value = value.item()
        if isinstance(value, int) and abs(value) > LARGEST:
            raise InputError("save", at, f"must be from {-LARGEST} to {LARGEST}", str(value))
        if value is None or isinstance(value, (bool, int, float, str)):
            return value
        if kind is np.ndarray and value.ndim == 1 and value.dtype.name in TIMES:
            return {"array": value.astype(np.int64).tolist(), "dtype": value.dtype.name}
        if kind is np.ndarray and value.ndim == 1 and value.dtype.kind in "biufUO":
            dtype = value.dtype.kind if value.dtype.kind in "UO" else code_of(value)
            return {"array": [_item(item, at) for item in value.tolist()], "dtype": dtype}
        if isinstance(value, Mapping) and _is_plain([*value.keys(), *value.values()]):
            return {"dict": [self.value([*item], at) for item in value.items()]}
        if isinstance(value, (list, tuple)):
            if _is_plain(value) or all(isinstance(item, Part) for item in value):
                items = [self.value(item, f"{at}[{i}]") for i, item in enumerate(value)]
                return items if kind is list else {"tuple": items}
            return self.reference(value, at, {"__len__": len(value), "__types__": types_of(value)})
        return self.reference(value, at, {})

    def reference(self, value: Any, at: str, same: dict[str, Any]) -> Node:
        place = self.places.setdefault(id(value), at)
        encoded = {name: self.value(attribute, at) for name, attribute in same.items()}
        return {"reference": place, "kind": type(value).__name__, "same": encoded}
