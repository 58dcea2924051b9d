import numpy as np
from numpy.typing import NDArray

from bayesvote.core.checks import Array, Labels
from bayesvote.core.rows import Rows
from bayesvote.members.ferns import FernState

GROUP: int

def cuts(ordered: Array, found: Array, n_found: Labels) -> None: ...
def choose(
    values: Array,
    y: Labels,
    w: Array,
    found: Array,
    n_found: Labels,
    state: FernState,
    features: NDArray[np.int32],
    first: int,
    last: int,
) -> None: ...
def answer(
    rows: Rows,
    y: Labels,
    w: Array,
    state: FernState,
    smoothing: float,
    begin: int,
    end: int,
    first: int,
    last: int,
    out: Array,
) -> None: ...
