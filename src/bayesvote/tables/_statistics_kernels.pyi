import numpy as np
from numpy.typing import NDArray

from bayesvote.core.checks import Array, Labels

def ordered(
    slots: NDArray[np.int64],
    y: Labels,
    learn: NDArray[np.uint8],
    counts: Array,
    totals: Array,
    rare: NDArray[np.uint8],
    own_first: int,
    smoothing: float,
    out: Array,
    flags: NDArray[np.uint8],
) -> None: ...
