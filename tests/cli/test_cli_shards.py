"""``run`` and ``reproduce`` with an engine; that of one process, as Dask has tests of its own."""

import json
from pathlib import Path

import pytest

from bayesvote import load
from bayesvote.apps.distributed import fit
from bayesvote.io.model_file import dumps
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
    assert dumps(model) == dumps(fit(f"{files}/part*.csv", type(model)(n_members=24, random_state=0)))
    assert cli("predict", str(files / "m"), str(files / "part0.csv")).code == 0


def test_files_are_read_as_the_options_say(cli: Cli, files: Path) -> None:
    command = ("run", f"{files}/part*.csv", "--engine", "loop", "--n-members", "24")
    assert cli(*command, "-o", files / "plain").code == 0
    told = cli(*command, "--drop", "age", "-o", files / "dropped")
    assert told.code == 0
    assert "joint_gaussian, as drifting needs the rows in order" in told.out
    assert load(files / "dropped").feature_names_in_.tolist() == ["height", "width", "depth"]
    assert cli(*command, "--features", "height,width", "-o", files / "chosen", "--weighter", "gamma_rate").code == 0
    assert load(files / "chosen").feature_names_in_.tolist() == ["height", "width"]
    model = fit(f"{files}/part*.csv", features=["height", "width"])
    assert model.feature_names_in_.tolist() == ["height", "width"]
    for k in range(4):
        path = files / f"part{k}.csv"
        head, _, rows = path.read_text().partition("\n")
        path.write_text(f"{head.replace(',', ';')}\n{rows.replace(',', ';').replace('.', ',')}")
        (files / f"bare{k}.csv").write_text(rows)
    assert cli(*command, "--decimal", ",", "-o", files / "comma").code == 0
    assert dumps(load(files / "comma").model_) == dumps(load(files / "plain").model_)
    command = ("run", f"{files}/bare*.csv", "--engine", "loop", "--n-members", "24")
    assert cli(*command, "--no-header", "-o", files / "bare").code == 0
    assert dumps(load(files / "bare").model_) == dumps(load(files / "plain").model_)


def test_bad_files_are_named_or_skipped(cli: Cli, files: Path) -> None:
    (files / "part2.csv").write_text("height,width,depth,answer\n1,2,3,yes\n")
    command = ("run", f"{files}/part*.csv", "--engine", "loop", "--members", "naive_bayes", "--n-members", "12")
    told = cli(*command)
    assert told.code == 1
    assert "part2.csv must pass the reading of labels" in told.err
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
    assert len([path for path in kept if path.is_file()]) == 16
    assert cli(*command).code == 0
    assert kept == {path: path.stat().st_mtime_ns for path in (files / "record").rglob("*")}


@pytest.mark.parametrize(
    ("options", "message"),
    [
        (("--workers", "2"), "--workers: it needs --engine"),
        (("--record", "x"), "--record: it needs --engine"),
        (("--bad-shards", "skip"), "--bad-shards: it needs --engine"),
        (("--engine", "loop", "--workers", "2"), "it needs --engine dask"),
        (("--engine", "dask", "--workers", "2", "--scheduler", "tls://x:1"), "has its own workers"),
        (("--engine", "dask", "--scheduler", "tcp://10.1.1.1:8786"), "--insecure"),
        (("--engine", "spark"), "it must be one of dask, loop"),
        (("--engine", "loop", "--bad-shards", "leave"), "it must be error or skip"),
        (("--engine", "loop", "--model", "ozaboost"), "--model: this value cannot be used"),
        (("--engine", "loop", "--checkpoint", "c"), "--checkpoint: it cannot be used with --engine"),
        (("--engine", "loop", "--n-features", "4"), "--n-features: it cannot be used with --engine"),
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


def test_experiments_run_on_the_workers_of_dask(cli: Cli, tmp_path: Path) -> None:
    command = ("reproduce", "table1", "--dataset", "heart", "--dataset", "sonar", "--trials", "2", "--json")
    plain = cli(*command, "--jobs", "1", "--folder", tmp_path / "plain")
    on_dask = (*command, "--engine", "dask", "--workers", "2", "--folder", tmp_path / "dask")
    found = cli(*on_dask)
    assert plain.code == found.code == 0
    assert "dashboard: http://127.0.0.1:" in found.err
    assert json.loads(found.out)["tables"] == json.loads(plain.out)["tables"]
    kept = (tmp_path / "dask" / "results.jsonl").read_text().splitlines()
    assert len(kept) == len((tmp_path / "plain" / "results.jsonl").read_text().splitlines())
    # A second start runs what is missing, and nothing else.
    (tmp_path / "dask" / "results.jsonl").write_text("\n".join(kept[:-1]) + "\n")
    assert json.loads(cli(*on_dask).out)["tables"] == json.loads(plain.out)["tables"]
    again = (tmp_path / "dask" / "results.jsonl").read_text().splitlines()
    assert again[:-1] == kept[:-1]
    assert len(again) == len(kept)
