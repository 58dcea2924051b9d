"""A folder of models for one learning process: snapshots, and recovery from snapshots and journal."""

import errno
import hashlib
import json
import logging
import os
import shutil
import time
from collections.abc import Iterator
from contextlib import suppress
from pathlib import Path
from typing import Any

import numpy as np

from bayesvote.apps.service.forecasts import Forecasts
from bayesvote.apps.service.journal import FILE, HEAD, Journal, JournalEntry, ModelRow, Snapshot, checksum
from bayesvote.apps.service.models import CHUNK, RunningScores, ServedModel, from_file
from bayesvote.apps.service.types import NAME, NAME_RULE
from bayesvote.core.checks import InputError
from bayesvote.core.files import replace_file
from bayesvote.estimators import OnlineClassifier
from bayesvote.io.model_file import ModelFileError, dumps

LOCK, SNAPSHOTS, RETIRED, ENDING = "lock", "snapshots", "retired", ".safetensors"
KEPT = 2  # snapshots of a model: if the latest is corrupted, the one before it and the journal give the same model

log = logging.getLogger("bayesvote.serve")


class Folder:
    """A folder that is locked by this process until it is closed."""

    def __init__(self, path: Path) -> None:
        self.path = path
        try:
            for folder in (path, path / SNAPSHOTS, path / RETIRED):
                folder.mkdir(mode=0o700, exist_ok=True)  # rows and labels are private
                if not os.access(folder, os.W_OK | os.X_OK):
                    raise PermissionError(errno.EACCES, os.strerror(errno.EACCES), str(folder))
            self._lock = _locked(path / LOCK)
        except OSError as error:
            raise InputError("serve", f"the folder {path}", "must be writable", error.strerror or str(error)) from error
        try:
            self.journal = Journal(path)
        except BaseException:
            os.close(self._lock)
            raise

    def close(self) -> None:
        """Release the folder."""
        self.journal.close()
        os.close(self._lock)

    def open_models(self) -> list[ServedModel]:
        """Recover the models, and add those of new model files."""
        self._clean()
        found = [recovered(self.path, self.journal, row) for row in self.journal.models()]
        known = {served.name: served.number for served in found}
        for file, name in model_files(self.path):
            if name not in known:
                estimator, digest = model_of(file, name)
                found.append(self.add(name, estimator, json.dumps({"file": file.name, "sha256": digest})))
                log.info("added a model", extra={"model": name, "file": file.name})
            elif json.loads(self.journal.spec(known[name])).get("sha256") != _digest(file.read_bytes()):
                reason = "another model has this name. DELETE it and restart to serve the file"
                log.warning("ignored a model file", extra={"file": file.name, "reason": reason})
        return found

    def _clean(self) -> None:
        """Delete snapshot files that are not in the journal because of a crash."""
        noted = self.journal.snapshot_files()
        for file in (self.path / SNAPSHOTS).iterdir():
            if file.name not in noted and file.name.endswith((ENDING, ".tmp")):
                file.unlink()

    def add(self, name: str, estimator: OnlineClassifier[Any], spec: str) -> ServedModel:
        """Add a new model. It is on disk when this returns."""
        with self.journal.transaction():
            number = self.journal.add_model(name, time.time(), spec)
            served = ServedModel(number, name, estimator)
            self.journal.add_snapshot(number, self.write(served, dumps(estimator)))
        return served

    def write(self, served: ServedModel, data: bytes) -> Snapshot:
        """Write the file of a snapshot of the current state; return its entry for the journal."""
        snapshot = snapshot_of(served)
        self.write_file(snapshot, data)
        return snapshot

    def write_file(self, snapshot: Snapshot, data: bytes) -> None:
        """Write the file of a snapshot. It is on disk when this returns."""
        replace_file(self.path / SNAPSHOTS / snapshot.file, data)

    def note(self, served: ServedModel, snapshot: Snapshot, *, prune: bool) -> None:
        """Add a snapshot to the journal and delete older ones. The first one is kept as long as its journal is."""
        with self.journal.transaction():
            self.journal.add_snapshot(served.number, snapshot)
            old = [each for each in self.journal.snapshots(served.number)[KEPT:] if each.rows or prune]
            for each in old:
                self.journal.drop_snapshot(served.number, each.rows)
        served.saved = snapshot.rows
        for each in old:
            with suppress(OSError):
                (self.path / SNAPSHOTS / each.file).unlink()

    def prune(self, served: ServedModel) -> int:
        """Delete some of the journal entries that no snapshot needs."""
        kept = self.journal.snapshots(served.number)
        oldest = self.journal.oldest_row(served.number)
        if len(kept) < KEPT or oldest is None or oldest >= kept[-1].rows:
            return 0
        with self.journal.transaction():
            return self.journal.prune(served.number, kept[-1].rows)

    def retire(self, served: ServedModel) -> None:
        """Stop serving a model. Its last state is written to the folder of retired models."""
        stem = f"{served.name}.{served.number}"
        replace_file(self.path / RETIRED / f"{stem}{ENDING}", dumps(served.estimator))
        with self.journal.transaction():
            self.journal.retire(served.number, time.time())
        with suppress(FileNotFoundError):  # the model file, or the next start would add it again
            os.replace(self.path / f"{served.name}{ENDING}", self.path / RETIRED / f"{stem}.first{ENDING}")


def model_files(path: Path) -> list[tuple[Path, str]]:
    """Return the model files in a folder, and the names of their models."""
    return [(file, file.name.removesuffix(ENDING)) for file in sorted(path.glob(f"*{ENDING}"))]


def model_of(file: Path, name: str) -> tuple[OnlineClassifier[Any], str]:
    """Load a model file; return the model and the checksum of the file."""
    if not NAME.fullmatch(name):
        shown = str(file).encode(errors="backslashreplace").decode()
        raise InputError("serve", shown, f"must have a name of {NAME_RULE}", ascii(name), "Rename it.")
    try:
        data = file.read_bytes()
        return from_file(data), _digest(data)
    except (OSError, ValueError) as error:
        reason = str(error).removesuffix(".")
        raise InputError("serve", str(file), "must be a model that can be served", reason) from error


def _digest(data: bytes) -> str:
    return hashlib.sha256(data).hexdigest()


def snapshot_of(served: ServedModel) -> Snapshot:
    """Return the journal's entry for a snapshot of the current state."""
    file = f"{served.name}.{served.number}-{served.rows:012d}{ENDING}"
    return Snapshot(served.rows, file, json.dumps(served.scores.to_json()), served.sum)


def _locked(path: Path) -> int:
    import fcntl

    handle = os.open(path, os.O_RDWR | os.O_CREAT, 0o600)
    try:
        fcntl.flock(handle, fcntl.LOCK_EX | fcntl.LOCK_NB)
    except BlockingIOError:
        owner = os.read(handle, 20).decode(errors="replace").strip() or "unknown"
        os.close(handle)
        raise InputError(
            "serve",
            f"the folder {path.parent}",
            "must be served by one process",
            f"a second one; process {owner} serves it",
            "Stop that process first, or choose another folder.",
        ) from None
    os.ftruncate(handle, 0)
    os.pwrite(handle, b"%d\n" % os.getpid(), 0)
    return handle


def recovered(path: Path, journal: Journal, row: ModelRow) -> ServedModel:
    """Recover a model from its latest valid snapshot and the journal entries after it."""
    corrupted = []
    for snapshot in journal.snapshots(row.number):
        try:
            served = from_snapshot(path, row, snapshot)
        except (OSError, ModelFileError) as error:
            log.warning(
                "a snapshot is corrupted", extra={"model": row.name, "file": snapshot.file, "reason": str(error)}
            )
            corrupted.append(f"{snapshot.file}: {error}")
            continue
        for entries in chunks(journal, served):
            replay(served, entries)
        served.pending, served.expired, served.crowded = journal.count_pending(row.number), row.expired, row.crowded
        return served
    raise InputError(
        "serve",
        f"the model {row.name}",
        f"must have a valid snapshot in {path / SNAPSHOTS}",
        "; ".join(corrupted) or "none",
        "Restore the folder from a backup.",
    )


def from_snapshot(path: Path, row: ModelRow, snapshot: Snapshot) -> ServedModel:
    """Return the model of a snapshot."""
    served = ServedModel(row.number, row.name, from_file((path / SNAPSHOTS / snapshot.file).read_bytes()))
    served.scores = RunningScores.from_json(json.loads(snapshot.figures))
    served.rows = served.saved = snapshot.rows
    served.sum = snapshot.sum
    return served


def chunks(journal: Journal, served: ServedModel, until: int | None = None) -> Iterator[list[JournalEntry]]:
    """Yield the entries that a model has not learned yet, up to a row, in lists of about one chunk."""
    found: list[JournalEntry] = []
    for entry in journal.entries(served.number, served.rows):
        if until is not None and entry.first >= until:
            break
        found.append(entry)
        if sum(each.n for each in found) >= CHUNK:
            yield found
            found = []
    if found:
        yield found


def replay(served: ServedModel, entries: list[JournalEntry]) -> None:
    """Learn the rows of some entries, after checking that none is missing or altered."""
    at, total = served.rows, served.sum
    k = len(served.classes)
    for entry in entries:
        total = checksum(total, entry.rows, entry.codes, entry.made, entry.ids, entry.forecasts)
        if entry.first != at or entry.sum != total:
            raise InputError(
                "serve",
                f"the journal of the model {served.name}",
                f"must be complete and unaltered after row {at:,}",
                f"row {entry.first:,}" if entry.first != at else "an entry that was altered",
                "Restore journal.sqlite with journal.sqlite-wal from a backup.",
            )
        at += entry.n
    blank = [np.full(entry.n * k, np.nan).tobytes() for entry in entries]
    made = b"".join(entry.made or empty for entry, empty in zip(entries, blank, strict=True))
    rows = served.format.unpack(b"".join(entry.rows for entry in entries), at - served.rows)
    codes = np.frombuffer(b"".join(entry.codes for entry in entries), dtype=np.int32).astype(np.intp)
    forecasts = Forecasts.from_bytes([(entry.n, entry.forecasts) for entry in entries], served.forecast_size)
    served.learn(rows, codes, np.frombuffer(made).reshape(-1, k), forecasts)
    served.sum = total


def copy(path: Path, target: Path) -> None:
    """Copy a folder while it is in use: first the journal, then the snapshots that it names."""
    if not (path / FILE).is_file():
        raise InputError("serve", f"the folder {path}", f"must hold {FILE} to be copied", "no such file")
    target.mkdir(mode=0o700, parents=True, exist_ok=True)
    if any(target.iterdir()):
        raise InputError("serve", f"the folder {target}", "must be empty", "a folder with files")
    (target / SNAPSHOTS).mkdir()
    journal = Journal(path, read_only=True)
    try:
        for _ in range(5):  # a snapshot may be deleted in between; the next attempt copies the newer ones
            journal.copy_to(target / FILE)
            if _copied_snapshots(path, target):
                shutil.copytree(path / RETIRED, target / RETIRED)
                return
    finally:
        journal.close()
    raise InputError(
        "serve",
        f"the folder {path}",
        "must hold the snapshots that its journal names",
        "files that changed during each of five attempts",
    )


def _copied_snapshots(path: Path, target: Path) -> bool:
    copied = Journal(target, read_only=True)
    try:
        files = [each.file for row in copied.models() for each in copied.snapshots(row.number)]
        (target / HEAD).write_bytes(copied.head)
    finally:
        copied.close()
    try:
        for file in files:
            shutil.copy2(path / SNAPSHOTS / file, target / SNAPSHOTS / file)
    except FileNotFoundError:
        return False
    return True
