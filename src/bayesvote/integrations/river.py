"""The models as river classifiers.

Rows are dictionaries, so features go by name. A name that a row lacks counts as 0, as in river's linear models and
its bags of words; a value of None or NaN is missing, which each kind of member handles in its own way: see
docs/tables.md. A name that was not known
before is taken up by the first row that is learned with it, without forgetting anything: it is as if it had been 0.
A text is a name by itself, "island=Dream", of the value 1; of a name's texts, those after the first 64 share 16 names
by their hash.

Labels may be anything hashable. The model needs to know how many there are: a third or later label that was not
known before starts it anew with one more class, and it learns its last 1,000 rows again. Name the labels in
``classes`` where they are known, and this does not happen.

Labels may come late. The classifiers keep what their last 10,000 predictions were made of; the weights learn from this
when ``learn_one`` gets a row with the same names and values. Files, copies and pickles leave these predictions out.
"""

from bayesvote import estimators
from bayesvote.integrations.river_base import Online


class BayesianEnsembleClassifier(Online, estimator=estimators.BayesianEnsembleClassifier):
    """Members of any kind, voting with Bayesian weights, learned online.

    It takes the parameters of :class:`bayesvote.BayesianEnsembleClassifier`, but for ``random_state``, and ``classes``,
    the labels if they are known from the start, and ``seed``. Classifiers given as members can be paired with the
    columns they see: numbers of the names in the order of ``feature_names``.

    Examples
    --------
    >>> from river import datasets, evaluate, metrics, preprocessing
    >>> model = preprocessing.StandardScaler() | BayesianEnsembleClassifier(seed=1)
    >>> evaluate.progressive_val_score(datasets.Phishing(), model, metrics.Accuracy()).get() > 0.88
    True
    """


class OzaBoostClassifier(Online, estimator=estimators.OzaBoostClassifier):
    """Online AdaBoost: the parameters of :class:`bayesvote.OzaBoostClassifier`, ``classes`` and ``seed``."""


class OGBoostClassifier(Online, estimator=estimators.OGBoostClassifier):
    """Online GradientBoost: the parameters of :class:`bayesvote.OGBoostClassifier`, ``classes`` and ``seed``."""


class OSBoostClassifier(Online, estimator=estimators.OSBoostClassifier):
    """Online SmoothBoost: the parameters of :class:`bayesvote.OSBoostClassifier`, ``classes`` and ``seed``."""


# The classes, by their names in model files.
CLASSIFIERS = {kind.__name__: kind for kind in Online.__subclasses__()}
