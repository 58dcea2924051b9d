"""Run a benchmark: `python -m benchmarks NAME [arguments]`, or list them: `python -m benchmarks --list`."""

import ast
import runpy
import sys
from pathlib import Path

FOLDER = Path(__file__).parent


def scripts() -> dict[str, str]:
    """Return the first line of every script's docstring, by the script's name."""
    found = {}
    for path in sorted(FOLDER.glob("[!_]*.py")):
        text = path.read_text(encoding="utf-8")
        if "__main__" in text:
            found[path.stem] = (ast.get_docstring(ast.parse(text)) or "").partition("\n")[0]
    return found


def main() -> None:
    names = scripts()
    asked = sys.argv[1] if len(sys.argv) > 1 else "--list"
    if asked in ("--list", "-h", "--help"):
        print("\n".join(f"{name:16} {first_line}" for name, first_line in names.items()))
    elif asked in names:
        path = str(FOLDER / f"{asked}.py")
        sys.argv = [path, *sys.argv[2:]]
        sys.path.insert(0, str(FOLDER))  # scripts import each other by name
        runpy.run_path(path, run_name="__main__")
    else:
        raise SystemExit(f"Unknown benchmark {asked!r}. Run: python -m benchmarks --list")


if __name__ == "__main__":
    main()
