"""OGBoost: online GradientBoost (Leistner et al. 2009)."""

from dataclasses import dataclass

import numpy as np

from bayesvote.boosting._booster import Booster
from bayesvote.boosting._state import GRADIENT, Rule
from bayesvote.core.checks import Array, InputError, integer
from bayesvote.losses import LossScale


@dataclass
class OGBoost(Booster):
    r"""Online GradientBoost with the logistic loss (Leistner et al. 2009).

    There is a sequence of selectors, each with a pool of members. Beginning with :math:`F_0 = 0`, the members of
    selector n learn the sample with the weight

    .. math:: w_n = 1 / (1 + \exp(y F_{n-1})).

    The selector adds :math:`w_n` to the errors of the members that are still wrong. Then it selects the member of
    least error (the first one in a tie), and adds its vote: :math:`F_n = F_{n-1} + h_n(x)`. The decision is the sign
    of the last F. Votes are in [-1, 1]: 2 P(y = 1 | x) - 1 for naive Bayes, the clipped score for a Perceptron. The
    sample weight multiplies :math:`w_n`. The state's record holds the errors.

    Parameters
    ----------
    member : {"perceptron", "naive_bayes"}
        The kind of the members.
    n_members : int
        Number of selectors.
    pool : int
        Members per selector; must be 1 for naive Bayes, whose members would always be equal.
    """

    loss_scale = LossScale.LOG_ODDS

    pool: int = 1

    @property
    def total_members(self) -> int:
        """Number of members in all pools."""
        return self.n_members * self.pool

    def _rule(self) -> Rule:
        integer("OGBoost", "pool", self.pool)
        if self.pool > 1 and self.member == "naive_bayes":
            must = "must be 1 with naive Bayes members, which start equal and learn the same"
            raise InputError("OGBoost", "pool", must, str(self.pool), "Increase n_members instead.")
        return Rule(GRADIENT, pool=self.pool)

    def _record(self, n_boosters: int) -> Array:
        return np.zeros((n_boosters, 1, self.total_members))
