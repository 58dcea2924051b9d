"""What the classifiers share: checked tables, encoded labels, one pass over the rows, probabilities."""

from abc import ABC, abstractmethod
from copy import deepcopy
from typing import Any, Generic, Protocol, Self, TypeVar

import numpy as np
from numpy.typing import ArrayLike, NDArray
from sklearn.base import BaseEstimator, ClassifierMixin
from sklearn.utils import Tags, check_random_state
from sklearn.utils.multiclass import check_classification_targets
from sklearn.utils.validation import check_is_fitted, validate_data

from bayesvote import _checks
from bayesvote._checks import Array, Labels
from bayesvote._input import RowsLike
from bayesvote.ensemble import decided
from bayesvote.estimators._probabilities import Calibration, agreeing


class Model(Protocol):
    """An ensemble or a booster."""

    def start(self, n_features: int, n_classes: int = 2, rng: np.random.Generator | int | None = None) -> Self:
        """Forget everything."""

    def decide(self, X: RowsLike) -> Array:
        """Losses (n, K) of every label."""

    def decide_then_learn(self, X: RowsLike, y: ArrayLike, sample_weight: ArrayLike | None = None) -> Array:
        """Losses (n, K) of every label, row t before row t is learned."""


M = TypeVar("M", bound=Model)


class OnlineClassifier(ClassifierMixin, BaseEstimator, ABC, Generic[M]):
    """A model as a scikit-learn classifier.

    Tables of pandas, polars and pyarrow, arrays and sparse matrices are taken; NaN is a missing value.
    """

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

    @abstractmethod
    def _probabilities(self, model: M, losses: Array) -> Array:
        """Probabilities (n, K) from the model's losses."""

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
            How much each row counts. Not the same as repeating a row, since the order of rows matters.
        """
        rows, labels = self._checked(X, y, reset=True)
        check_classification_targets(labels)
        classes = np.unique(labels)
        if not np.any(_checks.weights(self._who, sample_weight, len(labels))):
            raise ValueError(f"{self._who}.fit: sample_weight must be above 0 for some rows, got zeros only.")
        self._learn(classes, self._started(classes), Calibration.start(), rows, labels, sample_weight)
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
        self._go_on("partial_fit", X, y, classes, sample_weight)
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
        losses, means = self._go_on("predict_proba_then_learn", X, y, classes, sample_weight)
        return self._chances(losses, means)

    def predict(self, X: Any) -> NDArray[Any]:
        """Labels of rows."""
        losses = self._losses(X)
        return np.asarray(self.classes_[decided(losses)])

    def predict_proba(self, X: Any) -> Array:
        """Probabilities (n, K) of the labels, in the order of ``classes_``; the largest is that of ``predict``."""
        return self._chances(self._losses(X))

    def decision_function(self, X: Any) -> Array:
        """Lead of the second label, (n,), for two classes; minus the loss of every label, (n, K), for more."""
        losses = self._losses(X)
        votes = agreeing(-losses, losses)
        return np.asarray(votes[:, 1] - votes[:, 0]) if votes.shape[1] == 2 else votes

    def __setstate__(self, state: dict[str, Any]) -> None:
        # joblib can load arrays that may only be read; a model learns in place.
        super().__setstate__(state | {"model_": deepcopy(state["model_"])} if "model_" in state else state)

    def __sklearn_tags__(self) -> Tags:
        tags = super().__sklearn_tags__()
        tags.input_tags.allow_nan = True
        tags.input_tags.sparse = True
        return tags

    @property
    def _who(self) -> str:
        return type(self).__name__

    def _rows(self, X: Any) -> Any:
        """Rows that the fitted model takes."""
        check_is_fitted(self)
        return validate_data(self, X, reset=False, **_CHECKS)

    def _losses(self, X: Any) -> Array:
        rows = self._rows(X)
        return self.model_.decide(rows)

    def _chances(self, losses: Array, means: Array | None = None) -> Array:
        """Probabilities from losses, by the calibration as it is or as it was at each row."""
        probabilities = self._probabilities(self.model_, losses)
        if self.calibrated:
            probabilities = self.calibration_.calibrated(probabilities, losses, means)
        return agreeing(probabilities, losses)

    def _checked(self, X: Any, y: ArrayLike, *, reset: bool) -> tuple[Any, NDArray[Any]]:
        rows, labels = validate_data(self, X, y, reset=reset, **_CHECKS)
        return rows, labels

    def _encoded(self, classes: NDArray[Any], y: NDArray[Any]) -> Labels:
        unknown = ~np.isin(y, classes)
        if np.any(unknown):
            raise ValueError(
                f"{self._who}: y must hold the classes {classes.tolist()} only, got {y[unknown].tolist()[0]!r}. "
                "Give all the labels that can come as classes in the first call of partial_fit."
            )
        return np.searchsorted(classes, y)

    def _started(self, classes: NDArray[Any]) -> M:
        if len(classes) < 2:
            raise ValueError(f"{self._who}: y must hold at least two classes, got one class, {classes.tolist()}.")
        model = self._model(classes)
        seed = self.random_state
        if not isinstance(seed, (int, np.integer, np.random.Generator)):
            seed = check_random_state(seed).randint(np.iinfo(np.int32).max)
        return model.start(self.n_features_in_, len(classes), np.random.default_rng(seed))

    def _go_on(
        self, method: str, X: Any, y: ArrayLike, classes: ArrayLike | None, sample_weight: ArrayLike | None
    ) -> tuple[Array, Array | None]:
        """Learn further rows, as ``_learn`` does."""
        first = not hasattr(self, "classes_")
        if first and classes is None:
            raise ValueError(
                f"{self._who}.{method}: classes must be passed on the first call to {method}, got None. "
                "Give all the labels that can come."
            )
        if not first and classes is not None and not np.array_equal(np.unique(np.asarray(classes)), self.classes_):
            raise ValueError(
                f"{self._who}.{method}: classes must be those of the first call, {self.classes_.tolist()}, "
                f"got {np.unique(np.asarray(classes)).tolist()}. Leave them out after the first call."
            )
        rows, labels = self._checked(X, y, reset=first)
        if not first:
            return self._learn(self.classes_, self.model_, self.calibration_, rows, labels, sample_weight)
        known = np.unique(np.asarray(classes))
        return self._learn(known, self._started(known), Calibration.start(), rows, labels, sample_weight)

    def _learn(
        self,
        classes: NDArray[Any],
        model: M,
        calibration: Calibration,
        rows: Any,
        y: NDArray[Any],
        sample_weight: ArrayLike | None,
    ) -> tuple[Array, Array | None]:
        """Losses (n, K) of every row before it was learned, and the calibration (n, 2) then, if there is one."""
        labels = self._encoded(classes, y)
        w = _checks.weights(self._who, sample_weight, len(labels))
        losses = model.decide_then_learn(rows, labels, w)
        means = None
        if self.calibrated:
            means = calibration.learn(self._probabilities(model, losses), losses, labels, w, self._forgetting)
        self.classes_, self.model_, self.calibration_ = classes, model, calibration
        return losses, means


_CHECKS: dict[str, Any] = {"accept_sparse": "csr", "dtype": np.float64, "ensure_all_finite": "allow-nan"}
