import numpy as np
from numpy.typing import NDArray

from bayesvote._checks import Array, Labels
from bayesvote._input import Rows

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
