"""Rows to predict: a model's features by their names or places, whether a label stands beside them or not."""

import csv
import re
from collections.abc import Iterator, Sequence
from difflib import get_close_matches
from io import BufferedReader
from typing import TYPE_CHECKING, BinaryIO, cast

import numpy as np

from bayesvote._checks import Array
from bayesvote.datasets._readers import BadLines, _csv_values, read_libsvm
from bayesvote.datasets.streams import _guess, open_bytes, require_extra

if TYPE_CHECKING:
    from scipy.sparse import csr_array

    Table = Array | csr_array[np.float64, tuple[int, int]]

_CHUNK = 4096
_PAIRS = re.compile(rb"(?:\s|#[^\n]*\n)*\d+:")  # LIBSVM text without labels


def unlabelled(
    path: str, file_format: str, n_features: int, names: Sequence[str] | None, target: str | None, bad: BadLines
) -> "Iterator[Table]":
    """Read the features of a file's rows, chunk by chunk.

    If the model knows its features' names, the file's columns are found by name, in any order, and others are left
    out. Else they are all columns but that of the label: ``target``, or the last one if there is one too many.
    """
    with open_bytes(path) as file:
        kind = file_format
        if kind == "auto":
            kind = "libsvm" if _PAIRS.match(file.peek(1 << 16)) else _guess(path, file)
        if kind == "libsvm":
            # The reader wants a label: one is put in front, in the place of any that is there.
            lines = cast(BinaryIO, (_relabelled(line) for line in file))
            yield from (chunk.X for chunk in read_libsvm(lines, _CHUNK, n_features, bad))
        elif kind == "csv":
            yield from _csv(file, n_features, names, target, bad)
        elif path == "-":
            raise ValueError("Parquet must come from a file, got standard input. Save it first.")
        else:
            require_extra("predict", "pyarrow", "parquet", "to read Parquet")
            yield from _parquet(file, n_features, names, target, bad)


def _relabelled(line: bytes) -> bytes:
    first, *rest = line.split(None, 1) or [b"#"]
    if first.startswith(b"#"):
        return line
    return b"0 " + (line if b":" in first else b"".join(rest) or b"\n")


def _csv(
    file: BufferedReader, n_features: int, names: Sequence[str] | None, target: str | None, bad: BadLines
) -> Iterator[Array]:
    text = (line.decode("utf-8", "surrogateescape") for line in file)
    first = next(text, "").removeprefix("\ufeff")
    delimiter = max(",;\t", key=first.count)
    columns = [name.strip() for name in next(csv.reader([first], delimiter=delimiter), [])]
    places = _places(bad.source, columns, n_features, names, target)
    chosen = [columns[j] for j in places]
    rows = csv.reader(text, delimiter=delimiter, strict=True)
    values: list[list[float]] = []
    more = True
    while more:
        number = rows.line_num + 2  # lines count from 1, and the header is one
        try:
            row = next(rows, None)
            more = row is not None
            if row:
                if len(row) != len(columns):
                    raise ValueError(f"it must have {len(columns)} fields, as the header has, got {len(row)}")
                values.append(_csv_values([row[j] for j in places], chosen))
        except (ValueError, csv.Error) as error:
            bad.report(number, str(error))
        if values and (len(values) == _CHUNK or not more):
            yield np.array(values)
            values = []


def _parquet(
    file: BufferedReader, n_features: int, names: Sequence[str] | None, target: str | None, bad: BadLines
) -> Iterator[Array]:
    import pyarrow
    import pyarrow.parquet

    table = pyarrow.parquet.ParquetFile(file)
    places = _places(bad.source, table.schema_arrow.names, n_features, names, target)
    for batch in table.iter_batches(batch_size=_CHUNK):
        X = np.empty((batch.num_rows, len(places)))
        for k, j in enumerate(places):
            X[:, k] = batch.column(j).cast(pyarrow.float64(), safe=False).to_numpy(zero_copy_only=False)
        yield X


def _places(
    source: str, columns: Sequence[str], n_features: int, names: Sequence[str] | None, target: str | None
) -> list[int]:
    """Find the model's features among the columns."""
    if names is not None:
        for name in names:
            if name not in columns:
                raise ValueError(f"{source} must have the column {name!r} of the model.{near(name, columns)}")
        return [columns.index(name) for name in names]
    if target is not None and target not in columns:
        raise ValueError(
            f"--target must be a column of {source}, {', '.join(columns)}, got {target!r}.{near(target, columns)}"
        )
    places = [j for j, name in enumerate(columns) if name != target]
    if target is None and len(places) == n_features + 1:
        places.pop()
    if len(places) != n_features:
        raise ValueError(
            f"{source} must have the model's {n_features} features, with or without a label, "
            f"got {len(columns)} columns."
        )
    return places


def near(name: str, known: Sequence[str]) -> str:
    """Say which known name is meant, if one is near."""
    found = get_close_matches(name, known, n=1)
    return f" Did you mean {found[0]!r}?" if found else ""
