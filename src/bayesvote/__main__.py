"""The command line as ``python -m bayesvote``."""

import sys

from bayesvote.apps.cli import main

if __name__ == "__main__":
    sys.exit(main())
