"""One pass over a file to find its labels and its size before learning."""

import os
from collections.abc import Callable, Mapping, Sequence
from dataclasses import replace
from typing import Any, NamedTuple

import numpy as np
from numpy.typing import NDArray

from bayesvote.core.checks import InputError
from bayesvote.io.chunks import OpenedFile
from bayesvote.io.columns import ColumnChoice, Header, labelled_columns
from bayesvote.io.faults import BadLines
from bayesvote.io.labels import LabelReader
from bayesvote.io.libsvm import read_libsvm
from bayesvote.io.lines import LineReader
from bayesvote.io.open_stream import ReadRequest, no_target, open_file
from bayesvote.io.read_options import ReadOptions


class Survey(NamedTuple):
    """Facts about a file.

    Attributes
    ----------
    labels
        Its labels, sorted.
    n_rows
        The number of rows; for a Parquet file, including bad ones.
    n_features
        The number of features of LIBSVM text; None for other formats.
    columns
        The names of the columns, the label's last; None for LIBSVM text.
    """

    labels: NDArray[Any]
    n_rows: int
    n_features: int | None
    columns: list[str] | None = None


def survey(
    path: str | os.PathLike[str],
    format: str = "auto",  # noqa: A002 - as in `stream`
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
    """Find the labels and the size of a file, which a model needs before the first row.

    For a Parquet file whose label column is categorical, only the categories are read. For other Parquet files the
    label column is read, and for all other formats the whole file.

    Parameters
    ----------
    path, format, target, bad_lines, n_features, chunk_size, header, decimal, columns, features
        As in `stream`.
    labels
        As in `stream`, but all lines are searched for codes such as 01, not only the first hundred.
    on_rows
        Called with the number of rows read so far: first with 0, and never if no rows have to be read.
    """
    options = ReadOptions(format, target, bad_lines, chunk_size, columns, header, decimal, features, labels)
    return survey_file(path, options, n_features=n_features, on_rows=on_rows)


def survey_file(
    path: str | os.PathLike[str],
    options: ReadOptions,
    *,
    n_features: int | None = None,
    on_rows: Callable[[int], None] | None = None,
) -> Survey:
    """Find the labels and the size of a file; `survey` documents the parameters."""
    options.check("stream")
    request = ReadRequest("stream", os.fspath(path), options)
    found = _one_pass(request, n_features, on_rows)
    if found is None:  # a code among numbers: read all labels as text
        found = _one_pass(request._replace(options=replace(options, labels="text")), n_features, on_rows)
    assert found is not None
    return found


def _one_pass(request: ReadRequest, n_features: int | None, on_rows: Callable[[int], None] | None) -> Survey | None:
    """Read a file once; return None if the first label is a number and a later one is a code such as 01."""
    options = request.options
    widest = 0
    names: list[str] | None = None

    def choose(header: Header) -> ColumnChoice:
        nonlocal names
        chosen = labelled_columns("stream", request.source, header, options.target, options.request)
        names = [header.names[j] for j in (*chosen.features, chosen.label) if j is not None]
        return chosen

    def choose_label(header: Header) -> ColumnChoice:
        return choose(header)._replace(features=[])

    def libsvm(lines: LineReader, bad: BadLines) -> OpenedFile:
        no_target(bad, options.target)
        reader = LabelReader(options.labels)
        return OpenedFile(0, None, read_libsvm(lines, options.chunk_size, n_features, bad, reader), labels=reader)

    found = open_file(request, choose, libsvm, choose_label)
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
