from bayesvote.core.checks import Array, Labels
from bayesvote.core.rows import Rows
from bayesvote.members.naive_bayes import NaiveBayesState

def start(state: NaiveBayesState, rows: float, out: Array) -> None: ...
def run(
    rows: Rows,
    y: Labels,
    weight: Array,
    state: NaiveBayesState,
    smoothing: float,
    first: int,
    last: int,
    out: Array,
    per_value: Array,
) -> None: ...
