"""The list of wrong edits fits the sources as they are; ``make mutations`` tries whether the tests catch them."""

import ast
import tomllib
from collections import Counter
from functools import cache
from pathlib import Path
from typing import Any

import pytest

ROOT = Path(__file__).parent.parent
LISTED: list[dict[str, Any]] = tomllib.loads((ROOT / "tools" / "mutations.toml").read_text("utf-8"))["mutation"]


@cache
def source(path: Path) -> str:
    return path.read_text("utf-8") if path.exists() else ""


@cache
def functions_of(path: Path) -> set[str]:
    return {node.name for node in ast.parse(source(path)).body if isinstance(node, ast.FunctionDef)}


@pytest.mark.parametrize("entry", LISTED, ids=lambda entry: entry["name"])
def test_every_edit_changes_one_place_and_names_tests_that_exist(entry: dict[str, Any]) -> None:
    text = source(ROOT / "src" / "bayesvote" / entry["file"])
    assert text, f"{entry['file']} must be a file below src/bayesvote"
    assert text.count(entry["old"]) == 1, "port the edit to where that logic is now, or delete it with that logic"
    assert entry["new"] != entry["old"]
    if entry["file"].endswith(".py"):
        compile(text.replace(entry["old"], entry["new"]), entry["file"], "exec")  # or any test would catch it
    assert entry["tests"]
    for test in entry["tests"]:
        file, _, name = test.partition("::")
        assert source(ROOT / file), f"{file} must exist"
        assert not name or name in functions_of(ROOT / file), f"{file} must have {name}"


def test_edits_differ_and_so_do_their_names() -> None:
    for what in (lambda one: one["name"], lambda one: (one["file"], one["old"], one["new"])):
        assert [twice for twice, count in Counter(map(what, LISTED)).items() if count > 1] == []
