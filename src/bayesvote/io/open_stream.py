"""Streams of the user's own data: a file or standard input, read chunk by chunk in constant memory."""

import os
import re
from collections.abc import Callable, Mapping, Sequence
from typing import NamedTuple

import numpy as np

from bayesvote.core.checks import InputError, integer, positive
from bayesvote.io.chunks import OpenedFile
from bayesvote.io.columns import Choose, ColumnChoice, ColumnRequest, Header, feature_columns, labelled_columns, listed
from bayesvote.io.csv import read_csv
from bayesvote.io.faults import BadLines
from bayesvote.io.labels import LabelReader, is_code
from bayesvote.io.libsvm import read_libsvm
from bayesvote.io.lines import LineReader
from bayesvote.io.parquet import read_parquet
from bayesvote.io.read_options import ReadOptions
from bayesvote.io.sources import DAMAGE, Source, is_replayable, open_bytes, open_seekable, require_extra
from bayesvote.io.stream import Stream, damaged

__all__ = [
    "ReadRequest",
    "Stream",
    "is_code",
    "is_replayable",
    "listed",
    "no_target",
    "open_bytes",
    "open_file",
    "open_labelled",
    "open_unlabelled",
    "require_extra",
    "source_name",
    "stream",
    "stream_unlabelled",
]

_SUFFIXES = {".csv": "csv", ".tsv": "csv", ".libsvm": "libsvm", ".svm": "libsvm", ".svmlight": "libsvm"}
_LIBSVM_LINE = re.compile(rb"(?:\s|#[^\n]*\n)*(?:[^\s:]+\s+)?\d+:")  # with or without a label

LibsvmReader = Callable[[LineReader, BadLines], OpenedFile]


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
    labels: str = "auto",
    flush_after: float | None = None,
) -> Stream:
    r"""Read a file of labelled rows chunk by chunk.

    Parameters
    ----------
    path
        The file, plain or compressed (gz, bz2, xz, zst); "-" for standard input.
    format
        "libsvm", "csv", "parquet", or "auto": inferred from the file name, or else from the first line.
    chunk_size
        Maximum number of rows per chunk. Chunks of very long rows are smaller.
    target
        The label's column in CSV and Parquet, by name or position; the last one by default.
    bad_lines
        "error", or "skip": skip and count lines that cannot be read.
    n_features
        The number of features of LIBSVM text. By default the file is read once more to find it, up to 1,048,576.
        It is required for standard input.
    header
        True if the first line of CSV names the columns, False if it is a row. With None it must name the columns, and
        a first line that looks like a row is an error.
    decimal
        The decimal mark in CSV, "." or ",". By default it is a point, or a comma if columns are not separated by commas
        and the numbers have commas, never points.
    columns
        Kinds of columns of CSV and Parquet by name: "number", "category", "boolean", "date", "day_first" or
        "month_first" for dates such as 01/02/2020, or "drop". Other columns are read as numbers or as text, like most
        of their first hundred values.
    features
        The names of the columns to learn from; all except the label's by default.
    labels
        "auto", or "text" to read labels as strings. With "auto", labels are numbers if the first one is, unless one of
        the first hundred lines of CSV has a code such as 01. A later code is a bad line: 01 and 1 are never one label.
    flush_after
        Seconds after which a chunk from a pipe is returned with the rows that have arrived. None to wait until it is
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
    options = ReadOptions(format, target, bad_lines, chunk_size, columns, header, decimal, features, labels)
    return open_labelled(path, options, n_features=n_features, flush_after=flush_after)


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
    r"""Read the features of a file's rows chunk by chunk, with or without labels.

    Parameters
    ----------
    path, format, bad_lines, chunk_size, header, decimal, columns, flush_after
        As in `stream`.
    n_features
        The number of features.
    feature_names
        Their names: CSV and Parquet columns are matched by name, in any order, and all others are ignored. Without
        names, the features are all columns except the label's.
    target
        The label's column, if names are not given; by default the last one if there is one extra column.

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
    options = ReadOptions(format, target, bad_lines, chunk_size, columns, header, decimal)
    return open_unlabelled(path, options, n_features, feature_names, flush_after=flush_after)


class ReadRequest(NamedTuple):
    """A file, the options to read it, and the function that errors name."""

    who: str
    path: str
    options: ReadOptions

    @property
    def source(self) -> str:
        """The name of the file in errors."""
        return source_name(self.path)


def open_labelled(
    path: str | os.PathLike[str],
    options: ReadOptions,
    *,
    n_features: int | None = None,
    flush_after: float | None = None,
) -> Stream:
    """Open a file of labelled rows; `stream` documents the parameters."""
    if n_features is not None:
        integer("stream", "n_features", n_features)
    options.check("stream")
    request = ReadRequest("stream", os.fspath(path), options)

    def choose(header: Header) -> ColumnChoice:
        return labelled_columns("stream", request.source, header, options.target, options.request)

    def libsvm(lines: LineReader, bad: BadLines) -> OpenedFile:
        no_target(bad, options.target)
        width = _width(request) if n_features is None else n_features
        reader = LabelReader(options.labels)
        chunks = read_libsvm(lines, options.chunk_size, width, bad, reader, stated=n_features is not None)
        return OpenedFile(width, None, chunks, labels=reader)

    found = open_file(request, choose, libsvm, flush_after=flush_after)
    if n_features not in (None, found.n_features):
        found.close()
        must = f"must have {n_features} features, as requested"
        raise InputError("stream", request.source, must, str(found.n_features))
    return found


def open_unlabelled(
    path: str | os.PathLike[str],
    options: ReadOptions,
    n_features: int,
    feature_names: Sequence[str] | None = None,
    *,
    flush_after: float | None = None,
) -> Stream:
    """Open a file for its features; `stream_unlabelled` documents the parameters."""
    integer("stream_unlabelled", "n_features", n_features)
    options.check("stream_unlabelled")
    request, ignored = ReadRequest("stream_unlabelled", os.fspath(path), options), list[str]()
    who, source, target = request.who, request.source, options.target

    def choose(header: Header) -> ColumnChoice:
        chosen = feature_columns(who, source, header, n_features, feature_names, target)
        label = None if target is None else labelled_columns(who, source, header, target, ColumnRequest({})).label
        others = [j for j in range(len(header.names)) if j not in (*chosen.features, *header.pandas_index, label)]
        ignored.extend(header.names[j] for j in others)
        return chosen

    def libsvm(lines: LineReader, bad: BadLines) -> OpenedFile:
        chunks = read_libsvm(lines, options.chunk_size, n_features, bad, LabelReader(), labelled=False)
        return OpenedFile(n_features, None, (chunk._replace(y=np.empty(0)) for chunk in chunks))

    opened = open_file(request, choose, libsvm, flush_after=flush_after)
    opened.ignored = ignored
    return opened


def source_name(path: str | os.PathLike[str]) -> str:
    """Return the name of a file in errors."""
    return "standard input" if os.fspath(path) == "-" else os.fspath(path)


def open_file(
    request: ReadRequest,
    choose: Choose,
    libsvm: LibsvmReader,
    choose_parquet: Choose | None = None,
    flush_after: float | None = None,
) -> Stream:
    """Open a file of any format: ``choose`` selects the columns of a table, ``libsvm`` reads LIBSVM text."""
    who, path, options = request
    if flush_after is not None:
        positive(who, "flush_after", flush_after, zero=True)
    bad = BadLines(who, request.source, options.bad_lines)
    file = open_bytes(path)
    lines = LineReader(file, file.live)
    lines.flush_after = flush_after
    try:
        form = _guess(path, file) if options.format == "auto" else options.format
        if form == "libsvm":
            opened = libsvm(lines, bad)
        elif form == "csv":
            opened = read_csv(lines, choose, bad, options)
        elif not is_replayable(path):
            raise InputError(who, "Parquet", "must be read from a file", request.source, "Save it to a file first.")
        else:
            require_extra(who, "pyarrow", "parquet", "to read Parquet")
            file.close()
            file = open_seekable(path)
            opened = read_parquet(file, choose_parquet or choose, bad, options)
    except DAMAGE as error:
        file.close()
        raise damaged(bad, error) from error
    except BaseException:
        file.close()
        raise
    return Stream(file, lines, opened, bad)


def no_target(bad: BadLines, target: str | int | None) -> None:
    """Raise an error if a label column is given for LIBSVM text."""
    if target is not None:
        must = "must be None for LIBSVM text, where each line starts with its label"
        raise InputError(bad.who, "target", must, repr(target))


def _width(request: ReadRequest) -> int:
    """Return the largest feature index of a LIBSVM file."""
    if not is_replayable(request.path):
        must = f"must be given for LIBSVM text from {request.source}, which can be read only once"
        raise InputError("stream", "n_features", must)
    with open_bytes(request.path) as file:
        bad = BadLines("stream", request.path, "skip")
        chunks = read_libsvm(LineReader(file), request.options.chunk_size, None, bad, LabelReader())
        return max((chunk.X.shape[1] for chunk in chunks if not isinstance(chunk.X, dict)), default=0)


def _guess(name: str, file: Source) -> str:
    start = file.peek(1 << 16)
    if start.startswith(b"PAR1"):
        return "parquet"
    stem, suffix = os.path.splitext(name.lower())
    if suffix in (".gz", ".bz2", ".xz", ".zst"):
        suffix = os.path.splitext(stem)[1]
    return _SUFFIXES.get(suffix) or ("libsvm" if _LIBSVM_LINE.match(start) else "csv")
