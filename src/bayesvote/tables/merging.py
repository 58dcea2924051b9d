"""What parts of the rows have told of their columns, put together."""

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
    """Kind of each column in most parts, the first of several; a column of which no part knows anything has none."""
    counts: dict[str, Counter[str]] = {}
    for part in parts:
        for about in part.describe():
            if about["kind"] != "unknown":
                counts.setdefault(about["name"], Counter())[about["kind"]] += 1
    return {name: found.most_common(1)[0][0] for name, found in counts.items()}


def conflict(kinds: Mapping[str, str], part: Columns) -> InputError | None:
    """What is wrong with a part that has a column of another kind than these."""
    for about in part.describe():
        name, found = about["name"], about["kind"]
        if found not in ("unknown", kinds.get(name, "unknown")):
            must = f"must be of the kind {kinds[name]!r}, as in most shards"
            using = Argument("columns", {name: kinds[name]})
            return InputError("", f"column {name!r}", must, repr(found), "State its kind, for example with", using)
    return None


def difference(first: Columns, other: Columns) -> InputError | None:
    """What is wrong with columns that are not read as the first are: what one row becomes tells them apart."""
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
            return InputError("", f"column {name!r}", "must be read in the same way by both", got)
    return None


def _facts(learned: Learned, n: int) -> list[tuple[Any, ...]]:
    """For every column, what decides how it is encoded: its sums, first date, features and counts."""
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
    """A few words on what is known of a column."""
    kind, (numbers, total, _, features, _), texts = known
    if kind in ("category", "unknown") or texts:
        return f"a {kind} of the texts {texts}"[:200]
    return f"a {kind} of mean {total / max(numbers, 1.0):g} and {len(features)} features"


def merged(parts: Sequence[Columns]) -> Columns:
    """Columns that know what all parts know, which fit each other: texts in the order of the parts, sums of numbers."""
    whole = _Whole(parts[0])
    for part in parts:
        whole.add(part)
    return whole.columns()


class _Whole:
    """Columns that are being put together."""

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
        """Add what a part knows."""
        learned = part.learned()
        assert learned is not None  # it was started
        if len(learned.arrays["totals"]):
            raise InputError("merged", "columns", "must not count classes, as rows of other parts came in between")
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
            elif theirs not in (-1, mine):  # each part had met one hour, say, and both together have met two
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
        """The columns, with all of it."""
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
