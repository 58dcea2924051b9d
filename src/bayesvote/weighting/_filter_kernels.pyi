from bayesvote.core.checks import Array, Labels
from bayesvote.weighting.drifting import FilterState
from bayesvote.weighting.joint_logistic import JointLogisticState

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
    state: JointLogisticState,
    out: Array,
    log_likelihoods: Array | None = None,
    least: float = ...,
    n_near: int = 0,
    only_near: bool = False,
    G_now: Array | None = None,
) -> None: ...
