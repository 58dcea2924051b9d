import numpy as np
from numpy.typing import NDArray

from bayesvote.core.checks import Array

BLANK: int
GOOD: int
NO_LABEL: int
NOT_A_PAIR: int
ZERO: int
TOO_WIDE: int
UNSORTED: int

def parse(
    text: NDArray[np.uint8],
    width: int,
    codes: NDArray[np.int8],
    spans: NDArray[np.int64],
    starts: NDArray[np.int64],
    columns: NDArray[np.int32],
    values: Array,
    odd: NDArray[np.int64],
) -> int: ...
