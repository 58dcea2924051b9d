"""The models as CapyMOA classifiers.

The features and classes are those of the schema. A missing value, NaN, makes the members that use it abstain; a nominal
feature is taken for the number of its value, so encode one of more than two values first.
"""

from collections.abc import Sequence
from importlib import import_module
from typing import Any

import numpy as np

from bayesvote import estimators
from bayesvote._checks import Array
from bayesvote.ensemble import decided
from bayesvote.estimators._probabilities import agreeing
from bayesvote.estimators.base import OnlineClassifier
from bayesvote.losses import Loss
from bayesvote.members import Bank
from bayesvote.weighting import Weighter

try:
    from capymoa.base import Classifier
    from capymoa.core import Instance, LabeledInstance
    from capymoa.stream import Schema
except ImportError as error:
    raise ImportError(
        "bayesvote.adapters.capymoa: CapyMOA must be installed, got none. Run: pip install 'bayesvote[capymoa]'"
    ) from error

__all__ = ["BayesianEnsembleClassifier", "OGBoostClassifier", "OSBoostClassifier", "OzaBoostClassifier", "batched"]


class _Online(Classifier):
    """A model that learns instances."""

    def __init__(self, schema: Schema, random_seed: int, shell: OnlineClassifier[Any]) -> None:
        super().__init__(schema, random_seed)
        # Of a single class there is nothing to tell; the models want two.
        n_classes = max(2, schema.get_num_classes())
        self._shell = shell
        self.model = shell._model(np.arange(n_classes)).start(schema.get_num_attributes(), n_classes, random_seed)

    def train(self, instance: LabeledInstance) -> None:
        """Learn an instance."""
        self.model.decide_then_learn(instance.x.reshape(1, -1), np.array([instance.y_index]))

    def predict(self, instance: Instance) -> int:
        """Return the index of the label decided for."""
        return int(decided(self._losses(instance.x.reshape(1, -1)))[0])

    def predict_proba(self, instance: Instance) -> Array:
        """Return the probabilities of the labels."""
        return np.asarray(self._chances(instance.x.reshape(1, -1))[0])

    def _losses(self, X: Array) -> Array:
        return np.asarray(self.model.decide(X)[:, : self.schema.get_num_classes()])

    def _chances(self, X: Array) -> Array:
        losses = self._losses(X)
        return agreeing(self._shell._probabilities(self.model, losses), losses)


def batched(learner: _Online) -> Classifier:
    """Return the learner as a ``BatchClassifier``, for evaluation with a batch_size above 1; needs PyTorch.

    CapyMOA predicts a whole batch before it is learned. Otherwise it is the same learner, not a copy.
    """
    from capymoa.base import BatchClassifier

    torch: Any = import_module("torch")

    class Batched(BatchClassifier):
        """A learner that takes many instances at a time."""

        x_dtype = torch.float64

        def __str__(self) -> str:
            return str(learner)

        def batch_train(self, x: Any, y: Any) -> None:
            learner.model.decide_then_learn(x.numpy(), y.numpy())

        def batch_predict(self, x: Any) -> Any:
            return torch.from_numpy(decided(learner._losses(x.numpy())))

        def batch_predict_proba(self, x: Any) -> Any:
            return torch.from_numpy(learner._chances(x.numpy()))

    return Batched(learner.schema, learner.random_seed)


class BayesianEnsembleClassifier(_Online):
    """Members of any kind, voting with Bayesian weights, learned online.

    The paper's algorithm is ``members="perceptron"`` or ``"naive_bayes"`` with ``weighter="gamma_rate"``.

    Parameters
    ----------
    schema
        Of the stream.
    members
        "mixed", "perceptron", "averaged_perceptron", "naive_bayes" or "fern"; a bank of :mod:`bayesvote.members`; or a
        list of classifiers of river and scikit-learn, of which copies learn, and fitted ones of scikit-learn are used
        as they are.
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
    random_seed
        For the members' random choices.

    Attributes
    ----------
    model : Ensemble
        What learns, with ``weights()``, ``certainty`` and ``contributions``.
    """

    def __init__(
        self,
        schema: Schema,
        members: str | Bank | Sequence[Any] = "mixed",
        n_members: int = 100,
        max_features: str | float | int | None = "auto",
        loss: str | Loss = "ramp",
        weighter: str | Weighter[Any] = "joint_gaussian",
        forgetting: float = 1.0,
        random_seed: int = 1,
    ) -> None:
        shell = estimators.BayesianEnsembleClassifier(
            members, n_members, max_features=max_features, loss=loss, weighter=weighter, forgetting=forgetting
        )
        super().__init__(schema, random_seed, shell)


class OzaBoostClassifier(_Online):
    """OzaBoost, online AdaBoost; see :class:`bayesvote.OzaBoost`.

    Parameters
    ----------
    schema
        Of the stream.
    member
        "perceptron" or "naive_bayes".
    n_members
        How many members.
    random_seed
        For the random start and draws.
    """

    def __init__(self, schema: Schema, member: str = "perceptron", n_members: int = 100, random_seed: int = 1) -> None:
        super().__init__(schema, random_seed, estimators.OzaBoostClassifier(member, n_members))


class OGBoostClassifier(_Online):
    """OGBoost, online GradientBoost; see :class:`bayesvote.OGBoost`.

    Parameters
    ----------
    schema
        Of the stream.
    member
        "perceptron" or "naive_bayes".
    n_members
        How many selectors.
    pool
        Members per selector; 1 for naive Bayes.
    random_seed
        For the random start.
    """

    def __init__(
        self,
        schema: Schema,
        member: str = "perceptron",
        n_members: int = 100,
        pool: int = 1,
        random_seed: int = 1,
    ) -> None:
        super().__init__(schema, random_seed, estimators.OGBoostClassifier(member, n_members, pool=pool))


class OSBoostClassifier(_Online):
    """OSBoost, online SmoothBoost; see :class:`bayesvote.OSBoost`.

    Parameters
    ----------
    schema
        Of the stream.
    member
        "perceptron" or "naive_bayes".
    n_members
        How many members.
    gamma
        The edge that the members are supposed to have, in (0, 1).
    variant
        "uniform", "expert" or "convex": how the members' votes are weighed.
    random_seed
        For the random start.
    """

    def __init__(
        self,
        schema: Schema,
        member: str = "perceptron",
        n_members: int = 100,
        gamma: float = 0.1,
        variant: str = "uniform",
        random_seed: int = 1,
    ) -> None:
        shell = estimators.OSBoostClassifier(member, n_members, gamma=gamma, variant=variant)
        super().__init__(schema, random_seed, shell)
