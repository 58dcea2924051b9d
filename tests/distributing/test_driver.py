"""The driving process is killed at random moments; the next one goes on, and ends with the right bits."""

import os
import random
import signal
import subprocess
import sys
import time
from pathlib import Path

import pytest

from bayesvote.apps.distributed import fit
from bayesvote.io.model_file import dumps
from distributing import driver
from distributing.rows import classifier, shards, write_csv

N_SHARDS = 6
ALL = {f"{stage}/{place:06d}" for stage in ("survey", "train", "weigh", "check") for place in range(N_SHARDS)}


def kept(record: Path) -> set[str]:
    """Stages and shards that a record has."""
    return {f"{path.parent.name}/{path.name}" for path in record.glob("*/??????")}


def start(engine: str, folder: Path, files: list[str]) -> "subprocess.Popen[bytes]":
    (folder / "log").write_text("")
    command = [sys.executable, driver.__file__, engine, *(str(folder / name) for name in ("record", "model", "log"))]
    tests = str(Path(driver.__file__).parents[1])
    return subprocess.Popen([*command, *files], env={**os.environ, "PYTHONPATH": tests})


def kill_at(process: "subprocess.Popen[bytes]", record: Path, n_files: int, pause: float) -> None:
    """Kill a process a moment after its record has so many files, if it has not ended by then."""
    deadline = time.monotonic() + 120
    while len(kept(record)) < n_files and process.poll() is None:
        assert time.monotonic() < deadline, "the driver hangs"
        time.sleep(0.002)
    time.sleep(pause)
    process.send_signal(signal.SIGKILL)
    process.wait(60)


def is_alive(pid: int) -> bool:
    try:
        return Path(f"/proc/{pid}/stat").read_text().rpartition(")")[2].split()[0] != "Z"
    except OSError:
        return False


@pytest.mark.skipif(not Path("/proc").is_dir(), reason="looks for processes in /proc")
@pytest.mark.parametrize(("engine", "n_kills"), [("loop", 4), ("dask", 2)])
def test_a_killed_driver_is_taken_up_where_it_was(engine: str, n_kills: int, tmp_path: Path) -> None:
    files = write_csv(tmp_path, shards(N_SHARDS, 400))
    expected = dumps(fit(files, classifier(n_members=36)))
    chance, record, workers = random.Random(engine), tmp_path / "record", set()
    moments = sorted(chance.sample(range(1, len(ALL)), n_kills))  # files that the record has when the driver dies
    for n_files in moments:
        before = kept(record)
        process = start(engine, tmp_path, files)
        kill_at(process, record, n_files, chance.uniform(0, 0.05))
        assert not set((tmp_path / "log").read_text().split()) & before
        assert before <= kept(record)
        if engine == "dask":
            workers |= {int(pid) for pid in (tmp_path / "log.pids").read_text().split()}
    before = kept(record)
    assert len(before) >= moments[-1]
    process = start(engine, tmp_path, files)
    assert process.wait(120) == 0
    assert set((tmp_path / "log").read_text().split()) == ALL - before
    assert (tmp_path / "model").read_bytes() == expected
    deadline = time.monotonic() + 60
    while any(map(is_alive, workers)):  # those of drivers that were killed end by themselves
        assert time.monotonic() < deadline, "workers outlive their driver"
        time.sleep(0.1)
