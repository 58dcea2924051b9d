"""Encoding of the columns of a table as numeric features, learned online."""

from collections.abc import Iterator, Mapping
from dataclasses import dataclass, field
from typing import Any, NamedTuple

import numpy as np
from numpy.typing import NDArray

from bayesvote.core.checks import (
    Advice,
    Argument,
    InputError,
    InputTypeError,
    InputWarning,
    Labels,
    integer,
    one_of,
)
from bayesvote.core.rows import Rows, started
from bayesvote.core.state import Learned, Part, like, require
from bayesvote.core.warn import warn
from bayesvote.tables.advice import advice
from bayesvote.tables.block import Block, Flags, RowsToLearn, first_features, kind_of
from bayesvote.tables.cells import Cells, Table
from bayesvote.tables.date_texts import Order, usual_order
from bayesvote.tables.kinds import NUMERIC, ORDERS, STATED, Kind, Role, as_kind, check_sorts
from bayesvote.tables.matching import matched, named_by_text, refuse_texts
from bayesvote.tables.reading import read_table
from bayesvote.tables.state import ColumnsState, NewFeature, Places, check, empty, feature_name
from bayesvote.tables.statistics import NAMES, Statistics, restored

BLOCK = 4096  # rows encoded at a time
_ROOM = 4  # features reserved for each column that is not numeric


class Piece(NamedTuple):
    """Encoded rows with the same width."""

    first: int
    last: int
    rows: Rows


class _Known(NamedTuple):
    """The state of the columns after some rows."""

    state: ColumnsState
    texts: list[str]
    places: Places
    statistics: Statistics


@dataclass
class Columns(Part):
    """Encoder of tables as numeric features, learned online.

    A row is encoded with what was learned from the rows before it. So the result does not depend on the size of chunks,
    nor on late labels. Memory is bounded.

    - A number has one feature: the number or, if it is missing, the mean so far. A second feature marks missing values.
    - A category has one feature for each of its first texts, one for new texts, and one for missing values. Other
      texts share features by their hash.
    - A date has its days since 1970, and the sine and cosine of its hour, weekday and month if they vary.
    - A text in a column of numbers is encoded like that of a category.

    Features are added when they are needed, so the model must be widened from time to time: see ``advance``.

    Parameters
    ----------
    columns
        Kinds of columns: "number", "category", "boolean" or "date"; "day_first" or "month_first" for dates such as
        01/02/2020; "drop" to leave a column out. Other kinds are detected from the type or, for texts, from the first
        value.
    max_texts
        Number of texts of a column that have a feature each.
    n_buckets
        Number of features that the other texts share by their hash.

    Examples
    --------
    >>> table = {"island": ["Dream", "Torgersen", "Dream"], "mass": [3750.0, None, 3800.0]}
    >>> columns = Columns().start(table)
    >>> pieces = list(columns.advance(table))
    >>> columns.encode(table).todense()[:, :5]
    array([[0.000e+00, 3.750e+03, 1.000e+00, 0.000e+00, 0.000e+00],
           [0.000e+00, 3.775e+03, 0.000e+00, 1.000e+00, 1.000e+00],
           [0.000e+00, 3.800e+03, 1.000e+00, 0.000e+00, 0.000e+00]])
    >>> columns.feature_names()
    ['island is new', 'mass', 'island = Dream', 'island = Torgersen', 'mass is missing']
    >>> columns.source_columns()
    array([0, 1, 0, 0, 1], dtype=int32)
    """

    columns: Mapping[Any, str] | None = None
    max_texts: int = 64
    n_buckets: int = 16
    _names: list[str] = field(default_factory=list, init=False, repr=False)

    def __post_init__(self) -> None:
        """Check the parameters."""
        if self.columns is not None and not isinstance(self.columns, Mapping):
            raise InputTypeError(self.who, "columns", "must be a dictionary of names and kinds", repr(self.columns))
        for name, kind in (self.columns or {}).items():
            one_of(self.who, f"columns[{name!r}]", kind, STATED)
        if self.columns is not None:
            self.columns = named_by_text(self.who, self.columns)
        integer(self.who, "max_texts", self.max_texts)
        integer(self.who, "n_buckets", self.n_buckets)
        self._state: ColumnsState | None = None
        self._texts: list[str] = []  # (f,): text of each feature, or ""
        self._places: Places = []
        self._warned: set[str] = set()
        self._statistics = Statistics.start(0, [])

    @property
    def names(self) -> list[str]:
        """The names of the table's columns."""
        return list(self._names)

    @property
    def stated(self) -> dict[str, Kind]:
        """The kinds stated by the user."""
        return {name: STATED[kind] for name, kind in (self.columns or {}).items()}

    @property
    def places(self) -> Places:
        """For every column, the index of each feature by its role."""
        return self._places

    @property
    def width(self) -> int:
        """Number of features of encoded rows. Features that are not in use yet are 0."""
        return int(started(self.who, self._state).width[0])

    @property
    def kinds(self) -> NDArray[np.int8]:
        """The kind of every column."""
        return started(self.who, self._state).kinds

    def source_columns(self) -> NDArray[np.int32]:
        """Return, for every feature in use, the index of its column in ``names``."""
        return started(self.who, self._state).source.copy()

    def feature_names(self) -> list[str]:
        """Return the names of the features in use."""
        state = started(self.who, self._state)
        return [
            feature_name(self._names[j], Role(role), place, text)
            for j, role, place, text in zip(
                state.source.tolist(), state.role.tolist(), state.place.tolist(), self._texts, strict=True
            )
        ]

    def describe(self) -> list[dict[str, Any]]:
        """Describe every column: its name, kind, texts with a feature, and use of hashes."""
        state = started(self.who, self._state)
        found = []
        for j, name in enumerate(self._names):
            roles = {role for role, _ in self._places[j]}
            texts = [text for role, text in self._places[j] if role == Role.TEXT]
            kind = Kind(int(state.kinds[j])).name.lower()
            about = {"name": name, "kind": kind, "features": len(self._places[j]), "texts": texts}
            found.append(about | {"hashed": Role.BUCKET in roles, "missing": Role.MISSING in roles})
        return found

    def start(self, X: Any) -> "Columns":
        """Reset, and prepare for tables like this one. Only the types and the first row are used."""
        table = read_table(self.who, X)
        unknown = [name for name in self.columns or {} if name not in table.columns]
        if unknown:
            must = f"must name columns of the table, {list(table.columns)}"
            raise InputError(self.who, "columns", must, str(unknown))
        if table.n == 0:
            raise InputError(self.who, "X", "must have at least one row", "none")
        kinds = [self.stated.get(name, kind_of(cells.part(0, 1))) for name, cells in table.columns.items()]
        for (name, cells), kind in zip(table.columns.items(), kinds, strict=True):
            if kind not in (Kind.CATEGORY, Kind.DROP):
                cells.without_vast(self.who, name)
        orders = [self._order(name, kind, table.columns[name]) for name, kind in zip(table.columns, kinds, strict=True)]
        if all(kind == Kind.DROP for kind in kinds):
            raise InputError(self.who, "columns", "must not drop all columns", str(dict(self.columns or {})))
        c = len(kinds)
        self._names, texts, places = list(table.columns), list[str](), [dict[Any, int]() for _ in kinds]
        state = empty(c, 0)._replace(kinds=np.array(kinds, dtype=np.int8), order=np.array(orders, dtype=np.int8))
        events = [event for j, kind in enumerate(kinds) for event in first_features(-1, j, kind)]
        open_ended = sum(kind in (Kind.CATEGORY, Kind.UNKNOWN) for kind in kinds)
        width = np.array([len(events) + _ROOM * open_ended])
        nothing = Statistics.start(0, [])
        self._take(_with_events(_Known(state._replace(width=width), texts, places, nothing), events))
        return self

    def _order(self, name: str, kind: Kind, cells: Cells) -> Order:
        """Return the order of day and month in a column: as stated, or as in the first table."""
        stated = ORDERS.get((self.columns or {}).get(name, ""))
        if stated or kind not in (Kind.DATE, Kind.UNKNOWN):
            return stated or Order.UNKNOWN
        order, ambiguous = usual_order(cells.texts)
        if ambiguous:
            self.warn(
                name,
                (
                    f"holds dates such as {ambiguous!r}, in which day and month are ambiguous. They are read with the "
                    "month first. If the day comes first, state ",
                    Argument("columns", {name: "day_first"}),
                    "; else ",
                    Argument("columns", {name: "month_first"}),
                    ".",
                ),
            )
        return order

    def warn(self, name: str, message: Advice) -> None:
        """Warn about a column, once."""
        if name not in self._warned:
            self._warned.add(name)
            parts = (message,) if isinstance(message, str) else message
            warn(InputWarning(f"{self.who}: column {name!r} ", *parts))

    def advise(self, table: Table, y: Labels) -> None:
        """Warn about columns that look like identifiers, dates in digits or leaks, unless their kind is stated."""
        kinds = {name: Kind(int(kind)) for name, kind in zip(self._names, self.kinds, strict=True)}
        looked = {
            name: kind for name, kind in kinds.items() if name not in (self.columns or {}) and kind != Kind.UNKNOWN
        }
        for name, message in advice(table, looked, y):
            self.warn(name, message)

    def expect(self, n_classes: int) -> None:
        """Start to count the classes of rows by the values of the stated categories."""
        columns = self._countable
        self._statistics = Statistics.start(n_classes if columns else 0, columns)

    @property
    def _countable(self) -> list[int]:
        return [j for j, name in enumerate(self._names) if self.stated.get(name) == Kind.CATEGORY]

    def encode(self, X: Any, strict: bool = False) -> Rows:
        """Encode rows without learning them. ``strict`` is as in ``checked``."""
        table = self.checked(X, strict)
        return self._block(table, np.zeros(table.n, dtype=bool)).rows(0, table.n, self.width)

    def encoded(self, table: Table) -> Iterator[Rows]:
        """Encode checked rows, one block at a time."""
        for first in range(0, max(table.n, 1), BLOCK):
            part = table.part(first, min(first + BLOCK, table.n))
            yield self._block(part, np.zeros(part.n, dtype=bool)).rows(0, part.n, self.width)

    def advance(self, X: Any, learn: NDArray[Any] | None = None, y: Labels | None = None) -> Iterator[Piece]:
        """Encode rows, each with what was learned from the rows before it, and learn them.

        The pieces are in the order of the rows. Widen the model to the width of a piece before the model learns it.
        The last piece may have no rows: then it only says how wide the model must be for the rows that follow.

        Rows are learned in blocks of 4,096. A block is learned when the caller requests the piece after its last one,
        and this needs no further memory. If the iteration ends earlier, none of the block is learned.

        Parameters
        ----------
        X
            A table.
        learn : array of shape (n,), optional
            True for the rows to learn; all by default. The others are only encoded.
        y : array of shape (n,), optional
            The class of each row. Only columns that count classes need it.
        """
        table = X if isinstance(X, Table) else self.checked(X)
        flags = np.ones(table.n, dtype=bool) if learn is None else np.asarray(learn) != 0
        for start in range(0, table.n, BLOCK):
            stop = min(start + BLOCK, table.n)
            block = self._block(table.part(start, stop), flags[start:stop], None if y is None else y[start:stop])
            known, width = self._after(block), 0
            self._warn_of_hashes(block)
            for first, last, width in block.pieces():
                yield Piece(start + first, start + last, block.rows(first, last, width))
            wider = int(known.state.width[0])
            if wider > width:
                yield Piece(stop, stop, block.rows(block.n, block.n, wider))
            self._take(known)

    def checked(self, X: Any, strict: bool = False) -> Table:
        """Return a table with the known columns, in their order, converted to their kinds.

        With ``strict``, a text in a column that has only had numbers or dates raises an error.
        """
        state = started(self.who, self._state)
        table = matched(self.who, read_table(self.who, X), self._names, self._dropped)
        columns = {}
        for j, name in enumerate(self._names):
            kind = Kind(int(state.kinds[j]))
            if kind not in (Kind.UNKNOWN, Kind.DROP):
                order = Order(int(state.order[j]))
                columns[name] = as_kind(self.who, name, table.columns[name], kind, name in self.stated, order)
                if strict and kind in NUMERIC and not any(role == Role.TEXT for role, _ in self._places[j]):
                    refuse_texts(self.who, name, columns[name], kind)
            elif name in table.columns:
                if kind == Kind.UNKNOWN:
                    table.columns[name].without_vast(self.who, name)
                    check_sorts(self.who, name, table.columns[name])
                columns[name] = table.columns[name]
        return Table(table.n, columns)

    @property
    def _dropped(self) -> set[str]:
        return {name for name, kind in (self.columns or {}).items() if kind == "drop"}

    def learned(self) -> Learned | None:
        """Return the state, checked, with names and texts."""
        if self._state is None:
            return None
        statistics = self._statistics
        check(self._state, statistics, self._names, self._texts, self.stated, self.max_texts, self.n_buckets)
        facts = {"names": self._names, "texts": self._texts, "version": 2}
        return Learned(facts, self._state._asdict() | statistics.arrays())

    def restore(self, learned: Learned, room: int) -> None:  # noqa: ARG002
        """Restore the state from a file, after checking it."""
        require(learned.facts.keys() == {"names", "texts", "version"}, "columns must have names and texts")
        require(learned.facts["version"] in (1, 2), "version of the columns must be 1 or 2")
        names, texts = learned.facts["names"], learned.facts["texts"]
        for given in (names, texts):
            require(type(given) is list and all(type(text) is str for text in given), "names and texts must be texts")
        c, f = len(names), len(texts)
        arrays = dict(learned.arrays)
        if learned.facts["version"] == 1:  # without counts and the order of day and month
            arrays |= Statistics.start(0, []).arrays() | {"order": np.zeros(c, dtype=np.int8)}
        stated = [j for j, name in enumerate(names) if self.stated.get(name) == Kind.CATEGORY]
        statistics = restored(arrays, stated)
        state = like(empty(c, f), {name: array for name, array in arrays.items() if name not in NAMES})
        check(state, statistics, names, texts, self.stated, self.max_texts, self.n_buckets)
        self._names, self._texts, self._places = names, texts, [{} for _ in names]
        self._state, self._statistics = state, statistics
        for i, (j, role, place) in enumerate(
            zip(state.source.tolist(), state.role.tolist(), state.place.tolist(), strict=True)
        ):
            self._places[j][Role(role), texts[i] if role == Role.TEXT else place] = i
        require(sum(map(len, self._places)) == f, "features must be different")

    def _block(self, table: Table, learn: Flags, y: Labels | None = None) -> Block:
        """Encode checked rows, and collect what those of them teach that ``learn`` marks."""
        if y is None and self._statistics.n_classes and np.any(learn):
            raise InputError(self.who, "y", "must be given, because the classes of rows are counted", "None")
        lesson = RowsToLearn(learn, np.zeros(table.n, dtype=np.intp) if y is None else y)
        limits = self.max_texts, self.n_buckets
        state = started(self.who, self._state)
        block = Block(self.who, self._places, state, self._statistics, table.n, lesson, limits)
        for j, name in enumerate(self._names):
            if name in table.columns:
                block.add(j, table.columns[name])
        return block.finished()

    def _after(self, block: Block) -> _Known:
        """Return the state after a block, without changing anything."""
        return _with_events(_Known(block.state, self._texts, self._places, block.statistics), block.events)

    def _take(self, known: _Known) -> None:
        """Replace the state. This allocates no memory, so it cannot fail after the model has learned."""
        self._state, self._texts, self._places = known.state, known.texts, known.places
        self._statistics = known.statistics

    def _warn_of_hashes(self, block: Block) -> None:
        """Warn of columns in which a block brings more texts than have a feature each."""
        found = dict.fromkeys(event.column for event in block.events if event.role == Role.BUCKET)
        new = [j for j in found if not any(role == Role.BUCKET for role, _ in self._places[j])]
        for name in [self._names[j] for j in new if self._names[j] not in (self.columns or {})]:
            self.warn(
                name,
                (
                    f"has more than {self.max_texts} different texts; the others share {self.n_buckets} features. "
                    "State ",
                    Argument("columns", {name: "category"}),
                    " to count the classes of every text, or ",
                    Argument("columns", {name: "drop"}),
                    " to leave the column out.",
                ),
            )


def _with_events(known: _Known, events: list[NewFeature]) -> _Known:
    """Return a copy of the state with new features."""
    if not events:
        return known
    state, texts, places = known.state, list(known.texts), list(known.places)
    for j in {event.column for event in events}:
        places[j] = dict(places[j])
    for event in events:
        places[event.column][event.role, event.text if event.role == Role.TEXT else event.place] = len(texts)
        texts.append(event.text)
    columns, roles, of_role = ([getattr(event, name) for event in events] for name in ("column", "role", "place"))
    wider = state._replace(
        source=np.concatenate([state.source, np.array(columns, dtype=np.int32)]),
        role=np.concatenate([state.role, np.array(roles, dtype=np.int8)]),
        place=np.concatenate([state.place, np.array(of_role, dtype=np.int32)]),
    )
    return known._replace(state=wider, texts=texts, places=places)
