"""The page on the command line: its commands print what it says, but for times and numbers other than errors."""

import re
import shlex
from pathlib import Path

import pytest

from bayesvote import BayesianEnsembleClassifier, PerceptronBank, pretrain, save
from cli.helpers import Cli, rows

PAGE = Path(__file__).parents[2] / "docs" / "command-line.md"


def words(line: str) -> list[str]:
    """What a line says, without what may differ: numbers, drawings, and the space between."""
    return re.sub(r"[^A-Za-z_ ]+", " ", line).split()


def test_the_page_is_true(cli: Cli, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.chdir(tmp_path)
    monkeypatch.delenv("BAYESVOTE_DATA", raising=False)
    monkeypatch.setenv("XDG_CACHE_HOME", str(tmp_path))
    X, y = rows()
    bank = pretrain(PerceptronBank(5).start(4, rng=0), X[:50], (y[:50] == "yes").astype(int))
    for name in ("monday.model", "tuesday.model"):
        save(BayesianEnsembleClassifier(bank, weighter="gamma_rate").fit(X, y), name)
    text = PAGE.read_text(encoding="utf-8")
    for code in re.findall(r"```python\n(.*?)```", text, re.DOTALL):
        exec(code, {})
    commands = re.findall(r"^\$ (bayesvote .*)\n((?:(?!\$ |```).*\n)*)", text, re.MULTILINE)
    assert len(commands) >= 9
    for command, printed in commands:
        if command == "bayesvote bench":
            continue
        called, _, _ = command.partition(" |")
        found = cli(*shlex.split(called)[1:])
        shown = printed.splitlines()
        got = (found.out or found.err).splitlines()
        assert found.code == (2 if "Did you mean" in printed else 0), found.err
        for said, line in zip(shown, got, strict=False):
            if said == "..." or said.startswith("    "):  # the rest, or a member that may be another one elsewhere
                break
            assert words(said) == words(line), command
            if said.strip(' "').startswith(("error", "kappa")):
                assert said.split()[1] == line.split()[1], command
