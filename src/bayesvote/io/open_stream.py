"""Streams of the user's own data: a file or standard input, read chunk by chunk in constant memory."""

import os
import re
from collections.abc import Callable, Mapping, Sequence
from typing import Any, NamedTuple

import numpy as np
from numpy.typing import NDArray

from bayesvote.core.checks import InputError, integer, one_of, positive
from bayesvote.io.columns import (
    Choose,
    Columns,
    Header,
    Wanted,
    feature_columns,
    labelled_columns,
    listed,
)
from bayesvote.io.csv import read_csv
from bayesvote.io.libsvm import read_libsvm
from bayesvote.io.lines import Lines
from bayesvote.io.parquet import read_parquet
from bayesvote.io.readers import BadLines, LabelReader, Reading, is_code
from bayesvote.io.sources import (
    DAMAGE,
    Source,
    is_replayable,
    open_bytes,
    open_seekable,
    require_extra,
)
from bayesvote.io.stream import Stream, damaged
from bayesvote.tables.kinds import STATED

__all__ = [
    "Stream",
    "Survey",
    "is_code",
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
    labels: str = "auto"

    @property
    def source(self) -> str:
        return source_name(self.path)

    def check(self) -> "_How":
        one_of(self.who, "format", self.format, ("auto", "libsvm", "csv", "parquet"))
        one_of(self.who, "bad_lines", self.bad_lines, ("error", "skip"))
        one_of(self.who, "labels", self.labels, ("auto", "text"))
        integer(self.who, "chunk_size", self.chunk_size)
        for name, kind in self.wanted.kinds.items():
            one_of(self.who, f"columns[{name!r}]", kind, STATED)
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
    labels: str = "auto",
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
        Kinds of columns of CSV and Parquet by their names: "number", "category", "boolean", "date", "day_first" or
        "month_first" for dates such as 01/02/2020, or "drop". Others are read as numbers or as texts, as most of their
        first hundred values are.
    features
        The names of the columns to learn from; all but the label's by default.
    labels
        "auto", or "text" for labels as they are written. Labels are numbers if the first one is, unless one of the
        first hundred lines of CSV has a code such as 01. A later code is then a bad line: 01 and 1 are never one label.
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
    how = _How("stream", os.fspath(path), format, chunk_size, bad_lines, header, decimal, wanted, labels).check()

    def choose(found: Header) -> Columns:
        return labelled_columns("stream", how.source, found, target, wanted)

    def libsvm(lines: Lines, bad: BadLines) -> Reading:
        _no_target(bad, target)
        width = _width(how) if n_features is None else n_features
        reader = LabelReader(labels)
        chunks = read_libsvm(lines, chunk_size, width, bad, reader, stated=n_features is not None)
        return Reading(width, None, chunks, labels=reader)

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
        chunks = read_libsvm(lines, chunk_size, n_features, bad, LabelReader(), labelled=False)
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
    labels: str = "auto",
    on_rows: Callable[[int], None] | None = None,
) -> Survey:
    """Find out what a model must know about a file before it learns the first row.

    A Parquet file is asked for the categories of the label's column. If it has none, that column is read; of any other
    file, everything is.

    Parameters
    ----------
    path, format, target, bad_lines, n_features, chunk_size, header, decimal, columns, features
        As in `stream`.
    labels
        As in `stream`, but all lines are searched for codes such as 01, not the first ones alone.
    on_rows
        Called with the number of rows read so far: with 0 before the first one, and never if no row must be read.
    """
    wanted = Wanted(columns or {}, features)
    how = _How("stream", os.fspath(path), format, chunk_size, bad_lines, header, decimal, wanted, labels).check()
    found = _surveyed(how, target, n_features, on_rows)
    if found is None:  # a code among numbers: all labels are texts
        found = _surveyed(how._replace(labels="text"), target, n_features, on_rows)
    assert found is not None
    return found


def _surveyed(
    how: _How, target: str | int | None, n_features: int | None, on_rows: Callable[[int], None] | None
) -> Survey | None:
    """Read a file once; None if labels are numbers by the first one, and a later one is a code such as 01."""
    widest = 0
    names: list[str] | None = None

    def choose(found: Header) -> Columns:
        nonlocal names
        chosen = labelled_columns("stream", how.source, found, target, how.wanted)
        names = [found.names[j] for j in (*chosen.features, chosen.label) if j is not None]
        return chosen

    def choose_label(found: Header) -> Columns:
        return choose(found)._replace(features=[])

    def libsvm(lines: Lines, bad: BadLines) -> Reading:
        _no_target(bad, target)
        reader = LabelReader(how.labels)
        return Reading(0, None, read_libsvm(lines, how.chunk_size, n_features, bad, reader), labels=reader)

    found = _open(how, choose, libsvm, choose_label)
    labels = found.categories()
    if labels is not None:
        found.close()
        return Survey(labels, found.n_rows or 0, None, names)
    seen: set[Any] = set()
    n_rows = 0
    if on_rows:
        on_rows(0)
    try:
        for chunk in found:
            seen.update(np.unique(chunk.y).tolist())
            n_rows += len(chunk.y)
            widest = max(widest, 0 if isinstance(chunk.X, dict) else chunk.X.shape[1])
            if on_rows:
                on_rows(n_rows)
    except InputError:
        if not found.met_codes:
            raise
    if found.met_codes:
        return None
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
    kinds = how.wanted.stated
    try:
        form = _guess(how.path, file) if how.format == "auto" else how.format
        if form == "libsvm":
            reading = libsvm(lines, bad)
        elif form == "csv":
            reading = read_csv(
                lines,
                how.chunk_size,
                choose,
                bad,
                header=how.header,
                decimal=how.decimal,
                kinds=kinds,
                labels=how.labels,
            )
        elif not is_replayable(how.path):
            raise InputError(how.who, "Parquet", "must come from a file", how.source, "Save it first.")
        else:
            require_extra(how.who, "pyarrow", "parquet", "to read Parquet")
            file.close()
            file = open_seekable(how.path)
            chosen = choose_parquet or choose
            reading = read_parquet(file, how.chunk_size, chosen, bad, kinds=kinds, labels=how.labels)
    except DAMAGE as error:
        file.close()
        raise damaged(bad, error) from error
    except BaseException:
        file.close()
        raise
    return Stream(file, lines, reading, bad)


def _no_target(bad: BadLines, target: str | int | None) -> None:
    if target is not None:
        must = "must be None for LIBSVM text, whose labels come first in the line"
        raise InputError(bad.who, "target", must, repr(target))


def _width(how: _How) -> int:
    """The largest feature index of a LIBSVM file."""
    if not is_replayable(how.path):
        must = f"must be given for LIBSVM text from {how.source}, which is read only once"
        raise InputError("stream", "n_features", must)
    with open_bytes(how.path) as file:
        chunks = read_libsvm(Lines(file), how.chunk_size, None, BadLines("stream", how.path, "skip"), LabelReader())
        return max((chunk.X.shape[1] for chunk in chunks if not isinstance(chunk.X, dict)), default=0)


def _guess(name: str, file: Source) -> str:
    start = file.peek(1 << 16)
    if start.startswith(b"PAR1"):
        return "parquet"
    stem, suffix = os.path.splitext(name.lower())
    if suffix in (".gz", ".bz2", ".xz", ".zst"):
        suffix = os.path.splitext(stem)[1]
    return _SUFFIXES.get(suffix) or ("libsvm" if _LIBSVM_LINE.match(start) else "csv")
