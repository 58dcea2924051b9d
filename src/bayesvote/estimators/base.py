"""Base class of the classifiers: scikit-learn's methods around a model."""

from abc import ABC, abstractmethod
from collections.abc import Iterator, Mapping, Sequence
from contextlib import AbstractContextManager, contextmanager, nullcontext
from typing import Any, Self

import numpy as np
from numpy.typing import ArrayLike, NDArray
from sklearn.base import BaseEstimator, ClassifierMixin
from sklearn.utils import Tags, check_random_state, estimator_html_repr

from bayesvote.core import checks as _checks
from bayesvote.core.checks import Array, InputError, Labels, fraction
from bayesvote.core.rollback import Forecast, RowsLearned, note_progress, reports_progress
from bayesvote.core.rows import Rows
from bayesvote.core.state import Learned, Part, read_locked
from bayesvote.estimators import _class_weight, _predicting, _validation
from bayesvote.estimators._attributes import FittedAttributes
from bayesvote.estimators._html import summary
from bayesvote.estimators._labels import check_targets
from bayesvote.estimators._learning import LearningCall, LearningOptions
from bayesvote.estimators._validation import Features, check_numbers_only
from bayesvote.estimators.fitted import Fitted, M
from bayesvote.model import decided
from bayesvote.tables import Columns, Table


class OnlineClassifier(FittedAttributes[M], ClassifierMixin, BaseEstimator, Part, ABC):
    """A model as a scikit-learn classifier.

    X may be a table of pandas, polars or pyarrow, a dictionary of columns, an array or a sparse matrix. NaN is a
    missing value. A table with text, dates or categories is encoded by :class:`bayesvote.tables.Columns`, which learns
    the encoding from the stream.

    ``start``, ``advance`` and ``probabilities`` are for callers that have checked their rows themselves.
    """

    complete = True
    _internal = "advance around calibrates check checked_rows from_fitted probabilities progress start"
    calibrated: bool | str
    class_weight: Any
    columns: Mapping[Any, str] | None
    random_state: Any
    shuffle: bool

    @abstractmethod
    def _model(self, classes: NDArray[Any], n_features: int) -> M:
        """Return a model with the parameters of this classifier, not started."""

    @property
    def horizon_(self) -> int:
        """Rows between the last label and the predicted row for which ``partial_fit`` learns the weights."""
        return self._horizon(self.model_)

    @classmethod
    def from_fitted(cls, fitted: Fitted[M], **parameters: Any) -> Self:
        """Return a classifier with these parameters, fitted as the record says."""
        made = cls(**parameters)
        made.fitted_ = fitted
        return made

    @classmethod
    def around(cls, model: M) -> Self:
        """Return a classifier around a started model. Its labels are the class indices."""
        # The calibration has seen no rows.
        return cls.from_fitted(Fitted.of(model), **cls._parameters_of(model), calibrated=False)

    @classmethod
    def _parameters_of(cls, model: M) -> dict[str, Any]:
        return model.parameters()

    @property
    def _forgetting(self) -> float:
        """Factor by which the calibration's past fades with each row."""
        return 1.0

    def _horizon(self, model: M) -> int:  # noqa: ARG002
        return 0

    @reports_progress
    def fit(self, X: Any, y: ArrayLike, sample_weight: ArrayLike | None = None) -> Self:
        """Forget everything, then learn a batch of rows in one pass.

        The rows are shuffled, unless ``shuffle=False``: members and weights are learned as if the rows could have come
        in any order. For a stream whose order matters use ``partial_fit``, or ``shuffle=False``.

        Parameters
        ----------
        X : table, array or sparse matrix of shape (n, d)
            The rows. NaN marks a missing value.
        y : array of shape (n,)
            The labels.
        sample_weight : array of shape (n,), optional
            Weight of each row, from 0 to 1e9. A weight of 2 differs from two equal rows, as the order of rows matters.
        """
        rows, labels, features = _validation.first_rows(self.who, self.columns, X, y)
        check_targets(labels)
        classes = np.unique(labels)
        w = _checks.weights(self.who, sample_weight, len(labels))
        if not np.any(w):
            raise InputError(f"{self.who}.fit", "sample_weight", "must be above 0 for some rows", "zeros only")
        codes = _checks.encoded(self.who, labels, classes)
        rng = self._random()
        fitted = self._begin(features, classes, rng)
        if self.shuffle:
            order = rng.spawn(1)[0].permutation(rows.n)
            rows, codes, w = rows.take(order), codes[order], w[order]
        self._learn_first(fitted, rows, codes, w, 0 if self.shuffle else self._horizon(fitted.model))
        return self

    @reports_progress
    def partial_fit(
        self, X: Any, y: ArrayLike, classes: ArrayLike | None = None, sample_weight: ArrayLike | None = None
    ) -> Self:
        """Learn further rows. Chunks of any size, in order, give the same model as one call with all rows.

        The first call needs at least one row. Later calls with no rows change nothing.

        Parameters
        ----------
        X, y, sample_weight
            As in ``fit``.
        classes : array, optional
            All possible labels. Required in the first call only.
        """
        self._continue("partial_fit", X, y, classes, sample_weight, at_horizon=True)
        return self

    @reports_progress
    def predict_proba_then_learn(
        self, X: Any, y: ArrayLike, classes: ArrayLike | None = None, sample_weight: ArrayLike | None = None
    ) -> Array:
        """Return the probabilities (n, K) of ``predict_proba``, row t before row t is learned by ``partial_fit``.

        Parameters
        ----------
        X, y, classes, sample_weight
            As in ``partial_fit``. A row of weight 0 is predicted and not learned.
        """
        return self.probabilities(*self._continue("predict_proba_then_learn", X, y, classes, sample_weight))

    def predict(self, X: Any) -> NDArray[Any]:
        """Return the labels of rows."""
        fitted = self._require_fitted()
        return np.asarray(fitted.classes[decided(_predicting.losses(self.who, fitted, X))])

    def score(self, X: Any, y: ArrayLike, sample_weight: ArrayLike | None = None) -> float:
        """Return the mean accuracy."""
        labels = np.asarray(_checks.label_array(y))
        if labels.dtype.kind == "O" and not isinstance(labels.flat[0] if labels.size else "", str):
            # scikit-learn does not compare integers that only objects can hold.
            weights = _checks.weights(self.who, sample_weight, len(labels))
            return float(np.average(labels == self.predict(X), weights=weights))
        return float(super().score(X, labels, sample_weight))

    def predict_proba(self, X: Any) -> Array:
        """Return the probabilities (n, K) of the labels, in the order of ``classes_``.

        The largest probability is that of the label that ``predict`` returns.
        """
        fitted = self._require_fitted()
        with fitted.model.lock.read:  # model and calibration must be of the same moment
            losses = _predicting.losses(self.who, fitted, X)
            return _predicting.probabilities(fitted, losses, calibrates=self.calibrates)

    def predict_log_proba(self, X: Any) -> Array:
        """Return the logarithms (n, K) of ``predict_proba``. They are finite, as no probability is 0."""
        return np.asarray(np.log(self.predict_proba(X)))

    def decision_function(self, X: Any) -> Array:
        """Return the lead of the second label, (n,), for two classes, and minus the losses, (n, K), for more."""
        return _predicting.decision_function(self.who, self._require_fitted(), X)

    def progress(self) -> RowsLearned:
        """Return the number of rows learned so far."""
        fitted = self._known()
        return RowsLearned.of(None) if fitted is None else fitted.model.progress()

    def read_lock(self) -> AbstractContextManager[Any]:
        """Return the read lock of the model, which also protects the calibration."""
        fitted = self._known()
        return nullcontext() if fitted is None else fitted.model.lock.read

    def __getstate__(self) -> dict[str, Any]:
        with self.read_lock():
            # A copy, as the model may learn again before it is pickled.
            state: Any = super().__getstate__()
            return _with_own_record(state)

    def __setstate__(self, state: dict[str, Any]) -> None:
        # A copy, as joblib may load read-only arrays, and learning changes them in place.
        super().__setstate__(_with_own_record(state))

    def _repr_html_inner(self) -> str:
        """Return scikit-learn's diagram and, once fitted, a summary of the model."""
        diagram = estimator_html_repr(self)
        return diagram if self._known() is None else diagram + summary(self)

    def _repr_mimebundle_(self, **kwargs: Any) -> dict[str, str]:  # noqa: ARG002
        shown = self._repr_html_inner() if hasattr(self, "_repr_html_") else None  # depends on scikit-learn's settings
        return {"text/plain": repr(self)} | ({} if shown is None else {"text/html": shown})

    def __sklearn_tags__(self) -> Tags:
        tags = super().__sklearn_tags__()
        tags.input_tags.allow_nan = True
        tags.input_tags.sparse = True
        return tags

    def check(self) -> None:
        """Check the parameters without any rows."""
        asked = getattr(self, "max_features", None)
        with self._own_errors():
            n_features = max(8, asked) if isinstance(asked, int) else 8
            self._model(np.arange(2), 0).start(n_features, 2, np.random.default_rng(0))
        Columns(self.columns)

    def start(
        self,
        rows: int | Rows | Table,
        classes: NDArray[Any],
        rng: np.random.Generator | None = None,
        names: Sequence[Any] | None = None,
    ) -> Self:
        """Start a model for that many features, or for rows like these, and for these classes. Nothing is learned."""
        features = Features.of(self.who, self.columns, rows)
        self.fitted_ = self._begin(features, classes, rng)
        if names is not None:
            self.name_features(names)
        return self

    def name_features(self, names: Sequence[Any] | None) -> None:
        """Replace the names of the columns of X; None removes them."""
        named = None if names is None else np.array(names, dtype=object)
        self.fitted_ = self._require_fitted().replace(names=named)

    def checked_rows(self, rows: Rows | Table) -> Rows | Table:
        """Return rows, or a table, of the kind that the model was started for; reject others."""
        return _validation.check_rows(self.who, self._require_fitted(), rows)

    @reports_progress
    def advance(
        self, rows: Rows | Table, codes: Labels, w: Array, forecast: Forecast | None = None, horizon: int = 0
    ) -> tuple[Array, Array | None]:
        """Learn checked rows; ``codes`` are the indices of their labels among the classes.

        ``forecast`` and ``horizon`` are as in ``Model.advance``. Returns the arguments of ``probabilities``: the losses
        (n, K), row t before row t is learned, and the calibration (n, 2) at that time, if there is one.
        """
        fitted = self._require_fitted()
        return LearningCall(self._options(), fitted, codes, w, forecast, horizon).learn(rows)

    def forecast(self, rows: Rows | Table) -> tuple[Forecast, Array]:
        """Return the parts of predictions of checked rows, for ``advance``, and their losses (n, K)."""
        return _predicting.forecast(self._require_fitted(), rows)

    def probabilities(self, losses: Array, calibration: Array | None = None) -> Array:
        """Return probabilities from losses, by the calibration now or by that at each row."""
        return _predicting.probabilities(self._require_fitted(), losses, calibration, calibrates=self.calibrates)

    def parameters(self) -> dict[str, Any]:
        """Return the arguments of the constructor, with None for a random generator."""
        drawing = (np.random.RandomState, np.random.Generator)
        given = self.get_params(deep=False)
        return {name: None if isinstance(value, drawing) else value for name, value in given.items()}

    @read_locked
    def learned(self) -> Learned | None:
        """Return the content of a model file, or None before the first row."""
        fitted = self._known()
        return None if fitted is None else fitted.learned()

    def restore(self, learned: Learned, room: int) -> None:  # noqa: ARG002
        """Restore the content of a model file."""
        fitted = Fitted.restored(learned)
        _class_weight.check(self.who, self.class_weight, fitted.classes)
        fraction(self.who, "forgetting", self._forgetting)
        self._check_flags()
        Columns(self.columns)
        self.fitted_ = fitted

    def _begin(self, features: Features, classes: NDArray[Any], rng: np.random.Generator | None = None) -> Fitted[M]:
        """Return the record of a new model that has learned nothing."""
        if len(classes) < 2:
            raise InputError(self.who, "y", "must hold at least two classes", f"one class, {classes.tolist()}")
        _class_weight.check(self.who, self.class_weight, classes)
        self._check_flags()
        rng = self._random() if rng is None else rng
        with self._own_errors():
            model = self._model(classes, features.width).start(features.width, len(classes), rng)
        if features.columns is not None:
            features.columns.expect(len(classes))
            if not model.learns:
                check_numbers_only(self.who, features.columns)
        return Fitted.of(model, classes, names=features.names, columns=features.columns)

    def _options(self) -> LearningOptions:
        return LearningOptions(self.who, self.class_weight, self.calibrates, self._forgetting)

    def _learn_first(
        self, fitted: Fitted[M], rows: Rows | Table, codes: Labels, w: Array, horizon: int
    ) -> tuple[Array, Array | None]:
        """Learn the first rows of a new record, which replaces the present one only once it has learned them."""
        try:
            found = LearningCall(self._options(), fitted, codes, w, horizon=horizon).learn(rows)
        except BaseException as error:
            note_progress(error, self.who, 0, rows.n)
            raise
        self.fitted_ = fitted
        return found

    def _continue(
        self,
        method: str,
        X: Any,
        y: ArrayLike,
        classes: ArrayLike | None,
        sample_weight: ArrayLike | None,
        *,
        at_horizon: bool = False,
    ) -> tuple[Array, Array | None]:
        """Learn further rows, or the first ones; return as ``advance`` does."""
        fitted, who = self._known(), self.who
        if fitted is None:
            if classes is None:
                raise InputError(
                    f"{who}.{method}",
                    "classes",
                    f"must be passed on the first call to {method}",
                    "None",
                    "Pass all labels that can occur.",
                )
            given = _unique(classes)
            rows, labels, features = _validation.first_rows(who, self.columns, X, y)
            codes = _checks.encoded(who, labels, given)
            w = _checks.weights(who, sample_weight, rows.n)
            fitted = self._begin(features, given)
            return self._learn_first(fitted, rows, codes, w, self._horizon(fitted.model) if at_horizon else 0)
        if classes is not None and not np.array_equal(_unique(classes), fitted.classes):
            raise InputError(
                f"{who}.{method}",
                "classes",
                f"must be those of the first call, {fitted.classes.tolist()}",
                str(_unique(classes).tolist()),
                "Omit classes after the first call.",
            )
        rows, labels = _validation.labelled_rows(who, fitted, X, y)
        codes = _checks.encoded(who, labels, fitted.classes)
        w = _checks.weights(who, sample_weight, rows.n)
        horizon = self._horizon(fitted.model) if at_horizon else 0
        return LearningCall(self._options(), fitted, codes, w, horizon=horizon).learn(rows)

    def _random(self) -> np.random.Generator:
        seed = self.random_state
        try:
            if not isinstance(seed, (int, np.integer, np.random.Generator)):
                seed = check_random_state(seed).randint(np.iinfo(np.int32).max)
            return np.random.default_rng(seed)
        except ValueError:
            must = "must be an integer of at least 0, a Generator, a RandomState or None"
            raise InputError(self.who, "random_state", must, repr(seed)) from None

    @contextmanager
    def _own_errors(self) -> Iterator[None]:
        """Raise errors about a parameter of this classifier in its own name, not in that of the part that got it."""
        try:
            yield
        except _checks.InvalidInputError as error:
            given = self.get_params(deep=False)
            if error.subject in given and error.got.startswith(repr(given[error.subject])):
                error.who = self.who
                error.args = (self.who, *error.args[1:])
            raise

    def _check_flags(self) -> None:
        if self.calibrated not in ("auto", True, False):
            raise InputError(self.who, "calibrated", "must be True or False", repr(self.calibrated))
        for name in ("scale", "shuffle"):
            value = getattr(self, name)
            if not isinstance(value, (bool, np.bool_)):
                raise InputError(self.who, name, "must be True or False", repr(value))

    @property
    def calibrates(self) -> bool:
        """True if probabilities are calibrated. "auto", the default of version 0.1, means True."""
        return bool(self.calibrated)


def _unique(classes: ArrayLike) -> NDArray[Any]:
    return np.unique(np.asarray(_checks.label_array(classes, "classes")))


def _with_own_record(state: dict[str, Any]) -> dict[str, Any]:
    """Return the state of a classifier with a copy of its fitted record."""
    return state | {"fitted_": state["fitted_"].copy()} if "fitted_" in state else state
