"""Ctrl-C and the signals that end a process, during a run."""

import signal
from collections.abc import Iterator
from contextlib import contextmanager

_ENDING = ("SIGINT", "SIGTERM", "SIGHUP")


class Stopped(KeyboardInterrupt):
    """Ctrl-C while nothing was being learned, so that the state is consistent."""


class Interrupts:
    """Handler of signals: the first one waits until the current chunk is learned, a second one does not.

    Attributes
    ----------
    code
        The exit code for the signal.
    """

    def __init__(self) -> None:
        self._asked = False
        self._learning = False
        self.code = 128 + signal.SIGINT

    def __call__(self, number: int = signal.SIGINT, *_: object) -> None:
        """Handle a signal."""
        if self._asked:
            raise KeyboardInterrupt
        self._asked = True
        self.code = 128 + number
        if not self._learning:
            raise Stopped

    def obey(self) -> None:
        """Stop after a chunk, if a signal arrived while it was learned."""
        if self._asked:
            raise Stopped

    @contextmanager
    def reading(self) -> Iterator[None]:
        """Stop immediately while the next chunk is read, which may take forever."""
        self._learning = False
        try:
            yield
        finally:
            self._learning = True

    @contextmanager
    def finishing(self) -> Iterator[None]:
        """Wait until the state is saved; a second signal does not wait."""
        learning, self._learning = self._learning, True
        try:
            yield
        finally:
            self._learning = learning


@contextmanager
def interrupts() -> Iterator[Interrupts]:
    """Handle the signals within the context; ignored ones, as with ``nohup``, stay ignored."""
    found = Interrupts()
    before = {}
    for name in _ENDING:
        number = getattr(signal, name, None)  # not every system has every signal
        if number is not None and (name == "SIGINT" or signal.getsignal(number) != signal.SIG_IGN):
            before[number] = signal.signal(number, found)
    try:
        yield found
    finally:
        for number, handler in before.items():
            signal.signal(number, handler)
