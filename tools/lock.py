#!/usr/bin/env python3
"""Write requirements.lock: version and checksum of every package of the development environment.

pip resolves the versions and reports the file that it selected for each package. The lock file names no package index.
Install it with ``pip install --require-hashes --requirement requirements.lock``.
"""

import json
import subprocess
import sys
import tomllib
from pathlib import Path

ROOT = Path(__file__).parent.parent
HEAD = "# Made by `make lock` for Python {}.{} on Linux; do not edit. Install it with pip's --require-hashes.\n"


def wanted() -> list[str]:
    """Return the requirements of the package, both groups, and all extras except those that need Java or a compiler."""
    given = tomllib.loads((ROOT / "pyproject.toml").read_text())
    extras = given["project"]["optional-dependencies"]
    groups = given["dependency-groups"]
    found = [*given["project"]["dependencies"], *given["build-system"]["requires"]]
    found += [one for name, ones in extras.items() if name not in ("capymoa", "peers") for one in ones]
    found += [one for ones in groups.values() for one in ones]
    # Without the packages of this repository.
    return ["pip>=25.1", *(one for one in found if not one.startswith("bayesvote"))]


def main() -> None:
    """Resolve the versions and write the lock file."""
    command = [sys.executable, "-m", "pip", "install", "--dry-run", "--ignore-installed", "--quiet"]
    command += ["--only-binary", ":all:", "--report", "-", *wanted()]
    report = json.loads(subprocess.run(command, check=True, capture_output=True, text=True).stdout)
    lines = []
    for item in sorted(report["install"], key=lambda item: item["metadata"]["name"].lower()):
        name, version = item["metadata"]["name"].lower().replace("_", "-"), item["metadata"]["version"]
        digest = item["download_info"]["archive_info"]["hashes"]["sha256"]
        lines.append(f"{name}=={version} --hash=sha256:{digest}\n")
    (ROOT / "requirements.lock").write_text(HEAD.format(*sys.version_info) + "".join(lines))
    print(f"requirements.lock: {len(lines)} packages")


if __name__ == "__main__":
    main()
