"""Ctrl-C during a run."""

import signal
from collections.abc import Iterator
from contextlib import contextmanager


class Stopped(KeyboardInterrupt):
    """The user stopped the run while nothing was being learned, so that its state is whole."""


class Interrupts:
    """Ctrl-C, which waits while a chunk is learned; a second one does not."""

    def __init__(self) -> None:
        self._asked = False
        self._learning = False

    def __call__(self, *_: object) -> None:
        """Take note of a Ctrl-C."""
        if self._asked:
            raise KeyboardInterrupt
        self._asked = True
        if not self._learning:
            raise Stopped

    def obey(self) -> None:
        """Stop, if asked to: a chunk was learned."""
        if self._asked:
            raise Stopped

    @contextmanager
    def reading(self) -> Iterator[None]:
        """Stop at once while the next chunk is read, which can take as long as a stream pleases."""
        self._learning = False
        try:
            yield
        finally:
            self._learning = True


@contextmanager
def interrupts() -> Iterator[Interrupts]:
    """Take over Ctrl-C for a while."""
    found = Interrupts()
    before = signal.signal(signal.SIGINT, found)
    try:
        yield found
    finally:
        signal.signal(signal.SIGINT, before)
