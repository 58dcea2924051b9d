#!/usr/bin/env python3
"""List what the build must not install: ``files`` of kernel sources, or ``folders`` of caches."""

import sys
from pathlib import Path

PACKAGE = Path(__file__).parent.parent / "src" / "bayesvote"

if __name__ == "__main__":
    if sys.argv[1] == "files":
        found = [path for path in PACKAGE.rglob("*") if path.suffix in (".h", ".pyx", ".pxd")]
    else:
        packages = [path.parent for path in PACKAGE.rglob("__init__.py")]
        found = [package / "__pycache__" for package in packages]  # they may not exist yet
    print("\n".join(sorted(path.relative_to(PACKAGE).as_posix() for path in found)))
