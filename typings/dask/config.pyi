from contextlib import AbstractContextManager
from typing import Any

def get(key: str, default: Any = ...) -> Any: ...
def set(arg: dict[str, Any]) -> AbstractContextManager[None]: ...  # noqa: A001
