"""What is done with a shard, each a pure function of it: its contents, its members, its statistics, its mistakes.

Answers are bytes, so that they can be sent, recorded and checked in one form.
"""

import warnings
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass
from typing import Any, NamedTuple

import numpy as np
from sklearn.base import clone

from bayesvote import losses
from bayesvote.apps.distributed.contents import WHO, Table
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
    """A shard, its place among the shards, and how many members it trains."""

    place: int
    shard: Shard
    n_members: int = 0


def survey(task: Task, shared: Sequence[Any]) -> bytes:  # noqa: ARG001
    """Find out what a shard holds."""
    return task.shard.survey().to_json()


@dataclass(frozen=True)
class Encode:
    """Finds out how the columns of a shard are to be encoded, if they are to be read as the user stated."""

    table: Table
    stated: Mapping[str, str] | None

    def __call__(self, task: Task, shared: Sequence[Any]) -> bytes:  # noqa: ARG002
        """Return what the rows tell of their columns; nothing for a shard without rows."""
        columns = Columns(self.stated)
        with warnings.catch_warnings():
            warnings.simplefilter("ignore", UserWarning)  # of many texts in a column: said once, of all shards
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
    """The columns of what :class:`Encode` has returned."""
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
    table: Table
    seed: int

    def __call__(self, task: Task, shared: Sequence[Any]) -> bytes:  # noqa: ARG002
        """Return the members, frozen, as a model file; their randomness depends on the seed and the shard only."""
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
    """The members of a file that :class:`Train` made."""
    bank: Bank[Any] = loads(data).bank
    return bank


@dataclass(frozen=True)
class Weigh:
    """Passes the rows of a shard through all members; those that were trained on it abstain.

    What is shared are the banks; ``owners`` has the place of the shard that trained each, or -1.
    """

    table: Table
    weighter: Weighter[Any]
    loss: str | Loss
    owners: tuple[int, ...]
    class_weight: Mapping[Any, float] | None = None

    def __call__(self, task: Task, shared: Sequence[Any]) -> bytes:
        """Return the weighter's sums over the rows, how many there are, and what they weigh."""
        sums, n_rows, weight = self.weighter.sums(sum(bank.n_members for bank in shared)), 0, 0.0
        for rows, y in _chunks(task.shard, self.table):
            G, w = self.label_losses(rows, task.place, shared), _weights(self.class_weight, self.table, y)
            sums = self.weighter.summed(sums, self.weighter.of_truth(G, y), w)
            n_rows, weight = n_rows + rows.n, weight + float(w.sum())
        return pack({"rows": n_rows, "weight": weight}, sums._asdict())

    def label_losses(self, rows: Rows, place: int, banks: Sequence[Bank[Any]]) -> Array:
        """Losses (n, K, m) of every label."""
        k = len(self.table.classes)
        scores = []
        for bank, owner in zip(banks, self.owners, strict=True):
            silent = (rows.n, bank.n_members) if k == 2 else (rows.n, bank.n_members, k)
            scores.append(np.full(silent, np.nan) if owner == place else bank.score(rows))
        return losses.of_labels(self.loss, np.concatenate(scores, axis=1))


class Checked(NamedTuple):
    """What the first rows of shards tell of the weighed members, and of their probabilities."""

    rows: int
    mistakes: int
    calibration: Calibration


@dataclass(frozen=True)
class Check:
    """Decides about the first rows of a shard: counts mistakes, and calibrates. Members trained on it abstain.

    What is shared are the banks and, after them, the weighter's state, which is too large to go with every shard.
    """

    weigh: Weigh
    n_rows: int

    def __call__(self, task: Task, shared: Sequence[Any]) -> bytes:
        """Return how many rows were looked at, how many mistakes were made, and the calibration."""
        how, (*banks, sent) = self.weigh, shared
        state = type(sent)(*map(np.array, sent))  # what Dask hands from worker to worker cannot be written to
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
    """What :class:`Check` has returned."""
    _, about, arrays = unpack(data)
    found = Checked(int(about["rows"]), int(about["mistakes"]), Calibration(**arrays))
    found.calibration.check()
    return found


def together(one: Checked, other: Checked) -> Checked:
    """What the rows of both tell."""
    calibration = one.calibration.merged(other.calibration)
    return Checked(one.rows + other.rows, one.mistakes + other.mistakes, calibration)


def unpacked(data: bytes, like: Any) -> tuple[int, float, Any]:
    """The number of rows, their weight and the sums again, of the shapes and types that they must have."""
    _, about, arrays = unpack(data)
    for name, array in like._asdict().items():
        if name not in arrays or arrays[name].shape != array.shape or arrays[name].dtype != array.dtype:
            raise ValueError(f"{WHO}: {name} of the sums must be {array.dtype} {array.shape}.")
    return int(about["rows"]), float(about["weight"]), type(like)(**arrays)


def _weights(class_weight: Mapping[Any, float] | None, table: Table, codes: Labels) -> Array:
    """What rows weigh by their labels."""
    return weighted(WHO, class_weight, table.classes, np.zeros(len(table.classes)), codes, np.ones(len(codes)))


def _chunks(shard: Shard, table: Table) -> Iterator[tuple[Rows, Labels]]:
    """Checked rows and places of their labels, few enough at a time for the scores of all members."""
    for X, y in shard.chunks(table):
        codes, first = encoded(WHO, np.asarray(y), table.classes), 0
        for rows in [as_rows(WHO, X)] if table.columns is None else table.columns.encoded(table.columns.checked(X)):
            for start in range(0, rows.n, CHUNK):
                stop = min(start + CHUNK, rows.n)
                yield rows.part(start, stop), codes[first + start : first + stop]
            first += rows.n
