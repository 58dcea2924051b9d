"""Stages of distributed training, pure functions of a shard: contents, members, statistics, mistakes.

Results are bytes, so that they can be sent, saved and checked in one form.
"""

import warnings
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass
from typing import Any, NamedTuple

import numpy as np
from sklearn.base import clone

from bayesvote import losses
from bayesvote.apps.distributed.contents import WHO, ShardSchema
from bayesvote.apps.distributed.inputs import Shard
from bayesvote.apps.distributed.members import shard_members
from bayesvote.core.checks import Array, Labels, encoded
from bayesvote.core.rollback import CHUNK
from bayesvote.core.rows import Rows, as_rows
from bayesvote.core.state import Learned
from bayesvote.ensemble import Ensemble
from bayesvote.estimators import Calibration, weighted
from bayesvote.io.model_file import dumps, loads, pack, unpack
from bayesvote.losses import Loss
from bayesvote.members import Bank, Frozen, Union
from bayesvote.model import decided
from bayesvote.tables import Columns, read_table
from bayesvote.weighting import Voting, Weighter


class Task(NamedTuple):
    """A shard, its index, and the number of members that it trains."""

    place: int
    shard: Shard
    n_members: int = 0


def survey(task: Task, shared: Sequence[Any]) -> bytes:  # noqa: ARG001
    """Return the contents of a shard."""
    return task.shard.survey().to_json()


@dataclass(frozen=True)
class Encode:
    """Learns the encoding of the columns of a shard."""

    table: ShardSchema
    stated: Mapping[str, str] | None

    def __call__(self, task: Task, shared: Sequence[Any]) -> bytes:  # noqa: ARG002
        """Return the learned encoding, or no bytes for a shard without rows."""
        columns = Columns(self.stated)
        with warnings.catch_warnings():
            warnings.simplefilter("ignore", UserWarning)  # about many strings in a column; the merged columns warn once
            started = False
            for X, _ in task.shard.chunks(self.table._replace(columns=columns)):
                chunk = read_table(WHO, X)
                if chunk.n and not started:
                    columns.start(chunk)
                    started = True
                for _ in columns.advance(columns.checked(chunk)) if started else ():
                    pass
        learned = columns.learned()
        return b"" if learned is None else pack(learned.facts, dict(learned.arrays))


def encoding(data: bytes, stated: Mapping[str, str] | None) -> Columns | None:
    """Return the columns that :class:`Encode` returned as bytes."""
    if not data:
        return None
    _, facts, arrays = unpack(data)
    columns = Columns(stated)
    columns.restore(Learned(facts, arrays), len(data))
    return columns


@dataclass(frozen=True)
class Train:
    """Trains members on a shard, and freezes them."""

    classifier: Any
    table: ShardSchema
    seed: int

    def __call__(self, task: Task, shared: Sequence[Any]) -> bytes:  # noqa: ARG002
        """Return the frozen members as a model file. Their randomness depends on the seed and the index only."""
        rng = np.random.default_rng(np.random.SeedSequence(self.seed, spawn_key=(task.place,)))
        fresh = clone(self.classifier).set_params(n_members=task.n_members)
        if self.classifier.members is None:
            fresh.set_params(members=shard_members(self.table.n_features, task.n_members))
        bank: Bank[Any] = fresh.start(self.table.n_features, self.table.classes, rng).model_.bank
        for rows, y in _chunks(task.shard, self.table):
            bank.advance(rows, y, _weights(self.classifier.class_weight, self.table, y))
        shape = bank.shape
        assert shape is not None  # it was started
        bank.install(bank.frozen_state(), shape)
        return dumps(Ensemble(Frozen(bank), Voting()).start(*shape))


def trained(data: bytes) -> Bank[Any]:
    """Return the members that :class:`Train` returned as bytes."""
    bank: Bank[Any] = loads(data).bank
    return bank


@dataclass(frozen=True)
class Weigh:
    """Passes the rows of a shard through all members. Members that were trained on it abstain.

    The banks are the shared values. ``owners`` has the index of the shard that trained each bank, or -1.
    """

    table: ShardSchema
    weighter: Weighter[Any]
    loss: str | Loss
    owners: tuple[int, ...]
    class_weight: Mapping[Any, float] | None = None

    def __call__(self, task: Task, shared: Sequence[Any]) -> bytes:
        """Return the weighter's sums over the rows, their number and the sum of their weights."""
        sums, n_rows, weight = self.weighter.sums(sum(bank.n_members for bank in shared)), 0, 0.0
        for rows, y in _chunks(task.shard, self.table):
            G, w = self.label_losses(rows, task.place, shared), _weights(self.class_weight, self.table, y)
            sums = self.weighter.summed(sums, self.weighter.of_truth(G, y), w)
            n_rows, weight = n_rows + rows.n, weight + float(w.sum())
        return pack({"rows": n_rows, "weight": weight}, sums._asdict())

    def label_losses(self, rows: Rows, place: int, banks: Sequence[Bank[Any]]) -> Array:
        """Return the losses (n, K, m) of every label."""
        k = len(self.table.classes)
        scores = []
        for bank, owner in zip(banks, self.owners, strict=True):
            silent = (rows.n, bank.n_members) if k == 2 else (rows.n, bank.n_members, k)
            scores.append(np.full(silent, np.nan) if owner == place else bank.score(rows))
        return losses.of_labels(self.loss, np.concatenate(scores, axis=1))


class Checked(NamedTuple):
    """Mistakes and calibration of the model on the first rows of shards."""

    rows: int
    mistakes: int
    calibration: Calibration


@dataclass(frozen=True)
class Check:
    """Predicts the first rows of a shard, counts mistakes and calibrates. Members trained on it abstain.

    The shared values are the banks and then the weighter's state, which is too large to send with every shard.
    """

    weigh: Weigh
    n_rows: int

    def __call__(self, task: Task, shared: Sequence[Any]) -> bytes:
        """Return the number of rows, the number of mistakes and the calibration."""
        how, (*banks, sent) = self.weigh, shared
        state = type(sent)(*map(np.array, sent))  # arrays that Dask sends between workers are read-only
        model, rule = Ensemble(Union(banks), how.weighter, how.loss), how.weighter.rule(state)
        silent = np.repeat([owner == task.place for owner in how.owners], [bank.n_members for bank in banks])
        calibration, seen, mistakes = Calibration.start(), 0, 0
        for rows, y in _chunks(task.shard, how.table):
            n = min(rows.n, self.n_rows - seen)
            asked = rule(how.label_losses(rows.part(0, n), task.place, banks))
            losses, w = (
                how.weighter.rescale_for_abstentions(state, asked, silent),
                _weights(how.class_weight, how.table, y[:n]),
            )
            calibration.learn(model.shares(losses), losses, y[:n], w, 1.0)
            seen, mistakes = seen + n, mistakes + int(np.count_nonzero(decided(losses) != y[:n]))
            if seen >= self.n_rows:
                break
        return pack({"rows": seen, "mistakes": mistakes}, calibration._asdict())


def checked(data: bytes) -> Checked:
    """Return the result that :class:`Check` returned as bytes."""
    _, about, arrays = unpack(data)
    found = Checked(int(about["rows"]), int(about["mistakes"]), Calibration(**arrays))
    found.calibration.check()
    return found


def together(one: Checked, other: Checked) -> Checked:
    """Return the result for the rows of both."""
    calibration = one.calibration.merged(other.calibration)
    return Checked(one.rows + other.rows, one.mistakes + other.mistakes, calibration)


def unpacked(data: bytes, like: Any) -> tuple[int, float, Any]:
    """Return the number of rows, their weight and the sums, after checking shapes and types."""
    _, about, arrays = unpack(data)
    for name, array in like._asdict().items():
        if name not in arrays or arrays[name].shape != array.shape or arrays[name].dtype != array.dtype:
            raise ValueError(f"{WHO}: {name} of the sums must be {array.dtype} {array.shape}.")
    return int(about["rows"]), float(about["weight"]), type(like)(**arrays)


def _weights(class_weight: Mapping[Any, float] | None, table: ShardSchema, codes: Labels) -> Array:
    """Return the class weights of rows."""
    return weighted(WHO, class_weight, table.classes, np.zeros(len(table.classes)), codes, np.ones(len(codes)))


def _chunks(shard: Shard, table: ShardSchema) -> Iterator[tuple[Rows, Labels]]:
    """Yield chunks of checked rows and codes of labels, small enough for the scores of all members."""
    for X, y in shard.chunks(table):
        codes, first = encoded(WHO, np.asarray(y), table.classes), 0
        for rows in [as_rows(WHO, X)] if table.columns is None else table.columns.encoded(table.columns.checked(X)):
            for start in range(0, rows.n, CHUNK):
                stop = min(start + CHUNK, rows.n)
                yield rows.part(start, stop), codes[first + start : first + stop]
            first += rows.n
