"""Columns of a table as features: how to read them is learned as the stream goes on, row by row."""

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
from bayesvote.tables.block import Block, Flags, Taught, first_features, kind_of
from bayesvote.tables.date_texts import Order, usual_order
from bayesvote.tables.kinds import NUMERIC, ORDERS, STATED, Kind, Role, as_kind, check_sorts
from bayesvote.tables.matching import matched, named_by_text, refuse_texts
from bayesvote.tables.reading import Cells, Table, read_table
from bayesvote.tables.state import ColumnsState, Event, Places, check, empty, feature_name
from bayesvote.tables.statistics import NAMES, Statistics, restored

BLOCK = 4096  # rows encoded at a time
_ROOM = 4  # features that are set aside for each column that is not of numbers


class Piece(NamedTuple):
    """Rows that are encoded in one width."""

    first: int
    last: int
    rows: Rows


class Known(NamedTuple):
    """What is known of the columns once some rows are learned."""

    state: ColumnsState
    texts: list[str]
    places: Places
    statistics: Statistics
    hashed: list[str]  # columns that have too many texts from then on


@dataclass
class Columns(Part):
    """How the columns of a table become features of numbers, and what was learned of it.

    A row is encoded by what the rows before it have told; so chunks of any size, and labels that come late, give the
    same. Memory does not grow with the stream.

    A number is one feature: itself or, where it is missing, the mean so far, with a second feature that tells where. A
    category has a feature for each of its first texts, one for texts that were not met before, one for missing ones
    and, when the texts are too many, one for each hash of the others. A date is the days since 1970 and
    the sine and cosine of its hour, weekday and month if they vary. A text in a column of numbers is a category's.

    Features come as they are needed, so the model must be widened now and then: see ``advance``.

    Parameters
    ----------
    columns
        The kinds of columns that are known: "number", "category", "boolean", "date", "day_first" or "month_first" for
        dates such as 01/02/2020, or "drop" for those to leave out.
        The others are found from their types or, for texts, from the first that comes.
    max_texts
        How many texts of a column have a feature each.
    n_buckets
        How many features the others share, by their hash.

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
        """Check the kinds."""
        if self.columns is not None and not isinstance(self.columns, Mapping):
            raise InputTypeError(self.who, "columns", "must be a dictionary of names and kinds", repr(self.columns))
        for name, kind in (self.columns or {}).items():
            one_of(self.who, f"columns[{name!r}]", kind, STATED)
        if self.columns is not None:
            self.columns = named_by_text(self.who, self.columns)
        integer(self.who, "max_texts", self.max_texts)
        integer(self.who, "n_buckets", self.n_buckets)
        self._state: ColumnsState | None = None
        self._texts: list[str] = []  # (f,): of the features that are of one
        self._places: Places = []
        self._warned: set[str] = set()
        self._statistics = Statistics.start(0, [])

    @property
    def names(self) -> list[str]:
        """The names of the table's columns."""
        return list(self._names)

    @property
    def stated(self) -> dict[str, Kind]:
        """The kinds that the user has stated."""
        return {name: STATED[kind] for name, kind in (self.columns or {}).items()}

    @property
    def places(self) -> Places:
        """For every column, its features by what they tell of it."""
        return self._places

    @property
    def width(self) -> int:
        """How many features the encoded rows have; those not in use yet are 0."""
        return int(started(self.who, self._state).width[0])

    @property
    def kinds(self) -> NDArray[np.int8]:
        """What is known of the kind of every column."""
        return started(self.who, self._state).kinds

    def source_columns(self) -> NDArray[np.int32]:
        """For every feature in use, the place among ``names`` of the column that it is of."""
        return started(self.who, self._state).source.copy()

    def feature_names(self) -> list[str]:
        """What every feature in use tells."""
        state = started(self.who, self._state)
        return [
            feature_name(self._names[j], Role(role), place, text)
            for j, role, place, text in zip(
                state.source.tolist(), state.role.tolist(), state.place.tolist(), self._texts, strict=True
            )
        ]

    def describe(self) -> list[dict[str, Any]]:
        """What is known of every column: name, kind, the texts that have a feature, whether others are hashed."""
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
        """Forget everything and get ready for tables like this one; only its types and first row are looked at."""
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
            raise InputError(
                self.who, "columns", "must leave some columns to learn from", str(dict(self.columns or {}))
            )
        c = len(kinds)
        self._names, texts, places = list(table.columns), list[str](), [dict[Any, int]() for _ in kinds]
        state = empty(c, 0)._replace(kinds=np.array(kinds, dtype=np.int8), order=np.array(orders, dtype=np.int8))
        events = [event for j, kind in enumerate(kinds) for event in first_features(-1, j, kind)]
        open_ended = sum(kind in (Kind.CATEGORY, Kind.UNKNOWN) for kind in kinds)
        width = np.array([len(events) + _ROOM * open_ended])
        nothing = Statistics.start(0, [])
        self.take(_with_events(Known(state._replace(width=width), texts, places, nothing, []), events))
        return self

    def _order(self, name: str, kind: Kind, cells: Cells) -> Order:
        """Order of day and month in the dates of a column: as stated or, if not, as the first table tells."""
        stated = ORDERS.get((self.columns or {}).get(name, ""))
        if stated or kind not in (Kind.DATE, Kind.UNKNOWN):
            return stated or Order.UNKNOWN
        order, ambiguous = usual_order(cells.texts)
        if ambiguous:
            self.warn(
                name,
                (
                    f"holds dates such as {ambiguous!r}, which do not tell day and month apart. They are read with the "
                    "month first. If the day comes first, state ",
                    Argument("columns", {name: "day_first"}),
                    "; else ",
                    Argument("columns", {name: "month_first"}),
                    ".",
                ),
            )
        return order

    def warn(self, name: str, message: Advice) -> None:
        """Warn of a column, once."""
        if name not in self._warned:
            self._warned.add(name)
            parts = (message,) if isinstance(message, str) else message
            warn(InputWarning(f"{self.who}: column {name!r} ", *parts))

    def advise(self, table: Table, y: Labels) -> None:
        """Warn of columns that look like identifiers, dates in digits or leaks, unless their kind is stated."""
        kinds = {name: Kind(int(kind)) for name, kind in zip(self._names, self.kinds, strict=True)}
        looked = {
            name: kind for name, kind in kinds.items() if name not in (self.columns or {}) and kind != Kind.UNKNOWN
        }
        for name, message in advice(table, looked, y):
            self.warn(name, message)

    def expect(self, n_classes: int) -> None:
        """Count, from the first row on, the classes of rows by the values of the categories that are stated."""
        columns = self._countable
        self._statistics = Statistics.start(n_classes if columns else 0, columns)

    @property
    def _countable(self) -> list[int]:
        return [j for j, name in enumerate(self._names) if self.stated.get(name) == Kind.CATEGORY]

    def encode(self, X: Any, strict: bool = False) -> Rows:
        """Encode rows by what is known; nothing is learned. ``strict`` is as in ``checked``."""
        table = self.checked(X, strict)
        return self.block(table, np.zeros(table.n, dtype=bool)).rows(0, table.n, self.width)

    def encoded(self, table: Table) -> Iterator[Rows]:
        """Encode checked rows, some at a time."""
        for first in range(0, max(table.n, 1), BLOCK):
            part = table.part(first, min(first + BLOCK, table.n))
            yield self.block(part, np.zeros(part.n, dtype=bool)).rows(0, part.n, self.width)

    def advance(self, X: Any, learn: NDArray[Any] | None = None, y: Labels | None = None) -> Iterator[Piece]:
        """Encode rows, row t by what the rows before it have told, and learn them; ``learn`` says which.

        The pieces follow each other, each as wide as the model must be widened to before it gets the piece. What a
        piece has told is learned when the next one is asked for.
        """
        table = X if isinstance(X, Table) else self.checked(X)
        flags = np.ones(table.n, dtype=bool) if learn is None else np.asarray(learn) != 0
        for start in range(0, table.n, BLOCK):
            stop = min(start + BLOCK, table.n)
            block = self.block(table.part(start, stop), flags[start:stop], None if y is None else y[start:stop])
            for first, last, width in block.pieces():
                yield Piece(start + first, start + last, block.rows(first, last, width))
            known = self.after(block)
            self.take(known)
            self.tell_of(known.hashed)

    def checked(self, X: Any, strict: bool = False) -> Table:
        """Table of the columns that are known, in their order, as their kinds have them.

        With ``strict``, a text in a column that was learned to hold numbers or dates only is refused.
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
        """The state, checked, with names and texts."""
        if self._state is None:
            return None
        statistics = self._statistics
        check(self._state, statistics, self._names, self._texts, self.stated, self.max_texts, self.n_buckets)
        facts = {"names": self._names, "texts": self._texts, "version": 2}
        return Learned(facts, self._state._asdict() | statistics.arrays())

    def restore(self, learned: Learned, room: int) -> None:  # noqa: ARG002
        """Take up what a file brings, after checking all of it."""
        require(learned.facts.keys() == {"names", "texts", "version"}, "columns must have names and texts")
        require(learned.facts["version"] in (1, 2), "version of the columns must be 1 or 2")
        names, texts = learned.facts["names"], learned.facts["texts"]
        for given in (names, texts):
            require(type(given) is list and all(type(text) is str for text in given), "names and texts must be texts")
        c, f = len(names), len(texts)
        arrays = dict(learned.arrays)
        if learned.facts["version"] == 1:  # it counted nothing, and read no dates such as 01/02/2020
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
        require(sum(map(len, self._places)) == f, "no feature must stand twice")

    def block(self, table: Table, learn: Flags, y: Labels | None = None) -> Block:
        """Checked rows, encoded, with what those of them tell that ``learn`` says; ``take`` learns it."""
        if y is None and self._statistics.n_classes and np.any(learn):
            raise InputError(self.who, "y", "must be given, as the classes of rows are counted", "None")
        taught = Taught(learn, np.zeros(table.n, dtype=np.intp) if y is None else y)
        most = self.max_texts, self.n_buckets
        state = started(self.who, self._state)
        block = Block(self.who, self._places, state, self._statistics, table.n, taught, most)
        for j, name in enumerate(self._names):
            if name in table.columns:
                block.add(j, table.columns[name])
        return block.finished()

    def after(self, block: Block) -> Known:
        """What is known once a block is learned; nothing is changed, and ``take`` takes it up."""
        found = dict.fromkeys(event.column for event in block.events if event.role == Role.BUCKET)
        new = [j for j in found if not any(role == Role.BUCKET for role, _ in self._places[j])]
        hashed = [self._names[j] for j in new]
        return _with_events(Known(block.state, self._texts, self._places, block.statistics, hashed), block.events)

    def take(self, known: Known) -> None:
        """Know this from now on. It asks for no memory, so it does not fail after the model has learned."""
        self._state, self._texts, self._places = known.state, known.texts, known.places
        self._statistics = known.statistics

    def tell_of(self, hashed: list[str]) -> None:
        """Warn of columns that have too many texts."""
        for name in [name for name in hashed if name not in (self.columns or {})]:
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


def _with_events(known: Known, events: list[Event]) -> Known:
    """Add the features that rows bring, in copies of what they change."""
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
