"""Constructors of adapters, derived from the signatures of the wrapped estimators."""

import inspect
from collections.abc import Callable
from typing import Any

import numpy as np

from bayesvote.core.checks import InputError
from bayesvote.core.names import initializer
from bayesvote.estimators import OnlineClassifier

# Parameters for chunks of rows. An adapter has a seed and gets single rows.
_LEFT_OUT = ("random_state", "shuffle", "horizon")
_EITHER = inspect.Parameter.POSITIONAL_OR_KEYWORD


def wrap(
    adapter: Any, estimator: type[OnlineClassifier[Any]], begin: Callable[[Any], None], first: str = "", **more: Any
) -> None:
    """Give an adapter class a constructor with the parameters of its estimator and further ones, first and last.

    ``begin`` is called at the end of the constructor.
    """
    own = [one.replace(kind=_EITHER) for one in inspect.signature(estimator).parameters.values()]
    parameters = [inspect.Parameter(first, _EITHER, annotation=Any)] if first else []
    parameters += [one for one in own if one.name not in _LEFT_OUT]
    parameters += [inspect.Parameter(name, _EITHER, default=value, annotation=Any) for name, value in more.items()]
    adapter.estimator = estimator
    seed = next(name for name in more if name.endswith("seed"))

    def checked(made: Any) -> None:
        if made.columns:
            must = "must be None, as single rows are not read as tables"
            do = "Omit it: strings are read as categories, and numbers as numbers."
            raise InputError(adapter.__name__, "columns", must, repr(made.columns), do)
        _check_seed(adapter.__name__, seed, getattr(made, seed))
        begin(made)

    hints = dict.fromkeys(_LEFT_OUT, "It has no effect on single rows; omit it.")
    hints["random_state"] = f"Use {seed}= instead."
    type.__setattr__(adapter, "__init__", initializer(parameters, checked, hints))


def _check_seed(who: str, name: str, seed: Any) -> None:
    try:
        np.random.default_rng(seed)
    except (TypeError, ValueError):
        raise InputError(who, name, "must be an integer of at least 0 or None", repr(seed)) from None


def parameters_of(adapter: Any) -> dict[str, Any]:
    """Return the arguments of an adapter's constructor."""
    return {name: getattr(adapter, name) for name in inspect.signature(type(adapter)).parameters}
