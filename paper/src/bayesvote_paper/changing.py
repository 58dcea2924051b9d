"""Streams that change: short variants of the drift literature's generators, and one of real weather.

They have the rules of `bayesvote.datasets.generators`, which has the streams of a million rows that papers publish, but
other changes and noise.

Features are unscaled. Each generator returns rows, labels and the rows of abrupt changes, which are none if the stream
changes all the time.
"""

import csv
import io
import lzma
from collections.abc import Callable, Mapping, Sequence
from functools import partial
from importlib import resources
from typing import NamedTuple

import numpy as np
from numpy.typing import NDArray

from bayesvote.core.checks import Array, Labels
from bayesvote.datasets.generators import SEA_THRESHOLDS, SEGMENTS, Applicants, in_group_a

ROWS = 20_000


class Changing(NamedTuple):
    """Rows, their labels, and the rows at which the stream changes."""

    X: Array
    y: Labels
    changes: tuple[int, ...]

    def after_changes(self, rows: int) -> NDArray[np.bool_]:
        """Return a mask of the first ``n`` rows after each change."""
        since = np.arange(len(self.y))[:, None] - np.array(self.changes or (len(self.y),))
        return np.asarray(((since >= 0) & (since < rows)).any(axis=1))


def sea(seed: int, every: int = ROWS // 4, noise: float = 0.1) -> Changing:
    """SEA (Street and Kim 2001): the sum of two of three features is at most a threshold, which changes."""
    rng = np.random.default_rng(seed)
    X = rng.uniform(0, 10, (ROWS, 3))
    threshold = np.array(SEA_THRESHOLDS)[np.arange(ROWS) // every % 4]
    return _noisy(X, X[:, 0] + X[:, 1] <= threshold, rng, noise, every)


def hyperplane(seed: int, speed: float = 0.001, noise: float = 0.05) -> Changing:
    """A rotating hyperplane in ten dimensions (Hulten et al. 2001); each weight reverses once in a hundred rows."""
    rng = np.random.default_rng(seed)
    X = rng.random((ROWS, 10))
    start, turns = rng.random(10), rng.random((ROWS, 10)) < 0.01
    signs = np.cumprod(np.where(turns, -1, 1), axis=0)
    steps = np.concatenate((np.ones((1, 10)), signs[:-1]))
    weights = start + speed * np.concatenate((np.zeros((1, 10)), np.cumsum(steps, axis=0)[:-1]))
    return _noisy(X, ((X - 0.5) * weights).sum(axis=1) >= 0, rng, noise)


def _people(rng: np.random.Generator) -> Applicants:
    salary = rng.uniform(20_000, 150_000, ROWS)
    commission = np.where(salary >= 75_000, 0.0, rng.uniform(10_000, 75_000, ROWS))
    zip_code = rng.integers(0, 9, ROWS).astype(np.float64)
    return Applicants(
        salary,
        commission,
        rng.integers(20, 81, ROWS).astype(np.float64),
        rng.integers(0, 5, ROWS).astype(np.float64),
        rng.integers(1, 21, ROWS).astype(np.float64),
        zip_code,
        (9 - zip_code) * 100_000 * rng.uniform(0.5, 1.5, ROWS),
        rng.integers(1, 31, ROWS).astype(np.float64),
        rng.uniform(0, 500_000, ROWS),
    )


def agrawal(
    seed: int, functions: Sequence[int], every: int = ROWS // 4, width: int = 0, noise: float = 0.05
) -> Changing:
    """Loan applications (Agrawal et al. 1993); the function that grants them changes abruptly or over some rows."""
    rng = np.random.default_rng(seed)
    people, t = _people(rng), np.arange(ROWS)
    which = t // every
    if width:  # near a change, the probability of the new function grows
        starts = np.arange(every, ROWS, every)
        chance = 1 / (1 + np.exp(np.clip(-4 * (t[:, None] - starts) / width, -500, 500)))
        which = (rng.random((ROWS, len(starts))) < chance).sum(axis=1)
    granted = np.stack([in_group_a(people, function) for function in functions])
    return _noisy(np.stack(people, axis=1), ~granted[which % len(functions), t], rng, noise, every)


def led(seed: int, every: int = ROWS // 4, noise: float = 0.1) -> Changing:
    """Odd and even digits on a faulty display of seven segments (Breiman et al. 1984), and 17 irrelevant lamps.

    At a change, some segments are exchanged with lamps.
    """
    rng = np.random.default_rng(seed)
    digits = rng.integers(0, 10, ROWS)
    faulty = rng.random((ROWS, 7)) < noise
    X = np.concatenate((SEGMENTS[digits] ^ faulty, rng.integers(0, 2, (ROWS, 17))), axis=1).astype(np.float64)
    for k, traded in enumerate((0, 3, 5, 7)):
        part = slice(k * every, (k + 1) * every)
        X[part, :traded], X[part, 7 : 7 + traded] = X[part, 7 : 7 + traded].copy(), X[part, :traded].copy()
    return Changing(X, digits % 2, _changes(every))


def sine(seed: int, kinds: Sequence[int], every: int = ROWS // 4, noise: float = 0.0) -> Changing:
    """Points below or above one of two sines, or reversed (Gama et al. 2004), with two irrelevant features."""
    rng = np.random.default_rng(seed)
    X = rng.random((ROWS, 4))
    below = np.stack((X[:, 1] < np.sin(X[:, 0]), X[:, 1] < 0.5 + 0.3 * np.sin(3 * np.pi * X[:, 0])))
    kind = np.array(kinds)[np.arange(ROWS) // every % len(kinds)]
    return _noisy(X, below[kind // 2, np.arange(ROWS)] ^ (kind % 2 == 1), rng, noise, every)


def rbf(seed: int, speed: float = 0.0005) -> Changing:
    """Rows around fifty moving centres of two classes in ten dimensions; the centres bounce off the walls."""
    rng = np.random.default_rng(seed)
    centres, classes, spread = rng.random((50, 10)), rng.integers(0, 2, 50), rng.random(50)
    share = rng.random(50)
    way = rng.normal(size=(50, 10))
    way *= speed / np.linalg.norm(way, axis=1, keepdims=True)
    chosen = rng.choice(50, ROWS, p=share / share.sum())
    off = rng.normal(size=(ROWS, 10))
    off *= (rng.normal(size=ROWS) * spread[chosen])[:, None] / np.linalg.norm(off, axis=1, keepdims=True)
    # A centre that bounces moves like the mirror image of one that does not.
    place = (centres[chosen] + np.arange(1, ROWS + 1)[:, None] * way[chosen]) % 2
    return Changing(np.where(place > 1, 2 - place, place) + off, classes[chosen], ())


def weather(seed: int) -> Changing:  # noqa: ARG001 - the signature of the generators; there is only one order in time
    """Rain or none on 18,159 days at one station, by eight measurements, in order of time (NOAA, public domain)."""
    packed = resources.files(__package__).joinpath("weather.csv.xz").read_bytes()
    with io.StringIO(lzma.decompress(packed).decode()) as text:
        next(rows := csv.reader(text))
        table = np.array(list(rows), dtype=np.float64)
    return Changing(np.ascontiguousarray(table[:, :-1]), table[:, -1].astype(np.intp), ())


def _changes(every: int) -> tuple[int, ...]:
    return tuple(range(every, ROWS, every)) if every else ()


def _noisy(X: Array, y: NDArray[np.bool_], rng: np.random.Generator, noise: float, every: int = 0) -> Changing:
    return Changing(X, (y ^ (rng.random(ROWS) < noise)).astype(np.intp), _changes(every))


STREAMS: Mapping[str, Callable[[int], Changing]] = {
    "weather": weather,
    "SEA": sea,
    "SEA, often": partial(sea, every=ROWS // 8),
    "hyperplane": hyperplane,
    "hyperplane, fast": partial(hyperplane, speed=0.01),
    "Agrawal, abrupt": partial(agrawal, functions=(1, 3, 5, 7)),
    "Agrawal, gradual": partial(agrawal, functions=(2, 4, 6, 1), width=2000),
    "Agrawal, recurring": partial(agrawal, functions=(3, 6), every=4000),
    "LED": led,
    "sine": partial(sine, kinds=(0, 1, 2, 3)),
    "sine, recurring": partial(sine, kinds=(0, 1), every=2500, noise=0.05),
    "RBF": rbf,
    "RBF, fast": partial(rbf, speed=0.002),
}
