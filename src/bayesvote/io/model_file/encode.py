"""Models as descriptions and arrays: parts, their parameters, and what they have learned."""

from collections.abc import Mapping, Sequence
from typing import Any

import numpy as np

from bayesvote.core.checks import InputTypeError
from bayesvote.core.state import Learned, Part
from bayesvote.io.model_file.file import LARGEST, TIMES, Arrays, code_of
from bayesvote.io.model_file.kinds import kind_of

Node = dict[str, Any]  # the description of a part


def encode(model: Any) -> tuple[Node, Arrays]:
    """Return a model's description, which JSON can hold, and its arrays."""
    if not isinstance(model, Part) or not model.complete or kind_of(model) is None:
        raise TypeError(
            f"save: model must be an Ensemble, a booster or a classifier of this library, got {type(model).__name__}."
        )
    writer = _Writer()
    return writer.part(model, ""), writer.arrays


def _is_plain(value: Any) -> bool:
    if isinstance(value, (list, tuple)):
        return all(map(_is_plain, value))
    return value is None or isinstance(value, (bool, int, float, str, np.generic))


def _told(item: Any, at: str) -> Any:
    """Encode what an array holds: integers that JSON readers would round as their digits."""
    if type(item) is not int or abs(item) <= LARGEST:
        return item
    try:
        return {"integer": str(item)}
    except ValueError:
        raise ValueError(f"save: {at} must hold integers of fewer digits.") from None


def types_of(items: Sequence[Any]) -> list[str]:
    """Types of objects that are not saved, of pairs that of the first: package and name, as modules may be moved."""
    given = [type(item[0] if isinstance(item, tuple) and item else item) for item in items]
    return [f"{kind.__module__.partition('.')[0]}.{kind.__name__}" for kind in given]


class _Writer:
    """Puts the arrays of a model aside, each under its place in the model."""

    def __init__(self) -> None:
        self.arrays: Arrays = {}
        self.places: dict[int, str] = {}  # of the objects that are not saved

    def part(self, part: Part, at: str) -> Node:
        kind = kind_of(part)
        if kind is None:
            raise TypeError(
                f"save: {at.removesuffix('.')} must be of this library, got {type(part).__name__}, which load would "
                "not know. Save what it has learned by your own means."
            )
        if part.reference is not None:
            return self.reference(part, at.removesuffix("."), {name: getattr(part, name) for name in part.reference})
        parameters = {name: self.value(value, f"{at}{name}") for name, value in part.parameters().items()}
        try:
            learned = part.learned()
        except ValueError as error:
            raise ValueError(f"save: the model's state must be sound, but in {part.who}: {error}.") from error
        return {"kind": kind, "parameters": parameters, "learned": learned and self.learned(learned, at)}

    def learned(self, learned: Learned, at: str) -> Node:
        self.arrays |= {f"{at}state.{name}": array for name, array in learned.arrays.items()}
        return {
            "facts": {name: self.fact(value, f"{at}{name}") for name, value in learned.facts.items()},
            "parts": {name: self.part(part, f"{at}{name}.") for name, part in learned.parts.items()},
        }

    def fact(self, value: Any, at: str) -> Any:
        """Encode what was learned: nobody could be asked to give it again."""
        told = self.value(value, at)
        if isinstance(told, dict) and "reference" in told:
            got = f"{value.dtype} values" if isinstance(value, np.ndarray) else type(value).__name__
            raise InputTypeError("save", at, "must hold numbers, text or dates", got, "Make text of them, with str.")
        return told

    def value(self, value: Any, at: str) -> Any:
        """Encode a part or a plain value; anything else by its place."""
        kind = type(value)
        if isinstance(value, Part):
            return self.part(value, f"{at}.")
        if isinstance(value, np.generic):
            value = value.item()
        if isinstance(value, int) and abs(value) > LARGEST:
            raise ValueError(f"save: {at} must be at most {LARGEST}, got {value}.")
        if value is None or isinstance(value, (bool, int, float, str)):
            return value
        if kind is np.ndarray and value.ndim == 1 and value.dtype.name in TIMES:
            return {"array": value.astype(np.int64).tolist(), "dtype": value.dtype.name}
        if kind is np.ndarray and value.ndim == 1 and value.dtype.kind in "biufUO":
            dtype = value.dtype.kind if value.dtype.kind in "UO" else code_of(value)
            return {"array": [_told(item, at) for item in value.tolist()], "dtype": dtype}
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
        told = {name: self.value(attribute, at) for name, attribute in same.items()}
        return {"reference": place, "kind": type(value).__name__, "same": told}
