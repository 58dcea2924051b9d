"""What the river classifiers share: names of features to columns, labels to class indices, rows to the model."""

from abc import abstractmethod
from collections import deque
from collections.abc import Hashable, Iterable, Mapping, Sequence
from importlib import import_module
from typing import Any, NamedTuple

import numpy as np
from numpy.typing import NDArray

from bayesvote._checks import Array, weights
from bayesvote._input import as_rows
from bayesvote.adapters._widen import Model, widen
from bayesvote.ensemble import decided
from bayesvote.estimators._probabilities import agreeing
from bayesvote.estimators.base import OnlineClassifier

try:
    from river import base
except ImportError as error:
    raise ImportError(
        "bayesvote.adapters.river: river must be installed, got none. Run: pip install 'bayesvote[river]'"
    ) from error

_REPLAY = 1000  # rows kept for a start with more classes


class Layout(NamedTuple):
    """Where the features of rows with these names go."""

    names: tuple[Hashable, ...]
    known: list[int]  # places of the names that the model knows
    columns: NDArray[np.intp]  # theirs


_NO_LAYOUT = Layout((), [], np.zeros(0, dtype=np.intp))


class Online(base.MiniBatchClassifier):
    """A model that learns named features and any labels.

    Attributes
    ----------
    model : Ensemble or booster
        What learns; None before the first row.
    feature_names : list
        The names of the model's columns; it may have more columns than names.
    labels : list
        The labels of the model's class indices, in order.
    """

    def __init__(self, classes: Sequence[Hashable] | None, seed: int | None) -> None:
        self.classes = classes
        self.seed = seed
        self.model: Model | None = None
        self._columns: dict[Hashable, int] = {}
        self._layout = _NO_LAYOUT
        self._labels: dict[Any, int] = {label: k for k, label in enumerate(() if classes is None else classes)}
        self._width = self._n_classes = 0
        self._rng = np.random.default_rng(seed)
        self._recent: deque[tuple[Array, int, float]] = deque(maxlen=_REPLAY if classes is None else 0)

    @abstractmethod
    def _shell(self) -> OnlineClassifier[Any]:
        """Return the classifier of scikit-learn's kind whose model and probabilities these are."""

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
        """Learn a row, of weight w."""
        self._learn(x, self._values(x), [y], w)

    def predict_proba_one(self, x: Mapping[Any, Any], **_: Any) -> dict[Any, float]:
        """Return the probabilities of the labels seen so far; none before the first row."""
        if self.model is None:
            return {}
        return dict(zip(self._labels, self._chances(self._losses(x, self._values(x)))[0].tolist(), strict=True))

    def predict_one(self, x: Mapping[Any, Any], **_: Any) -> Any:
        """Return the decision; None before the first row."""
        if self.model is None:
            return None
        return self.labels[decided(self._losses(x, self._values(x)))[0]]

    def learn_many(self, X: Any, y: Any, w: float = 1.0) -> None:
        """Learn the rows of a DataFrame, as if one by one; NaN is a missing value."""
        if len(X):
            self._learn(X.columns, self._table(X), y.tolist(), w)

    def predict_proba_many(self, X: Any) -> Any:
        """Return a DataFrame of the probabilities of the labels seen so far."""
        pandas = import_module("pandas")
        if self.model is None:
            return pandas.DataFrame(index=X.index)
        losses = self._losses(X.columns, self._table(X))
        return pandas.DataFrame(self._chances(losses), columns=self.labels, index=X.index)

    def predict_many(self, X: Any) -> Any:
        """Return a Series of the decisions."""
        pandas = import_module("pandas")
        if self.model is None:
            return pandas.Series([None] * len(X), index=X.index, dtype=object)
        labels = self.labels
        losses = self._losses(X.columns, self._table(X))
        return pandas.Series([labels[k] for k in decided(losses)], index=X.index)

    def _values(self, x: Mapping[Any, Any]) -> Array:
        try:
            return np.array([list(x.values())], dtype=np.float64)  # None becomes NaN
        except (TypeError, ValueError) as error:
            raise self._not_numbers("x", x) from error

    def _table(self, X: Any) -> Array:
        try:
            return np.asarray(X.to_numpy(dtype=np.float64, na_value=np.nan))
        except (TypeError, ValueError) as error:
            raise self._not_numbers("X", X.dtypes.to_dict()) from error

    def _not_numbers(self, name: str, given: Any) -> TypeError:
        return TypeError(
            f"{type(self).__name__}: {name} must hold real numbers, got {given!r}. "
            "Encode the others first, for example with river's OneHotEncoder."
        )

    def _matrix(self, names: Iterable[Hashable], values: Array) -> Array:
        """Values in the model's columns: absent names are 0, unknown ones left out."""
        layout = self._placed(names)
        if len(layout.known) < len(layout.names):
            values = values[:, layout.known]
        out = np.zeros((len(values), self._width))
        out[:, layout.columns] = values
        return out

    def _placed(self, names: Iterable[Hashable]) -> Layout:
        given = tuple(names)
        if given != self._layout.names:  # most rows have the names of the one before
            known = [place for place, name in enumerate(given) if name in self._columns]
            columns = np.array([self._columns[given[place]] for place in known], dtype=np.intp)
            self._layout = Layout(given, known, columns)
        return self._layout

    def _losses(self, names: Iterable[Hashable], values: Array) -> Array:
        assert self.model is not None
        return self.model.decide(self._matrix(names, values))[:, : len(self._labels)]

    def _chances(self, losses: Array) -> Array:
        return agreeing(self._shell()._probabilities(self.model, losses), losses)

    def _learn(self, names: Iterable[Hashable], values: Array, y: list[Any], w: float) -> None:
        layout = self._placed(names)
        new = set(layout.names) - self._columns.keys() if len(layout.known) < len(layout.names) else set()
        if new or any(label not in self._labels for label in y):
            self._check(values, y, w)  # before anything changes
        if new:
            self._add_features(new)
        if self.model is None:
            self._add_label(y[0])
        first = 0
        for t, label in enumerate(y):
            if label not in self._labels:
                self._teach(names, values[first:t], y[first:t], w)
                self._add_label(label)
                first = t
        self._teach(names, values[first:], y[first:], w)

    def _check(self, values: Array, y: list[Any], w: float) -> None:
        who = type(self).__name__
        as_rows(who, values)
        if len(y) != len(values):
            raise ValueError(f"{who}: y must have one label per row, {len(values)}, got {len(y)}.")
        weights(who, w, len(values))
        for label in y:
            if label is None or label != label:
                raise ValueError(f"{who}: y must be a label, got {label!r}. Leave out rows without one.")
            if self.classes is not None and label not in self._labels:
                raise ValueError(f"{who}: y must be one of classes, {self.labels}, got {label!r}.")

    def _teach(self, names: Iterable[Hashable], values: Array, y: list[Any], w: float) -> None:
        assert self.model is not None
        if not y:
            return
        X, labels = self._matrix(names, values), np.array([self._labels[label] for label in y])
        self.model.decide_then_learn(X, labels, None if w == 1 else w)
        if self.classes is None:
            self._recent.extend((X[t].copy(), int(labels[t]), w) for t in range(len(y))[-_REPLAY:])

    def _add_features(self, new: set[Hashable]) -> None:
        n_names = len(self._columns) + len(new)
        if self.model is not None and n_names > self._width:
            width = max(n_names, 2 * self._width)
            widen(self.model, width, self._rng)
            self._width = width
        self._layout = _NO_LAYOUT
        # In an order of their own, so that the order within rows does not matter.
        for name in sorted(new, key=repr):
            self._columns[name] = len(self._columns)

    def _add_label(self, label: Any) -> None:
        both = not self._labels and isinstance(label, bool | np.bool_)
        labels = {name: k for k, name in enumerate((False, True) if both else dict.fromkeys([*self._labels, label]))}
        if self.model is None or len(labels) > self._n_classes:
            width, n_classes, rng = max(1, len(self._columns)), max(2, len(labels)), np.random.default_rng(self.seed)
            model: Model = self._shell()._model(np.array([*labels], dtype=object)).start(width, n_classes, rng)
            if self._recent:
                X = np.zeros((len(self._recent), width))
                for row, (x, _, _) in zip(X, self._recent, strict=True):
                    row[: len(x)] = x[:width]
                model.decide_then_learn(X, [k for _, k, _ in self._recent], [w for _, _, w in self._recent])
            self.model, self._width, self._n_classes, self._rng = model, width, n_classes, rng
        self._labels = labels
