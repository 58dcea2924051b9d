from bayesvote.core.checks import Array, Labels

def first_bad_loss(g: Array, needs_log: bool) -> int: ...
def add(total: Array, carry: Array, x: Array, w: float) -> None: ...
def accumulate(total: Array, carry: Array, statistics: Array, w: Array, forgetting: float) -> None: ...
def dots(weights: Array, G: Array, out: Array) -> None: ...
def rate_rows(
    total: Array,
    carry: Array,
    loss: int,
    scores: Array,
    G: Array,
    y: Labels,
    w: Array,
    alpha: float,
    beta: float,
    theta: float,
    forgetting: float,
    out: Array,
) -> None: ...
