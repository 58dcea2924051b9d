"""The command line in this process, and a small file to run it on."""

import io
import sys
from pathlib import Path

import pytest

from bayesvote.apps.cli import main
from cli.helpers import Cli, Outcome, write_csv


@pytest.fixture
def cli(capsys: pytest.CaptureFixture[str], monkeypatch: pytest.MonkeyPatch) -> Cli:
    """Run a command: exit code, standard output, standard error."""
    monkeypatch.delenv("BAYESVOTE_DEBUG", raising=False)
    monkeypatch.setenv("COLUMNS", "80")

    def run(*arguments: object, stdin: bytes = b"") -> Outcome:
        monkeypatch.setattr(sys, "stdin", io.TextIOWrapper(io.BytesIO(stdin)))
        code = main([str(argument) for argument in arguments])
        return Outcome(code, *capsys.readouterr())

    return run


@pytest.fixture
def csv_file(tmp_path: Path) -> Path:
    return write_csv(tmp_path / "rows.csv")
