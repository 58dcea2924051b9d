# The little of Numba's types that this project uses.
from typing import Any

class Type:
    def __init__(self, name: str) -> None: ...
    def __call__(self, *arguments: Any) -> Any: ...

void: Type
uint64: Type
float64: Type
