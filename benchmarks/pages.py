"""Write the stored figures into README.md and docs, or check them with --check.

``make docs`` runs ``python -m benchmarks pages``. With ``--check`` nothing is written. The command then fails if a page
is not up to date, or has a number outside the marks that looks measured. It lists stale results. The marks are
comments, which a rendered page does not show:

    <!-- figure NAME/path/to/value .4f -->0.1328<!-- /figure -->     a number, with its format in Python
    <!-- table NAME.function [key=value] --> ... <!-- /table -->     the lines that a function of the benchmark yields
    <!-- measured NAME ... --> ... <!-- /measured -->                date, version and command of the measurement

The functions are in ``benchmarks/SCRIPT_table.py`` if the file exists, otherwise in the benchmark's script. They get
the result, or its lines with ``key=value`` only. ``figures(result)``, if it is defined, returns the mapping that
``figure`` reads. Each page that shows a figure must say when it was measured. ``table`` does so by itself; for other
figures, use ``measured``.
"""

import argparse
import re
import sys
import textwrap
import tomllib
from collections.abc import Iterator, Mapping, Sequence
from functools import cache
from importlib import import_module
from pathlib import Path
from typing import Any

import results

ROOT = Path(__file__).parents[1]
WIDTH = 120  # of a line of Markdown
MARK = re.compile(r"<!-- (figure|table|measured) (.+?) -->(.*?)<!-- /\1 -->", re.DOTALL)
CODE = re.compile(r"^```.*?^```|`[^`\n]*(?:\n[^`\n]+)?`|<!--.*?-->|\]\([^)]*\)", re.DOTALL | re.MULTILINE)
LOOKS_MEASURED = re.compile(
    r"(?<![\w.,])\d[\d,]*(?:\.\d+)?(?: to \d[\d,]*(?:\.\d+)?)?\s?(?:us|ms|s|seconds|minutes|microseconds|milliseconds|"
    r"[kMG]B|rows/s|rows a second|%|times)(?!\w)|(?<![\w.,/])\d+\.\d{3,}(?![\w.])"
)
MOST = 5  # faults of a page that are printed
GENERATED = ("reproduced.md",)  # `bayesvote reproduce` writes it


def pages(root: Path = ROOT) -> list[Path]:
    return [root / "README.md", *(path for path in sorted((root / "docs").glob("*.md")) if path.name not in GENERATED)]


@cache
def view(script: str) -> Any:
    """Return the module with the table functions of a script."""
    shown = f"{script}_table"
    return import_module(shown if Path(__file__).with_name(f"{shown}.py").exists() else script)


@cache
def stored(name: str) -> results.Result:
    if name not in results.BENCHMARKS:
        raise ValueError(f"Unknown result {name!r}. Choose from {', '.join(results.BENCHMARKS)}.")
    if not results.exists(name):
        raise ValueError(f"benchmarks/results has no result {name!r}. Run: {results.BENCHMARKS[name].command}")
    return results.read(name)


@cache
def figures(name: str) -> Mapping[str, Any]:
    result = stored(name)
    module = view(result.benchmark.script)
    return module.figures(result) if hasattr(module, "figures") else result.figures


def figure(arguments: str) -> str:
    """Return a number of a result: ``NAME/path/to/value FORMAT``."""
    path, _, form = arguments.rpartition(" ")
    name, *keys = path.split("/")
    value: Any = figures(name)
    for key in keys:
        value = value[int(key)] if isinstance(value, list) else value[key]
    return format(value, "" if form == "s" else form)


def table(arguments: str) -> str:
    """Return the table that a function yields for a result: ``NAME.function [key=value]``."""
    function, _, result = _named(arguments)
    return "\n".join(["", *getattr(view(result.benchmark.script), function)(result), ""])


def _named(arguments: str) -> tuple[str, str, results.Result]:
    """Return the function, the name of the lines, and the result of a marked table."""
    path, _, only = arguments.partition(" ")
    name, _, function = path.partition(".")
    result = stored(name)
    if only:
        key, _, value = only.partition("=")
        result = result._replace(lines=[line for line in result.lines if line[key] == value])
    return function, f"{name} {only}", result


def measured(arguments: str) -> str:
    """Return dates, versions and commands of results: ``NAME ...``."""
    return "\n" + "\n".join(wrapped(results.sentence(stored(name))) for name in arguments.split()) + "\n"


def wrapped(text: str) -> str:
    """Break a sentence into lines of at most 120 columns, but not within a command."""
    whole = re.sub("`[^`]+`", lambda found: found[0].replace(" ", "\0"), text)
    return textwrap.fill(whole, WIDTH, break_long_words=False, break_on_hyphens=False).replace("\0", " ")


KINDS = {"figure": figure, "table": table, "measured": measured}


def written(text: str) -> str:
    """Return a page with its marks filled again.

    A table also says when its result was measured, unless the table before it has said so.
    """
    told = ""

    def place(found: re.Match[str]) -> str:
        nonlocal told
        kind, arguments, _ = found.groups()
        try:
            inside = KINDS[kind](arguments)
            if kind == "table" and (about := _named(arguments))[1] != told:
                told = about[1]
                inside += f"\n{wrapped(results.sentence(about[2]))}\n"
        except (KeyError, IndexError, AttributeError, TypeError) as error:
            raise ValueError(f"Cannot write <!-- {kind} {arguments} -->: {error!r}.") from error
        return f"<!-- {kind} {arguments} -->{inside}<!-- /{kind} -->"

    return MARK.sub(place, text)


def used(text: str, *kinds: str) -> set[str]:
    """Return the names of the results in marks of some kinds."""
    names = set()
    for kind, arguments, _ in MARK.findall(text):
        if kind in kinds:
            names |= set(arguments.split()) if kind == "measured" else {re.split(r"[./]", arguments)[0]}
    return names


def loose(text: str, allowed: Sequence[str]) -> Iterator[str]:
    """Yield the numbers outside of marks and code that look measured."""
    rest = CODE.sub(lambda found: "\n" * found[0].count("\n"), MARK.sub(lambda f: "\n" * f[0].count("\n"), text))
    for phrase in allowed:
        rest = rest.replace(phrase, "")
    for number, line in enumerate(rest.split("\n"), 1):
        for found in LOOKS_MEASURED.findall(line):
            yield f"line {number}: {found!r} looks measured"


def faults(text: str, constants: Sequence[str]) -> Iterator[str]:
    """Yield the faults of a page."""
    for phrase in constants:
        if phrase not in text:
            yield f"constants.toml has {phrase!r}, which is not on the page. Remove the line."
    try:
        if written(text) != text:
            yield "differs from the stored results. Run: make docs"
    except ValueError as error:
        yield str(error)
    for result in sorted(used(text, "figure") - used(text, "table", "measured")):
        yield f"does not say when {result} was measured. Add: <!-- measured {result} --><!-- /measured -->"
    yield from loose(text, constants)


def update(path: Path) -> None:
    """Fill the marks of a page, if all of them can be filled."""
    text = path.read_text(encoding="utf-8")
    try:
        new = written(text)
    except ValueError:
        return  # main prints it
    if new != text:
        path.write_text(new, encoding="utf-8")
        print(f"written: {path.relative_to(ROOT)}")


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--check", action="store_true", help="write nothing; fail if a page is not up to date")
    asked = parser.parse_args()
    constants = tomllib.loads(Path(__file__).with_name("constants.toml").read_text(encoding="utf-8"))
    shown, wrong = set(), 0
    for path in pages():
        if not asked.check:
            update(path)
        text = path.read_text(encoding="utf-8")
        shown |= used(text, *KINDS)
        found = list(faults(text, constants.get(path.name, [])))
        wrong += len(found)
        for fault in found[:MOST]:
            print(f"{path.relative_to(ROOT)}: {fault}")
        if len(found) > MOST:
            print(f"{path.relative_to(ROOT)}: {len(found) - MOST} more")
    for name, benchmark in results.BENCHMARKS.items():
        if name in shown and results.exists(name) and results.stale_part(stored(name)):
            print(f"stale: {name}. Measure again: {benchmark.command}")
    if wrong:
        sys.exit(f"{wrong} faults. Mark measured figures, delete them, or list constants in benchmarks/constants.toml.")


if __name__ == "__main__":
    main()
