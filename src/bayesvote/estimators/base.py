"""What the classifiers share: checked tables, encoded labels, one pass over the rows, probabilities."""

from abc import ABC, abstractmethod
from collections.abc import Iterator, Mapping
from contextlib import AbstractContextManager, contextmanager, nullcontext, suppress
from copy import deepcopy
from typing import Any, Generic, Self, TypeVar

import numpy as np
from numpy.typing import ArrayLike, NDArray
from sklearn.base import BaseEstimator, ClassifierMixin
from sklearn.utils import Tags, check_random_state, column_or_1d, estimator_html_repr
from sklearn.utils.validation import check_is_fitted, validate_data

from bayesvote.core import checks as _checks
from bayesvote.core.checks import Array, Labels, fraction
from bayesvote.core.rollback import Forecast, RowsLearned, note_progress, reports_progress
from bayesvote.core.rows import Rows, as_rows, is_sparse, plain, within_float64
from bayesvote.core.state import MOST_TOTAL, Learned, Part, read_locked, within
from bayesvote.estimators import _class_weight
from bayesvote.estimators._by_name import by_name, with_names
from bayesvote.estimators._calibration import Calibration, trust_in
from bayesvote.estimators._html import summary
from bayesvote.estimators._labels import check_targets, one_column
from bayesvote.estimators._lesson import Lesson
from bayesvote.model import Model, agreeing, decided
from bayesvote.tables import Columns, Table, has_text, holds_text, is_table, named_columns, read_table

M = TypeVar("M", bound=Model[Any])


class OnlineClassifier(ClassifierMixin, BaseEstimator, Part, ABC, Generic[M]):
    """A model as a scikit-learn classifier.

    Tables of pandas, polars and pyarrow, dictionaries of columns, arrays and sparse matrices are taken; NaN is a
    missing value. A table that is not of numbers alone is encoded by :class:`bayesvote.tables.Columns`, which learns
    how as the stream goes on.

    ``start``, ``advance`` and ``probabilities`` are for callers that have checked their rows themselves.
    """

    complete = True
    _internal = "advance around calibrates check checked_rows probabilities progress start"
    calibrated: bool | str
    class_weight: Any
    columns: Mapping[Any, str] | None
    random_state: Any
    shuffle: bool
    classes_: NDArray[Any]
    n_features_in_: int
    feature_names_in_: NDArray[Any]
    model_: M
    calibration_: Calibration
    class_counts_: Array
    columns_: Columns

    @abstractmethod
    def _model(self, classes: NDArray[Any]) -> M:
        """Model as configured, not started."""

    @classmethod
    def around(cls, model: M) -> Self:
        """Return a classifier around a model that was started; its labels are the class indices."""
        given: dict[str, Any] = {**model.parameters(), "calibrated": False}  # nothing was learned of its probabilities
        shell = cls(**given)
        shell._take(model)
        return shell

    def _take(self, model: M) -> None:
        self.model_, self.calibration_, self.class_counts_ = model, *_nothing_learned(model.n_classes)
        self.n_features_in_, self.classes_ = model.n_features, np.arange(model.n_classes)

    @property
    def _forgetting(self) -> float:
        """How the calibration fades."""
        return 1.0

    @reports_progress
    def fit(self, X: Any, y: ArrayLike, sample_weight: ArrayLike | None = None) -> Self:
        """Forget everything, then learn a batch of rows in one pass.

        The rows are shuffled, unless ``shuffle=False``: members and weights are learned as if the rows could have come
        in any order. For a stream whose order matters use ``partial_fit``, or ``shuffle=False``.

        Parameters
        ----------
        X : table, array or sparse matrix of shape (n, d)
            The rows; NaN marks a missing value.
        y : array of shape (n,)
            Their labels.
        sample_weight : array of shape (n,), optional
            How much each row counts, from 0 to 1e9. Not the same as repeating a row, since the order of rows matters.
        """
        new = self._twin()
        new.__dict__.pop("feature_names_in_", None)
        rows, labels = new._checked(X, y, reset=True)
        check_targets(labels)
        classes = np.unique(labels)
        w = _checks.weights(self.who, sample_weight, len(labels))
        if not np.any(w):
            raise ValueError(f"{self.who}.fit: sample_weight must be above 0 for some rows, got zeros only.")
        codes = _checks.encoded(self.who, labels, classes)
        rng = new._random()
        new._begin(classes, rng)
        if self.shuffle:
            order = rng.spawn(1)[0].permutation(rows.n)
            rows, codes, w = rows.take(order), codes[order], w[order]
        self._learn_as(new, rows, codes, w, 0 if self.shuffle else new.horizon_)
        return self

    @reports_progress
    def partial_fit(
        self, X: Any, y: ArrayLike, classes: ArrayLike | None = None, sample_weight: ArrayLike | None = None
    ) -> Self:
        """Go on learning. Chunks of any size, in order, give what one call with all rows gives.

        The first call needs a row at least. Later ones also take none, and then change nothing.

        Parameters
        ----------
        X, y, sample_weight
            As in ``fit``.
        classes : array, optional
            All labels that can come; needed in the first call only.
        """
        self._continue("partial_fit", X, y, classes, sample_weight, at_horizon=True)
        return self

    @reports_progress
    def predict_proba_then_learn(
        self, X: Any, y: ArrayLike, classes: ArrayLike | None = None, sample_weight: ArrayLike | None = None
    ) -> Array:
        """Probabilities (n, K) as of ``predict_proba``, row t before row t is learned, as by ``partial_fit``.

        Parameters
        ----------
        X, y, classes, sample_weight
            As in ``partial_fit``. A row of weight 0 is predicted and not learned.
        """
        return self.probabilities(*self._continue("predict_proba_then_learn", X, y, classes, sample_weight))

    def predict(self, X: Any) -> NDArray[Any]:
        """Labels of rows."""
        now = self._fitted()
        return np.asarray(now.classes_[decided(now._losses(X))])

    def score(self, X: Any, y: ArrayLike, sample_weight: ArrayLike | None = None) -> float:
        """Return the share of rows whose label is predicted."""
        labels = np.asarray(_checks.label_array(y))
        if labels.dtype.kind == "O" and not isinstance(labels.flat[0] if labels.size else "", str):
            # scikit-learn does not compare integers that only objects can hold.
            weights = _checks.weights(self.who, sample_weight, len(labels))
            return float(np.average(labels == self.predict(X), weights=weights))
        return float(super().score(X, labels, sample_weight))

    def predict_proba(self, X: Any) -> Array:
        """Probabilities (n, K) of the labels, in the order of ``classes_``; the largest is that of ``predict``."""
        now = self._fitted()
        with now.read_lock():  # model and calibration must be of the same moment
            return now.probabilities(now._losses(X))

    def predict_log_proba(self, X: Any) -> Array:
        """Return the logarithms (n, K) of ``predict_proba``, which are finite: no label is impossible."""
        return np.asarray(np.log(self.predict_proba(X)))

    def decision_function(self, X: Any) -> Array:
        """Lead of the second label, (n,), for two classes; minus the loss of every label, (n, K), for more."""
        now = self._fitted()
        losses = now._losses(X)
        votes = agreeing(-losses, losses)
        return np.asarray(votes[:, 1] - votes[:, 0]) if votes.shape[1] == 2 else votes

    def progress(self) -> RowsLearned:
        """How far its model has come in learning."""
        return self.model_.progress() if hasattr(self, "model_") else RowsLearned.of(None)

    def read_lock(self) -> AbstractContextManager[Any]:
        """Return the read lock of the model, which also protects the calibration."""
        return self.model_.lock.read if hasattr(self, "model_") else nullcontext()

    def __getstate__(self) -> dict[str, Any]:
        with self.read_lock():
            state: dict[str, Any] = dict(super().__getstate__())  # type: ignore[call-overload]
            # Perhaps these are learning again by the time that they are pickled.
            return state | {name: deepcopy(state[name]) for name in _LEARNING if name in state}

    def __setstate__(self, state: dict[str, Any]) -> None:
        # joblib may load read-only arrays, but these learn in place.
        super().__setstate__(state | {name: deepcopy(state[name]) for name in _LEARNING if name in state})

    def _repr_html_inner(self) -> str:
        """Return what notebooks show: scikit-learn's diagram and, once fitted, what was learned."""
        diagram = estimator_html_repr(self)
        return diagram + summary(self) if hasattr(self, "model_") else diagram

    def _repr_mimebundle_(self, **kwargs: Any) -> dict[str, str]:  # noqa: ARG002
        shown = self._repr_html_inner() if hasattr(self, "_repr_html_") else None  # as scikit-learn is set to
        return {"text/plain": repr(self)} | ({} if shown is None else {"text/html": shown})

    def __sklearn_tags__(self) -> Tags:
        tags = super().__sklearn_tags__()
        tags.input_tags.allow_nan = True
        tags.input_tags.sparse = True
        return tags

    def check(self) -> None:
        """Refuse parameters of which no model can be made, before there are any rows."""
        asked = getattr(self, "max_features", None)
        with self._speaking():
            self._model(np.arange(2)).start(max(8, asked) if isinstance(asked, int) else 8, 2, np.random.default_rng(0))
        Columns(self.columns)

    def start(self, rows: int | Rows | Table, classes: NDArray[Any], rng: np.random.Generator | None = None) -> Self:
        """Get ready for rows of so many features, or for rows like these, and for these classes; nothing is learned."""
        new = self._twin()
        new._note(rows)
        new._begin(classes, rng)
        self.__dict__ = new.__dict__
        return self

    def checked_rows(self, rows: Rows | Table) -> Rows | Table:
        """Rows or a table like those that it was started for; others are refused."""
        if isinstance(rows, Table) != hasattr(self, "columns_"):
            what = "a table of more than numbers" if hasattr(self, "columns_") else "rows of numbers"
            raise _checks.InputTypeError(self.who, "X", f"must be {what}, like that which was learned")
        return self.columns_.checked(rows) if isinstance(rows, Table) else rows

    def _note(self, rows: int | Rows | Table) -> None:
        """Note what the features are."""
        if isinstance(rows, Rows):
            self._refuse_columns("rows of numbers")
        self.__dict__.pop("columns_", None)
        self.n_features_in_ = rows if isinstance(rows, int) else rows.width
        if isinstance(rows, Table):
            self.columns_ = Columns(self.columns).start(rows)
            self.feature_names_in_ = np.array(self.columns_.names, dtype=object)

    @reports_progress
    def advance(
        self, rows: Rows | Table, codes: Labels, w: Array, forecast: Forecast | None = None, horizon: int = 0
    ) -> tuple[Array, Array | None]:
        """Learn rows that are checked, with places of their labels among the classes.

        ``forecast`` and ``horizon`` are as in ``Model.advance``. Returns what ``probabilities`` takes: the losses
        (n, K), row t before row t is learned, and the calibration (n, 2) at that time, if there is one.
        """
        return Lesson(self, codes, w, forecast, horizon).learn(rows)

    def forecast(self, rows: Rows | Table) -> tuple[Forecast, Array]:
        """Return what the answers to checked rows are made of, for ``advance``, and their losses (n, K)."""
        if isinstance(rows, Rows):
            return self.model_.forecast(rows)
        with self.read_lock():  # model and columns must be of the same moment
            parts = [self.model_.forecast(part) for part in self.columns_.encoded(rows)]
        forecasts, losses = zip(*parts, strict=True)
        return Forecast(*map(np.concatenate, zip(*forecasts, strict=True))), np.concatenate(losses)

    def probabilities(self, losses: Array, calibration: Array | None = None) -> Array:
        """Probabilities from losses, by the calibration as it is or as it was at each row."""
        if not self.calibrates:
            return self.model_.probabilities(losses)
        given = self.model_.shares(losses), losses, calibration, trust_in(self.model_.loss_scale)
        return agreeing(self.calibration_.calibrated(*given), losses)

    def parameters(self) -> dict[str, Any]:
        """Everything that the constructor takes; a random generator becomes None."""
        drawing = (np.random.RandomState, np.random.Generator)
        given = self.get_params(deep=False)
        return {name: None if isinstance(value, drawing) else value for name, value in given.items()}

    @read_locked
    def learned(self) -> Learned | None:
        """The model, the calibration, and the classes and features they are about."""
        if not hasattr(self, "model_"):
            return None
        self.calibration_.check()
        facts = {name: getattr(self, name) for name in _FITTED if hasattr(self, name)}
        arrays = self.calibration_._asdict() | {"class_counts": self.class_counts_}
        parts: dict[str, Part] = {"model_": self.model_}
        if hasattr(self, "columns_"):
            parts["columns_"] = self.columns_
        return Learned(facts, arrays, parts)

    def restore(self, learned: Learned, room: int) -> None:  # noqa: ARG002
        """Take up what a file brings."""
        facts, parts = dict(learned.facts), dict(learned.parts)
        model, columns = parts.pop("model_"), parts.pop("columns_", None)
        width, classes = facts["n_features_in_"], facts["classes_"]
        if parts or not isinstance(columns, Columns | None) or (columns and len(columns.names) != width):
            raise ValueError("columns that do not fit the features")
        inside = columns.width if columns else width
        ordered = isinstance(classes, np.ndarray) and np.array_equal(np.unique(classes), classes)
        if (
            not isinstance(model, Model)
            or not ordered
            or type(width) is not int
            or model.shape != (inside, len(classes))
        ):
            raise ValueError("classes_ or n_features_in_ that do not fit the model")
        names = facts.get("feature_names_in_", np.empty(width))
        if not isinstance(names, np.ndarray) or names.shape != (width,) or facts.keys() - {*_FITTED}:
            raise ValueError(f"feature names that are not {width}")
        _class_weight.check(self.who, self.class_weight, classes)
        fraction(self.who, "forgetting", self._forgetting)
        self._check_calibrated()
        Columns(self.columns)
        arrays = {"class_counts": np.zeros(len(classes)), **learned.arrays}  # older files have none
        counts = arrays.pop("class_counts")
        if counts.shape != classes.shape or counts.dtype != np.float64 or not within(counts, 0, MOST_TOTAL):
            raise ValueError(f"class counts that are not {len(classes)} sums of weights")
        calibration = Calibration(**arrays)
        for found, wanted in zip(calibration, Calibration.start(), strict=True):
            if found.shape != wanted.shape or found.dtype != wanted.dtype:
                raise ValueError(f"a calibration of {found.dtype} {found.shape}")
        calibration.check()
        self.__dict__.update(facts, model_=model, calibration_=calibration, class_counts_=counts)
        if columns:
            self.columns_ = columns

    @property
    def _width(self) -> int:
        """Number of features that the model gets, or 0 before it is known."""
        return self.columns_.width if hasattr(self, "columns_") else getattr(self, "n_features_in_", 0)

    def _rows(self, X: Any) -> Rows:
        """Rows that the fitted model takes."""
        X = self._by_name(X)
        if self._is_table(X, reset=False):
            with self.read_lock():
                return self.columns_.encode(X, strict=True)
        return self._validated(X, reset=False)[0]

    def _losses(self, X: Any) -> Array:
        X = self._by_name(X)
        if not self._is_table(X, reset=False):
            return self.model_.losses(self._rows(X))
        table = read_table(self.who, X)
        with self.read_lock():  # model and columns must be of the same moment
            encoded = self.columns_.encoded(self.columns_.checked(table, strict=True))
            return np.concatenate([self.model_.losses(rows) for rows in encoded])

    def _checked(self, X: Any, y: ArrayLike, *, reset: bool) -> tuple[Rows | Table, NDArray[Any]]:
        """Rows, or a table that is still to be encoded, and labels."""
        y = one_column(_checks.label_array(y))
        unnamed = not is_table(X)
        X = (named_columns(X) if holds_text(X) else X) if reset else self._by_name(X)
        if not self._is_table(X, reset=reset):
            rows, labels = self._validated(X, y, reset=reset)
            if reset:
                self.__dict__.pop("columns_", None)
                if is_table(X) and len(labels) == rows.n:
                    with suppress(_checks.InvalidInputError):  # columns without names of their own
                        columns = Columns().start(X)
                        columns.advise(columns.checked(X), np.unique(labels, return_inverse=True)[1])
            return rows, labels
        table = read_table(self.who, X)
        labels = column_or_1d(y)
        if len(labels) != table.n:
            raise _checks.InputError(self.who, "y", f"must have one label per row, {table.n}", str(len(labels)))
        if reset:
            if table.n == 0:  # in scikit-learn's words
                found = f"Found array with 0 sample(s) (shape=(0, {table.width}))"
                raise ValueError(f"{found} while a minimum of 1 is required by {self.who}.")
            self._note(table)
            if unnamed:
                del self.feature_names_in_  # scikit-learn has none for arrays
            table = self.columns_.checked(table)
            self.columns_.advise(table, np.unique(labels, return_inverse=True)[1])
            return table, labels
        return self.columns_.checked(table), labels

    def _by_name(self, X: Any) -> Any:
        """Return X with the columns of the fitted model; see docs/tables.md."""
        names = self.feature_names_in_.tolist() if hasattr(self, "feature_names_in_") else None
        return by_name(self.who, X, names, self.n_features_in_, hasattr(self, "columns_"))

    def _validated(self, X: Any, y: Any = "no_validation", *, reset: bool) -> tuple[Rows, NDArray[Any]]:
        """Rows, and labels if there are some, that pass scikit-learn's checks and ours."""
        if isinstance(X, Rows):  # of columns that were matched by name
            if isinstance(y, str):
                return X, np.empty(0)
            labels = column_or_1d(y, warn=True)
            if len(labels) != X.n:
                raise _checks.InputError(self.who, "y", f"must have one label per row, {X.n}", str(len(labels)))
            return X, labels
        # scikit-learn goes by the indices of a sparse matrix, so it is given one that is made of checked rows.
        rows = as_rows(self.who, X) if is_sparse(X) else None
        given = rows.tocsr() if rows else with_names(plain(self.who, X))
        with within_float64(self.who, given):
            checked = validate_data(self, given, y, reset=reset, ensure_min_samples=int(reset), **_CHECKS)
        found, labels = checked if isinstance(checked, tuple) else (checked, np.empty(0))
        return rows or as_rows(self.who, found), labels

    def _is_table(self, X: Any, *, reset: bool) -> bool:
        """Whether the columns of X are to be encoded; those of a fitted model are if they were."""
        if reset:
            if not is_table(X):
                self._refuse_columns(type(X).__name__)
            return is_table(X) and (self.columns is not None or has_text(X))
        if hasattr(self, "columns_") and not is_table(X):
            names = self.columns_.names
            raise _checks.InputTypeError(
                self.who,
                "X",
                f"must be a table with the columns {names}",
                type(X).__name__,
                "Give a DataFrame or a dict.",
            )
        return hasattr(self, "columns_")

    def _refuse_columns(self, got: str) -> None:
        """Refuse rows without names if ``columns`` says how to read them."""
        if self.columns:
            must, do = "must be a table if columns= says how to read it", "Give a DataFrame or a dict, or no columns=."
            raise _checks.InputTypeError(self.who, "X", must, got, do)

    def _twin(self) -> Self:
        """The classifier as it is at this moment, whatever another thread makes of it; with the same model."""
        twin = object.__new__(type(self))
        twin.__dict__.update(self.__dict__)
        return twin

    def _fitted(self) -> Self:
        """Return such a twin, which must be fitted."""
        check_is_fitted(self)
        return self._twin()

    def _begin(self, classes: NDArray[Any], rng: np.random.Generator | None = None) -> None:
        """Have learned nothing, of these classes and the features that were noted."""
        self.classes_, self.model_ = classes, self._started(self._width, classes, rng)
        if hasattr(self, "columns_"):
            self.columns_.expect(len(classes))
        self.calibration_, self.class_counts_ = _nothing_learned(len(classes))
        if not self.model_.learns and hasattr(self, "columns_"):
            self._check_for_frozen(self.columns_)

    def _check_for_frozen(self, columns: Columns) -> None:
        """Refuse a new table of more than numbers: how it is read is learned with the members."""
        other = [about["name"] for about in columns.describe() if about["kind"] not in ("number", "boolean", "drop")]
        if other:
            raise _checks.InputTypeError(
                self.who,
                "X",
                "must hold numbers only for members that are frozen, which cannot learn how to read other columns",
                f"a table with {other}",
                "Let members learn such tables, or train them on shards by bayesvote.apps.distributed.fit.",
            )

    @property
    def horizon_(self) -> int:
        """Rows between the last label and the predicted row for which ``partial_fit`` learns the weights."""
        return 0

    def _learn_as(
        self, new: Self, rows: Rows | Table, codes: Labels, w: Array, horizon: int
    ) -> tuple[Array, Array | None]:
        """Let a twin learn, and be as it is once it has; others see the one or the other."""
        try:
            found = new.advance(rows, codes, w, horizon=horizon)
        except BaseException as error:
            note_progress(error, self.who, 0, rows.n)
            raise
        self.__dict__ = new.__dict__
        return found

    def _started(self, n_features: int, classes: NDArray[Any], rng: np.random.Generator | None = None) -> M:
        if len(classes) < 2:
            raise ValueError(f"{self.who}: y must hold at least two classes, got one class, {classes.tolist()}.")
        _class_weight.check(self.who, self.class_weight, classes)
        self._check_calibrated()
        seeded = self._random() if rng is None else rng
        with self._speaking():
            return self._model(classes).start(n_features, len(classes), seeded)

    def _random(self) -> np.random.Generator:
        seed = self.random_state
        try:
            if not isinstance(seed, (int, np.integer, np.random.Generator)):
                seed = check_random_state(seed).randint(np.iinfo(np.int32).max)
            return np.random.default_rng(seed)
        except ValueError:
            must = "must be an integer of at least 0, a Generator, a RandomState or None"
            raise _checks.InputError(self.who, "random_state", must, repr(seed)) from None

    @contextmanager
    def _speaking(self) -> Iterator[None]:
        """Let errors about a parameter of this classifier be its own: a part that was handed it is not known."""
        try:
            yield
        except _checks.InvalidInputError as error:
            given = self.get_params(deep=False)
            if error.subject in given and error.got.startswith(repr(given[error.subject])):
                error.who = self.who
                error.args = (self.who, *error.args[1:])
            raise

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
        """Learn further rows, as ``advance`` does."""
        first = not hasattr(self, "classes_")
        if first and classes is None:
            raise ValueError(
                f"{self.who}.{method}: classes must be passed on the first call to {method}, got None. "
                "Give all the labels that can come."
            )
        given = np.unique(np.asarray(_checks.label_array([] if classes is None else classes, "classes")))
        if not first and classes is not None and not np.array_equal(given, self.classes_):
            raise ValueError(
                f"{self.who}.{method}: classes must be those of the first call, {self.classes_.tolist()}, "
                f"got {given.tolist()}. Leave them out after the first call."
            )
        new = self._twin()
        rows, labels = new._checked(X, y, reset=first)
        codes = _checks.encoded(self.who, labels, given if first else new.classes_)
        w = _checks.weights(self.who, sample_weight, rows.n)
        if first:
            new._begin(given)
        horizon = new.horizon_ if at_horizon else 0
        return self._learn_as(new, rows, codes, w, horizon) if first else new.advance(rows, codes, w, horizon=horizon)

    def _check_calibrated(self) -> None:
        if self.calibrated not in ("auto", True, False):
            raise ValueError(f"{self.who}: calibrated must be True or False, got {self.calibrated!r}.")

    @property
    def calibrates(self) -> bool:
        """Whether probabilities are calibrated. "auto", the default of version 0.1, means that they are."""
        return bool(self.calibrated)


def _nothing_learned(n_classes: int) -> tuple[Calibration, Array]:
    """Calibration and class counts before any row."""
    return Calibration.start(), np.zeros(n_classes)


_LEARNING = ("model_", "calibration_", "class_counts_", "columns_")  # changed in place, under the model's write lock
# What a fitted classifier has besides its parameters, its model and its calibration.
_FITTED = ("classes_", "n_features_in_", "feature_names_in_")
# ``as_rows`` looks for infinity; once is enough.
_CHECKS: dict[str, Any] = {"accept_sparse": "csr", "dtype": np.float64, "ensure_all_finite": False}
