"""Encoding of strings in dictionaries as indicator features, in constant memory."""

from collections.abc import Container, Hashable, Iterable, Mapping
from typing import Any, Protocol

from bayesvote.core.checks import InputError, overflows
from bayesvote.core.rows import LARGEST, TOO_LARGE
from bayesvote.tables import bucket_of, shortened

MOST, BUCKETS = 64, 16  # strings per name with a feature each, and features for all others, as in Columns


class Names(Container[Hashable], Iterable[Hashable], Protocol):
    """Known names."""


def with_indicators(x: Mapping[Any, Any], known: Names) -> dict[Any, Any]:
    """Return the row with "name=text" set to 1 for every string, and "name=" for a missing one.

    >>> with_indicators({"island": "Dream", "mass": 3750}, [])
    {'island=Dream': 1.0, 'mass': 3750}
    """
    out = {}
    for name, value in x.items():
        if isinstance(value, str):
            out[_feature(name, shortened(value), known)] = 1.0
        elif value is None and _texts(name, known):
            out[f"{name}="] = 1.0
        else:
            out[name] = value
    return out


def too_large(who: str, x: Mapping[Any, Any]) -> InputError:
    """Return the error for a row with a number too large for float64."""
    name = next((name for name, value in x.items() if overflows(value)), "")
    must = f"must be a finite number below {LARGEST:g} in size"
    return InputError(who, f"{name!r} of x", must, "a number too large for float64", TOO_LARGE)


def _feature(name: Any, text: str, known: Names) -> str:
    own = f"{name}={text}"
    if own in known or _texts(name, known) < MOST:
        return own
    return f"{name}#{bucket_of(text, BUCKETS)}"


def _texts(name: Any, known: Names) -> int:
    """Return the number of known strings of a name."""
    return sum(isinstance(one, str) and one.startswith(f"{name}=") for one in known)
