# The little of Numba that this project uses; Numba ships no types.
from collections.abc import Callable
from typing import TypeVar, overload

_F = TypeVar("_F", bound=Callable[..., object])

@overload
def njit(function: _F, /) -> _F: ...
@overload
def njit(
    *,
    cache: bool = ...,
    nogil: bool = ...,
    fastmath: bool | set[str] = ...,
    parallel: bool = ...,
    inline: str = ...,
    error_model: str = ...,
    forceinline: bool = ...,
) -> Callable[[_F], _F]: ...
def prange(start: int, stop: int = ..., step: int = ..., /) -> range: ...
def get_num_threads() -> int: ...
def set_num_threads(n: int, /) -> None: ...
