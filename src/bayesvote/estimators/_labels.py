"""Labels as users give them."""

from typing import Any

import numpy as np
from sklearn.exceptions import DataConversionWarning

from bayesvote._warn import warn


def one_column(y: Any) -> Any:
    """Return labels that form a single column as a plain array, with scikit-learn's warning at the user's line."""
    column = np.asarray(y)
    if column.ndim != 2 or column.shape[1] != 1:
        return y
    message = "A column-vector y was passed when a 1d array was expected. Pass y.ravel(), of shape (n_samples,)."
    warn(message, DataConversionWarning)
    return column.ravel()
