"""OzaBoost: online AdaBoost of Oza and Russell."""

from dataclasses import dataclass

import numpy as np

from bayesvote.boosting._booster import Booster
from bayesvote.boosting._state import OZA, BoosterState, Rule
from bayesvote.core.checks import Array
from bayesvote.losses import LossScale


@dataclass
class OzaBoost(Booster):
    r"""Online AdaBoost (Oza and Russell 2001).

    A sample comes with :math:`\lambda` = its weight. Each member in turn learns it
    :math:`k \sim \mathrm{Poisson}(\lambda)` times; then, k = 0 or not, its label by the member as it is now
    is checked. If it is right,

    .. math:: \lambda^{sc} \leftarrow \lambda^{sc} + \lambda, \quad \lambda \leftarrow \lambda N / (2 \lambda^{sc}),

    otherwise the same with :math:`\lambda^{sw}`; N is the sum of the weights of the samples so far. With
    :math:`e = \lambda^{sw} / (\lambda^{sc} + \lambda^{sw})` the member votes with :math:`\log((1 - e) / e)`, so
    against itself if e > 1/2; e is kept within [1e-10, 1 - 1e-10]. The two rows of the state's record are
    :math:`\lambda^{sc}` and :math:`\lambda^{sw}`.

    Parameters
    ----------
    member, n_members
        Kind and number of the members: "perceptron" or "naive_bayes".

    Examples
    --------
    >>> import numpy as np
    >>> X = np.random.default_rng(0).normal(size=(1000, 5))
    >>> y = X[:, 0] > X[:, 1]
    >>> losses = OzaBoost(n_members=10).start(5, rng=0).decide_then_learn(X, y)
    >>> bool(np.mean((losses[:, 1] <= losses[:, 0]) != y) < 0.1)
    True
    """

    loss_scale = LossScale.LOG_ODDS

    def most_record(self, rows: Array, seen: Array) -> Array:
        """A row counts by its weight or, as it is part of what it is divided by, by half of all weight at most."""
        return rows * seen

    def most_learned(self, state: BoosterState) -> Array:
        """Poisson draws are far less than ten times their mean, or 80 where that is small."""
        return np.asarray(10 * state.record.sum(axis=1) + 80.0 * state.clock[:, 1:])

    def _rule(self) -> Rule:
        return Rule(OZA)

    def _record(self, n_boosters: int) -> Array:
        return np.zeros((n_boosters, 2, self.n_members))
