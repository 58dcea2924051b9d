import numpy as np
from numpy.typing import NDArray

from bayesvote.core.checks import Array, Labels
from bayesvote.core.rows import Rows

def run(
    rows: Rows,
    y: Labels,
    w: Array,
    features: NDArray[np.uint32],
    means: Array,
    covariances: Array,
    first: int,
    last: int,
    out: Array,
) -> None: ...
