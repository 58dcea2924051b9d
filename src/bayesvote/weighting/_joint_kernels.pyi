from bayesvote.core.checks import Array
from bayesvote.weighting.joint_gaussian import JointState

TOO_LITTLE_EVIDENCE: float

def add_losses(truth: Array, w: Array, recent: Array) -> None: ...
def margin_losses(weights: Array, G: Array, out: Array) -> None: ...
def mix(evidence: Array, means: Array, out: Array) -> None: ...
def solve(value: Array, theta: float, precisions: Array, covariances: Array, means: Array, evidence: Array) -> None: ...
def stream(
    G: Array,
    truth: Array,
    w: Array,
    theta: float,
    forgetting: float,
    precisions: Array,
    state: JointState,
    out: Array,
) -> None: ...
