"""Streams of the user's own data: a file or standard input, read chunk by chunk in constant memory."""

import os
import re
from collections.abc import Callable, Iterator, Mapping, Sequence
from typing import Any, NamedTuple

import numpy as np
from numpy.typing import NDArray

from bayesvote._checks import InputError, integer, one_of, positive
from bayesvote.datasets._columns import (
    KINDS,
    Choose,
    Columns,
    Header,
    Wanted,
    feature_columns,
    labelled_columns,
    listed,
)
from bayesvote.datasets._csv import read_csv
from bayesvote.datasets._libsvm import read_libsvm
from bayesvote.datasets._lines import Lines
from bayesvote.datasets._parquet import read_parquet
from bayesvote.datasets._readers import BadLines, Chunk, Reading
from bayesvote.datasets._sources import (
    DAMAGE,
    MOST_MEMORY,
    Source,
    TooMuchMemoryError,
    is_replayable,
    open_bytes,
    open_seekable,
    require_extra,
)

__all__ = [
    "Stream",
    "Survey",
    "is_replayable",
    "listed",
    "open_bytes",
    "require_extra",
    "source_name",
    "stream",
    "stream_unlabelled",
    "survey",
]

_SUFFIXES = {".csv": "csv", ".tsv": "csv", ".libsvm": "libsvm", ".svm": "libsvm", ".svmlight": "libsvm"}
_LIBSVM_LINE = re.compile(rb"(?:\s|#[^\n]*\n)*(?:[^\s:]+\s+)?\d+:")  # with a label or without


class Stream(Iterator[Chunk]):
    """Chunks of a file's rows, in order; made by `stream` and `stream_unlabelled`.

    Attributes
    ----------
    n_features
        The number of features of every row.
    feature_names, label_name
        Their names and that of the label's column, if the file has them.
    skipped
        How many bad lines were skipped so far.
    ignored
        Names of columns that are neither features nor the label that ``target`` names; of `stream_unlabelled`.
    unit
        What the numbers of rows count: "line", or "row" of a Parquet file.
    reports
        The number and the fault of the first of them.
    """

    def __init__(self, file: Source, lines: Lines, reading: Reading, bad: BadLines) -> None:
        self._file = file
        self._lines = lines
        self._reading = reading
        self._bad = bad
        self.n_features = reading.n_features
        self.feature_names = reading.feature_names
        self.label_name = reading.label_name
        self.ignored: list[str] = []

    @property
    def skipped(self) -> int:
        """How many bad lines were skipped so far."""
        return self._bad.count

    @property
    def unit(self) -> str:
        """What the numbers of rows count: "line", or "row" of a Parquet file."""
        return self._bad.unit

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
        except DAMAGE as error:
            self.close()
            raise _damaged(self._bad, error) from error
        except BaseException:
            self.close()
            raise

    @property
    def live(self) -> bool:
        """Whether the rows come from a pipe or a terminal, when they come."""
        return self._file.live is not None

    @property
    def flush_after(self) -> float | None:
        """Seconds after which a chunk of a live stream is handed over with the rows that have come."""
        return self._lines.flush_after

    @flush_after.setter
    def flush_after(self, seconds: float | None) -> None:
        self._lines.flush_after = seconds

    def close(self) -> None:
        """Close the file; happens by itself at its end."""
        self._file.close()


class _How(NamedTuple):
    """How a file is read, whatever is wanted of it."""

    who: str
    path: str
    format: str
    chunk_size: int
    bad_lines: str
    header: bool | None
    decimal: str | None
    wanted: Wanted = Wanted({})

    @property
    def source(self) -> str:
        return source_name(self.path)

    def check(self) -> "_How":
        one_of(self.who, "format", self.format, ("auto", "libsvm", "csv", "parquet"))
        one_of(self.who, "bad_lines", self.bad_lines, ("error", "skip"))
        integer(self.who, "chunk_size", self.chunk_size)
        for name, kind in self.wanted.kinds.items():
            one_of(self.who, f"columns[{name!r}]", kind, KINDS)
        if self.decimal not in (None, ".", ","):
            raise InputError(self.who, "decimal", "must be '.', ',' or None", repr(self.decimal))
        return self


def stream(
    path: str | os.PathLike[str],
    format: str = "auto",  # noqa: A002 - the word users know from pandas and scikit-learn
    *,
    chunk_size: int = 4096,
    target: str | int | None = None,
    bad_lines: str = "error",
    n_features: int | None = None,
    header: bool | None = None,
    decimal: str | None = None,
    columns: Mapping[str, str] | None = None,
    features: Sequence[str] | None = None,
    flush_after: float | None = None,
) -> Stream:
    r"""Read a file of labelled rows chunk by chunk.

    Parameters
    ----------
    path
        The file, plain or compressed (gz, bz2, xz, zst); "-" for standard input.
    format
        "libsvm", "csv", "parquet", or "auto": by the file's name or else its first line.
    chunk_size
        Rows per chunk, at most. Very long rows come in smaller chunks.
    target
        The label's column in CSV and Parquet, by name or place; the last one by default.
    bad_lines
        "error", or "skip": lines that cannot be read are left out and counted.
    n_features
        The number of features of LIBSVM text. By default the file is read once more to find it, up to 1,048,576;
        standard input cannot be.
    header
        Whether the first line of CSV names the columns. None if it should, and is refused if it looks like a row.
    decimal
        The decimal mark in CSV, "." or ",". None for a point, or a comma if columns are not divided by commas and
        the numbers have commas, never points.
    columns
        Kinds of columns of CSV and Parquet by their names: "number", "category", "boolean", "date", or "drop". Others
        are read as numbers or as texts, as most of their first hundred values are.
    features
        The names of the columns to learn from; all but the label's by default.
    flush_after
        Seconds after which a chunk from a pipe is handed over with the rows that have come. None to wait until it is
        full.

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
    wanted = Wanted(columns or {}, features)
    how = _How("stream", os.fspath(path), format, chunk_size, bad_lines, header, decimal, wanted).check()

    def choose(found: Header) -> Columns:
        return labelled_columns("stream", how.source, found, target, wanted)

    def libsvm(lines: Lines, bad: BadLines) -> Reading:
        _no_target(bad, target)
        width = _width(how) if n_features is None else n_features
        return Reading(width, None, read_libsvm(lines, chunk_size, width, bad, stated=n_features is not None))

    found = _open(how, choose, libsvm, flush_after=flush_after)
    if n_features not in (None, found.n_features):
        found.close()
        must = f"must have {n_features} features, as asked"
        raise InputError("stream", how.source, must, str(found.n_features))
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
    header: bool | None = None,
    decimal: str | None = None,
    columns: Mapping[str, str] | None = None,
    flush_after: float | None = None,
) -> Stream:
    r"""Read the features of a file's rows chunk by chunk, whether they have labels or not.

    Parameters
    ----------
    path, format, bad_lines, chunk_size, header, decimal, columns, flush_after
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
    wanted, ignored = Wanted(columns or {}), list[str]()
    how = _How("stream_unlabelled", os.fspath(path), format, chunk_size, bad_lines, header, decimal, wanted).check()

    def choose(found: Header) -> Columns:
        chosen = feature_columns(how.who, how.source, found, n_features, feature_names, target)
        label = None if target is None else labelled_columns(how.who, how.source, found, target, Wanted({})).label
        others = [j for j in range(len(found.names)) if j not in (*chosen.features, *found.kept, label)]
        ignored.extend(found.names[j] for j in others)
        return chosen

    def libsvm(lines: Lines, bad: BadLines) -> Reading:
        chunks = read_libsvm(lines, chunk_size, n_features, bad, labelled=False)
        return Reading(n_features, None, (chunk._replace(y=np.empty(0)) for chunk in chunks))

    opened = _open(how, choose, libsvm, flush_after=flush_after)
    opened.ignored = ignored
    return opened


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
    columns
        The names of the columns, the label's last; None for LIBSVM text.
    """

    labels: NDArray[Any]
    n_rows: int
    n_features: int | None
    columns: list[str] | None = None


def survey(
    path: str | os.PathLike[str],
    format: str = "auto",  # noqa: A002
    *,
    target: str | int | None = None,
    bad_lines: str = "error",
    n_features: int | None = None,
    chunk_size: int = 4096,
    header: bool | None = None,
    decimal: str | None = None,
    columns: Mapping[str, str] | None = None,
    features: Sequence[str] | None = None,
    on_rows: Callable[[int], None] | None = None,
) -> Survey:
    """Find out what a model must know about a file before it learns the first row.

    A Parquet file is asked for the categories of the label's column. If it has none, that column is read; of any other
    file, everything is.

    Parameters
    ----------
    path, format, target, bad_lines, n_features, chunk_size, header, decimal, columns, features
        As in `stream`.
    on_rows
        Called with the number of rows read so far: with 0 before the first one, and never if no row must be read.
    """
    widest = 0
    names: list[str] | None = None
    wanted = Wanted(columns or {}, features)
    how = _How("stream", os.fspath(path), format, chunk_size, bad_lines, header, decimal, wanted).check()

    def choose(found: Header) -> Columns:
        nonlocal names
        chosen = labelled_columns("stream", how.source, found, target, wanted)
        names = [found.names[j] for j in (*chosen.features, chosen.label) if j is not None]
        return chosen

    def choose_label(found: Header) -> Columns:
        return choose(found)._replace(features=[])

    def libsvm(lines: Lines, bad: BadLines) -> Reading:
        _no_target(bad, target)
        return Reading(0, None, read_libsvm(lines, chunk_size, n_features, bad))

    found = _open(how, choose, libsvm, choose_label)
    labels = found.categories()
    if labels is not None:
        found.close()
        return Survey(labels, found.n_rows or 0, None, names)
    seen: set[Any] = set()
    n_rows = 0
    if on_rows:
        on_rows(0)
    for chunk in found:
        seen.update(np.unique(chunk.y).tolist())
        n_rows += len(chunk.y)
        widest = max(widest, 0 if isinstance(chunk.X, dict) else chunk.X.shape[1])
        if on_rows:
            on_rows(n_rows)
    return Survey(np.array(sorted(seen)), n_rows, widest if names is None else None, names)


def source_name(path: str | os.PathLike[str]) -> str:
    """What errors call a file."""
    return "standard input" if os.fspath(path) == "-" else os.fspath(path)


def _open(
    how: _How,
    choose: Choose,
    libsvm: Callable[[Lines, BadLines], Reading],
    choose_parquet: Choose | None = None,
    flush_after: float | None = None,
) -> Stream:
    """Open a file of any format: tables by what columns to choose, LIBSVM text by its own reader."""
    if flush_after is not None:
        positive(how.who, "flush_after", flush_after, zero=True)
    bad = BadLines(how.who, how.source, how.bad_lines)
    file = open_bytes(how.path)
    lines = Lines(file, file.live)
    lines.flush_after = flush_after
    try:
        form = _guess(how.path, file) if how.format == "auto" else how.format
        if form == "libsvm":
            reading = libsvm(lines, bad)
        elif form == "csv":
            reading = read_csv(
                lines, how.chunk_size, choose, bad, header=how.header, decimal=how.decimal, kinds=how.wanted.stated
            )
        elif not is_replayable(how.path):
            raise InputError(how.who, "Parquet", "must come from a file", how.source, "Save it first.")
        else:
            require_extra(how.who, "pyarrow", "parquet", "to read Parquet")
            file.close()
            file = open_seekable(how.path)
            reading = read_parquet(file, how.chunk_size, choose_parquet or choose, bad, how.wanted.stated)
    except DAMAGE as error:
        file.close()
        raise _damaged(bad, error) from error
    except BaseException:
        file.close()
        raise
    return Stream(file, lines, reading, bad)


def _no_target(bad: BadLines, target: str | int | None) -> None:
    if target is not None:
        must = "must be None for LIBSVM text, whose labels come first in the line"
        raise InputError(bad.who, "target", must, repr(target))


def _damaged(bad: BadLines, error: BaseException) -> InputError:
    if isinstance(error, TooMuchMemoryError):
        return InputError(bad.who, bad.source, MOST_MEMORY, "more", "Compress it again, for example with xz -9.")
    return InputError(bad.who, bad.source, "must be a whole file", f"a damaged or cut one: {error}", "Fetch it again.")


def _width(how: _How) -> int:
    """The largest feature index of a LIBSVM file."""
    if not is_replayable(how.path):
        must = f"must be given for LIBSVM text from {how.source}, which is read only once"
        raise InputError("stream", "n_features", must)
    with open_bytes(how.path) as file:
        chunks = read_libsvm(Lines(file), how.chunk_size, None, BadLines("stream", how.path, "skip"))
        return max((chunk.X.shape[1] for chunk in chunks if not isinstance(chunk.X, dict)), default=0)


def _guess(name: str, file: Source) -> str:
    start = file.peek(1 << 16)
    if start.startswith(b"PAR1"):
        return "parquet"
    stem, suffix = os.path.splitext(name.lower())
    if suffix in (".gz", ".bz2", ".xz", ".zst"):
        suffix = os.path.splitext(stem)[1]
    return _SUFFIXES.get(suffix) or ("libsvm" if _LIBSVM_LINE.match(start) else "csv")
