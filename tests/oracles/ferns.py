"""Random ferns as plain loops over rows, members, questions and candidates."""

import itertools
import math
from collections.abc import Sequence
from typing import Any

import numpy as np


def entropy_sum(counts: Sequence[float]) -> float:
    total = sum(counts)
    return -sum(c * math.log(c / total) for c in counts if c > 0)


def draw_rows(warmup: int) -> list[int]:
    """Return the row counts after which questions are chosen again."""
    return [n for n in range(4, warmup) if n & (n - 1) == 0] + [warmup]


def cut(values: list[float], place: float) -> float:
    """Return the midpoint between two neighbouring values, at this position of their order."""
    distinct = sorted({v for v in values if not math.isnan(v)})
    if not distinct:
        return 0.0
    if len(distinct) == 1:
        return distinct[0]
    middles = [low + (high - low) / 2 for low, high in itertools.pairwise(distinct)]
    return middles[int(place * len(middles))]


class Fern:
    """One member: candidates are (feature, place) pairs, a list of them per question."""

    def __init__(self, candidates: list[list[tuple[int, float]]], n_classes: int, smoothing: float) -> None:
        self.candidates = candidates
        self.n_classes = n_classes
        self.smoothing = smoothing
        self.questions: list[tuple[int, float]] = []
        self.counts: dict[tuple[bool, ...], list[float]] = {}

    def pattern(self, x: Sequence[float]) -> tuple[bool, ...] | None:
        if any(math.isnan(x[j]) for j, _ in self.questions):
            return None
        return tuple(x[j] <= t for j, t in self.questions)

    def draw(self, rows: list[tuple[list[float], int, float]]) -> None:
        self.questions = []
        for options in self.candidates:
            best = -math.inf
            for j, place in options:
                t = cut([x[j] for x, _, _ in rows], place)
                cells: dict[Any, list[list[float]]] = {}
                for x, y, w in rows:
                    p = self.pattern(x)
                    if p is not None and not math.isnan(x[j]):
                        empty = [[0.0] * self.n_classes for _ in range(2)]
                        cells.setdefault(p, empty)[x[j] <= t][y] += w
                gain = 0.0
                for no, yes in cells.values():
                    both = [a + b for a, b in zip(no, yes, strict=True)]
                    gain += entropy_sum(both) - entropy_sum(no) - entropy_sum(yes)
                if gain > best + 1e-10 * sum(w for _, _, w in rows):  # the first of those that tie
                    best, question = gain, (j, t)
            self.questions.append(question)
        self.counts = {}
        for x, y, w in rows:
            self.learn(x, y, w)

    def score(self, x: Sequence[float]) -> list[float]:
        p = self.pattern(x)
        if not self.questions or p is None:
            return [math.nan] * self.n_classes
        counts = [c + self.smoothing for c in self.counts.get(p, [0.0] * self.n_classes)]
        return [0.5 * math.log(c / sum(counts)) for c in counts]

    def learn(self, x: Sequence[float], y: int, w: float) -> None:
        p = self.pattern(x)
        if self.questions and p is not None:
            self.counts.setdefault(p, [0.0] * self.n_classes)[y] += w


def run(
    ferns: list[Fern], X: list[list[float]], y: list[int], w: list[float], warmup: int
) -> np.ndarray[Any, np.dtype[np.float64]]:
    """Score, then learn, row by row; (n, m) for two classes, else (n, m, K)."""
    kept: list[tuple[list[float], int, float]] = []
    draws = draw_rows(warmup)
    out = []
    for x, label, weight in zip(X, y, w, strict=True):
        scores = [fern.score(x) for fern in ferns]
        out.append([s[1] - s[0] for s in scores] if ferns[0].n_classes == 2 else scores)
        if weight == 0:
            continue
        for fern in ferns:
            fern.learn(x, label, weight)
        if len(kept) < warmup:
            kept.append((x, label, weight))
            if len(kept) in draws:
                for fern in ferns:
                    fern.draw(kept)
    return np.array(out)
