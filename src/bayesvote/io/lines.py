"""Lines of a file, in bounded memory; from a pipe as soon as they arrive."""

import os
import select
import time
from typing import Protocol

LONGEST_LINE = 2**24  # bytes; a longer line is a bad line, of which only the start is kept
_BLOCK = 2**16
_BATCH = 2**23  # bytes of text per batch, whatever the number of rows
_KEPT = 40  # bytes of a line that is too long


class Blocks(Protocol):
    """A file that returns the available bytes without waiting for more."""

    def read1(self, size: int, /) -> bytes:
        """Return some bytes, empty at the end."""


class TooLong(bytes):
    """The start of a line that is too long to be read."""


class LineReader:
    """Reads the lines of a file, without their newlines, in batches.

    Parameters
    ----------
    file
        The file.
    live
        The file descriptor of a pipe or a terminal, which may have to be waited for.

    Attributes
    ----------
    flush_after
        Seconds after which a batch from a pipe is returned with the lines that have arrived; None to wait until it is
        full.
    """

    def __init__(self, file: Blocks, live: int | None = None) -> None:
        self._file = file
        self._live = live
        self._ready: list[bytes] = []  # whole lines, the next one last
        self._rest: list[bytes] = []  # the line that has not ended
        self._rest_size = 0
        self._ended = False
        self._due: float | None = None
        self._size = 0
        self.flush_after: float | None = None

    def batch(self, most: int) -> list[bytes]:
        """Return the next lines, at most ``most``; fewer at the limit of time or memory, none at the end."""
        self.begin()
        lines: list[bytes] = []
        while len(lines) < most and self.fill(wait=not lines):
            first = max(0, len(self._ready) - (most - len(lines)))
            lines += reversed(self._ready[first:])
            del self._ready[first:]
            if self.full:
                break
        return lines

    def peek(self, most: int) -> list[bytes]:
        """Return the next lines as ``batch`` does, which then returns them again."""
        lines = self.batch(most)
        self.put_back(lines)
        return lines

    def begin(self) -> None:
        """Start a batch: reset its time and size."""
        self._due = None
        self._size = 0

    def extend(self, seconds: float) -> None:
        """Wait ``seconds`` longer for the lines of this batch."""
        self._due = time.monotonic() + seconds

    @property
    def ended(self) -> bool:
        """True once all lines have been popped."""
        return self._ended and not self._ready

    @property
    def full(self) -> bool:
        """True once the batch has reached its memory limit."""
        return self._size > _BATCH

    def fill(self, wait: bool) -> bool:
        """Return True if there is a line to pop; without waiting, False may mean that none has arrived in time."""
        while not self._ready:
            if self._ended or not (wait or self._arrives()):
                return False
            block = self._file.read1(_BLOCK)
            self._size += len(block)
            if not block:
                self._ended = True
                if self._rest:
                    self._ready = [self._joined()]
                continue
            first, *others = block.split(b"\n")
            self._add(first)
            if others:
                last = others.pop()
                self._ready = [*reversed(others), self._joined()]
                self._add(last)
        return True

    def pop(self) -> bytes:
        """Return the next line; `fill` must have returned True."""
        return self._ready.pop()

    def ready(self, most: int) -> list[bytes]:
        """Return the next buffered lines, at most ``most``, without popping them."""
        return self._ready[-1 : -1 - most : -1]

    def drop(self, n: int) -> None:
        """Pop ``n`` buffered lines."""
        del self._ready[len(self._ready) - n :]

    def put_back(self, lines: list[bytes]) -> None:
        """Return lines to the buffer."""
        self._ready.extend(reversed(lines))

    def _add(self, part: bytes) -> None:
        """Add to the unfinished line; only count the bytes of one that is too long."""
        if part and self._rest_size <= LONGEST_LINE:
            self._rest.append(part)
        self._rest_size += len(part)
        if self._rest_size > LONGEST_LINE and len(self._rest) > 1:
            self._rest = [b"".join(self._rest)[:_KEPT]]

    def _joined(self) -> bytes:
        line = b"".join(self._rest)
        if self._rest_size > LONGEST_LINE:
            line = TooLong(line[:_KEPT])
        self._rest, self._rest_size = [], 0
        return line

    def _arrives(self) -> bool:
        """Return True if bytes arrive within the time limit of this batch."""
        if self._live is None or self.flush_after is None or os.name != "posix":
            return True
        if self._due is None:
            self._due = time.monotonic() + self.flush_after
        left = max(0.0, self._due - time.monotonic())
        return bool(select.select([self._live], [], [], left)[0])
