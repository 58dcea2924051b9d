"""Rules of the synthetic streams, row by row, as their papers define them."""

from collections.abc import Sequence
from typing import Any

import numpy as np

from bayesvote.core.checks import Array


def applicant_group(row: Sequence[float], function: int) -> str:
    """Group of an applicant: functions 1 to 10 of Agrawal, Imielinski and Swami (1993)."""
    salary, commission, age, education, _, _, house, years, loan = row
    band = 0 if age < 40 else 1 if age < 60 else 2
    salaries = [(50_000, 100_000), (75_000, 125_000), (25_000, 75_000)]
    loans = [(100_000, 300_000), (200_000, 400_000), (300_000, 500_000)]
    levels = [{0, 1}, {1, 2, 3}, {2, 3, 4}]

    def within(value: float, limits: tuple[int, int]) -> bool:
        return limits[0] <= value <= limits[1]

    if function == 1:
        a = band != 1
    elif function == 2:
        a = within(salary, salaries[band])
    elif function == 3:
        a = education in levels[band]
    elif function == 4:
        inside, outside = [((25, 75), (50, 100)), ((50, 100), (75, 125)), ((50, 100), (25, 75))][band]
        limits = inside if education in levels[band] else outside
        a = within(salary, (1000 * limits[0], 1000 * limits[1]))
    elif function == 5:
        inside_salary = within(salary, salaries[band])
        a = within(loan, loans[band] if inside_salary else loans[(band + 1) % 3])
    elif function == 6:
        a = within(salary + commission, salaries[band])
    else:
        disposable = 2 / 3 * (salary + commission)
        disposable -= {7: 0.2 * loan, 9: 0.2 * loan}.get(function, 0)
        disposable -= 5_000 * education if function > 7 else 0
        disposable -= 20_000 if function in (7, 8) else 10_000
        if function == 10 and years >= 20:
            disposable += 0.2 * house * (years - 20) / 10
        a = disposable > 0
    return "A" if a else "B"


# Segments as drawn: top, upper left, upper right, middle, lower left, lower right, bottom.
DISPLAY = {
    0: (" _ ", "| |", "|_|"),
    1: ("   ", "  |", "  |"),
    2: (" _ ", " _|", "|_ "),
    3: (" _ ", " _|", " _|"),
    4: ("   ", "|_|", "  |"),
    5: (" _ ", "|_ ", " _|"),
    6: (" _ ", "|_ ", "|_|"),
    7: (" _ ", "  |", "  |"),
    8: (" _ ", "|_|", "|_|"),
    9: (" _ ", "|_|", " _|"),
}


def segments(digit: int) -> list[int]:
    """Segments that a digit lights, from a drawing of it."""
    top, upper, lower = DISPLAY[digit]
    drawn = (top[1], upper[0], upper[2], upper[1], lower[0], lower[2], lower[1])
    return [int(mark != " ") for mark in drawn]


def wandering(start: Array, step: Array, n: int) -> Array:
    """Positions of a centroid after 1, ..., n moves, if each coordinate stops at a wall and turns back."""
    place, step, found = start.copy(), step.copy(), []
    for _ in range(n):
        for j in range(len(place)):
            place[j] += step[j]
            if place[j] > 1 or place[j] < 0:
                place[j] = 1 if place[j] > 1 else 0
                step[j] = -step[j]
        found.append(place.copy())
    return np.array(found)


class Nested:
    """A concept, then a stream of the others: rows come from either with a chance of a sigmoid (Bifet et al. 2009)."""

    def __init__(self, draws: list[Any], length: int, width: int, concept: int = 0) -> None:
        self.draws, self.length, self.width, self.concept, self.row = draws, length, width, concept, 0
        self.later = Nested(draws, length, width, concept + 1) if concept < len(draws) else None

    def next(self) -> int:
        """Return the concept of the next row."""
        if self.later is None:
            return self.concept
        self.row += 1
        chance = 1 / (1 + float(np.exp(min(-4 * (self.row - self.length) / self.width, 700))))
        return self.later.next() if self.draws[self.concept].random() <= chance else self.concept
