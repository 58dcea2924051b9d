from collections.abc import Callable
from contextlib import AbstractContextManager
from typing import Any

class Uninterrupted(AbstractContextManager[None]):
    def __exit__(self, *_: object) -> None: ...

class Yielding(AbstractContextManager[None]):
    def __init__(self, seconds: int = ...) -> None: ...
    def __exit__(self, *_: object) -> None: ...

def report_rows_learned(
    part: Any,
    method: Callable[..., Any],
    args: tuple[Any, ...],
    kwargs: dict[str, Any],
    tell: Callable[[BaseException, Any, Any], None],
) -> Any: ...

class RWLock:
    read: AbstractContextManager[None]
    write: AbstractContextManager[None]
    writes: int
    wanted: bool
