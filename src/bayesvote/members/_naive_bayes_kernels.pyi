from bayesvote.core.checks import Array, Labels
from bayesvote.members.naive_bayes import NaiveBayesState

def weigh(
    X: Array,
    y: Labels,
    weight: Array,
    state: NaiveBayesState,
    rows: float,
    extra: float,
    lo: int,
    hi: int,
    prior: Array,
    out: Array,
) -> None: ...
def add_up(prior: Array, ratio: Array, state: NaiveBayesState, start: int, last: int, out: Array) -> None: ...
def centre(ratios: Array, out: Array) -> None: ...
