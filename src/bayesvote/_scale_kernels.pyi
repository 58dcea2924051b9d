import numpy as np
from numpy.typing import NDArray

from bayesvote._checks import Array
from bayesvote._input import Rows
from bayesvote._scales import Scales

def standardise(rows: Rows, weight: Array, state: Scales, out: Array) -> None: ...
def standardise_sparse(
    rows: Rows, weight: Array, state: Scales
) -> tuple[Array, NDArray[np.int32], NDArray[np.int64]]: ...
