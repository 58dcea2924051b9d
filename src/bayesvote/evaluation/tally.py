"""Running metrics of a model on a stream, in constant memory."""

from collections.abc import Iterable, Mapping
from typing import Any, NamedTuple, Self

import numpy as np
from numpy.typing import ArrayLike, NDArray

from bayesvote.core.checks import Array, InputError, Labels, integer

POINTS = 500  # most points of the curve
BINS = 20  # bins of the decisions' probabilities, from 0 to 1
LEAST = 1e-9  # least probability of the true label in the log-loss, so that it is finite

Flags = NDArray[np.bool_]


class Curve(NamedTuple):
    """Error along a stream: row counts, error of all rows so far, and error of the last ``window`` rows."""

    rows: NDArray[np.int64]
    error: Array
    windowed: Array


class Reliability(NamedTuple):
    """Accuracy of decisions by their probability, in bins; only bins with rows."""

    probability: Array  # mean of the decisions' probabilities
    right: Array  # share of the decisions that were right
    rows: NDArray[np.int64]


class OfLabel(NamedTuple):
    """Metrics of a label; NaN where there are no rows."""

    label: Any
    rows: int
    predicted: int  # rows with this prediction
    precision: float  # share of those that have the label
    recall: float  # share of its rows with this prediction
    f1: float  # harmonic mean of precision and recall


class Tally:
    """Metrics of a model so far.

    Parameters
    ----------
    labels
        Known labels. Others are added when they occur.
    window
        Number of rows of the windowed error.

    Attributes
    ----------
    labels : list
        All labels so far, sorted, numbers first. None stands for rows without a prediction.
    confusion : array of shape (K, K)
        Number of rows by true label (row) and predicted label (column).
    seconds : float
        Seconds that the model took.

    Examples
    --------
    >>> tally = Tally()
    >>> tally.add(["cat", "dog", "cat", "cow"], ["cat", "dog", "dog", "dog"])
    array([False, False,  True,  True])
    >>> tally.labels, tally.error, round(tally.balanced_accuracy, 3), round(tally.kappa, 3)
    (['cat', 'cow', 'dog'], 0.5, 0.5, 0.273)
    """

    def __init__(self, labels: Iterable[Any] = (), window: int = 1_000) -> None:
        integer("Tally", "window", window)
        self.window = window
        self.labels: list[Any] = []
        self.confusion: NDArray[np.int64] = np.zeros((0, 0), dtype=np.int64)
        self.seconds = 0.0
        self._scored, self._squares = 0, 0.0
        self._logged, self._logs = 0, 0.0
        self._bins: Array = np.zeros((3, BINS))  # rows, sums of the decisions' probabilities, right decisions
        self._recent: Flags = np.zeros(0, dtype=bool)
        self._points: NDArray[np.int64] = np.zeros((0, 3), dtype=np.int64)  # rows, mistakes, those in the window
        self._grow(_plain(label) for label in labels)

    def __repr__(self) -> str:
        return f"Tally({shown(self)})"

    def add(
        self,
        y: ArrayLike,
        predictions: ArrayLike,
        squares: Array | None = None,
        seconds: float = 0.0,
        largest: Array | None = None,
        of_truth: Array | None = None,
    ) -> Flags:
        """Count rows; return True for each that was predicted wrongly.

        Parameters
        ----------
        y, predictions
            True and predicted labels. None means no prediction, and counts as a mistake.
        squares
            Squared differences of probabilities from 0 or 1, summed over the labels; NaN where there were none.
        seconds
            Seconds that the model took for them.
        largest, of_truth
            Probabilities of the likeliest and of the true label; NaN where there were none.
        """
        both = [np.asarray(values) for values in (y, predictions)]
        self._grow({_plain(label) for values in both if not self._direct(values) for label in values.tolist()})
        truth, predicted = (self._coded(values) for values in both)
        wrong = np.asarray(truth != predicted)
        self._lengthen(wrong)
        k = len(self.labels)
        self.confusion += np.bincount(truth * k + predicted, minlength=k * k).reshape(k, k)
        self._recent = np.concatenate((self._recent, wrong[-self.window :]))[-self.window :]
        if squares is not None:
            given = squares[~np.isnan(squares)]
            self._scored += len(given)
            self._squares = _plus(self._squares, given)
        if of_truth is not None:
            given = of_truth[~np.isnan(of_truth)]
            self._logged += len(given)
            self._logs = _plus(self._logs, -np.log(np.maximum(given, LEAST)))
        if largest is not None:
            self._bin(largest, ~wrong)
        self.seconds += seconds
        return wrong

    def _bin(self, largest: Array, right: Flags) -> None:
        known = ~np.isnan(largest)
        p = largest[known]
        place = np.minimum((p * BINS).astype(np.intp), BINS - 1)
        added = np.stack((np.ones(len(p)), p, right[known]))
        np.add.at(self._bins.T, place, added.T)  # row by row, so that chunks change nothing

    @property
    def rows(self) -> int:
        """Number of rows."""
        return int(self.confusion.sum())

    @property
    def mistakes(self) -> int:
        """Number of rows that were predicted wrongly."""
        return self.rows - int(self.confusion.trace())

    @property
    def error(self) -> float:
        """Error rate; 0 before the first row."""
        return self.mistakes / max(self.rows, 1)

    @property
    def windowed_error(self) -> float:
        """Error rate of the last ``window`` rows."""
        return float(self._recent.mean()) if len(self._recent) else 0.0

    @property
    def kappa(self) -> float:
        """Cohen's kappa: 0 for the accuracy of chance, 1 for no error; NaN if chance makes no error."""
        n = self.rows
        chance = float(self.confusion.sum(axis=1).astype(float) @ self.confusion.sum(axis=0)) / max(n, 1) ** 2
        return 1 - self.error / (1 - chance) if n and chance < 1 else np.nan

    @property
    def balanced_accuracy(self) -> float:
        """Mean recall over the labels; NaN before the first row."""
        of_label = self.confusion.sum(axis=1)
        seen = of_label > 0
        return float(np.mean(self.confusion.diagonal()[seen] / of_label[seen])) if seen.any() else np.nan

    @property
    def brier(self) -> float:
        """Brier score: the mean squared error of the probabilities, NaN if there were none.

        Summed over the labels, and halved for two of them, as in scikit-learn's ``brier_score_loss``.
        """
        halved = 0.5 if sum(label is not None for label in self.labels) < 3 else 1.0
        return halved * self._squares / self._scored if self._scored else np.nan

    @property
    def log_loss(self) -> float:
        """Mean negative logarithm of the true label's probability, at least 1e-9; NaN if there were none."""
        return self._logs / self._logged if self._logged else np.nan

    @property
    def calibration(self) -> Reliability:
        """Accuracy of decisions by their probability, in twenty bins from 0 to 1."""
        rows, total, right = self._bins[:, self._bins[0] > 0]
        return Reliability(total / rows, right / rows, rows.astype(np.int64))

    @property
    def majority(self) -> Any:
        """The most frequent label; None before the first row."""
        return self.labels[int(self.confusion.sum(axis=1).argmax())] if self.rows else None

    @property
    def majority_error(self) -> float:
        """Error rate of always predicting the most frequent label so far; NaN before the first row."""
        return 1 - float(self.confusion.sum(axis=1).max()) / self.rows if self.rows else np.nan

    @property
    def by_label(self) -> list[OfLabel]:
        """Metrics of each label."""
        of_label, predicted = self.confusion.sum(axis=1).tolist(), self.confusion.sum(axis=0).tolist()
        found = []
        for k, label in enumerate(self.labels):
            if label is None:
                continue
            right = int(self.confusion[k, k])
            precision, recall = _share(right, predicted[k]), _share(right, of_label[k])
            f1 = _share(2 * right, predicted[k] + of_label[k])
            found.append(OfLabel(label, of_label[k], predicted[k], precision, recall, f1))
        return found

    @property
    def curve(self) -> Curve:
        """Error at evenly spaced rows, at most 500 of them, and at the last one."""
        rows, mistakes, recent = self._points.T
        n = self.rows
        if n > (rows[-1] if len(rows) else 0):
            last = (n, self.mistakes, int(self._recent.sum()))
            rows, mistakes, recent = (np.append(old, new) for old, new in zip(self._points.T, last, strict=True))
        return Curve(rows, mistakes / rows, recent / np.minimum(rows, self.window))

    def to_json(self) -> dict[str, Any]:
        """Return the tally as JSON types."""
        return {
            "window": self.window,
            "labels": self.labels,
            "confusion": self.confusion.tolist(),
            "seconds": self.seconds,
            "scored": self._scored,
            "squares": self._squares,
            "logged": self._logged,
            "logs": self._logs,
            "bins": self._bins.tolist(),
            "recent": "".join("01"[wrong] for wrong in self._recent.tolist()),
            "points": self._points.tolist(),
        }

    @classmethod
    def from_json(cls, saved: Mapping[str, Any]) -> Self:
        """Return the tally that ``to_json`` saved."""
        try:
            return cls._from_json(saved)
        except (ValueError, TypeError, LookupError, AttributeError, ArithmeticError) as error:
            got = f"something else ({type(error).__name__}: {error})"
            raise InputError("Tally.from_json", "saved", "must be the result of to_json", got) from error

    @classmethod
    def _from_json(cls, saved: Mapping[str, Any]) -> Self:
        tally = cls(saved["labels"], saved["window"])
        k = len(tally.labels)
        tally.confusion = np.array(saved["confusion"], dtype=np.int64).reshape(k, k)
        tally.seconds = float(saved["seconds"])
        tally._scored, tally._squares = int(saved["scored"]), float(saved["squares"])
        if "bins" in saved:  # version 0.1 saved none
            tally._logged, tally._logs = int(saved["logged"]), float(saved["logs"])
            tally._bins = np.array(saved["bins"], dtype=np.float64).reshape(3, BINS)
        tally._recent = np.array([mark == "1" for mark in saved["recent"]], dtype=bool)
        tally._points = np.array(saved["points"], dtype=np.int64).reshape(-1, 3)
        if tally.confusion.min(initial=0) < 0 or len(tally._recent) != min(tally.rows, tally.window):
            raise ValueError("inconsistent counts")
        return tally

    def _direct(self, values: NDArray[Any]) -> bool:
        """Return True if the values are their own indices among the labels."""
        if values.dtype.kind not in "iub" or not self._indices:
            return False
        return len(values) == 0 or (values.min() >= 0 and values.max() < self._indices)

    def _coded(self, values: NDArray[Any]) -> Labels:
        """Return the indices of the values among the labels."""
        if self._direct(values):
            return values.astype(np.intp, copy=False)
        return np.array([self._places[_plain(value)] for value in values.tolist()], dtype=np.intp)

    def _grow(self, labels: Iterable[Any]) -> None:
        """Add labels."""
        grown = sorted({*self.labels, *labels}, key=_order)
        if len(grown) > len(self.labels) or not grown:
            self._places = {label: place for place, label in enumerate(grown)}
            # Number of the first labels that are class indices: 0, 1, ...
            self._indices = next((k for k, label in enumerate(grown) if label != k), len(grown))
            old = [self._places[label] for label in self.labels]
            confusion = np.zeros((len(grown), len(grown)), dtype=np.int64)
            confusion[np.ix_(old, old)] = self.confusion
            self.labels, self.confusion = grown, confusion

    def _lengthen(self, wrong: Flags) -> None:
        """Extend the curve. Its points are 2^k rows apart, with the least k that keeps them few enough."""
        before, n = self.rows, self.rows + len(wrong)
        spacing = 1
        while n // spacing > POINTS:
            spacing *= 2
        at = np.arange(before // spacing + 1, n // spacing + 1) * spacing
        sums = np.concatenate(([0], np.cumsum(np.concatenate((self._recent, wrong)))))
        place = at - before + len(self._recent)
        mistakes = self.mistakes + sums[place] - sums[len(self._recent)]
        recent = sums[place] - sums[np.maximum(place - self.window, 0)]
        kept = self._points[self._points[:, 0] % spacing == 0]
        self._points = np.concatenate((kept, np.stack((at, mistakes, recent), axis=1)))


def shown(tally: Tally) -> str:
    """Return the number of rows and the main metrics for a repr, without NaN."""
    names = ("error", "majority_error", "kappa", "balanced_accuracy", "brier", "log_loss")
    found = {name: getattr(tally, name) for name in names}
    return ", ".join([f"rows={tally.rows}", *(f"{name}={x:.4g}" for name, x in found.items() if not np.isnan(x))])


def _plus(total: float, values: Array) -> float:
    """Add values one by one, so that the sum does not depend on the size of the chunks."""
    return float(np.cumsum(np.concatenate(([total], values)))[-1])


def _share(part: int, whole: int) -> float:
    return part / whole if whole else np.nan


def _plain(label: Any) -> Any:
    """Return a label as a Python object."""
    return label.item() if isinstance(label, np.generic) else label


def _order(label: Any) -> tuple[int, float, str]:
    if isinstance(label, int | float):
        return 0, label, ""
    return (1, 0.0, str(label)) if label is not None else (2, 0.0, "")
