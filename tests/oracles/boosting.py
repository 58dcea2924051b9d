"""The boosters in plain Python, one row at a time, from the papers' pseudo-code.

Naive Bayes members remember all their samples and compute everything anew from them.
"""

import math
from collections.abc import Callable, Sequence

Row = Sequence[float]
Draw = Callable[[float, int, int], float]


def sign(value: float) -> int:
    return 1 if value >= 0 else -1


class Perceptron:
    """With a constant term; moves on mistakes only, in steps of one over the root of the rows it was told of."""

    def __init__(self, weights: Sequence[float]) -> None:
        self.weights = list(weights)
        self.t = 1

    def opinion(self, x: Row) -> float:
        return max(-1.0, min(1.0, self.score(x)))

    def score(self, x: Row) -> float:
        return self.weights[0] + sum(w * v for w, v in zip(self.weights[1:], x, strict=True))

    def learn(self, x: Row, y: int, weight: float) -> None:
        if y * self.score(x) <= 0:
            step = weight / math.sqrt(self.t)
            self.weights = [w + step * y * v for w, v in zip(self.weights, [1.0, *x], strict=True)]

    def learn_times(self, x: Row, y: int, k: int) -> None:
        for _ in range(k):
            self.learn(x, y, 1.0)


class NaiveBayes:
    """Bernoulli while a feature shows two values at most, else Gaussian."""

    def __init__(self, rows: list[tuple[Row, float]]) -> None:
        self.rows = rows  # every row that the booster learned with its weight, shared by the members
        self.samples: list[tuple[Row, int, float]] = []

    def opinion(self, x: Row) -> float:
        return math.tanh(self.score(x) / 2)  # 2 P(1) - 1

    def score(self, x: Row) -> float:
        total = {y: sum(w for _, label, w in self.samples if label == y) for y in (-1, 1)}
        score = math.log((total[1] + 0.1) / (total[-1] + 0.1))
        if total[1] == 0 or total[-1] == 0:
            return score
        for j, value in enumerate(x):
            score += self.log_density(j, value, 1, total[1]) - self.log_density(j, value, -1, total[-1])
        return score

    def log_density(self, j: int, value: float, y: int, total: float) -> float:
        mine = [(x[j], w) for x, label, w in self.samples if label == y]
        known = list(dict.fromkeys(row[j] for row, _ in self.rows))
        if len(known) <= 2:
            if value not in known:
                return 0.0
            return math.log((sum(w for v, w in mine if v == value) + 0.1) / (total + 0.2))
        mean = sum(w * v for v, w in mine) / total
        weight = sum(w for _, w in self.rows)
        center = sum(w * row[j] for row, w in self.rows) / weight
        overall = sum(w * (row[j] - center) ** 2 for row, w in self.rows) / weight
        variance = (sum(w * (v - mean) ** 2 for v, w in mine) + overall) / (total + 1)
        return -((value - mean) ** 2) / (2 * variance) - math.log(2 * math.pi * variance) / 2

    def learn(self, x: Row, y: int, weight: float) -> None:
        if weight > 0:
            self.samples.append((x, y, weight))

    def learn_times(self, x: Row, y: int, k: int) -> None:
        self.learn(x, y, k)


Member = Perceptron | NaiveBayes


class Oza:
    def __init__(self, members: Sequence[Member], draw: Draw) -> None:
        self.members, self.draw = members, draw
        self.right = [0.0] * len(members)
        self.wrong = [0.0] * len(members)
        self.n = 0.0
        self.t = 0

    def vote(self, x: Row) -> float:
        total = 0.0
        for member, right, wrong in zip(self.members, self.right, self.wrong, strict=True):
            if right + wrong == 0:
                continue
            error = min(max(wrong / (right + wrong), 1e-10), 1 - 1e-10)
            total += sign(member.score(x)) * math.log((1 - error) / error)
        return total

    def learn(self, x: Row, y: int, weight: float) -> None:
        before = [sign(member.score(x)) for member in self.members]
        self.t += 1
        tell_time(self.members, self.t)
        self.n += weight
        rate = weight
        share(self.members, x, weight)
        for i, member in enumerate(self.members):
            k = int(self.draw(rate, self.t, i))
            member.learn_times(x, y, k)
            says = sign(member.score(x)) if k > 0 else before[i]
            if says == y:
                self.right[i] += rate
                rate *= self.n / (2 * self.right[i])
            else:
                self.wrong[i] += rate
                rate *= self.n / (2 * self.wrong[i])

    @property
    def record(self) -> list[list[float]]:
        return [self.right, self.wrong]


class Gradient:
    def __init__(self, members: Sequence[Member], pool: int) -> None:
        self.selectors = [members[i : i + pool] for i in range(0, len(members), pool)]
        self.members = members
        self.errors = [[0.0] * pool for _ in self.selectors]

    def opinion(self, n: int, x: Row) -> float:
        errors = self.errors[n]
        member = self.selectors[n][errors.index(min(errors))]
        return member.opinion(x)

    def vote(self, x: Row) -> float:
        return sum(self.opinion(n, x) for n in range(len(self.selectors)))

    def learn(self, x: Row, y: int, weight: float) -> None:
        share(self.members, x, weight)
        total = 0.0
        for n, members in enumerate(self.selectors):
            w = weight / (1 + math.exp(y * total))
            for k, member in enumerate(members):
                member.learn(x, y, w)
                if sign(member.score(x)) != y:
                    self.errors[n][k] += w
            total += self.opinion(n, x)

    @property
    def record(self) -> list[list[float]]:
        return [[error for errors in self.errors for error in errors]]


class Smooth:
    def __init__(self, members: Sequence[Member], gamma: float, variant: str) -> None:
        self.members, self.gamma, self.variant = members, gamma, variant
        self.theta = gamma / (2 + gamma)
        self.note = [1 / len(members) if variant == "convex" else 0.0] * len(members)
        self.t = 0

    def opinions(self, x: Row) -> list[float]:
        return [member.opinion(x) for member in self.members]

    def experts(self, x: Row) -> list[int]:
        h = self.opinions(x)
        return [sign(sum(h[: i + 1])) for i in range(len(h))]

    def vote(self, x: Row) -> float:
        if self.variant == "uniform":
            return sum(self.opinions(x)) / len(self.members)
        if self.variant == "convex":
            return sum(a * h for a, h in zip(self.note, self.opinions(x), strict=True))
        p = [math.pow(2.0, -mistakes) for mistakes in self.note]
        return sum(v * says for v, says in zip(p, self.experts(x), strict=True)) / sum(p)

    def learn(self, x: Row, y: int, weight: float) -> None:
        self.t += 1
        tell_time(self.members, self.t)
        h = self.opinions(x)
        if self.variant == "expert":
            self.note = [n + weight * (says != y) for n, says in zip(self.note, self.experts(x), strict=True)]
        elif self.variant == "convex" and y * self.vote(x) < self.theta:
            rate = weight / math.sqrt(self.t)
            self.note = project([a + rate * y * v for a, v in zip(self.note, h, strict=True)])
        share(self.members, x, weight)
        z = 0.0
        w = 1.0
        for member, opinion in zip(self.members, h, strict=True):
            member.learn(x, y, weight * w)
            z += y * opinion - self.theta
            w = min((1 - self.gamma) ** (z / 2), 1.0)

    @property
    def record(self) -> list[list[float]]:
        return [self.note]


def share(members: Sequence[Member], x: Row, weight: float) -> None:
    if isinstance(members[0], NaiveBayes):
        members[0].rows.append((x, weight))


def tell_time(members: Sequence[Member], t: int) -> None:
    for member in members:
        if isinstance(member, Perceptron):
            member.t = t


def project(x: Sequence[float]) -> list[float]:
    """Return the nearest point of the probability simplex, by bisection for the level that leaves a mass of one."""
    low, high = min(x) - 1.0, max(x)
    for _ in range(200):
        level = (low + high) / 2
        if sum(max(v - level, 0.0) for v in x) > 1:
            low = level
        else:
            high = level
    return [max(v - low, 0.0) for v in x]
