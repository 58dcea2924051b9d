"""OzaBoost: online AdaBoost (Oza and Russell 2001)."""

from dataclasses import dataclass

import numpy as np

from bayesvote.boosting._booster import Booster
from bayesvote.boosting._state import OZA, BoosterState, Rule
from bayesvote.core.checks import Array
from bayesvote.losses import LossScale


@dataclass
class OzaBoost(Booster):
    r"""Online AdaBoost (Oza and Russell 2001).

    Initially :math:`\lambda` is the sample weight. Each member in turn learns the sample
    :math:`k \sim \mathrm{Poisson}(\lambda)` times. Then its prediction is checked, also if k = 0. If the prediction is
    right,

    .. math:: \lambda^{sc} \leftarrow \lambda^{sc} + \lambda, \quad \lambda \leftarrow \lambda N / (2 \lambda^{sc}),

    otherwise the same with :math:`\lambda^{sw}`, where N is the sum of the sample weights so far. With
    :math:`e = \lambda^{sw} / (\lambda^{sc} + \lambda^{sw})`, the member votes with :math:`\log((1 - e) / e)`. This
    reverses its vote if e > 1/2. To keep votes finite, e is clipped to [1e-10, 1 - 1e-10]. The two rows of the state's
    record are :math:`\lambda^{sc}` and :math:`\lambda^{sw}`.

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
        """Bound a row's contribution by its weight, or by half of all weight: it is part of its own divisor."""
        return rows * seen

    def most_learned(self, state: BoosterState) -> Array:
        """Bound a Poisson draw by 80 plus ten times its mean, which it exceeds with a probability below 1e-100."""
        return np.asarray(10 * state.record.sum(axis=1) + 80.0 * state.clock[:, 1:])

    def _rule(self) -> Rule:
        return Rule(OZA)

    def _record(self, n_boosters: int) -> Array:
        return np.zeros((n_boosters, 2, self.n_members))
