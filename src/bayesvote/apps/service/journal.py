"""The journal: one SQLite file with everything that must not be lost.

It holds the learned rows in their order, the rows that wait for their labels, and the names of the snapshots of the
models. One thread at a time calls its methods. What they write is durable at the end of the transaction.
"""

import math
import os
import sqlite3
import zlib
from collections.abc import Iterable, Iterator, Sequence
from contextlib import contextmanager, suppress
from pathlib import Path
from typing import Any, NamedTuple

import msgspec

from bayesvote.core.checks import InputError

FILE, HEAD = "journal.sqlite", "acknowledged"
VERSION = 2  # of the format: version 1 had no forecasts
_APPLICATION = 0x62766F74  # "bvot", by which the file command identifies the file

_SCHEMA = """
CREATE TABLE models(
    number INTEGER PRIMARY KEY, name TEXT NOT NULL, made REAL NOT NULL, retired REAL, spec TEXT NOT NULL,
    expired INTEGER NOT NULL DEFAULT 0, crowded INTEGER NOT NULL DEFAULT 0);
CREATE UNIQUE INDEX served ON models(name) WHERE retired IS NULL;
CREATE TABLE journal(
    number INTEGER NOT NULL, first INTEGER NOT NULL, n INTEGER NOT NULL, rows BLOB NOT NULL, codes BLOB NOT NULL,
    made BLOB, ids TEXT, sum INTEGER NOT NULL, forecasts BLOB, PRIMARY KEY(number, first));
CREATE TABLE pending(
    place INTEGER PRIMARY KEY AUTOINCREMENT, number INTEGER NOT NULL, id TEXT NOT NULL, made REAL NOT NULL,
    row BLOB NOT NULL, probabilities BLOB NOT NULL, forecast BLOB, UNIQUE(number, id));
CREATE INDEX oldest ON pending(number, place);
CREATE TABLE learned(number INTEGER NOT NULL, id TEXT NOT NULL, code INTEGER NOT NULL, PRIMARY KEY(number, id))
    WITHOUT ROWID;
CREATE TABLE snapshots(
    number INTEGER NOT NULL, rows INTEGER NOT NULL, file TEXT NOT NULL, figures TEXT NOT NULL, sum INTEGER NOT NULL,
    PRIMARY KEY(number, rows));
CREATE TABLE transactions(count INTEGER NOT NULL);
INSERT INTO transactions VALUES (0);
"""

_MIGRATE = f"""
BEGIN IMMEDIATE;
ALTER TABLE journal ADD COLUMN forecasts BLOB;
ALTER TABLE pending ADD COLUMN forecast BLOB;
PRAGMA user_version={VERSION};
COMMIT;
"""


_encode = msgspec.json.Encoder().encode


def as_json(value: Any) -> str:
    """Return JSON, the form in which SQLite takes lists."""
    return _encode(value).decode()


class ModelRow(NamedTuple):
    """A served model."""

    number: int
    name: str
    made: float
    spec: str
    expired: int
    crowded: int


class JournalEntry(NamedTuple):
    """Rows that were learned as one chunk, after ``first`` earlier rows.

    ``made`` holds the predicted probabilities, NaN for rows that were sent with their labels. ``sum`` is a checksum of
    this entry and all entries before it. ``forecasts`` has the format of ``forecasts.to_bytes``.
    """

    first: int
    n: int
    rows: bytes
    codes: bytes
    made: bytes | None
    ids: str | None
    sum: int
    forecasts: bytes | None


class Snapshot(NamedTuple):
    """A model after a number of rows: its file, its scores as JSON, and the checksum of the journal up to there."""

    rows: int
    file: str
    figures: str
    sum: int


class PendingRow(NamedTuple):
    """A row that waits for its label. Its packed forecast is None if version 1 predicted it."""

    row: bytes
    probabilities: bytes
    forecast: bytes | None


def checksum(
    before: int, rows: bytes, codes: bytes, made: bytes | None, ids: str | None, forecasts: bytes | None
) -> int:
    """Return the checksum of an entry, given that of the entry before it."""
    for part in (rows, codes, made or b"", (ids or "").encode(), forecasts or b""):
        before = zlib.crc32(part, before)
    return before


class Journal:
    """The journal of a folder."""

    def __init__(self, folder: Path, *, read_only: bool = False) -> None:
        self.path = folder / FILE
        uri = f"{self.path.resolve().as_uri()}?mode={'ro' if read_only else 'rwc'}"
        self._db = sqlite3.connect(uri, uri=True, isolation_level=None, check_same_thread=False, timeout=10)
        try:
            if not read_only:
                self._prepare()
            self._version = self._checked_version()
            if not read_only:
                self._db.execute(
                    "UPDATE transactions SET count = count"
                )  # SQLite also opens files that it cannot write to
            self._count = int(self._db.execute("SELECT count FROM transactions").fetchone()[0])
            self._check_head(folder / HEAD)
            if not read_only and self._version < VERSION:
                self._db.executescript(_MIGRATE)
                self._version = VERSION
            self._head = -1 if read_only else os.open(folder / HEAD, os.O_RDWR | os.O_CREAT, 0o600)
        except BaseException:
            self._db.close()
            raise

    def close(self) -> None:
        """Close the file."""
        self._db.close()
        if self._head >= 0:
            os.close(self._head)

    def _prepare(self) -> None:
        if self._db.execute("PRAGMA journal_mode=WAL").fetchone()[0] != "wal":
            raise InputError(
                "serve", str(self.path), "must be on a file system that supports the write-ahead log of SQLite"
            )
        self._db.execute("PRAGMA synchronous=FULL")
        self._db.execute("PRAGMA wal_autocheckpoint=4000")
        if not self._db.execute("SELECT count(*) FROM sqlite_schema").fetchone()[0]:
            pragmas = f"PRAGMA application_id={_APPLICATION}; PRAGMA user_version={VERSION};"
            self._db.executescript(f"BEGIN IMMEDIATE; {_SCHEMA} {pragmas} COMMIT;")

    def _checked_version(self) -> int:
        """Return the version of the file. Raise an error if it has another format."""
        application = self._db.execute("PRAGMA application_id").fetchone()[0]
        version = self._db.execute("PRAGMA user_version").fetchone()[0]
        if application != _APPLICATION or not 1 <= version <= VERSION:
            must, got = f"must be a journal of version {VERSION} or earlier", f"version {version}"
            got = got if application == _APPLICATION else "another kind of file"
            raise InputError("serve", str(self.path), must, got, "Update bayesvote, or choose another folder.")
        return int(version)

    def _check_head(self, head: Path) -> None:
        # Written after each commit: it may be behind the journal, but is ahead of it only if the journal was truncated.
        with suppress(FileNotFoundError):
            text = head.read_bytes().strip()
            if not text.isdigit():
                text = b"0"  # a power failure can leave anything in a file that is not synchronised
            if int(text) > self._count:
                raise InputError(
                    "serve",
                    str(self.path),
                    f"must have the {int(text):,} acknowledged transactions",
                    f"{self._count:,}: it was truncated, or replaced by an older file",
                    f"Restore {FILE} with {FILE}-wal from a backup, or delete {head} to continue with the rest.",
                )

    @contextmanager
    def transaction(self) -> Iterator[None]:
        """Run an atomic transaction. It is on disk when the block ends."""
        self._db.execute("BEGIN IMMEDIATE")
        try:
            yield
            self._db.execute("UPDATE transactions SET count = count + 1")
            self._db.execute("COMMIT")
        except BaseException:
            with suppress(sqlite3.Error):
                self._db.execute("ROLLBACK")
            raise
        self._count += 1
        with suppress(OSError):
            os.pwrite(self._head, self.head, 0)

    # Models

    def models(self) -> list[ModelRow]:
        """Return the served models."""
        found = self._db.execute(
            "SELECT number, name, made, spec, expired, crowded FROM models WHERE retired IS NULL ORDER BY number"
        )
        return [ModelRow(*row) for row in found]

    def add_model(self, name: str, made: float, spec: str) -> int:
        """Add a model; return its number, which is never used again."""
        self._db.execute("INSERT INTO models(name, made, spec) VALUES (?, ?, ?)", (name, made, spec))
        return int(self._db.execute("SELECT last_insert_rowid()").fetchone()[0])

    def spec(self, number: int) -> str:
        """Return the request or file that a model was created from."""
        return str(self._db.execute("SELECT spec FROM models WHERE number = ?", (number,)).fetchone()[0])

    def retire(self, number: int, when: float) -> None:
        """Mark a model as retired. Its journal is kept; its pending rows are deleted."""
        self._db.execute("UPDATE models SET retired = ? WHERE number = ?", (when, number))
        self._db.execute("DELETE FROM pending WHERE number = ?", (number,))

    # Rows that wait for their labels

    def count_pending(self, number: int) -> int:
        """Return the number of pending rows of a model."""
        return int(self._db.execute("SELECT count(*) FROM pending WHERE number = ?", (number,)).fetchone()[0])

    def pending(self, number: int, ids: Sequence[str]) -> dict[str, PendingRow]:
        """Return the pending rows with these ids."""
        sql = """
            SELECT id, row, probabilities, forecast FROM pending
            WHERE number = ? AND id IN (SELECT value FROM json_each(?))"""
        return {id_: PendingRow(*waiting) for id_, *waiting in self._db.execute(sql, (number, as_json(ids)))}

    def keep(self, number: int, rows: dict[str, PendingRow], now: float) -> None:
        """Add pending rows."""
        # One statement for all rows: every statement releases the interpreter lock, which costs time.
        parts: list[bytes] = []
        places, at = [], 1
        for id_, waiting in rows.items():
            place: list[Any] = [id_]
            for part in (waiting.row, waiting.probabilities, waiting.forecast or b""):
                place += (at, len(part))
                parts.append(part)
                at += len(part)
            places.append(place)
        sql = """
            INSERT INTO pending(number, id, made, row, probabilities, forecast)
            SELECT ?, json_extract(value, '$[0]'), ?,
                substr(?, json_extract(value, '$[1]'), json_extract(value, '$[2]')),
                substr(?, json_extract(value, '$[3]'), json_extract(value, '$[4]')),
                substr(?, json_extract(value, '$[5]'), json_extract(value, '$[6]'))
            FROM json_each(?) ORDER BY key"""
        data = b"".join(parts)
        self._db.execute(sql, (number, now, data, data, data, as_json(places)))

    def drop(self, number: int, ids: Iterable[str]) -> None:
        """Delete pending rows."""
        sql = "DELETE FROM pending WHERE number = ? AND id IN (SELECT value FROM json_each(?))"
        self._db.execute(sql, (number, as_json(list(ids))))

    def latest(self) -> float:
        """Return the time of the latest pending row, or 0 if there are none."""
        return float(self._db.execute("SELECT coalesce(max(made), 0) FROM pending").fetchone()[0])

    def oldest(self) -> float:
        """Return the time of the oldest pending row, or infinity if there are none."""
        found = self._db.execute("SELECT made FROM pending ORDER BY place LIMIT 1").fetchone()
        return math.inf if found is None else float(found[0])

    def expire(self, before: float, most: int = 10_000) -> dict[int, int]:
        """Delete pending rows that are older than a time; return their number by model."""
        sql = """
            DELETE FROM pending WHERE place IN (SELECT place FROM pending ORDER BY place LIMIT ?) AND made < ?
            RETURNING number"""
        return self._counted("expired", [row[0] for row in self._db.execute(sql, (most, before))])

    def crowd_out(self, number: int, count: int) -> int:
        """Delete the oldest pending rows of a model; return their number."""
        sql = """
            DELETE FROM pending WHERE place IN
            (SELECT place FROM pending WHERE number = ? ORDER BY place LIMIT ?) RETURNING number"""
        return sum(self._counted("crowded", [row[0] for row in self._db.execute(sql, (number, count))]).values())

    def _counted(self, column: str, numbers: list[int]) -> dict[int, int]:
        found = {number: numbers.count(number) for number in set(numbers)}
        for number, count in found.items():
            self._db.execute(f"UPDATE models SET {column} = {column} + ? WHERE number = ?", (count, number))
        return found

    # Rows that were learned

    def learned(self, number: int, ids: Sequence[str]) -> dict[str, int]:
        """Return the class indices of the learned rows with these ids."""
        sql = "SELECT id, code FROM learned WHERE number = ? AND id IN (SELECT value FROM json_each(?))"
        return dict(self._db.execute(sql, (number, as_json(ids))).fetchall())

    def append(self, number: int, entry: JournalEntry, codes: dict[str, int]) -> None:
        """Add rows to learn, and the class indices of those with ids."""
        self._db.execute("INSERT INTO journal VALUES (?, ?, ?, ?, ?, ?, ?, ?, ?)", (number, *entry))
        if codes:
            pair = "json_extract(value, '$[0]'), json_extract(value, '$[1]')"
            sql = f"INSERT INTO learned SELECT ?, {pair} FROM json_each(?)"
            self._db.execute(sql, (number, as_json(list(codes.items()))))

    def entries(self, number: int, first: int = 0) -> Iterator[JournalEntry]:
        """Yield the entries from a row on."""
        # Read 100 entries at a time, so that no cursor stays open while the caller works.
        forecasts = "forecasts" if self._version > 1 else "NULL"  # a folder that is opened read-only is not converted
        sql = f"""
            SELECT first, n, rows, codes, made, ids, sum, {forecasts} FROM journal
            WHERE number = ? AND first >= ? ORDER BY first LIMIT 100"""
        while found := self._db.execute(sql, (number, first)).fetchall():
            yield from (JournalEntry(*row) for row in found)
            first = found[-1][0] + 1

    def oldest_row(self, number: int) -> int | None:
        """Return the first row of a model that is still in the journal."""
        found = self._db.execute("SELECT min(first) FROM journal WHERE number = ?", (number,)).fetchone()[0]
        return None if found is None else int(found)

    def prune(self, number: int, before: int, most: int = 1_000) -> int:
        """Delete some of the entries before a row, and their ids; return their number."""
        sql = """
            DELETE FROM journal WHERE number = ? AND first IN
            (SELECT first FROM journal WHERE number = ? AND first + n <= ? ORDER BY first LIMIT ?) RETURNING ids"""
        found = self._db.execute(sql, (number, number, before, most)).fetchall()
        for (ids,) in found:
            if ids is not None:
                sql = "DELETE FROM learned WHERE number = ? AND id IN (SELECT value FROM json_each(?))"
                self._db.execute(sql, (number, ids))
        return len(found)

    # Snapshots

    def snapshots(self, number: int) -> list[Snapshot]:
        """Return the snapshots of a model, latest first."""
        sql = "SELECT rows, file, figures, sum FROM snapshots WHERE number = ? ORDER BY rows DESC"
        return [Snapshot(*row) for row in self._db.execute(sql, (number,))]

    def snapshot_files(self) -> set[str]:
        """Return the files of all snapshots, including those of retired models."""
        return {row[0] for row in self._db.execute("SELECT file FROM snapshots")}

    def add_snapshot(self, number: int, snapshot: Snapshot) -> None:
        """Add a snapshot whose file is on disk."""
        self._db.execute("INSERT OR REPLACE INTO snapshots VALUES (?, ?, ?, ?, ?)", (number, *snapshot))

    def drop_snapshot(self, number: int, rows: int) -> None:
        """Remove a snapshot."""
        self._db.execute("DELETE FROM snapshots WHERE number = ? AND rows = ?", (number, rows))

    # The whole file

    def faults(self) -> list[str]:
        """Return the errors that SQLite finds in the file."""
        found = [row[0] for row in self._db.execute("PRAGMA integrity_check")]
        return [] if found == ["ok"] else found

    @property
    def head(self) -> bytes:
        """The content of the file ``acknowledged``: the number of transactions."""
        return b"%020d\n" % self._count

    def copy_to(self, path: Path) -> None:
        """Copy the file while it is in use, with the backup function of SQLite."""
        with sqlite3.connect(path) as target:
            self._db.backup(target, pages=1000)
        target.close()
