"""Classifiers of other libraries as members: scikit-learn's, fitted or learning online, and river's."""

import warnings
from collections.abc import Sequence
from copy import deepcopy
from dataclasses import dataclass
from typing import Any, NamedTuple, Protocol

import numpy as np
from numpy.typing import ArrayLike, NDArray

from bayesvote.core.checks import Array, InputError, InputTypeError, Labels
from bayesvote.core.rows import Rows, started
from bayesvote.core.state import Learned, Shape, restored_shape
from bayesvote.core.user_code import accepts, accepts_classes, river_probabilities, same_contents
from bayesvote.members.base import Bank

_WHO = "EstimatorBank"
# Smaller probabilities are raised to this: a tree's certain 0 would make the log-odds infinite.
_LEAST = 1e-9
_MOST = 1e100  # a score of larger size is taken for this, or one that is infinite would ruin a sum of losses
_WIDEST = 10_000_000  # most features a small file may claim: these members store no arrays that would prove it


class BatchClassifier(Protocol):
    """What is asked of a scikit-learn classifier: ``classes_`` once fitted, ``partial_fit`` to learn online.

    Scores come from ``decision_function``, else from ``predict_proba``, else from ``predict``.
    """

    def predict(self, X: Any) -> Any:
        """Labels of rows."""


class OneByOneClassifier(Protocol):
    """What is asked of a river classifier; scores come from ``predict_proba_one``, else ``predict_one``."""

    def predict_one(self, x: dict[Any, Any]) -> Any:
        """Label of a row."""

    def learn_one(self, x: dict[Any, Any], y: Any) -> Any:
        """Learn a row."""


Classifier = BatchClassifier | OneByOneClassifier


class _Member(Protocol):
    """A foreign classifier that answers in class indices."""

    name: str
    takes_weight: bool
    feature_names: list[str]  # on which it was fitted; empty if it does not tell

    def scores(self, X: Array) -> Array:
        """One score per class, (n, K); NaN to abstain."""

    def learn(self, x: Array, k: int, weight: float) -> None:
        """Learn one row, (1, d), of class k."""

    def takes_columns(self, columns: NDArray[np.intp]) -> bool:
        """See these columns from now on, if the classifier can; say whether."""


class EstimatorState(NamedTuple):
    """The estimators in use, with the columns each sees."""

    members: tuple[_Member, ...]
    columns: tuple[NDArray[np.intp], ...]
    n_classes: int
    first_width: int  # features at the start, which estimators of a fixed width go on seeing


@dataclass
class EstimatorBank(Bank[EstimatorState]):
    """Any scikit-learn or river classifiers as members.

    Scores come from ``decision_function``, else the log-odds of ``predict_proba``, else the label as 1 or -1;
    for more than two classes one per class, with log-probabilities, and 1 or 0 for the label. An estimator
    abstains on rows where one of its columns is NaN, and until it has learned its first row.

    Online, every estimator predicts and then learns each row by calls of its own: a millisecond or more per
    row for scikit-learn's, 0.02 to 0.2 for river's. Estimators that do not learn are called per chunk.

    Parameters
    ----------
    estimators
        Classifiers, or pairs (classifier, columns it sees). One with ``learn_one`` is taken for river's; its
        features are named by their column numbers.
    online
        Whether the estimators learn. Copies learn; what was given stays as it was, and fitted ones go on from
        where they are. Otherwise scikit-learn's must be fitted, and all are used as they are.
    classes
        The labels that the class indices 0, 1, ... stand for. By default the sorted ``classes_`` of the
        fitted estimators, or the indices themselves.

    Examples
    --------
    >>> import numpy as np
    >>> from sklearn.linear_model import LogisticRegression
    >>> from sklearn.tree import DecisionTreeClassifier
    >>> X, y = np.array([[0.0, 1.0], [1.0, 1.0], [2.0, 0.0], [3.0, 0.0]]), ["no", "no", "yes", "yes"]
    >>> linear, tree = LogisticRegression().fit(X, y), DecisionTreeClassifier().fit(X[:, :1], y)
    >>> bank = EstimatorBank([linear, (tree, [0])]).start(n_features=2)
    >>> np.sign(bank.scores(X))
    array([[-1., -1.],
           [-1., -1.],
           [ 1.,  1.],
           [ 1.,  1.]])
    """

    estimators: Sequence[Classifier | tuple[Classifier, Sequence[int]]]
    online: bool = False
    classes: ArrayLike | None = None

    def __post_init__(self) -> None:
        """Check that there are estimators."""
        if len(self.estimators) == 0:
            raise ValueError(f"{_WHO}: estimators must hold at least one classifier, got none.")

    @property
    def n_members(self) -> int:
        """How many estimators there are."""
        return len(self.estimators)

    @property
    def learns(self) -> bool:
        """Whether the estimators learn online."""
        return self.online

    @property
    def reference(self) -> tuple[str, ...] | None:
        """Estimators that learn are the user's objects; of others, a file keeps the places."""
        return ("n_members", "online", "shape") if self.online else None

    def init(self, n_features: int, n_classes: int, rng: np.random.Generator) -> EstimatorState:
        """Go back to the estimators as given.

        Those that have a ``random_state`` of None and are not fitted yet get one from rng.
        """
        pairs = [e if isinstance(e, tuple) else (e, range(n_features)) for e in self.estimators]
        labels = self._labels([model for model, _ in pairs], n_classes)
        members: list[_Member] = []
        columns = []
        for i, (model, given) in enumerate(pairs):
            name = f"estimator {i} ({type(model).__name__})"
            chosen = np.asarray(given, dtype=np.intp)
            if chosen.ndim != 1 or not len(chosen) or chosen.min() < 0 or chosen.max() >= n_features:
                raise ValueError(
                    f"{_WHO}: columns of {name} must be numbers from 0 to {n_features - 1}, got {given!r}."
                )
            if hasattr(model, "learn_one"):
                members.append(_River(name, model, labels, chosen, self.online))
            else:
                members.append(_Scikit(name, model, labels, len(chosen), self.online, rng))
            columns.append(chosen)
        return EstimatorState(tuple(members), tuple(columns), n_classes, n_features)

    def score(self, rows: Rows) -> Array:
        """Score checked rows."""
        return _blend(started(_WHO, self.state), rows)

    def advance(self, rows: Rows, y: Labels, w: Array) -> Array:
        """Score checked row t before learning row t."""
        return _blend(started(_WHO, self.state), rows, (y, w) if self.online else None)

    def wider(self, n_features: int, rng: np.random.Generator) -> EstimatorState:  # noqa: ARG002
        """Show river's classifiers all features; those of scikit-learn, whose width is fixed, go on as they are."""
        old = started(_WHO, self.state)
        all_columns = np.arange(n_features)
        columns = [
            all_columns if not isinstance(given, tuple) and member.takes_columns(all_columns) else before
            for given, member, before in zip(self.estimators, old.members, old.columns, strict=True)
        ]
        return old._replace(columns=tuple(columns))

    def member_names(self) -> list[str]:
        """The classes of the estimators."""
        return [type(given[0] if isinstance(given, tuple) else given).__name__ for given in self.estimators]

    @property
    def runs_user_code(self) -> bool:
        """The estimators are."""
        return True

    def check_names(self, names: Sequence[str]) -> None:
        """Refuse features in another order than that of the table on which scikit-learn's classifiers were fitted."""
        state = started(_WHO, self.state)
        for member, columns in zip(state.members, state.columns, strict=True):
            for j, fitted_on in zip(columns.tolist(), member.feature_names, strict=False):
                if names[j] != fitted_on:
                    raise InputError(
                        _WHO,
                        f"column {j} of {member.name}",
                        f"must be {fitted_on!r}, as when it was fitted",
                        repr(names[j]),
                        "Give the columns in the order of its feature_names_in_, or a pair (estimator, columns).",
                    )

    def least_bytes(self, n_features: int, n_classes: int) -> int:  # noqa: ARG002
        """Nothing: the state has no arrays."""
        return 0

    def validate(self, state: EstimatorState) -> None:
        """Nothing to check: the state is made of the user's objects and never in a file."""

    def learned(self) -> Learned | None:
        """The shape; estimators that do not learn are started again with it."""
        if self.shape is None or self.state is None:
            return None
        return Learned({"shape": list(map(int, self.shape)), "first_width": int(self.state.first_width)})

    def restore(self, learned: Learned, room: int) -> None:
        """Start the estimators, which the user gave again, and widen them as they were."""
        shape: Shape = restored_shape(learned)
        if shape.n_features > max(room, _WIDEST):
            raise ValueError(f"{shape.n_features} features in a file of {room} bytes")
        self.start(learned.facts.get("first_width", shape.n_features), shape.n_classes).widen(shape.n_features)

    def check_weights(self, w: Array) -> None:
        """Refuse sample weights that one of the estimators cannot take."""
        state = started(_WHO, self.state)
        fixed = [member.name for member in state.members if self.online and not member.takes_weight]
        if fixed and np.any((w != 0) & (w != 1)):
            raise ValueError(
                f"{_WHO}: sample_weight must be 0 or 1 for {fixed[0]}, which takes no weights, "
                f"got {w[(w != 0) & (w != 1)][0]}. Leave it out of the bank, or give no weights."
            )

    def _labels(self, models: Sequence[Any], n_classes: int) -> list[Any]:
        """Labels that the class indices stand for."""
        fitted = [label for model in models for label in getattr(model, "classes_", np.zeros(0)).tolist()]
        default = sorted(set(fitted)) or list(range(n_classes))
        labels: list[Any] = default if self.classes is None else np.ravel(self.classes).tolist()
        if len(labels) != n_classes or len(set(labels)) != n_classes:
            raise ValueError(
                f"{_WHO}: classes must be {n_classes} different labels, one per class index, got {labels}. "
                "Give classes= in the order of the indices, and estimators that know them all."
            )
        return labels


def _blend(state: EstimatorState, rows: Rows, lesson: tuple[NDArray[np.intp], Array] | None = None) -> Array:
    """Score rows by all members; with a lesson, labels and weights, learn each row after its scores."""
    dense = rows.todense()
    out = np.full((rows.n, len(state.members), state.n_classes), np.nan)
    # What an estimator computes from too few rows may not be a number: then it abstains.
    with warnings.catch_warnings(), np.errstate(all="ignore"):
        # Columns are passed by number, even to estimators that were fitted with names.
        warnings.filterwarnings("ignore", message="X does not have valid feature names")
        for i, (member, columns) in enumerate(zip(state.members, state.columns, strict=True)):
            seen = np.ascontiguousarray(dense[:, columns])
            known = np.flatnonzero(~np.isnan(seen).any(axis=1))
            if lesson is None:
                if len(known):
                    out[known, i] = member.scores(seen[known])
                continue
            y, w = lesson
            for t in known.tolist():
                out[t, i] = member.scores(seen[t : t + 1])[0]
                if w[t] > 0:
                    member.learn(seen[t : t + 1], int(y[t]), float(w[t]))
    np.clip(out, -_MOST, _MOST, out=out)
    return np.ascontiguousarray(out[:, :, 1] - out[:, :, 0]) if state.n_classes == 2 else out


class _Foreign:
    """Base of wrapped classifiers; two are equal if their labels and the contents of their models are."""

    model: Any
    labels: list[Any]

    def __eq__(self, other: object) -> bool:
        """Compare labels, type, parameters and learned state."""
        if type(self) is not type(other) or not isinstance(other, _Foreign) or self.labels != other.labels:
            return False
        return self.model is other.model or same_contents(self.model, other.model)

    __hash__ = None  # type: ignore[assignment]


class _Scikit(_Foreign):
    """A scikit-learn classifier that answers in class indices."""

    takes_weight = False

    def __init__(
        self, name: str, model: Any, labels: list[Any], width: int, online: bool, rng: np.random.Generator
    ) -> None:
        self.name = name
        self.model = model
        self.labels = labels
        self.ready = hasattr(model, "classes_")
        self.feature_names = np.asarray(getattr(model, "feature_names_in_", [])).tolist()
        if self.ready:
            self._check_fitted(width)
        if online:
            self._prepare(rng)
        elif not self.ready:
            raise ValueError(f"{_WHO}: {name} must be fitted, got no classes_. Fit it, or give online=True.")

    def _check_fitted(self, width: int) -> None:
        known = self.model.classes_.tolist()
        if set(known) != set(self.labels):
            raise ValueError(
                f"{_WHO}: {self.name} must know the classes {self.labels}, got one fitted on {known}. "
                "Fit all on the same classes, or give classes= in the order of the indices."
            )
        given = getattr(self.model, "n_features_in_", width)
        if given != width:
            raise ValueError(
                f"{_WHO}: {self.name} must be fitted on as many features as it gets, {width}, got {given}. "
                "Give a pair (estimator, columns)."
            )

    def _prepare(self, rng: np.random.Generator) -> None:
        if not hasattr(self.model, "partial_fit"):
            raise TypeError(
                f"{_WHO}: {self.name} must have partial_fit to learn online, got none. Fit it and give online=False."
            )
        self.model = deepcopy(self.model)
        parameters = self.model.get_params() if hasattr(self.model, "get_params") else {}
        if not self.ready and parameters.get("random_state", 0) is None:
            self.model.set_params(random_state=int(rng.integers(2**31)))
        self.takes_weight = accepts(self.model.partial_fit, "sample_weight")
        self.options = {"classes": np.array(self.labels)} if accepts_classes(self.model.partial_fit) else {}

    def scores(self, X: Array) -> Array:
        n_classes = len(self.labels)
        if not self.ready:
            return np.full((len(X), n_classes), np.nan)
        known = getattr(self.model, "classes_", np.array(self.labels)).tolist()
        order = [known.index(label) for label in self.labels]
        one_against_one = n_classes > 2 and getattr(self.model, "decision_function_shape", "") == "ovo"
        if hasattr(self.model, "decision_function") and not one_against_one:
            margins = np.asarray(self.model.decision_function(X))
            if margins.ndim == 1 and n_classes == 2:  # one score for two classes, positive for the second
                self._shaped("decision_function", margins, (len(X),))
                margins = np.stack([np.zeros_like(margins), margins], axis=1)
            margins = self._numbers("decision_function", margins, X)
            return margins[:, order]
        if hasattr(self.model, "predict_proba"):
            return _logs(self._numbers("predict_proba", np.asarray(self.model.predict_proba(X)), X)[:, order])
        votes = self._shaped("predict", np.asarray(self.model.predict(X)), (len(X),)).tolist()
        return np.array([[float(vote == label) for label in self.labels] for vote in votes])

    def _numbers(self, method: str, found: NDArray[Any], X: Array) -> Array:
        """Numbers for every row and class."""
        if found.dtype.kind not in "fiub":
            raise InputTypeError(_WHO, f"{method} of {self.name}", "must give numbers", f"{found.dtype} values")
        return self._shaped(method, found, (len(X), len(self.labels))).astype(np.float64)

    def _shaped(self, method: str, found: NDArray[Any], shape: tuple[int, ...]) -> NDArray[Any]:
        if found.shape != shape:
            must = f"must give an array of shape {shape} for {shape[0]} rows of {len(self.labels)} classes"
            raise InputError(_WHO, f"{method} of {self.name}", must, f"shape {found.shape}")
        return found

    def takes_columns(self, columns: NDArray[np.intp]) -> bool:  # noqa: ARG002
        return False

    def learn(self, x: Array, k: int, weight: float) -> None:
        weights = {"sample_weight": np.array([weight])} if self.takes_weight else {}
        self.model.partial_fit(x, np.array(self.labels)[k : k + 1], **self.options, **weights)
        self.ready = True


class _River(_Foreign):
    """A river classifier that answers in class indices."""

    def __init__(self, name: str, model: Any, labels: list[Any], columns: NDArray[np.intp], online: bool) -> None:
        self.name = name
        self.model = deepcopy(model) if online else model
        self.columns = columns.tolist()
        self.feature_names: list[str] = []
        self.labels = labels
        self.takes_weight = accepts(model.learn_one, "w")
        if not getattr(model, "_multiclass", True):
            if len(labels) > 2:
                raise ValueError(
                    f"{_WHO}: {name} must learn {len(labels)} classes, got one for two classes. "
                    "Wrap it in river's OneVsRestClassifier."
                )
            self.labels = [False, True]  # what river's classifiers for two classes answer

    def scores(self, X: Array) -> Array:
        return np.array([self._scores(dict(zip(self.columns, x, strict=True))) for x in X.tolist()])

    def _scores(self, x: dict[int, float]) -> Array:
        chances = river_probabilities(self.model, x)
        if chances is None:
            vote = self.model.predict_one(x)
            return np.array([np.nan if vote is None else float(vote == label) for label in self.labels])
        found = np.array([chances.get(label, 0.0) for label in self.labels], dtype=np.float64)
        return _logs(found) if found.any() else np.full(len(found), np.nan)

    def takes_columns(self, columns: NDArray[np.intp]) -> bool:
        self.columns = columns.tolist()
        return True

    def learn(self, x: Array, k: int, weight: float) -> None:
        weights = {"w": weight} if self.takes_weight else {}
        self.model.learn_one(dict(zip(self.columns, x[0].tolist(), strict=True)), self.labels[k], **weights)


def _logs(chances: Array) -> Array:
    return np.log(np.maximum(chances.astype(np.float64), _LEAST))
