import numpy as np
from numpy.typing import NDArray

from bayesvote.core.checks import Array
from bayesvote.core.rows import Rows
from bayesvote.members.wrappers.compact import SeenColumns

def renumber(
    rows: Rows, weight: Array, state: SeenColumns, limit: int, first: int
) -> tuple[Array, NDArray[np.int32], NDArray[np.int32], NDArray[np.int64], int, int]: ...
