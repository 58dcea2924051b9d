"""Base class of the river classifiers, which map feature names to columns and labels to class indices."""

import json
from collections import deque
from collections.abc import Callable, Hashable, Iterable, Mapping, Sequence
from contextlib import AbstractContextManager, suppress
from copy import deepcopy
from importlib import import_module
from typing import TYPE_CHECKING, Any, ClassVar, NamedTuple

import numpy as np
from numpy.typing import NDArray

from bayesvote.core.checks import Array, InputError, InputTypeError, Labels, labels, weights
from bayesvote.core.lock import RWLock
from bayesvote.core.rollback import Forecast, note_progress
from bayesvote.core.rows import as_rows
from bayesvote.core.state import Learned, Part, read_locked
from bayesvote.estimators import OnlineClassifier
from bayesvote.integrations.predictions import PredictedRows, Row, key_of
from bayesvote.integrations.texts import too_large, with_indicators
from bayesvote.integrations.wrapped import parameters_of, wrap
from bayesvote.model import Model, decided
from bayesvote.tables import not_numbers

try:
    from river import base
except ImportError as error:
    raise ImportError(
        "bayesvote.integrations.river: river is not installed. Run: pip install 'bayesvote[river]'"
    ) from error

_REPLAY = 1000  # rows to learn again after a restart with more classes
_AT_ONCE = 256  # rows of a table between two releases of the write lock


class Layout(NamedTuple):
    """Columns of the features of rows with these names."""

    names: tuple[Hashable, ...]
    known: list[int]  # indices of the known names
    columns: NDArray[np.intp]  # columns of the known names


_NO_LAYOUT = Layout((), [], np.zeros(0, dtype=np.intp))


class RiverClassifier(base.MiniBatchClassifier, Part):
    """A model of named features and any labels.

    It has the parameters of the scikit-learn classifier except ``random_state``, and these:

    Parameters
    ----------
    classes
        All labels, if they are known.
    seed
        Seed of the members' random numbers.

    Attributes
    ----------
    model : Ensemble or booster
        The fitted model, or None before the first row.
    feature_names : list
        Names of the model's columns. It may have more columns than names.
    labels : list
        Labels of the model's class indices, in order.
    """

    complete = True
    estimator: ClassVar[type[OnlineClassifier[Any]]]
    class_weight: Any
    classes: Sequence[Hashable] | None
    seed: int | None

    if TYPE_CHECKING:  # each class gets its constructor below

        def __init__(self, *args: Any, **kwargs: Any) -> None: ...

    def __init_subclass__(cls, estimator: type[OnlineClassifier[Any]], **kwargs: Any) -> None:
        super().__init_subclass__(**kwargs)
        wrap(cls, estimator, cls._begin, classes=None, seed=None)

    def _begin(self) -> None:
        self._lock = RWLock()
        self._shell: OnlineClassifier[Any] | None = None
        self._columns: dict[Hashable, int] = {}
        self._layout = _NO_LAYOUT
        known = () if self.classes is None else self.classes
        self._labels: dict[Any, int] = {label: k for k, label in enumerate(known)}
        self._rng = np.random.default_rng(self.seed)
        self._recent: deque[tuple[Array, int, float]] = deque(maxlen=_REPLAY if self.classes is None else 0)
        self._predictions = PredictedRows()

    @property
    def model(self) -> Model[Any] | None:
        """The fitted model, or None before the first row."""
        return None if self._shell is None else self._shell.model_

    @property
    def _multiclass(self) -> bool:
        return True

    @property
    def feature_names(self) -> list[Hashable]:
        """The names of the model's columns."""
        return list(self._columns)

    @property
    def labels(self) -> list[Any]:
        """The labels of the model's class indices."""
        return list(self._labels)

    def learn_one(self, x: Mapping[Any, Any], y: Any, w: float = 1.0) -> None:
        """Learn a row with weight w.

        If other rows were predicted or learned since the prediction of this row, the weights learn from the members'
        scores at that time.
        """
        with self._lock.write:
            names, values = self._numbers(x)
            key = key_of(self._placed(names).names, values)
            self._learn(names, values, [y], w, None if self._predictions.drop_if_last(key) else key)

    def predict_proba_one(self, x: Mapping[Any, Any], **_: Any) -> dict[Any, float]:
        """Return the probabilities of the labels so far; an empty dict before the first row."""
        with self._lock.read:
            losses = self._predict("probabilities", x)
            if self._shell is None or losses is None:
                return {}
            found = self._probabilities(self._shell, losses)
            return dict(zip(self._labels, found[0].tolist(), strict=True))

    def predict_one(self, x: Mapping[Any, Any], **_: Any) -> Any:
        """Return the predicted label, or None before the first row."""
        with self._lock.read:
            losses = self._predict("label", x)
            return None if losses is None else self.labels[decided(losses)[0]]

    def _predict(self, asked: str, x: Mapping[Any, Any]) -> Array | None:
        """Return the losses (1, K) of a row, or None before the first row, and keep it for late labels."""
        names, values = self._numbers(x)
        if self._shell is None:
            as_rows(type(self).__name__, values)
            losses = None
        else:
            losses = self._losses(self._shell, names, values)
        self._predictions.add(asked, self._placed(names).names, values)
        return losses

    def _forecast(self, predicted: Sequence[Row]) -> Forecast:
        """Return the forecasts of rows."""
        shell = self._shell
        assert shell is not None
        X = np.concatenate([self._matrix(shell.n_features_in_, row.names, row.values) for row in predicted])
        forecast: Forecast = shell.model_.forecast(shell.model_.checked(X))[0]
        return forecast

    def learn_many(self, X: Any, y: Any, w: float = 1.0) -> None:
        """Learn the rows of a DataFrame like ``learn_one`` does; NaN is a missing value.

        After an error, the model has learned the first ``error.rows_learned`` rows.
        """
        labels = y.tolist()
        self._check_labels(labels, len(X), w)
        if not_numbers(X):
            rows = X.to_dict("records")
            self._learn_parts(len(X), 1, lambda t: self._learn(*self._numbers(rows[t.start]), labels[t], w))
        elif len(X):
            values = self._table(X)
            as_rows(type(self).__name__, values)
            self._learn_parts(len(X), _AT_ONCE, lambda t: self._learn(X.columns, values[t], labels[t], w))

    def _learn_parts(self, n: int, size: int, learn: Callable[[slice], None]) -> None:
        """Learn n rows in parts, between which other threads may predict."""
        first = 0
        try:
            for first in range(0, n, size):
                with self._lock.write:
                    learn(slice(first, first + size))
        except BaseException as error:
            note_progress(error, type(self).__name__, first + getattr(error, "rows_learned", 0), n)
            raise

    @read_locked
    def predict_proba_many(self, X: Any) -> Any:
        """Return a DataFrame of the probabilities of the labels so far."""
        pandas = import_module("pandas")
        if self._shell is None:
            return pandas.DataFrame(index=X.index)
        found = self._probabilities(self._shell, self._losses_of_table(self._shell, X))
        return pandas.DataFrame(found, columns=self.labels, index=X.index)

    @read_locked
    def predict_many(self, X: Any) -> Any:
        """Return a Series of the predicted labels."""
        pandas = import_module("pandas")
        if self._shell is None:
            return pandas.Series([None] * len(X), index=X.index, dtype=object)
        names = self.labels
        losses = self._losses_of_table(self._shell, X)
        return pandas.Series([names[k] for k in decided(losses)], index=X.index)

    def read_lock(self) -> AbstractContextManager[Any]:
        """Return the read lock."""
        return self._lock.read

    def __getstate__(self) -> dict[str, Any]:
        with self.read_lock():
            return deepcopy(self.__dict__)

    def parameters(self) -> dict[str, Any]:
        """Return the arguments of the constructor."""
        return parameters_of(self)

    @read_locked
    def learned(self) -> Learned | None:
        """Return the content of a model file, including the rows to learn again after a restart."""
        if self._shell is None:
            return None
        for name in (*self._columns, *self._labels):
            if not isinstance(name, (str, int, float, bool)):
                raise ValueError(f"the name or label {name!r} must be a string or a number")
        facts = {
            "names": self.feature_names,
            "labels": self.labels,
            "random": json.dumps(self._rng.bit_generator.state),
        }
        X = np.zeros((len(self._recent), self._shell.n_features_in_))
        for row, (x, _, _) in zip(X, self._recent, strict=True):
            row[: len(x)] = x[: len(row)]  # rows may be wider after a restart
        arrays = {
            "recent_rows": X,
            "recent_labels": np.array([k for _, k, _ in self._recent], dtype=np.intp),
            "recent_weights": np.array([w for _, _, w in self._recent], dtype=np.float64),
        }
        return Learned(facts, arrays, {"estimator": self._shell})

    def restore(self, learned: Learned, room: int) -> None:  # noqa: ARG002
        """Restore the content of a model file."""
        facts, arrays, shell = learned.facts, learned.arrays, learned.parts["estimator"]
        if not isinstance(shell, self.estimator) or not hasattr(shell, "model_"):
            raise ValueError(f"{type(shell).__name__}, which is not the estimator of {type(self).__name__}")
        columns = {name: j for j, name in enumerate(facts["names"])}
        names = {label: k for k, label in enumerate(facts["labels"])}
        width, n_classes = shell.n_features_in_, len(shell.classes_)
        if len(columns) != len(facts["names"]) or len(columns) > width or len(names) != len(facts["labels"]):
            raise ValueError("duplicate names or labels, or too many of them")
        if not 1 <= len(names) <= n_classes:
            raise ValueError(f"{len(names)} labels for {n_classes} classes")
        rows = as_rows(type(self).__name__, arrays["recent_rows"])
        codes: Labels = labels(type(self).__name__, arrays["recent_labels"], rows.n, len(names))
        w = weights(type(self).__name__, arrays["recent_weights"], rows.n)
        if rows.width != width or len(arrays) != 3:
            raise ValueError("recent rows that do not fit the model")
        rng = np.random.default_rng(0)
        rng.bit_generator.state = json.loads(facts["random"])
        self._shell, self._columns, self._labels, self._rng = shell, columns, names, rng
        self._recent.extend(zip(rows.todense(), codes.tolist(), w.tolist(), strict=True))

    def _numbers(self, x: Mapping[Any, Any]) -> tuple[Iterable[Hashable], Array]:
        """Return names and values (1, n) of a row. A string becomes a name with the value 1."""
        values = list(x.values())
        if not any(value is None or isinstance(value, str) for value in values):
            with suppress(TypeError, ValueError, OverflowError):
                return x, np.array([values], dtype=np.float64)
        told = with_indicators(x, self._columns)
        try:
            return told, np.array([list(told.values())], dtype=np.float64)  # None becomes NaN
        except OverflowError:
            raise too_large(type(self).__name__, x) from None
        except (TypeError, ValueError) as error:
            raise self._refused("x", x) from error

    def _losses_of_table(self, shell: OnlineClassifier[Any], X: Any) -> Array:
        if not not_numbers(X):
            return self._losses(shell, X.columns, self._table(X))
        found = [self._losses(shell, *self._numbers(x)) for x in X.to_dict("records")]
        return np.concatenate([np.empty((0, len(self._labels))), *found])

    def _table(self, X: Any) -> Array:
        try:
            return np.asarray(X.to_numpy(dtype=np.float64, na_value=np.nan))
        except (TypeError, ValueError) as error:
            raise self._refused("X", X.dtypes.to_dict()) from error

    def _refused(self, name: str, given: Any) -> TypeError:
        do = "Convert other values first, for example dates to hours and weekdays."
        return InputTypeError(type(self).__name__, name, "must hold real numbers and strings only", repr(given), do)

    def _matrix(self, width: int, names: Iterable[Hashable], values: Array) -> Array:
        """Return values in the model's columns: 0 for absent names, without unknown names."""
        layout = self._placed(names)
        if len(layout.known) < len(layout.names):
            values = values[:, layout.known]
        out = np.zeros((len(values), width))
        out[:, layout.columns] = values
        return out

    def _placed(self, names: Iterable[Hashable]) -> Layout:
        given, layout = tuple(names), self._layout
        if given != layout.names:  # most rows have the same names as the previous one
            known = [place for place, name in enumerate(given) if name in self._columns]
            columns = np.array([self._columns[given[place]] for place in known], dtype=np.intp)
            layout = self._layout = Layout(given, known, columns)
        return layout

    def _losses(self, shell: OnlineClassifier[Any], names: Iterable[Hashable], values: Array) -> Array:
        X = self._matrix(shell.n_features_in_, names, values)
        return np.asarray(shell.model_.decide(X)[:, : len(self._labels)])

    def _probabilities(self, shell: OnlineClassifier[Any], losses: Array) -> Array:
        return shell.probabilities(losses)

    def _learn(self, names: Iterable[Hashable], values: Array, y: list[Any], w: float, key: int | None = None) -> None:
        """Learn rows. With ``key``, the key of a single row, learn from its forecast if there is one."""
        if self._shell is not None:
            self._predictions.make_forecasts(self._forecast)
        layout = self._placed(names)
        new = set(layout.names) - self._columns.keys() if len(layout.known) < len(layout.names) else set()
        if not new and self._shell is not None and all(label in self._labels for label in y):
            self._teach(names, values, y, w, key)
            return
        self._check(values, y, w)  # before anything changes
        before = self._before(new)
        first = 0
        try:
            if new:
                self._add_features(new)
            if self._shell is None:
                self._add_label(y[0])
                self._predictions.make_forecasts(self._forecast)
            for t, label in enumerate(y):
                if label not in self._labels:
                    self._teach(names, values[first:t], y[first:t], w)
                    first = t
                    before |= {"_labels": self._labels, "_shell": self._shell, "_rng": self._rng}
                    self._add_label(label)
            self._teach(names, values[first:], y[first:], w, key)
        except BaseException as error:
            self._go_back(error, before, first, new)
            note_progress(error, type(self).__name__, first + getattr(error, "rows_learned", 0), len(y))
            raise

    def _before(self, new: set[Hashable]) -> dict[str, Any]:
        """Return the attributes that new names and labels change, except the names."""
        widens = self._shell is not None and len(self._columns) + len(new) > self._shell.n_features_in_
        shell, rng = (deepcopy(self._shell), deepcopy(self._rng)) if widens else (self._shell, self._rng)
        return {"_shell": shell, "_rng": rng, "_labels": self._labels}

    def _go_back(self, error: BaseException, before: dict[str, Any], first: int, new: set[Hashable]) -> None:
        """Remove a new label and new names whose rows could not be learned."""
        if getattr(error, "rows_learned", 0) == 0:
            self.__dict__.update(before)
            if new and first == 0:
                self._layout = _NO_LAYOUT
                for name in new:
                    self._columns.pop(name, None)

    def _check(self, values: Array, y: list[Any], w: float) -> None:
        as_rows(type(self).__name__, values)
        self._check_labels(y, len(values), w)

    def _check_labels(self, y: list[Any], n: int, w: float) -> None:
        who = type(self).__name__
        if len(y) != n:
            raise InputError(who, "y", f"must have one label per row, {n}", str(len(y)))
        weights(who, w, n)
        for label in y:
            if label is None or label != label:
                raise InputError(who, "y", "must be a label", repr(label), "Drop rows without a label.")
            if self.classes is not None and label not in self._labels:
                raise InputError(who, "y", f"must be one of classes, {self.labels}", repr(label))

    def _teach(self, names: Iterable[Hashable], values: Array, y: list[Any], w: float, key: int | None = None) -> None:
        if not y:
            return
        shell = self._shell
        assert shell is not None
        X, codes = self._matrix(shell.n_features_in_, names, values), np.array([self._labels[label] for label in y])
        rows, checked, weight = shell.model_.checked_labelled(X, codes, None if w == 1 else w)
        forecast = None if key is None else self._late_forecast(shell.model_, key)
        try:
            shell.advance(rows, checked, weight, forecast=forecast)
        except BaseException as error:
            if forecast is not None and key is not None and not getattr(error, "rows_learned", 0):
                self._predictions.put_back(key, forecast)
            raise
        if self.classes is None:
            self._recent.extend((X[t].copy(), int(codes[t]), w) for t in range(len(y))[-_REPLAY:])

    def _late_forecast(self, model: Model[Any], key: int) -> Forecast | None:
        """Return the forecast of a predicted row if it fits the model."""
        forecast = self._predictions.take(key)
        if forecast is None:
            return None
        fits = all(one.shape == blank.shape for one, blank in zip(forecast, model.empty_forecast(1), strict=True))
        return forecast if fits else None

    def _add_features(self, new: set[Hashable]) -> None:
        n_names = len(self._columns) + len(new)
        if self._shell is not None and n_names > self._shell.n_features_in_:
            width = max(n_names, 2 * self._shell.n_features_in_)
            self._shell.model_.widen(width, self._rng)
        self._layout = _NO_LAYOUT
        # Sort them, so that the order of names in a row does not matter.
        for name in sorted(new, key=repr):
            self._columns[name] = len(self._columns)

    def _add_label(self, label: Any) -> None:
        both = not self._labels and isinstance(label, bool | np.bool_)
        names = {name: k for k, name in enumerate((False, True) if both else dict.fromkeys([*self._labels, label]))}
        if self._shell is None or len(names) > len(self._shell.classes_):
            rng = np.random.default_rng(self.seed)
            shell = self._new_shell([*names], rng)
            if self._recent:
                X = np.zeros((len(self._recent), shell.n_features_in_))
                for row, (x, _, _) in zip(X, self._recent, strict=True):
                    row[: len(x)] = x[: len(row)]
                codes, w = [k for _, k, _ in self._recent], [w for _, _, w in self._recent]
                shell.advance(*shell.model_.checked_labelled(X, codes, w))
            if self._shell is not None:
                self._predictions.clear()
            self._shell, self._rng = shell, rng
        self._labels = names

    def _new_shell(self, names: list[Any], rng: np.random.Generator) -> OnlineClassifier[Any]:
        given = {name: value for name, value in self.parameters().items() if name not in ("classes", "seed")}
        classes = np.empty(max(2, len(names)), dtype=object)  # a second class is needed before its label is known
        classes[: len(names)] = names
        weights = self._class_weight(names)
        started = self.estimator(**given | {"class_weight": weights}).start(max(1, len(self._columns)), classes, rng)
        # Labels are looked up in this class, so the classes of the estimator are indices, as are its class weights.
        if isinstance(weights, dict):
            weights = {names.index(label): weight for label, weight in weights.items()}
        fitted = started.fitted_.replace(classes=np.arange(len(classes)))
        return self.estimator.from_fitted(fitted, **given | {"class_weight": weights})

    def _class_weight(self, names: list[Any]) -> Any:
        """Return the class weights of the labels so far."""
        given: Any = self.class_weight
        if not isinstance(given, Mapping):
            return given
        return {label: weight for label, weight in given.items() if self.classes is not None or label in names}
