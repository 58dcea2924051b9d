"""Nothing that was acknowledged is lost: crashes, spoilt files, full disks; and clear errors where nothing helps."""

import multiprocessing
import os
import shutil
import sqlite3
from collections.abc import Callable
from functools import partial
from pathlib import Path

import pytest

from bayesvote.apps import service
from bayesvote.apps.service.folder import Folder
from bayesvote.apps.service.journal import Journal
from bayesvote.io.model_file import dumps
from service.conftest import wait_until
from service.helpers import Api, objects, rows_of, said
from service_kills import trial


def taught(serve: Callable[..., Api], n: int = 250, every: int = 100, **options: object) -> Api:
    """A service whose model has learned rows, one request each for the last ones, with two rows that wait."""
    api = serve(every=every, **options)
    api.put("m", columns=["a", "b", "c"], classes=["no", "yes"], members="perceptron", n_members=10)
    X, y = rows_of(n)
    api.post("infer", rows=objects(X[:4]), ids=["0", "1", "2", "3"])
    for first in range(4, n, 41):
        api.post("learn", rows=objects(X[first : first + 41]), labels=said(y[first : first + 41]))
    api.post("label", ids=["0", "1"], labels=said(y[:2]))
    return api


def crashed(api: Api, tmp_path: Path) -> Path:
    """The folder as a crash would leave it now."""
    target = tmp_path / "crashed"
    shutil.copytree(api.folder, target)
    return target


def test_after_a_crash_everything_is_there_bit_for_bit(serve: Callable[..., Api], tmp_path: Path) -> None:
    api = taught(serve)
    wait_until(lambda: api.learner.models["m"].saved > 0)
    again = serve(crashed(api, tmp_path))
    assert again.learner.models["m"].saved < again.learner.models["m"].rows == 248
    assert again.state() == api.state()
    _X, y = rows_of(4)
    assert again.post("label", ids=["2", "3"], labels=said(y[2:]))["learned"] == 2
    assert again.post("label", ids=["0"], labels=said(y[:1]))["repeated"] == 1
    report = service.check(again.folder)
    assert report.bad == []
    assert any("bit for bit" in line for line in report.good)


def test_a_shutdown_takes_a_snapshot(serve: Callable[..., Api]) -> None:
    api = taught(serve, every=10_000)
    state = api.state()
    api.stop()
    folder = Folder(api.folder)
    assert folder.journal.snapshots(1)[0].rows == 248
    folder.close()
    assert serve().state() == state


@pytest.mark.parametrize("place", [30, -5])
def test_a_flipped_snapshot_falls_back_to_the_one_before(serve: Callable[..., Api], place: int) -> None:
    api = taught(serve)
    state = api.state()
    api.stop()
    latest = sorted(api.folder.glob("snapshots/*"))[-1]
    data = bytearray(latest.read_bytes())
    data[place] ^= 1
    latest.write_bytes(data)
    report = service.check(api.folder)
    assert len(report.bad) == 1
    assert latest.name in report.bad[0]
    assert serve().state() == state


def test_a_check_finds_a_snapshot_that_the_journal_does_not_lead_to(serve: Callable[..., Api]) -> None:
    """Another model in its place, whole in itself, as by a mistake with copies."""
    api = taught(serve)
    api.stop()
    first, *_, latest = sorted(api.folder.glob("snapshots/*"))
    assert service.check(api.folder).bad == []
    latest.write_bytes(first.read_bytes())
    assert service.check(api.folder).bad == [f"snapshots/{latest.name} is not what the journal leads to"]


def test_a_check_tells_what_sqlite_finds(serve: Callable[..., Api], tmp_path: Path) -> None:
    """Damage that none of the service's own questions meets: here, rows that break a rule of their table."""
    folder = crashed(taught(serve), tmp_path)
    with sqlite3.connect(folder / "journal.sqlite") as db:
        db.execute("PRAGMA writable_schema = ON")
        db.execute(
            "UPDATE sqlite_schema SET sql = replace(sql, 'ids TEXT', 'ids TEXT NOT NULL') WHERE name = 'journal'"
        )
    db.close()
    report = service.check(folder)
    assert report.good == []
    assert len(report.bad) == 1
    assert report.bad[0].startswith("journal.sqlite is damaged: NULL value in journal.ids")


def test_without_any_snapshot_the_error_names_the_files(serve: Callable[..., Api]) -> None:
    api = taught(serve)
    api.stop()
    for file in api.folder.glob("snapshots/*"):
        file.write_bytes(file.read_bytes()[:-9])
    with pytest.raises(ValueError, match=r"the model m must have a snapshot .* that can be loaded.*checksum"):
        serve()


@pytest.mark.parametrize(
    ("sql", "word"),
    [
        (
            "DELETE FROM journal WHERE first = (SELECT max(first) FROM journal WHERE first < 200)",
            "go on whole after row",
        ),
        ("UPDATE journal SET first = first + 1 WHERE first = (SELECT max(first) FROM journal)", "got row"),
        ("UPDATE journal SET codes = rows WHERE first = (SELECT max(first) FROM journal)", "altered"),
        ("UPDATE journal SET ids = replace(ids, '0', '9')", "altered"),
    ],
)
def test_a_journal_with_a_hole_is_refused(serve: Callable[..., Api], tmp_path: Path, sql: str, word: str) -> None:
    folder = crashed(taught(serve, every=10_000), tmp_path)
    with sqlite3.connect(folder / "journal.sqlite") as db:
        db.execute(sql)
    db.close()
    with pytest.raises(ValueError, match=word):
        serve(folder)
    assert word in " ".join(service.check(folder).bad)


def test_a_journal_that_was_cut_is_refused(serve: Callable[..., Api], tmp_path: Path) -> None:
    folder = crashed(taught(serve), tmp_path)
    wal = folder / "journal.sqlite-wal"
    os.truncate(wal, wal.stat().st_size // 2)
    with pytest.raises(ValueError, match=r"must hold the .* transactions that were acknowledged, got .* cut off"):
        serve(folder)
    assert "acknowledged" in service.check(folder).bad[0]
    (folder / "acknowledged").unlink()  # as the error says
    assert serve(folder).learner.models["m"].rows < 248


def test_a_database_that_was_cut_is_refused(serve: Callable[..., Api]) -> None:
    api = taught(serve, n=2000)
    api.stop()
    path = api.folder / "journal.sqlite"
    os.truncate(path, path.stat().st_size // 2)
    with pytest.raises(sqlite3.DatabaseError):
        serve()
    with pytest.raises(ValueError, match="must hold a journal that SQLite can use"):
        service.serve(service.Options(api.folder, port=0))
    assert service.check(api.folder).bad


def test_another_file_is_not_taken_for_a_journal(tmp_path: Path) -> None:
    with sqlite3.connect(tmp_path / "journal.sqlite") as db:
        db.execute("CREATE TABLE other(x)")
    db.close()
    with pytest.raises(ValueError, match="something else"):
        Journal(tmp_path)


def _try_to_open(folder: Path, said: "multiprocessing.Queue[str]") -> None:
    try:
        Folder(folder)
    except ValueError as error:
        said.put(str(error))


def test_one_process_per_folder(api: Api) -> None:
    context = multiprocessing.get_context("forkserver")
    said_: multiprocessing.Queue[str] = context.Queue()
    process = context.Process(target=_try_to_open, args=(api.folder, said_))
    process.start()
    reason = said_.get(timeout=60)
    process.join()
    assert f"must be served by one process, got another one, process {os.getpid()}" in reason


def test_a_full_disk_refuses_and_loses_nothing(serve: Callable[..., Api]) -> None:
    api = taught(serve)
    X, y = rows_of(2000, seed=3)
    db = api.learner.folder.journal._db
    db.execute(f"PRAGMA max_page_count={db.execute('PRAGMA page_count').fetchone()[0] + 2}")
    reason = api.refused("learn", 507, rows=objects(X), labels=said(y))
    assert "full" in reason
    assert "Nothing was changed" in reason
    assert api.post("infer", rows=objects(X[:3]))["outputs"]  # predictions go on
    assert "disk_errors_total 1.0" in api.request("GET", "/metrics").text
    db.execute("PRAGMA max_page_count=1000000")
    assert api.post("learn", rows=objects(X), labels=said(y))["learned"] == 2000
    assert api.learner.counters.trouble == ""
    state = api.state()
    api.stop()
    assert serve().state() == state


@pytest.mark.skipif(os.geteuid() == 0, reason="root writes anywhere")
def test_a_folder_that_cannot_be_written_to(tmp_path: Path) -> None:
    tmp_path.chmod(0o500)
    with pytest.raises(ValueError, match="must be one that can be written to, got Permission denied"):
        Folder(tmp_path / "folder")
    tmp_path.chmod(0o700)


def test_a_file_is_no_folder(tmp_path: Path) -> None:
    (tmp_path / "file").touch()
    with pytest.raises(ValueError, match="must be one that can be written to"):
        Folder(tmp_path / "file")


def test_pruning_keeps_what_two_snapshots_need(serve: Callable[..., Api]) -> None:
    api = taught(serve, n=900, prune=True)
    journal = api.learner.folder.journal
    wait_until(lambda: (journal.oldest_row(1) or 0) >= journal.snapshots(1)[-1].rows > 0)
    assert len(journal.snapshots(1)) == len(list(api.folder.glob("snapshots/*"))) == 2
    state = api.state()
    api.stop()
    assert sorted(api.folder.glob("snapshots/*"))[-1].exists()
    latest = sorted(api.folder.glob("snapshots/*"))[-1]
    latest.unlink()
    assert serve().state() == state


def test_pruned_rows_lose_their_ids(serve: Callable[..., Api]) -> None:
    """Or the folder would grow with every row; those of rows that are kept stay, so that repeating is harmless."""
    api = serve(every=10, prune=True)
    api.put("m", columns=["a", "b", "c"], classes=["no", "yes"], members="perceptron", n_members=10)
    X, y = rows_of(30)
    for first in (0, 10, 20):
        rows = slice(first, first + 10)
        api.post("learn", rows=objects(X[rows]), labels=said(y[rows]), ids=[str(k) for k in range(first, first + 10)])
        wait_until(partial(snapshot_of, api, first + 10))
    api.tidy()  # of two snapshots, the older one has 20 rows
    left = [str(k) for k in range(20, 30)]
    assert list(api.learner.folder.journal.learned(1, [str(k) for k in range(30)])) == left
    again = api.post("learn", rows=objects(X[20:]), labels=said(y[20:]), ids=left)
    assert (again["learned"], again["repeated"]) == (0, 10)
    assert "no row '3'" in api.refused("label", 404, ids=["3"], labels=["no"])


def test_pruning_a_model_leaves_the_ids_of_another(serve: Callable[..., Api]) -> None:
    api = serve(every=10, prune=True)
    X, y = rows_of(30)
    ids = [str(k) for k in range(10)]
    for name in ("m", "other"):
        api.put(name, columns=["a", "b", "c"], classes=["no", "yes"], members="perceptron", n_members=10)
    body = {"rows": objects(X[:10]), "labels": said(y[:10]), "ids": ids}
    assert api.request("POST", "/v2/models/other/learn", body).status_code == 200
    for first in (0, 10, 20):
        rows = slice(first, first + 10)
        api.post("learn", rows=objects(X[rows]), labels=said(y[rows]), ids=[str(k) for k in range(first, first + 10)])
        wait_until(partial(snapshot_of, api, first + 10))
    api.tidy()
    journal = api.learner.folder.journal
    assert not journal.learned(api.learner.models["m"].number, ids)
    assert list(journal.learned(api.learner.models["other"].number, ids)) == ids
    again = api.request("POST", "/v2/models/other/learn", body).json()
    assert (again["learned"], again["repeated"]) == (0, 10)


def snapshot_of(api: Api, rows: int) -> bool:
    """Tell whether there is a snapshot of the model m after these rows."""
    return api.learner.models["m"].saved == rows


def test_nothing_cannot_be_copied(tmp_path: Path) -> None:
    with pytest.raises(ValueError, match=r"must hold journal.sqlite to be copied, got no such file"):
        service.copy(tmp_path / "none", tmp_path / "copy")
    assert not (tmp_path / "copy").exists()


def test_a_copy_while_it_is_served(serve: Callable[..., Api], tmp_path: Path) -> None:
    api = taught(serve)
    service.copy(api.folder, tmp_path / "copy")
    assert serve(tmp_path / "copy").state() == api.state()
    with pytest.raises(ValueError, match="must be empty"):
        service.copy(api.folder, tmp_path / "copy")


def test_a_copy_has_the_retired_and_notices_a_missing_end(serve: Callable[..., Api], tmp_path: Path) -> None:
    api = taught(serve)
    api.put("other", columns=2, classes=[0, 1], members="perceptron")
    assert api.request("DELETE", "/v2/models/other").status_code == 204
    service.copy(api.folder, tmp_path / "copy")
    names = {file.name for file in (api.folder / "retired").iterdir()}
    assert names == {file.name for file in (tmp_path / "copy" / "retired").iterdir()} != set()
    with sqlite3.connect(tmp_path / "copy" / "journal.sqlite") as database:
        database.execute("UPDATE transactions SET count = count - 1")
    database.close()
    with pytest.raises(ValueError, match="it was cut off or replaced by an older one"):
        Folder(tmp_path / "copy")


def test_files_of_models_are_checked_and_those_left_alone_are_told(
    serve: Callable[..., Api], tmp_path: Path, caplog: pytest.LogCaptureFixture
) -> None:
    api = taught(serve)
    other = dumps(api.learner.models["m"].estimator)
    api.stop()
    (api.folder / "cut.safetensors").write_bytes(other[:100])
    (api.folder / "new.safetensors").write_bytes(other)
    report = service.check(api.folder)
    assert "new.safetensors can be taken up" in report.good
    assert any("cut.safetensors must be a model that can be served" in each for each in report.bad)
    (api.folder / "cut.safetensors").rename(api.folder / "we ird.safetensors")
    folder = Folder(api.folder)
    with pytest.raises(ValueError, match=r"must be named by 1 to 64 letters"):
        folder.open_models()
    folder.close()
    (api.folder / "we ird.safetensors").rename(tmp_path / "away")
    serve().stop()
    assert "left alone" not in caplog.text
    serve().stop()  # new is served since, by the same file
    assert "left alone" not in caplog.text
    (api.folder / "m.safetensors").write_bytes(other)
    serve()
    assert "a file is left alone" in caplog.text


def test_a_model_that_fails_to_learn_goes_on_after_a_restart(
    serve: Callable[..., Api], monkeypatch: pytest.MonkeyPatch
) -> None:
    api = taught(serve)
    X, y = rows_of(5, seed=9)
    served = api.learner.models["m"]
    with monkeypatch.context() as patch:
        patch.setattr(served.columns, "learn", lambda *_: 1 / 0)
        assert api.request("POST", "/v2/models/m/learn", {"rows": objects(X), "labels": said(y)}).status_code == 500
    assert "Restart" in api.request("POST", "/v2/models/m/infer", {"rows": objects(X)}).json()["error"]
    api.stop()
    again = serve()
    assert again.learner.models["m"].rows == 253
    assert again.post("infer", rows=objects(X))["outputs"]


def test_killed_at_random_moments(tmp_path: Path) -> None:
    found = trial(tmp_path / "folder", kills=20, longest=0.1)
    assert found.journalled >= found.acknowledged > 20


def test_the_first_snapshot_is_the_start(serve: Callable[..., Api]) -> None:
    api = taught(serve)
    first = api.learner.folder.journal.snapshots(1)[-1]
    assert first.rows == 0
    twin = serve(api.folder.parent / "other")
    twin.put("m", columns=["a", "b", "c"], classes=["no", "yes"], members="perceptron", n_members=10)
    assert (api.folder / "snapshots" / first.file).read_bytes() == dumps(twin.learner.models["m"].estimator)


def test_a_new_folder_is_its_owners_only(api: Api, tmp_path: Path) -> None:
    service.copy(api.folder, tmp_path / "copy")
    for folder in (api.folder, api.folder / "snapshots", tmp_path / "copy"):
        assert folder.stat().st_mode & 0o077 == 0
