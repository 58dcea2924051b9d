"""Classifiers of scikit-learn and river as members."""

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
# Smaller probabilities are raised to this value: a probability of 0, which trees return, has infinite log-odds.
_LEAST = 1e-9
# Larger scores are clipped to this value, which is also that of core.rows.LARGEST: one infinite score would make every
# later sum of losses infinite.
_MOST = 1e100
# Features that a file may declare beyond its own size in bytes: these members store no arrays that would prove their
# number. The limit is far above the width of real rows, and an array of as many numbers still fits into memory.
_WIDEST = 10_000_000


class BatchClassifier(Protocol):
    """Interface of scikit-learn classifiers: ``classes_`` once fitted, and ``partial_fit`` to learn online.

    Scores come from ``decision_function``, else from ``predict_proba``, else from ``predict``.
    """

    def predict(self, X: Any) -> Any:
        """Return the labels of rows."""


class OneByOneClassifier(Protocol):
    """Interface of river classifiers. Scores come from ``predict_proba_one``, else from ``predict_one``."""

    def predict_one(self, x: dict[Any, Any]) -> Any:
        """Return the label of a row."""

    def learn_one(self, x: dict[Any, Any], y: Any) -> Any:
        """Learn a row."""


Classifier = BatchClassifier | OneByOneClassifier


class _Member(Protocol):
    """A classifier of another library, behind an interface that uses class indices."""

    name: str
    takes_weight: bool
    feature_names: list[str]  # on which it was fitted; empty if unknown

    def scores(self, X: Array) -> Array:
        """Return one score per class, (n, K); NaN to abstain."""

    def learn(self, x: Array, k: int, weight: float) -> None:
        """Learn one row, (1, d), of class k."""

    def takes_columns(self, columns: NDArray[np.intp]) -> bool:
        """Use these columns from now on; return False if the classifier cannot."""


class EstimatorState(NamedTuple):
    """The estimators in use, with the columns that each of them sees."""

    members: tuple[_Member, ...]
    columns: tuple[NDArray[np.intp], ...]
    n_classes: int
    first_width: int  # features at the start, which estimators of a fixed width continue to see


@dataclass
class EstimatorBank(Bank[EstimatorState]):
    """Any scikit-learn or river classifiers as members.

    Scores come from ``decision_function``, else from the log-odds of ``predict_proba``, else from the label as 1 or -1.
    With more than two classes there is one score per class: the decision function, the log-probability, or 1 and 0 for
    the label. An estimator abstains on rows where one of its columns is NaN, and until it has learned its first row.

    With ``online``, every estimator predicts and then learns each row in separate calls. This takes a millisecond or
    more per row for scikit-learn's estimators, and 0.02 to 0.2 ms for river's. Estimators that do not learn are called
    once per chunk.

    Parameters
    ----------
    estimators
        Classifiers, or pairs (classifier, columns that it sees). A classifier with ``learn_one`` is treated as river's,
        and its features are named by their column numbers.
    online
        If True, copies of the estimators learn, and the given objects stay as they are; fitted estimators continue
        from their fitted state. If False, the estimators do not learn, and those of scikit-learn must be fitted.
    classes
        The labels of the class indices 0, 1, ... By default the sorted ``classes_`` of the fitted estimators, or the
        indices themselves.

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
            raise InputError(_WHO, "estimators", "must hold at least one classifier", "none")
        self.learns = self.online

    @property
    def n_members(self) -> int:
        """Number of estimators."""
        return len(self.estimators)

    @property
    def reference(self) -> tuple[str, ...] | None:
        """The attributes that identify the bank, if the estimators learn: no file can store the user's objects."""
        return ("n_members", "online", "shape") if self.online else None

    def init(self, n_features: int, n_classes: int, rng: np.random.Generator) -> EstimatorState:
        """Return the estimators as they were given.

        An estimator that is not fitted and has a ``random_state`` of None gets one from rng.
        """
        pairs = [e if isinstance(e, tuple) else (e, range(n_features)) for e in self.estimators]
        labels = self._labels([model for model, _ in pairs], n_classes)
        members: list[_Member] = []
        columns = []
        for i, (model, given) in enumerate(pairs):
            name = f"estimator {i} ({type(model).__name__})"
            chosen = np.asarray(given, dtype=np.intp)
            if chosen.ndim != 1 or not len(chosen) or chosen.min() < 0 or chosen.max() >= n_features:
                must = f"must be numbers from 0 to {n_features - 1}"
                raise InputError(_WHO, f"columns of {name}", must, repr(given))
            if hasattr(model, "learn_one"):
                members.append(_RiverMember(name, model, labels, chosen, self.online))
            else:
                members.append(_ScikitMember(name, model, labels, len(chosen), self.online, rng))
            columns.append(chosen)
        return EstimatorState(tuple(members), tuple(columns), n_classes, n_features)

    def score(self, rows: Rows) -> Array:
        """Score checked rows."""
        return _blend(started(_WHO, self.state), rows)

    def advance(self, rows: Rows, y: Labels, w: Array) -> Array:
        """Score checked row t before learning row t."""
        return _blend(started(_WHO, self.state), rows, (y, w) if self.online else None)

    def wider(self, n_features: int, rng: np.random.Generator) -> EstimatorState:  # noqa: ARG002
        """Show all features to river's classifiers. Those of scikit-learn have a fixed width and keep their columns."""
        old = started(_WHO, self.state)
        all_columns = np.arange(n_features)
        columns = [
            all_columns if not isinstance(given, tuple) and member.takes_columns(all_columns) else before
            for given, member, before in zip(self.estimators, old.members, old.columns, strict=True)
        ]
        return old._replace(columns=tuple(columns))

    def member_names(self) -> list[str]:
        """Class names of the estimators."""
        return [type(given[0] if isinstance(given, tuple) else given).__name__ for given in self.estimators]

    @property
    def runs_user_code(self) -> bool:
        """True: the estimators are code of other libraries."""
        return True

    def check_names(self, names: Sequence[str]) -> None:
        """Raise an error for features in another order than in the table on which an estimator was fitted."""
        state = started(_WHO, self.state)
        for member, columns in zip(state.members, state.columns, strict=True):
            for j, fitted_on in zip(columns.tolist(), member.feature_names, strict=False):
                if names[j] != fitted_on:
                    raise InputError(
                        _WHO,
                        f"column {j} of {member.name}",
                        f"must be {fitted_on!r}, as when it was fitted",
                        repr(names[j]),
                        "Pass the columns in the order of its feature_names_in_, or a pair (estimator, columns).",
                    )

    def least_bytes(self, n_features: int, n_classes: int) -> int:  # noqa: ARG002
        """Return 0: the state has no arrays."""
        return 0

    def validate(self, state: EstimatorState) -> None:
        """Check nothing: the state holds the user's objects, which are never read from a file."""

    def learned(self) -> Learned | None:
        """Return the shape, with which estimators that do not learn are started again."""
        if self.shape is None or self.state is None:
            return None
        return Learned({"shape": list(map(int, self.shape)), "first_width": int(self.state.first_width)})

    def restore(self, learned: Learned, room: int) -> None:
        """Start the estimators, which the user passed again, and widen them as before."""
        shape: Shape = restored_shape(learned)
        if shape.n_features > max(room, _WIDEST):
            raise InputError(_WHO, "n_features", f"must be at most {_WIDEST} in a small file", str(shape.n_features))
        self.start(learned.facts.get("first_width", shape.n_features), shape.n_classes).widen(shape.n_features)

    def check_weights(self, w: Array) -> None:
        """Raise an error for sample weights that an estimator does not accept."""
        state = started(_WHO, self.state)
        fixed = [member.name for member in state.members if self.online and not member.takes_weight]
        if fixed and np.any((w != 0) & (w != 1)):
            must = f"must be 0 or 1 for {fixed[0]}, which takes no weights"
            do = "Leave it out of the bank, or pass no weights."
            raise InputError(_WHO, "sample_weight", must, str(w[(w != 0) & (w != 1)][0]), do)

    def _labels(self, models: Sequence[Any], n_classes: int) -> list[Any]:
        """Return the labels of the class indices."""
        fitted = [label for model in models for label in getattr(model, "classes_", np.zeros(0)).tolist()]
        default = sorted(set(fitted)) or list(range(n_classes))
        labels: list[Any] = default if self.classes is None else np.ravel(self.classes).tolist()
        if len(labels) != n_classes or len(set(labels)) != n_classes:
            must = f"must be {n_classes} different labels, one per class index"
            do = "Pass classes= in the order of the indices, and estimators that know them all."
            raise InputError(_WHO, "classes", must, str(labels), do)
        return labels


def _blend(state: EstimatorState, rows: Rows, lesson: tuple[NDArray[np.intp], Array] | None = None) -> Array:
    """Score rows by all members. With a lesson (labels and weights), learn each row after its scores."""
    dense = rows.todense()
    out = np.full((rows.n, len(state.members), state.n_classes), np.nan)
    # With too few rows an estimator may compute NaN: it abstains then.
    with warnings.catch_warnings(), np.errstate(all="ignore"):
        # Columns have no names here, even if the estimator was fitted with names.
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


class _EstimatorMember:
    """Base class of members that wrap an estimator. Two are equal if their labels and their models' contents are."""

    model: Any
    labels: list[Any]

    def __eq__(self, other: object) -> bool:
        """Compare labels, type, parameters and learned state."""
        if type(self) is not type(other) or not isinstance(other, _EstimatorMember) or self.labels != other.labels:
            return False
        return self.model is other.model or same_contents(self.model, other.model)

    __hash__ = None  # type: ignore[assignment]


class _ScikitMember(_EstimatorMember):
    """A scikit-learn classifier behind an interface that uses class indices."""

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
            raise InputError(_WHO, name, "must be fitted", "no classes_", "Fit it, or pass online=True.")

    def _check_fitted(self, width: int) -> None:
        known = self.model.classes_.tolist()
        if set(known) != set(self.labels):
            do = "Fit all on the same classes, or pass classes= in the order of the indices."
            raise InputError(_WHO, self.name, f"must know the classes {self.labels}", f"one fitted on {known}", do)
        given = getattr(self.model, "n_features_in_", width)
        if given != width:
            must = f"must be fitted on as many features as it gets, {width}"
            raise InputError(_WHO, self.name, must, str(given), "Pass a pair (estimator, columns).")

    def _prepare(self, rng: np.random.Generator) -> None:
        if not hasattr(self.model, "partial_fit"):
            do = "Fit it and pass online=False."
            raise InputTypeError(_WHO, self.name, "must have partial_fit to learn online", "none", do)
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
        """Return a method's result as one number per row and class."""
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


class _RiverMember(_EstimatorMember):
    """A river classifier behind an interface that uses class indices."""

    def __init__(self, name: str, model: Any, labels: list[Any], columns: NDArray[np.intp], online: bool) -> None:
        self.name = name
        self.model = deepcopy(model) if online else model
        self.columns = columns.tolist()
        self.feature_names: list[str] = []
        self.labels = labels
        self.takes_weight = accepts(model.learn_one, "w")
        if not getattr(model, "_multiclass", True):
            if len(labels) > 2:
                must = f"must learn {len(labels)} classes"
                raise InputError(_WHO, name, must, "one for two classes", "Wrap it in river's OneVsRestClassifier.")
            self.labels = [False, True]  # river's classifiers for two classes answer with these

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
