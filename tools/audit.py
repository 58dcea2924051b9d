#!/usr/bin/env python3
"""List known vulnerabilities of the locked versions, with pip-audit, and versions that it cannot check.

Where a mirror of PyPI has no page for a version, pip-audit skips it. For those, the page of the project tells of its
newest release; a version that is older stays unjudged.
"""

import json
import re
import subprocess
import sys
import urllib.request
from importlib import import_module
from pathlib import Path
from typing import Any

LOCK = Path(__file__).parent.parent / "requirements.lock"


def newest(name: str) -> tuple[str, list[Any]]:
    """Newest release of a project, and what is known of it."""
    index: Any = import_module("pip._internal.models.index")
    with urllib.request.urlopen(f"{index.PyPI.pypi_url}/{name}/json", timeout=60) as answer:
        found = json.load(answer)
    return found["info"]["version"], found["vulnerabilities"]


def main() -> None:
    """Ask, and tell."""
    command = ["pip-audit", "--requirement", str(LOCK), "--no-deps", "--disable-pip", "--format", "json"]
    command += ["--progress-spinner", "off"]
    done = subprocess.run(command, capture_output=True, text=True)
    if not done.stdout:
        sys.exit(done.stderr)
    judged = {each["name"]: each["vulns"] for each in json.loads(done.stdout)["dependencies"] if "vulns" in each}
    locked = dict(re.findall(r"^([^=#\s]+)==(\S+)", LOCK.read_text(), re.MULTILINE))
    unjudged = []
    for name, version in locked.items():
        if name not in judged:
            release, known = newest(name)
            if release == version:
                judged[name] = known
            else:
                unjudged.append(f"{name} {version}, of which {release} is the newest release")
    wrong = {name: known for name, known in judged.items() if known}
    for name, known in wrong.items():
        print(f"{name} {locked[name]}: {', '.join(str(each['id']) for each in known)}")
    print(f"{len(judged)} of {len(locked)} versions judged, {len(wrong)} with known vulnerabilities")
    print(*(f"not judged: {each}" for each in unjudged), sep="\n")
    sys.exit(1 if wrong else 2 if unjudged else 0)


if __name__ == "__main__":
    main()
