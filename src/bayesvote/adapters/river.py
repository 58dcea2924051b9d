"""The models as river classifiers.

Rows are dictionaries, so features go by name. A name that a row lacks counts as 0, as in river's linear models and
its bags of words; a value of None or NaN is missing, and the members that use it abstain. A name that was not known
before is taken up by the first row that is learned with it, without forgetting anything: it is as if it had been 0.

Labels may be anything hashable. The model needs to know how many there are: a third or later label that was not
known before starts it anew with one more class, and it learns its last 1,000 rows again. Name the labels in
``classes`` where they are known, and this does not happen.
"""

from collections.abc import Hashable, Sequence
from typing import Any

from bayesvote import estimators
from bayesvote.adapters._river_base import Online
from bayesvote.estimators.base import OnlineClassifier
from bayesvote.losses import Loss
from bayesvote.members import Bank
from bayesvote.weighting import Weighter

__all__ = ["BayesianEnsembleClassifier", "OGBoostClassifier", "OSBoostClassifier", "OzaBoostClassifier"]


class BayesianEnsembleClassifier(Online):
    """Members of any kind, voting with Bayesian weights, learned online.

    The paper's algorithm is ``members="perceptron"`` or ``"naive_bayes"`` with ``weighter="gamma_rate"``.

    Parameters
    ----------
    members
        "mixed", "perceptron", "averaged_perceptron", "naive_bayes" or "fern"; a bank of :mod:`bayesvote.members`; or a
        list of classifiers of river and scikit-learn, of which copies learn, and fitted ones of scikit-learn are used
        as they are. One can be paired with the columns it sees, numbers of the names in the order of ``feature_names``.
    n_members
        How many members, if named.
    max_features
        How many features each named member sees: a fraction, a count, None for all, or "auto".
    loss
        The loss of a member, a name of :mod:`bayesvote.losses` or a function of the margin.
    weighter
        "joint_gaussian", "gamma_rate", ..., or a weighter of :mod:`bayesvote.weighting`.
    forgetting
        Factor by which the past of the weights fades with each row; 1 keeps all of it.
    classes
        The labels, if they are known from the start.
    seed
        For the members' random choices.

    Attributes
    ----------
    model : Ensemble
        What learns, with ``weights()``, ``certainty`` and ``contributions``; None before the first row.
    feature_names, labels : list
        The names of the model's columns, and the labels of its class indices.

    Examples
    --------
    >>> from river import datasets, evaluate, metrics, preprocessing
    >>> model = preprocessing.StandardScaler() | BayesianEnsembleClassifier(seed=1)
    >>> evaluate.progressive_val_score(datasets.Phishing(), model, metrics.Accuracy()).get() > 0.88
    True
    """

    def __init__(
        self,
        members: str | Bank | Sequence[Any] = "mixed",
        n_members: int = 100,
        max_features: str | float | int | None = "auto",
        loss: str | Loss = "ramp",
        weighter: str | Weighter[Any] = "joint_gaussian",
        forgetting: float = 1.0,
        classes: Sequence[Hashable] | None = None,
        seed: int | None = None,
    ) -> None:
        self.members = members
        self.n_members = n_members
        self.max_features = max_features
        self.loss = loss
        self.weighter = weighter
        self.forgetting = forgetting
        super().__init__(classes, seed)

    def _shell(self) -> OnlineClassifier[Any]:
        return estimators.BayesianEnsembleClassifier(
            self.members,
            self.n_members,
            max_features=self.max_features,
            loss=self.loss,
            weighter=self.weighter,
            forgetting=self.forgetting,
        )


class OzaBoostClassifier(Online):
    """OzaBoost, online AdaBoost; see :class:`bayesvote.OzaBoost`.

    Parameters
    ----------
    member
        "perceptron" or "naive_bayes".
    n_members
        How many members.
    classes
        The labels, if they are known from the start.
    seed
        For the random start and draws.
    """

    def __init__(
        self,
        member: str = "perceptron",
        n_members: int = 100,
        classes: Sequence[Hashable] | None = None,
        seed: int | None = None,
    ) -> None:
        self.member = member
        self.n_members = n_members
        super().__init__(classes, seed)

    def _shell(self) -> OnlineClassifier[Any]:
        return estimators.OzaBoostClassifier(self.member, self.n_members)


class OGBoostClassifier(Online):
    """OGBoost, online GradientBoost; see :class:`bayesvote.OGBoost`.

    Parameters
    ----------
    member
        "perceptron" or "naive_bayes".
    n_members
        How many selectors.
    pool
        Members per selector; 1 for naive Bayes.
    classes
        The labels, if they are known from the start.
    seed
        For the random start.
    """

    def __init__(
        self,
        member: str = "perceptron",
        n_members: int = 100,
        pool: int = 1,
        classes: Sequence[Hashable] | None = None,
        seed: int | None = None,
    ) -> None:
        self.member = member
        self.n_members = n_members
        self.pool = pool
        super().__init__(classes, seed)

    def _shell(self) -> OnlineClassifier[Any]:
        return estimators.OGBoostClassifier(self.member, self.n_members, pool=self.pool)


class OSBoostClassifier(Online):
    """OSBoost, online SmoothBoost; see :class:`bayesvote.OSBoost`.

    Parameters
    ----------
    member
        "perceptron" or "naive_bayes".
    n_members
        How many members.
    gamma
        The edge that the members are supposed to have, in (0, 1).
    variant
        "uniform", "expert" or "convex": how the members' votes are weighed.
    classes
        The labels, if they are known from the start.
    seed
        For the random start.
    """

    def __init__(
        self,
        member: str = "perceptron",
        n_members: int = 100,
        gamma: float = 0.1,
        variant: str = "uniform",
        classes: Sequence[Hashable] | None = None,
        seed: int | None = None,
    ) -> None:
        self.member = member
        self.n_members = n_members
        self.gamma = gamma
        self.variant = variant
        super().__init__(classes, seed)

    def _shell(self) -> OnlineClassifier[Any]:
        return estimators.OSBoostClassifier(self.member, self.n_members, gamma=self.gamma, variant=self.variant)
