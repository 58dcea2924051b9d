"""scikit-learn's fitted attributes, read from the fitted record."""

from typing import Any, Generic

from numpy.typing import NDArray
from sklearn.exceptions import NotFittedError
from sklearn.utils.validation import check_is_fitted

from bayesvote.core.checks import Array
from bayesvote.estimators._calibration import Calibration
from bayesvote.estimators.fitted import Fitted, M
from bayesvote.tables import Columns


class FittedAttributes(Generic[M]):
    """The fitted attributes of a classifier. They are read-only, and exist once it is fitted."""

    fitted_: Fitted[M]  # replaced as a whole

    def _known(self) -> Fitted[M] | None:
        """Return the fitted record, or None before the first row."""
        return self.__dict__.get("fitted_")

    def _require_fitted(self) -> Fitted[M]:
        fitted = self._known()
        if fitted is None:
            check_is_fitted(self)  # raises scikit-learn's NotFittedError
        return self.fitted_

    def _attribute(self, name: str) -> Fitted[M]:
        fitted = self._known()
        if fitted is None:
            # An AttributeError, too, so that hasattr works.
            raise NotFittedError(
                f"This {type(self).__name__} instance has no {name} yet. Call 'fit' or 'partial_fit' first."
            )
        return fitted

    @property
    def model_(self) -> M:
        """The model."""
        return self._attribute("model_").model

    @property
    def classes_(self) -> NDArray[Any]:
        """The labels, sorted."""
        return self._attribute("classes_").classes

    @property
    def n_features_in_(self) -> int:
        """Number of columns of X."""
        return self._attribute("n_features_in_").n_features

    @property
    def feature_names_in_(self) -> NDArray[Any]:
        """Names of the columns of X, if it had names."""
        names = self._attribute("feature_names_in_").names
        if names is None:
            raise AttributeError(f"{type(self).__name__} has no feature_names_in_, as X had no column names.")
        return names

    @property
    def calibration_(self) -> Calibration:
        """The calibration of the probabilities."""
        return self._attribute("calibration_").calibration

    @property
    def class_counts_(self) -> Array:
        """Sums of the weights of the rows of each class, counted if ``class_weight="balanced"``."""
        return self._attribute("class_counts_").class_counts

    @property
    def columns_(self) -> Columns:
        """The encoding of the columns of a table, if X had more than numbers."""
        columns = self._attribute("columns_").columns
        if columns is None:
            raise AttributeError(f"{type(self).__name__} has no columns_, as X held numbers only.")
        return columns
