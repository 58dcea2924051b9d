"""``run`` and ``reproduce`` with an engine; that of one process, as Dask has tests of its own."""

import json
from pathlib import Path

import pytest

from bayesvote import load
from bayesvote.distributed import fit
from bayesvote.persistence import dumps
from cli.helpers import Cli, write_csv


@pytest.fixture
def files(tmp_path: Path) -> Path:
    for k in range(4):
        write_csv(tmp_path / f"part{k}.csv", 300)
        lines = (tmp_path / f"part{k}.csv").read_text().splitlines()
        rows = lines[1 + k :] + lines[1 : 1 + k]
        (tmp_path / f"part{k}.csv").write_text("\n".join([lines[0], *rows]) + "\n")
    return tmp_path


def test_many_files_are_learned_and_the_model_is_that_of_the_library(cli: Cli, files: Path) -> None:
    told = cli("run", f"{files}/part*.csv", "--engine", "loop", "-o", str(files / "m"), "--n-members", "24", "--json")
    assert told.code == 0
    figures = json.loads(told.out)
    assert (figures["rows"], figures["shards"], figures["members"]) == (1200, 4, 24)
    assert 0 <= figures["error"] < 0.2
    model = load(files / "m")
    assert model.feature_names_in_.tolist() == ["height", "width", "depth", "age"]
    spec = type(model)(n_members=24, random_state=0).set_params(members=None)
    assert dumps(model) == dumps(fit(f"{files}/part*.csv", spec))
    assert cli("predict", str(files / "m"), str(files / "part0.csv")).code == 0


def test_bad_files_are_named_or_skipped(cli: Cli, files: Path) -> None:
    (files / "part2.csv").write_text("height,width,depth,answer\n1,2,3,yes\n")
    command = ("run", f"{files}/part*.csv", "--engine", "loop", "--members", "naive_bayes", "--n-members", "12")
    told = cli(*command)
    assert told.code == 1
    assert "part2.csv must come through the look at its labels" in told.err
    assert "none named 'age'" in told.err
    assert "--bad-shards skip" in told.err
    told = cli(*command, "--bad-shards", "skip")
    assert told.code == 0
    assert "3, 1 skipped" in told.out
    assert "Skipped " in told.err


def test_a_second_start_goes_on(cli: Cli, files: Path) -> None:
    command = ("run", f"{files}/part*.csv", "--engine", "loop", "--n-members", "24", "--record", str(files / "record"))
    told = cli(*command, "--time-limit", "0.001")
    assert told.code == 1
    assert "the time limit of 0.001 s has passed" in told.err
    assert cli(*command).code == 0
    kept = {path: path.stat().st_mtime_ns for path in (files / "record").rglob("*")}
    assert len([path for path in kept if path.is_file()]) == 12
    assert cli(*command).code == 0
    assert kept == {path: path.stat().st_mtime_ns for path in (files / "record").rglob("*")}


@pytest.mark.parametrize(
    ("options", "message"),
    [
        (("--workers", "2"), "--workers: it needs --engine"),
        (("--record", "x"), "--record: it needs --engine"),
        (("--bad-shards", "skip"), "--bad-shards: it needs --engine"),
        (("--engine", "loop", "--workers", "2"), "it needs --engine dask"),
        (("--engine", "dask", "--workers", "2", "--scheduler", "tls://x:1"), "has workers of its own"),
        (("--engine", "dask", "--scheduler", "tcp://10.1.1.1:8786"), "--insecure"),
        (("--engine", "spark"), "it must be one of dask, loop"),
        (("--engine", "loop", "--bad-shards", "leave"), "it must be error or skip"),
        (("--engine", "loop", "--model", "ozaboost"), "--model: it must be left as it is"),
        (("--engine", "loop", "--checkpoint", "c"), "--checkpoint: shards have none"),
    ],
)
def test_options_that_do_not_go_together_are_refused(cli: Cli, files: Path, options: tuple[str], message: str) -> None:
    told = cli("run", f"{files}/part*.csv", *options)
    assert told.code == 2
    assert message in told.err


def test_experiments_run_on_an_engine_as_on_processes(cli: Cli, tmp_path: Path) -> None:
    command = ("reproduce", "table1", "--dataset", "heart", "--trials", "1", "--json")
    plain = cli(*command, "--jobs", "1", "--folder", str(tmp_path / "plain"))
    engine = cli(*command, "--engine", "loop", "--folder", str(tmp_path / "engine"))
    assert plain.code == engine.code == 0
    assert json.loads(plain.out)["tables"] == json.loads(engine.out)["tables"]
    assert cli(*command, "--engine", "loop", "--jobs", "2").code == 2
