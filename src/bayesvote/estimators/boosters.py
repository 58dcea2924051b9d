"""The online boosters as scikit-learn classifiers."""

from dataclasses import fields
from inspect import Parameter
from typing import TYPE_CHECKING, Any, ClassVar

from numpy.typing import NDArray

from bayesvote.boosting import Booster, OGBoost, OSBoost, OzaBoost
from bayesvote.core.names import initializer, keyword_only
from bayesvote.estimators.base import OnlineClassifier

_LEADING = ("member", "n_members")  # positional or keyword


class BoosterClassifier(OnlineClassifier[Booster]):
    """A booster as a classifier. It has the parameters of the booster and the following ones.

    Parameters
    ----------
    scale : bool
        True to standardise the numbers for Perceptrons, with scales learned from the stream. The boosters of the papers
        have ``scale=False``. Naive Bayes does not need it.
    columns : dict, optional
        Kinds of the columns of a table, if their types and first values are ambiguous: "number", "category",
        "boolean", "date", or "drop" to ignore a column.
    class_weight : None, dict or "balanced"
        As in :class:`bayesvote.BayesianEnsembleClassifier`.
    calibrated : bool
        True to calibrate probabilities online. ``predict`` does not change.
    shuffle : bool
        True to shuffle the rows in ``fit``; False to keep their order.
    random_state : int, Generator, RandomState or None
        Randomness of the Perceptrons' first weights, of shuffling and, in OzaBoost, of the number of updates.
    """

    booster: ClassVar[type[Booster]]

    if TYPE_CHECKING:  # each class gets its constructor below

        def __init__(self, *args: Any, **kwargs: Any) -> None: ...

    def __init_subclass__(cls, booster: type[Booster], **kwargs: Any) -> None:
        super().__init_subclass__(**kwargs)
        cls.booster = booster
        own = {field.name: field for field in fields(booster) if field.init and field.name != "scale"}
        leading = [
            Parameter(name, Parameter.POSITIONAL_OR_KEYWORD, default=own.pop(name).default, annotation=Any)
            for name in _LEADING
        ]
        shared = {"scale": True, "columns": None, "class_weight": None, "calibrated": True, "shuffle": True}
        shared["random_state"] = None
        rest = keyword_only(**{name: field.default for name, field in own.items()}, **shared)
        type.__setattr__(cls, "__init__", initializer([*leading, *rest]))

    def _model(self, classes: NDArray[Any], n_features: int) -> Booster:  # noqa: ARG002
        return self.booster(**{field.name: getattr(self, field.name) for field in fields(self.booster) if field.init})


class OzaBoostClassifier(BoosterClassifier, booster=OzaBoost):
    """Online AdaBoost (Oza and Russell 2001) as a scikit-learn classifier.

    It has the parameters of :class:`bayesvote.OzaBoost`, by name, and ``columns``, ``class_weight``,
    ``calibrated`` and ``random_state``. Perceptrons see standardised numbers unless ``scale=False``.
    Probabilities are the logistic function of the vote. Class weights have
    little effect on Perceptrons: see docs/explaining.md.

    Examples
    --------
    >>> from sklearn.datasets import load_breast_cancer
    >>> X, y = load_breast_cancer(return_X_y=True)
    >>> model = OzaBoostClassifier(random_state=0).fit(X, y)
    >>> model.score(X, y) > 0.9
    True
    """


class OGBoostClassifier(BoosterClassifier, booster=OGBoost):
    """Online GradientBoost (Leistner et al. 2009) as a scikit-learn classifier.

    It has the parameters of :class:`bayesvote.OGBoost`, by name, and ``columns``, ``class_weight``,
    ``calibrated`` and ``random_state``. Perceptrons see standardised numbers unless ``scale=False``.
    Probabilities are the logistic function of the vote.
    """


class OSBoostClassifier(BoosterClassifier, booster=OSBoost):
    """Online SmoothBoost (Chen, Lin and Lu 2012) as a scikit-learn classifier.

    It has the parameters of :class:`bayesvote.OSBoost`, by name, and ``columns``, ``class_weight``,
    ``calibrated`` and ``random_state``. Perceptrons see standardised numbers unless ``scale=False``.
    A label's probability is in proportion to (1 + F)/2, F being its vote in [-1, 1].
    """
