import numpy as np
from numpy.typing import NDArray

from bayesvote.core.checks import Array
from bayesvote.core.rows import Rows
from bayesvote.core.scales import Centred, Scales

def standardise(rows: Rows, weight: Array, state: Scales, out: Array) -> None: ...
def standardise_sparse(
    rows: Rows, weight: Array, state: Scales, centred: Centred
) -> tuple[Array, NDArray[np.int32], NDArray[np.int64], Centred]: ...
def centred_features(state: Scales) -> Centred: ...
