# The little of scikit-learn's data sets that this project uses; scikit-learn ships no types.
from typing import IO

import numpy as np
from numpy.typing import NDArray
from scipy.sparse import csr_matrix

def load_breast_cancer(*, return_X_y: bool) -> tuple[NDArray[np.float64], NDArray[np.intp]]: ...
def load_digits(*, return_X_y: bool) -> tuple[NDArray[np.float64], NDArray[np.intp]]: ...
def load_svmlight_file(
    f: str | IO[bytes], *, n_features: int | None = None
) -> tuple[csr_matrix[np.float64], NDArray[np.float64]]: ...
