#!/usr/bin/env python3
"""Check the import layers of the sources."""

import sys
from pathlib import Path

from importlinter.cli import lint_imports_command

if __name__ == "__main__":
    # The linter cannot read the folders of an editable install.
    sys.meta_path[:] = [finder for finder in sys.meta_path if "Mesonpy" not in type(finder).__name__]
    sys.path.insert(0, str(Path(__file__).parent.parent / "src"))
    lint_imports_command()
