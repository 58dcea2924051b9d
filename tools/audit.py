#!/usr/bin/env python3
"""List known vulnerabilities of the locked versions, with pip-audit, and versions that it cannot check.

pip-audit skips a version if the mirror of PyPI has no page for it. Such a version is checked on the page of its
project, which lists the vulnerabilities of the newest release. Older versions remain unchecked.
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
    """Return the newest release of a project, and its known vulnerabilities."""
    index: Any = import_module("pip._internal.models.index")
    with urllib.request.urlopen(f"{index.PyPI.pypi_url}/{name}/json", timeout=60) as answer:
        found = json.load(answer)
    return found["info"]["version"], found["vulnerabilities"]


def main() -> None:
    """Install pip-audit, check all versions and print the vulnerabilities."""
    subprocess.run([sys.executable, "-m", "pip", "install", "--quiet", "pip-audit>=2.7"], check=True)
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
                unjudged.append(f"{name} {version}: the newest release is {release}")
    wrong = {name: known for name, known in judged.items() if known}
    for name, known in wrong.items():
        print(f"{name} {locked[name]}: {', '.join(str(each['id']) for each in known)}")
    print(f"{len(judged)} of {len(locked)} versions checked, {len(wrong)} with known vulnerabilities")
    print(*(f"not checked: {each}" for each in unjudged), sep="\n")
    sys.exit(1 if wrong else 2 if unjudged else 0)


if __name__ == "__main__":
    main()
