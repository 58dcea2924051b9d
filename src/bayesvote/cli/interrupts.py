"""Ctrl-C during a run."""

import signal
from collections.abc import Iterator
from contextlib import contextmanager


class Stopped(KeyboardInterrupt):
    """The user pressed Ctrl-C while nothing was being learned, so the state is consistent."""


class Interrupts:
    """Handles Ctrl-C: the first waits until the current chunk is learned, a second one does not."""

    def __init__(self) -> None:
        self._asked = False
        self._learning = False

    def __call__(self, *_: object) -> None:
        """Handle a Ctrl-C."""
        if self._asked:
            raise KeyboardInterrupt
        self._asked = True
        if not self._learning:
            raise Stopped

    def obey(self) -> None:
        """Stop after a chunk, if asked to while it was learned."""
        if self._asked:
            raise Stopped

    @contextmanager
    def reading(self) -> Iterator[None]:
        """Stop at once while the next chunk is read, which may take forever."""
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
