"""Stored results of the benchmarks, in ``benchmarks/results``, with command, date and version of their measurement.

A result is ``NAME.json``, a mapping of figures, or ``NAME.jsonl``, with a line per figure. Figures that depend on a
model come with the values of the probes (probes.py) at the time of the measurement. A result is stale when a probe has
changed since then.
"""

import json
import os
import platform
import re
import shlex
import sys
from collections.abc import Iterable, Iterator, Mapping, Sequence
from datetime import UTC, datetime
from importlib.metadata import PackageNotFoundError, version
from pathlib import Path
from typing import Any, NamedTuple

import probes
from bayesvote import __version__

FOLDER = Path(__file__).with_name("results")
TOLERANCE = 1e-4  # relative, so that another CPU raises no alarm
OURS = "bayesvote"
LIBRARIES = {"CapyMOA": "capymoa", "river": "river"}  # by the first word of a model
QUICK = 5  # minutes
BUSY = 1.5  # load average for each CPU
_RELEASE = re.compile(r"\d+\.\d+\.\d+")


class Benchmark(NamedTuple):
    """A command that writes a result, and the probes on which the result depends."""

    command: str
    minutes: float  # an estimate, on two quiet cores
    depends: Sequence[str] = ()  # names of probes
    timed: bool = False  # True for times, which are stale after a new release

    @property
    def script(self) -> str:
        """Name of the script in benchmarks."""
        return shlex.split(self.command)[3]

    @property
    def arguments(self) -> list[str]:
        """Arguments of the script."""
        return shlex.split(self.command)[4:]


def _run(script: str, minutes: float, *depends: str, timed: bool = False) -> Benchmark:
    return Benchmark(f"python -m benchmarks {script}", minutes, depends, timed)


# In the order in which `python -m benchmarks --all` runs them.
BENCHMARKS: Mapping[str, Benchmark] = {
    "weights": _run("weights", 1, timed=True),
    "one_row": _run("one_row", 1, timed=True),
    "missing": _run("missing", 1, "default", "table", "boosters"),
    "whole": _run("whole", 2, "default", timed=True),
    "sparse_rows": _run("sparse_rows", 3, "sparse", timed=True),
    "categories": _run("categories", 2, "table"),
    "shards_merge": _run("shards merge", 1, timed=True),
    "shards_abstain": _run("shards abstain", 2, "shards"),
    "shards_covtype": _run("shards covtype", 5, "shards", "default", timed=True),
    "shards_trees": _run("shards trees", 4, "shards"),
    "speed": _run("speed", 8, "paper", "mixed", "boosters", timed=True),
    "trees": _run("trees", 30, "mixed", timed=True),
    "drift": _run("drift", 12, "mixed", "logistic"),
    "posterior": _run("posterior", 1, "logistic"),
    "calibration": _run("calibration", 3, "default", "mixed", "logistic", "boosters"),
    "selection": _run("selection", 20, "default", "mixed", "logistic"),
    "passes": _run("passes --seeds 2 3 4 5", 60, "batch"),
    "accuracy": _run("accuracy 2", 20, "default", timed=True),
    "service_load": _run("service_load --seconds 4", 3, "default", timed=True),
    "service_paths": _run("service_load --paths --seconds 2 --rounds 7", 2, timed=True),
    "long": _run("long", 3, timed=True),
    "tables": _run("tables --ours", 1, "table"),
    "forests": _run("forests --again --models default fast 'default of 0.1'", 5, "default", "fast", "mixed"),
    "beside": _run("beside", 30, "default", "boosters"),
    "horizon": _run("horizon --ours", 90, "default", "late", "chunks", "batch"),
    "table6": _run("table6", 90),
    "moa_streams": _run("moa_streams", 2),
    "published": _run("published", 2, "default", "fast", timed=True),
    "reproduced": _run("reproduced", 30, "default", "fast", "mixed", "logistic", "paper", "boosters"),
}


class Result(NamedTuple):
    """A stored result."""

    name: str
    about: dict[str, Any]
    figures: dict[str, Any]
    lines: list[dict[str, Any]]

    @property
    def benchmark(self) -> Benchmark:
        """The command that measured it."""
        return BENCHMARKS[self.name]


def stamp(*depends: str) -> dict[str, Any]:
    """Return the version, the date and the values of probes, to be stored with a line of a .jsonl file."""
    values = {name: probes.value(name) for name in depends}
    return {"version": f"{OURS} {__version__}", "date": _today(), "probes": values}


def write(name: str, figures: Mapping[str, Any], libraries: Iterable[str] = ()) -> None:
    """Store the figures of a benchmark, with the versions of libraries, if it was run by its own command.

    Runs with other arguments are only stored if the environment variable BAYESVOTE_RESULTS names a folder.
    """
    benchmark, folder = BENCHMARKS[name], os.environ.get("BAYESVOTE_RESULTS")
    if not folder and sys.argv[1:] != benchmark.arguments:
        print(f"Not stored, as the arguments differ from those of the stored result: {benchmark.command}")
        return
    about = {
        "command": shlex.join(["python", "-m", "benchmarks", benchmark.script, *sys.argv[1:]]),
        **stamp(*benchmark.depends),
        "libraries": {library: version(library) for library in libraries if _installed(library)},
        "machine": {"cpus": os.cpu_count(), "python": platform.python_version(), "load": round(os.getloadavg()[1], 1)},
    }
    path = Path(folder or FOLDER) / f"{name}.json"
    path.parent.mkdir(parents=True, exist_ok=True)
    path.write_text(json.dumps({"about": about, "figures": figures}, indent=1, default=float) + "\n")
    print(f"Stored in {path}. Run `make docs` to write it into the pages.")


def exists(name: str) -> bool:
    """Return True if the result is stored."""
    return any((FOLDER / f"{name}{suffix}").exists() for suffix in (".json", ".jsonl"))


def read(name: str, folder: Path | None = None) -> Result:
    """Read a stored result."""
    folder = folder or FOLDER
    path = folder / f"{name}.json"
    if path.exists():
        found = json.loads(path.read_text())
        return Result(name, found["about"], found["figures"], [])
    lines = [json.loads(line) for line in (folder / f"{name}.jsonl").read_text().splitlines()]
    about = lines.pop(0) if "versions" in lines[0] else {}
    return Result(name, about, {}, lines)


def measured_with(line: Mapping[str, Any]) -> tuple[str, str]:
    """Return the library with its version, and the date, of a line. Older lines have only a model's name."""
    library = line.get("version", line.get("with"))
    if library is None and "model" in line:
        library = LIBRARIES.get(line["model"].split()[0], OURS)
    return library or "", line.get("date") or line.get("day") or ""


def _ours(line: Mapping[str, Any]) -> bool:
    """Return True for a line of bayesvote, unless the model's name states a release."""
    return measured_with(line)[0].startswith(OURS) and not _RELEASE.search(line["model"])


def stale(about: Mapping[str, Any], timed: bool = False) -> bool:
    """Return True if a probe has changed since the measurement, or is not recorded.

    Times are also stale after a new release, and if other programs kept the machine busy.
    """
    recorded = about.get("probes")
    if recorded is None:
        return True
    changed = any(abs(probes.value(name) - value) > TOLERANCE * abs(value) for name, value in recorded.items())
    return changed or (timed and (busy(about) or _release(about["version"]) != _release(__version__)))


def busy(about: Mapping[str, Any]) -> bool:
    """Return True if other programs kept the machine busy."""
    machine = about.get("machine", {})
    return bool(machine.get("load", 0.0) > BUSY * machine.get("cpus", 1))


def stale_part(result: Result) -> bool:
    """Return True if the figures, or a line of bayesvote, are stale."""
    if result.lines:
        return any(stale(line) for line in result.lines if _ours(line))
    unknown = set(result.benchmark.depends) - set(result.about.get("probes", {}))
    return bool(unknown) or stale(result.about, result.benchmark.timed)


def sentence(result: Result) -> str:
    """Return a sentence with date, version and command of a result, which also says if the result is stale."""
    command = f"`{result.benchmark.command}`"
    found = {measured_with(line) for line in result.lines} or {measured_with(result.about)}
    found |= {(f"{name} {number}", result.about.get("date", "")) for name, number in _libraries(result.about)}
    known = sorted({library for library, _ in found if _release(library)})
    unknown = sorted({library for library, _ in found if library and not _release(library)})
    days = sorted({day for _, day in found if day})
    told = ", ".join(known or unknown)
    told += f" ({' and '.join(days)})" if days else ""
    older = ""
    if known and unknown:
        older = f" For older rows, the versions of {' and '.join(unknown)} were not recorded."
    if not stale_part(result):
        return f"Measured with {told} by {command}.{older}"
    timed = not result.lines and result.benchmark.timed
    if timed and busy(result.about):
        why = "on a busy machine"
    elif timed and not stale(result.about):
        why = "before this release"
    else:
        predate = "These figures predate the last change to the model"
        return f"Measured with {told}. {predate}; {command} measures them again.{older}"
    return f"Measured with {told}, {why}; {command} measures it again.{older}"


def grid(corner: str, rows: Mapping[str, Mapping[str, float | None]], form: str) -> Iterator[str]:
    """Yield a Markdown table of numbers by row and column; a missing number leaves its cell empty."""
    names = list(dict.fromkeys(name for row in rows.values() for name in row))
    yield f"| {corner} | " + " | ".join(names) + " |"
    yield "|---|" + "---:|" * len(names)
    for title, row in rows.items():
        yield (
            f"| {title} | " + " | ".join("" if (v := row.get(name)) is None else f"{v:{form}}" for name in names) + " |"
        )


def _libraries(about: Mapping[str, Any]) -> Iterable[tuple[str, str]]:
    return (about.get("libraries") or about.get("versions") or {}).items()


def _release(text: str) -> str:
    found = _RELEASE.search(text)
    return found[0] if found else ""


def _installed(library: str) -> bool:
    try:
        return bool(version(library))
    except PackageNotFoundError:
        return False


def _today() -> str:
    return datetime.now(UTC).date().isoformat()
