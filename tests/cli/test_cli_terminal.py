"""What a file says must not steer the terminal, nor be taken for markup."""

from pathlib import Path

import pytest

from bayesvote.cli.show import plain
from cli.helpers import Cli

EVIL = "\x1b]0;owned\x07\x1b[2J"


@pytest.fixture
def evil_file(tmp_path: Path) -> Path:
    file = tmp_path / "evil.csv"
    rows = "".join(f"{i % 7},{i % 5},{('[red]no[/red]', EVIL + 'yes')[i % 2]}\n" for i in range(40))
    file.write_text(f"{EVIL}a,[bold]b[/bold],y\n{rows}")
    return file


def test_labels_and_names_print_as_they_are(cli: Cli, evil_file: Path, tmp_path: Path) -> None:
    model = tmp_path / "m"
    done = cli("run", evil_file, "--n-members", 3, "-o", model)
    assert done.code == 0, done.err
    shown = cli("inspect", model)
    assert shown.code == 0, shown.err
    for output in (done.out, done.err, shown.out, shown.err):
        assert "\x1b" not in output
        assert "\x07" not in output
    flat = "".join(shown.out.split())
    assert "[red]no[/red]" in flat
    assert "[bold]b[/bold]" in flat
    assert "\\x1b]0;owned\\x07" in flat
    # Data stays data.
    assert EVIL in cli("predict", model, evil_file).out


def test_errors_print_as_they_are(cli: Cli, evil_file: Path, tmp_path: Path) -> None:
    for refused in (
        cli("run", evil_file, "--n-members", 3, "--target", f"{EVIL}[red]"),
        cli("run", evil_file, "--n-members", 3, "--classes", "[red]no[/red],maybe"),
        cli("run", evil_file, f"--{EVIL}"),
        cli("run", tmp_path / f"{EVIL}.csv"),
    ):
        assert refused.code in (1, 2)
        assert "\x1b" not in refused.err
        assert "\x07" not in refused.err
    assert "[red]" in cli("run", evil_file, "--target", "[red]").err


@pytest.mark.parametrize("text", ["\x1b[31m", "\x9b31m", "\u202edcba", "\u2066x", "a\rb", "\x7f", "\u2028"])
def test_no_character_that_steers_is_left(text: str) -> None:
    assert plain(text).isprintable()
    assert plain("größe, 中文, 🐧\n") == "größe, 中文, 🐧\n"
