"""Inspection of classifiers of other libraries."""

import inspect
from collections.abc import Callable, Iterator
from pickle import PickleError
from types import BuiltinFunctionType, FunctionType
from typing import Any

import numpy as np

# Compared by ==; two functions or classes are equal if they are the same object.
_PLAIN = (
    bool,
    int,
    float,
    complex,
    str,
    bytes,
    set,
    frozenset,
    type,
    np.generic,
    np.dtype,
    FunctionType,
    BuiltinFunctionType,
)
# Their states are ignored: scikit-learn's estimators often hold the global generator, which other code also uses.
_RANDOM = (np.random.RandomState, np.random.Generator, np.random.BitGenerator)


def accepts(method: Callable[..., Any], name: str) -> bool:
    """Return True if a method takes a parameter of that name.

    >>> accepts(sorted, "key")
    True
    """
    return name in inspect.signature(method).parameters


def accepts_classes(partial_fit: Callable[..., Any]) -> bool:
    """Return True if a method takes ``classes``; one that takes any keyword is assumed to pass them on.

    >>> accepts_classes(lambda *args, **kwargs: None)
    True
    """
    taken = inspect.signature(partial_fit).parameters.values()
    return any(one.name == "classes" or one.kind is inspect.Parameter.VAR_KEYWORD for one in taken)


def river_probabilities(model: Any, x: dict[Any, Any]) -> dict[Any, float] | None:
    """Return a river classifier's probabilities by label; None if it only predicts labels."""
    try:
        return dict(model.predict_proba_one(x))
    except NotImplementedError:
        return None


def same_contents(a: Any, b: Any) -> bool:
    """Return True if two objects have the same types and values all the way down.

    The contents of an object are what pickle stores. Comparing pickled bytes would not do: they also depend on which
    parts are shared, so that a copy can differ from its original. An object that cannot be pickled equals only itself.
    States of random generators are ignored.

    >>> same_contents([np.zeros(2), {"a": None}], [np.zeros(2), {"a": None}]), same_contents(1, 1.0)
    (True, False)
    """
    pairs, seen = [(a, b)], dict[tuple[int, int], Any]()
    while pairs:
        a, b = pairs.pop()
        if a is b or (id(a), id(b)) in seen:
            continue
        seen[id(a), id(b)] = a, b  # kept, so that no other object gets these ids
        if type(a) is not type(b):
            return False
        try:
            if not _same_plain(a, b):
                return False
            parts = _parts(a), _parts(b)
        except (AttributeError, TypeError, PickleError):
            return False
        if len(parts[0]) != len(parts[1]):
            return False
        pairs += zip(*parts, strict=True)
    return True


def _same_plain(a: Any, b: Any) -> bool:
    """Compare the values of two objects of one type, apart from their parts."""
    if isinstance(a, np.ndarray):
        return a.dtype == b.dtype and a.shape == b.shape and (a.dtype.kind in "OV" or a.tobytes() == b.tobytes())
    if isinstance(a, dict):
        return bool(a.keys() == b.keys())
    return not isinstance(a, _PLAIN) or bool(a == b or (a != a and b != b))


def _parts(a: Any) -> list[Any]:
    """Return the parts of an object: items, fields of a structured array, or the state that pickle stores."""
    if isinstance(a, np.ndarray):
        if a.dtype.names is not None:  # field by field, as the bytes between the fields can be anything
            return [np.ascontiguousarray(a[name]) for name in a.dtype.names]
        return a.ravel().tolist() if a.dtype.kind == "O" else []
    if isinstance(a, list | tuple):
        return list(a)
    if type(a) is dict:
        return [a[key] for key in sorted(a, key=repr)]
    if isinstance(a, (*_PLAIN, *_RANDOM)):
        return []
    if hasattr(a, "get_arrays"):  # scikit-learn's KDTree and BallTree also store how often they were asked
        return list(a.get_arrays())
    stored = a.__reduce_ex__(4)
    if isinstance(stored, str):
        return [stored]
    return [list(part) if isinstance(part, Iterator) else part for part in stored]
