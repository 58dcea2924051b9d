import numpy as np
from numpy.typing import NDArray

from bayesvote.core.checks import Array, Labels
from bayesvote.core.rows import Rows
from bayesvote.members.linear import LinearState
from bayesvote.members.perceptron import PerceptronState

State = LinearState | PerceptronState

BLOCK: int

def compress(X: Array, values: Array, columns: NDArray[np.int32], starts: NDArray[np.int64]) -> None: ...
def run(
    rows: Rows,
    values: Array,
    y: Labels,
    weight: Array,
    state: State,
    limits: Array,
    squared: bool,
    top: int,
    end: int,
    out: Array,
) -> None: ...
def run_some(
    rows: Rows,
    values: Array,
    y: Labels,
    weight: Array,
    state: State,
    limits: Array,
    squared: bool,
    lo: int,
    hi: int,
    out: Array,
) -> None: ...
def score_dense(values: Array, state: State, first: int, last: int, out: Array) -> None: ...
