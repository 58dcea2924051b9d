"""What a file says must not steer the terminal, nor be taken for markup."""

import os
import sys
from pathlib import Path

import pytest

from bayesvote.apps.cli.show import plain
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


@pytest.mark.parametrize("text", ["\x1b[31m", "\x9b31m", "\u202edcba", "\u2066x", "a\rb", "\x7f", "\u2028", "a\nb"])
def test_no_character_that_steers_is_left(text: str) -> None:
    assert plain(text).isprintable()
    assert plain("größe, 中文, 🐧") == "größe, 中文, 🐧"


def on_a_terminal(*arguments: object) -> str:
    """What a command prints on a terminal of its own."""
    pty = pytest.importorskip("pty")
    child, screen = pty.fork()
    if child == 0:
        os.environ.update(COLUMNS="80", TERM="dumb")
        os.execv(sys.executable, [sys.executable, "-m", "bayesvote", *map(str, arguments)])
    printed = b""
    while True:
        try:
            part = os.read(screen, 65536)
        except OSError:  # how Linux tells the end
            break
        if not part:
            break
        printed += part
    os.waitpid(child, 0)
    os.close(screen)
    return printed.decode().replace("\r\n", "\n")


@pytest.mark.skipif(not os.path.exists("/dev/stdout"), reason="a system without devices as files")
def test_no_output_file_is_a_way_around(cli: Cli, tmp_path: Path) -> None:
    file, model = tmp_path / "evil.csv", tmp_path / "m"
    file.write_text("a,y\n" + f'1,no\n2,"{EVIL}yes\n99,owned"\n' * 20)
    assert cli("run", file, "--n-members", 3, "-o", model).code == 0
    small = ("--n-members", 3, "--predictions")
    for arguments in (
        ("predict", model, file),
        ("predict", model, file, "--proba"),
        ("predict", model, file, "-o", "/dev/stdout"),
        ("predict", model, file, "-o", "/dev/tty", "--proba"),
        ("run", file, *small, "/dev/stdout"),
        ("inspect", model),
    ):
        printed = on_a_terminal(*arguments)
        assert "\\x1b]0;" in printed, arguments
        assert "\x1b" not in printed
        assert "\x07" not in printed
        assert not any(line.strip().startswith("99,owned") for line in printed.splitlines())
    for option in ("-o", "--report"):
        assert "it must be a file, got the terminal" in on_a_terminal("run", file, option, "/dev/stdout")
    # Files hold what the labels are.
    assert cli("predict", model, file, "-o", tmp_path / "p.csv").code == 0
    assert f"{EVIL}yes\n99,owned" in (tmp_path / "p.csv").read_text()
