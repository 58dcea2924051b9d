"""What the classifiers share: checked tables, encoded labels, one pass over the rows, probabilities."""

from abc import ABC, abstractmethod
from collections.abc import Iterator
from contextlib import contextmanager
from copy import deepcopy
from typing import Any, Generic, Self, TypeVar

import numpy as np
from numpy.typing import ArrayLike, NDArray
from sklearn.base import BaseEstimator, ClassifierMixin
from sklearn.utils import Tags, check_random_state
from sklearn.utils.multiclass import check_classification_targets
from sklearn.utils.validation import check_is_fitted, validate_data

from bayesvote import _checks
from bayesvote._checks import Array, Labels
from bayesvote._input import Rows, as_rows
from bayesvote._parts import Learned, Part
from bayesvote.estimators._calibration import Calibration
from bayesvote.model import Model, agreeing, decided

M = TypeVar("M", bound=Model[Any])


class OnlineClassifier(ClassifierMixin, BaseEstimator, Part, ABC, Generic[M]):
    """A model as a scikit-learn classifier.

    Tables of pandas, polars and pyarrow, arrays and sparse matrices are taken; NaN is a missing value.

    ``start``, ``advance`` and ``probabilities`` are for callers that have checked their rows themselves.
    """

    complete = True
    calibrated: bool
    random_state: Any
    classes_: NDArray[Any]
    n_features_in_: int
    feature_names_in_: NDArray[Any]
    model_: M
    calibration_: Calibration

    @abstractmethod
    def _model(self, classes: NDArray[Any]) -> M:
        """Model as configured, not started."""

    @classmethod
    def around(cls, model: M) -> Self:
        """Return a classifier around a model that was started; its labels are the class indices."""
        shell = cls(**model.parameters())
        shell._take(model)
        return shell

    def _take(self, model: M) -> None:
        self.model_, self.calibration_ = model, Calibration.start()
        self.n_features_in_, self.classes_ = model.n_features, np.arange(model.n_classes)

    @property
    def _forgetting(self) -> float:
        """How the calibration fades."""
        return 1.0

    def fit(self, X: Any, y: ArrayLike, sample_weight: ArrayLike | None = None) -> Self:
        """Forget everything, then go once over the rows in their order: each is predicted, then learned.

        Parameters
        ----------
        X : table, array or sparse matrix of shape (n, d)
            The rows; NaN marks a missing value.
        y : array of shape (n,)
            Their labels.
        sample_weight : array of shape (n,), optional
            How much each row counts, from 0 to 1e9. Not the same as repeating a row, since the order of rows matters.
        """
        with self._unchanged_if_refused():
            rows, labels = self._checked(X, y, reset=True)
            check_classification_targets(labels)
            classes = np.unique(labels)
            w = _checks.weights(self.who, sample_weight, len(labels))
            if not np.any(w):
                raise ValueError(f"{self.who}.fit: sample_weight must be above 0 for some rows, got zeros only.")
            codes = _checks.encoded(self.who, labels, classes)
            self._learn(classes, self._started(self.n_features_in_, classes), Calibration.start(), rows, codes, w)
        return self

    def partial_fit(
        self, X: Any, y: ArrayLike, classes: ArrayLike | None = None, sample_weight: ArrayLike | None = None
    ) -> Self:
        """Go on learning. Chunks of any size, in order, give what one call with all rows gives.

        Parameters
        ----------
        X, y, sample_weight
            As in ``fit``.
        classes : array, optional
            All labels that can come; needed in the first call only.
        """
        self._continue("partial_fit", X, y, classes, sample_weight)
        return self

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
        losses = self._losses(X)
        return np.asarray(self.classes_[decided(losses)])

    def predict_proba(self, X: Any) -> Array:
        """Probabilities (n, K) of the labels, in the order of ``classes_``; the largest is that of ``predict``."""
        return self.probabilities(self._losses(X))

    def decision_function(self, X: Any) -> Array:
        """Lead of the second label, (n,), for two classes; minus the loss of every label, (n, K), for more."""
        losses = self._losses(X)
        votes = agreeing(-losses, losses)
        return np.asarray(votes[:, 1] - votes[:, 0]) if votes.shape[1] == 2 else votes

    def __setstate__(self, state: dict[str, Any]) -> None:
        # joblib may load read-only arrays, but a model learns in place.
        super().__setstate__(state | {"model_": deepcopy(state["model_"])} if "model_" in state else state)

    def __sklearn_tags__(self) -> Tags:
        tags = super().__sklearn_tags__()
        tags.input_tags.allow_nan = True
        tags.input_tags.sparse = True
        return tags

    def start(self, n_features: int, classes: NDArray[Any], rng: np.random.Generator | None = None) -> Self:
        """Get ready for rows of n_features and for these classes, before the first row."""
        model = self._started(n_features, classes, rng)
        self.n_features_in_, self.classes_ = n_features, classes
        self.model_, self.calibration_ = model, Calibration.start()
        return self

    def advance(self, rows: Rows, codes: Labels, w: Array) -> tuple[Array, Array | None]:
        """Go on learning rows that are checked, with places of their labels among the classes.

        Returns what ``probabilities`` takes: the losses (n, K), row t before row t is learned, and the calibration
        (n, 2) at that time, if there is one.
        """
        return self._learn(self.classes_, self.model_, self.calibration_, rows, codes, w)

    def probabilities(self, losses: Array, calibration: Array | None = None) -> Array:
        """Probabilities from losses, by the calibration as it is or as it was at each row."""
        found = self.model_.probabilities(losses)
        if self.calibrated:
            found = agreeing(self.calibration_.calibrated(found, losses, calibration), losses)
        return found

    def parameters(self) -> dict[str, Any]:
        """Everything that the constructor takes; a random generator becomes None."""
        drawing = (np.random.RandomState, np.random.Generator)
        given = self.get_params(deep=False)
        return {name: None if isinstance(value, drawing) else value for name, value in given.items()}

    def learned(self) -> Learned | None:
        """The model, the calibration, and the classes and features they are about."""
        if not hasattr(self, "model_"):
            return None
        self.calibration_.check()
        facts = {name: getattr(self, name) for name in _FITTED if hasattr(self, name)}
        return Learned(facts, self.calibration_._asdict(), {"model_": self.model_})

    def restore(self, learned: Learned, room: int) -> None:  # noqa: ARG002
        """Take up what a file brings."""
        facts, model = dict(learned.facts), learned.parts["model_"]
        width, classes = facts["n_features_in_"], facts["classes_"]
        ordered = isinstance(classes, np.ndarray) and np.array_equal(np.unique(classes), classes)
        if (
            not isinstance(model, Model)
            or not ordered
            or type(width) is not int
            or model.shape != (width, len(classes))
        ):
            raise ValueError("classes_ or n_features_in_ that do not fit the model")
        names = facts.get("feature_names_in_", np.empty(width))
        if not isinstance(names, np.ndarray) or names.shape != (width,) or facts.keys() - {*_FITTED}:
            raise ValueError(f"feature names that are not {width}")
        calibration = Calibration(**learned.arrays)
        for found, wanted in zip(calibration, Calibration.start(), strict=True):
            if found.shape != wanted.shape or found.dtype != wanted.dtype:
                raise ValueError(f"a calibration of {found.dtype} {found.shape}")
        calibration.check()
        self.__dict__.update(facts, model_=model, calibration_=calibration)

    def _rows(self, X: Any) -> Rows:
        """Rows that the fitted model takes."""
        check_is_fitted(self)
        return as_rows(self.who, validate_data(self, X, reset=False, **_CHECKS))

    def _losses(self, X: Any) -> Array:
        rows = self._rows(X)
        return self.model_.losses(rows)

    def _checked(self, X: Any, y: ArrayLike, *, reset: bool) -> tuple[Rows, NDArray[Any]]:
        given, labels = validate_data(self, X, y, reset=reset, **_CHECKS)
        return as_rows(self.who, given), labels

    @contextmanager
    def _unchanged_if_refused(self) -> Iterator[None]:
        """Keep what is known of the features if the rows are refused: scikit-learn notes the new ones first."""
        before = {name: getattr(self, name) for name in _FITTED if hasattr(self, name)}
        try:
            yield
        except BaseException:
            for name in _FITTED:
                self.__dict__.pop(name, None)
            self.__dict__.update(before)
            raise

    def _started(self, n_features: int, classes: NDArray[Any], rng: np.random.Generator | None = None) -> M:
        if len(classes) < 2:
            raise ValueError(f"{self.who}: y must hold at least two classes, got one class, {classes.tolist()}.")
        model = self._model(classes)
        seed = self.random_state if rng is None else rng
        if not isinstance(seed, (int, np.integer, np.random.Generator)):
            seed = check_random_state(seed).randint(np.iinfo(np.int32).max)
        return model.start(n_features, len(classes), np.random.default_rng(seed))

    def _continue(
        self, method: str, X: Any, y: ArrayLike, classes: ArrayLike | None, sample_weight: ArrayLike | None
    ) -> tuple[Array, Array | None]:
        """Learn further rows, as ``_learn`` does."""
        first = not hasattr(self, "classes_")
        if first and classes is None:
            raise ValueError(
                f"{self.who}.{method}: classes must be passed on the first call to {method}, got None. "
                "Give all the labels that can come."
            )
        if not first and classes is not None and not np.array_equal(np.unique(np.asarray(classes)), self.classes_):
            raise ValueError(
                f"{self.who}.{method}: classes must be those of the first call, {self.classes_.tolist()}, "
                f"got {np.unique(np.asarray(classes)).tolist()}. Leave them out after the first call."
            )
        with self._unchanged_if_refused():
            rows, labels = self._checked(X, y, reset=first)
            known = np.unique(np.asarray(classes)) if first else self.classes_
            codes = _checks.encoded(self.who, labels, known)
            w = _checks.weights(self.who, sample_weight, rows.n)
            model = self._started(self.n_features_in_, known) if first else self.model_
            return self._learn(known, model, Calibration.start() if first else self.calibration_, rows, codes, w)

    def _learn(
        self, classes: NDArray[Any], model: M, calibration: Calibration, rows: Rows, codes: Labels, w: Array
    ) -> tuple[Array, Array | None]:
        """Losses (n, K) of every row before it was learned, and the calibration (n, 2) then, if there is one."""
        model.check_weights(w)
        losses = model.advance(rows, codes, w)
        means = None
        if self.calibrated:
            means = calibration.learn(model.probabilities(losses), losses, codes, w, self._forgetting)
        self.classes_, self.model_, self.calibration_ = classes, model, calibration
        return losses, means


# What a fitted classifier has besides its parameters, its model and its calibration.
_FITTED = ("classes_", "n_features_in_", "feature_names_in_")
# ``as_rows`` looks for infinity; once is enough.
_CHECKS: dict[str, Any] = {"accept_sparse": "csr", "dtype": np.float64, "ensure_all_finite": False}
