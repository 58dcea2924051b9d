"""Reproduce the paper's tables and figures and write docs/reproduced.md.

`python -m benchmarks reproduced` runs `bayesvote reproduce settings`, then all other experiments, with the data sets in
BAYESVOTE_DATA. A second run continues in the folder `reproduced`; remove the folder to measure everything again.
"""

import argparse
import subprocess
import sys
from pathlib import Path

import results

PAGE = Path(__file__).parents[1] / "docs" / "reproduced.md"


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("experiments", nargs="*", help="run only these, and write the page reproduced/trial.md")
    asked = parser.parse_args()
    command = [sys.executable, "-m", "bayesvote", "reproduce"]
    if asked.experiments:
        report = "reproduced/trial.md"
        subprocess.run([*command, *asked.experiments, "--folder", "reproduced", "--report", report], check=True)
        return
    subprocess.run([*command, "settings", "--folder", "reproduced"], check=True)
    subprocess.run([*command, "--folder", "reproduced", "--report", str(PAGE)], check=True)
    results.write("reproduced", {})


if __name__ == "__main__":
    main()
