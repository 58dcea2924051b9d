"""Rows as they come over the wire, in the form that the model takes, and as bytes for the journal."""

import logging
from abc import ABC, abstractmethod
from collections.abc import Sequence
from typing import Any, NamedTuple

import msgspec
import numpy as np
from numpy.typing import NDArray

from bayesvote.apps.service.tensors import exact_numbers, numbers, texts, truths
from bayesvote.apps.service.types import Cell, Refusal, Tensor, TensorFacts
from bayesvote.core.checks import Array, InvalidInputError, Labels
from bayesvote.core.rollback import Forecast
from bayesvote.core.rows import Rows, as_rows
from bayesvote.tables import Columns as LearnedColumns
from bayesvote.tables import Table

MATRIX, IDS = "X", "ids"  # names of the inputs that hold all columns, and the rows' ids
_MOST_IGNORED = 100  # names of columns that are logged
log = logging.getLogger("bayesvote.serve")
_LARGEST = 1e100  # as in bayesvote.core.rows, whose error would come after the journal
_IDS = TensorFacts(IDS, "BYTES", [-1])


class Answers(NamedTuple):
    """Answers of a model about rows; ``forecast`` is what they were made of, packed."""

    probabilities: Array
    certainty: Array | None = None
    contributions: Array | None = None
    forecast: Array | None = None

    def part(self, first: int, last: int) -> "Answers":
        """Return the answers about rows first to last."""
        more = [None if array is None else array[first:last] for array in self[1:]]
        return Answers(self.probabilities[first:last], *more)


class Columns(ABC):
    """The columns of a model, and what rows of them are."""

    def __init__(self, kinds: dict[str, str]) -> None:
        self.kinds = kinds
        self.names = list(kinds)
        self._ignored: set[str] = set()

    @abstractmethod
    def inputs(self) -> list[TensorFacts]:
        """Tensors that are taken."""

    @abstractmethod
    def rows(self, given: list[dict[str, Cell]]) -> Any:
        """Rows that came as objects."""

    @abstractmethod
    def tensors(self, given: dict[str, Tensor], binary: dict[str, bytes]) -> Any:
        """Rows that came as tensors."""

    @abstractmethod
    def joined(self, parts: list[Any]) -> Any:
        """Rows of several requests."""

    @abstractmethod
    def checked(self, shell: Any, rows: Any) -> Rows | Table:
        """Return rows as a classifier takes those that are checked."""

    @abstractmethod
    def answers(self, shell: Any, rows: Any, *, certainty: bool, contributions: bool, forecast: bool) -> Answers:
        """Return the answers of a classifier about rows."""

    def learn(self, shell: Any, rows: Any, codes: Labels, forecast: Forecast | None = None) -> Array:
        """Let a classifier learn rows; return the probabilities (n, K), row t before row t is learned.

        With a ``forecast`` the labels come late: weights learn from what the predictions were made of.
        """
        learned = shell.advance(self.checked(shell, rows), codes, np.ones(len(codes)), forecast)
        found: Array = shell.probabilities(*learned)
        return found

    @staticmethod
    def _predicted(shell: Any, rows: Rows | Table) -> tuple[Array, Array]:
        """Return the probabilities of checked rows, and the forecast of which they are made, packed."""
        forecast, losses = shell.forecast(rows)
        return shell.probabilities(losses), forecast.packed()

    @abstractmethod
    def split(self, rows: Any) -> list[bytes]:
        """Rows for the journal, each by itself; joined, they are what ``unpack`` takes."""

    @abstractmethod
    def unpack(self, data: bytes, n: int) -> Any:
        """Rows of the journal."""

    def pack(self, rows: Any) -> bytes:
        """Rows for the journal, all of them."""
        return b"".join(self.split(rows))

    def matrix(self, tensor: Tensor, binary: bytes | None) -> Array:
        """Numbers of a tensor that holds all columns."""
        d = len(self.names)
        if len(tensor.shape) != 2 or tensor.shape[1] != d:
            raise Refusal(400, f"inputs: {MATRIX} must have the shape [-1, {d}], got {tensor.shape}.")
        return numbers(tensor, binary).reshape(tensor.shape)

    def known(self, i: int, row: dict[str, Cell]) -> dict[str, Cell]:
        """Return the columns of the model; ignore others, and refuse a row that lacks one."""
        if row.keys() == self.kinds.keys():
            return row
        missing = next((name for name in self.names if name not in row), None)
        if missing is not None:
            raise Refusal(
                400, f"rows[{i}]: the column {missing!r} is missing. Give null for a value that is not known."
            )
        self.ignore([name for name in row if name not in self.kinds])
        return {name: row[name] for name in self.names}

    def ignore(self, others: list[str]) -> None:
        """Log columns that the model does not have, once each; there may be any number of them."""
        new = [name[:100] for name in others if name[:100] not in self._ignored][: _MOST_IGNORED - len(self._ignored)]
        if new:
            self._ignored.update(new)
            log.warning("columns are ignored that the model does not have", extra={"columns": new})

    def check_tensors(self, given: dict[str, Tensor], instead: str = "") -> None:
        """Refuse tensors that are not one per column, all of one length."""
        missing = [name for name in self.names if name not in given]
        if missing:
            raise Refusal(400, f"inputs must be {instead}one per column; {missing[0][:100]!r} is missing.")
        self.ignore([name for name in given if name not in self.kinds])
        n = given[self.names[0]].shape[0]
        for name in self.names:
            tensor = given[name]
            if tensor.shape not in ([n], [n, 1]):
                raise Refusal(400, f"inputs: {name!r} must have the shape [{n}], as the others, got {tensor.shape}.")


class Numbers(Columns):
    """Columns of numbers: rows are a matrix."""

    def __init__(self, names: Sequence[str]) -> None:
        super().__init__(dict.fromkeys(names, "number"))
        self._places = {name: place for place, name in enumerate(names)}

    def inputs(self) -> list[TensorFacts]:
        """All columns in one tensor."""
        return [TensorFacts(MATRIX, "FP64", [-1, len(self.names)]), _IDS]

    def rows(self, given: list[dict[str, Cell]]) -> Array:
        """Rows that came as objects."""
        out = np.empty((len(given), len(self.names)))
        for i, row in enumerate(given):
            for name, value in self.known(i, row).items():
                if not (value is None or type(value) is float or type(value) is int):
                    raise Refusal(400, _wrong(i, name, "a number", value))
                out[i, self._places[name]] = np.nan if value is None else _converted(i, name, "number", value)
        return _moderate(out)

    def tensors(self, given: dict[str, Tensor], binary: dict[str, bytes]) -> Array:
        """Rows that came as tensors: all columns in one, or each in its own."""
        if given.keys() == {MATRIX}:
            return _moderate(self.matrix(given[MATRIX], binary.get(MATRIX)))
        self.check_tensors(given, f"{MATRIX!r} with all columns, or ")
        return _moderate(np.stack([numbers(given[name], binary.get(name)) for name in self.names], axis=1))

    def joined(self, parts: list[Any]) -> Array:
        """Rows of several requests."""
        return np.concatenate(parts)

    def checked(self, shell: Any, rows: Array) -> Rows:  # noqa: ARG002
        """Return rows as a classifier takes them."""
        return as_rows("serve", rows)

    def answers(self, shell: Any, rows: Array, *, certainty: bool, contributions: bool, forecast: bool) -> Answers:
        """Return the answers of a classifier about rows; they are checked, and need not be again."""
        checked = as_rows("serve", rows)
        if forecast:
            probabilities, packed = self._predicted(shell, checked)
        else:
            probabilities, packed = shell.probabilities(shell.model_.losses(checked)), None
        return Answers(
            probabilities,
            shell.model_.certainty(checked) if certainty else None,
            shell.model_.contributions(checked) if contributions else None,
            packed,
        )

    def split(self, rows: Array) -> list[bytes]:
        """Eight bytes per number."""
        return [row.tobytes() for row in rows]

    def pack(self, rows: Array) -> bytes:
        """All rows at once."""
        return rows.tobytes()

    def unpack(self, data: bytes, n: int) -> Array:
        """Rows of the journal."""
        return np.frombuffer(data, dtype=np.float64).reshape(n, len(self.names)).copy()


_TYPES: dict[str, tuple[type, ...]] = {
    "number": (float,),
    "boolean": (bool,),
    "date": (str,),
    "category": (str, float, bool),
    "unknown": (str, float, bool),
}
_SAID = {"number": "a number", "boolean": "true or false", "date": "a date as 2026-01-31 or 2026-01-31T08:00"}
_LONGEST = 1_000  # characters of a text; what is learned of one is shorter


class Mixed(Columns):
    """Columns of several kinds: rows are lists of cells, which the classifier encodes as it learns."""

    def __init__(self, learned: LearnedColumns) -> None:
        super().__init__({each["name"]: each["kind"] for each in learned.describe() if each["kind"] != "drop"})
        self._learned = learned

    def inputs(self) -> list[TensorFacts]:
        """A tensor per column."""
        kinds = {"number": "FP64", "boolean": "BOOL"}
        return [*(TensorFacts(name, kinds.get(kind, "BYTES"), [-1]) for name, kind in self.kinds.items()), _IDS]

    def rows(self, given: list[dict[str, Cell]]) -> list[list[Cell]]:
        """Rows that came as objects."""
        for i, row in enumerate(given):
            for name, cell in self.known(i, row).items():
                kind = self.kinds[name]
                value = row[name] = _converted(i, name, kind, cell)
                if value is not None and not isinstance(value, _TYPES[kind]):
                    raise Refusal(400, _wrong(i, name, _SAID.get(kind, "a text"), value))
                if type(value) is str and len(value) > _LONGEST:
                    raise Refusal(
                        400, f"rows[{i}]: a text must have at most {_LONGEST:,} characters, got {len(value):,}."
                    )
        return self._checked([[row[name] for name in self.names] for row in given])

    def tensors(self, given: dict[str, Tensor], binary: dict[str, bytes]) -> list[list[Cell]]:
        """Rows that came as tensors, one per column; if all are numbers, also all in one."""
        if given.keys() == {MATRIX} and {*self.kinds.values()} == {"number"}:
            found = self.matrix(given[MATRIX], binary.get(MATRIX)).tolist()
            cells = [[None if value != value else value for value in row] for row in found]
            return self.rows([dict(zip(self.names, row, strict=True)) for row in cells])
        self.check_tensors(given)
        found = []
        for name, kind in self.kinds.items():
            tensor, data = given[name], binary.get(name)
            if kind == "number":
                values: list[Cell] = [None if value != value else value for value in numbers(tensor, data).tolist()]
            elif kind in ("category", "unknown") and tensor.datatype not in ("BYTES", "BOOL"):
                values = list(exact_numbers(tensor, data))
            elif kind == "boolean" or tensor.datatype == "BOOL":
                values = list(truths(tensor, data))
            else:
                values = list(texts(tensor, data))
            found.append(values)
        return self.rows([dict(zip(self.names, row, strict=True)) for row in zip(*found, strict=True)])

    def _checked(self, rows: list[list[Cell]]) -> list[list[Cell]]:
        if rows:
            try:
                self._learned.checked(self._table(rows), strict=True)
            except InvalidInputError as error:
                raise Refusal(400, f"{error.subject} {error.must}, got {error.got}.") from error
        return rows

    def joined(self, parts: list[Any]) -> list[list[Cell]]:
        """Rows of several requests."""
        return [row for part in parts for row in part]

    def checked(self, shell: Any, rows: list[list[Cell]]) -> Table:
        """Return rows as a classifier takes them."""
        found: Table = shell.columns_.checked(self._table(rows))
        return found

    def answers(
        self, shell: Any, rows: list[list[Cell]], *, certainty: bool, contributions: bool, forecast: bool
    ) -> Answers:
        """Return the answers of a classifier about rows."""
        table = self._table(rows)
        if forecast:
            probabilities, packed = self._predicted(shell, self.checked(shell, rows))
        else:
            probabilities, packed = shell.predict_proba(table), None
        return Answers(
            probabilities,
            shell.decision_certainty(table) if certainty else None,
            shell.contributions(table) if contributions else None,
            packed,
        )

    def _table(self, rows: list[list[Cell]]) -> dict[str, list[Cell]]:
        return {name: list(column) for name, column in zip(self.names, zip(*rows, strict=True), strict=True)}

    def split(self, rows: list[list[Cell]]) -> list[bytes]:
        """MessagePack, a list per row."""
        return [msgspec.msgpack.encode(row) for row in rows]

    def unpack(self, data: bytes, n: int) -> list[list[Cell]]:
        """Rows of the journal: with the head of a list before them, they are one."""
        found: list[list[Cell]] = msgspec.msgpack.decode(b"\xdd" + n.to_bytes(4, "big") + data)
        return found


def _converted(i: int, name: str, kind: str, value: Cell) -> Cell:
    """Return an integer as a float or, in a category that the float would not identify, as its text."""
    if type(value) is not int:
        return value
    try:
        return str(value) if kind in ("category", "unknown") and abs(value) > 2**53 else float(value)
    except (OverflowError, ValueError):
        raise Refusal(400, f"rows[{i}]: the column {name!r} must hold smaller numbers.") from None


def _wrong(i: int, name: str, must: str, got: Cell) -> str:
    return f"rows[{i}]: the column {name!r} must be {must}, or null, got {got!r:.100}."


def _moderate(found: NDArray[np.float64]) -> Array:
    values = found.reshape(-1)
    # Looking for infinity is slow; skip it when the sum of squares is of moderate size.
    if not np.vdot(values, values) < _LARGEST**2 and not np.nanmax(np.abs(values), initial=0.0) <= _LARGEST:
        raise Refusal(400, f"values must be finite and below {_LARGEST:g} in size, or null where they are not known.")
    return found
