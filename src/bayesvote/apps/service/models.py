"""Models that are served: made from JSON or taken from a file, with their columns, labels and figures."""

import inspect
import threading
from collections.abc import Iterator, Mapping
from contextlib import contextmanager
from functools import cached_property
from typing import Any

import numpy as np
from msgspec import UnsetType
from numpy.typing import NDArray

from bayesvote import members, weighting
from bayesvote.apps.service.columns import IDS, MATRIX, Answers, Columns, Mixed, Numbers
from bayesvote.apps.service.forecasts import Forecasts
from bayesvote.apps.service.types import Label, Limits, ModelFacts, ModelRequest, Refusal, TensorFacts
from bayesvote.core.checks import Array, InputError, InvalidInputError, Labels, label_array
from bayesvote.core.names import make
from bayesvote.core.rows import as_rows
from bayesvote.estimators import CLASSIFIERS, OnlineClassifier, around
from bayesvote.evaluation import Tally
from bayesvote.io.model_file import ModelFileError, loads

VERSION = "1"  # of every model: there is one, and it goes on learning
CHUNK = 2048  # rows learned at a time; a prediction waits no longer than for one of them
KINDS = ("number", "category", "boolean", "date")
_FEATURES = {"category": 64, "date": 10}  # that a column becomes, about
_BINS = 10
_PARAMETERS = ("members", "n_members", "max_features", "weighter", "loss", "forgetting", "scale", "calibrated")


class Figures:
    """How a model has done: errors by the predictions as they were made, and whether its probabilities hold."""

    def __init__(self, n_classes: int) -> None:
        self.tally = Tally(range(n_classes))
        self.bins = np.zeros((_BINS, 3))  # rows, sum of the probability of the decision, rows decided rightly

    def add(self, codes: Labels, probabilities: Array) -> int:
        """Count rows; return how many were predicted wrongly."""
        decision = probabilities.argmax(axis=1)
        squares = probabilities.copy()
        squares[np.arange(len(codes)), codes] -= 1
        wrong = self.tally.add(codes, decision, np.einsum("nk,nk->n", squares, squares))
        largest = probabilities[np.arange(len(codes)), decision]
        place = np.minimum((largest * _BINS).astype(np.intp), _BINS - 1)
        for column, values in enumerate((np.ones(len(codes)), largest, ~wrong)):
            np.add.at(self.bins[:, column], place, values)  # one by one, so that chunks do not matter
        return int(wrong.sum())

    def to_json(self) -> dict[str, Any]:
        """All of it, in types that JSON has."""
        return {"tally": self.tally.to_json(), "bins": self.bins.tolist()}

    @classmethod
    def from_json(cls, saved: dict[str, Any]) -> "Figures":
        """Figures as they were saved."""
        figures = cls(0)
        figures.tally, figures.bins = Tally.from_json(saved["tally"]), np.array(saved["bins"])
        return figures


class Served:
    """A model that is served: only the learning thread changes it."""

    def __init__(self, number: int, name: str, estimator: OnlineClassifier[Any]) -> None:
        self.number, self.name, self.estimator = number, name, estimator
        self.columns: Columns = (
            Mixed(estimator.columns_) if hasattr(estimator, "columns_") else Numbers(_names(estimator))
        )
        self.classes: list[Label] = estimator.classes_.tolist()
        self._codes = {_key(label): code for code, label in enumerate(self.classes)}
        self.figures = Figures(len(self.classes))
        self.rows = 0  # learned
        self.sum = 0  # of the journal up to there
        self.pending = self.expired = self.crowded = 0
        self.saved = 0  # rows of the last snapshot
        self.failed = ""  # why it cannot be used
        # Predictions and learning take turns.
        self._lock = threading.Lock()

    @property
    def is_posterior(self) -> bool:
        """Whether the weights have a posterior, so that there is a certainty of decisions."""
        return isinstance(getattr(self.estimator.model_, "weighter", None), weighting.Posterior)

    @cached_property
    def soon_certain(self) -> bool:
        """Whether the certainty of a row takes no longer than its prediction."""
        return self.is_posterior and not self.estimator.model_.weighter.draws_agreement(len(self.classes))

    @property
    def explains(self) -> bool:
        """Whether the members' contributions are known."""
        return hasattr(self.estimator, "contributions")

    @cached_property
    def outputs(self) -> list[TensorFacts]:
        """Tensors that an answer can have."""
        kind = self.estimator.classes_.dtype.kind
        found = [
            TensorFacts("label", {"i": "INT64", "u": "UINT64", "f": "FP64", "b": "BOOL"}.get(kind, "BYTES"), [-1]),
            TensorFacts("probability", "FP64", [-1, len(self.classes)]),
        ]
        if self.is_posterior:
            found.append(TensorFacts("certainty", "FP64", [-1]))
        if self.explains:
            found.append(TensorFacts("contributions", "FP64", [-1, self.estimator.model_.total_members]))
        return found

    def facts(self) -> ModelFacts:
        """Metadata by the Open Inference Protocol."""
        return ModelFacts(
            self.name,
            [VERSION],
            "bayesvote",
            self.columns.inputs(),
            self.outputs,
            self.classes,
            self.columns.kinds,
            self.rows,
            self.pending,
        )

    def codes(self, labels: list[Label]) -> Labels:
        """Places of labels among the classes."""
        found = [self._codes.get(_key(label), -1) for label in labels]
        if -1 in found:
            place = found.index(-1)
            shown = ", ".join(repr(label) for label in self.classes[:10]) + (", ..." if len(self.classes) > 10 else "")
            raise Refusal(400, f"labels[{place}] must be one of {shown}, got {labels[place]!r:.100}.")
        return np.array(found, dtype=np.intp)

    @contextmanager
    def turn(self, wait: bool = True) -> Iterator[bool]:
        """Hold the model for a prediction or for a chunk that is learned; without waiting, tell whether that worked."""
        taken = self._lock.acquire(blocking=wait)
        try:
            yield taken
        finally:
            if taken:
                self._lock.release()

    def predict(
        self, rows: Any, *, certainty: bool = False, contributions: bool = False, forecast: bool = False
    ) -> Answers:
        """Return the answers of the model about rows; its turn must be held."""
        return self.columns.answers(
            self.estimator, rows, certainty=certainty, contributions=contributions, forecast=forecast
        )

    @cached_property
    def forecast_size(self) -> int:
        """Numbers in the forecast of a row."""
        packed: Array = self.estimator.model_.empty_forecast(1).packed()
        return packed.size

    def check_room(self, n_rows: int) -> None:
        """Refuse more rows than the model can ever learn."""
        try:
            self.estimator.model_.check_weights(np.ones(n_rows))
        except ValueError as error:
            raise Refusal(409, str(error)) from error

    def learn(
        self, rows: Any, codes: Labels, made: Array | None, forecasts: Forecasts | None = None
    ) -> NDArray[np.bool_]:
        """Learn rows; return which were predicted wrongly, by ``made`` or, where that is NaN, as of just before.

        Rows with a forecast are learned as rows whose labels come late.
        """
        wrong, at = [], 0
        late, forecast = np.zeros(len(codes), dtype=bool), None
        if forecasts is not None:
            late, forecast = forecasts.of(self.estimator.model_)
        for part in _parts(late):
            chunk, own = codes[part], None
            if forecast is not None and late[part.start]:
                own = forecast.part(at, at + len(chunk))
                at += len(chunk)
            with self.turn():
                given = self.columns.learn(self.estimator, rows[part], chunk, own)
            if made is not None:
                given = np.where(np.isnan(made[part]), given, made[part])
            self.figures.add(chunk, given)
            wrong.append(given.argmax(axis=1) != chunk)
        self.rows += len(codes)
        return np.concatenate(wrong)


def _parts(late: NDArray[np.bool_]) -> Iterator[slice]:
    """Split rows into chunks that are late as a whole, or not at all."""
    first, n = 0, len(late)
    changes = [*(np.flatnonzero(late[1:] != late[:-1]) + 1).tolist(), n]
    for last in changes:
        while first < last:
            yield slice(first, min(first + CHUNK, last))
            first = min(first + CHUNK, last)


def _key(label: Label) -> tuple[bool, Label]:
    return isinstance(label, bool), label  # or true would be 1


def _names(estimator: OnlineClassifier[Any]) -> list[str]:
    names = getattr(estimator, "feature_names_in_", None)
    return [f"x{k}" for k in range(estimator.n_features_in_)] if names is None else [str(name) for name in names]


def from_request(asked: ModelRequest, limits: Limits) -> OnlineClassifier[Any]:
    """Make a model from JSON."""
    kinds, classes = _kinds(asked, limits), _classes(asked, limits)
    if asked.model not in CLASSIFIERS:
        raise Refusal(400, f"model must be one of {', '.join(CLASSIFIERS)}, got {asked.model!r}.")
    kind = CLASSIFIERS[asked.model]
    known = inspect.signature(kind).parameters
    options: dict[str, Any] = {"random_state": asked.seed}
    for name in _PARAMETERS:
        value = getattr(asked, name)
        if isinstance(value, UnsetType):
            continue
        parameter = name if name in known else name.removesuffix("s")
        if parameter not in known:
            raise Refusal(400, f"{name}: the model {asked.model!r} has none. Leave it out.")
        options[parameter] = value
    try:
        width = sum(_FEATURES.get(each, 1) for each in kinds.values())
        _check_size(asked.model, known, options, (width, len(classes)), limits)
        return _started(kind, options, kinds, classes, is_table=isinstance(asked.columns, dict))
    except (ValueError, TypeError, RecursionError, MemoryError, OverflowError) as error:
        reason = error.sentence() if isinstance(error, InvalidInputError) else str(error) or type(error).__name__
        raise Refusal(400, reason) from error


def _started(
    kind: type[OnlineClassifier[Any]],
    options: dict[str, Any],
    kinds: dict[str, str],
    classes: NDArray[Any],
    *,
    is_table: bool,
) -> OnlineClassifier[Any]:
    """Make a model that can predict before it has seen a row: of a table if kinds are stated, as in Python."""
    if not is_table:
        estimator = kind(**options).start(len(kinds), classes)
        estimator.feature_names_in_ = np.array(list(kinds), dtype=object)
        return estimator
    # A row of weight 0 tells the columns and leaves no trace, unless it is learned for a horizon.
    estimator = kind(**options | {"columns": kinds})
    estimator.predict_proba_then_learn({name: [None] for name in kinds}, classes[:1], classes, sample_weight=[0.0])
    return estimator


def _kinds(asked: ModelRequest, limits: Limits) -> dict[str, str]:
    given, most = asked.columns, limits.columns
    names = [f"x{k}" for k in range(min(given, most + 1))] if isinstance(given, int) else list(given)
    if not 1 <= len(names) <= most:
        raise Refusal(400, f"columns must be from 1 to {most:,}.")
    if len({*names}) < len(names) or {"", MATRIX, IDS} & {*names}:
        raise Refusal(400, f"columns must have names that differ, none of them empty, {MATRIX!r} or {IDS!r}.")
    kinds = dict(given) if isinstance(given, dict) else dict.fromkeys(names, "number")
    wrong = next((kind for kind in kinds.values() if kind not in KINDS), None)
    if wrong is not None:
        raise Refusal(400, f"columns: the kind of a column must be one of {', '.join(KINDS)}, got {wrong!r}.")
    return kinds


def _classes(asked: ModelRequest, limits: Limits) -> NDArray[Any]:
    if len(asked.classes) > limits.classes:
        raise Refusal(400, f"classes must be at most {limits.classes:,}, got {len(asked.classes):,}.")
    kinds = {type(label) for label in asked.classes}
    classes = np.unique(np.asarray(label_array(asked.classes))) if len(kinds) == 1 else np.empty(0)
    if len(classes) < len(asked.classes) or classes.dtype.kind not in "iufbU":
        raise Refusal(400, "classes must be two or more different labels: all strings, numbers or truth values.")
    if classes.dtype.kind == "U" and any(not 0 < len(str(label)) <= 200 or "\0" in str(label) for label in classes):
        raise Refusal(400, "classes must have from 1 to 200 characters each.")
    return classes


def _check_size(
    who: str, known: Mapping[str, inspect.Parameter], options: dict[str, Any], shape: tuple[int, int], limits: Limits
) -> None:
    """Refuse a model that would fill the memory, before it is made."""
    given = {name: parameter.default for name, parameter in known.items()} | options
    count, size = given["n_members"], 8 * given["n_members"] * shape[0] * shape[1]
    if count > limits.members:
        raise Refusal(400, f"n_members must be at most {limits.members:,}, got {count:,}.")
    if isinstance(given.get("members"), str):
        bank = make(who, "members", given["members"], members.named(), count)
        size = max(size, bank.least_bytes(*shape))
    if isinstance(given.get("weighter"), str):
        size += make(who, "weighter", given["weighter"], weighting.named()).least_bytes(count)
    if size > limits.model_bytes:
        raise Refusal(400, f"the model must take at most {limits.model_bytes:,} bytes, got {size:,} or more.")


def from_file(data: bytes) -> OnlineClassifier[Any]:
    """Load a model, of whatever kind, that has been started."""
    model = loads(data)
    if model.learned() is None:
        raise ModelFileError("load", "the file", "must hold a model that was started", "one that never learned")
    shell: OnlineClassifier[Any] = model if isinstance(model, OnlineClassifier) else around(model)
    # With a row of weight 0 a model learns the rows that it held back for its horizon, and nothing else. The service
    # knows how late labels are; and from then on all forecasts have the same size.
    shell.model_.advance(as_rows("serve", np.zeros((1, shell.model_.n_features))), np.zeros(1, np.intp), np.zeros(1))
    if shell.classes_.dtype.kind not in "iufbU" and not all(type(label) is str for label in shell.classes_.tolist()):
        raise InputError("serve", "the classes", "must be strings, numbers or truth values", str(shell.classes_.dtype))
    return shell
