"""Pipes that stay open, signals, and going on with rows that come only once."""

import os
import signal
import subprocess
import sys
import time
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path

import pytest

from bayesvote import load
from bayesvote.apps.cli.checkpoint import Checkpoint
from cli.helpers import Cli, write_csv, write_libsvm
from cli.test_cli_resume import wait_for

SMALL = ("--n-members", "5")
TEXTS = "island,mass,species\n" + "".join(
    f"{('Dream', 'Biscoe', 'Torgersen')[i % 3]},{(i * 37) % 11},{'AB'[(i % 3 == 0) ^ (i % 17 == 0)]}\n"
    for i in range(400)
)


@contextmanager
def started(*arguments: object) -> Iterator[subprocess.Popen[bytes]]:
    command = [sys.executable, "-m", "bayesvote", *map(str, arguments)]
    with subprocess.Popen(command, stdin=subprocess.PIPE, stdout=subprocess.PIPE, stderr=subprocess.PIPE) as run:
        try:
            yield run
        finally:
            run.kill()


def send(run: subprocess.Popen[bytes], text: str | bytes) -> None:
    assert run.stdin is not None
    run.stdin.write(text.encode() if isinstance(text, str) else text)
    run.stdin.flush()


@pytest.fixture(scope="module")
def models(tmp_path_factory: pytest.TempPathFactory) -> Path:
    folder = tmp_path_factory.mktemp("models")
    write_csv(folder / "rows.csv")
    (folder / "texts.csv").write_text(TEXTS)
    for name in ("rows", "texts"):
        command = [
            sys.executable,
            "-m",
            "bayesvote",
            "run",
            str(folder / f"{name}.csv"),
            *SMALL,
            "-o",
            str(folder / name),
        ]
        subprocess.run(command, check=True, capture_output=True)
    return folder


@pytest.mark.parametrize("name", ["rows", "texts"])
def test_predict_answers_each_line_as_it_comes(models: Path, name: str) -> None:
    header, *lines = (models / f"{name}.csv").read_text().splitlines(keepends=True)
    with started("predict", models / name, "-") as run:
        assert run.stdout is not None
        send(run, header)
        send(run, lines[0])
        assert run.stdout.readline() == b"row,predicted\n"
        assert run.stdout.readline().startswith(b"1,")
        for i, line in enumerate(lines[1:4], start=2):  # nothing is sent before the answer is there
            send(run, line)
            assert run.stdout.readline().startswith(f"{i},".encode())
        send(run, lines[4] + lines[5])
        assert [run.stdout.readline()[:2] for _ in range(2)] == [b"5,", b"6,"]
        time.sleep(0.3)  # until it waits for more
        run.send_signal(signal.SIGTERM)
        assert run.wait(300) == 143
        assert run.stderr is not None
        assert run.stderr.read() == b"Stopped after 6 rows.\n"


def test_predict_prints_nothing_before_it_knows_its_columns(models: Path, cli: Cli, tmp_path: Path) -> None:
    out = tmp_path / "out.csv"
    out.write_text("what was there")
    for text in (b"a,b\n1,2\n", b"height,width,depth,age\n1,2,3,x\n", b"", b"1,2,3,4\n"):
        refused = cli("predict", models / "rows", "-", stdin=text)
        assert (refused.code, refused.out) == (1, "")
        (tmp_path / "in.csv").write_bytes(text)
        assert cli("predict", models / "rows", tmp_path / "in.csv", "-o", out).code == 1
        assert out.read_text() == "what was there"
    assert [path.name for path in tmp_path.iterdir() if path.name.startswith(".")] == []
    assert cli("predict", models / "rows", "-", stdin=b"height,width,depth,age\n").out == "row,predicted\n"


def test_run_learns_rows_that_trickle(tmp_path: Path) -> None:
    lines = write_csv(tmp_path / "rows.csv").read_text().splitlines(keepends=True)
    table, model = tmp_path / "p.csv", tmp_path / "m"
    with started("run", "-", *SMALL, "--classes", "no,yes", "--predictions", table, "-o", model) as run:
        send(run, "".join(lines[:4]))
        wait_for(lambda: table.exists() and table.read_text().count("\n") == 4)
        send(run, lines[4])
        wait_for(lambda: table.read_text().count("\n") == 5)
        run.send_signal(signal.SIGINT)
        assert run.wait(300) == 130
        assert run.stderr is not None
        told = f"The predictions are in {table}. The model is in {model}."
        assert f"Stopped after 4 rows. {told}" in run.stderr.read().decode()
    assert load(model).model_.about()["rows_learned"] == 4


def test_labels_of_a_pipe_are_those_of_a_whole_chunk() -> None:
    with started("run", "-", *SMALL, "--chunk-size", 4, "--json") as run:
        send(run, "a,y\n1,u\n")
        time.sleep(1.0)  # longer than rows of a pipe are waited for otherwise
        send(run, "2,u\n3,v\n4,u\n5,v\n")
        out, _ = run.communicate(timeout=300)
    assert b'"rows": 5' in out
    assert run.returncode == 0


def test_ctrl_c_says_what_was_kept(tmp_path: Path) -> None:
    lines = write_csv(tmp_path / "rows.csv").read_text().splitlines(keepends=True)
    with started("run", "-", *SMALL, "--classes", "no,yes", "--predictions", tmp_path / "p.csv") as run:
        send(run, "".join(lines[:9]))
        wait_for(lambda: (tmp_path / "p.csv").exists() and (tmp_path / "p.csv").read_text().count("\n") == 9)
        run.send_signal(signal.SIGINT)
        assert run.wait(300) == 130
        assert run.stderr is not None
        said = run.stderr.read().decode()
    assert said == (
        f"Stopped after 8 rows. The predictions are in {tmp_path / 'p.csv'}. "
        "The model was not saved. Pass --checkpoint FILE or -o MODEL to save it.\n"
    )


def test_ctrl_c_before_the_first_row(tmp_path: Path) -> None:
    pipe = tmp_path / "pipe"
    os.mkfifo(pipe)
    outputs = ("-o", tmp_path / "m", "--checkpoint", tmp_path / "s")
    with started("run", pipe, *SMALL, *outputs) as run, open(pipe, "w") as out:
        out.write("a,y\n")
        out.flush()
        time.sleep(0.5)
        run.send_signal(signal.SIGTERM)
        assert run.wait(300) == 143
        assert run.stderr is not None
        said = run.stderr.read().decode()
    assert said == "Stopped before the first row was learned: there is nothing to save.\n"
    assert not (tmp_path / "m").exists()


@pytest.mark.parametrize("delay", [0, 7])
@pytest.mark.parametrize("kind", ["rows", "libsvm", "texts"])
def test_a_source_that_comes_once_is_gone_on_with(
    tmp_path: Path, models: Path, cli: Cli, kind: str, delay: int
) -> None:
    if kind == "libsvm":
        lines = write_libsvm(tmp_path / "x.svm").read_bytes().splitlines(keepends=True)
        header, options = b"", ["--n-features", "4", "--classes", "0,1"]
    else:
        header, *lines = (models / f"{kind}.csv").read_bytes().splitlines(keepends=True)
        options = ["--classes", "no,yes" if kind == "rows" else "A,B"]
    options += [*SMALL, "--delay", str(delay), "--chunk-size", "50"]

    def outputs(name: str) -> list[object]:
        folder = tmp_path / name
        folder.mkdir(exist_ok=True)
        return ["-o", folder / "m", "--predictions", folder / "p.csv", "--checkpoint", folder / "s"]

    assert cli("run", "-", *options, *outputs("whole"), stdin=header + b"".join(lines)).code == 0
    for first, last in ((0, 130), (130, 135), (135, 400)):
        again = ["--resume", "--from-here"] if first else []
        part = header + b"".join(lines[first:last])
        done = cli("run", "-", *options, *outputs("parts"), *again, stdin=part)
        assert done.code == 0, done.err
    for name in ("m", "p.csv"):
        assert (tmp_path / "parts" / name).read_bytes() == (tmp_path / "whole" / name).read_bytes()
    refused = cli("run", "-", *options, *outputs("parts"), "--resume", stdin=header + b"".join(lines))
    assert refused.code == 2
    assert "was resumed with --from-here" in refused.err
    if kind == "libsvm":
        return
    # Nothing new is nothing learned.
    done = cli("run", "-", *options, *outputs("parts"), "--resume", "--from-here", stdin=header)
    assert done.code == 0, done.err
    assert "nothing was learned" in done.err
    assert (tmp_path / "parts" / "m").read_bytes() == (tmp_path / "whole" / "m").read_bytes()


def test_a_named_pipe_is_read_once(tmp_path: Path) -> None:
    pipe = tmp_path / "rows.csv"
    os.mkfifo(pipe)
    with started("run", pipe, *SMALL, "--json") as run:
        with open(pipe, "wb") as out:
            out.write(write_csv(tmp_path / "file.csv").read_bytes())
        out_, err = run.communicate(timeout=300)
    assert run.returncode == 0, err
    assert b'"rows": 400' in out_
    assert err == b""


def test_a_bad_line_at_the_end_loses_nothing(tmp_path: Path, cli: Cli) -> None:
    file, state = write_csv(tmp_path / "rows.csv"), tmp_path / "s"
    whole = tmp_path / "whole"
    options = (*SMALL, "--classes", "no,yes", "--chunk-size", 50)
    assert cli("run", file, *options, "-o", whole).code == 0
    good = file.read_text()
    file.write_text(good.removesuffix("\n") + "\n1,2,three,4,no\n")
    refused = cli("run", file, *options, "--checkpoint", state)
    assert refused.code == 1
    assert (
        "The state after 350 rows is saved in" in refused.err or "The state after 400 rows is saved in" in refused.err
    )
    assert Checkpoint.load(state).tally["window"] == 1000
    file.write_text(good)
    assert cli("run", file, *options, "--checkpoint", state, "--resume", "-o", tmp_path / "m").code == 0
    assert (tmp_path / "m").read_bytes() == whole.read_bytes()
