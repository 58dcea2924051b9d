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


def accepts_classes(partial_fit: Callable[..., Any]) -> bool:
    """Whether the classes can be told before the first row; one that takes any parameter hands them on.

    >>> accepts_classes(lambda *args, **kwargs: None)
    True
    """
    taken = inspect.signature(partial_fit).parameters.values()
    return any(one.name == "classes" or one.kind is inspect.Parameter.VAR_KEYWORD for one in taken)


def river_probabilities(model: Any, x: dict[Any, Any]) -> dict[Any, float] | None:
    """Probabilities that a river classifier gives, by label; None if it only knows labels."""
    try:
        return dict(model.predict_proba_one(x))
    except NotImplementedError:
        return None
