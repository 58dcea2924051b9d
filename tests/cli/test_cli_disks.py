"""Faults of disks: full ones, folders that cannot be written, and power cuts that lose what was not synced."""

import errno
import json
import os
import random
import shutil
import subprocess
import sys
import tempfile
from pathlib import Path
from typing import Any

import pytest

from bayesvote import BayesianEnsembleClassifier, load, save
from bayesvote.apps.cli import predictions
from bayesvote.core import files as _files
from cli.helpers import Cli, rows, write_csv
from cli.test_cli_resume import same

OPTIONS = ("--members", "perceptron", "--n-members", 5, "--chunk-size", 50, "--classes", "no,yes")


def outputs(folder: Path) -> tuple[object, ...]:
    folder.mkdir(exist_ok=True)
    files = ("-o", folder / "model", "--predictions", folder / "p.csv", "--checkpoint", folder / "state")
    return (*files, "--checkpoint-every", 60)


def full_after(monkeypatch: pytest.MonkeyPatch, calls: int) -> None:
    """Let the disk be full after so many syncs."""
    fsync, left = os.fsync, [calls]

    def fails(handle: int) -> None:
        left[0] -= 1
        if left[0] < 0:
            raise OSError(errno.ENOSPC, os.strerror(errno.ENOSPC))
        fsync(handle)

    monkeypatch.setattr(os, "fsync", fails)


@pytest.mark.parametrize("calls", [0, 1, 2, 5, 9])
def test_a_full_disk_is_named_and_costs_nothing(
    cli: Cli, tmp_path: Path, monkeypatch: pytest.MonkeyPatch, calls: int
) -> None:
    file = write_csv(tmp_path / "rows.csv")
    assert cli("run", file, *OPTIONS, *outputs(tmp_path / "whole")).code == 0
    with monkeypatch.context() as patch:
        full_after(patch, calls)
        refused = cli("run", file, *OPTIONS, *outputs(tmp_path / "full"))
    assert refused.code == 1
    assert "No space left on device. Free some space" in refused.err
    assert str(tmp_path / "full") in refused.err
    if (tmp_path / "full" / "state").exists():
        assert f"saved in {tmp_path / 'full' / 'state'}: run the same command with --resume" in refused.err
    assert ".tmp" not in refused.err
    assert not [path for path in (tmp_path / "full").iterdir() if path.name.endswith(".tmp")]
    assert cli("run", file, *OPTIONS, *outputs(tmp_path / "full"), "--resume").code == 0
    assert same(tmp_path / "full", tmp_path / "whole")


@pytest.mark.skipif(not os.path.exists("/dev/full"), reason="a system without a full device")
def test_the_figures_are_shown_though_the_model_cannot_be_saved(cli: Cli, tmp_path: Path) -> None:
    file, state = write_csv(tmp_path / "rows.csv"), tmp_path / "state"
    for more, said in (
        (("-o", "/dev/full"), "The model is lost. --checkpoint FILE would have saved it."),
        (("-o", "/dev/full", "--checkpoint", state), f"The state after 400 rows is saved in {state}"),
        (("-o", tmp_path / "m", "--report", "/dev/full"), f"The model is in {tmp_path / 'm'}."),
    ):
        failed = cli("run", file, *OPTIONS, *more)
        assert failed.code == 1
        assert "balanced accuracy" in failed.out
        assert said in failed.err
        assert "bayesvote: /dev/full: No space left on device." in failed.err
    figures = json.loads(cli("run", file, *OPTIONS, "-o", "/dev/full", "--json").out)
    assert (figures["rows"], figures["model"]) == (400, None)


@pytest.mark.skipif(not os.path.exists("/dev/full"), reason="a system without a full device")
@pytest.mark.parametrize("unbuffered", ["", "1"])
def test_a_full_standard_output_is_named(tmp_path: Path, unbuffered: str) -> None:
    save(BayesianEnsembleClassifier(n_members=3, random_state=0).fit(*rows(50)), tmp_path / "m")
    file = write_csv(tmp_path / "rows.csv")
    for arguments in (
        ("inspect", tmp_path / "m"),
        ("inspect", tmp_path / "m", "--json"),
        ("predict", tmp_path / "m", file),
    ):
        with open("/dev/full", "w") as full:
            command = [sys.executable, "-m", "bayesvote", *map(str, arguments)]
            environment = {**os.environ, "PYTHONUNBUFFERED": unbuffered}
            done = subprocess.run(command, stdout=full, stderr=subprocess.PIPE, text=True, env=environment)
        assert done.returncode == 1
        assert done.stderr.startswith("bayesvote: standard output: No space left on device.")
        assert done.stderr.count("\n") == 1


def test_a_model_survives_a_full_disk(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    X, y = rows(50)
    model = BayesianEnsembleClassifier(n_members=3, random_state=0).fit(X, y)
    save(model, tmp_path / "m")
    before = (tmp_path / "m").read_bytes()
    model.partial_fit(X, y)
    full_after(monkeypatch, 0)
    with pytest.raises(OSError, match=r"No space left on device: '.*m'"):
        save(model, tmp_path / "m")
    assert (tmp_path / "m").read_bytes() == before
    assert [path.name for path in tmp_path.iterdir()] == ["m"]


AS_NOBODY = """
import os, sys
from bayesvote.apps.cli import main
from bayesvote.apps.cli import app, learn, predict, saved, training
from bayesvote import BayesianEnsembleClassifier
os.getuid() or os.setuid(65534)  # root may write everywhere
sys.exit(main(sys.argv[1:]))
"""


@pytest.mark.skipif(not hasattr(os, "setuid"), reason="a system without users")
def test_a_folder_that_cannot_be_written_is_told_at_once() -> None:
    with tempfile.TemporaryDirectory() as place:
        folder = Path(place)
        folder.chmod(0o755)
        file, model, closed = write_csv(folder / "rows.csv"), folder / "model", folder / "closed"
        save(BayesianEnsembleClassifier(n_members=3, random_state=0).fit(*rows(50)), model)
        closed.mkdir()
        closed.chmod(0o555)
        for arguments in (
            ("run", file, "-o", closed / "m"),
            ("run", file, "--checkpoint", closed / "s"),
            ("run", file, "--predictions", closed / "p.csv"),
            ("predict", model, file, "-o", closed / "p.csv"),
            ("merge", model, model, "-o", closed / "m"),
        ):
            command = [sys.executable, "-c", AS_NOBODY, *map(str, arguments)]
            done = subprocess.run(command, capture_output=True, text=True)
            assert done.returncode == 2, done.stderr
            assert "must be a file that can be written" in done.stderr
            assert "once more" not in done.stderr  # nothing was read before
        assert list(closed.iterdir()) == []


class Disk:
    """Notes what a run does to its files, and makes what a power cut may leave of it.

    A file holds what was written before its last sync, and any part of what was written since; a name holds what it
    held at the last sync of its folder, or any of the files that it was given since.
    """

    def __init__(self, folder: Path, monkeypatch: pytest.MonkeyPatch) -> None:
        self.folder = folder
        self.synced: dict[str, bytes] = {}  # by name: what is sure to be there
        self.moments: list[dict[str, list[bytes | None]]] = []  # by name: all that it may hold after a cut
        fsync, replace = os.fsync, os.replace

        def noted_sync(handle: int) -> None:
            path = os.readlink(f"/proc/self/fd/{handle}")
            self.cut()
            fsync(handle)
            if os.path.isdir(path):
                self.synced = {name: (folder / name).read_bytes() for name in self.names()}
            elif path == str(folder / "p.csv") and "p.csv" in self.synced:
                self.synced["p.csv"] = (folder / "p.csv").read_bytes()
            self.cut()

        def noted_replace(source: Any, target: Any) -> None:
            self.cut()
            replace(source, target)
            self.cut()

        monkeypatch.setattr(os, "fsync", noted_sync)
        monkeypatch.setattr(os, "replace", noted_replace)

    def names(self) -> list[str]:
        return [name for name in ("model", "p.csv", "state") if (self.folder / name).exists()]

    def cut(self) -> None:
        """Note what each file may hold if the power goes now."""
        found: dict[str, list[bytes | None]] = {}
        for name in ("model", "p.csv", "state"):
            sure = self.synced.get(name)
            found[name] = [sure]
            if (self.folder / name).exists():
                now = (self.folder / name).read_bytes()
                found[name].append(now)
                if name == "p.csv":  # grows in place: the end may be lost, or be there as zeros
                    old = len(sure or b"")
                    found[name] += [now[: (old + len(now)) // 2], now[:old] + bytes(len(now) - old)]
        self.moments.append(found)


@pytest.mark.skipif(not os.path.isdir("/proc/self/fd"), reason="needs /proc")
def test_a_power_cut_at_any_moment_costs_nothing(cli: Cli, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    file = write_csv(tmp_path / "rows.csv")
    assert cli("run", file, *OPTIONS, *outputs(tmp_path / "whole")).code == 0
    with monkeypatch.context() as patch:
        (tmp_path / "run").mkdir()
        disk = Disk(tmp_path / "run", patch)
        assert cli("run", file, *OPTIONS, *outputs(tmp_path / "run")).code == 0
    assert len(disk.moments) > 20
    rng = random.Random(0)
    for found in disk.moments:
        after = tmp_path / "after"
        after.mkdir()
        for name, contents in found.items():
            content = rng.choice(contents)
            if content is not None:
                (after / name).write_bytes(content)
        if (after / "model").exists():
            load(after / "model")  # the old one or the new one, never half of one
        done = cli("run", file, *OPTIONS, *outputs(after), "--resume")
        assert done.code == 0, done.err
        assert same(after, tmp_path / "whole")
        shutil.rmtree(after)


def test_predictions_reach_the_disk_before_their_checkpoint(
    cli: Cli, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    done: list[str] = []
    sync, replaced = predictions.PredictionFile.sync, _files.replace_file

    def noted_sync(self: predictions.PredictionFile) -> list[Any]:
        found = sync(self)
        done.append("predictions")
        return found

    def noted_replace(path: Any, data: bytes) -> None:
        done.append(Path(path).name)
        replaced(path, data)

    monkeypatch.setattr(predictions.PredictionFile, "sync", noted_sync)
    monkeypatch.setattr("bayesvote.apps.cli.checkpoint.replace_file", noted_replace)
    assert cli("run", write_csv(tmp_path / "rows.csv"), *OPTIONS, *outputs(tmp_path / "run")).code == 0
    assert done[:2] == ["predictions", "state"]
    assert done == ["predictions", "state"] * (len(done) // 2)
