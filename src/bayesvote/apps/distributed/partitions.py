"""Dask's collections: their partitions as shards, and predictions over them, made when they are asked for."""

from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np
from numpy.typing import NDArray

from bayesvote.apps.distributed.contents import WHO, Contents, Table
from bayesvote.apps.distributed.inputs import ArrayShard, without_names
from bayesvote.core.checks import InputError, InputTypeError
from bayesvote.io.read_options import ReadOptions


@dataclass(frozen=True, eq=False)
class PartitionShard:
    """A partition: what makes it, to be computed where the shard is read, in one process and always the same."""

    parts: tuple[Any, ...]  # one delayed table, or a delayed array and the delayed labels
    target: Any  # the name of a column, which need not be a text
    name: str
    reading: ReadOptions

    @property
    def identity(self) -> str:
        """Its key, which Dask makes of what it is computed from."""
        return str([part.key for part in self.parts])

    @property
    def version(self) -> str:
        """Its key, and which column holds the labels."""
        return f"{self.identity} {self.target} {self.reading.columns}"

    def survey(self) -> Contents:
        """Compute it, and look at the labels."""
        return self._computed().survey()

    def chunks(self, table: Table) -> Iterator[tuple[Any, NDArray[Any]]]:
        """Compute it, then give some rows at a time."""
        yield from self._computed().chunks(table)

    def _computed(self) -> ArrayShard:
        import dask

        made = dask.compute(*self.parts, scheduler="synchronous")
        X, y = made if self.target is None else (made[0].drop(columns=self.target), made[0][self.target].to_numpy())
        return ArrayShard(without_names(X), np.asarray(y), self.name, self.reading.chunk_size, self.reading.columns)


def partitions(data: Any, reading: ReadOptions) -> list[Any]:
    """The partitions of a dask.dataframe, or the blocks of rows of a pair of dask.arrays."""
    if isinstance(data, tuple):
        names = ("the rows", "the labels")
        if len(data) != 2 or not all(hasattr(one, "chunks") for one in data) or (data[0].ndim, data[1].ndim) != (2, 1):
            must = "must be a pair (X, y) of dask.arrays, of two dimensions and of one"
            raise InputTypeError(WHO, "data", must, repr(data)[:200])
        X, y = data[0].rechunk({1: -1}), data[1]
        sizes = X.chunks[0], y.chunks[0]
        # Of blocks whose sizes are not known yet, NaN, the rows and labels are counted when they are read.
        if len(sizes[0]) != len(sizes[1]) or any(a != b and a == a and b == b for a, b in zip(*sizes, strict=True)):
            got = f"{len(sizes[0])} blocks of {_few(sizes[0])} rows and {len(sizes[1])} of {_few(sizes[1])}"
            do = "Call rechunk on one; where sizes are not known (nan), after compute_chunk_sizes()."
            raise InputError(WHO, "X and y", "must be cut into the same blocks of rows", got, do)
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
    """Delayed partitions, each with its own part of the graph only."""
    from dask.delayed import Delayed
    from dask.optimization import cull

    if any(_is_future(task) for task in dict(collection.__dask_graph__()).values()):
        must = "must not be persisted on a cluster: shards are computed where they are read"
        raise InputError(WHO, what, must, do="Give the collection as it was before persist().")
    delayed = np.asarray(collection.to_delayed(), dtype=object).reshape(-1).tolist()
    graph = dict(delayed[0].__dask_graph__()) if delayed else {}
    return [Delayed(one.key, cull(graph, [one.key])[0]) for one in delayed]


def _is_future(task: Any) -> bool:
    return type(getattr(task, "value", task)).__module__.startswith("distributed.")


def _few(sizes: Sequence[int]) -> str:
    return ", ".join(map(str, sizes[:3])) + (", ..." if len(sizes) > 3 else "")


def predict(model: Any, data: Any) -> Any:
    """Labels of the rows of a dask.dataframe or dask.array, computed when they are asked for.

    Parameters
    ----------
    model
        A fitted classifier.
    data
        The rows, with the columns that the model was fitted on; a dask.dataframe may have others, too.

    Returns
    -------
    dask.array
        The labels, in blocks as the rows are.
    """
    return _lazily(model, "predict", data, (), model.classes_.dtype)


def predict_proba(model: Any, data: Any) -> Any:
    """Probabilities (n, K) of the labels, as :func:`predict` gives labels."""
    return _lazily(model, "predict_proba", data, (len(model.classes_),), np.dtype(np.float64))


def _lazily(model: Any, method: str, data: Any, shape: tuple[int, ...], dtype: Any) -> Any:
    import dask
    import dask.array

    if not hasattr(data, "to_delayed") or not (hasattr(data, "columns") or getattr(data, "ndim", 0) == 2):
        must = "must be a dask.dataframe or a dask.array of two dimensions"
        raise InputTypeError(f"{WHO}.{method}", "data", must, type(data).__name__, f"Call model.{method} for others.")
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
    if len(rows) == 0:  # an empty partition, which scikit-learn's checks would refuse
        return np.empty((0, len(model.classes_))) if method == "predict_proba" else model.classes_[:0]
    return getattr(model, method)(rows)
