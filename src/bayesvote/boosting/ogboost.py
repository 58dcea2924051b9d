"""OGBoost: online GradientBoost of Leistner and others."""

from dataclasses import dataclass

import numpy as np

from bayesvote.boosting._booster import Booster
from bayesvote.boosting._state import GRADIENT, Rule
from bayesvote.core.checks import Array, integer
from bayesvote.losses import LossScale


@dataclass
class OGBoost(Booster):
    r"""Online GradientBoost with the logistic loss (Leistner et al. 2009).

    Selectors stand in a row, each with a pool of members. From :math:`F_0 = 0`, selector n teaches its members the
    sample with the weight

    .. math:: w_n = 1 / (1 + \exp(y F_{n-1})),

    adds :math:`w_n` to the errors of those that are still wrong, selects its member of least error, the first of
    equals, and adds that member's vote: :math:`F_n = F_{n-1} + h_n(x)`. The decision is the sign of the last F.
    Votes are in [-1, 1]: 2 P(y = 1 | x) - 1 for naive Bayes, the score cut off there for a Perceptron. A sample
    weight multiplies :math:`w_n`. The state's record holds the errors.

    Parameters
    ----------
    member : {"perceptron", "naive_bayes"}
        The kind of the members.
    n_members : int
        How many selectors there are.
    pool : int
        Members per selector; 1 for naive Bayes, whose members would be equal for ever.
    """

    loss_scale = LossScale.LOG_ODDS

    pool: int = 1

    @property
    def total_members(self) -> int:
        """How many members there are in all pools."""
        return self.n_members * self.pool

    def _rule(self) -> Rule:
        integer("OGBoost", "pool", self.pool)
        if self.pool > 1 and self.member == "naive_bayes":
            raise ValueError(
                f"OGBoost: pool must be 1 with naive Bayes members, which start equal and learn the same, "
                f"got {self.pool}. Raise n_members instead."
            )
        return Rule(GRADIENT, pool=self.pool)

    def _record(self, n_boosters: int) -> Array:
        return np.zeros((n_boosters, 1, self.total_members))
