# The little of Numba's extension interface that this project uses.
from collections.abc import Callable
from typing import Any, TypeVar, overload

_C = TypeVar("_C", bound=type)

@overload
def intrinsic(function: Callable[..., Any], /) -> Callable[..., Any]: ...
@overload
def intrinsic(*, prefer_literal: bool = ...) -> Callable[[Callable[..., Any]], Callable[..., Any]]: ...
def register_model(kind: type) -> Callable[[_C], _C]: ...

class models:
    class PrimitiveModel:
        def __init__(self, manager: Any, kind: Any, form: Any) -> None: ...
