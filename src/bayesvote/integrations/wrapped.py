"""How an adapter gets the parameters of the estimator that it wraps, all of them, written nowhere twice."""

import inspect
from collections.abc import Callable
from typing import Any

import numpy as np

from bayesvote.core.checks import InputError
from bayesvote.core.names import initializer
from bayesvote.estimators import OnlineClassifier

# Parameters for rows in chunks: an adapter is given a seed, and its rows one by one.
_LEFT_OUT = ("random_state", "shuffle", "horizon")
_EITHER = inspect.Parameter.POSITIONAL_OR_KEYWORD


def wrap(
    adapter: Any, estimator: type[OnlineClassifier[Any]], begin: Callable[[Any], None], first: str = "", **more: Any
) -> None:
    """Let an adapter take what its estimator takes, but for some, with a parameter before and some behind.

    ``begin`` does the rest of the construction.
    """
    own = [one.replace(kind=_EITHER) for one in inspect.signature(estimator).parameters.values()]
    parameters = [inspect.Parameter(first, _EITHER, annotation=Any)] if first else []
    parameters += [one for one in own if one.name not in _LEFT_OUT]
    parameters += [inspect.Parameter(name, _EITHER, default=value, annotation=Any) for name, value in more.items()]
    adapter.estimator = estimator
    seed = next(name for name in more if name.endswith("seed"))

    def checked(made: Any) -> None:
        if made.columns:
            must = "must be None, as rows of single instances are not read as tables"
            do = "Leave it out: text is read as categories, and numbers as numbers."
            raise InputError(adapter.__name__, "columns", must, repr(made.columns), do)
        _check_seed(adapter.__name__, seed, getattr(made, seed))
        begin(made)

    hints = dict.fromkeys(_LEFT_OUT, "Rows come one by one, so it has no meaning here; leave it out.")
    hints["random_state"] = f"Use {seed}= instead."
    type.__setattr__(adapter, "__init__", initializer(parameters, checked, hints))


def _check_seed(who: str, name: str, seed: Any) -> None:
    try:
        np.random.default_rng(seed)
    except (TypeError, ValueError):
        raise InputError(who, name, "must be an integer of at least 0 or None", repr(seed)) from None


def parameters_of(adapter: Any) -> dict[str, Any]:
    """What the constructor of an adapter was given."""
    return {name: getattr(adapter, name) for name in inspect.signature(type(adapter)).parameters}
