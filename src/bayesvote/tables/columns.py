"""Columns of a table as features: how to read them is learned as the stream goes on, row by row."""

import warnings
from collections.abc import Iterator, Mapping
from dataclasses import dataclass, field
from typing import Any, NamedTuple

import numpy as np
from numpy.typing import NDArray

from bayesvote._checks import InputError, InputTypeError, integer, one_of
from bayesvote._input import Rows, started
from bayesvote._parts import Learned, Part, like, require
from bayesvote.tables.block import Block, Flags, first_features, kind_of
from bayesvote.tables.kinds import STATED, Kind, Role, as_kind, check_sorts
from bayesvote.tables.reading import Table, read_table
from bayesvote.tables.state import ColumnsState, Event, Places, check, empty, feature_name

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
        The kinds of columns that are known: "number", "category", "boolean", "date", or "drop" for those to leave out.
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

    columns: Mapping[str, str] | None = None
    max_texts: int = 64
    n_buckets: int = 16
    _names: list[str] = field(default_factory=list, init=False, repr=False)

    def __post_init__(self) -> None:
        """Check the kinds."""
        if self.columns is not None and not isinstance(self.columns, Mapping):
            raise InputTypeError(self.who, "columns", "must be a dictionary of names and kinds", repr(self.columns))
        for name, kind in (self.columns or {}).items():
            one_of(self.who, f"columns[{name!r}]", kind, STATED)
        integer(self.who, "max_texts", self.max_texts)
        integer(self.who, "n_buckets", self.n_buckets)
        self._state: ColumnsState | None = None
        self._texts: list[str] = []  # (f,): of the features that are of one
        self._places: Places = []

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
        if all(kind == Kind.DROP for kind in kinds):
            raise InputError(
                self.who, "columns", "must leave some columns to learn from", str(dict(self.columns or {}))
            )
        c = len(kinds)
        self._names, texts, places = list(table.columns), list[str](), [dict[Any, int]() for _ in kinds]
        state = empty(c, 0)._replace(kinds=np.array(kinds, dtype=np.int8))
        events = [event for j, kind in enumerate(kinds) for event in first_features(-1, j, kind)]
        open_ended = sum(kind in (Kind.CATEGORY, Kind.UNKNOWN) for kind in kinds)
        width = np.array([len(events) + _ROOM * open_ended])
        self.take(_with_events(Known(state._replace(width=width), texts, places, []), events))
        return self

    def encode(self, X: Any) -> Rows:
        """Encode rows by what is known; nothing is learned."""
        table = self.checked(X)
        return self.block(table, np.zeros(table.n, dtype=bool)).rows(0, table.n, self.width)

    def encoded(self, table: Table) -> Iterator[Rows]:
        """Encode checked rows, some at a time."""
        for first in range(0, max(table.n, 1), BLOCK):
            part = table.part(first, min(first + BLOCK, table.n))
            yield self.block(part, np.zeros(part.n, dtype=bool)).rows(0, part.n, self.width)

    def advance(self, X: Any, learn: NDArray[Any] | None = None) -> Iterator[Piece]:
        """Encode rows, row t by what the rows before it have told, and learn them; ``learn`` says which.

        The pieces follow each other, each as wide as the model must be widened to before it gets the piece. What a
        piece has told is learned when the next one is asked for.
        """
        table = X if isinstance(X, Table) else self.checked(X)
        flags = np.ones(table.n, dtype=bool) if learn is None else np.asarray(learn) != 0
        for start in range(0, table.n, BLOCK):
            stop = min(start + BLOCK, table.n)
            block = self.block(table.part(start, stop), flags[start:stop])
            for first, last, width in block.pieces():
                yield Piece(start + first, start + last, block.rows(first, last, width))
            known = self.after(block)
            self.take(known)
            self.tell_of(known.hashed)

    def checked(self, X: Any) -> Table:
        """Table of the columns that are known, in their order, as their kinds have them."""
        started(self.who, self._state)
        table = read_table(self.who, X)
        dropped = {name for name, kind in (self.columns or {}).items() if kind == "drop"}
        wanted = [name for name in self._names if name not in dropped]
        lacking, others = (
            [n for n in wanted if n not in table.columns],
            [n for n in table.columns if n not in self._names],
        )
        if lacking or others:
            what = [f"without {lacking}"] * bool(lacking) + [f"with {others} as well"] * bool(others)
            do = "Give a column of None for what is missing, and leave out columns that the first table did not have."
            raise InputError(self.who, "X", f"must have the columns {wanted}", f"a table {' and '.join(what)}", do)
        state = started(self.who, self._state)
        columns = {}
        for j, name in enumerate(self._names):
            kind = Kind(int(state.kinds[j]))
            if kind not in (Kind.UNKNOWN, Kind.DROP):
                columns[name] = as_kind(self.who, name, table.columns[name], kind, name in self.stated)
            elif name in table.columns:
                if kind == Kind.UNKNOWN:
                    check_sorts(self.who, name, table.columns[name])
                columns[name] = table.columns[name]
        return Table(table.n, columns)

    def learned(self) -> Learned | None:
        """The state, checked, with names and texts."""
        if self._state is None:
            return None
        check(self._state, self._names, self._texts, self.stated, self.max_texts, self.n_buckets)
        return Learned({"names": self._names, "texts": self._texts, "version": 1}, self._state._asdict())

    def restore(self, learned: Learned, room: int) -> None:  # noqa: ARG002
        """Take up what a file brings, after checking all of it."""
        require(learned.facts.keys() == {"names", "texts", "version"}, "columns must have names and texts")
        require(learned.facts["version"] == 1, "version of the columns must be 1")
        names, texts = learned.facts["names"], learned.facts["texts"]
        for given in (names, texts):
            require(type(given) is list and all(type(text) is str for text in given), "names and texts must be texts")
        c, f = len(names), len(texts)
        state = like(empty(c, f), learned.arrays)
        check(state, names, texts, self.stated, self.max_texts, self.n_buckets)
        self._names, self._texts, self._places = names, texts, [{} for _ in names]
        self._state = state
        for i, (j, role, place) in enumerate(
            zip(state.source.tolist(), state.role.tolist(), state.place.tolist(), strict=True)
        ):
            self._places[j][Role(role), texts[i] if role == Role.TEXT else place] = i
        require(sum(map(len, self._places)) == f, "no feature must stand twice")

    def block(self, table: Table, learn: Flags) -> Block:
        """Checked rows, encoded, with what those of them tell that ``learn`` says; ``take`` learns it."""
        block = Block(
            self.who, self._places, started(self.who, self._state), table.n, learn, (self.max_texts, self.n_buckets)
        )
        for j, name in enumerate(self._names):
            if name in table.columns:
                block.add(j, table.columns[name])
        return block.finished()

    def after(self, block: Block) -> Known:
        """What is known once a block is learned; nothing is changed, and ``take`` takes it up."""
        found = dict.fromkeys(event.column for event in block.events if event.role == Role.BUCKET)
        new = [j for j in found if not any(role == Role.BUCKET for role, _ in self._places[j])]
        hashed = [self._names[j] for j in new]
        return _with_events(Known(block.state, self._texts, self._places, hashed), block.events)

    def take(self, known: Known) -> None:
        """Know this from now on. It asks for no memory, so it does not fail after the model has learned."""
        self._state, self._texts, self._places = known.state, known.texts, known.places

    def tell_of(self, hashed: list[str]) -> None:
        """Warn of columns that have too many texts."""
        for name in [name for name in hashed if name not in (self.columns or {})]:
            warnings.warn(
                f"{self.who}: column {name!r} has more than {self.max_texts} different texts; further ones are told "
                f"apart by a hash into {self.n_buckets} only. State columns={{{name!r}: 'drop'}} to leave it out, or "
                f"{{{name!r}: 'category'}} if that is meant.",
                UserWarning,
                stacklevel=2,
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
