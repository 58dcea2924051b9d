"""Memory of the default model: growth of the process, bytes of the forest and of the model file.

``python -m benchmarks memory``. Each set is measured in a fresh process. The streams are made while they are learned,
so that only the model grows. ``growth`` is the resident memory after the rows, less that before the first row. ``peak``
is the largest growth after a chunk. ``--bound`` gives the forest that many megabytes (``TreeBank(max_bytes=)``).
"""

import argparse
import gc
import json
import os
import subprocess
import sys
from collections.abc import Callable
from pathlib import Path
from typing import Any

import numpy as np

from bayesvote import Ensemble, adaptive, decided
from bayesvote.core.checks import Array, Labels
from bayesvote.io.model_file import dumps
from bayesvote.members import scaled
from bayesvote.members.trees import TreeBank
from bayesvote.weighting import drifting

MEGABYTE = 1e6
CHUNK = 2048
SEGMENTS = (
    "1110111",
    "0010010",
    "1011101",
    "1011011",
    "0111010",
    "1101011",
    "1101111",
    "1010010",
    "1111111",
    "1111011",
)
Rng = np.random.Generator


def led(n: int, rng: Rng) -> tuple[Array, Labels]:
    """Ten digits on a display of seven segments, each wrong in one of ten rows, and 17 columns that say nothing."""
    digits = np.array([[int(segment) for segment in digit] for digit in SEGMENTS])
    y = rng.integers(10, size=n)
    shown = digits[y] ^ (rng.random((n, 7)) < 0.1)
    return np.hstack([shown, rng.integers(2, size=(n, 17))]).astype(np.float64), y.astype(np.intp)


def letters(n: int, rng: Rng) -> tuple[Array, Labels]:
    """26 classes in 16 columns of small integers: each class has three centres."""
    centres = np.random.default_rng(1).integers(0, 16, size=(26, 3, 16))
    y = rng.integers(26, size=n)
    X = centres[y, rng.integers(3, size=n)] + rng.normal(scale=3.0, size=(n, 16))
    return np.clip(np.round(X), 0, 15), y.astype(np.intp)


def two(n: int, rng: Rng) -> tuple[Array, Labels]:
    """Two classes in 9 columns, with a curved border and one label in twenty wrong."""
    X = rng.normal(size=(n, 9))
    y = (X[:, 0] * X[:, 1] + np.sin(2 * X[:, 2]) + X[:, 3] > 0) ^ (rng.random(n) < 0.05)
    return X, y.astype(np.intp)


STREAMS: dict[str, tuple[Callable[[int, Rng], tuple[Array, Labels]], int, int]] = {  # rows, features, classes
    "LED, 10 classes": (led, 24, 10),
    "26 classes": (letters, 16, 26),
    "two classes": (two, 9, 2),
}


def resident() -> float:
    """Resident memory of this process in megabytes."""
    pages = int(Path("/proc/self/statm").read_text(encoding="ascii").split()[1])
    return pages * os.sysconf("SC_PAGE_SIZE") / MEGABYTE


def forest_of(bank: Any) -> TreeBank:
    """Find the trees among the members."""
    banks = [bank]
    for one in banks:
        if isinstance(one, TreeBank):
            return one
        banks.extend(one.parts)
    raise ValueError("the model has no trees")


def measure(name: str, rows: int, bound: int | None) -> dict[str, float]:
    """Learn a stream by chunks and measure the memory that the model adds."""
    make, n_features, n_classes = STREAMS[name]
    rng = np.random.default_rng(0)
    bank = scaled(adaptive())
    forest = forest_of(bank)
    forest.max_bytes = bound
    model = Ensemble(bank, drifting(), "wide_ramp").start(n_features, n_classes, rng=0)
    model.decide(make(CHUNK, np.random.default_rng(2))[0])  # what is loaded on first use
    gc.collect()
    before, peak, wrong = resident(), 0.0, list[float]()
    for _ in range(0, rows, CHUNK):
        X, y = make(CHUNK, rng)
        wrong.append(float(np.mean(decided(model.decide_then_learn(X, y)) != y)))
        peak = max(peak, resident() - before)
    gc.collect()
    found = {"error": float(np.mean(wrong)), "growth": resident() - before, "peak": peak}
    found["forest"] = forest.memory() / MEGABYTE
    state: Any = forest.state
    found["forest state"] = sum(array.nbytes for array in state) / MEGABYTE
    found["file"] = len(dumps(model)) / MEGABYTE
    return found


def main() -> None:
    parser = argparse.ArgumentParser(description=(__doc__ or "").partition("\n")[0])
    parser.add_argument("--rows", type=int, default=50_000, help="rows of each stream")
    parser.add_argument("--bound", type=float, help="megabytes that the forest may need")
    parser.add_argument("--set", choices=STREAMS, help="measure one set in this process and print JSON")
    asked = parser.parse_args()
    if asked.set:
        bound = None if asked.bound is None else int(asked.bound * MEGABYTE)
        print(json.dumps(measure(asked.set, asked.rows, bound)))
        return
    rest = [] if asked.bound is None else ["--bound", str(asked.bound)]
    print(f"{'MB after ' + format(asked.rows, ',') + ' rows':24} growth   peak  forest   state    file   error")
    for name in STREAMS:
        command = [sys.executable, __file__, "--set", name, "--rows", str(asked.rows), *rest]
        done = subprocess.run(command, check=True, capture_output=True, text=True)
        found = json.loads(done.stdout)
        sizes = " ".join(f"{found[key]:7.1f}" for key in ("growth", "peak", "forest", "forest state", "file"))
        print(f"{name:22} {sizes} {found['error']:7.4f}", flush=True)


if __name__ == "__main__":
    main()
