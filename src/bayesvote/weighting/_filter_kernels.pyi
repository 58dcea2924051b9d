from bayesvote._checks import Array, Labels
from bayesvote.weighting.gaussian import FilterState

def squared_stream(
    G: Array,
    truth: Array,
    w: Array,
    theta: float,
    discount: float,
    precisions: Array,
    persistence: Array,
    state: FilterState,
    out: Array,
) -> None: ...
def logistic_stream(
    G: Array,
    y: Labels,
    w: Array,
    prior_mean: float,
    discount: float,
    precisions: Array,
    persistence: Array,
    state: FilterState,
    out: Array,
) -> None: ...
