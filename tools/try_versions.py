#!/usr/bin/env python3
"""Run the tests with the lowest or the newest allowed versions of the dependencies, in an environment of its own.

``python tools/try_versions.py lowest|newest [--python python3.13] [pytest arguments]``. The lowest are the bounds of
the core dependencies in pyproject.toml; what only tests need is as new as it can be beside them.
"""

import argparse
import subprocess
import tomllib
from pathlib import Path

ROOT = Path(__file__).parent.parent


def main() -> None:
    """Make the environment, install, test."""
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("versions", choices=["lowest", "newest"])
    parser.add_argument("--python", default="python3.11")
    given, tests = parser.parse_known_args()
    folder = ROOT / "build" / f"{given.versions}-{Path(given.python).name}"
    python = str(folder / "bin" / "python")
    project = tomllib.loads((ROOT / "pyproject.toml").read_text())
    core: list[str] = project["project"]["dependencies"]
    if given.versions == "lowest":
        core = [one.replace(">=", "==") + ".*" for one in core]
    more = ["hypothesis>=6.130", "mpmath>=1.3", "pytest>=8.3", "pytest-xdist>=3.6", "safetensors>=0.5", "pandas>=2.2"]
    subprocess.run([given.python, "-m", "venv", "--clear", str(folder)], check=True)
    pip = [python, "-m", "pip", "install", "--quiet", "--only-binary", ":all:"]
    subprocess.run([*pip, *core, *more, *project["project"]["optional-dependencies"]["cli"]], check=True)
    subprocess.run([python, "-m", "pip", "install", "--quiet", "--no-deps", str(ROOT)], check=True)
    subprocess.run([python, "-m", "pip", "list"], check=True)
    chosen = tests or ["tests/members", "tests/weighting", "tests/boosting", "tests/estimators", "tests/persistence"]
    subprocess.run([python, "-m", "pytest", "-n0", "-p", "no:cacheprovider", "-q", *chosen], cwd=ROOT, check=True)


if __name__ == "__main__":
    main()
