"""A bank of trees as plain loops over rows, trees, nodes and questions.

Rows are kept for ever, trees are objects that hold their children, and every row is learned before the next is looked
at. Cuts, and what the refined members hold, are rounded to single precision as the bank does.
"""

import math
from collections.abc import Callable, Iterable
from dataclasses import dataclass, field
from typing import Any

import numpy as np

Row = list[float]
Sample = tuple[Row, int, float]  # columns, label, weight

SMOOTHING = 0.3
MASK = 2**64 - 1


def single(value: float) -> float:
    return float(np.float32(value))


def added(values: Iterable[float]) -> float:
    """Return the sum, rounded at every step, which the built-in function does not do since Python 3.12."""
    total = 0.0
    for value in values:
        total += value
    return total


class Random:
    """SplitMix64."""

    def __init__(self, state: int) -> None:
        self.state = state

    def word(self) -> int:
        self.state = (self.state + 0x9E3779B97F4A7C15) & MASK
        z = self.state
        z = ((z ^ (z >> 30)) * 0xBF58476D1CE4E5B9) & MASK
        z = ((z ^ (z >> 27)) * 0x94D049BB133111EB) & MASK
        return z ^ (z >> 31)

    def below(self, n: int) -> int:
        return ((self.word() >> 32) * n) >> 32

    def between(self, low: float, high: float) -> float:
        u = np.float32((self.word() >> 40) / 2**24)
        cut = float(np.float32(low) + u * (np.float32(high) - np.float32(low)))
        return cut if cut < high else low


@dataclass(eq=False)
class Candidate:
    column: int
    first: float
    cut: float | None = None
    counts: list[list[float]] = field(default_factory=list)  # by side and class


@dataclass(eq=False)
class Node:
    counts: list[float]
    prior: list[float]
    parent: "Node | None" = None
    question: tuple[int, float, int] | None = None  # column, cut, side of missing values
    children: "list[Node]" = field(default_factory=list)
    candidates: list[Candidate] | None = None
    candidate_weight: float = 0.0
    refined: Any = None  # values (rates, outputs) and sums (rates, 1)

    def shares(self) -> list[float]:
        weights = [c + SMOOTHING * q for c, q in zip(self.counts, self.prior, strict=True)]
        return [weight / added(weights) for weight in weights]

    def split(self, column: int, cut: float, missing: int) -> None:
        prior = [single(max(p, 1e-12)) for p in self.shares()]
        self.question = (column, cut, missing)
        self.children = [Node([0.0] * len(prior), prior, self) for _ in range(2)]


def side(x: Row, question: tuple[int, float, int]) -> int:
    column, cut, missing = question
    value = x[column] if column < len(x) else 0.0  # a column that came later was 0
    return missing if math.isnan(value) else int(value > cut)


def leaf_of(root: Node, x: Row) -> Node:
    while root.question is not None:
        root = root.children[side(x, root.question)]
    return root


def size(root: Node) -> int:
    return 1 + sum(size(child) for child in root.children)


def gini_gain(left: list[float], total: list[float]) -> float:
    n_left, n = added(left), added(total)
    if n_left <= 0 or n_left >= n:
        return 0.0
    pairs = list(zip(left, total, strict=True))
    return added((a * n - b * n_left) ** 2 for a, b in pairs[len(pairs) == 2 :]) / (n_left * (n - n_left))


class Growth:
    """A tree being grown from some rows."""

    def __init__(self, begun: int, samples: list[Sample], n_columns: int, n_classes: int, seed: int) -> None:
        self.begun, self.samples, self.n_columns, self.n_classes = begun, samples, n_columns, n_classes
        self.random = Random(seed)
        self.root = Node([0.0] * n_classes, [single(1 / n_classes)] * n_classes)
        self.n_nodes = 1
        self.order = list(range(len(samples)))
        self.waiting = [(self.root, 0, len(samples))]
        self.counted = begun

    def go_on(self, seen: int, kept: list[Sample], max_nodes: int, longest: int) -> bool:
        work, late = 0, seen - self.begun >= longest
        while self.waiting and (work < 4096 or late):
            work += self.look(max_nodes, late)
        while not self.waiting and self.counted < seen and work < 4096:
            x, y, w = kept[self.counted]
            leaf_of(self.root, x).counts[y] += w
            self.counted += 1
            work += 64
        return not self.waiting and self.counted == seen

    def look(self, max_nodes: int, late: bool) -> int:
        node, first, last = self.waiting.pop(0)
        n = last - first
        for q in self.order[first:last]:
            node.counts[self.samples[q][1]] += self.samples[q][2]
        work = 32 + n
        mixed = sum(c > 0 for c in node.counts) > 1
        if late or n < 2 or self.n_columns == 0 or self.n_nodes + 2 > max_nodes or not mixed:
            return work
        if n > 256:
            n = 256
            for q in range(first, first + n):
                other = q + self.random.below(last - q)
                self.order[q], self.order[other] = self.order[other], self.order[q]
        looked, question = self.ask([self.samples[q] for q in self.order[first : first + n]])
        work += looked
        if question is not None:
            node.split(*question)
            self.n_nodes += 2
            middle = self.part(first, last, question)
            self.waiting += [(node.children[0], first, middle), (node.children[1], middle, last)]
        return work

    def part(self, first: int, last: int, question: tuple[int, float, int]) -> int:
        while first < last:
            if side(self.samples[self.order[first]][0], question) == 0:
                first += 1
            else:
                last -= 1
                self.order[first], self.order[last] = self.order[last], self.order[first]
        return first

    def ask(self, rows: list[Sample]) -> tuple[int, tuple[int, float, int] | None]:
        total = self.sums(rows, lambda _: True)
        best, question, work, found = 0.0, None, 0, 0
        for _ in range(32):
            column = self.random.below(self.n_columns)
            values = [x[column] if column < len(x) else 0.0 for x, _, _ in rows]
            work += len(values)
            numbers = [v for v in values if not math.isnan(v)]
            some_missing = len(numbers) < len(values)
            if numbers and min(numbers) < max(numbers):
                cut = self.cut(values, min(numbers), max(numbers))
            elif numbers and some_missing:
                cut = numbers[0]
            else:
                continue
            found += 1
            below = self.sums(rows, lambda q, v=values, t=cut: v[q] <= t)  # type: ignore[misc]
            gone = self.sums(rows, lambda q, v=values: math.isnan(v[q]))  # type: ignore[misc]
            many = int(2 * added(below) < added(total))
            options = [(below, 1 if some_missing else many)]
            if some_missing:
                options.append(([a + b for a, b in zip(below, gone, strict=True)], 0))
            for left, missing in options:
                gain = gini_gain(left, total)
                if gain > best:
                    best, question = gain, (column, cut, missing)
            if found == 16:
                break
        return work, question

    def cut(self, values: Row, least: float, largest: float) -> float:
        a = values[self.random.below(len(values))]
        for _ in range(3):
            b = values[self.random.below(len(values))]
            if a < b or b < a:
                return self.random.between(min(a, b), max(a, b))
        return self.random.between(least, largest)

    def sums(self, rows: list[Sample], chosen: Callable[[int], bool]) -> list[float]:
        out = [0.0] * self.n_classes
        for q, (_, y, w) in enumerate(rows):
            out[y] += w if chosen(q) else 0.0
        return out


def log_likelihood_gain(left: list[float], right: list[float]) -> float:
    """Return twice the gain of a cut, minus 2 for each class after the first."""
    if not (sum(left) > 0 and sum(right) > 0):
        return 0.0

    def h(counts: list[float]) -> float:
        return added(c * math.log(c / added(counts)) for c in counts if c > 0)

    both = [a + b for a, b in zip(left, right, strict=True)]
    return 2 * (h(left) + h(right) - h(both)) - 2 * (sum(c > 0 for c in both) - 1)


@dataclass
class Tree:
    """One member."""

    n_classes: int
    random: Random
    window: int
    schedule: list[int]
    period: int
    offset: int
    max_nodes: int
    longest: int
    growth: Growth | None = None

    def __post_init__(self) -> None:
        self.root = Node([0.0] * self.n_classes, [single(1 / self.n_classes)] * self.n_classes)

    def learn(self, kept: list[Sample], n_columns: int) -> None:
        """Learn the last row kept."""
        seen, (x, y, w) = len(kept), kept[-1]
        leaf = leaf_of(self.root, x)
        leaf.counts[y] += w
        if self.period == 0 and seen > max(self.schedule, default=0) and self.growth is None:
            self.grow_leaf(leaf, x, y, w, n_columns)
        due = seen in self.schedule
        due |= self.period > 0 and seen >= self.offset and (seen - self.offset) % self.period == 0
        if self.growth is None and due:
            self.growth = Growth(seen, kept[-self.window :], n_columns, self.n_classes, self.random.word())
        if self.growth is not None and self.growth.go_on(seen, kept, self.max_nodes, self.longest):
            self.root, self.growth = self.growth.root, None

    def candidate(self, x: Row, n_columns: int) -> Candidate:
        column = self.random.below(n_columns)
        return Candidate(column, x[column], None, [[0.0] * self.n_classes for _ in range(3)])

    def grow_leaf(self, leaf: Node, x: Row, y: int, w: float, n_columns: int) -> None:
        if size(self.root) + 2 > self.max_nodes or n_columns == 0:
            return
        if leaf.candidates is None:
            if sum(c > 0 for c in leaf.counts) > 1:
                leaf.candidates = [self.candidate(x, n_columns) for _ in range(8)]
            return
        before = leaf.candidate_weight
        leaf.candidate_weight += w
        for place, candidate in enumerate(leaf.candidates):
            value = x[candidate.column]
            if candidate.cut is not None:
                candidate.counts[2 if math.isnan(value) else int(value > candidate.cut)][y] += w
            elif math.isnan(value):
                continue
            elif math.isnan(candidate.first):
                candidate.first = value
            elif value != candidate.first:
                candidate.cut = self.random.between(min(value, candidate.first), max(value, candidate.first))
            else:
                leaf.candidates[place] = self.candidate(x, n_columns)
        if before // 8 < leaf.candidate_weight // 8:
            self.maybe_split(leaf)

    def maybe_split(self, leaf: Node) -> None:
        assert leaf.candidates is not None
        best, chosen = 0.0, None
        for candidate in leaf.candidates:
            if candidate.cut is None:
                continue
            below, above, gone = candidate.counts
            options = [(below, above, int(added(below) < added(above)))]
            if sum(gone) > 0:
                options = [
                    ([a + b for a, b in zip(below, gone, strict=True)], above, 0),
                    (below, [a + b for a, b in zip(above, gone, strict=True)], 1),
                ]
            for left, right, missing in options:
                gain = log_likelihood_gain(left, right)
                if gain > best + 1e-9 * leaf.candidate_weight:  # the first of those that tie
                    best, chosen = gain, (candidate, left, right, missing)
        if chosen is not None:
            candidate, left, right, missing = chosen
            assert candidate.cut is not None
            leaf.split(candidate.column, candidate.cut, missing)
            leaf.children[0].counts, leaf.children[1].counts = list(left), list(right)
            leaf.candidates = None


class Refined:
    """Logistic regressions on the leaves of all trees, one per rate."""

    def __init__(self, rates: list[float], n_trees: int, n_classes: int) -> None:
        self.rates, self.n_trees, self.n_classes = rates, n_trees, n_classes

    def log_odds(self, shares: list[float]) -> Any:
        logs = np.log(shares)
        return logs[1:] - logs[:1] if self.n_classes == 2 else logs

    def numbers(self, leaf: Node) -> Any:
        """Return values and sums of a leaf, or those with which it would start."""
        if leaf.refined is not None:
            return leaf.refined
        start, base = self.log_odds(leaf.shares()), 0.0
        if leaf.parent is not None and leaf.parent.refined is not None:
            start, base = start - self.log_odds(leaf.prior), leaf.parent.refined[0]
        values = base + np.tile(2 / self.n_trees * start, (len(self.rates), 1))
        return values.astype(np.float32), np.ones((len(self.rates), 1), dtype=np.float32)

    def score(self, leaves: list[Node]) -> Any:
        return sum(self.numbers(leaf)[0].astype(float) for leaf in leaves)

    def learn(self, leaves: list[Node], total: Any, y: int, w: float) -> None:
        if self.n_classes == 2:
            gradient = w * (1 / (1 + np.exp(-total)) - y)
        else:
            powers = np.exp(total - total.max(axis=1, keepdims=True))
            gradient = w * (powers / powers.sum(axis=1, keepdims=True) - (np.arange(self.n_classes) == y))
        for leaf in leaves:
            values, sums = leaf.refined
            sums = np.float32(sums + (gradient**2).sum(axis=1, keepdims=True))
            steps = np.array(self.rates)[:, None] / self.n_trees
            leaf.refined = np.float32(values - steps * gradient / np.sqrt(sums.astype(float))), sums


def run(
    trees: list[Tree], rates: list[float], X: list[Row], y: list[int], w: list[float], max_columns: int = 10**9
) -> Any:
    """Score, then learn, row by row; (n, m) for two classes, else (n, m, K)."""
    n_classes = trees[0].n_classes
    refined = Refined(rates, len(trees), n_classes)
    columns: list[int] = []  # features in the order in which they were first other than 0
    kept: list[Sample] = []
    out = []
    for x, label, weight in zip(X, y, w, strict=True):
        if weight > 0:
            new = [j for j, value in enumerate(x) if value != 0 and j not in columns]
            columns += new[: max_columns - len(columns)]
        row = [single(x[j]) for j in columns]
        leaves = [leaf_of(tree.root, row) for tree in trees]
        total = refined.score(leaves)
        logs = [np.log(leaf.shares()) / 2 for leaf in leaves]
        if n_classes == 2:
            out.append([s[1] - s[0] for s in logs] + (total[:, 0] / 2).tolist())
        else:
            out.append([s.tolist() for s in logs] + (total / 2).tolist())
        if weight == 0:
            continue
        for leaf in leaves:
            leaf.refined = refined.numbers(leaf)
        refined.learn(leaves, total, label, weight)
        kept.append((row, label, weight))
        for tree in trees:
            tree.learn(kept, len(columns))
    return np.array(out)
