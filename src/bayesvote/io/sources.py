"""Open a file or standard input, plain or compressed."""

import bz2
import gzip
import io
import lzma
import os
import stat
import sys
import zlib
from collections.abc import Callable
from importlib.util import find_spec
from typing import Any

DAMAGE = (EOFError, OSError, zlib.error)
_BUFFER = 2**16
_MAGIC = 6  # bytes that identify a compressed file
# Magic numbers of a frame, and of skippable frames, which may come first.
_ZSTANDARD = (b"\x28\xb5\x2f\xfd", *(bytes([k]) + b"\x2a\x4d\x18" for k in range(0x50, 0x60)))
_PIECE = 2**10  # compressed bytes read at a time; four bytes can decompress to 128 KiB
_READ = 2**13  # compressed bytes read at a time if the size of the output is bounded
_XZ_MEMORY = 2**27  # bytes; xz -9, the largest preset, needs half of it
MOST_MEMORY = "must need at most 128 MiB of memory to be decompressed"


class TooMuchMemoryError(OSError):
    """A file that declares that it needs too much memory to decompress."""


class Source(io.BufferedReader):
    """The decompressed bytes of a file.

    Attributes
    ----------
    live
        The file descriptor if it is a pipe or a terminal, which can be read only once, as rows arrive.
    """

    def __init__(self, content: io.RawIOBase, live: int | None, *below: io.IOBase) -> None:
        super().__init__(content, _BUFFER)
        self.live = live
        self._below = below

    def close(self) -> None:
        """Also close the file, unless it is standard input."""
        super().close()
        for file in self._below:
            file.close()


class _Prompt(io.RawIOBase):
    """Returns the available bytes without waiting for more, except at the start, which identifies the format."""

    def __init__(self, file: Any, enough: int) -> None:
        self._file = file
        self._enough = enough  # bytes of the first read, unless a line ends earlier

    def readable(self) -> bool:
        """Return True."""
        return True

    def readinto(self, buffer: Any, /) -> int:
        """Fill the buffer with one read."""
        data = self._file.read1(len(buffer))
        while data and len(data) < min(self._enough, len(buffer)) and b"\n" not in data:
            more = self._file.read1(len(buffer) - len(data))
            if not more:
                break
            data += more
        self._enough = 0
        buffer[: len(data)] = data
        return len(data)


class _Compressed(io.BufferedReader):
    """A compressed file that returns the available bytes, so that the decompressor does not wait for a block."""

    def read(self, size: int | None = -1, /) -> bytes:
        """Return some bytes."""
        return self.read1(-1 if size is None else size)


def is_replayable(name: str) -> bool:
    """Return True if a file can be read again; a pipe, a terminal and standard input cannot."""
    return name != "-" and os.path.isfile(name)


def open_bytes(name: str) -> Source:
    """Open a file, "-" for standard input, and decompress it."""
    below: list[io.IOBase] = []
    file: Any = sys.stdin.buffer
    if name != "-":
        file = open(name, "rb", buffering=_BUFFER)  # noqa: SIM115 - it is closed with the source
        below.append(file)
    try:
        live = _live(file)
        packed = _Compressed(_Prompt(file, _MAGIC), _BUFFER)
        decompressor = _decompressor(packed)
        content = packed if decompressor is None else decompressor
        return Source(_Prompt(content, _BUFFER), live, *below)
    except BaseException:
        for each in below:
            each.close()
        raise


def open_seekable(name: str) -> Source:
    """Open a file for random access."""
    file: Any = open(name, "rb", buffering=_BUFFER)  # noqa: SIM115 - it is closed with the source
    if file.peek(_MAGIC).startswith(_ZSTANDARD):
        file.close()
        raise OSError("it cannot be read while compressed by Zstandard; decompress it")
    return Source(_decompressor(file) or file, None, file)


def _live(file: Any) -> int | None:
    try:
        number = int(file.fileno())
        return None if stat.S_ISREG(os.fstat(number).st_mode) else number
    except (OSError, AttributeError):
        return None


def _decompressor(packed: io.BufferedReader) -> Any:
    start = packed.peek(_MAGIC)
    if start.startswith(b"\x1f\x8b"):
        return gzip.GzipFile(fileobj=packed)
    if start.startswith(b"BZh"):
        return io.BufferedReader(_Streams(packed, bz2.BZ2Decompressor, "bzip2"), _BUFFER)
    if start.startswith(b"\xfd7zXZ\x00"):
        return io.BufferedReader(_Streams(packed, _new_xz, "xz", padding=4), _BUFFER)
    if start.startswith(_ZSTANDARD):
        require_extra("stream", "zstandard", "zstd", "to read a .zst file")
        return io.BufferedReader(_Zstandard(packed), _BUFFER)
    return None


def _new_xz() -> lzma.LZMADecompressor:
    return lzma.LZMADecompressor(lzma.FORMAT_XZ, memlimit=_XZ_MEMORY)


class _Streams(io.RawIOBase):
    """Decompressor of one or more concatenated streams.

    Python's own readers treat invalid bytes after the first stream as the end of the file, so that one wrong byte loses
    all rows after it. Here it is an error.

    Parameters
    ----------
    compressed
        The file.
    new
        Factory of a stream's decompressor.
    name
        The name of the format in errors.
    padding
        Zero bytes that follow a stream must be a multiple of this; None if there must be none.
    """

    def __init__(
        self, compressed: io.BufferedReader, new: Callable[[], Any], name: str, padding: int | None = None
    ) -> None:
        self._compressed, self._new, self._name, self._padding = compressed, new, name, padding
        self._stream = new()
        self._number = 1  # of the stream
        self._rest = b""  # bytes read but not yet decompressed
        self._over = False
        self._at = 0

    def readable(self) -> bool:
        """Return True."""
        return True

    def seekable(self) -> bool:
        """Return True if the file supports random access, if slowly."""
        return self._compressed.seekable()

    def readinto(self, buffer: Any, /) -> int:
        """Fill the buffer from the next few kilobytes of the file, without decompressing more than fits."""
        data = b""
        while not data and self._has_more():
            given = b""
            if self._stream.needs_input:
                given = self._rest or self._compressed.read(_READ)
                self._rest = b""
                if not given:
                    raise EOFError(f"the last {self._name} stream is not complete")
            try:
                data = self._stream.decompress(given, len(buffer))
            except (OSError, lzma.LZMAError) as error:
                if "limit" in str(error):
                    raise TooMuchMemoryError(MOST_MEMORY) from error
                raise OSError(f"{self._name} stream {self._number} is damaged or invalid: {error}") from error
        buffer[: len(data)] = data
        self._at += len(data)
        return len(data)

    def seek(self, offset: int, whence: int = io.SEEK_SET, /) -> int:
        """Move to a position; a position before the current one decompresses from the start."""
        if whence == io.SEEK_END:
            while self.read(_BUFFER):
                pass
        target = offset + (0 if whence == io.SEEK_SET else self._at)
        if target < self._at:
            self._compressed.seek(0)
            self._stream, self._number, self._rest, self._over, self._at = self._new(), 1, b"", False, 0
        while self._at < target and self.read(min(_BUFFER, target - self._at)):
            pass
        return self._at

    def tell(self) -> int:
        """Return the position."""
        return self._at

    def _has_more(self) -> bool:
        """Return True if there are more bytes; at the end of a stream, move to the next one."""
        if self._over or not self._stream.eof:
            return not self._over
        zeros = 0
        self._rest = self._stream.unused_data or self._compressed.read(_READ)
        while self._padding and self._rest[:1] == b"\0":
            zeros += len(self._rest)
            self._rest = self._rest.lstrip(b"\0")
            zeros -= len(self._rest)
            self._rest = self._rest or self._compressed.read(_READ)
        if self._padding and zeros % self._padding:
            raise OSError(f"{zeros} zero bytes follow an {self._name} stream, not a multiple of {self._padding}")
        self._over = not self._rest
        self._stream = self._new()
        self._number += 1
        return not self._over


class _Zstandard(io.RawIOBase):
    """Decompressor of Zstandard frames; unlike the library's own reader, it detects a truncated file."""

    def __init__(self, compressed: io.BufferedReader) -> None:
        from zstandard import ZstdDecompressor

        self._compressed = compressed
        self._new_frame = ZstdDecompressor().decompressobj
        self._frame = self._new_frame()
        self._ready = memoryview(b"")

    def readable(self) -> bool:
        """Return True."""
        return True

    def readinto(self, buffer: Any, /) -> int:
        """Fill the buffer from the next few kilobytes of the file."""
        from zstandard import ZstdError

        while not self._ready:
            # Frames may be tiny: use the rest of a piece before reading more, or it would be copied for every frame.
            data = (self._frame.eof and self._frame.unused_data) or self._compressed.read(_PIECE)
            if self._frame.eof:
                if not data:
                    return 0
                self._frame = self._new_frame()
            elif not data:
                raise EOFError("the last Zstandard frame is not complete")
            try:
                self._ready = memoryview(self._frame.decompress(data))
            except ZstdError as error:
                if "too much memory" in str(error):
                    raise TooMuchMemoryError(MOST_MEMORY) from error
                raise OSError(str(error)) from error
        n = min(len(buffer), len(self._ready))
        buffer[:n] = self._ready[:n]
        self._ready = self._ready[n:]
        return n


def require_extra(who: str, module: str, extra: str, purpose: str) -> None:
    """Raise an ImportError with the install command if an optional library is missing."""
    if find_spec(module) is None:
        raise ImportError(f"{who}: {module} must be installed {purpose}. Run: pip install 'bayesvote[{extra}]'")
