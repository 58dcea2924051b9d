#!/usr/bin/env python3
"""Print the version, which only the package states. The build runs this script."""

import re
from pathlib import Path

SOURCE = Path(__file__).parent.parent / "src" / "bayesvote" / "core" / "version.py"

if __name__ == "__main__":
    found = re.search(r'^__version__ = "(.+?)"', SOURCE.read_text(encoding="utf-8"), re.MULTILINE)
    if found is None:
        raise SystemExit(f'{SOURCE} has no line __version__ = "...".')
    print(found[1])
