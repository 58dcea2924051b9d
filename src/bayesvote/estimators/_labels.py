"""Checks of labels."""

from typing import Any

import numpy as np
from numpy.typing import NDArray
from sklearn.exceptions import DataConversionWarning
from sklearn.utils.multiclass import check_classification_targets

from bayesvote.core.warn import warn


def one_column(y: Any) -> Any:
    """Return a column of labels as a 1d array, with scikit-learn's warning at the user's line."""
    column = np.asarray(y)
    if column.ndim != 2 or column.shape[1] != 1:
        return y
    message = "A column-vector y was passed when a 1d array was expected. Pass y.ravel(), of shape (n_samples,)."
    warn(message, DataConversionWarning)
    return column.ravel()


def check_targets(labels: NDArray[Any]) -> None:
    """Reject continuous targets as scikit-learn does, and accept integers in arrays of objects."""
    if labels.dtype.kind == "O" and any(type(label) is int for label in labels.tolist()):
        labels = np.array([label for label in labels.tolist() if isinstance(label, float)], dtype=np.float64)
    if len(labels):
        check_classification_targets(labels)
