"""The models as CapyMOA classifiers.

The features and classes are those of the schema. Each kind of member handles a missing number, NaN, in its own
way: see docs/tables.md. A nominal feature of more than two values becomes as many features of 0 and 1, all 0 where it
is missing.
"""

from contextlib import AbstractContextManager
from importlib import import_module
from typing import TYPE_CHECKING, Any, ClassVar

import numpy as np

from bayesvote import estimators
from bayesvote.core.checks import Array
from bayesvote.core.state import Learned, Part, read_locked
from bayesvote.estimators import OnlineClassifier
from bayesvote.integrations.wrapped import parameters_of, wrap
from bayesvote.model import Model, decided

try:
    from capymoa.base import Classifier
    from capymoa.core import Instance, LabeledInstance
    from capymoa.stream import Schema
except ImportError as error:
    raise ImportError(
        "bayesvote.integrations.capymoa: CapyMOA must be installed, got none. Run: pip install 'bayesvote[capymoa]'"
    ) from error


class Online(Classifier, Part):
    """A model that learns instances.

    It takes the schema of the stream, the parameters of its scikit-learn counterpart but for ``random_state``, and
    ``random_seed``, for the members' random choices.

    Attributes
    ----------
    model : Ensemble or booster
        What learns.
    """

    complete = True
    estimator: ClassVar[type[OnlineClassifier[Any]]]
    schema: Schema

    if TYPE_CHECKING:  # each class has a constructor of its own, made below

        def __init__(self, *args: Any, **kwargs: Any) -> None: ...

    def __init_subclass__(cls, estimator: type[OnlineClassifier[Any]], **kwargs: Any) -> None:
        wrap(cls, estimator, cls._begin, "schema", random_seed=1)
        super().__init_subclass__(**kwargs)  # CapyMOA notes what the constructor is given

    def _begin(self) -> None:
        Classifier.__init__(self, self.schema, self.random_seed)
        given = self.parameters()
        schema, seed = given.pop("schema"), given.pop("random_seed")
        # Models need at least two classes, even if the schema has only one.
        classes = np.arange(max(2, schema.get_num_classes()))
        self._sizes = _sizes(schema)
        self._shell = self.estimator(**given).start(sum(self._sizes), classes, np.random.default_rng(seed))

    @property
    def model(self) -> Model[Any]:
        """What learns."""
        model: Model[Any] = self._shell.model_
        return model

    def train(self, instance: LabeledInstance) -> None:
        """Learn an instance."""
        self._learn(instance.x.reshape(1, -1), np.array([instance.y_index]))

    def predict(self, instance: Instance) -> int:
        """Return the index of the label decided for."""
        return int(decided(self._losses(instance.x.reshape(1, -1)))[0])

    def predict_proba(self, instance: Instance) -> Array:
        """Return the probabilities of the labels."""
        return np.asarray(self._probabilities(instance.x.reshape(1, -1))[0])

    def parameters(self) -> dict[str, Any]:
        """Everything that the constructor takes; of the schema, which a file cannot hold, only the place is saved."""
        return parameters_of(self)

    def read_lock(self) -> AbstractContextManager[Any]:
        """Hold off learning."""
        return self._shell.read_lock()

    @read_locked
    def learned(self) -> Learned | None:
        """The estimator."""
        return Learned(parts={"estimator": self._shell})

    def restore(self, learned: Learned, room: int) -> None:  # noqa: ARG002
        """Take up the estimator, which must fit the schema."""
        shell = learned.parts["estimator"]
        if not isinstance(shell, self.estimator) or getattr(shell, "n_features_in_", 0) != self._shell.n_features_in_:
            raise ValueError(f"{type(shell).__name__}, which does not fit the schema")
        self._shell = shell

    def _learn(self, X: Array, y: Any) -> None:
        self._shell.advance(*self.model.checked_labelled(self._indicated(X), y, None))

    def _losses(self, X: Array) -> Array:
        return np.asarray(self.model.decide(self._indicated(X))[:, : self.schema.get_num_classes()])

    def _indicated(self, X: Array) -> Array:
        """Rows with 0 and 1 for the values of nominal features."""
        if max(self._sizes, default=1) == 1:
            return X
        out, at = np.zeros((len(X), sum(self._sizes))), 0
        for values, size in zip(X.T, self._sizes, strict=True):
            if size == 1:
                out[:, at] = values
            else:
                known = np.flatnonzero(~np.isnan(values))
                out[known, at + values[known].astype(np.intp)] = 1.0
            at += size
        return out

    @read_locked
    def _probabilities(self, X: Array) -> Array:
        return self._shell.probabilities(self._losses(X))


def _sizes(schema: Schema) -> list[int]:
    """How many features every attribute of a schema becomes."""
    header = schema.get_moa_header()
    found = [header.attribute(i) for i in range(header.numAttributes()) if i != header.classIndex()]
    return [one.numValues() if one.isNominal() and one.numValues() > 2 else 1 for one in found]


def batched(learner: Online) -> Classifier:
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
            learner._learn(x.numpy(), y.numpy())

        def batch_predict(self, x: Any) -> Any:
            return torch.from_numpy(decided(learner._losses(x.numpy())))

        def batch_predict_proba(self, x: Any) -> Any:
            return torch.from_numpy(learner._probabilities(x.numpy()))

    return Batched(learner.schema, learner.random_seed)


class BayesianEnsembleClassifier(Online, estimator=estimators.BayesianEnsembleClassifier):
    """Members of any kind, voting with Bayesian weights, learned online.

    It takes the schema, the parameters of :class:`bayesvote.BayesianEnsembleClassifier` but for ``random_state``, and
    ``random_seed``.
    """


class OzaBoostClassifier(Online, estimator=estimators.OzaBoostClassifier):
    """Online AdaBoost: schema, the parameters of :class:`bayesvote.OzaBoostClassifier`, ``random_seed``."""


class OGBoostClassifier(Online, estimator=estimators.OGBoostClassifier):
    """Online GradientBoost: schema, the parameters of :class:`bayesvote.OGBoostClassifier`, ``random_seed``."""


class OSBoostClassifier(Online, estimator=estimators.OSBoostClassifier):
    """Online SmoothBoost: schema, the parameters of :class:`bayesvote.OSBoostClassifier`, ``random_seed``."""


# The classes, by their names in model files.
CLASSIFIERS = {kind.__name__: kind for kind in Online.__subclasses__()}
