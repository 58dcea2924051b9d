"""Run a benchmark: `python -m benchmarks NAME [arguments]`, or list them: `python -m benchmarks --list`.

`python -m benchmarks --all` runs every command that writes a stored result, in order. `--all quick` runs those that
take less than five minutes, `--all long` the others, `--all list` prints them with estimates of their time.
"""

import ast
import runpy
import shlex
import subprocess
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


def run_all(which: str) -> None:
    """Run the commands of all stored results, and go on after one that fails."""
    sys.path.insert(0, str(FOLDER))
    from results import BENCHMARKS, QUICK

    failed = []
    for name, benchmark in BENCHMARKS.items():
        quick = benchmark.minutes < QUICK
        print(f"{name:16} {'quick' if quick else 'long':6} {benchmark.minutes:4g} min  {benchmark.command}", flush=True)
        if which in ("", "quick" if quick else "long"):
            command = [sys.executable, *shlex.split(benchmark.command)[1:]]
            if subprocess.run(command, cwd=FOLDER.parent, check=False).returncode:
                failed.append(name)
    if failed:
        raise SystemExit(f"Failed: {', '.join(failed)}. See the messages above.")


def main() -> None:
    names = scripts()
    asked = sys.argv[1] if len(sys.argv) > 1 else "--list"
    if asked in ("--list", "-h", "--help"):
        print("\n".join(f"{name:16} {first_line}" for name, first_line in names.items()))
    elif asked == "--all":
        which = sys.argv[2] if len(sys.argv) > 2 else ""
        if which not in ("", "quick", "long", "list"):
            raise SystemExit(f"Unknown choice {which!r} after --all. Choose quick, long or list, or leave it out.")
        run_all(which)
    elif asked in names:
        path = str(FOLDER / f"{asked}.py")
        sys.argv = [path, *sys.argv[2:]]
        sys.path.insert(0, str(FOLDER))  # scripts import each other by name
        runpy.run_path(path, run_name="__main__")
    else:
        raise SystemExit(f"Unknown benchmark {asked!r}. Run: python -m benchmarks --list")


if __name__ == "__main__":
    main()
