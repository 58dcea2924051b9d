"""Collections of Dask: their partitions as shards, and lazy predictions."""

from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np
from numpy.typing import NDArray

from bayesvote.apps.distributed.contents import WHO, Contents, ShardSchema
from bayesvote.apps.distributed.inputs import ArrayShard, without_names
from bayesvote.core.checks import InputError, InputTypeError
from bayesvote.io.read_options import ReadOptions


@dataclass(frozen=True, eq=False)
class PartitionShard:
    """A delayed partition, computed in the process that reads the shard."""

    parts: tuple[Any, ...]  # one delayed table, or a delayed array and the delayed labels
    target: Any  # name of a column, not always a string
    name: str
    reading: ReadOptions

    @property
    def identity(self) -> str:
        """The key in Dask's graph."""
        return str([part.key for part in self.parts])

    @property
    def version(self) -> str:
        """The key and the column of the labels."""
        return f"{self.identity} {self.target} {self.reading.columns}"

    def survey(self) -> Contents:
        """Compute the partition and read its labels."""
        return self._computed().survey()

    def chunks(self, table: ShardSchema) -> Iterator[tuple[Any, NDArray[Any]]]:
        """Compute the partition and yield chunks of rows."""
        yield from self._computed().chunks(table)

    def _computed(self) -> ArrayShard:
        import dask

        made = dask.compute(*self.parts, scheduler="synchronous")
        X, y = made if self.target is None else (made[0].drop(columns=self.target), made[0][self.target].to_numpy())
        return ArrayShard(without_names(X), np.asarray(y), self.name, self.reading.chunk_size, self.reading.columns)


def partitions(data: Any, reading: ReadOptions) -> list[Any]:
    """Return the partitions of a dask.dataframe, or the blocks of rows of a pair of dask.arrays, as shards."""
    if isinstance(data, tuple):
        names = ("the rows", "the labels")
        if len(data) != 2 or not all(hasattr(one, "chunks") for one in data) or (data[0].ndim, data[1].ndim) != (2, 1):
            must = "must be a pair (X, y) of dask.arrays, of two dimensions and of one"
            raise InputTypeError(WHO, "data", must, repr(data)[:200])
        X, y = data[0].rechunk({1: -1}), data[1]
        sizes = X.chunks[0], y.chunks[0]
        # Unknown sizes are NaN; rows and labels are then compared when they are read.
        if len(sizes[0]) != len(sizes[1]) or any(a != b and a == a and b == b for a, b in zip(*sizes, strict=True)):
            got = f"{len(sizes[0])} blocks of {_few(sizes[0])} rows and {len(sizes[1])} of {_few(sizes[1])}"
            do = "Call rechunk on one of them, after compute_chunk_sizes() if sizes are unknown (nan)."
            raise InputError(WHO, "X and y", "must have the same blocks of rows", got, do)
        return _shards([_apart(X, names[0]), _apart(y, names[1])], None, "block", reading)
    if not hasattr(data, "columns") or not hasattr(data, "to_delayed"):
        must = "must be a dask.dataframe with the labels in a column, or a pair (X, y) of dask.arrays"
        raise InputTypeError(WHO, "data", must, type(data).__name__)
    target = reading.target if reading.target is not None else -1
    columns = [*data.columns]
    if isinstance(target, int) and -len(columns) <= target < len(columns):
        target = columns[target]
    if target not in columns:
        raise InputError(WHO, "target", f"must be one of the columns {columns}"[:500], repr(target))
    return _shards([_apart(data, "the table")], target, "partition", reading)


def _shards(parts: Sequence[list[Any]], target: Any, kind: str, reading: ReadOptions) -> list[Any]:
    return [
        PartitionShard(made, target, f"{kind} {place}", reading) for place, made in enumerate(zip(*parts, strict=True))
    ]


def _apart(collection: Any, what: str) -> list[Any]:
    """Return the delayed partitions, each with its own part of the graph only."""
    from dask.delayed import Delayed
    from dask.optimization import cull

    if any(_is_future(task) for task in dict(collection.__dask_graph__()).values()):
        must = "must not be persisted on a cluster: shards are computed where they are read"
        raise InputError(WHO, what, must, do="Pass the collection before persist().")
    delayed = np.asarray(collection.to_delayed(), dtype=object).reshape(-1).tolist()
    graph = dict(delayed[0].__dask_graph__()) if delayed else {}
    return [Delayed(one.key, cull(graph, [one.key])[0]) for one in delayed]


def _is_future(task: Any) -> bool:
    return type(getattr(task, "value", task)).__module__.startswith("distributed.")


def _few(sizes: Sequence[int]) -> str:
    return ", ".join(map(str, sizes[:3])) + (", ..." if len(sizes) > 3 else "")


def predict(model: Any, data: Any) -> Any:
    """Predict the labels of a dask.dataframe or dask.array lazily.

    Parameters
    ----------
    model
        A fitted classifier.
    data
        The rows, with the columns that the model was fitted on. A dask.dataframe may have further columns.

    Returns
    -------
    dask.array
        The labels, in the same blocks as the rows.
    """
    return _lazily(model, "predict", data, (), model.classes_.dtype)


def predict_proba(model: Any, data: Any) -> Any:
    """Predict the probabilities (n, K) of the labels lazily, like :func:`predict`."""
    return _lazily(model, "predict_proba", data, (len(model.classes_),), np.dtype(np.float64))


def _lazily(model: Any, method: str, data: Any, shape: tuple[int, ...], dtype: Any) -> Any:
    import dask
    import dask.array

    if not hasattr(data, "to_delayed") or not (hasattr(data, "columns") or getattr(data, "ndim", 0) == 2):
        must = "must be a dask.dataframe or a dask.array of two dimensions"
        raise InputTypeError(
            f"{WHO}.{method}", "data", must, type(data).__name__, f"Call model.{method} for other data."
        )
    if hasattr(data, "columns"):
        names = getattr(model, "feature_names_in_", None)
        table = data if names is None else data[[*names]]
        blocks, sizes = [*table.to_delayed()], [np.nan] * table.npartitions
    else:
        rows = data.rechunk({1: -1})
        blocks, sizes = [*rows.to_delayed()[:, 0]], [*rows.chunks[0]]
    shared = dask.delayed(model)  # once in the graph, not once for every block
    work = dask.delayed(_answers, pure=True)
    made = [
        dask.array.from_delayed(work(shared, method, block), (n, *shape), dtype)
        for block, n in zip(blocks, sizes, strict=True)
    ]
    return dask.array.concatenate(made)


def _answers(model: Any, method: str, rows: Any) -> Any:
    if len(rows) == 0:  # scikit-learn's checks reject an empty partition
        return np.empty((0, len(model.classes_))) if method == "predict_proba" else model.classes_[:0]
    return getattr(model, method)(rows)
