"""Generators of synthetic rows: Agrawal, SEA, LED, random radial basis functions and a rotating hyperplane.

They follow the definitions in their papers, with the defaults of MOA. Each draws a fixed number of random numbers per
row from generators of its own, so the size of a block does not change the rows.
"""

from typing import NamedTuple, Protocol

import numpy as np
from numpy.random import Generator, SeedSequence
from numpy.typing import NDArray

from bayesvote.core.checks import Array, Labels

__all__ = ["LED", "SEA", "SEGMENTS", "Agrawal", "Applicants", "Concept", "Hyperplane", "RandomRBF", "in_group_a"]

Flags = NDArray[np.bool_]

SEA_THRESHOLDS = (8.0, 9.0, 7.0, 9.5)
SEA_NOISE, LED_NOISE, HYPERPLANE_NOISE = 0.1, 0.1, 0.05
REVERSAL = 0.1  # chance per row that a weight of the hyperplane changes its direction
_LEAST_STEP = 1e-12  # of a centroid: 1 / step must be a finite number of rows

# Segments of a seven-segment display that each digit lights.
SEGMENTS = np.array(
    [
        [1, 1, 1, 0, 1, 1, 1],
        [0, 0, 1, 0, 0, 1, 0],
        [1, 0, 1, 1, 1, 0, 1],
        [1, 0, 1, 1, 0, 1, 1],
        [0, 1, 1, 1, 0, 1, 0],
        [1, 1, 0, 1, 0, 1, 1],
        [1, 1, 0, 1, 1, 1, 1],
        [1, 0, 1, 0, 0, 1, 0],
        [1, 1, 1, 1, 1, 1, 1],
        [1, 1, 1, 1, 0, 1, 1],
    ]
)


class Concept(Protocol):
    """A source of rows and their labels."""

    def rows(self, n: int) -> tuple[Array, Labels]:
        """Return the next n rows and their labels."""


class Applicants(NamedTuple):
    """Columns of loan applications (Agrawal et al. 1993)."""

    salary: Array
    commission: Array
    age: Array
    education: Array
    car: Array
    zip_code: Array
    house: Array
    years: Array
    loan: Array


def _by_age(people: Applicants, young: Flags, middle: Flags, old: Flags) -> Flags:
    return np.where(people.age < 40, young, np.where(people.age < 60, middle, old))


def _bands(values: Array) -> tuple[Flags, Flags, Flags]:
    """Return which values are in the salary band of the young, of the middle-aged and of the old."""
    first, second, third = (
        (values >= low) & (values <= high) for low, high in ((50_000, 100_000), (75_000, 125_000), (25_000, 75_000))
    )
    return first, second, third


def in_group_a(people: Applicants, function: int) -> Flags:
    """Return who is in group A by function 1 to 10 of Agrawal et al. (1993)."""
    education, loan = people.education, people.loan
    if function == 1:
        return (people.age < 40) | (people.age >= 60)
    if function == 2:
        return _by_age(people, *_bands(people.salary))
    if function == 3:
        return _by_age(people, education <= 1, (education >= 1) & (education <= 3), education >= 2)
    if function == 4:
        middle, high, low = _bands(people.salary)
        return _by_age(
            people,
            np.where(education <= 1, low, middle),
            np.where((education >= 1) & (education <= 3), middle, high),
            np.where(education >= 2, middle, low),
        )
    if function == 5:
        first, second, third = ((loan >= a) & (loan <= a + 200_000) for a in (100_000, 200_000, 300_000))
        young, middle, old = _bands(people.salary)
        return _by_age(
            people, np.where(young, first, second), np.where(middle, second, third), np.where(old, third, first)
        )
    if function == 6:
        return _by_age(people, *_bands(people.salary + people.commission))
    income = 2 * (people.salary + people.commission) / 3
    if function == 7:
        return income - loan / 5 - 20_000 > 0
    if function == 8:
        return income - 5_000 * education - 20_000 > 0
    if function == 9:
        return income - 5_000 * education - loan / 5 - 10_000 > 0
    equity = np.where(people.years >= 20, people.house * (people.years - 20) / 10, 0.0)
    return income - 5_000 * education + equity / 5 - 10_000 > 0


class Agrawal:
    """Loan applications in two groups (Agrawal et al. 1993); group A is class 0.

    After the label is known, each numeric value moves by up to ``noise`` times its range and is clipped. As in MOA, the
    house value is clipped at 135,000 then, which is below most values.
    """

    def __init__(self, seed: SeedSequence, function: int, noise: float = 0.05) -> None:
        self._rng, self._function, self._noise = np.random.default_rng(seed), function, noise

    def rows(self, n: int) -> tuple[Array, Labels]:
        """Return the next n rows and their labels."""
        u = np.ascontiguousarray(self._rng.random((n, 15)).T)
        salary = 20_000 + 130_000 * u[0]
        zip_code = np.floor(9 * u[5])
        people = Applicants(
            salary,
            np.where(salary >= 75_000, 0.0, 10_000 + 65_000 * u[1]),
            20 + np.floor(61 * u[2]),
            np.floor(5 * u[3]),
            np.floor(20 * u[4]),
            zip_code,
            (9 - zip_code) * 100_000 * (0.5 + u[6]),
            1 + np.floor(30 * u[7]),
            500_000 * u[8],
        )
        y = (~in_group_a(people, self._function)).astype(np.intp)
        if self._noise:
            people = self._moved(people, 2 * u[9:] - 1)
        return np.stack(people, axis=1), y

    def _moved(self, people: Applicants, by: Array) -> Applicants:
        def moved(values: Array, k: int, low: float, high: float, width: float | Array) -> Array:
            return np.asarray(np.clip(values + width * by[k] * self._noise, low, high))

        commission = moved(people.commission, 1, 10_000, 75_000, 65_000)
        return people._replace(
            salary=moved(people.salary, 0, 20_000, 150_000, 130_000),
            commission=np.where(people.commission > 0, commission, 0.0),
            age=np.floor(moved(people.age, 2, 20, 80, 60) + 0.5),
            house=moved(people.house, 3, 0, 135_000, (9 - people.zip_code) * 100_000),
            years=np.floor(moved(people.years, 4, 1, 30, 29) + 0.5),
            loan=moved(people.loan, 5, 0, 500_000, 500_000),
        )


class SEA:
    """Three features, two of which count (Street and Kim 2001): class 1 if their sum is above a threshold."""

    def __init__(self, seed: SeedSequence, function: int, noise: float = SEA_NOISE) -> None:
        self._rng, self._threshold, self._noise = np.random.default_rng(seed), SEA_THRESHOLDS[function - 1], noise

    def rows(self, n: int) -> tuple[Array, Labels]:
        """Return the next n rows and their labels."""
        u = self._rng.random((n, 4))
        X = 10 * u[:, :3]
        above = X[:, 0] + X[:, 1] > self._threshold
        return X, (above ^ (u[:, 3] < self._noise)).astype(np.intp)


class LED:
    """A digit on a display whose seven segments are sometimes wrong (Breiman et al. 1984), and 17 random bits.

    The first ``swapped`` segments have changed places with as many of the random bits.
    """

    def __init__(self, seed: SeedSequence, swapped: int, noise: float = LED_NOISE) -> None:
        self._rng, self._noise = np.random.default_rng(seed), noise
        k = np.arange(swapped)
        self._order = np.arange(24)
        self._order[k], self._order[7 + k] = 7 + k, k

    def rows(self, n: int) -> tuple[Array, Labels]:
        """Return the next n rows and their labels."""
        u = self._rng.random((n, 25))
        digits = (10 * u[:, 0]).astype(np.intp)
        bits = np.concatenate((SEGMENTS[digits] ^ (u[:, 1:8] < self._noise), u[:, 8:] < 0.5), axis=1)
        return bits[:, self._order].astype(np.float64), digits


class RandomRBF:
    """Rows around 50 centroids, each with a class, a weight and a spread; the centroids drift (MOA).

    Each centroid moves in its own direction by ``speed`` per row. A coordinate that passes 0 or 1 stops there and turns
    back with the next row.
    """

    def __init__(
        self, seed: SeedSequence, speed: float, n_centroids: int = 50, n_features: int = 10, n_classes: int = 5
    ) -> None:
        model, uniform, normal = (np.random.default_rng(one) for one in seed.spawn(3))
        self._uniform, self._normal = uniform, normal
        self._start = model.random((n_centroids, n_features))
        self._labels = model.integers(0, n_classes, n_centroids)
        self._spread = model.random(n_centroids)
        self._shares = np.cumsum(model.random(n_centroids))
        direction = model.random((n_centroids, n_features))
        self._step = direction * (speed / np.linalg.norm(direction, axis=1, keepdims=True))
        self._rows = 0

    def rows(self, n: int) -> tuple[Array, Labels]:
        """Return the next n rows and their labels."""
        d = self._start.shape[1]
        u = self._uniform.random((n, 1 + d))
        chosen = np.searchsorted(self._shares, u[:, 0] * self._shares[-1], side="right")
        moves = self._rows + np.arange(1.0, n + 1)
        self._rows += n
        direction = 2 * u[:, 1:] - 1
        length = self._normal.standard_normal(n) * self._spread[chosen]
        length /= np.sqrt(np.square(direction).sum(axis=1))
        X = bounced(self._start[chosen], self._step[chosen], moves[:, None]) + direction * length[:, None]
        return X, self._labels[chosen].astype(np.intp)


def bounced(start: Array, step: Array, moves: Array) -> Array:
    """Return where coordinates in [0, 1] are after some moves, if they turn back at 0 and 1.

    A move that would pass a wall ends at the wall. So the way from wall to wall takes a whole number of moves, and the
    position is known without the moves before.
    """
    step = np.maximum(step, _LEAST_STEP)
    across = np.floor(1 / step) + 1  # moves from one wall to the other
    since = moves - (np.floor((1 - start) / step) + 1)  # moves since the first wall, which is 1
    lap = np.mod(since, 2 * across)
    back = np.where(lap <= across, np.maximum(1 - step * lap, 0), np.minimum(step * (lap - across), 1))
    return np.where(since < 0, start + step * moves, back)


class Hyperplane:
    """Points of a cube on either side of a hyperplane whose weights all change (Hulten et al. 2001).

    After each row, every weight moves by ``speed``, and changes its direction with a chance of 0.1.
    """

    def __init__(
        self, seed: SeedSequence, speed: float = 0.001, n_features: int = 10, noise: float = HYPERPLANE_NOISE
    ) -> None:
        self._rng, self._speed, self._noise = np.random.default_rng(seed), speed, noise
        self._start = self._rng.random(n_features)
        self._sign = np.ones(n_features, dtype=np.int64)
        self._moves = np.zeros(n_features, dtype=np.int64)  # moves up minus moves down

    def rows(self, n: int) -> tuple[Array, Labels]:
        """Return the next n rows and their labels."""
        d = len(self._start)
        u = self._rng.random((n, 2 * d + 1))
        X, turns = u[:, :d].copy(), u[:, d + 1 :] < REVERSAL
        signs = np.concatenate((self._sign[None], self._sign * np.cumprod(np.where(turns, -1, 1), axis=0)))
        moves = self._moves + np.concatenate((np.zeros((1, d), dtype=np.int64), np.cumsum(signs[:-1], axis=0)))
        self._sign, self._moves = signs[-1], moves[-1]
        weights = self._start + self._speed * moves[:-1]
        above = ((X - 0.5) * weights).sum(axis=1) >= 0
        return X, (above ^ (u[:, d] < self._noise)).astype(np.intp)


class ConceptDrift:
    """Concepts one after the other; rows near a change come from either, by a sigmoid of their position.

    As MOA's ConceptDriftStream, nested to the right: a change counts only the rows that the changes before it passed
    on. Change k is centred on row k times ``length``.
    """

    def __init__(self, seed: SeedSequence, concepts: list[Concept], length: int, width: int) -> None:
        self._concepts, self._length, self._width = concepts, length, width
        self._rngs: list[Generator] = [np.random.default_rng(one) for one in seed.spawn(len(concepts) - 1)]
        self._passed = [0] * len(self._rngs)

    def rows(self, n: int) -> tuple[Array, Labels]:
        """Return the next n rows and their labels."""
        which = self.concepts(n)
        blocks = [(k, *self._concepts[k].rows(int(np.count_nonzero(which == k)))) for k in np.unique(which)]
        if len(blocks) == 1:
            return blocks[0][1:]
        X, y = np.empty((n, blocks[0][1].shape[1])), np.empty(n, dtype=np.intp)
        for k, rows, labels in blocks:
            X[which == k], y[which == k] = rows, labels
        return X, y

    def concepts(self, n: int) -> Labels:
        """Return the concepts that the next n rows come from."""
        which, left = np.zeros(n, dtype=np.intp), np.arange(n)
        for k, rng in enumerate(self._rngs):
            position = self._passed[k] + np.arange(1, len(left) + 1)
            self._passed[k] += len(left)
            distance = np.clip(4.0 * (position - self._length) / self._width, -700, 700)
            left = left[rng.random(len(left)) * (1 + np.exp(-distance)) <= 1]
            which[left] = k + 1
        return which
