"""Merging of columns that were learned from different parts of the rows."""

from collections import Counter
from collections.abc import Mapping, Sequence
from typing import Any

import numpy as np

from bayesvote.core.checks import Argument, InputError
from bayesvote.core.state import Learned
from bayesvote.tables.block import bucket_of
from bayesvote.tables.columns import Columns
from bayesvote.tables.kinds import Kind, Role
from bayesvote.tables.state import ColumnsState
from bayesvote.tables.statistics import Statistics


def usual_kinds(parts: Sequence[Columns]) -> dict[str, str]:
    """Return the most frequent kind of each column. A column whose kind no part knows is left out."""
    counts: dict[str, Counter[str]] = {}
    for part in parts:
        for about in part.describe():
            if about["kind"] != "unknown":
                counts.setdefault(about["name"], Counter())[about["kind"]] += 1
    return {name: found.most_common(1)[0][0] for name, found in counts.items()}


def conflict(kinds: Mapping[str, str], part: Columns) -> InputError | None:
    """Return an error if a part has a column of another kind than these, otherwise None."""
    for about in part.describe():
        name, found = about["name"], about["kind"]
        if found not in ("unknown", kinds.get(name, "unknown")):
            must = f"must be of the kind {kinds[name]!r}, as in most shards"
            using = Argument("columns", {name: kinds[name]})
            return InputError("", f"column {name!r}", must, repr(found), "State its kind, for example with", using)
    return None


def difference(first: Columns, other: Columns) -> InputError | None:
    """Return an error if two objects encode the same row differently, otherwise None."""
    mine, theirs = first.learned(), other.learned()
    if mine is None or theirs is None or first.names != other.names:
        return InputError("", "the columns", f"must be {first.names}"[:500], str(other.names)[:500])
    of_mine, of_theirs = (
        {
            about["name"]: (about["kind"], found, about["texts"])
            for about, found in zip(part.describe(), facts, strict=True)
        }
        for part, facts in ((first, _facts(mine, len(first.names))), (other, _facts(theirs, len(other.names))))
    )
    for name, known in of_mine.items():
        if known != of_theirs[name]:
            got = f"{_shown(known)} in one and {_shown(of_theirs[name])} in the other"
            return InputError("", f"column {name!r}", "must be encoded in the same way by both", got)
    return None


def _facts(learned: Learned, n: int) -> list[tuple[Any, ...]]:
    """Return, for every column, its state: sums, first date, features and counts."""
    state = ColumnsState(**{name: learned.arrays[name] for name in ColumnsState._fields})
    features = list(zip(state.role.tolist(), state.place.tolist(), learned.facts["texts"], strict=True))
    column, key, counts = (learned.arrays[f"value_{name}"] for name in ("column", "key", "counts"))
    counted = [(key[column == j].tolist(), counts[column == j].tolist()) for j in range(n)]
    return [
        (
            float(state.numbers[j]),
            float(state.total[j]),
            (state.base[j].tolist(), int(state.order[j])),
            [(int(i), *features[i]) for i in np.flatnonzero(state.source == j)],
            counted[j],
        )
        for j in range(n)
    ]


def _shown(known: tuple[Any, ...]) -> str:
    """Describe the state of a column in an error message."""
    kind, (numbers, total, _, features, _), texts = known
    if kind in ("category", "unknown") or texts:
        return f"a {kind} of the texts {texts}"[:200]
    return f"a {kind} of mean {total / max(numbers, 1.0):g} and {len(features)} features"


def merged(parts: Sequence[Columns]) -> Columns:
    """Merge columns without conflicts: texts in the order of the parts, and sums of numbers."""
    merger = _Merger(parts[0])
    for part in parts:
        merger.add(part)
    return merger.columns()


class _Merger:
    """Columns that are being merged."""

    def __init__(self, first: Columns) -> None:
        self._first, self.names = first, first.names
        c = len(self.names)
        self._kinds, self._numbers, self._total = np.zeros(c, dtype=np.int8), np.zeros(c), np.zeros(c)
        self._base = np.full((c, 3), -1, dtype=np.int16)
        self._order = np.zeros(c, dtype=np.int8)
        self._features: dict[tuple[int, Role, int, str], None] = {}  # in order: column, role, place, text
        self._n_texts = np.zeros(c, dtype=np.intp)
        self._width = 0

    def add(self, part: Columns) -> None:
        """Add the state of a part."""
        learned = part.learned()
        assert learned is not None  # it was started
        if len(learned.arrays["totals"]):
            raise InputError(
                "merged", "columns", "must not count classes, because the counts depend on the order of all rows"
            )
        state = ColumnsState(**{name: learned.arrays[name] for name in ColumnsState._fields})
        texts = learned.facts["texts"]
        at = np.array([self.names.index(name) for name in part.names])
        self._kinds[at] = np.where(self._kinds[at] == Kind.UNKNOWN, state.kinds, self._kinds[at])
        self._order[at] = np.where(self._order[at] == 0, state.order, self._order[at])
        self._numbers[at] += state.numbers
        self._total[at] += state.total
        self._width = max(self._width, int(state.width[0]))
        for j, role, place, text in zip(
            at[state.source].tolist(), state.role.tolist(), state.place.tolist(), texts, strict=True
        ):
            self._bring(j, Role(role), place, text)
        for (k, circle), theirs in np.ndenumerate(state.base):
            j = int(at[k])
            mine = self._base[j, circle]
            if mine < 0:
                self._base[j, circle] = theirs
            elif theirs not in (-1, mine):  # for example, each part has one hour, and together they have two
                self._bring(j, Role.SIN, circle)
                self._bring(j, Role.COS, circle)

    def _bring(self, column: int, role: Role, place: int, text: str = "") -> None:
        if (column, role, place, text) in self._features:
            return
        if role == Role.TEXT and self._n_texts[column] == self._first.max_texts:
            role, place, text = Role.BUCKET, bucket_of(text, self._first.n_buckets), ""
        self._n_texts[column] += role == Role.TEXT
        self._features.setdefault((column, role, place, text))

    def columns(self) -> Columns:
        """Return the merged columns."""
        source, role, place, texts = zip(*self._features, strict=True)
        state = ColumnsState(
            self._kinds,
            self._numbers,
            self._total,
            self._base,
            np.array(source, dtype=np.int32),
            np.array(role, dtype=np.int8),
            np.array(place, dtype=np.int32),
            np.array([max(self._width, len(texts))], dtype=np.int64),
            self._order,
        )
        arrays = state._asdict() | Statistics.start(0, []).arrays()
        found = Columns(self._first.columns, self._first.max_texts, self._first.n_buckets)
        found.restore(Learned({"names": self.names, "texts": list(texts), "version": 2}, arrays), 2**31)
        return found
