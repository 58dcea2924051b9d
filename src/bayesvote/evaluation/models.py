"""One interface for ensembles, boosters, and classifiers of scikit-learn and river."""

import gc
import sys
from itertools import pairwise
from types import BuiltinFunctionType, FunctionType, MethodType, ModuleType
from typing import Any, NamedTuple, Protocol

import numpy as np
from numpy.typing import ArrayLike, NDArray

from bayesvote.core import checks as _checks
from bayesvote.core.checks import Array, InputError, InputTypeError
from bayesvote.core.rollback import Rollback
from bayesvote.core.rows import Rows, as_rows
from bayesvote.core.user_code import accepts_classes, river_probabilities
from bayesvote.evaluation.late import LateForecasts
from bayesvote.model import Model, decided
from bayesvote.tables import Table, as_numbers, not_numbers

WHO = "prequential"

Flags = NDArray[np.bool_]


class Batch(NamedTuple):
    """Rows in stream order, each to be predicted, learned or both; by default both.

    ``y`` are the labels. ``codes`` are the encoded labels by model name.
    """

    rows: Rows | Table
    y: NDArray[Any]
    codes: dict[str, NDArray[Any]]
    predict: Flags | None = None
    learn: Flags | None = None

    @property
    def labels(self) -> NDArray[Any]:
        """The labels of the rows to predict."""
        return self.predicted(self.y)

    @property
    def plan(self) -> list[tuple[bool, bool]]:
        """A pair for each row: True if it is predicted, True if it is learned."""
        everyone = np.ones(self.rows.n, dtype=bool)
        predict, learn = (everyone if flags is None else flags for flags in (self.predict, self.learn))
        return list(zip(predict.tolist(), learn.tolist(), strict=True))

    @property
    def weights(self) -> Array:
        """Sample weights: 0 for rows that are not learned."""
        return np.ones(self.rows.n) if self.learn is None else self.learn.astype(np.float64)

    def predicted(self, of_all: NDArray[Any]) -> NDArray[Any]:
        """Return the entries of the rows to predict."""
        return of_all if self.predict is None else of_all[self.predict]


class Predicted(NamedTuple):
    """Predictions of a model.

    If it has probabilities: their squared errors, summed over the labels, the largest probability of each row, and that
    of the true label; NaN where there are none.
    """

    predictions: NDArray[Any]
    squares: Array | None = None
    largest: Array | None = None
    of_truth: Array | None = None


class EvaluatedModel(Protocol):
    """A model of any kind under evaluation."""

    labels: list[Any]  # known before the first row

    @property
    def waiting(self) -> LateForecasts | None:
        """Forecasts of rows without labels; None for models that do not use them."""

    def encode(self, rows: Rows | Table, y: NDArray[Any]) -> NDArray[Any]:
        """Reject rows and labels that the model cannot learn; return the encoded labels."""

    def process(self, batch: Batch, codes: NDArray[Any]) -> Predicted:
        """Predict and learn rows in their order; ``codes`` are the results of ``encode``."""


def evaluated(model: Any, classes: ArrayLike | None) -> EvaluatedModel:
    """Return the interface to a model; ``classes`` are all possible labels, if known."""
    if isinstance(model, Model):
        return _BareModel(model)
    if hasattr(model, "predict_proba_then_learn"):
        return _OwnClassifier(model, classes)
    if hasattr(model, "learn_one") and hasattr(model, "predict_one"):
        return _RiverModel(model)
    if hasattr(model, "partial_fit") and hasattr(model, "predict"):
        return _ScikitModel(model, classes)
    raise InputTypeError(
        WHO,
        "the model",
        "must have partial_fit or learn_one",
        type(model).__name__,
        "Pass a started ensemble or booster, or an online classifier of scikit-learn or river.",
    )


class _BareModel:
    """An ensemble or a booster. It learns class indices, in chunks."""

    def __init__(self, model: Model[Any]) -> None:
        self.model = model
        self.labels: list[Any] = list(range(model.n_classes))
        self.waiting = LateForecasts()

    def encode(self, rows: Rows | Table, y: NDArray[Any]) -> NDArray[Any]:
        self.model.checked(_numbers(self.model, rows))
        return _checks.labels(WHO, y, rows.n, self.model.n_classes)

    def process(self, batch: Batch, codes: NDArray[Any]) -> Predicted:
        rows = _numbers(self.model, batch.rows)
        self.model.check_weights(batch.weights)
        (losses,) = self.waiting.learn(self.model, self.model, rows, batch, codes)
        return Predicted(decided(batch.predicted(losses)))


class _KnownClasses:
    """A classifier that needs all classes before the first row."""

    def __init__(self, model: Any, classes: ArrayLike | None) -> None:
        self.model = model
        self.ready = hasattr(model, "classes_")
        given = model.classes_ if self.ready else classes
        if given is None:
            must = f"must be passed for {type(model).__name__}, which needs all labels before the first row"
            raise InputError(WHO, "classes", must, "None", "Pass classes=[...].")
        self.classes: NDArray[Any] = np.unique(np.asarray(_checks.label_array(given)))
        self.labels: list[Any] = self.classes.tolist()

    def encode(self, rows: Rows | Table, y: NDArray[Any]) -> NDArray[Any]:
        width = getattr(self.model, "n_features_in_", rows.width) if self.ready else rows.width
        if rows.width != width:
            raise InputError(WHO, "X", f"must have {width} features, as the model was fitted with", str(rows.width))
        return _checks.encoded(WHO, y, self.classes)


class _OwnClassifier(_KnownClasses):
    """A classifier of this library. It learns checked chunks."""

    def __init__(self, model: Any, classes: ArrayLike | None) -> None:
        super().__init__(model, classes)
        self.waiting = LateForecasts()

    def encode(self, rows: Rows | Table, y: NDArray[Any]) -> NDArray[Any]:
        if self.ready:
            self.model.checked_rows(_as_read(self.model, rows))
        return super().encode(rows, y)

    def process(self, batch: Batch, codes: NDArray[Any]) -> Predicted:
        rows = _as_read(self.model, batch.rows)
        if not hasattr(self.model, "classes_"):
            self.model.start(rows, self.classes)
            self.ready = True
        found = self.waiting.learn(self.model, self.model.model_, self.model.checked_rows(rows), batch, codes)
        probabilities = batch.predicted(self.model.probabilities(*found))
        return _answers(self.classes[probabilities.argmax(axis=1)], probabilities, batch.predicted(codes))


class _ScikitModel(_KnownClasses):
    """A scikit-learn classifier. It learns one row at a time, and predicts None before the first."""

    def __init__(self, model: Any, classes: ArrayLike | None) -> None:
        super().__init__(model, classes)
        self.waiting: LateForecasts | None = None
        self.options = {"classes": self.classes} if accepts_classes(model.partial_fit) else {}

    def encode(self, rows: Rows | Table, y: NDArray[Any]) -> NDArray[Any]:
        return super().encode(_numbers(self.model, rows), y)

    def process(self, batch: Batch, codes: NDArray[Any]) -> Predicted:
        X, y = _matrix(_numbers(self.model, batch.rows)), batch.y
        predictions: list[Any] = []
        probabilities = [np.empty((0, len(self.classes)))]
        # Classifiers may divide by zero until they have seen a few rows.
        with np.errstate(all="ignore"):
            for t, (predict, learn) in enumerate(batch.plan):
                row = slice(t, t + 1)
                if predict:
                    predictions.append(self.model.predict(X[row]).tolist()[0] if self.ready else None)
                    probabilities.append(self._probabilities(X[row]))
                if learn:
                    self.model.partial_fit(X[row], y[row], **self.options)
                    self.ready = True
        return _answers(_array(predictions), np.concatenate(probabilities), batch.predicted(codes))

    def _probabilities(self, x: Any) -> Array:
        if self.ready and hasattr(self.model, "predict_proba"):
            return np.asarray(self.model.predict_proba(x))
        return np.full((1, len(self.classes)), np.nan)


class _RiverModel:
    """A river classifier. It learns one dict per row, keyed by column index, without missing or absent values."""

    def __init__(self, model: Any) -> None:
        self.model = model
        self.waiting: LateForecasts | None = None
        self.labels: list[Any] = []
        # Most classifiers inherit river's predict_one, which returns the label of the largest probability.
        self.by_probabilities = getattr(type(model).predict_one, "__module__", "") == "river.base.classifier"

    def encode(self, rows: Rows | Table, y: NDArray[Any]) -> NDArray[Any]:  # noqa: ARG002
        return y

    def process(self, batch: Batch, codes: NDArray[Any]) -> Predicted:
        predictions: list[Any] = []
        squares: list[float] = []
        largest: list[float] = []
        of_truth: list[float] = []
        given = _as_read(self.model, batch.rows)
        rows = _dicts(given) if isinstance(given, Rows) else given.dictionaries()
        for x, label, (predict, learn) in zip(rows, codes.tolist(), batch.plan, strict=True):
            if predict:
                probabilities = river_probabilities(self.model, x) or {}
                likeliest = max(probabilities, key=probabilities.__getitem__) if probabilities else None
                predictions.append(likeliest if self.by_probabilities else self.model.predict_one(x))
                terms = [(p - (k == label)) ** 2 for k, p in probabilities.items()]
                squares.append(sum(terms) + (label not in probabilities) if probabilities else np.nan)
                largest.append(max(probabilities.values(), default=np.nan))
                of_truth.append(probabilities.get(label, 0.0) if probabilities else np.nan)
            if learn:
                self.model.learn_one(x, label)
        return Predicted(_array(predictions), np.array(squares), np.array(largest), np.array(of_truth))


def _numbers(model: Any, rows: Rows | Table) -> Rows:
    """Return rows of numbers. Only classifiers of this library and river take others."""
    if isinstance(rows, Rows):
        return rows
    if not not_numbers(rows):  # read as a table because another model states its columns
        return as_rows(WHO, as_numbers(WHO, rows))
    must, do = f"must hold numbers only for {type(model).__name__}", "Use a classifier of bayesvote or river."
    raise InputTypeError(WHO, "X", must, f"a table with other values in {not_numbers(rows)}", do)


def reads_tables(model: Any) -> bool:
    """Return True for a classifier that encodes columns, even those of a table of numbers."""
    return bool(getattr(model, "columns", None)) or hasattr(model, "columns_")


def _as_read(model: Any, rows: Rows | Table) -> Rows | Table:
    """Return rows as the model reads them when it is evaluated alone."""
    return rows if isinstance(rows, Rows) or reads_tables(model) or not_numbers(rows) else _numbers(model, rows)


def _matrix(rows: Rows) -> Any:
    """Return rows as an array or a CSR array."""
    if rows.dense is not None:
        return rows.dense
    from scipy.sparse import csr_array

    return csr_array((rows.values, rows.columns, rows.starts), shape=(rows.n, rows.width))


def _dicts(rows: Rows) -> list[dict[Any, Any]]:
    edges = rows.starts.tolist()
    every = rows.columns.tolist()
    out = []
    for first, last in pairwise(edges):
        columns = every[first:last] if rows.sparse else every
        values = rows.values[first:last].tolist()
        out.append({k: v for k, v in zip(columns, values, strict=True) if v == v})
    return out


def _array(predictions: list[Any]) -> NDArray[Any]:
    if None in predictions:
        return np.array(predictions, dtype=object)
    return np.array(_checks.unrounded(predictions))


def _answers(predictions: NDArray[Any], probabilities: Array, y: NDArray[np.intp]) -> Predicted:
    off, row = np.array(probabilities, dtype=np.float64), np.arange(len(y))
    of_truth, largest = off[row, y], off.max(axis=1)
    off[row, y] -= 1
    return Predicted(predictions, np.asarray((off**2).sum(axis=1)), largest, of_truth)


# Code does not count. Nor does the copy of the state for a failure during learning: its size depends on the last
# chunks.
_LEFT_OUT = (type, ModuleType, FunctionType, BuiltinFunctionType, MethodType, Rollback)


def memory(model: Any) -> int:
    """Return the memory of a model in bytes: all objects that it refers to, mostly arrays, without code.

    Memory inside compiled libraries does not count. Nor does the copy of the state that a model of this library keeps
    while it learns.

    >>> memory([np.zeros(1000), "text"]) - memory([np.zeros(0), "text"])
    8000
    """
    seen: set[int] = set()
    waiting, total = [model], 0
    while waiting:
        item = waiting.pop()
        if id(item) in seen or isinstance(item, _LEFT_OUT):
            continue
        seen.add(id(item))
        total += sys.getsizeof(item)
        waiting.extend(gc.get_referents(item))
        if isinstance(item, np.ndarray):
            waiting.append(item.base)
            waiting.extend(item.ravel().tolist() if item.dtype.hasobject else ())
    return total
