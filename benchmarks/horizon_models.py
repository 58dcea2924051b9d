"""Models that horizon.py compares with bayesvote. Models that learn row by row have river's methods."""

import warnings
from collections import Counter
from collections.abc import Callable, Mapping, Sequence
from importlib import import_module
from importlib.metadata import version
from typing import Any, Protocol

import numpy as np
from numpy.typing import NDArray

from bayesvote import BayesianEnsembleClassifier
from tables import dicts

CONSTANT, NO_CHANGE, FOREST = "constant", "no change", "river ARF(10)"
BOOSTING, LOGISTIC = "HistGradientBoosting", "LogisticRegression"
OURS = "bayesvote"
VOTING = f"{OURS}, voting"
ROBUST = {
    f"{OURS}, fast": {"members": "fast"},
    f"{OURS}, joint_gaussian": {"weighter": "joint_gaussian"},
    f"{OURS}, gamma_rate": {"weighter": "gamma_rate"},
}
IN_ORDER = f"{OURS}, shuffle=False"
OPTIONS: dict[str, dict[str, Any]] = {OURS: {}, VOTING: {"weighter": "voting"}, IN_ORDER: {"shuffle": False}, **ROBUST}
LIBRARIES = {FOREST: "river", BOOSTING: "scikit-learn", LOGISTIC: "scikit-learn"}


def ours(name: str) -> Any:
    """Return a new classifier of this library."""
    return BayesianEnsembleClassifier(**OPTIONS[name], random_state=0)


def version_of(name: str) -> str:
    """Return the version of a model's library, or nothing for the constants."""
    package = LIBRARIES.get(name, OURS if name.startswith(OURS) else "")
    return f"{package} {version(package)}" if package else ""


class Online(Protocol):
    """A model that predicts and learns row by row."""

    def predict_one(self, x: Any) -> Any:
        """Return the label, or None before the first row is learned."""

    def learn_one(self, x: Any, y: Any) -> Any:
        """Learn a row."""


class Constant:
    """The majority of the labels known so far."""

    def __init__(self) -> None:
        self.counts: Counter[Any] = Counter()

    def predict_one(self, x: Any) -> Any:  # noqa: ARG002
        """Return the most frequent label."""
        return self.counts.most_common(1)[0][0] if self.counts else None

    def learn_one(self, x: Any, y: Any) -> None:  # noqa: ARG002
        """Count the label."""
        self.counts[y] += 1


class NoChange:
    """The last known label."""

    def __init__(self) -> None:
        self.last: Any = None

    def predict_one(self, x: Any) -> Any:  # noqa: ARG002
        """Return the last label."""
        return self.last

    def learn_one(self, x: Any, y: Any) -> None:  # noqa: ARG002
        """Keep the label."""
        self.last = y


ONLINE: Mapping[str, Callable[[], Online]] = {
    CONSTANT: Constant,
    NO_CHANGE: NoChange,
    FOREST: lambda: import_module("river.forest").ARFClassifier(n_models=10, seed=0),
}


def rows(name: str, X: Any) -> Sequence[Any]:
    """Return the rows of a table in the form that a model of ``ONLINE`` expects."""
    if name != FOREST:
        return range(len(X))
    if isinstance(X, np.ndarray):
        return [dict(enumerate(row)) for row in X.tolist()]
    return list(dicts(X))


def predict_late(model: Online, X: Sequence[Any], y: NDArray[Any], delay: int) -> list[Any]:
    """Predict every row, then learn the row ``delay`` rows before, whose label arrives then."""
    labels: list[Any] = y.tolist()
    answers: list[Any] = []
    for t, x in enumerate(X):
        answers.append(model.predict_one(x))
        if t >= delay:
            model.learn_one(X[t - delay], labels[t - delay])
    return answers


def predict_chunks(model: Online, X: Sequence[Any], y: NDArray[Any], size: int) -> list[Any]:
    """Predict the rows of a chunk, then learn them."""
    labels: list[Any] = y.tolist()
    answers: list[Any] = []
    for start in range(0, len(labels), size):
        chunk = range(start, min(start + size, len(labels)))
        answers.extend(model.predict_one(X[t]) for t in chunk)
        for t in chunk:
            model.learn_one(X[t], labels[t])
    return answers


def _columns(X: Any) -> tuple[list[Any], list[Any]]:
    """Return the names, or numbers, of columns of numbers and of the other columns."""
    if isinstance(X, np.ndarray):
        return list(range(X.shape[1])), []
    names = {name: X[name].dtype.kind in "iufb" for name in X.columns}
    return [name for name, number in names.items() if number], [name for name, number in names.items() if not number]


def without_dates(X: Any) -> Any:
    """Return a table with dates as days, hours, weekdays and months, as river's models get them."""
    if isinstance(X, np.ndarray) or not any(X[name].dtype.kind == "M" for name in X.columns):
        return X
    return import_module("pandas").DataFrame(list(dicts(X)), index=X.index)


def logistic(X: Any) -> Any:
    """Return a logistic regression with the preprocessing that a table without dates needs."""
    compose, impute = import_module("sklearn.compose"), import_module("sklearn.impute")
    pipeline, preprocessing = import_module("sklearn.pipeline"), import_module("sklearn.preprocessing")
    numbers, others = _columns(X)
    scaled = pipeline.make_pipeline(impute.SimpleImputer(strategy="median"), preprocessing.StandardScaler())
    encoder = preprocessing.OneHotEncoder(handle_unknown="ignore")
    columns = compose.ColumnTransformer([("numbers", scaled, numbers), ("others", encoder, others)])
    return pipeline.make_pipeline(columns, import_module("sklearn.linear_model").LogisticRegression(max_iter=1000))


def boosting(X: Any) -> Any:
    """Return gradient boosting with ordinal codes of categories, if there are many only of the most frequent."""
    compose, ensemble = import_module("sklearn.compose"), import_module("sklearn.ensemble")
    preprocessing = import_module("sklearn.preprocessing")
    numbers, others = _columns(X)
    encoder = preprocessing.OrdinalEncoder(
        handle_unknown="use_encoded_value", unknown_value=np.nan, encoded_missing_value=np.nan, max_categories=200
    )
    columns = compose.ColumnTransformer([("others", encoder, others), ("numbers", "passthrough", numbers)])
    model = ensemble.HistGradientBoostingClassifier(categorical_features=list(range(len(others))), random_state=0)
    return import_module("sklearn.pipeline").make_pipeline(columns, model)


def quiet() -> None:
    """Hide the libraries' warnings about divisions by zero, rare classes, and columns with many distinct strings."""
    warnings.simplefilter("ignore")
