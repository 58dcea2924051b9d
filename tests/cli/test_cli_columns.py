"""The option --column NAME=KIND, its older aliases, and how errors name it."""

import json
from pathlib import Path

import pytest

from bayesvote import load
from bayesvote.tables.kinds import STATED
from cli.helpers import Cli

SMALL = ("--n-members", 5)


@pytest.fixture
def table(tmp_path: Path) -> Path:
    path = tmp_path / "x.csv"
    rows = (f"{i % 3},{i % 5},{i % 7},{'uv'[i % 2]}" for i in range(60))
    path.write_text("\n".join(['a=b,"a, b",c,y', *rows]))
    return path


def test_kinds_of_several_columns(cli: Cli, table: Path, tmp_path: Path) -> None:
    model = tmp_path / "m"
    done = cli("run", table, *SMALL, "--column", "a=b=category", "--column", "a, b=drop", "-o", model)
    assert done.code == 0, done.err
    kinds = {name: about["kind"] for name, about in json.loads(cli("inspect", model, "--json").out)["columns"].items()}
    assert kinds == {"a=b": "category", "c": "number"}


@pytest.mark.parametrize("kind", ["category", "number", "drop"])
def test_the_older_options_are_aliases(cli: Cli, table: Path, tmp_path: Path, kind: str) -> None:
    old, new = tmp_path / "old", tmp_path / "new"
    assert cli("run", table, *SMALL, f"--{kind}", 'c,"a, b"', "-o", old).code == 0
    assert cli("run", table, *SMALL, "--column", f"c={kind}", "--column", f"a, b={kind}", "-o", new).code == 0
    assert old.read_bytes() == new.read_bytes()
    assert cli("run", table, *SMALL, "--column", f"c={kind}", f"--{kind}", "c", "-o", new).code == 0


def test_every_kind_has_an_alias(cli: Cli, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("COLUMNS", "200")
    shown = cli("run", "--help").out
    for kind in STATED:
        assert f"--{kind.replace('_', '-')}" in shown
        assert f"Same as --column NAME={kind}" in shown


@pytest.mark.parametrize(
    ("arguments", "words"),
    [
        (("--column", "c"), "Invalid value for --column: it must be NAME=KIND, got 'c'."),
        (("--column", "c=categry"), "the kind of column 'c' must be one of number, boolean, category, date, drop, "),
        (("--column", "c=categry"), "got 'categry'. Did you mean 'category'?"),
        (("--column", "c=day-first"), "Did you mean 'day_first'?"),
        (("--column", "a=b"), "the kind of column 'a' must be one of"),
        (("--column", "c=drop", "--column", "c=number"), "column 'c' must be of one kind, got drop and number."),
        (("--column", "c=drop", "--number", "c"), "column 'c' must be of one kind, got drop and number."),
        (("--column", "d=drop"), "--column must name columns of"),
        (("--column", "a,b=drop"), "Did you mean 'a, b'?"),
    ],
)
def test_wrong_kinds_and_names(cli: Cli, table: Path, arguments: tuple[str, ...], words: str) -> None:
    refused = cli("run", table, *SMALL, *arguments)
    assert refused.code == 2
    assert words in refused.err
    assert refused.err.count("\n") == 1


def test_the_option_in_an_error_can_be_pasted(cli: Cli, tmp_path: Path) -> None:
    path, model = tmp_path / "x.csv", tmp_path / "m"
    path.write_text("it's big,y\n1,a\n2,b\n3,a\nlarge,b\n")
    refused = cli("run", path, *SMALL)
    assert """Read a column of text with --column 'it'"'"'s big=category'.""" in refused.err
    assert cli("run", path, *SMALL, "--column", "it's big=category", "-o", model).code == 0
    assert load(model).feature_names_in_.tolist() == ["it's big"]


def test_a_column_without_a_name(cli: Cli, tmp_path: Path) -> None:
    path = tmp_path / "x.csv"
    path.write_text(",size,y\n" + "".join(f"{i},{i % 4},{'uv'[i % 2]}\n" for i in range(30)))
    assert "Leave it out with --column =drop." in cli("run", path, *SMALL).err
    done = cli("run", path, *SMALL, "--column", "=drop")
    assert done.code == 0
    assert done.err == f"Reading {path} once more to find its labels first. Pass --classes to avoid this.\n"


def test_labels_that_are_codes_are_named(cli: Cli) -> None:
    rows = "".join(f"{i % 3},{i % 2}\n" for i in range(200))
    refused = cli("run", "-", *SMALL, "--classes", "0,1", stdin=f"x,y\n{rows}1,01\n".encode())
    assert refused.code == 1
    assert "Read all labels as text with --classes, which names all of them." in refused.err
