"""What classifiers of other libraries can and cannot do."""

import inspect
from collections.abc import Callable
from typing import Any


def accepts(method: Callable[..., Any], name: str) -> bool:
    """Whether a method takes a parameter of that name.

    >>> accepts(sorted, "key")
    True
    """
    return name in inspect.signature(method).parameters


def river_probabilities(model: Any, x: dict[Any, Any]) -> dict[Any, float] | None:
    """Probabilities that a river classifier gives, by label; None if it only knows labels."""
    try:
        return dict(model.predict_proba_one(x))
    except NotImplementedError:
        return None
