"""Conversion of rows: from JSON or tensors to the form that the model takes, and to bytes for the journal."""

import logging
from abc import ABC, abstractmethod
from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any, NamedTuple

import msgspec
import numpy as np
from numpy.typing import NDArray

from bayesvote.apps.service.tensors import exact_numbers, numbers, texts, truths
from bayesvote.apps.service.types import Cell, RequestError, Tensor, TensorMetadata
from bayesvote.core.checks import Array, InvalidInputError, Labels
from bayesvote.core.rollback import Forecast
from bayesvote.core.rows import Rows, as_rows
from bayesvote.tables import Table, read_table

MATRIX, IDS = "X", "ids"  # names of the inputs that hold all columns, and the rows' ids
_MAX_IGNORED = 100  # names of unknown columns that are logged
_ROWS_AT_ONCE = 1024  # rows whose members' scores are in memory at a time
_LARGEST = 1e100  # as in bayesvote.core.rows, whose error would be raised after the rows are in the journal
_IDS = TensorMetadata(IDS, "BYTES", [-1])

log = logging.getLogger("bayesvote.serve")


class ModelOutputs(NamedTuple):
    """Outputs of a model for some rows, and their packed forecasts."""

    probabilities: Array
    certainty: Array | None = None
    contributions: Array | None = None
    forecast: Array | None = None

    @staticmethod
    def concatenate(parts: Sequence["ModelOutputs"]) -> "ModelOutputs":
        """Return the outputs for the rows of several parts, in order."""
        more = [None if column[0] is None else np.concatenate(column) for column in zip(*parts, strict=True)][1:]
        return ModelOutputs(np.concatenate([part.probabilities for part in parts]), *more)

    def part(self, first: int, last: int) -> "ModelOutputs":
        """Return the outputs for rows first to last."""
        more = [None if array is None else array[first:last] for array in self[1:]]
        return ModelOutputs(self.probabilities[first:last], *more)


class RowFormat(ABC):
    """The columns of a model, and the conversions of its rows."""

    def __init__(self, kinds: dict[str, str]) -> None:
        self.kinds = kinds
        self.names = list(kinds)
        self._ignored: set[str] = set()

    @abstractmethod
    def inputs(self) -> list[TensorMetadata]:
        """Return the metadata of the input tensors."""

    @abstractmethod
    def from_objects(self, given: list[dict[str, Cell]]) -> Any:
        """Convert rows that were sent as JSON objects."""

    @abstractmethod
    def from_tensors(self, given: dict[str, Tensor], binary: dict[str, bytes]) -> Any:
        """Convert rows that were sent as tensors."""

    @abstractmethod
    def concatenate(self, parts: list[Any]) -> Any:
        """Concatenate the rows of several requests."""

    @abstractmethod
    def checked(self, estimator: Any, rows: Any) -> Rows | Table:
        """Return rows in the form that a classifier takes without further checks."""

    def outputs(self, estimator: Any, rows: Any, *, certainty: bool, contributions: bool) -> ModelOutputs:
        """Return the outputs of a classifier. The members score each row once, whatever is requested."""
        checked = self.checked(estimator, rows)
        found = []
        for first in range(0, max(checked.n, 1), _ROWS_AT_ONCE):
            forecast, losses = estimator.forecast(checked.part(first, min(first + _ROWS_AT_ONCE, checked.n)))
            found.append(
                ModelOutputs(
                    estimator.probabilities(losses),
                    estimator.model_.certainty_of(forecast) if certainty else None,
                    estimator.model_.contributions_of(forecast) if contributions else None,
                    forecast.packed(),
                )
            )
        return found[0] if len(found) == 1 else ModelOutputs.concatenate(found)

    def learn(self, estimator: Any, rows: Any, codes: Labels, forecast: Forecast | None = None) -> Array:
        """Let a classifier learn rows; return the probabilities (n, K) of each row before it was learned.

        With a ``forecast`` the labels are late: the weights learn from the forecast.
        """
        learned = estimator.advance(self.checked(estimator, rows), codes, np.ones(len(codes)), forecast)
        found: Array = estimator.probabilities(*learned)
        return found

    @abstractmethod
    def split(self, rows: Any) -> list[bytes]:
        """Serialize each row for the journal. ``unpack`` reads the concatenated bytes."""

    @abstractmethod
    def unpack(self, data: bytes, n: int) -> Any:
        """Read n rows from the journal."""

    def pack(self, rows: Any) -> bytes:
        """Serialize all rows for the journal."""
        return b"".join(self.split(rows))

    def matrix(self, tensor: Tensor, binary: bytes | None) -> Array:
        """Return the numbers of a tensor that holds all columns."""
        d = len(self.names)
        if len(tensor.shape) != 2 or tensor.shape[1] != d:
            raise RequestError(400, f"inputs: {MATRIX}", f"must have the shape [-1, {d}]", str(tensor.shape))
        return numbers(tensor, binary).reshape(tensor.shape)

    def known(self, i: int, row: dict[str, Cell]) -> dict[str, Cell]:
        """Return a row with the model's columns only. A missing column is an error."""
        if row.keys() == self.kinds.keys():
            return row
        missing = next((name for name in self.names if name not in row), None)
        if missing is not None:
            do = "Send null for a missing value."
            raise RequestError(400, f"rows[{i}]:", f"the column {missing!r} is missing", do=do)
        self.ignore([name for name in row if name not in self.kinds])
        return {name: row[name] for name in self.names}

    def ignore(self, others: list[str]) -> None:
        """Log the names of columns that the model does not have, each once and at most 100 of them."""
        new = [name[:100] for name in others if name[:100] not in self._ignored][: _MAX_IGNORED - len(self._ignored)]
        if new:
            self._ignored.update(new)
            log.warning("ignored columns that the model does not have", extra={"columns": new})

    def check_tensors(self, given: dict[str, Tensor], instead: str = "") -> None:
        """Require one tensor per column, all of the same length."""
        missing = [name for name in self.names if name not in given]
        if missing:
            must = f"must be {instead}one per column; {missing[0][:100]!r} is missing"
            raise RequestError(400, "inputs", must)
        self.ignore([name for name in given if name not in self.kinds])
        n = given[self.names[0]].shape[0]
        for name in self.names:
            shape = given[name].shape
            if shape not in ([n], [n, 1]):
                must = f"must have the shape [{n}], like the other columns"
                raise RequestError(400, f"inputs: {name!r}", must, str(shape))


class MatrixFormat(RowFormat):
    """Columns of numbers: rows are a matrix."""

    def __init__(self, names: Sequence[str]) -> None:
        super().__init__(dict.fromkeys(names, "number"))
        self._places = {name: place for place, name in enumerate(names)}

    def inputs(self) -> list[TensorMetadata]:
        """Return the metadata of one tensor for all columns, and of the ids."""
        return [TensorMetadata(MATRIX, "FP64", [-1, len(self.names)]), _IDS]

    def from_objects(self, given: list[dict[str, Cell]]) -> Array:
        """Convert rows that were sent as JSON objects."""
        out = np.empty((len(given), len(self.names)))
        for i, row in enumerate(given):
            for name, value in self.known(i, row).items():
                if not (value is None or type(value) is float or type(value) is int):
                    raise _wrong_type(i, name, "a number", value)
                out[i, self._places[name]] = np.nan if value is None else _converted(i, name, "number", value)
        return _require_moderate(out)

    def from_tensors(self, given: dict[str, Tensor], binary: dict[str, bytes]) -> Array:
        """Convert one tensor with all columns, or one tensor per column."""
        if given.keys() == {MATRIX}:
            return _require_moderate(self.matrix(given[MATRIX], binary.get(MATRIX)))
        self.check_tensors(given, f"{MATRIX!r} with all columns, or ")
        return _require_moderate(np.stack([numbers(given[name], binary.get(name)) for name in self.names], axis=1))

    def concatenate(self, parts: list[Any]) -> Array:
        """Concatenate the rows of several requests."""
        return np.concatenate(parts)

    def checked(self, estimator: Any, rows: Array) -> Rows:  # noqa: ARG002
        """Return rows in the form that a classifier takes."""
        return as_rows("serve", rows)

    def split(self, rows: Array) -> list[bytes]:
        """Serialize each row: eight bytes per number."""
        return [row.tobytes() for row in rows]

    def pack(self, rows: Array) -> bytes:
        """Serialize all rows at once."""
        return rows.tobytes()

    def unpack(self, data: bytes, n: int) -> Array:
        """Read n rows from the journal."""
        return np.frombuffer(data, dtype=np.float64).reshape(n, len(self.names)).copy()


_TYPES: dict[str, tuple[type, ...]] = {
    "number": (float,),
    "boolean": (bool,),
    "date": (str,),
    "category": (str, float, bool),
    "unknown": (str, float, bool),
}
_EXPECTED = {"number": "a number", "boolean": "true or false", "date": "a date as 2026-01-31 or 2026-01-31T08:00"}
_MAX_TEXT = 1_000  # characters of a text; the model keeps fewer


@dataclass(frozen=True)
class ParsedRows:
    """Rows of a table: their cells as the journal keeps them, and the table that was parsed from these."""

    cells: list[list[Cell]]
    table: Table

    def __len__(self) -> int:
        return len(self.cells)

    def __getitem__(self, rows: slice) -> "ParsedRows":
        first, last, _ = rows.indices(len(self))
        return ParsedRows(self.cells[rows], self.table.part(first, last))


class TableFormat(RowFormat):
    """Columns of several kinds: rows are cells, which the classifier encodes while it learns."""

    def __init__(self, estimator: Any) -> None:
        super().__init__(
            {each["name"]: each["kind"] for each in estimator.columns_.describe() if each["kind"] != "drop"}
        )
        self._estimator = estimator

    def inputs(self) -> list[TensorMetadata]:
        """Return the metadata of one tensor per column, and of the ids."""
        kinds = {"number": "FP64", "boolean": "BOOL"}
        return [*(TensorMetadata(name, kinds.get(kind, "BYTES"), [-1]) for name, kind in self.kinds.items()), _IDS]

    def from_objects(self, given: list[dict[str, Cell]]) -> ParsedRows:
        """Convert rows that were sent as JSON objects."""
        cells = []
        for i, row in enumerate(given):
            row = self.known(i, row)
            cells.append([self._cell(i, name, kind, row[name]) for name, kind in self.kinds.items()])
        return self._parsed(cells)

    def _cell(self, i: int, name: str, kind: str, cell: Cell) -> Cell:
        value = _converted(i, name, kind, cell)
        if value is not None and not isinstance(value, _TYPES[kind]):
            raise _wrong_type(i, name, _EXPECTED.get(kind, "a text"), value)
        if type(value) is str and len(value) > _MAX_TEXT:
            must = f"must have at most {_MAX_TEXT:,} characters"
            raise RequestError(400, f"rows[{i}]: a text", must, f"{len(value):,}")
        return value

    def from_tensors(self, given: dict[str, Tensor], binary: dict[str, bytes]) -> ParsedRows:
        """Convert one tensor per column, or one with all columns if all of them are numbers."""
        if given.keys() == {MATRIX} and {*self.kinds.values()} == {"number"}:
            found = self.matrix(given[MATRIX], binary.get(MATRIX)).tolist()
            cells = [[None if value != value else value for value in row] for row in found]
            return self.from_objects([dict(zip(self.names, row, strict=True)) for row in cells])
        self.check_tensors(given)
        columns = []
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
            columns.append(values)
        return self.from_objects([dict(zip(self.names, row, strict=True)) for row in zip(*columns, strict=True)])

    def _parsed(self, cells: list[list[Cell]]) -> ParsedRows:
        """Parse and check rows before they are written to the journal."""
        if not cells:
            return ParsedRows([], Table(0, {}))
        try:
            rows = ParsedRows(cells, self._read(cells))
            self._estimator.columns_.checked(rows.table, strict=True)
        except InvalidInputError as error:
            raise RequestError(400, error.subject, error.must, error.got) from error
        return rows

    def _read(self, cells: list[list[Cell]]) -> Table:
        columns = zip(self.names, zip(*cells, strict=True), strict=True)
        return read_table("serve", {name: list(column) for name, column in columns})

    def concatenate(self, parts: list[Any]) -> ParsedRows:
        """Concatenate the rows of several requests, without parsing them again."""
        if len(parts) == 1:
            return ParsedRows(parts[0].cells, parts[0].table)
        return ParsedRows(
            [row for part in parts for row in part.cells], Table.concatenate([part.table for part in parts])
        )

    def checked(self, estimator: Any, rows: ParsedRows) -> Table:
        """Return rows in the form that a classifier takes, by the kinds of columns that it knows now."""
        found: Table = estimator.columns_.checked(rows.table)
        return found

    def split(self, rows: ParsedRows) -> list[bytes]:
        """Serialize each row as a list in MessagePack."""
        return [msgspec.msgpack.encode(row) for row in rows.cells]

    def unpack(self, data: bytes, n: int) -> ParsedRows:
        """Read n rows from the journal: with the header of a list before them, they are one list."""
        cells: list[list[Cell]] = msgspec.msgpack.decode(b"\xdd" + n.to_bytes(4, "big") + data)
        return ParsedRows(cells, self._read(cells))


def _converted(i: int, name: str, kind: str, value: Cell) -> Cell:
    """Convert an integer to float or, in a category for which the float is not exact, to text."""
    if type(value) is not int:
        return value
    try:
        return str(value) if kind in ("category", "unknown") and abs(value) > 2**53 else float(value)
    except (OverflowError, ValueError):
        raise RequestError(400, f"rows[{i}]: the column {name!r}", "must hold smaller numbers") from None


def _wrong_type(i: int, name: str, expected: str, got: Cell) -> RequestError:
    return RequestError(400, f"rows[{i}]: the column {name!r}", f"must be {expected}, or null", f"{got!r:.100}")


def _require_moderate(found: NDArray[np.float64]) -> Array:
    values = found.reshape(-1)
    # Checking for infinity is slow; skip it when the sum of squares is of moderate size.
    if not np.vdot(values, values) < _LARGEST**2 and not np.nanmax(np.abs(values), initial=0.0) <= _LARGEST:
        raise RequestError(400, "values", f"must be finite and below {_LARGEST:g} in size, or null if they are missing")
    return found
