from bayesvote.core.checks import Array, Labels

def threshold_rows(
    losses: Array,
    y: Labels,
    w: Array,
    decisions: Array,
    logs: Array,
    counts: Array,
    mistakes: Array,
    fades: Array,
) -> None: ...
