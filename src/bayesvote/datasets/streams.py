"""Streams of the user's own data: a file or standard input, read chunk by chunk in constant memory."""

import bz2
import gzip
import io
import lzma
import os
import re
import sys
import zlib
from collections.abc import Callable, Iterator, Sequence
from importlib.util import find_spec
from typing import Any, BinaryIO, NamedTuple, cast

import numpy as np
from numpy.typing import NDArray

from bayesvote._checks import InputError, integer, one_of
from bayesvote.datasets._readers import (
    BadLines,
    Choose,
    Chunk,
    Columns,
    Reading,
    feature_columns,
    labelled_columns,
    read_csv,
    read_libsvm,
    read_parquet,
    relabelled,
)

_SUFFIXES = {".csv": "csv", ".tsv": "csv", ".libsvm": "libsvm", ".svm": "libsvm", ".svmlight": "libsvm"}
_LIBSVM_LINE = re.compile(rb"(?:\s|#[^\n]*\n)*(?:[^\s:]+\s+)?\d+:")  # with a label or without
_DAMAGE = (EOFError, OSError, lzma.LZMAError, zlib.error)


class Stream(Iterator[Chunk]):
    """Chunks of a file's rows, in order; made by `stream` and `stream_unlabelled`.

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

    def __init__(self, file: io.BufferedReader, reading: Reading, bad: BadLines) -> None:
        self._file = file
        self._reading = reading
        self._bad = bad
        self.n_features = reading.n_features
        self.feature_names = reading.feature_names

    @property
    def skipped(self) -> int:
        """How many bad lines were skipped so far."""
        return self._bad.count

    @property
    def reports(self) -> list[str]:
        """The number and the fault of the first skipped lines."""
        return list(self._bad.reports)

    @property
    def n_rows(self) -> int | None:
        """How many rows the file says it has; None if it does not."""
        return self._reading.n_rows

    def categories(self) -> NDArray[Any] | None:
        """The labels that the file announces, in order: those of a categorical Parquet column; None if it does not."""
        return self._reading.categories()

    def __next__(self) -> Chunk:
        try:
            return next(self._reading.chunks)
        except _DAMAGE as error:
            self.close()
            raise _damaged(self._bad, error) from error
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
    if n_features is not None:
        integer("stream", "n_features", n_features)

    def choose(names: list[str]) -> Columns:
        return labelled_columns("stream", source_name(path), names, target)

    def libsvm(file: BinaryIO, bad: BadLines) -> Reading:
        _no_target(bad, target)
        width = _width(os.fspath(path), chunk_size) if n_features is None else n_features
        return Reading(width, None, read_libsvm(file, chunk_size, width, bad))

    found = _open("stream", path, format, chunk_size, bad_lines, choose, libsvm)
    if n_features not in (None, found.n_features):
        found.close()
        must = f"must have {n_features} features, as asked"
        raise InputError("stream", source_name(path), must, str(found.n_features))
    return found


def stream_unlabelled(
    path: str | os.PathLike[str],
    format: str = "auto",  # noqa: A002
    *,
    n_features: int,
    feature_names: Sequence[str] | None = None,
    target: str | int | None = None,
    bad_lines: str = "error",
    chunk_size: int = 4096,
) -> Stream:
    r"""Read the features of a file's rows chunk by chunk, whether they have labels or not.

    Parameters
    ----------
    path, format, bad_lines, chunk_size
        As in `stream`.
    n_features
        How many features to find.
    feature_names
        Their names: CSV and Parquet columns are found by these, in any order, and all others are left out. Without
        names, the features are all columns but that of the label.
    target
        The label's column, if names are not given; by default the last one if there is one column too many.

    Examples
    --------
    >>> import pathlib, tempfile
    >>> with tempfile.TemporaryDirectory() as folder:
    ...     path = pathlib.Path(folder, "pets.csv")
    ...     _ = path.write_text("legs,name,weight\n4,Tom,4.2\n0,Nemo,0.1\n")
    ...     for chunk in stream_unlabelled(path, n_features=2, feature_names=["weight", "legs"]):
    ...         print(chunk.X)
    [[4.2 4. ]
     [0.1 0. ]]
    """
    integer("stream_unlabelled", "n_features", n_features)

    def choose(names: list[str]) -> Columns:
        return feature_columns("stream_unlabelled", source_name(path), names, n_features, feature_names, target)

    def libsvm(file: BinaryIO, bad: BadLines) -> Reading:
        lines = cast(BinaryIO, relabelled(iter(file)))
        chunks = (chunk._replace(y=np.empty(0)) for chunk in read_libsvm(lines, chunk_size, n_features, bad))
        return Reading(n_features, None, chunks)

    return _open("stream_unlabelled", path, format, chunk_size, bad_lines, choose, libsvm)


class Survey(NamedTuple):
    """What a file holds.

    Attributes
    ----------
    labels
        Its labels, in order.
    n_rows
        How many rows it has; of a Parquet file, bad ones included.
    n_features
        How many features LIBSVM text has; None for other formats.
    """

    labels: NDArray[Any]
    n_rows: int
    n_features: int | None


def survey(
    path: str | os.PathLike[str],
    format: str = "auto",  # noqa: A002
    *,
    target: str | int | None = None,
    bad_lines: str = "error",
    n_features: int | None = None,
    chunk_size: int = 4096,
    on_rows: Callable[[int], None] | None = None,
) -> Survey:
    """Find out what a model must know about a file before it learns the first row.

    A Parquet file is asked for the categories of the label's column. If it has none, that column is read; of any other
    file, everything is.

    Parameters
    ----------
    path, format, target, bad_lines, n_features, chunk_size
        As in `stream`.
    on_rows
        Called with the number of rows read so far: with 0 before the first one, and never if no row must be read.
    """
    widest = 0

    def choose(names: list[str]) -> Columns:
        return labelled_columns("stream", source_name(path), names, target)

    def choose_label(names: list[str]) -> Columns:
        return Columns([], choose(names).label)

    def libsvm(file: BinaryIO, bad: BadLines) -> Reading:
        _no_target(bad, target)
        return Reading(0, None, read_libsvm(file, chunk_size, n_features, bad))

    found = _open("stream", path, format, chunk_size, bad_lines, choose, libsvm, choose_label)
    labels = found.categories()
    if labels is not None:
        found.close()
        return Survey(labels, found.n_rows or 0, None)
    seen: set[Any] = set()
    n_rows = 0
    if on_rows:
        on_rows(0)
    for chunk in found:
        seen.update(np.unique(chunk.y).tolist())
        n_rows += len(chunk.y)
        widest = max(widest, chunk.X.shape[1])
        if on_rows:
            on_rows(n_rows)
    return Survey(np.array(sorted(seen)), n_rows, widest if found.feature_names is None else None)


def source_name(path: str | os.PathLike[str]) -> str:
    """What errors call a file."""
    return "standard input" if os.fspath(path) == "-" else os.fspath(path)


def _open(
    who: str,
    path: str | os.PathLike[str],
    format: str,  # noqa: A002
    chunk_size: int,
    bad_lines: str,
    choose: Choose,
    libsvm: Callable[[BinaryIO, BadLines], Reading],
    choose_parquet: Choose | None = None,
) -> Stream:
    """Open a file of any format: tables by what columns to choose, LIBSVM text by its own reader."""
    one_of(who, "format", format, ("auto", "libsvm", "csv", "parquet"))
    one_of(who, "bad_lines", bad_lines, ("error", "skip"))
    integer(who, "chunk_size", chunk_size)
    name = os.fspath(path)
    bad = BadLines(who, source_name(path), bad_lines)
    file = open_bytes(name)
    try:
        if format == "auto":
            format = _guess(name, file)  # noqa: A001
        if format == "libsvm":
            reading = libsvm(file, bad)
        elif format == "csv":
            reading = read_csv(file, chunk_size, choose, bad)
        elif name == "-":
            raise InputError(who, "Parquet", "must come from a file", "standard input", "Save it first.")
        else:
            require_extra(who, "pyarrow", "parquet", "to read Parquet")
            reading = read_parquet(file, chunk_size, choose_parquet or choose, bad)
    except _DAMAGE as error:
        file.close()
        raise _damaged(bad, error) from error
    except BaseException:
        file.close()
        raise
    return Stream(file, reading, bad)


def _no_target(bad: BadLines, target: str | int | None) -> None:
    if target is not None:
        must = "must be None for LIBSVM text, whose labels come first in the line"
        raise InputError(bad.who, "target", must, repr(target))


def _damaged(bad: BadLines, error: BaseException) -> InputError:
    return InputError(bad.who, bad.source, "must be a whole file", f"a damaged or cut one: {error}", "Fetch it again.")


def _width(name: str, chunk_size: int) -> int:
    """The largest feature index of a LIBSVM file."""
    if name == "-":
        must = "must be given for LIBSVM text on standard input, which is read only once"
        raise InputError("stream", "n_features", must)
    with open_bytes(name) as file:
        chunks = read_libsvm(file, chunk_size, None, BadLines("stream", name, "skip"))
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
