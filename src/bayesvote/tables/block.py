"""Encoding of a block of rows, with the same result, bit for bit, as encoding row by row."""

import zlib
from collections.abc import Iterator
from typing import NamedTuple

import numpy as np
from numpy.typing import NDArray

from bayesvote.core.checks import Array, Labels
from bayesvote.core.rows import LARGEST, Rows, as_rows
from bayesvote.tables.cells import Cells, Sort
from bayesvote.tables.kinds import NUMERIC, STATED, Dates, Kind, Role, as_kind, dates, guessed
from bayesvote.tables.state import ColumnsState, NewFeature, Places
from bayesvote.tables.statistics import Statistics, ValueCounts, ValueFeatures

_LEAST_MORE = 16  # minimum number of features to add to a model: members draw a share of them
Flags = NDArray[np.bool_]


def kind_of(cells: Cells) -> Kind:
    """Return the kind of a column by its type or its first cell; UNKNOWN if that is missing."""
    if cells.kind is not None:
        return STATED[cells.kind]
    if cells.codes[0] >= 0:
        return guessed(cells.texts[cells.codes[0]])
    return Kind.UNKNOWN if np.isnan(cells.numbers[0]) else STATED[Sort(int(cells.sorts[0])).name.lower()]


def first_features(row: int, column: int, kind: Kind) -> list[NewFeature]:
    """Return the features that a column has as soon as its kind is known."""
    roles = [Role.NUMBER] if kind in NUMERIC else [Role.NEW] if kind == Kind.CATEGORY else []
    return [NewFeature(row, column, role) for role in roles]


def bucket_of(text: str, n_buckets: int) -> int:
    """Return the bucket of a text. It is the same on every machine."""
    return zlib.crc32(text.encode("utf-8", "replace")) % n_buckets


class RowsToLearn(NamedTuple):
    """The rows of a block to learn, and the class of each row; classes are ignored where nothing counts them."""

    learn: Flags
    y: Labels


class Block:
    """A block of rows that is being encoded: its non-zero cells, and the new features of its rows."""

    def __init__(
        self,
        who: str,
        places: Places,
        state: ColumnsState,
        statistics: Statistics,
        n: int,
        lesson: RowsToLearn,
        limits: tuple[int, int],
    ) -> None:
        self.who, self.places, self.state, self.n = who, places, state, n
        self.statistics, (self.learn, self.y) = statistics, lesson
        self.max_texts, self.n_buckets = limits
        self.counted: dict[int, ValueCounts] = {}
        self.events: list[NewFeature] = []
        self.cells: list[tuple[NDArray[np.intp], NDArray[np.intp], Array]] = []  # rows, features, values
        self.kinds, self.numbers, self.total = state.kinds.copy(), state.numbers.copy(), state.total.copy()
        self.base = state.base.copy()
        self.known = len(state.source)

    def add(self, j: int, cells: Cells) -> None:
        """Encode a column of the block."""
        kind = Kind(int(self.state.kinds[j]))
        if kind == Kind.DROP:
            return
        since = 0
        if kind == Kind.UNKNOWN:
            informative = self.learn & ~cells.missing()
            if not np.any(informative):
                return
            since = int(np.argmax(informative)) + 1
            kind = kind_of(cells.part(since - 1, since))
            self.kinds[j] = kind
            cells = as_kind(self.who, "", cells, kind, False)
            self.events += first_features(since - 1, j, kind)
        missing = cells.missing()
        self._add_missing(j, missing, since)
        if kind in NUMERIC:
            self._add_numbers(j, kind, cells.numbers, since)
        self._add_texts(j, cells, since)

    def feature(self, j: int, role: Role, place: int | str = 0) -> tuple[int, int]:
        """Return the index of a feature and the row after which it can be used; -1 if it does not exist."""
        found = self.places[j].get((role, place))
        if found is not None:
            return found, -1
        for k in range(len(self.events) - 1, -1, -1):
            event = self.events[k]
            if event.column != j:
                break
            if event.role == role and place == (event.text if role == Role.TEXT else event.place):
                return self.known + k, event.row
        return -1, self.n

    def add_feature(self, event: NewFeature) -> tuple[int, int]:
        """Add a new feature; return its index and its row."""
        self.events.append(event)
        return self.known + len(self.events) - 1, event.row

    def put(self, rows: NDArray[np.intp], found: tuple[int, int], values: Array | float = 1.0) -> None:
        """Set a feature in those of the rows in which it can be used."""
        feature, since = found
        if feature < 0 or len(rows) == 0:
            return
        after = rows > since
        given = np.broadcast_to(np.asarray(values, dtype=np.float64), rows.shape)[after]
        at = rows[after]
        self.cells.append((at, np.full(len(at), feature, dtype=np.intp), given))

    def _add_missing(self, j: int, missing: Flags, since: int) -> None:
        rows = np.flatnonzero(missing)
        rows = rows[rows >= since]
        found = self.feature(j, Role.MISSING)
        if found[0] < 0:
            informative = rows[self.learn[rows]]
            if len(informative):
                found = self.add_feature(NewFeature(int(informative[0]), j, Role.MISSING))
        self.put(rows, found)

    def _add_numbers(self, j: int, kind: Kind, numbers: Array, since: int) -> None:
        there = ~np.isnan(numbers)
        counted = there & self.learn
        if since:
            counted[: since - 1] = False
        taken = Dates(numbers, [], []) if kind != Kind.DATE else dates(numbers)
        values = np.where(there, taken.days, 0.0)
        # Sum in order, so that the result does not depend on the size of chunks.
        totals = np.cumsum(np.concatenate([self.total[j : j + 1], np.where(counted, values, 0.0)]))
        counts = np.cumsum(np.concatenate([self.numbers[j : j + 1], counted]))
        if not np.all(there):
            means = np.clip(totals[:-1] / np.maximum(counts[:-1], 1.0), -LARGEST, LARGEST)  # sums are rounded
            values = np.where(there, values, means)
        self.total[j], self.numbers[j] = totals[-1], counts[-1]
        self.put(np.arange(since, self.n), self.feature(j, Role.NUMBER), values[since:])
        for circle, (places, turns) in enumerate(zip(taken.places, taken.turns, strict=True)):
            self._add_circle(j, circle, np.flatnonzero(there), np.flatnonzero(counted), places, turns)

    def _add_circle(
        self,
        j: int,
        circle: int,
        there: NDArray[np.intp],
        counted: NDArray[np.intp],
        places: NDArray[np.intp],
        turns: Array,
    ) -> None:
        """Add the sine and cosine of an hour, weekday or month, once two different values were learned."""
        if self.base[j, circle] < 0 and len(counted):
            self.base[j, circle] = places[counted[0]]
        for role, turn in zip((Role.SIN, Role.COS), turns, strict=True):
            found = self.feature(j, role, circle)
            if found[0] < 0:
                others = counted[places[counted] != self.base[j, circle]]
                if len(others):
                    found = self.add_feature(NewFeature(int(others[0]), j, role, circle))
            self.put(there, found, turn[there])

    def _add_texts(self, j: int, cells: Cells, since: int) -> None:
        rows = np.flatnonzero(cells.codes >= 0)
        rows = rows[rows >= max(since - 1, 0)]
        if len(rows) == 0:
            return
        learned = rows[self.learn[rows]]
        counted = self._count(j, cells) if j in self.statistics.values else None
        full = self._add_new_texts(j, cells, learned) if counted is None else self.n
        new = self.feature(j, Role.NEW)
        if new[0] < 0 and len(learned):  # a text in a numeric column
            new = self.add_feature(NewFeature(int(learned[0]), j, Role.NEW))
        distinct, place = np.unique(cells.codes[rows], return_inverse=True)
        texts = [cells.texts[code] for code in distinct.tolist()]
        own = [self.feature(j, Role.TEXT, text) for text in texts]
        if counted is not None:
            self._put_each(rows, place, own, -1)
            for k in range(self.statistics.width):
                self.put(rows, self.feature(j, Role.STATISTIC, k), counted.features[rows, k])
            rows = rows[~counted.met[rows]]
        else:
            left = self._put_each(rows, place, own, -1)
            rows, place = rows[left], place[left]
            if full < self.n and len(rows):
                buckets = [self.feature(j, Role.BUCKET, bucket_of(text, self.n_buckets)) for text in texts]
                rows = rows[self._put_each(rows, place, buckets, full)]
        self.put(rows, new)

    def _count(self, j: int, cells: Cells) -> ValueFeatures:
        """Count the classes of the values of a column, and add features for frequent values."""
        own = {text for role, text in self.places[j] if role == Role.TEXT}
        found = self.statistics.ordered(j, cells.codes, cells.texts, self.y, self.learn, own)
        self.counted[j] = found.values
        for row in np.flatnonzero(found.often)[: self.max_texts - len(own)].tolist():
            self.add_feature(NewFeature(row, j, Role.TEXT, 0, cells.texts[cells.codes[row]]))
        if found.many >= 0 and self.feature(j, Role.STATISTIC)[0] < 0:
            for k in range(self.statistics.width):
                self.add_feature(NewFeature(found.many, j, Role.STATISTIC, k))
        return found

    def _add_new_texts(self, j: int, cells: Cells, learned: NDArray[np.intp]) -> int:
        """Add features for new texts; return the row after which further texts are hashed."""
        met, at = np.unique(cells.codes[learned], return_index=True)
        order = np.argsort(at)  # in order of appearance
        own = self.places[j]
        n_texts = sum(role == Role.TEXT for role, _ in own)
        full = -1 if n_texts >= self.max_texts else self.n
        for code, first in zip(met[order].tolist(), learned[at[order]].tolist(), strict=True):
            text = cells.texts[code]
            if (Role.TEXT, text) in own:
                continue
            if n_texts < self.max_texts:
                self.add_feature(NewFeature(first, j, Role.TEXT, 0, text))
                n_texts += 1
                full = first if n_texts == self.max_texts else full
            else:
                bucket = bucket_of(text, self.n_buckets)
                if self.feature(j, Role.BUCKET, bucket)[0] < 0:
                    self.add_feature(NewFeature(first, j, Role.BUCKET, bucket))
        return full

    def _put_each(
        self, rows: NDArray[np.intp], place: NDArray[np.intp], found: list[tuple[int, int]], after: int
    ) -> Flags:
        """Set the feature of its text in each row, if it can be used; return a mask of the other rows."""
        features, since = np.array(found, dtype=np.intp).T
        fits = rows > np.maximum(since, after)[place]
        self.cells.append((rows[fits], features[place[fits]], np.ones(np.count_nonzero(fits))))
        left: Flags = ~fits
        return left

    def finished(self) -> "Block":
        """Number the new features in the order in which encoding row by row would add them."""
        order = sorted(range(len(self.events)), key=lambda k: (self.events[k].row, self.events[k].column, k))
        final = np.arange(self.known + len(self.events))
        final[self.known + np.array(order, dtype=np.intp)] = self.known + np.arange(len(order))
        self.events = [self.events[k] for k in order]
        joined = [np.concatenate(part) for part in zip(*self.cells, strict=True)] if self.cells else [np.zeros(0)] * 3
        self.at, self.values = joined[0].astype(np.intp), joined[2]
        self.features = final[joined[1].astype(np.intp)]
        self.widths = _widths(self.known, int(self.state.width[0]), self.events)
        width = self.widths[-1][1] if self.widths else int(self.state.width[0])
        self.statistics = self.statistics.after(self.y, self.learn, self.counted)
        self.state = self.state._replace(
            kinds=self.kinds, numbers=self.numbers, total=self.total, base=self.base, width=np.array([width])
        )
        return self

    def pieces(self) -> Iterator[tuple[int, int, int]]:
        """Yield the first and last row of each piece with the same width, and the width."""
        first, width = 0, None
        for row, wider in self.widths:
            if row + 1 > first and width is not None:
                yield first, min(row + 1, self.n), width
                first = row + 1
            width = wider
        if first < self.n:
            yield first, self.n, int(width or self.state.width[0])

    def rows(self, first: int, last: int, width: int) -> Rows:
        """Return the encoded rows first to last."""
        out = np.zeros((last - first, width))
        here = (self.at >= first) & (self.at < last)
        out[self.at[here] - first, self.features[here]] = self.values[here]
        return as_rows(self.who, out)


def _widths(known: int, width: int, events: list[NewFeature]) -> list[tuple[int, int]]:
    """Return the rows after which the width grows, and the new widths, starting with the width before any row."""
    found = [(-1, width)]
    for k, event in enumerate(events):
        if known + k + 1 > found[-1][1]:
            last = found[-1][1]
            wider = last + max(_LEAST_MORE, last // 2)
            if found[-1][0] == event.row:
                found[-1] = event.row, wider
            else:
                found.append((event.row, wider))
    return found
