"""Construction of objects from names such as ``gamma_rate`` or ``sag(horizon=5000)``; generated constructors."""

import ast
import inspect
import re
from collections.abc import Callable, Mapping, Sequence
from types import MappingProxyType
from typing import Any

from bayesvote.core.checks import InputError, one_of

_CALL = re.compile(r"\s*(\w+)\s*(?:\((.*)\))?\s*", re.DOTALL)


def name_of(text: str) -> str:
    """Return the name without its parameters.

    >>> name_of("sag(horizon=5000)")
    'sag'
    """
    found = _CALL.fullmatch(text)
    return found[1] if found else text


def make(who: str, option: str, text: str, table: Mapping[str, Callable[..., Any]], *arguments: Any) -> Any:
    """Call the table's entry for a name, with the arguments and the parameters that follow the name.

    >>> make("example", "number", "complex(imag=2)", {"complex": complex}, 1)
    (1+2j)
    """
    name = name_of(text)
    one_of(who, option, name, table)
    found = _CALL.fullmatch(text)
    try:
        call = ast.parse(f"f({(found and found[2]) or ''})", mode="eval").body
        if not isinstance(call, ast.Call) or call.args or any(word.arg is None for word in call.keywords):
            raise ValueError
        parameters = {str(word.arg): ast.literal_eval(word.value) for word in call.keywords}
    except (ValueError, SyntaxError):
        must = f"must be a name, or a name with parameters such as {name}(parameter=1)"
        raise InputError(who, option, must, repr(text)) from None
    known = inspect.signature(table[name]).parameters
    for parameter in parameters:
        one_of(who, f"a parameter of {name}", parameter, known)
    return table[name](**dict(zip(known, arguments, strict=False)) | parameters)


def initializer(
    parameters: Sequence[inspect.Parameter],
    then: Callable[[Any], None] | None = None,
    hints: Mapping[str, str] = MappingProxyType({}),
) -> Callable[..., None]:
    """Return an ``__init__`` that stores each of these parameters as an attribute, and then calls ``then``.

    ``hints`` are advice for names of parameters that it does not have.
    """
    first = inspect.Parameter("self", inspect.Parameter.POSITIONAL_OR_KEYWORD)
    signature = inspect.Signature([first, *parameters])

    def __init__(self: Any, *args: Any, **kwargs: Any) -> None:  # noqa: N807
        try:
            given = signature.bind(self, *args, **kwargs)
        except TypeError as error:
            advice = [f" {hint}" for name, hint in hints.items() if name in kwargs]
            raise TypeError(f"{type(self).__name__}: {error}.{''.join(advice)}") from None
        given.apply_defaults()
        for name in list(given.arguments)[1:]:
            setattr(self, name, given.arguments[name])
        if then is not None:
            then(self)

    constructor: Any = __init__
    constructor.__signature__ = signature
    return __init__


def keyword_only(**defaults: Any) -> list[inspect.Parameter]:
    """Return keyword-only parameters with these defaults."""
    return [
        inspect.Parameter(name, inspect.Parameter.KEYWORD_ONLY, default=default, annotation=Any)
        for name, default in defaults.items()
    ]
