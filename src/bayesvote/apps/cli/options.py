"""Options of commands as dataclasses, so that commands share them and functions stay short."""

from collections.abc import Callable, Iterable
from dataclasses import MISSING, fields, is_dataclass
from functools import wraps
from inspect import Parameter, Signature, signature
from typing import Annotated, Any, get_type_hints

import typer

from bayesvote.core.checks import did_you_mean
from bayesvote.core.names import name_of

FileArgument = Annotated[
    str,
    typer.Argument(
        metavar="FILE", help="CSV, LIBSVM or Parquet, plain or compressed (gz, bz2, xz, zst); - for standard input."
    ),
]
Json = Annotated[bool, typer.Option("--json", help="Print the result as JSON.")]


def with_option_groups(command: Callable[..., Any]) -> Callable[..., Any]:
    """Replace each dataclass parameter of a command by one option for each of its fields.

    Typer reads options from a function's signature. The command itself receives the dataclasses.

    >>> from dataclasses import dataclass
    >>> @dataclass(frozen=True)
    ... class Size:
    ...     width: int = 1
    ...     height: int = 1
    >>> def area(size: Size) -> int:
    ...     return size.width * size.height
    >>> with_option_groups(area)(width=2, height=3)
    6
    """
    hints = get_type_hints(command, include_extras=True)
    parameters: list[Parameter] = []
    groups: dict[str, Any] = {}
    for name, parameter in signature(command).parameters.items():
        if is_dataclass(hints[name]):
            groups[name] = hints[name]
            parameters += _parameters(hints[name])
        else:
            parameters.append(parameter.replace(kind=Parameter.KEYWORD_ONLY, annotation=hints[name]))

    @wraps(command)
    def called(**given: Any) -> Any:
        built = {
            name: group(**{field.name: given.pop(field.name) for field in fields(group) if field.name in given})
            for name, group in groups.items()
        }
        return command(**given, **built)

    flat: Any = called
    flat.__signature__ = Signature(parameters)
    flat.__annotations__ = {parameter.name: parameter.annotation for parameter in parameters}
    return called


def _parameters(group: Any) -> list[Parameter]:
    hints = get_type_hints(group, include_extras=True)
    return [
        Parameter(
            field.name,
            Parameter.KEYWORD_ONLY,
            default=Parameter.empty if field.default is MISSING else field.default,
            annotation=hints[field.name],
        )
        for field in fields(group)
    ]


def one_of_names(names: Callable[[], Iterable[str]]) -> dict[str, Any]:
    """Return settings of an option that takes one of these names, with or without parameters."""

    def check(value: str | None) -> str | None:
        known = sorted(names())
        if value is None or name_of(value) in known:
            return value
        meant = did_you_mean(value, known)
        raise typer.BadParameter(f"it must be one of {', '.join(known)}, got {value!r}. {meant}".rstrip())

    def complete(start: str) -> list[str]:
        return [name for name in sorted(names()) if name.startswith(start)]

    return {"callback": check, "autocompletion": complete, "metavar": "NAME"}
