from contextlib import AbstractContextManager

class Uninterrupted(AbstractContextManager[None]):
    def __exit__(self, *_: object) -> None: ...

class Guard:
    read: AbstractContextManager[None]
    write: AbstractContextManager[None]
    writes: int
    wanted: bool
