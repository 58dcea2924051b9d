#!/usr/bin/env python3
"""Print the version, which stands in the package alone; the build asks for it here."""

import re
from pathlib import Path

SOURCE = Path(__file__).parent.parent / "src" / "bayesvote" / "core" / "version.py"

if __name__ == "__main__":
    found = re.search(r'^__version__ = "(.+?)"', SOURCE.read_text(encoding="utf-8"), re.MULTILINE)
    if found is None:
        raise SystemExit(f'version.py: {SOURCE} must hold a line __version__ = "...", got none.')
    print(found[1])
