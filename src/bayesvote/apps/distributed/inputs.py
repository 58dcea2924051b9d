"""The shards: files, partitions of Dask's collections, or arrays in memory."""

import glob
import hashlib
import json
import os
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import asdict, dataclass, replace
from pathlib import Path
from typing import Any, Protocol

import numpy as np
from numpy.typing import NDArray

from bayesvote.apps.distributed.contents import WHO, Contents, ShardSchema, order_of
from bayesvote.core.checks import InputError, InputTypeError, label_array
from bayesvote.io.open_stream import open_labelled
from bayesvote.io.read_options import ReadOptions
from bayesvote.io.survey import survey_file
from bayesvote.tables import has_text, is_table, read_table


class Shard(Protocol):
    """A part of the rows that any process can read, more than once, with the same result."""

    @property
    def name(self) -> str:
        """Name in error messages."""

    @property
    def identity(self) -> str:
        """Key that only equal shards share."""

    @property
    def version(self) -> str:
        """Text that changes when the rows change."""

    def survey(self) -> Contents:
        """Return its contents."""

    def chunks(self, table: ShardSchema) -> Iterator[tuple[Any, NDArray[Any]]]:
        """Yield chunks of rows and labels: arrays with the columns of the schema, or tables to be encoded."""


@dataclass(frozen=True)
class Reading(ReadOptions):
    """Options for reading files; see :func:`bayesvote.datasets.stream`."""

    chunk_size: int = 8192


@dataclass(frozen=True)
class FileShard:
    """A file of LIBSVM text, CSV or Parquet."""

    path: str
    reading: ReadOptions

    @property
    def name(self) -> str:
        """The path as given."""
        return self.path

    @property
    def identity(self) -> str:
        """The path with symbolic links resolved."""
        return os.path.realpath(self.path)

    @property
    def version(self) -> str:
        """The reading options, size and modification time."""
        found = os.stat(self.path)
        return json.dumps([asdict(self.reading), found.st_size, found.st_mtime_ns])

    def survey(self) -> Contents:
        """Read the labels. In CSV and LIBSVM text this reads the whole file."""
        found = survey_file(self.path, self.reading)
        rows = self._open(found.n_features or None, "text" if found.labels.dtype.kind == "U" else self.reading.labels)
        try:
            first = next(rows, None)
        finally:
            rows.close()
        return Contents(
            found.n_rows,
            found.labels.tolist(),
            rows.n_features,
            rows.feature_names,
            may_be_wider=rows.feature_names is None,
            has_text=first is not None and isinstance(first.X, dict),
            written=True,
        )

    def chunks(self, table: ShardSchema) -> Iterator[tuple[Any, NDArray[Any]]]:
        """Read the file chunk by chunk."""
        labels = "text" if table.classes.dtype.kind == "U" else self.reading.labels
        rows = self._open(table.n_features if table.names is None else None, labels)
        try:
            for chunk in rows:
                yield chosen(chunk.X, rows.feature_names, table), chunk.y
        finally:
            rows.close()

    def _open(self, n_features: int | None, labels: str) -> Any:
        return open_labelled(self.path, replace(self.reading, labels=labels), n_features=n_features)


@dataclass(frozen=True, eq=False)
class ArrayShard:
    """Rows and labels in memory: an array, a sparse matrix, or a table."""

    X: Any
    y: NDArray[Any]
    name: str
    chunk_size: int = Reading.chunk_size
    columns: Mapping[str, str] | None = None

    @property
    def identity(self) -> str:
        """Its position in the list."""
        return self.name

    @property
    def version(self) -> str:
        """A checksum of the values."""
        if is_table(self.X):
            table = read_table(WHO, self.X)
            parts = [part for cells in table.columns.values() for part in (cells.numbers, cells.codes)]
            exact = {name: cells.exact for name, cells in table.columns.items() if cells.exact is not None}
            parts += [array for array in exact.values() if array.dtype != object]
            words = [[name, cells.texts] for name, cells in table.columns.items()]
            words += [[name, array.tolist()] for name, array in exact.items() if array.dtype == object]
        elif hasattr(self.X, "indptr"):
            parts, words = [self.X.data, self.X.indices, self.X.indptr], []
        else:
            parts, words = [np.asarray(self.X)], []
        found = hashlib.sha256(repr([words, [part.dtype for part in parts]]).encode())
        for part in [*parts, self.y if self.y.dtype.kind != "O" else np.array(self.y.tolist(), dtype=str)]:
            found.update(np.ascontiguousarray(part).tobytes())
        return found.hexdigest()

    @property
    def names(self) -> list[str] | None:
        """Names of the columns of a table."""
        return [*read_table(WHO, self._some(slice(0, 1))).columns] if is_table(self.X) else None

    def survey(self) -> Contents:
        """Read the labels."""
        names = self.names
        rows = read_table(WHO, self.X).n if names is not None else self.X.shape[0]
        if rows != len(self.y):
            raise InputError(WHO, self.name, f"must have one label for each of its {rows} rows", str(len(self.y)))
        labels = plain(self.y)
        if labels.dtype.kind == "f" and np.isnan(labels).any():
            raise InputError(WHO, "labels", "must not be missing", "missing labels", "Drop rows without a label.")
        width = self.X.shape[1] if names is None else len(names)
        text = names is not None and (self.columns is not None or has_text(self.X))
        return Contents(rows, np.unique(labels).tolist(), width, names, has_text=text)

    def chunks(self, table: ShardSchema) -> Iterator[tuple[Any, NDArray[Any]]]:
        """Yield chunks of rows."""
        names = self.names
        for start in range(0, len(self.y), self.chunk_size):
            rows = slice(start, start + self.chunk_size)
            yield chosen(self._some(rows), names, table), plain(self.y[rows])

    def _some(self, rows: slice) -> Any:
        if isinstance(self.X, Mapping):
            return {name: values[rows] for name, values in self.X.items()}
        return self.X.iloc[rows] if hasattr(self.X, "iloc") else self.X[rows]


def chosen(X: Any, found: list[str] | None, table: ShardSchema) -> Any:
    """Return rows with the columns of the schema. Rows to be encoded stay as they are."""
    if table.columns is not None:
        return X if is_table(X) else dict(zip(found or (), X.T, strict=True))
    order = None if table.names is None else order_of(found, table.names)
    if is_table(X):
        cells = read_table(WHO, X).columns
        X = np.stack([cells[name].numbers for name in found or ()], axis=1)
    return X if order is None else X[:, order]


def shards_of(data: Any, reading: ReadOptions) -> list[Shard]:
    """Return the shards of paths, globs, pairs (X, y) or collections of Dask."""
    module = type(data).__module__.partition(".")[0]
    first = type(data[0]).__module__.partition(".")[0] if isinstance(data, tuple) and data else ""
    if module.startswith("dask") or first.startswith("dask"):
        from bayesvote.apps.distributed.partitions import partitions

        return partitions(data, reading)
    if isinstance(data, str | os.PathLike):
        return _files([data], reading)
    if not isinstance(data, Sequence) or not data:
        must = "must be paths, pairs (X, y) of arrays, a dask.dataframe or a pair of dask.arrays"
        raise InputTypeError(WHO, "data", must, repr(data)[:200])
    if all(isinstance(one, str | os.PathLike) for one in data):
        return _files(data, reading)
    found: list[Shard] = []
    for place, one in enumerate(data):
        if not isinstance(one, tuple) or len(one) != 2 or not (is_table(one[0]) or getattr(one[0], "ndim", 0) == 2):
            must = "must be a path or a pair (X, y), X a table or an array of rows by features"
            raise InputTypeError(WHO, f"shard {place}", must, repr(one)[:200])
        # NumPy would make floats of some integers in lists; ``plain`` finds a type that holds them.
        labels = np.array(one[1], dtype=object) if isinstance(one[1], list) else np.asarray(one[1])
        found.append(ArrayShard(without_names(one[0]), labels, f"shard {place}", reading.chunk_size, reading.columns))
    return found


def _files(paths: Sequence[str | os.PathLike[str]], reading: ReadOptions) -> list[Shard]:
    """Return the shards of files in the order of the paths, those of a glob sorted by name."""
    found: list[str] = []
    for path in [os.fspath(one) for one in paths]:
        matches = [path] if Path(path).is_file() else sorted(filter(os.path.isfile, glob.glob(path, recursive=True)))
        if not matches:
            what = "must match files" if glob.has_magic(path) else "must be a file"
            got = "a folder" if Path(path).is_dir() else "nothing there"
            raise InputError(
                WHO, repr(path), what, got, f"Pass its files, such as {path}/*.parquet." * Path(path).is_dir()
            )
        found += matches
    return [FileShard(path, reading) for path in found]


def without_duplicates(shards: Sequence[Shard]) -> tuple[list[Shard], list[str]]:
    """Return each shard once, and the names of the duplicates."""
    kept: dict[str, Shard] = {}
    again = [shard.name for shard in shards if kept.setdefault(shard.identity, shard) is not shard]
    return list(kept.values()), again


def without_names(X: Any) -> Any:
    """Return a table as it is; if it has only numbers and its names are not strings, return an array."""
    names = getattr(X, "columns", None) if hasattr(X, "iloc") else None
    if names is None or all(isinstance(name, str) for name in names) or has_text(X):
        return X
    return X.to_numpy(dtype=np.float64)


def plain(labels: NDArray[Any]) -> NDArray[Any]:
    """Return labels as an array of one type. Tables may hold them as objects."""
    if labels.dtype.kind != "O":
        return labels
    values = labels.tolist()
    if any(label is None or label != label for label in values):
        raise InputError(WHO, "labels", "must not be missing", "missing labels", "Drop rows without a label.")
    return np.asarray(label_array(values)) if values else np.empty(0, dtype=str)
