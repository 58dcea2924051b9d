"""The online boosters as scikit-learn classifiers."""

from typing import Any

from numpy.typing import NDArray

from bayesvote._checks import Array
from bayesvote.boosting import OGBoost, OSBoost, OzaBoost
from bayesvote.estimators._probabilities import from_votes, shares
from bayesvote.estimators.base import OnlineClassifier


class OzaBoostClassifier(OnlineClassifier[OzaBoost]):
    """Online AdaBoost (Oza and Russell 2001) as a scikit-learn classifier; see :class:`bayesvote.OzaBoost`.

    Probabilities are the logistic function of the vote.

    Parameters
    ----------
    member : {"perceptron", "naive_bayes"}
        The kind of the members.
    n_members : int
        How many there are.
    calibrated : bool
        Whether probabilities are calibrated as the stream goes on.
    random_state : int, Generator, RandomState or None
        The randomness: the Perceptrons' start and how often a member learns a row.

    Examples
    --------
    >>> from sklearn.datasets import load_breast_cancer
    >>> from sklearn.preprocessing import minmax_scale
    >>> X, y = load_breast_cancer(return_X_y=True)
    >>> model = OzaBoostClassifier(random_state=0).fit(minmax_scale(X), y)
    >>> model.score(minmax_scale(X), y) > 0.9
    True
    """

    def __init__(
        self, member: str = "perceptron", n_members: int = 100, *, calibrated: bool = False, random_state: Any = None
    ) -> None:
        self.member = member
        self.n_members = n_members
        self.calibrated = calibrated
        self.random_state = random_state

    def _model(self, classes: NDArray[Any]) -> OzaBoost:  # noqa: ARG002
        return OzaBoost(self.member, self.n_members)

    def _probabilities(self, model: OzaBoost, losses: Array) -> Array:  # noqa: ARG002
        return from_votes(losses)


class OGBoostClassifier(OnlineClassifier[OGBoost]):
    """Online GradientBoost (Leistner et al. 2009) as a scikit-learn classifier; see :class:`bayesvote.OGBoost`.

    Probabilities are the logistic function of the vote.

    Parameters
    ----------
    member : {"perceptron", "naive_bayes"}
        The kind of the members.
    n_members : int
        How many selectors there are.
    pool : int
        Members per selector; 1 for naive Bayes.
    calibrated : bool
        Whether probabilities are calibrated as the stream goes on.
    random_state : int, Generator, RandomState or None
        The randomness of the Perceptrons' start.
    """

    def __init__(
        self,
        member: str = "perceptron",
        n_members: int = 100,
        *,
        pool: int = 1,
        calibrated: bool = False,
        random_state: Any = None,
    ) -> None:
        self.member = member
        self.n_members = n_members
        self.pool = pool
        self.calibrated = calibrated
        self.random_state = random_state

    def _model(self, classes: NDArray[Any]) -> OGBoost:  # noqa: ARG002
        return OGBoost(self.member, self.n_members, self.pool)

    def _probabilities(self, model: OGBoost, losses: Array) -> Array:  # noqa: ARG002
        return from_votes(losses)


class OSBoostClassifier(OnlineClassifier[OSBoost]):
    """Online SmoothBoost (Chen, Lin and Lu 2012) as a scikit-learn classifier; see :class:`bayesvote.OSBoost`.

    A label's probability is in proportion to (1 + F)/2, F being its vote in [-1, 1].

    Parameters
    ----------
    member : {"perceptron", "naive_bayes"}
        The kind of the members.
    n_members : int
        How many there are.
    gamma : float
        The edge that the members are supposed to have, in (0, 1).
    variant : {"uniform", "expert", "convex"}
        How the members' votes are weighed.
    calibrated : bool
        Whether probabilities are calibrated as the stream goes on.
    random_state : int, Generator, RandomState or None
        The randomness of the Perceptrons' start.
    """

    def __init__(
        self,
        member: str = "perceptron",
        n_members: int = 100,
        *,
        gamma: float = 0.1,
        variant: str = "uniform",
        calibrated: bool = False,
        random_state: Any = None,
    ) -> None:
        self.member = member
        self.n_members = n_members
        self.gamma = gamma
        self.variant = variant
        self.calibrated = calibrated
        self.random_state = random_state

    def _model(self, classes: NDArray[Any]) -> OSBoost:  # noqa: ARG002
        return OSBoost(self.member, self.n_members, self.gamma, self.variant)

    def _probabilities(self, model: OSBoost, losses: Array) -> Array:  # noqa: ARG002
        return shares((1 - losses) / 2)
