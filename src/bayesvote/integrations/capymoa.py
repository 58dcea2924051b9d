"""The models as CapyMOA classifiers.

The features and classes are those of the schema. Each kind of member handles a missing number, NaN, in its own
way: see docs/tables.md. A nominal feature with more than two values is one-hot encoded; a missing value becomes 0 in
all of its features.
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
        "bayesvote.integrations.capymoa: CapyMOA is not installed. Run: pip install 'bayesvote[capymoa]'"
    ) from error


class CapyMOAClassifier(Classifier, Part):
    """A model of CapyMOA's instances.

    It has the schema of the stream, the parameters of the scikit-learn classifier except ``random_state``, and
    ``random_seed``.

    Attributes
    ----------
    model : Ensemble or booster
        The fitted model.
    """

    complete = True
    estimator: ClassVar[type[OnlineClassifier[Any]]]
    schema: Schema

    if TYPE_CHECKING:  # each class gets its constructor below

        def __init__(self, *args: Any, **kwargs: Any) -> None: ...

    def __init_subclass__(cls, estimator: type[OnlineClassifier[Any]], **kwargs: Any) -> None:
        wrap(cls, estimator, cls._begin, "schema", random_seed=1)
        super().__init_subclass__(**kwargs)  # CapyMOA records the constructor's arguments

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
        """The fitted model."""
        model: Model[Any] = self._shell.model_
        return model

    def train(self, instance: LabeledInstance) -> None:
        """Learn an instance."""
        self._learn(instance.x.reshape(1, -1), np.array([instance.y_index]))

    def predict(self, instance: Instance) -> int:
        """Return the index of the predicted label."""
        return int(decided(self._losses(instance.x.reshape(1, -1)))[0])

    def predict_proba(self, instance: Instance) -> Array:
        """Return the probabilities of the labels."""
        return np.asarray(self._probabilities(instance.x.reshape(1, -1))[0])

    def parameters(self) -> dict[str, Any]:
        """Return the arguments of the constructor. A file cannot hold the schema, and saves a placeholder."""
        return parameters_of(self)

    def read_lock(self) -> AbstractContextManager[Any]:
        """Return the read lock."""
        return self._shell.read_lock()

    @read_locked
    def learned(self) -> Learned | None:
        """Return the content of a model file."""
        return Learned(parts={"estimator": self._shell})

    def restore(self, learned: Learned, room: int) -> None:  # noqa: ARG002
        """Restore an estimator, which must fit the schema."""
        shell = learned.parts["estimator"]
        if not isinstance(shell, self.estimator) or getattr(shell, "n_features_in_", 0) != self._shell.n_features_in_:
            raise ValueError(f"{type(shell).__name__}, which does not fit the schema")
        self._shell = shell

    def _learn(self, X: Array, y: Any) -> None:
        self._shell.advance(*self.model.checked_labelled(self._indicated(X), y, None))

    def _losses(self, X: Array) -> Array:
        return np.asarray(self.model.decide(self._indicated(X))[:, : self.schema.get_num_classes()])

    def _indicated(self, X: Array) -> Array:
        """Return rows with nominal features one-hot encoded."""
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
    """Return the number of features of each attribute of a schema."""
    header = schema.get_moa_header()
    found = [header.attribute(i) for i in range(header.numAttributes()) if i != header.classIndex()]
    return [one.numValues() if one.isNominal() and one.numValues() > 2 else 1 for one in found]


def batched(learner: CapyMOAClassifier) -> Classifier:
    """Return the learner as a ``BatchClassifier``, for evaluation with a batch_size above 1; needs PyTorch.

    CapyMOA predicts a whole batch before learning it. The result wraps the same learner, not a copy.
    """
    from capymoa.base import BatchClassifier

    torch: Any = import_module("torch")

    class Batched(BatchClassifier):
        """A learner of batches of instances."""

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


class BayesianEnsembleClassifier(CapyMOAClassifier, estimator=estimators.BayesianEnsembleClassifier):
    """Online ensemble with Bayesian weights.

    It has the schema, the parameters of :class:`bayesvote.BayesianEnsembleClassifier` except ``random_state``, and
    ``random_seed``.
    """


class OzaBoostClassifier(CapyMOAClassifier, estimator=estimators.OzaBoostClassifier):
    """Online AdaBoost: schema, the parameters of :class:`bayesvote.OzaBoostClassifier`, ``random_seed``."""


class OGBoostClassifier(CapyMOAClassifier, estimator=estimators.OGBoostClassifier):
    """Online GradientBoost: schema, the parameters of :class:`bayesvote.OGBoostClassifier`, ``random_seed``."""


class OSBoostClassifier(CapyMOAClassifier, estimator=estimators.OSBoostClassifier):
    """Online SmoothBoost: schema, the parameters of :class:`bayesvote.OSBoostClassifier`, ``random_seed``."""


# The classes, by their names in model files.
CLASSIFIERS = {kind.__name__: kind for kind in CapyMOAClassifier.__subclasses__()}
