"""Statistics of the values of categories: the number of earlier rows of each class with the same value."""

from functools import lru_cache
from hashlib import blake2b
from typing import Any, NamedTuple

import numpy as np
from numpy.typing import NDArray

from bayesvote.core.checks import Array, Labels
from bayesvote.core.state import MOST_ROWS, Arrays, like, require, within

MOST_VALUES = 2**14  # values of a column with counts of their own; a model file then has some 200 kB for each class
FIRST = (
    16  # values of a column that have a feature of their own from their first row on; the others when they are common
)
_SMOOTHING = 10.0  # rows of the usual shares of the classes that every value starts with


class ValueCounts(NamedTuple):
    """Counts of classes by the values of one column. Values are identified by a hash of their text."""

    slots: dict[int, int]  # hash of a text to its row of counts
    counts: Array  # (v, K)


class ValueFeatures(NamedTuple):
    """Features of each row by the rows before it with the same value."""

    features: Array  # (n, 1) for two classes, else (n, K)
    met: NDArray[np.bool_]  # (n,): True if an earlier row had the value
    often: NDArray[np.bool_]  # (n,): True if this row makes the value frequent enough for its own feature
    many: int  # the first row with more values than get a feature at once; -1 if there is none
    values: ValueCounts  # after these rows


class Statistics(NamedTuple):
    """Counts of classes, in all rows and by the values of some columns."""

    totals: Array  # (K,)
    values: dict[int, ValueCounts]  # by column

    @classmethod
    def start(cls, n_classes: int, columns: list[int]) -> "Statistics":
        """Return empty counts for these columns."""
        return cls(np.zeros(n_classes), {j: ValueCounts({}, np.zeros((0, n_classes))) for j in columns})

    @property
    def n_classes(self) -> int:
        """Number of classes."""
        return len(self.totals)

    @property
    def width(self) -> int:
        """Number of features of a column: the log-odds of two classes, or a log-ratio for each of more."""
        return 1 if self.n_classes == 2 else self.n_classes

    def after(self, y: Labels, learn: NDArray[np.bool_], values: dict[int, ValueCounts]) -> "Statistics":
        """Return the statistics with the values as they are after these rows."""
        if not self.n_classes:
            return self
        learned = np.bincount(y[learn], minlength=self.n_classes)
        return Statistics(self.totals + learned, {**self.values, **values})

    def ordered(
        self, j: int, codes: NDArray[np.int32], texts: list[str], y: Labels, learn: Any, own: set[Any]
    ) -> ValueFeatures:
        """Count the rows of a column in order. Texts in ``own`` have a feature already."""
        from bayesvote.tables import _statistics_kernels as kernels

        known = self.values[j]
        slots, n, place = known.slots, len(codes), np.full(len(texts) + 1, -1, dtype=np.int64)
        there = np.flatnonzero(codes >= 0)
        for code in np.unique(codes[there]).tolist():
            place[code] = slots.get(_key(texts[code]), -1)
        new = there[learn[there] & (place[codes[there]] < 0)]
        distinct, first = np.unique(codes[new], return_index=True)
        found = distinct[np.argsort(first)][: MOST_VALUES - len(slots)]  # in the order in which they came
        many = -1
        if len(found):
            slots = dict(slots)
            if len(slots) + len(found) > FIRST:
                many = int(new[np.sort(first)[max(FIRST - len(slots), 0)]])
            for code in found.tolist():
                place[code] = slots.setdefault(_key(texts[code]), len(slots))
        counts = np.zeros((len(slots), self.n_classes))
        counts[: len(known.counts)] = known.counts
        features, flags = np.zeros((n, self.width)), np.zeros((2, n), dtype=np.uint8)
        rare = np.ones(len(slots), dtype=np.uint8)
        rare[[slots[key] for key in map(_key, own) if key in slots]] = 0
        kernels.ordered(
            place[codes], y, learn.view(np.uint8), counts, self.totals.copy(), rare, FIRST, _SMOOTHING, features, flags
        )
        met, often = flags.astype(bool)
        return ValueFeatures(features, met, often, many, ValueCounts(slots, counts))

    def arrays(self) -> dict[str, NDArray[Any]]:
        """Return the arrays for a model file: the values of each column in order of appearance."""
        keys = [(j, key, slot) for j in sorted(self.values) for key, slot in self.values[j].slots.items()]
        counts = [self.values[j].counts[slot] for j, _, slot in keys]
        return {
            "value_column": np.array([j for j, _, _ in keys], dtype=np.int32),
            "value_key": np.array([key for _, key, _ in keys], dtype=np.uint64),
            "value_counts": np.array(counts, dtype=np.float64).reshape(len(keys), self.n_classes),
            "totals": self.totals,
        }


class _Arrays(NamedTuple):
    value_column: NDArray[np.int32]  # (v,)
    value_key: NDArray[np.uint64]  # (v,)
    value_counts: Array  # (v, K)
    totals: Array  # (K,)


NAMES = _Arrays._fields


def restored(arrays: Arrays, columns: list[int]) -> Statistics:
    """Return the statistics of a model file after checking them. ``columns`` may have counts."""
    require(all(name in arrays and arrays[name].ndim > 0 for name in NAMES), f"statistics must be {', '.join(NAMES)}")
    v, n_classes = len(arrays["value_key"]), len(arrays["totals"])
    blank = _Arrays(np.zeros(v, np.int32), np.zeros(v, np.uint64), np.zeros((v, n_classes)), np.zeros(n_classes))
    found = like(blank, {name: arrays[name] for name in NAMES})
    column, key, counts = found.value_column, found.value_key, found.value_counts
    require(n_classes != 1 and (n_classes > 0 or v == 0), "totals must be of at least two classes, or of none")
    require(bool(np.all(np.isin(column, columns))), "value_column must be of categories")
    require(bool(np.all(column[1:] >= column[:-1])), "value_column must ascend")
    for name, given in (("value_counts", counts), ("totals", found.totals)):
        require(within(given, 0, MOST_ROWS) and np.array_equal(given, np.floor(given)), f"{name} must be counts")
    require(bool(np.all(counts.sum(axis=1) > 0)), "value_counts must be of rows")
    statistics = Statistics.start(n_classes, columns if n_classes else [])
    statistics = statistics._replace(totals=found.totals)
    for j in statistics.values:
        here = np.flatnonzero(column == j)
        require(len(here) <= MOST_VALUES, f"values must be at most {MOST_VALUES} in a column")
        require(bool(np.all(counts[here].sum(axis=0) <= found.totals)), "value_counts must be among the totals")
        slots = {k: slot for slot, k in enumerate(key[here].tolist())}
        require(len(slots) == len(here), "value_key must differ in a column")
        statistics.values[j] = ValueCounts(slots, np.ascontiguousarray(counts[here]))
    return statistics


@lru_cache(maxsize=2**16)
def _key(text: str) -> int:
    return int.from_bytes(blake2b(text.encode("utf-8", "replace"), digest_size=8).digest(), "little")
