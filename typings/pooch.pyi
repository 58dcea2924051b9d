# The little of pooch that this project uses; pooch ships no types.
from logging import Logger

def get_logger() -> Logger: ...
def retrieve(
    url: str,
    known_hash: str | None = ...,
    fname: str | None = ...,
    path: str | None = ...,
    *,
    progressbar: bool = ...,
) -> str: ...
