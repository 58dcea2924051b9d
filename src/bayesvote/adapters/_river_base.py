"""What the river classifiers share: names of features to columns, labels to class indices, rows to the model."""

import json
from collections import deque
from collections.abc import Hashable, Iterable, Mapping, Sequence
from importlib import import_module
from typing import TYPE_CHECKING, Any, ClassVar, NamedTuple

import numpy as np
from numpy.typing import NDArray

from bayesvote._checks import Array, Labels, labels, weights
from bayesvote._input import as_rows
from bayesvote._parts import Learned, Part
from bayesvote.adapters._wrapped import parameters_of, wrap
from bayesvote.estimators import OnlineClassifier
from bayesvote.model import Model, decided

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


class Online(base.MiniBatchClassifier, Part):
    """A model that learns named features and any labels.

    It takes the parameters of its scikit-learn counterpart, but for ``random_state``, and these:

    Parameters
    ----------
    classes
        The labels, if they are known from the start.
    seed
        For the members' random choices.

    Attributes
    ----------
    model : Ensemble or booster
        What learns; None before the first row.
    feature_names : list
        The names of the model's columns; it may have more columns than names.
    labels : list
        The labels of the model's class indices, in order.
    """

    complete = True
    estimator: ClassVar[type[OnlineClassifier[Any]]]
    classes: Sequence[Hashable] | None
    seed: int | None

    if TYPE_CHECKING:  # each class has a constructor of its own, made below

        def __init__(self, *args: Any, **kwargs: Any) -> None: ...

    def __init_subclass__(cls, estimator: type[OnlineClassifier[Any]], **kwargs: Any) -> None:
        super().__init_subclass__(**kwargs)
        wrap(cls, estimator, cls._begin, classes=None, seed=None)

    def _begin(self) -> None:
        self._shell: OnlineClassifier[Any] | None = None
        self._columns: dict[Hashable, int] = {}
        self._layout = _NO_LAYOUT
        known = () if self.classes is None else self.classes
        self._labels: dict[Any, int] = {label: k for k, label in enumerate(known)}
        self._rng = np.random.default_rng(self.seed)
        self._recent: deque[tuple[Array, int, float]] = deque(maxlen=_REPLAY if self.classes is None else 0)

    @property
    def model(self) -> Model[Any] | None:
        """What learns; None before the first row."""
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
        """Learn a row, of weight w."""
        self._learn(x, self._values(x), [y], w)

    def predict_proba_one(self, x: Mapping[Any, Any], **_: Any) -> dict[Any, float]:
        """Return the probabilities of the labels seen so far; none before the first row."""
        if self._shell is None:
            return {}
        found = self._probabilities(self._shell, self._losses(self._shell, x, self._values(x)))
        return dict(zip(self._labels, found[0].tolist(), strict=True))

    def predict_one(self, x: Mapping[Any, Any], **_: Any) -> Any:
        """Return the decision; None before the first row."""
        if self._shell is None:
            return None
        return self.labels[decided(self._losses(self._shell, x, self._values(x)))[0]]

    def learn_many(self, X: Any, y: Any, w: float = 1.0) -> None:
        """Learn the rows of a DataFrame, as if one by one; NaN is a missing value."""
        if len(X):
            self._learn(X.columns, self._table(X), y.tolist(), w)

    def predict_proba_many(self, X: Any) -> Any:
        """Return a DataFrame of the probabilities of the labels seen so far."""
        pandas = import_module("pandas")
        if self._shell is None:
            return pandas.DataFrame(index=X.index)
        found = self._probabilities(self._shell, self._losses(self._shell, X.columns, self._table(X)))
        return pandas.DataFrame(found, columns=self.labels, index=X.index)

    def predict_many(self, X: Any) -> Any:
        """Return a Series of the decisions."""
        pandas = import_module("pandas")
        if self._shell is None:
            return pandas.Series([None] * len(X), index=X.index, dtype=object)
        names = self.labels
        losses = self._losses(self._shell, X.columns, self._table(X))
        return pandas.Series([names[k] for k in decided(losses)], index=X.index)

    def parameters(self) -> dict[str, Any]:
        """Everything that the constructor takes."""
        return parameters_of(self)

    def learned(self) -> Learned | None:
        """The estimator, names and labels, and the rows that a new label would be learned with."""
        if self._shell is None:
            return None
        for name in (*self._columns, *self._labels):
            if not isinstance(name, (str, int, float, bool)):
                raise ValueError(f"the name or label {name!r} is neither a string nor a number")
        facts = {
            "names": self.feature_names,
            "labels": self.labels,
            "random": json.dumps(self._rng.bit_generator.state),
        }
        X = np.zeros((len(self._recent), self._shell.n_features_in_))
        for row, (x, _, _) in zip(X, self._recent, strict=True):
            row[: len(x)] = x[: len(row)]  # rows of a model that was widened and then started anew are wider
        arrays = {
            "recent_rows": X,
            "recent_labels": np.array([k for _, k, _ in self._recent], dtype=np.intp),
            "recent_weights": np.array([w for _, _, w in self._recent], dtype=np.float64),
        }
        return Learned(facts, arrays, {"estimator": self._shell})

    def restore(self, learned: Learned, room: int) -> None:  # noqa: ARG002
        """Take up what a file brings."""
        facts, arrays, shell = learned.facts, learned.arrays, learned.parts["estimator"]
        if not isinstance(shell, self.estimator) or not hasattr(shell, "model_"):
            raise ValueError(f"{type(shell).__name__}, which is not the estimator of {type(self).__name__}")
        columns = {name: j for j, name in enumerate(facts["names"])}
        names = {label: k for k, label in enumerate(facts["labels"])}
        width, n_classes = shell.n_features_in_, len(shell.classes_)
        if len(columns) != len(facts["names"]) or len(columns) > width or len(names) != len(facts["labels"]):
            raise ValueError("names or labels that stand twice or are too many")
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

    def _matrix(self, width: int, names: Iterable[Hashable], values: Array) -> Array:
        """Values in the model's columns: absent names are 0, unknown ones left out."""
        layout = self._placed(names)
        if len(layout.known) < len(layout.names):
            values = values[:, layout.known]
        out = np.zeros((len(values), width))
        out[:, layout.columns] = values
        return out

    def _placed(self, names: Iterable[Hashable]) -> Layout:
        given = tuple(names)
        if given != self._layout.names:  # most rows have the names of the one before
            known = [place for place, name in enumerate(given) if name in self._columns]
            columns = np.array([self._columns[given[place]] for place in known], dtype=np.intp)
            self._layout = Layout(given, known, columns)
        return self._layout

    def _losses(self, shell: OnlineClassifier[Any], names: Iterable[Hashable], values: Array) -> Array:
        X = self._matrix(shell.n_features_in_, names, values)
        return np.asarray(shell.model_.decide(X)[:, : len(self._labels)])

    def _probabilities(self, shell: OnlineClassifier[Any], losses: Array) -> Array:
        return shell.probabilities(losses)

    def _learn(self, names: Iterable[Hashable], values: Array, y: list[Any], w: float) -> None:
        layout = self._placed(names)
        new = set(layout.names) - self._columns.keys() if len(layout.known) < len(layout.names) else set()
        if new or any(label not in self._labels for label in y):
            self._check(values, y, w)  # before anything changes
        if new:
            self._add_features(new)
        if self._shell is None:
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
        if not y:
            return
        shell = self._shell
        assert shell is not None
        X, codes = self._matrix(shell.n_features_in_, names, values), np.array([self._labels[label] for label in y])
        shell.advance(*shell.model_.checked_labelled(X, codes, None if w == 1 else w))
        if self.classes is None:
            self._recent.extend((X[t].copy(), int(codes[t]), w) for t in range(len(y))[-_REPLAY:])

    def _add_features(self, new: set[Hashable]) -> None:
        n_names = len(self._columns) + len(new)
        if self._shell is not None and n_names > self._shell.n_features_in_:
            width = max(n_names, 2 * self._shell.n_features_in_)
            self._shell.model_.widen(width, self._rng)
            self._shell.n_features_in_ = width
        self._layout = _NO_LAYOUT
        # Sorted, so that the order of names within a row does not matter.
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
            self._shell, self._rng = shell, rng
        self._labels = names

    def _new_shell(self, names: list[Any], rng: np.random.Generator) -> OnlineClassifier[Any]:
        given = {name: value for name, value in self.parameters().items() if name not in ("classes", "seed")}
        classes = np.empty(max(2, len(names)), dtype=object)  # with a single label so far, the second is still unknown
        classes[: len(names)] = names
        shell = self.estimator(**given).start(max(1, len(self._columns)), classes, rng)
        shell.classes_ = np.arange(len(classes))  # labels are looked up here
        return shell
