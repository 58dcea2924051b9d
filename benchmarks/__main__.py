"""Run a benchmark: `python -m benchmarks NAME [arguments]`, or list them: `python -m benchmarks --list`.

`python -m benchmarks --all` runs every command that writes a stored result, in order. `--all quick` runs those that
take less than five minutes, and `--all long` the others. `--all list` only prints the commands with their times.
"""

import ast
import runpy
import shlex
import subprocess
import sys
from pathlib import Path

FOLDER = Path(__file__).parent
# Minutes, on two quiet cores, of benchmarks without a stored result.
OTHERS = {
    "memory": 4,
    "pages": 1,
    "probes": 1,
    "scaled": 1,
    "service_kills": 5,
    "service_schema": 5,
    "service_soak": 60,
}


def minutes() -> dict[str, float]:
    """Return the minutes that each benchmark takes, by the script's name."""
    from results import BENCHMARKS

    found: dict[str, float] = {}
    for benchmark in BENCHMARKS.values():
        found[benchmark.script] = found.get(benchmark.script, 0) + benchmark.minutes
    return dict(sorted((found | OTHERS).items()))


def first_line(name: str) -> str:
    """Return the first line of a script's docstring, which says what the benchmark measures."""
    text = (FOLDER / f"{name}.py").read_text(encoding="utf-8")
    return (ast.get_docstring(ast.parse(text)) or "").partition("\n")[0]


def run_all(which: str) -> None:
    """Run the commands of all stored results, and continue after one that fails."""
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
    """Run the benchmark that the first argument names."""
    sys.path.insert(0, str(FOLDER))  # scripts import each other by name
    known = minutes()
    name = sys.argv[1] if len(sys.argv) > 1 else "--list"
    if name in ("--list", "-h", "--help"):
        print("Minutes on two quiet cores. `python -m benchmarks --all list` has the options of stored results.")
        for script, takes in known.items():
            print(f"{script:15} {takes:4g} min  {first_line(script)}")
    elif name == "--all":
        which = sys.argv[2] if len(sys.argv) > 2 else ""
        if which not in ("", "quick", "long", "list"):
            raise SystemExit(f"Unknown choice {which!r} after --all. Choose quick, long or list, or leave it out.")
        run_all(which)
    elif name in known:
        path = str(FOLDER / f"{name}.py")
        sys.argv = [path, *sys.argv[2:]]
        runpy.run_path(path, run_name="__main__")
    else:
        raise SystemExit(f"Unknown benchmark {name!r}. Run: python -m benchmarks --list")


if __name__ == "__main__":
    main()
