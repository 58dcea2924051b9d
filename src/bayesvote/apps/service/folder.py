"""A folder of models: one learning process at a time, snapshots, and recovery from them and the journal."""

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
from bayesvote.apps.service.journal import FILE, HEAD, Entry, Journal, ModelRow, Snapshot, checksum
from bayesvote.apps.service.models import CHUNK, Figures, Served, from_file
from bayesvote.apps.service.types import NAME, NAME_RULE
from bayesvote.core.checks import InputError
from bayesvote.core.files import replace_file
from bayesvote.estimators import OnlineClassifier
from bayesvote.io.model_file import ModelFileError, dumps

LOCK, SNAPSHOTS, RETIRED, ENDING = "lock", "snapshots", "retired", ".safetensors"
KEPT = 2  # snapshots of a model: if the last one is spoilt, the one before and the journal give the same model

log = logging.getLogger("bayesvote.serve")


class Folder:
    """A folder that this process alone may learn in, until it is closed."""

    def __init__(self, path: Path) -> None:
        self.path = path
        try:
            for folder in (path, path / SNAPSHOTS, path / RETIRED):
                folder.mkdir(mode=0o700, exist_ok=True)  # rows and labels are nobody else's business
                if not os.access(folder, os.W_OK | os.X_OK):
                    raise PermissionError(errno.EACCES, os.strerror(errno.EACCES), str(folder))
            self._lock = _locked(path / LOCK)
        except OSError as error:
            raise InputError(
                "serve", f"the folder {path}", "must be one that can be written to", error.strerror or str(error)
            ) from error
        try:
            self.journal = Journal(path)
        except BaseException:
            os.close(self._lock)
            raise

    def close(self) -> None:
        """Let others have the folder."""
        self.journal.close()
        os.close(self._lock)

    def open_models(self) -> list[Served]:
        """Models as they were, and those whose files are new."""
        self._clean()
        found = [recovered(self.path, self.journal, row) for row in self.journal.models()]
        known = {served.name: served.number for served in found}
        for file, name in model_files(self.path):
            if name not in known:
                estimator, digest = model_of(file, name)
                found.append(self.add(name, estimator, json.dumps({"file": file.name, "sha256": digest})))
                log.info("took up a model", extra={"model": name, "file": file.name})
            elif json.loads(self.journal.spec(known[name])).get("sha256") != _digest(file.read_bytes()):
                reason = "a model of that name is served already. DELETE that one and start again to serve the file"
                log.warning("a file is left alone", extra={"file": file.name, "reason": reason})
        return found

    def _clean(self) -> None:
        """Remove snapshots that a crash kept from being noted."""
        noted = self.journal.snapshot_files()
        for file in (self.path / SNAPSHOTS).iterdir():
            if file.name not in noted and file.name.endswith((ENDING, ".tmp")):
                file.unlink()

    def add(self, name: str, estimator: OnlineClassifier[Any], spec: str) -> Served:
        """Take up a new model: it is in the folder when this returns."""
        with self.journal.transaction():
            number = self.journal.add_model(name, time.time(), spec)
            served = Served(number, name, estimator)
            self.journal.add_snapshot(number, self.write(served, dumps(estimator)))
        return served

    def write(self, served: Served, data: bytes) -> Snapshot:
        """Write the file of a snapshot that was taken just now; return what the journal must note."""
        snapshot = snapshot_of(served)
        self.write_file(snapshot, data)
        return snapshot

    def write_file(self, snapshot: Snapshot, data: bytes) -> None:
        """Write the file of a snapshot; it is on the disk when this returns."""
        replace_file(self.path / SNAPSHOTS / snapshot.file, data)

    def note(self, served: Served, snapshot: Snapshot, *, prune: bool) -> None:
        """Note a snapshot whose file is written, and let go of older ones; the first stays while the journal does."""
        with self.journal.transaction():
            self.journal.add_snapshot(served.number, snapshot)
            old = [each for each in self.journal.snapshots(served.number)[KEPT:] if each.rows or prune]
            for each in old:
                self.journal.drop_snapshot(served.number, each.rows)
        served.saved = snapshot.rows
        for each in old:
            with suppress(OSError):
                (self.path / SNAPSHOTS / each.file).unlink()

    def prune(self, served: Served) -> int:
        """Forget some of the journal that no snapshot needs any more."""
        kept = self.journal.snapshots(served.number)
        oldest = self.journal.oldest_row(served.number)
        if len(kept) < KEPT or oldest is None or oldest >= kept[-1].rows:
            return 0
        with self.journal.transaction():
            return self.journal.prune(served.number, kept[-1].rows)

    def retire(self, served: Served) -> None:
        """Serve a model no longer: its last state goes to the folder of the retired."""
        stem = f"{served.name}.{served.number}"
        replace_file(self.path / RETIRED / f"{stem}{ENDING}", dumps(served.estimator))
        with self.journal.transaction():
            self.journal.retire(served.number, time.time())
        with suppress(FileNotFoundError):  # the file it came from, or it would be taken up again
            os.replace(self.path / f"{served.name}{ENDING}", self.path / RETIRED / f"{stem}.first{ENDING}")


def model_files(path: Path) -> list[tuple[Path, str]]:
    """Saved models that lie in a folder, and their names."""
    return [(file, file.name.removesuffix(ENDING)) for file in sorted(path.glob(f"*{ENDING}"))]


def model_of(file: Path, name: str) -> tuple[OnlineClassifier[Any], str]:
    """Load a saved model that can be served, and the checksum of its file."""
    if not NAME.fullmatch(name):
        shown = str(file).encode(errors="backslashreplace").decode()
        raise InputError("serve", shown, f"must be named by {NAME_RULE}", ascii(name), "Rename it.")
    try:
        data = file.read_bytes()
        return from_file(data), _digest(data)
    except (OSError, ValueError) as error:
        reason = str(error).removesuffix(".")
        raise InputError("serve", str(file), "must be a model that can be served", reason) from error


def _digest(data: bytes) -> str:
    return hashlib.sha256(data).hexdigest()


def snapshot_of(served: Served) -> Snapshot:
    """What the journal is to note of a snapshot that is taken now."""
    file = f"{served.name}.{served.number}-{served.rows:012d}{ENDING}"
    return Snapshot(served.rows, file, json.dumps(served.figures.to_json()), served.sum)


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
            f"another one, process {owner}",
            "Stop that one first, or choose another folder.",
        ) from None
    os.ftruncate(handle, 0)
    os.pwrite(handle, b"%d\n" % os.getpid(), 0)
    return handle


def recovered(path: Path, journal: Journal, row: ModelRow) -> Served:
    """Return a model from its latest snapshot that is whole, and what the journal has after it."""
    spoilt = []
    for snapshot in journal.snapshots(row.number):
        try:
            served = from_snapshot(path, row, snapshot)
        except (OSError, ModelFileError) as error:
            log.warning("a snapshot is spoilt", extra={"model": row.name, "file": snapshot.file, "reason": str(error)})
            spoilt.append(f"{snapshot.file}: {error}")
            continue
        for entries in chunks(journal, served):
            replay(served, entries)
        served.pending, served.expired, served.crowded = journal.count_pending(row.number), row.expired, row.crowded
        return served
    raise InputError(
        "serve",
        f"the model {row.name}",
        f"must have a snapshot in {path / SNAPSHOTS} that can be loaded",
        "; ".join(spoilt) or "none",
        "Restore the folder from a copy.",
    )


def from_snapshot(path: Path, row: ModelRow, snapshot: Snapshot) -> Served:
    """Return a model as it was saved."""
    served = Served(row.number, row.name, from_file((path / SNAPSHOTS / snapshot.file).read_bytes()))
    served.figures = Figures.from_json(json.loads(snapshot.figures))
    served.rows = served.saved = snapshot.rows
    served.sum = snapshot.sum
    return served


def chunks(journal: Journal, served: Served, until: int | None = None) -> Iterator[list[Entry]]:
    """Entries that follow what a model has learned, up to a row, in lists of about one chunk."""
    found: list[Entry] = []
    for entry in journal.entries(served.number, served.rows):
        if until is not None and entry.first >= until:
            break
        found.append(entry)
        if sum(each.n for each in found) >= CHUNK:
            yield found
            found = []
    if found:
        yield found


def replay(served: Served, entries: list[Entry]) -> None:
    """Learn what the journal says, after checking that nothing is missing or altered."""
    at, total = served.rows, served.sum
    k = len(served.classes)
    for entry in entries:
        total = checksum(total, entry.rows, entry.codes, entry.made, entry.ids, entry.forecasts)
        if entry.first != at or entry.sum != total:
            raise InputError(
                "serve",
                f"the journal of the model {served.name}",
                f"must go on whole after row {at:,}",
                f"row {entry.first:,}" if entry.first != at else "an entry that was altered",
                "Restore journal.sqlite with journal.sqlite-wal from a copy.",
            )
        at += entry.n
    blank = [np.full(entry.n * k, np.nan).tobytes() for entry in entries]
    made = b"".join(entry.made or empty for entry, empty in zip(entries, blank, strict=True))
    rows = served.columns.unpack(b"".join(entry.rows for entry in entries), at - served.rows)
    codes = np.frombuffer(b"".join(entry.codes for entry in entries), dtype=np.int32).astype(np.intp)
    forecasts = Forecasts.from_bytes([(entry.n, entry.forecasts) for entry in entries], served.forecast_size)
    served.learn(rows, codes, np.frombuffer(made).reshape(-1, k), forecasts)
    served.sum = total


def copy(path: Path, target: Path) -> None:
    """Copy a folder while it is served: the journal by SQLite's own means, then the snapshots it names."""
    if not (path / FILE).is_file():
        raise InputError("serve", f"the folder {path}", f"must hold {FILE} to be copied", "no such file")
    target.mkdir(mode=0o700, parents=True, exist_ok=True)
    if any(target.iterdir()):
        raise InputError("serve", f"the folder {target}", "must be empty to take a copy", "one with files in it")
    (target / SNAPSHOTS).mkdir()
    journal = Journal(path, read_only=True)
    try:
        for _ in range(5):  # a snapshot may be let go of between the two; the next try has the newer ones
            journal.copy_to(target / FILE)
            if _copied_snapshots(path, target):
                shutil.copytree(path / RETIRED, target / RETIRED)
                return
    finally:
        journal.close()
    raise InputError("serve", f"the folder {path}", "must hold the snapshots that its journal names", "others")


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
