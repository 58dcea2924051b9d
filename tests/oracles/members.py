"""Plain implementations of members, one member and one row at a time, in Python floats."""

import math
from collections.abc import Sequence

Row = Sequence[float]


class Perceptron:
    """One Perceptron over the given features; the average of its weights is formed explicitly."""

    def __init__(self, features: Sequence[int], n_classes: int, averaged: bool) -> None:
        self.features = list(features)
        self.n_classes = n_classes
        self.averaged = averaged
        n_vectors = 1 if n_classes == 2 else n_classes
        # Weight vectors with the bias last.
        self.w = [[0.0] * (len(self.features) + 1) for _ in range(n_vectors)]
        self.total = [[0.0] * (len(self.features) + 1) for _ in range(n_vectors)]
        self.age = 0.0

    def _score(self, w: Sequence[Sequence[float]], row: Row) -> list[float]:
        scores = []
        for vector in w:
            s = vector[-1]
            for k, j in enumerate(self.features):
                s += row[j] * vector[k]
            scores.append(s)
        return scores

    def score(self, row: Row) -> list[float]:
        if any(math.isnan(row[j]) for j in self.features):
            return [math.nan] * len(self.w)
        if self.averaged and self.age > 0:
            return self._score([[v / self.age for v in vector] for vector in self.total], row)
        return self._score(self.w, row)

    def learn(self, row: Row, label: int, weight: float) -> None:
        if weight == 0 or any(math.isnan(row[j]) for j in self.features):
            return
        scores = self._score(self.w, row)
        if self.n_classes == 2:
            sign = 1.0 if label == 1 else -1.0
            if sign * scores[0] <= 0:
                self._add(0, sign * weight, row)
        else:
            others = [k for k in range(self.n_classes) if k != label]
            rival = max(others, key=lambda k: scores[k])
            if scores[label] <= scores[rival]:
                self._add(label, weight, row)
                self._add(rival, -weight, row)
        self.age += weight
        for vector, total in zip(self.w, self.total, strict=True):
            for k, v in enumerate(vector):
                total[k] += weight * v

    def _add(self, k: int, step: float, row: Row) -> None:
        for place, j in enumerate(self.features):
            self.w[k][place] += step * row[j]
        self.w[k][-1] += step


class PassiveAggressive:
    """One passive-aggressive classifier over the given features (Crammer et al. 2006, PA-I and PA-II)."""

    def __init__(self, features: Sequence[int], n_classes: int, aggressiveness: float, squared: bool) -> None:
        self.features = list(features)
        self.n_classes = n_classes
        self.aggressiveness = aggressiveness
        self.squared = squared
        # Weight vectors with the bias last; of two classes the first is minus the second.
        self.w = [[0.0] * (len(self.features) + 1) for _ in range(1 if n_classes == 2 else n_classes)]

    def score(self, row: Row) -> list[float]:
        if any(math.isnan(row[j]) for j in self.features):
            return [math.nan] * len(self.w)
        x = [*(row[j] for j in self.features), 1.0]
        return [math.fsum(a * b for a, b in zip(vector, x, strict=True)) for vector in self.w]

    def learn(self, row: Row, label: int, weight: float) -> None:
        if weight == 0 or any(math.isnan(row[j]) for j in self.features):
            return
        x, scores = [*(row[j] for j in self.features), 1.0], self.score(row)
        if self.n_classes == 2:
            sign = 1.0 if label == 1 else -1.0
            moves, loss = {0: sign}, 1 - sign * scores[0]
        else:
            rival = max((k for k in range(self.n_classes) if k != label), key=lambda k: scores[k])
            moves, loss = {label: 1.0, rival: -1.0}, 1 - (scores[label] - scores[rival])
        if loss <= 0:
            return
        length, limit = len(moves) * math.fsum(v * v for v in x), weight * self.aggressiveness
        step = loss / (length + 1 / (2 * limit)) if self.squared else min(limit, loss / length)
        for k, direction in moves.items():
            self.w[k] = [a + direction * step * b for a, b in zip(self.w[k], x, strict=True)]


class NaiveBayes:
    """One naive Bayes classifier over the given features; keeps the rows and counts them again for every score."""

    def __init__(
        self, features: Sequence[int], n_classes: int, kinds: Sequence[str], rows: float, extra: float
    ) -> None:
        self.features = list(features)
        self.n_classes = n_classes
        self.kinds = list(kinds)
        self.rows = rows
        self.extra = extra
        self.seen: list[tuple[Row, int, float]] = []

    def score(self, row: Row) -> list[float]:
        """Log-odds of class 1, or the classes' log-likelihoods around their mean."""
        likely = [math.log(1 + math.fsum(w for _, c, w in self.seen if c == k)) for k in range(self.n_classes)]
        for j in (j for j in self.features if not math.isnan(row[j])):
            for k, value in enumerate(self._evidence(j, row[j])):
                likely[k] += value
        if self.n_classes == 2:
            return [likely[1] - likely[0]]
        mean = math.fsum(likely) / self.n_classes
        return [value - mean for value in likely]

    def learn(self, row: Row, label: int, weight: float) -> None:
        if weight > 0:
            self.seen.append((row, label, weight))

    def _evidence(self, j: int, x: float) -> list[float]:
        known = [(row[j], c, w) for row, c, w in self.seen if not math.isnan(row[j])]
        if self.kinds[j] == "bernoulli":
            known = [(float(v > 0), c, w) for v, c, w in known]
            return self._bernoulli(known, float(x > 0))
        values = {v for v, _, _ in known}
        if not known and self.kinds[j] == "auto":
            return [0.0] * self.n_classes
        if self.kinds[j] == "auto" and len(values | {x}) <= 2:
            return self._bernoulli(known, x)
        return self._gaussian(known, x)

    def _bernoulli(self, known: Sequence[tuple[float, int, float]], x: float) -> list[float]:
        out = []
        for k in range(self.n_classes):
            same = math.fsum(w for v, c, w in known if c == k and v == x)
            total = math.fsum(w for _, c, w in known if c == k)
            out.append(math.log((same + self.extra) / (total + 2 * self.extra)))
        return out

    def _gaussian(self, known: Sequence[tuple[float, int, float]], x: float) -> list[float]:
        if len({v for v, _, _ in known}) < 2:
            return [0.0] * self.n_classes
        n = math.fsum(w for _, _, w in known)
        mean = math.fsum(w * v for v, _, w in known) / n
        var = math.fsum(w * (v - mean) ** 2 for v, _, w in known) / n
        out = []
        for k in range(self.n_classes):
            mine = [(v, w) for v, c, w in known if c == k]
            n_k = math.fsum(w for _, w in mine)
            own = math.fsum(w * v for v, w in mine) / n_k if mine else mean
            m_k = (n_k * own + self.rows * mean) / (n_k + self.rows)
            v_k = (math.fsum(w * (v - own) ** 2 for v, w in mine) + self.rows * var) / (n_k + self.rows)
            out.append(-0.5 * math.log(v_k) - (x - m_k) ** 2 / (2 * v_k))
        return out


class SparseNaiveBayes:
    """One naive Bayes classifier over many features, mostly 0; keeps the rows and counts them again for every score."""

    def __init__(self, features: Sequence[int], n_classes: int, kinds: Sequence[str], rows: float) -> None:
        self.features = list(features)
        self.n_classes = n_classes
        self.kinds = list(kinds)
        self.rows = rows
        self.seen: list[tuple[Row, int, float]] = []
        self.occurred = [0.0] * n_classes  # sum over the features; a missing value counts by the share that is not 0

    def score(self, row: Row) -> list[float]:
        """Log-odds of class 1, or the classes' log-likelihoods around their mean."""
        if any(math.isnan(row[j]) for j in self.features):
            return [math.nan] * (1 if self.n_classes == 2 else self.n_classes)
        total = [math.fsum(w for _, c, w in self.seen if c == k) for k in range(self.n_classes)]
        likely = [math.log(1 + n) for n in total]
        if self.seen:
            rate = math.fsum(self.occurred) / math.fsum(total)
            for k in range(self.n_classes):
                likely[k] -= (self.occurred[k] + self.rows * rate) / (total[k] + self.rows)
        for j in self.features:
            x = self._value(j, row[j])
            if x != 0:
                for k, value in enumerate(self._evidence(j, x)):
                    likely[k] += value
        if self.n_classes == 2:
            return [likely[1] - likely[0]]
        mean = math.fsum(likely) / self.n_classes
        return [value - mean for value in likely]

    def learn(self, row: Row, label: int, weight: float) -> None:
        if weight == 0:
            return
        for j in self.features:
            if math.isnan(row[j]):
                known = self._known(j)
                rows = math.fsum(w for _, _, w in known)
                self.occurred[label] += weight * (math.fsum(w for v, _, w in known if v != 0) / rows if rows else 0.0)
            elif self._value(j, row[j]) != 0:
                self.occurred[label] += weight
        self.seen.append((row, label, weight))

    def _value(self, j: int, x: float) -> float:
        return float(x > 0) if self.kinds[j] == "bernoulli" and not math.isnan(x) else x

    def _known(self, j: int) -> list[tuple[float, int, float]]:
        return [(self._value(j, row[j]), c, w) for row, c, w in self.seen if not math.isnan(row[j])]

    def _evidence(self, j: int, x: float) -> list[float]:
        known = self._known(j)
        rows = [math.fsum(w for _, c, w in known if c == k) for k in range(self.n_classes)]
        others = [(v, c, w) for v, c, w in known if v != 0]
        count = [math.fsum(w for _, c, w in others if c == k) for k in range(self.n_classes)]
        if not others:
            return [0.0] * self.n_classes
        more = 0.1 * math.fsum(rows) / math.fsum(count)
        found = [math.log((count[k] + 0.1) / (rows[k] + more)) for k in range(self.n_classes)]
        often = 4 * math.fsum(count) >= math.fsum(rows) or self.kinds[j] == "gaussian"
        if self.kinds[j] == "bernoulli" or not often or len({v for v, _, _ in others}) == 1:
            return found
        mean = math.fsum(w * v for v, _, w in others) / math.fsum(count)
        spread = math.fsum(w * (v - mean) ** 2 for v, _, w in others) / math.fsum(count)
        for k in range(self.n_classes):
            mine = [(v, w) for v, c, w in others if c == k]
            own = math.fsum(w * v for v, w in mine) / count[k] if mine else 0.0
            squares = math.fsum(w * (v - own) ** 2 for v, w in mine)
            mu = (count[k] * own + self.rows * mean) / (count[k] + self.rows)
            var = (squares + self.rows * spread) / (count[k] + self.rows)
            found[k] -= 0.5 * (math.log(var) + (x - mu) ** 2 / var)
        return found
