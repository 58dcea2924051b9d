# The checks of scikit-learn that this project uses; scikit-learn ships no types.
from typing import Any

def check_is_fitted(estimator: object) -> None: ...

# Rows, or rows and labels, as arrays or CSR: what comes back depends on what is given.
def validate_data(estimator: object, /, X: Any, y: Any = ..., reset: bool = True, **check_params: Any) -> Any: ...
