"""The command line as ``python -m bayesvote``."""

import sys

from bayesvote.cli import main

if __name__ == "__main__":
    sys.exit(main())
