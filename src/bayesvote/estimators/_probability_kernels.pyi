from bayesvote.core.checks import Array, Labels

def learn(
    mean: Array,
    information: Array,
    logs: Array,
    decisions: Labels,
    y: Labels,
    w: Array,
    forgetting: float,
    prior: float,
    before: Array,
) -> None: ...
