"""Run a tool: `python -m tools NAME [arguments]`, or list them: `python -m tools --list`."""

import ast
import os
import runpy
import sys
from pathlib import Path

FOLDER = Path(__file__).parent
# Minutes that a tool takes on two quiet cores.
TOOLS = {
    "audit": 1,
    "embed_datasets": 2,
    "fuzz": 5,
    "import_layers": 0.1,
    "kills": 5,
    "lock": 2,
    "mutations": 90,
    "peers": 3,
    "sanitize": 30,
    "try_versions": 20,
    "try_wheel": 1,
}


def first_line(name: str) -> str:
    """Return the first line of a tool's docstring."""
    text = (FOLDER / f"{name}.py").read_text(encoding="utf-8")
    return (ast.get_docstring(ast.parse(text)) or "").partition("\n")[0]


def main() -> None:
    """Run the tool that the first argument names."""
    name = sys.argv[1] if len(sys.argv) > 1 else "--list"
    if name in ("--list", "-h", "--help"):
        print("Minutes on two quiet cores.")
        for tool, minutes in TOOLS.items():
            print(f"{tool:15} {minutes:4g} min  {first_line(tool)}")
    elif name in TOOLS:
        path = str(FOLDER / f"{name}.py")
        sys.argv = [path, *sys.argv[2:]]
        # The programs of this environment, such as meson, come first.
        os.environ["PATH"] = os.pathsep.join((str(Path(sys.executable).parent), os.environ.get("PATH", "")))
        runpy.run_path(path, run_name="__main__")
    else:
        raise SystemExit(f"Unknown tool {name!r}. Run: python -m tools --list")


if __name__ == "__main__":
    main()
