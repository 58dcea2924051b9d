"""The models as river classifiers.

Rows are dictionaries, so features are matched by name. An absent name counts as 0, as in river's linear models and
bags of words. A value of None or NaN is missing; each kind of member handles it in its own way: see docs/tables.md.
A new name is added by the first row that is learned with it, as if it had been 0 before. Nothing is forgotten. A string
becomes a feature of its own, such as "island=Dream" with the value 1. After 64 strings per name, further strings share
16 features by their hash.

Labels may be any hashable objects. A third or later label that is not in ``classes`` restarts the model with one more
class, and the model learns its last 1,000 rows again. Pass ``classes`` to avoid this.

Labels may be late. The classifiers keep the forecasts of their last 10,000 predictions. The weights learn from them
when ``learn_one`` gets a row with the same names and values. Files, copies and pickles do not contain forecasts.
"""

from bayesvote import estimators
from bayesvote.integrations.river_base import RiverClassifier


class BayesianEnsembleClassifier(RiverClassifier, estimator=estimators.BayesianEnsembleClassifier):
    """Online ensemble with Bayesian weights.

    It has the parameters of :class:`bayesvote.BayesianEnsembleClassifier` except ``random_state``, plus ``classes``,
    all labels if they are known, and ``seed``. Classifiers as members can be paired with columns, given as indices into
    ``feature_names``.

    Examples
    --------
    >>> from river import datasets, evaluate, metrics, preprocessing
    >>> model = preprocessing.StandardScaler() | BayesianEnsembleClassifier(seed=1)
    >>> evaluate.progressive_val_score(datasets.Phishing(), model, metrics.Accuracy()).get() > 0.88
    True
    """


class OzaBoostClassifier(RiverClassifier, estimator=estimators.OzaBoostClassifier):
    """Online AdaBoost: the parameters of :class:`bayesvote.OzaBoostClassifier`, ``classes`` and ``seed``."""


class OGBoostClassifier(RiverClassifier, estimator=estimators.OGBoostClassifier):
    """Online GradientBoost: the parameters of :class:`bayesvote.OGBoostClassifier`, ``classes`` and ``seed``."""


class OSBoostClassifier(RiverClassifier, estimator=estimators.OSBoostClassifier):
    """Online SmoothBoost: the parameters of :class:`bayesvote.OSBoostClassifier`, ``classes`` and ``seed``."""


# The classes, by their names in model files.
CLASSIFIERS = {kind.__name__: kind for kind in RiverClassifier.__subclasses__()}
