"""A package's private names are its own: other packages import what it makes public."""

import ast
from collections.abc import Iterator
from pathlib import Path

import bayesvote

ROOT = Path(bayesvote.__file__).parent


def imported(tree: ast.AST) -> Iterator[list[str]]:
    """Every name that a module imports from this library, by its parts; a leading bayesvote is left out."""
    for node in ast.walk(tree):
        if isinstance(node, ast.ImportFrom) and (node.module or "").partition(".")[0] == "bayesvote":
            for alias in node.names:
                yield [*(node.module or "").split("."), alias.name][1:]
        elif isinstance(node, ast.Import):
            for alias in node.names:
                if alias.name.startswith("bayesvote."):
                    yield alias.name.split(".")[1:]


def intrusions(package: str, tree: ast.AST) -> list[str]:
    """Private names of other packages; modules without a leading underscore are shared."""
    return [
        ".".join(parts)
        for parts in imported(tree)
        if parts[0] != package and any(name.startswith("_") and not name.startswith("__") for name in parts[1:])
    ]


def test_no_package_imports_the_private_names_of_another() -> None:
    found = {}
    for path in ROOT.rglob("*.py"):
        inside = path.relative_to(ROOT).parts
        names = intrusions(inside[0] if len(inside) > 1 else "", ast.parse(path.read_text(encoding="utf-8")))
        if names:
            found["/".join(inside)] = names
    assert found == {}


def test_intrusions_are_seen() -> None:
    code = """
from bayesvote.core.checks import Array
from bayesvote.datasets import stream
from bayesvote.io.chunks import Chunk
from bayesvote.io.open_stream import _guess
from bayesvote.io import _libsvm_kernels
import bayesvote.tables._private.file
from bayesvote.core.version import __version__
"""
    assert intrusions("cli", ast.parse(code)) == [
        "io.open_stream._guess",
        "io._libsvm_kernels",
        "tables._private.file",
    ]
    assert intrusions("io", ast.parse(code)) == ["tables._private.file"]
