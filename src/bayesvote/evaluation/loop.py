"""The test-then-train loop and its results."""

import time
from collections.abc import Iterable, Iterator, Mapping
from dataclasses import dataclass
from typing import Any, NamedTuple, Protocol, overload

import numpy as np
from numpy.typing import ArrayLike, NDArray

from bayesvote.core.checks import Array, InputError, InputTypeError, integer, unrounded
from bayesvote.core.rollback import Forecast
from bayesvote.core.rows import Rows, RowsLike, as_rows
from bayesvote.evaluation.late import LateForecasts
from bayesvote.evaluation.models import WHO, Batch, EvaluatedModel, Flags, evaluated, memory, reads_tables
from bayesvote.evaluation.tally import Tally, shown
from bayesvote.members.external import Classifier
from bayesvote.model import Model
from bayesvote.tables import Table, has_text, is_table, read_table


class Labelled(Protocol):
    """A chunk of a stream, such as those of :func:`bayesvote.datasets.stream`."""

    @property
    def X(self) -> Any:  # noqa: N802 - the name of its field
        """The rows."""

    @property
    def y(self) -> Any:
        """Their labels."""


Stream = Iterable[Labelled] | Iterable[tuple[Any, Any]]


class Step(NamedTuple):
    """A chunk of a stream that all models have predicted and learned.

    Attributes
    ----------
    labels
        The labels of the rows that were predicted.
    predictions, mistakes
        By model: its predictions, None where it had none; and True for wrong ones.
    probabilities
        By model: the probability of the likeliest label; NaN for models without probabilities.
    tallies
        By model: its metrics so far; the same objects in every step.
    forecasts
        By model: the forecasts of the predicted rows without labels; None if there are none.
    """

    labels: NDArray[Any]
    predictions: dict[str, NDArray[Any]]
    mistakes: dict[str, Flags]
    probabilities: dict[str, Array]
    tallies: dict[str, Tally]
    waiting: dict[str, LateForecasts | None]

    @property
    def forecasts(self) -> dict[str, Forecast | None]:
        """By model: the forecasts that it learns from when the labels arrive."""
        return {name: None if waiting is None else waiting.all() for name, waiting in self.waiting.items()}

    def __repr__(self) -> str:
        return f"Step(rows={len(self.labels)}, tallies={self.tallies})"


@dataclass(frozen=True, repr=False)
class Prequential:
    """Result of a model on a stream.

    Attributes
    ----------
    predictions, mistakes
        For every row: the prediction, None where the model had none; and True if it was wrong.
    tally
        The metrics, including those below.
    memory
        Memory of the model in bytes after the stream.
    """

    predictions: NDArray[Any]
    mistakes: Flags
    tally: Tally
    memory: int

    def __repr__(self) -> str:
        return f"Prequential({shown(self.tally)})"

    @property
    def seconds(self) -> float:
        """Seconds that the model took to predict and learn."""
        return self.tally.seconds

    @property
    def error(self) -> float:
        """Error rate."""
        return self.tally.error

    @property
    def kappa(self) -> float:
        """Cohen's kappa."""
        return self.tally.kappa

    @property
    def balanced_accuracy(self) -> float:
        """Mean recall over the labels."""
        return self.tally.balanced_accuracy

    @property
    def brier(self) -> float:
        """Brier score; NaN for a model without probabilities."""
        return self.tally.brier

    @property
    def log_loss(self) -> float:
        """Mean of minus the logarithm of the true label's probability; NaN for a model without probabilities."""
        return self.tally.log_loss

    @property
    def majority_error(self) -> float:
        """Error of always predicting the most frequent label."""
        return self.tally.majority_error

    @property
    def curve(self) -> Array:
        """Error rate up to and including every row."""
        return np.cumsum(self.mistakes) / np.arange(1, len(self.mistakes) + 1)

    def windowed(self, window: int | None = None) -> Array:
        """Return the error rate of the last ``window`` rows at every row; of fewer rows at the start."""
        window = self.tally.window if window is None else window
        integer("Prequential.windowed", "window", window)
        sums = np.concatenate(([0], np.cumsum(self.mistakes)))
        last = np.arange(1, len(sums))
        first = np.maximum(last - window, 0)
        return np.asarray((sums[last] - sums[first]) / (last - first))


@overload
def prequential(
    model: Mapping[str, Model[Any] | Classifier],
    X: RowsLike | Stream,
    y: ArrayLike | None = None,
    chunk_size: int = 65_536,
    *,
    classes: ArrayLike | None = None,
    delay: int = 0,
    window: int = 1_000,
) -> dict[str, Prequential]: ...


@overload
def prequential(
    model: Model[Any] | Classifier,
    X: RowsLike | Stream,
    y: ArrayLike | None = None,
    chunk_size: int = 65_536,
    *,
    classes: ArrayLike | None = None,
    delay: int = 0,
    window: int = 1_000,
) -> Prequential: ...


def prequential(
    model: Model[Any] | Classifier | Mapping[str, Model[Any] | Classifier],
    X: RowsLike | Stream,
    y: ArrayLike | None = None,
    chunk_size: int = 65_536,
    *,
    classes: ArrayLike | None = None,
    delay: int = 0,
    window: int = 1_000,
) -> Prequential | dict[str, Prequential]:
    """Evaluate a model by test-then-train: each row is predicted first, then learned.

    Parameters
    ----------
    model
        A started ensemble or booster, whose labels are class indices; or a classifier of this library, of scikit-learn
        with ``partial_fit``, or of river. Or a dict of them, by name, to evaluate on the same stream. Models keep what
        they have learned.
    X, y
        Rows of an array or a table, and their labels. Or a stream of chunks as X alone: pairs (X, y) or objects with
        ``.X`` and ``.y``.
    chunk_size
        Maximum number of rows per call. It affects the speed only.
    classes
        All possible labels, which scikit-learn's classifiers need; by default those of y.
    delay
        Number of rows after which a label arrives: row t is learned after row t + delay was predicted. Models of this
        library learn their weights from the forecast of the prediction, so the weights suit the delay. Labels that have
        not arrived by the end are not learned.
    window
        Number of rows of the windowed error.

    Examples
    --------
    >>> from bayesvote.ensemble import Ensemble
    >>> from bayesvote.members.perceptron import PerceptronBank
    >>> X = np.random.default_rng(0).standard_normal((500, 4))
    >>> model = Ensemble(PerceptronBank(n_members=10)).start(n_features=4, rng=0)
    >>> prequential(model, X, (X[:, 0] > X[:, 1]).astype(int)).error < 0.2
    True
    """
    models = dict(model) if isinstance(model, Mapping) else {type(model).__name__: model}
    tallies: dict[str, Tally] = {}
    predictions: dict[str, list[NDArray[Any]]] = {name: [] for name in models}
    mistakes: dict[str, list[Flags]] = {name: [] for name in models}
    for step in steps(models, X, y, classes=classes, chunk_size=chunk_size, delay=delay, window=window):
        tallies = step.tallies
        for name in models:
            predictions[name].append(step.predictions[name])
            mistakes[name].append(step.mistakes[name])
    found = {
        name: Prequential(
            np.concatenate(predictions[name] or [np.empty(0, dtype=np.intp)]),
            np.concatenate(mistakes[name] or [np.empty(0, dtype=bool)]),
            tallies.get(name, Tally(window=window)),
            memory(each),
        )
        for name, each in models.items()
    }
    return found if isinstance(model, Mapping) else next(iter(found.values()))


def steps(
    models: Mapping[str, Model[Any] | Classifier],
    X: RowsLike | Stream,
    y: ArrayLike | None = None,
    *,
    classes: ArrayLike | None = None,
    chunk_size: int = 65_536,
    delay: int = 0,
    window: int = 1_000,
    tallies: Mapping[str, Tally] | None = None,
    forecasts: Mapping[str, Forecast | None] | None = None,
) -> Iterator[Step]:
    """Evaluate like :func:`prequential`, chunk by chunk, in memory that does not grow with the stream.

    Parameters
    ----------
    models, X, y, classes, chunk_size, delay, window
        As in :func:`prequential`; the models by name.
    tallies
        Metrics to resume with after an interruption. The stream must then start with the rows that were predicted and
        not learned, at row ``max(0, tally.rows - delay)`` of the whole stream.
    forecasts
        Forecasts of the last step before the interruption, if labels are late. Without them, such rows are learned as
        if they had been predicted when their labels arrived.

    Examples
    --------
    >>> from bayesvote.boosting import OSBoost
    >>> X = np.random.default_rng(0).standard_normal((500, 4))
    >>> models = {"small": OSBoost(n_members=2).start(4, rng=0), "large": OSBoost(n_members=20).start(4, rng=0)}
    >>> for step in steps(models, X, (X[:, 0] > 0).astype(int), chunk_size=250):
    ...     print(step.tallies["large"].rows, step.tallies["small"].rows)
    250 250
    500 500
    """
    integer(WHO, "chunk_size", chunk_size)
    integer(WHO, "delay", delay, least=0)
    integer(WHO, "window", window)
    if y is None and (hasattr(X, "shape") or is_table(X)):
        raise InputError(WHO, "y", "must be passed with an array or a table", "None")
    if classes is None and y is not None:
        classes = np.asarray(unrounded(y))
    learners = {name: evaluated(model, classes) for name, model in models.items()}
    if len({id(model) for model in models.values()}) < max(1, len(models)):
        raise InputError(WHO, "models", "must be one or more different objects", str(list(models)))
    running = None if tallies is None else dict(tallies)
    if running is not None and (running.keys() != learners.keys() or len({t.rows for t in running.values()}) > 1):
        rows = {name: tally.rows for name, tally in running.items()}
        raise InputError(WHO, "tallies", f"must be those of {list(learners)} after the same row", str(rows))
    before = next(iter(running.values())).rows if running else 0
    for name, each in learners.items():
        _resume(models[name], each, (forecasts or {}).get(name), min(delay, before))
    delayed = _DelayedLabels(delay, min(delay, before))
    chunks: Any = X if y is None else [(X, y)]
    tables = any(map(reads_tables, models.values()))
    return _steps(learners, chunks, chunk_size, delayed, running, window, tables)


def _resume(model: Any, learner: EvaluatedModel, forecast: Forecast | None, n_waiting: int) -> None:
    """Restore the forecasts of rows whose labels were missing before an interruption."""
    waiting = learner.waiting
    if waiting is None:
        return
    waiting.missing = n_waiting
    if forecast is None:
        return
    bare = model if isinstance(model, Model) else model.model_
    try:
        if len(forecast.losses) != n_waiting:
            raise ValueError(
                f"they must have {n_waiting} rows, one for each row without label, got {len(forecast.losses)}"
            )
        waiting.add(bare.unpacked(forecast.packed()))
    except ValueError as error:
        must = f"must be those of the last step before the interruption, but {error}"
        raise InputError(WHO, "forecasts", must) from error
    waiting.missing = 0


def _steps(
    learners: dict[str, EvaluatedModel],
    chunks: Stream,
    chunk_size: int,
    delayed: "_DelayedLabels",
    tallies: dict[str, Tally] | None,
    window: int,
    tables: bool,
) -> Iterator[Step]:
    width = None
    for chunk in chunks:
        rows, y = _labelled(chunk, width, tables)
        width = rows.width
        # All models check the rows before any of them learns, as another could reject them.
        codes = {name: each.encode(rows, y) for name, each in learners.items()}
        if tallies is None:
            tallies = {name: Tally(each.labels, window) for name, each in learners.items()}
        for first in range(0, rows.n, chunk_size):
            part = slice(first, min(first + chunk_size, rows.n))
            known = Batch(
                rows.part(part.start, part.stop), y[part], {name: found[part] for name, found in codes.items()}
            )
            batch = delayed.batch(known)
            if batch.labels.size:
                yield _step(learners, batch, tallies)


def _step(learners: dict[str, EvaluatedModel], batch: Batch, tallies: dict[str, Tally]) -> Step:
    waiting = {name: each.waiting for name, each in learners.items()}
    step = Step(batch.labels, {}, {}, {}, tallies, waiting)
    for name, each in learners.items():
        start = time.perf_counter()
        answers = each.process(batch, batch.codes[name])
        seconds = time.perf_counter() - start
        step.predictions[name] = answers.predictions
        step.probabilities[name] = np.full(len(batch.labels), np.nan) if answers.largest is None else answers.largest
        step.mistakes[name] = tallies[name].add(
            batch.labels, answers.predictions, answers.squares, seconds, answers.largest, answers.of_truth
        )
    return step


class _DelayedLabels:
    """The last ``delay`` rows, whose labels have not arrived."""

    def __init__(self, delay: int, predicted: int) -> None:
        self.delay = delay
        self.predicted = predicted  # next rows that were already predicted before an interruption
        self.waiting: Batch | None = None

    def batch(self, new: Batch) -> Batch:
        """Return the rows to predict, each followed by the row whose label arrives then."""
        if not self.delay:
            return new
        known = new if self.waiting is None else _joined(self.waiting, new)
        n, again = known.rows.n, min(self.predicted, new.rows.n)
        self.predicted -= again
        self.waiting = _taken(known, np.arange(max(0, n - self.delay), n))
        predicted = np.arange(n - new.rows.n + again, n)
        order = np.stack((predicted, predicted - self.delay), axis=1).reshape(-1)
        asking = np.tile([True, False], len(predicted))[order >= 0]
        return _taken(known, order[order >= 0])._replace(predict=asking, learn=~asking)


def _taken(batch: Batch, order: NDArray[np.intp]) -> Batch:
    codes = {name: found[order] for name, found in batch.codes.items()}
    return Batch(batch.rows.take(order), batch.y[order], codes)


def _joined(first: Batch, then: Batch) -> Batch:
    codes = {name: np.concatenate((found, then.codes[name])) for name, found in first.codes.items()}
    before: Any = first.rows  # Rows or a Table, and the others alike
    y = first.y, then.y
    if {one.dtype.kind for one in y} == {"i", "u"}:  # NumPy would convert both to floats
        y = first.y.astype(object), then.y.astype(object)
    return Batch(before.followed_by(then.rows), np.concatenate(y), codes)


def _labelled(chunk: Any, width: int | None, tables: bool) -> tuple[Rows | Table, NDArray[Any]]:
    """Return checked rows or a table, and the labels. All chunks must have the width of the first.

    A table of numbers stays a table if ``tables`` is set; otherwise it becomes rows.
    """
    if not hasattr(chunk, "X") and not (isinstance(chunk, tuple | list) and len(chunk) == 2):
        raise InputTypeError(WHO, "a stream", "must yield pairs (X, y), or chunks with .X and .y", type(chunk).__name__)
    X, given = (chunk.X, chunk.y) if hasattr(chunk, "X") else chunk
    y = np.asarray(unrounded(given))
    rows = read_table(WHO, X) if is_table(X) and (tables or has_text(X)) else as_rows(WHO, X)
    if width not in (None, rows.width):
        raise InputError(WHO, "X", f"must have {width} features, as in the first chunk", str(rows.width))
    if y.shape != (rows.n,):
        raise InputError(WHO, "y", f"must have one label per row, shape ({rows.n},)", str(y.shape))
    empty = y != y if y.dtype.kind in "fO" else np.zeros(0, dtype=bool)
    if y.dtype.kind == "O":
        empty |= np.array([label is None for label in y.tolist()], dtype=bool)
    if np.any(empty):
        missing = str(y[empty].tolist()[0])
        raise InputError(WHO, "y", "must hold a label for every row", missing, "Drop rows without a label.")
    return rows, y
