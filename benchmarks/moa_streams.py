"""The generators of `bayesvote.datasets` against MOA's own rows, through CapyMOA.

Run ``python -m benchmarks moa_streams [--rows N]``; needs ``pip install 'bayesvote[capymoa]'`` and
Java. For each generator:

- the largest distance between two distribution functions of a feature (Kolmogorov-Smirnov), and the largest differences
  of means (in standard deviations), standard deviations, ranges and class shares;
- the share of labels that differ from our rule, among MOA's rows and among ours: the noise;
- the accuracy of a tree on rows of its own generator, minus that of a tree that learned the other generator's rows;
- for streams with changes, the largest difference of means in 50 windows, in standard errors.

Centroids and hyperplanes are random. Here they start from the numbers that MOA draws, those of java.util.Random. With
all of MOA's numbers, a loop over the definition must give MOA's rows: the share of rows that it gives.
"""

import argparse
import math
from collections.abc import Iterator, Mapping, Sequence
from importlib import import_module
from typing import Any, NamedTuple

import numpy as np
from numpy.random import SeedSequence

import results
from bayesvote.core.checks import Array, Labels
from bayesvote.datasets import SYNTHETIC
from bayesvote.datasets.generators import (
    LED,
    SEA,
    SEA_THRESHOLDS,
    SEGMENTS,
    Agrawal,
    Applicants,
    Concept,
    ConceptDrift,
    Hyperplane,
    RandomRBF,
    in_group_a,
)

ROWS = 100_000
SEED = 7  # MOA's -i, and our seed
WINDOWS = 50  # of streams with changes
RBF_PARTS = 10


class Drawn(NamedTuple):
    """Rows and labels."""

    X: Array
    y: Labels


class JavaRandom:
    """The random numbers of Java, as the documentation of java.util.Random defines them."""

    def __init__(self, seed: int) -> None:
        self.state = (seed ^ 0x5DEECE66D) & (2**48 - 1)
        self.second: float | None = None  # of a pair of normal numbers

    def bits(self, n: int) -> int:
        """Return n random bits, at most 31."""
        self.state = (self.state * 0x5DEECE66D + 0xB) & (2**48 - 1)
        return self.state >> (48 - n)

    def double(self) -> float:
        """Return a number in [0, 1)."""
        return float(((self.bits(26) << 27) + self.bits(27)) / 2**53)

    def below(self, n: int) -> int:
        """Return an integer from 0 to n - 1."""
        if n & (n - 1) == 0:
            return (n * self.bits(31)) >> 31
        while True:
            drawn = self.bits(31)
            if drawn - drawn % n + n - 1 < 2**31:
                return drawn % n

    def normal(self) -> float:
        """Return a number from the standard normal distribution, by the polar method."""
        if self.second is not None:
            first, self.second = self.second, None
            return first
        while True:
            a, b = 2 * self.double() - 1, 2 * self.double() - 1
            square = a * a + b * b
            if 0 < square < 1:
                scale = math.sqrt(-2 * math.log(square) / square)
                self.second = b * scale
                return a * scale


def moa(name: str, options: str, n: int) -> Drawn:
    """Return rows of a stream of MOA."""
    capymoa = import_module("capymoa.stream")  # starts Java
    package, _, kind = f"moa.streams.{name}".rpartition(".")
    stream = capymoa.MOAStream(moa_stream=getattr(import_module(package), kind)(), CLI=options).moa_stream
    stream.restart()  # CapyMOA may have read a row
    values = np.array([np.array(stream.nextInstance().getData().toDoubleArray()) for _ in range(n)])
    return Drawn(np.ascontiguousarray(values[:, :-1]), values[:, -1].astype(np.intp))


def distance(a: Array, b: Array) -> float:
    """Return the largest difference of two distribution functions."""
    places = np.sort(np.concatenate((a, b)))
    above = [np.searchsorted(np.sort(values), places, side="right") / len(values) for values in (a, b)]
    return float(np.abs(above[0] - above[1]).max())


def tree(rows: Drawn) -> Any:
    kind = import_module("sklearn.tree").DecisionTreeClassifier
    return kind(min_samples_leaf=50, random_state=0).fit(rows.X, rows.y)


def compared(theirs: Drawn, ours: Drawn) -> dict[str, float]:
    """Return distances between distributions, and differences of accuracy."""
    classes = range(int(max(theirs.y.max(), ours.y.max())) + 1)
    shares = [[float((rows.y == k).mean()) for k in classes] for rows in (theirs, ours)]
    half = len(ours.y) // 2
    first, second = ([Drawn(rows.X[part], rows.y[part]) for rows in (theirs, ours)] for part in _halves(half))
    trees = [tree(rows) for rows in first]
    right = np.array([[one.score(*rows) for rows in second] for one in trees])
    return {
        "distance of features": max(distance(a, b) for a, b in zip(theirs.X.T, ours.X.T, strict=True)),
        "difference of means": max(np.abs(theirs.X.mean(axis=0) - ours.X.mean(axis=0)) / (ours.X.std(axis=0) + 1e-12)),
        "difference of deviations": max(np.abs(theirs.X.std(axis=0) / ours.X.std(axis=0) - 1)),
        "difference of ranges": max(np.abs(np.ptp(theirs.X, axis=0) / np.ptp(ours.X, axis=0) - 1)),
        "difference of class shares": max(abs(a - b) for a, b in zip(*shares, strict=True)),
        "accuracy on MOA's rows": right[0, 0] - right[1, 0],
        "accuracy on our rows": right[1, 1] - right[0, 1],
    }


def _halves(half: int) -> tuple[slice, slice]:
    return slice(None, half), slice(half, None)


def largest(found: Sequence[Mapping[str, float]]) -> dict[str, float]:
    """Return the values of largest magnitude."""
    return {what: max((one[what] for one in found), key=abs) for what in found[0]}


def agrawal(n: int) -> dict[str, float]:
    found = []
    for k in range(1, 11):
        theirs = moa("generators.AgrawalGenerator", f"-f {k} -i {SEED + k}", n)
        ours = Drawn(*Agrawal(SeedSequence([SEED, k]), k).rows(n))
        exact = moa("generators.AgrawalGenerator", f"-f {k} -i {SEED + k} -p 0", n // 5)
        both = exact, Drawn(*Agrawal(SeedSequence([SEED, k]), k, noise=0).rows(n // 5))
        off = [float((in_group_a(Applicants(*rows.X.T), k) != (rows.y == 0)).mean()) for rows in both]
        found.append(compared(theirs, ours) | {"off the rule, MOA": off[0], "off the rule, ours": off[1]})
    return largest(found)


def sea(n: int) -> dict[str, float]:
    found = []
    for k, threshold in enumerate(SEA_THRESHOLDS, 1):
        both = (
            moa("generators.SEAGenerator", f"-f {k} -i {SEED + k}", n),
            Drawn(*SEA(SeedSequence([SEED, k]), k).rows(n)),
        )
        off = [float(((X[:, 0] + X[:, 1] > threshold) != y).mean()) for X, y in both]
        found.append(compared(*both) | {"off the rule, MOA": off[0], "off the rule, ours": off[1]})
    return largest(found)


def led(n: int) -> dict[str, float]:
    found = []
    for k in (1, 3, 5, 7):
        theirs = moa("generators.LEDGeneratorDrift", f"-d {k} -i {SEED + k}", n)
        ours = Drawn(*LED(SeedSequence([SEED, k]), k).rows(n))
        places = [7 + j if j < k else j for j in range(7)]
        off = [float((X[:, places] != SEGMENTS[y]).mean()) for X, y in (theirs, ours)]
        found.append(compared(theirs, ours) | {"off the rule, MOA": off[0], "off the rule, ours": off[1]})
    return largest(found)


def centroids_of_moa(generator: RandomRBF, seed: int) -> None:
    """Give a generator the centroids that MOA draws."""
    n, d = generator._start.shape
    model, weights = JavaRandom(seed), np.zeros(n)
    for i in range(n):
        generator._start[i] = [model.double() for _ in range(d)]
        generator._labels[i], generator._spread[i], weights[i] = model.below(5), model.double(), model.double()
    generator._shares = np.cumsum(weights)
    model = JavaRandom(seed)  # MOA draws the directions with the same seed
    direction = np.array([[model.double() for _ in range(d)] for _ in range(n)])
    speed = np.linalg.norm(generator._step[0])
    generator._step = direction * (speed / np.linalg.norm(direction, axis=1, keepdims=True))


def rbf(n: int) -> dict[str, float]:
    """Compare random centroids, in parts of the stream, as these move far in 100,000 rows."""
    found = []
    for speed in (0.0001, 0.001):
        theirs = moa("generators.RandomRBFGeneratorDrift", f"-c 5 -s {speed} -r {SEED} -i {SEED}", n)
        generator = RandomRBF(SeedSequence(SEED), speed)
        centroids_of_moa(generator, SEED)
        ours = Drawn(*generator.rows(n))
        equal = _loop(generator, theirs)
        found += [one | {"rows off the loop": 1 - equal} for one in _in_parts(theirs, ours)]
    worst = largest(found)
    return worst | {"rows of the loop": 1 - worst.pop("rows off the loop")}


def rbf_by_chance(n: int) -> dict[str, float]:
    """Compare two of our own streams with the same centroids: the differences are due to chance."""
    found = []
    for speed in (0.0001, 0.001):
        both = [RandomRBF(SeedSequence([SEED, k]), speed) for k in range(2)]
        for generator in both:
            centroids_of_moa(generator, SEED)
        found += _in_parts(*(Drawn(*generator.rows(n)) for generator in both))
    return largest(found)


def _in_parts(theirs: Drawn, ours: Drawn) -> list[dict[str, float]]:
    parts = np.array_split(np.arange(len(ours.y)), RBF_PARTS)
    # Rows of a part are shuffled, as its two halves have different centroids.
    return [compared(*(_mixed(Drawn(rows.X[part], rows.y[part])) for rows in (theirs, ours))) for part in parts]


def _loop(generator: RandomRBF, theirs: Drawn) -> float:
    """Return the share of MOA's rows that a loop over the numbers that MOA draws gives, too."""
    place, step, rng, equal = generator._start.copy(), generator._step.copy(), JavaRandom(SEED), 0
    for x, label in zip(theirs.X, theirs.y, strict=True):
        place += step
        step[(place > 1) | (place < 0)] *= -1
        np.clip(place, 0, 1, out=place)
        chosen = np.searchsorted(generator._shares, rng.double() * generator._shares[-1], side="right")
        way = np.array([2 * rng.double() - 1 for _ in x])
        row = place[chosen] + way / np.linalg.norm(way) * rng.normal() * generator._spread[chosen]
        equal += label == generator._labels[chosen] and bool(np.abs(row - x).max() < 1e-9)
    return equal / len(theirs.y)


def _mixed(rows: Drawn) -> Drawn:
    order = np.random.default_rng(0).permutation(len(rows.y))
    return Drawn(rows.X[order], rows.y[order])


def hyperplane(n: int) -> dict[str, float]:
    """Compare hyperplanes, and MOA's rows with those of a loop over the numbers that MOA draws."""
    theirs = moa("generators.HyperplaneGenerator", f"-k 10 -t .001 -i {SEED}", n)
    rng = JavaRandom(SEED)
    weights, sign, equal = np.array([rng.double() for _ in range(10)]), np.ones(10), 0
    start = weights.copy()
    clean = np.empty(n, dtype=np.intp)
    for t in range(n):
        x = np.array([rng.double() for _ in range(10)])
        clean[t] = weights @ x >= 0.5 * weights.sum()
        flipped = rng.below(100) < 5
        weights += 0.001 * sign
        sign[[rng.below(100) < 10 for _ in range(10)]] *= -1
        equal += np.array_equal(x, theirs.X[t]) and (clean[t] ^ flipped) == theirs.y[t]
    generator, exact = Hyperplane(SeedSequence(SEED)), Hyperplane(SeedSequence(SEED), noise=0)
    generator._start, exact._start = start, start.copy()
    ours, rule = Drawn(*generator.rows(n)), exact.rows(n)[1]
    # Weights are a random walk: compared on the first rows, where they are nearly those at the start.
    begin = slice(None, max(n // 20, 10))
    found = compared(*(Drawn(rows.X[begin], rows.y[begin]) for rows in (theirs, ours)))
    return (
        compared(theirs, ours)
        | {what: value for what, value in found.items() if what.startswith("accuracy")}
        | {"off the rule, MOA": float((clean != theirs.y).mean()), "off the rule, ours": float((rule != ours.y).mean())}
        | {"rows of the loop": equal / n}
    )


OPTIONS = {
    "LED": ("LEDGeneratorDrift -d", (7, 5, 3, 1, 3, 5, 7)),
    "SEA": ("SEAGenerator -f", (1, 2, 3, 4, 3, 2, 1)),
    "AGR_a": ("AgrawalGenerator -f", tuple(range(1, 11))),
    "AGR_g": ("AgrawalGenerator -f", tuple(range(10, 0, -1))),
}


def chained(name: str, n: int) -> str:
    """Return the options of MOA for a stream with changes; each concept and each change has its own seed."""
    generator, settings = OPTIONS.get(name) or OPTIONS[name[:3]]
    length, width = SYNTHETIC[name].length(n), SYNTHETIC[name].width(n)
    *first, last = [f"(generators.{generator} {k} -i {SEED + i})" for i, k in enumerate(settings)]
    options = last
    for i, concept in reversed(list(enumerate(first))):
        options = f"-s {concept} -d {options} -w {width} -p {length} -r {SEED + 100 + i}"
        options = f"(ConceptDriftStream {options})" if i else options
    return options


def changes(n: int) -> dict[str, float]:
    """Compare the streams with changes, window by window."""
    found = []
    for name in ("LED_a", "LED_g", "SEA_a", "SEA_g", "AGR_a", "AGR_g"):
        theirs = moa("ConceptDriftStream", chained(name, n), n)
        source: Concept = SYNTHETIC[name].start(n, SEED)
        assert isinstance(source, ConceptDrift)
        ours = Drawn(*source.rows(n))
        size = n // WINDOWS
        windows = [slice(k * size, (k + 1) * size) for k in range(WINDOWS)]
        z = [
            np.abs(a.mean(axis=0) - b.mean(axis=0)) / np.sqrt((a.var(axis=0) + b.var(axis=0)) / size + 1e-12)
            for a, b in ((_with_labels(theirs, part), _with_labels(ours, part)) for part in windows)
        ]
        found.append(compared(_mixed(theirs), _mixed(ours)) | {"z of windows": float(np.max(z))})
    return largest(found)


def _with_labels(rows: Drawn, part: slice) -> Array:
    """Return features, and products of features with the label's indicators: their means follow the rule."""
    X, y = rows.X[part], rows.y[part]
    X = X / np.maximum(np.abs(X).max(axis=0), 1e-12)
    return np.concatenate((X, *(X * (y == k)[:, None] for k in range(int(rows.y.max()) + 1))), axis=1)


GENERATORS = {
    "AGR": agrawal,
    "SEA": sea,
    "LED": led,
    "HYPER": hyperplane,
    "changes": changes,
    "RBF": rbf,
    "RBF, by chance": rbf_by_chance,
}


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--rows", type=int, default=ROWS, help="rows of each generator")
    asked, found = parser.parse_args(), {}
    for name, compare in GENERATORS.items():
        found[name] = {what: float(value) for what, value in compare(asked.rows).items()}
        print(name, ", ".join(f"{what} {value:.4f}" for what, value in found[name].items()), flush=True)
    results.write("moa_streams", {"rows": asked.rows, "generators": found}, ["capymoa"])


COLUMNS = {
    "distance of features": "features: distance",
    "difference of means": "means",
    "difference of deviations": "standard deviations",
    "difference of ranges": "ranges",
    "difference of class shares": "class shares",
    "off the rule, MOA": "off the rule: MOA",
    "off the rule, ours": "ours",
    "accuracy on MOA's rows": "accuracy: MOA's rows",
    "accuracy on our rows": "our rows",
    "rows of the loop": "equal rows",
}


def agreement(result: results.Result) -> Iterator[str]:
    """Yield the table of docs/evaluation.md."""
    yield "| generator | " + " | ".join(COLUMNS.values()) + " |"
    yield "|---|" + "---:|" * len(COLUMNS)
    for name, of in result.figures["generators"].items():
        yield f"| {name} | " + " | ".join(f"{of[what]:.4f}" if what in of else "" for what in COLUMNS) + " |"


if __name__ == "__main__":
    main()
