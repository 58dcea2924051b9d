"""OSBoost: online SmoothBoost (Chen, Lin and Lu 2012), with its two ways to weight the members."""

from dataclasses import dataclass

import numpy as np

from bayesvote.boosting._booster import Booster
from bayesvote.boosting._state import SMOOTH, SMOOTH_CONVEX, SMOOTH_EXPERT, BoosterState, Rule
from bayesvote.core.checks import Array, InputError, one_of, positive
from bayesvote.core.state import require
from bayesvote.losses import LossScale

_VARIANTS = {"uniform": SMOOTH, "expert": SMOOTH_EXPERT, "convex": SMOOTH_CONVEX}


@dataclass
class OSBoost(Booster):
    r"""Online SmoothBoost (Chen, Lin and Lu 2012).

    Let :math:`h_i(x) \in [-1, 1]` be the members' scores before they learn the sample: 2 P(y = 1 | x) - 1 for naive
    Bayes, the clipped score for a Perceptron. Beginning with :math:`z_0 = 0`, member i learns the sample with the
    weight :math:`w_i`, times the sample weight:

    .. math:: \theta = \gamma / (2 + \gamma), \quad z_i = z_{i-1} + y h_i(x) - \theta, \quad
              w_1 = 1, \quad w_{i+1} = \min((1 - \gamma)^{z_i / 2}, 1).

    Perceptrons that start equal would stay equal, since they move on mistakes only, and all :math:`w_i` are 1 there.
    Hence they start at random. The vote, with sample weight v, is one of these:

    - ``"uniform"`` (OSBoost): :math:`F = \sum_i h_i(x) / m`.
    - ``"expert"`` (OSBoost.EW): expert i predicts the sign :math:`s_i` of the sum of the first i members' scores, and
      :math:`F = \sum_i p_i s_i / \sum_i p_i`. After a mistake of an expert, :math:`p_i \leftarrow p_i 2^{-v}`. The
      paper draws one expert with the probabilities p; here the experts vote with the weights p. The record holds
      :math:`-\log_2 p_i`, the weight of each expert's mistakes.
    - ``"convex"`` (OSBoost.OCP): :math:`F = \sum_i \alpha_i h_i(x)` with :math:`\alpha` in the probability simplex,
      initially 1/m. On the t-th sample, if :math:`y F < \theta`, it takes a gradient step on the loss
      :math:`\max(0, \theta - y F)`. The result is projected to the simplex (Zinkevich 2003).
      :math:`\alpha \leftarrow \Pi(\alpha + v t^{-1/2} y h(x))`. The record holds :math:`\alpha`.

    Parameters
    ----------
    member, n_members
        Kind and number of the members: "perceptron" or "naive_bayes".
    gamma : float
        The edge that members are assumed to have, in (0, 1).
    variant : {"uniform", "expert", "convex"}
        How the members' votes are weighted.
    """

    loss_scale = LossScale.MARGIN

    gamma: float = 0.1
    variant: str = "uniform"

    def validate(self, state: BoosterState) -> None:
        """Raise an error also for weights outside the simplex."""
        super().validate(state)
        if self.variant == "convex":
            # Every projection restores the sum, so rounding does not accumulate and stays far below 1e-6.
            require(bool(np.all(np.abs(state.record.sum(axis=2) - 1) < 1e-6)), "record must sum to 1")

    def _rule(self) -> Rule:
        one_of("OSBoost", "variant", self.variant, _VARIANTS)
        positive("OSBoost", "gamma", self.gamma)
        if self.gamma >= 1:
            raise InputError("OSBoost", "gamma", "must be below 1", repr(self.gamma))
        return Rule(_VARIANTS[self.variant], gamma=float(self.gamma))

    def _record(self, n_boosters: int) -> Array:
        start = 1.0 / self.n_members if self.variant == "convex" else 0.0
        return np.full((n_boosters, 1, self.n_members), start)
