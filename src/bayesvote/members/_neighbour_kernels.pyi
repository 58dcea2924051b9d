import numpy as np
from numpy.typing import NDArray

from bayesvote.core.checks import Array, Labels
from bayesvote.core.rows import Rows

def keep(
    rows: Rows,
    y: Labels,
    w: Array,
    first: int,
    last: int,
    features: NDArray[np.uint32],
    columns: NDArray[np.float32],
    weights: Array,
    count: NDArray[np.int64],
    before: NDArray[np.int64],
) -> None: ...
def score(
    rows: Rows,
    before: NDArray[np.int64],
    first: int,
    last: int,
    features: NDArray[np.uint32],
    columns: NDArray[np.float32],
    weights: Array,
    windows: NDArray[np.int64],
    neighbours: int,
    out: Array,
) -> None: ...
