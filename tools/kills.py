"""Kill ``bayesvote run`` at random moments and go on, again and again: the results are those of a run left in peace.

``python -m tools kills`` does so a hundred times, over numbers and over a table with texts and late labels.
"""

import argparse
import random
import subprocess
import sys
import tempfile
import time
from pathlib import Path

ROWS = 6_000


def write_table(path: Path) -> None:
    """Write rows with a number, a text and a missing value now and then."""
    rng = random.Random(0)
    lines = ["island,mass,bill,species"]
    for _ in range(ROWS):
        island = rng.choice(["Dream", "Biscoe", "Torgersen", ""])
        mass, bill = rng.gauss(0, 1), rng.gauss(0, 1)
        species = "Adelie" if mass + (island == "Dream") > rng.gauss(0, 0.3) else "Gentoo"
        lines.append(f"{island},{mass:.3f},{'' if rng.random() < 0.05 else f'{bill:.3f}'},{species}")
    path.write_text("\n".join(lines) + "\n")


def command(folder: Path, file: Path, more: list[str]) -> list[str]:
    """Return a run that writes everything into a folder."""
    folder.mkdir(exist_ok=True)
    outputs = ["-o", folder / "model", "--predictions", folder / "p.csv", "--checkpoint", folder / "state"]
    options = ["--n-members", 9, "--chunk-size", 20, "--checkpoint-every", 40, "--resume", *more]
    return [sys.executable, "-m", "bayesvote", "run", *map(str, (file, *outputs, *options))]


def same(a: Path, b: Path) -> bool:
    """Whether two runs have the same model and predictions, bit for bit."""
    return all((a / name).read_bytes() == (b / name).read_bytes() for name in ("model", "p.csv"))


def kill_often(folder: Path, file: Path, more: list[str], kills: int, rng: random.Random) -> tuple[int, int]:
    """Kill a run so many times, then let it end; return how many times it had ended before, and was compared."""
    whole = folder / "whole"
    start = time.monotonic()
    subprocess.run(command(whole, file, more), check=True, capture_output=True)
    longest = time.monotonic() - start
    killed = ended = 0
    part = folder / "part"
    while killed < kills:
        with subprocess.Popen(command(part, file, more), stdout=subprocess.DEVNULL, stderr=subprocess.PIPE) as run:
            try:
                run.wait(rng.uniform(0, longest))
            except subprocess.TimeoutExpired:
                run.kill()
                run.wait()
                killed += 1
                continue
            if run.returncode:
                sys.exit(f"After {killed} kills, going on failed: {run.stderr and run.stderr.read().decode()}")
        ended += compared(part, whole, killed)
    subprocess.run(command(part, file, more), check=True, capture_output=True)
    return killed, ended + compared(part, whole, killed)


def compared(part: Path, whole: Path, killed: int) -> int:
    """Compare a run that has ended with the one left in peace, and clear it away."""
    if not same(part, whole):
        sys.exit(f"After {killed} kills, the model or the predictions differ.")
    for path in part.iterdir():
        path.unlink()
    return 1


def main() -> None:
    """Kill, go on, compare."""
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--kills", type=int, default=100)
    parser.add_argument("--seed", type=int, default=0)
    given = parser.parse_args()
    rng = random.Random(given.seed)
    killed = ended = 0
    for more in ([], ["--delay", "7"]):
        with tempfile.TemporaryDirectory() as place:
            folder = Path(place)
            write_table(folder / "rows.csv")
            k, e = kill_often(folder, folder / "rows.csv", more, given.kills // 2, rng)
            killed, ended = killed + k, ended + e
    print(f"{killed} kills, {ended} runs that ended after them: model and predictions bit for bit.")


if __name__ == "__main__":
    main()
