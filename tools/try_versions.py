#!/usr/bin/env python3
"""Run the tests with the lowest or the newest allowed versions of the dependencies.

``python -m tools try_versions lowest|newest [--python python3.13] [pytest arguments]`` makes an environment in build.
The lowest versions are those that pyproject.toml states for the core and the extras, as far as they are compatible.
Extras that need Java or a compiler are left out. Packages that only tests need are as new as possible. uv resolves the
versions.
"""

import argparse
import subprocess
import sys
import tomllib
from pathlib import Path

ROOT = Path(__file__).parent.parent
NOT_FOR_TESTS = ("fastapi", "import-linter", "mypy", "ruff", "scipy-stubs")


def main() -> None:
    """Make the environment, install the package and run the tests."""
    parser = argparse.ArgumentParser(prog="python -m tools try_versions", description=__doc__)
    parser.add_argument("versions", choices=["lowest", "newest"])
    parser.add_argument("--python", default="python3.11")
    given, tests = parser.parse_known_args()
    folder = ROOT / "build" / f"{given.versions}-{Path(given.python).name}"
    python = str(folder / "bin" / "python")
    project = tomllib.loads((ROOT / "pyproject.toml").read_text())
    extras = project["project"]["optional-dependencies"]
    asked = [*project["project"]["dependencies"], *project["build-system"]["requires"]]
    asked += [one for name, ones in extras.items() if name not in ("capymoa", "peers") for one in ones]
    tools = [one for one in project["dependency-groups"]["dev"] if not one.startswith(NOT_FOR_TESTS)]
    asked, tools = ([one for one in ones if not one.startswith("bayesvote")] for ones in (asked, tools))
    subprocess.run([sys.executable, "-m", "pip", "install", "--quiet", "uv>=0.5"], check=True)
    subprocess.run([given.python, "-m", "venv", "--clear", str(folder)], check=True)
    install = [sys.executable, "-m", "uv", "pip", "install", "--quiet", "--python", python]
    lowest = ["--resolution", "lowest-direct"] if given.versions == "lowest" else []
    subprocess.run([*install, *lowest, *asked], check=True)
    subprocess.run([*install, *tools], check=True)
    subprocess.run([*install, "--no-deps", "--no-build-isolation", str(ROOT), str(ROOT / "paper")], check=True)
    subprocess.run([*install[:4], "list", "--python", python], check=True)
    chosen = tests or ["--numprocesses=auto", "--dist=loadfile", "tests", "README.md", "docs"]
    subprocess.run([python, "-m", "pytest", "-p", "no:cacheprovider", *chosen], cwd=ROOT, check=True)


if __name__ == "__main__":
    main()
