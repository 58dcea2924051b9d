"""Verification of a folder: the journal, every snapshot, and that replaying the journal gives the snapshots."""

import sqlite3
from pathlib import Path
from typing import NamedTuple

from bayesvote.apps.service.folder import SNAPSHOTS, chunks, from_snapshot, model_files, model_of, replay
from bayesvote.apps.service.journal import FILE, Journal, ModelRow, Snapshot
from bayesvote.apps.service.models import ServedModel
from bayesvote.core.checks import InputError
from bayesvote.io.model_file import dumps


class CheckReport(NamedTuple):
    """Results of a check: a message for each check that passed, and for each that failed."""

    good: list[str]
    bad: list[str]


def check(path: Path) -> CheckReport:
    """Check a folder without changing it. It may be in use by a server."""
    report = CheckReport([], [])
    if not (path / FILE).is_file():
        raise InputError("serve", f"the folder {path}", f"must hold {FILE} to be checked", "no such file")
    try:
        journal = Journal(path, read_only=True)
    except (sqlite3.DatabaseError, InputError) as error:
        report.bad.append(f"{FILE} cannot be used: {error}")
        return report
    try:
        faults = journal.faults()
        if faults:
            report.bad.append(f"{FILE} is damaged: {'; '.join(faults[:5])}")
            return report
        report.good.append(f"{FILE} is valid")
        served = journal.models()
        for row in served:
            _check_model(path, journal, row, report)
        _check_files(path, {row.name for row in served}, report)
    except sqlite3.DatabaseError as error:
        report.bad.append(f"{FILE} cannot be read: {error}")
    finally:
        journal.close()
    return report


def _check_model(path: Path, journal: Journal, row: ModelRow, report: CheckReport) -> None:
    """Replay the journal from the oldest snapshot, and compare the model with each later snapshot."""
    served: ServedModel | None = None
    snapshots = journal.snapshots(row.number)[::-1]
    for snapshot in snapshots:
        try:
            saved = from_snapshot(path, row, snapshot)
        except (OSError, ValueError) as error:
            report.bad.append(f"{SNAPSHOTS}/{snapshot.file} cannot be loaded: {error}")
            continue
        try:
            if served is not None:
                _replay(journal, served, snapshot.rows)
                _compare(served, saved, snapshot, report)
        except InputError as error:
            report.bad.append(str(error))
            return
        served = saved if served is None else served
    if served is None:
        report.bad.append(f"{row.name}: no snapshot can be loaded")
        return
    try:
        _replay(journal, served, None)
    except InputError as error:
        report.bad.append(str(error))
        return
    waiting = journal.count_pending(row.number)
    report.good.append(f"{row.name}: {served.rows:,} rows learned, {waiting:,} wait for their labels")


def _check_files(path: Path, served: set[str], report: CheckReport) -> None:
    """Load the model files that the next start would add."""
    for file, name in model_files(path):
        if name in served:
            continue
        try:
            model_of(file, name)
        except InputError as error:
            report.bad.append(str(error))
        else:
            report.good.append(f"{file.name} can be served")


def _replay(journal: Journal, served: ServedModel, until: int | None) -> None:
    for entries in chunks(journal, served, until):
        replay(served, entries)


def _compare(served: ServedModel, saved: ServedModel, snapshot: Snapshot, report: CheckReport) -> None:
    if served.rows == snapshot.rows and dumps(served.estimator) == dumps(saved.estimator):
        report.good.append(f"{SNAPSHOTS}/{snapshot.file} equals the replayed journal, bit for bit")
    else:
        report.bad.append(f"{SNAPSHOTS}/{snapshot.file} differs from the replayed journal")
