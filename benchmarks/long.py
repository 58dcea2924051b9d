"""Memory and accuracy of the weights over a stream of a hundred million generated rows.

``python -m benchmarks long [ROWS] [JOINT_ROWS]``. Memory must not grow, and the weights are compared with exact sums.
The 50 members have fixed, different errors. Their scores are drawn as multiples of 1/8, so their ramp losses are
multiples of 1/16. Sums of sixteenths are whole numbers, which are exact. So the exact weights of (11) and of
JointGaussian are known.
"""

import resource
import sys
import time
from collections.abc import Iterator
from dataclasses import dataclass
from fractions import Fraction
from pathlib import Path
from typing import Any, NamedTuple

import numpy as np

import results
from bayesvote import Ensemble, GammaRate, JointGaussian
from bayesvote.core.checks import Array, Labels
from bayesvote.core.rows import Rows, started
from bayesvote.members import Bank
from bayesvote.weighting import Weighter

MEMBERS, BLOCK = 50, 20_000
SIXTEENTHS = 16


class _Nothing(NamedTuple):
    """The empty state of members that learn nothing."""

    none: Array


@dataclass
class Given(Bank[_Nothing]):
    """Members whose scores are the row itself."""

    n_members: int = MEMBERS

    def init(self, n_features: int, n_classes: int, rng: np.random.Generator) -> _Nothing:  # noqa: ARG002
        """Return the empty state."""
        return _Nothing(np.zeros(0))

    def score(self, rows: Rows) -> Array:
        """Give the row."""
        started(self.who, self.state)
        return rows.todense()

    def advance(self, rows: Rows, y: Labels, w: Array) -> Array:  # noqa: ARG002
        """Give the row."""
        return self.score(rows)

    def least_bytes(self, n_features: int, n_classes: int) -> int:  # noqa: ARG002
        """Nothing."""
        return 0

    def validate(self, state: _Nothing) -> None:
        """Accept the empty state."""


def block(number: int) -> tuple[Array, Labels]:
    """Return scores and labels of a block of rows, which depend on its number only."""
    rng = np.random.default_rng(number)
    y = rng.integers(2, size=BLOCK)
    right = rng.random((BLOCK, MEMBERS)) < np.linspace(0.5, 0.95, MEMBERS)
    size = rng.integers(0, 9, size=(BLOCK, MEMBERS)) / 8
    return np.where(right == (y == 1)[:, None], size, -size), y


def resident() -> float:
    """Return the resident memory of the process in megabytes."""
    try:
        pages = int(Path("/proc/self/statm").read_text().split()[1])
    except OSError:
        return resource.getrusage(resource.RUSAGE_SELF).ru_maxrss / 1024
    return pages * resource.getpagesize() / 2**20


def run(weighter: Weighter[Any], n_rows: int) -> tuple[Ensemble, Labels, Array, float]:
    """Learn the rows; return the model, exact sums of losses and of products of margins, and the growth of memory."""
    model = Ensemble(Given(), weighter).start(MEMBERS, rng=0)
    losses = np.zeros(MEMBERS, dtype=np.intp)  # in sixteenths
    products = np.zeros((MEMBERS, MEMBERS))  # of whole numbers of eighths: exact up to 2**53
    first = 0.0
    start = time.process_time()
    for number in range(n_rows // BLOCK):
        scores, y = block(number)
        model.decide_then_learn(scores, y)
        margins = np.where((y == 1)[:, None], scores, -scores) * 8
        losses += (8 - margins).astype(np.intp).sum(axis=0)
        products += margins.T @ margins
        done = (number + 1) * BLOCK
        if done == min(1_000_000, n_rows // 2 // BLOCK * BLOCK):
            first = resident()
        if done % 5_000_000 == 0:
            print(f"{done:>12,} rows, {time.process_time() - start:8.0f} s, {resident():.0f} MB", flush=True)
    return model, losses, products, resident() - first


def main(n_rows: int = 100_000_000, n_joint: int = 10_000_000) -> None:
    """Run both weighters and compare them with exact weights."""
    n_rows, n_joint = n_rows // BLOCK * BLOCK, n_joint // BLOCK * BLOCK
    prior = GammaRate()
    start = time.process_time()
    model, losses, _, growth = run(prior, n_rows)
    theta = Fraction(prior.theta)
    exact = [(Fraction(1) + n_rows) / (1 + theta * Fraction(int(g), SIXTEENTHS)) for g in losses]
    off = max(abs(Fraction(float(w)) / e - 1) for w, e in zip(model.weights(), exact, strict=True))
    print(f"GammaRate: {n_rows:,} rows, {MEMBERS} members")
    print(f"  memory after the first million: {growth:+.1f} MB")
    print(f"  largest relative difference of a weight from the exact one: {float(off):.1e}")
    found = {"`GammaRate`": [n_rows, growth, float(off), time.process_time() - start]}
    assert off < 1e-10
    assert growth < 20

    joint = JointGaussian(precision=100.0)
    start = time.process_time()
    model, losses, products, growth = run(joint, n_joint)
    # Solve in extended precision, from exact sums.
    margins = np.array([float(Fraction(n_joint) - 2 * Fraction(int(g), SIXTEENTHS)) for g in losses])
    precision = products / 64 + 100.0 * np.eye(MEMBERS)
    expected = np.linalg.solve(precision, margins + 100.0 / MEMBERS)
    for _ in range(3):  # refined, so that the reference is right to the last digits
        rest = (margins + 100.0 / MEMBERS).astype(np.longdouble) - precision.astype(np.longdouble) @ expected
        expected = expected + np.linalg.solve(precision, rest.astype(np.float64))
    off_joint = np.abs(model.weights() - expected).max() / np.abs(expected).max()
    print(f"JointGaussian: {n_joint:,} rows, {MEMBERS} members")
    print(f"  memory after the first million: {growth:+.1f} MB")
    print(f"  largest difference of a weight from the exact one, relative to the largest weight: {off_joint:.1e}")
    assert off_joint < 1e-10
    assert growth < 20
    found["`JointGaussian(precision=100)`"] = [n_joint, growth, float(off_joint), time.process_time() - start]
    results.write("long", {"weights": found})


def exactness(result: results.Result) -> Iterator[str]:
    """Yield the table of docs/reliability.md."""
    yield "| weights | rows | memory after the first million | a weight is off by at most | CPU time |"
    yield "|---|---:|---:|---:|---:|"
    for name, (rows, growth, off, seconds) in result.figures["weights"].items():
        yield f"| {name} | {rows:,} | {growth:+.1f} MB | {off:.1e} | {seconds:.0f} s |"


if __name__ == "__main__":
    main(*map(int, sys.argv[1:]))
