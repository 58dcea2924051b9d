"""Streams of the user's own data: a file or standard input, read chunk by chunk in constant memory."""

import bz2
import gzip
import io
import lzma
import os
import re
import sys
import zlib
from collections.abc import Iterator
from importlib.util import find_spec
from typing import Any, cast

from bayesvote._checks import one_of, whole
from bayesvote.datasets._readers import BadLines, Chunk, read_csv, read_libsvm, read_parquet

_SUFFIXES = {".csv": "csv", ".tsv": "csv", ".libsvm": "libsvm", ".svm": "libsvm", ".svmlight": "libsvm"}
_LIBSVM_LINE = re.compile(rb"\s*[^\s:]+\s+\d+:")
_DAMAGE = (EOFError, OSError, lzma.LZMAError, zlib.error)


class Stream(Iterator[Chunk]):
    """Chunks of a file's rows, in order; made by `stream`.

    Attributes
    ----------
    n_features
        The number of features of every row.
    feature_names
        Their names, if the file has them.
    skipped
        How many bad lines were skipped so far.
    reports
        The number and the fault of the first of them.
    """

    def __init__(
        self,
        file: io.BufferedReader,
        chunks: Iterator[Chunk],
        bad: BadLines,
        n_features: int,
        feature_names: list[str] | None,
    ) -> None:
        self._file = file
        self._chunks = chunks
        self._bad = bad
        self.n_features = n_features
        self.feature_names = feature_names

    @property
    def skipped(self) -> int:
        """How many bad lines were skipped so far."""
        return self._bad.count

    @property
    def reports(self) -> list[str]:
        """The number and the fault of the first skipped lines."""
        return list(self._bad.reports)

    def __next__(self) -> Chunk:
        try:
            return next(self._chunks)
        except _DAMAGE as error:
            self.close()
            raise _damaged(self._bad.source, error) from error
        except BaseException:
            self.close()
            raise

    def close(self) -> None:
        """Close the file; happens by itself at its end."""
        self._file.close()


def stream(
    path: str | os.PathLike[str],
    format: str = "auto",  # noqa: A002 - the word users know from pandas and scikit-learn
    *,
    chunk_size: int = 4096,
    target: str | int | None = None,
    bad_lines: str = "error",
    n_features: int | None = None,
) -> Stream:
    r"""Read a file of labelled rows chunk by chunk.

    Parameters
    ----------
    path
        The file, plain or compressed (gz, bz2, xz, zst); "-" for standard input.
    format
        "libsvm", "csv", "parquet", or "auto": by the file's name or else its first line.
    chunk_size
        Rows per chunk, at most.
    target
        The label's column in CSV and Parquet, by name or place; the last one by default.
    bad_lines
        "error", or "skip": lines that cannot be read are left out and counted.
    n_features
        The number of features of LIBSVM text. By default the file is read once more to find it,
        which standard input cannot be.

    Examples
    --------
    >>> import pathlib, tempfile
    >>> with tempfile.TemporaryDirectory() as folder:
    ...     path = pathlib.Path(folder, "pets.csv")
    ...     _ = path.write_text("weight,legs,pet\n4.2,4,cat\n0.1,,fish\nheavy,4,dog\n")
    ...     rows = stream(path, bad_lines="skip")
    ...     for chunk in rows:
    ...         print(chunk.X, chunk.y)
    ...     print(rows.skipped, rows.reports)
    [[4.2 4. ]
     [0.1 nan]] ['cat' 'fish']
    1 ["line 4: column 'weight' must be a finite number, got 'heavy'"]
    """
    one_of("stream", "format", format, ("auto", "libsvm", "csv", "parquet"))
    one_of("stream", "bad_lines", bad_lines, ("error", "skip"))
    whole("stream", "chunk_size", chunk_size)
    if n_features is not None:
        whole("stream", "n_features", n_features)
    name = os.fspath(path)
    source = "standard input" if name == "-" else name
    file = open_bytes(name)
    try:
        if format == "auto":
            format = _guess(name, file)  # noqa: A001
        bad = BadLines(source, bad_lines)
        names: list[str] | None = None
        if format == "libsvm":
            if target is not None:
                raise ValueError("stream: target must be None for LIBSVM text, whose labels come first in the line.")
            if n_features is None:
                n_features = _width(name, chunk_size)
            chunks = read_libsvm(file, chunk_size, n_features, bad)
        else:
            if format == "parquet":
                if name == "-":
                    raise ValueError("stream: Parquet must come from a file, got standard input. Save it first.")
                require_extra("stream", "pyarrow", "parquet", "to read Parquet")
            names, chunks = (read_parquet if format == "parquet" else read_csv)(file, chunk_size, target, bad)
            if n_features not in (None, len(names)):
                raise ValueError(f"stream: {source} must have {n_features} features, as asked, got {len(names)}.")
            n_features = len(names)
    except _DAMAGE as error:
        file.close()
        raise _damaged(source, error) from error
    except BaseException:
        file.close()
        raise
    return Stream(file, chunks, bad, n_features, names)


def _damaged(source: str, error: BaseException) -> ValueError:
    return ValueError(f"stream: {source} must be a whole file, got a damaged or cut one: {error}. Fetch it again.")


def _width(name: str, chunk_size: int) -> int:
    """The largest feature index of a LIBSVM file."""
    if name == "-":
        raise ValueError("stream: n_features must be given for LIBSVM text on standard input, which is read only once.")
    with open_bytes(name) as file:
        chunks = read_libsvm(file, chunk_size, None, BadLines(name, "skip"))
        return max((chunk.X.shape[1] for chunk in chunks), default=0)


def _guess(name: str, file: io.BufferedReader) -> str:
    start = file.peek(1 << 16)
    if start.startswith(b"PAR1"):
        return "parquet"
    stem, suffix = os.path.splitext(name.lower())
    if suffix in (".gz", ".bz2", ".xz", ".zst"):
        suffix = os.path.splitext(stem)[1]
    return _SUFFIXES.get(suffix) or ("libsvm" if _LIBSVM_LINE.match(start) else "csv")


def open_bytes(name: str) -> io.BufferedReader:
    """Open a file, "-" for standard input, for reading what it holds when decompressed."""
    file = _Borrowed(cast(io.RawIOBase, sys.stdin.buffer)) if name == "-" else open(name, "rb")  # noqa: SIM115
    start = file.peek(6)
    if start.startswith(b"\x1f\x8b"):
        return _Owning(gzip.GzipFile(fileobj=file), file)
    if start.startswith(b"BZh"):
        return _Owning(bz2.BZ2File(file), file)
    if start.startswith(b"\xfd7zXZ\x00"):
        return _Owning(lzma.LZMAFile(file), file)
    if start.startswith(b"\x28\xb5\x2f\xfd"):
        try:
            require_extra("stream", "zstandard", "zstd", "to read a .zst file")
        except ImportError:
            file.close()
            raise
        return _Owning(_Zstandard(file), file)
    return file


class _Borrowed(io.BufferedReader):
    """A reader of standard input, which is not ours to close."""

    def close(self) -> None:
        """Leave it open."""


class _Owning(io.BufferedReader):
    """A fast reader over a decompressor, which closes the compressed file too."""

    def __init__(self, decompressor: object, compressed: io.BufferedReader) -> None:
        super().__init__(cast(io.RawIOBase, decompressor), 1 << 16)
        self._compressed = compressed

    def close(self) -> None:
        """Close both."""
        super().close()
        self._compressed.close()


class _Zstandard(io.RawIOBase):
    """Zstandard frames, decompressed; unlike the library's own reader it notices a cut file."""

    def __init__(self, compressed: io.BufferedReader) -> None:
        from zstandard import ZstdDecompressor

        self._compressed = compressed
        self._new_frame = ZstdDecompressor().decompressobj
        self._frame = self._new_frame()
        self._ready = memoryview(b"")

    def readable(self) -> bool:
        """Whether this can be read."""
        return True

    def readinto(self, buffer: Any, /) -> int:
        """Fill the buffer as far as the next few kilobytes of the file do."""
        from zstandard import ZstdError

        while not self._ready:
            data = self._compressed.read(4096)
            if self._frame.eof:
                data = self._frame.unused_data + data
                if not data:
                    return 0
                self._frame = self._new_frame()
            elif not data:
                raise EOFError("the last Zstandard frame is not complete")
            try:
                self._ready = memoryview(self._frame.decompress(data))
            except ZstdError as error:
                raise OSError(str(error)) from error
        n = min(len(buffer), len(self._ready))
        buffer[:n] = self._ready[:n]
        self._ready = self._ready[n:]
        return n


def require_extra(who: str, module: str, extra: str, purpose: str) -> None:
    """Check that a library which only some users need is there, or say how to get it."""
    if find_spec(module) is None:
        raise ImportError(f"{who}: {module} must be installed {purpose}. Run: pip install 'bayesvote[{extra}]'")
