"""Served models: created from JSON or loaded from a file, with their columns, labels and scores."""

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
from bayesvote.apps.service.forecasts import Forecasts
from bayesvote.apps.service.row_formats import IDS, MATRIX, MatrixFormat, ModelOutputs, RowFormat, TableFormat
from bayesvote.apps.service.types import Label, Limits, ModelMetadata, ModelRequest, RequestError, TensorMetadata
from bayesvote.core.checks import Array, InputError, InvalidInputError, Labels, label_array
from bayesvote.core.names import make
from bayesvote.core.rows import as_rows
from bayesvote.estimators import CLASSIFIERS, OnlineClassifier, around
from bayesvote.evaluation import Tally
from bayesvote.io.model_file import ModelFileError, loads

VERSION = "1"  # the only version of every model: a model keeps learning
CHUNK = 2048  # rows learned at a time; a prediction waits for at most one chunk
KINDS = ("number", "category", "boolean", "date")
_FEATURES = {"category": 64, "date": 10}  # approximate number of features of a column
_BINS = 10
_PARAMETERS = ("members", "n_members", "max_features", "weighter", "loss", "forgetting", "scale", "calibrated")


class RunningScores:
    """Error rates and calibration of a model, from the predictions as they were first made."""

    def __init__(self, n_classes: int) -> None:
        self.tally = Tally(range(n_classes))
        self.bins = np.zeros((_BINS, 3))  # rows, sum of the decision's probability, right decisions

    def add(self, codes: Labels, probabilities: Array) -> int:
        """Add rows; return the number of wrong predictions."""
        decision = probabilities.argmax(axis=1)
        squares = probabilities.copy()
        squares[np.arange(len(codes)), codes] -= 1
        wrong = self.tally.add(codes, decision, np.einsum("nk,nk->n", squares, squares))
        largest = probabilities[np.arange(len(codes)), decision]
        place = np.minimum((largest * _BINS).astype(np.intp), _BINS - 1)
        for column, values in enumerate((np.ones(len(codes)), largest, ~wrong)):
            np.add.at(self.bins[:, column], place, values)  # in order, so that the chunk size does not matter
        return int(wrong.sum())

    def to_json(self) -> dict[str, Any]:
        """Return the state in types of JSON."""
        return {"tally": self.tally.to_json(), "bins": self.bins.tolist()}

    @classmethod
    def from_json(cls, saved: dict[str, Any]) -> "RunningScores":
        """Return scores from their saved state."""
        scores = cls(0)
        scores.tally, scores.bins = Tally.from_json(saved["tally"]), np.array(saved["bins"])
        return scores


class ServedModel:
    """A served model. Only the learning thread changes it."""

    def __init__(self, number: int, name: str, estimator: OnlineClassifier[Any]) -> None:
        self.number, self.name, self.estimator = number, name, estimator
        self.format: RowFormat = (
            TableFormat(estimator) if hasattr(estimator, "columns_") else MatrixFormat(_names(estimator))
        )
        self.classes: list[Label] = estimator.classes_.tolist()
        self._codes = {_key(label): code for code, label in enumerate(self.classes)}
        self.scores = RunningScores(len(self.classes))
        self.rows = 0  # rows learned
        self.sum = 0  # checksum of the journal up to there
        self.pending = self.expired = self.crowded = 0
        self.saved = 0  # rows learned by the latest snapshot
        self.failed = ""  # the reason why the model is unusable, such as "was retired"
        self._lock = threading.Lock()

    @property
    def is_posterior(self) -> bool:
        """True if the weights have a posterior, which gives a certainty of decisions."""
        return isinstance(getattr(self.estimator.model_, "weighter", None), weighting.Posterior)

    @cached_property
    def has_fast_certainty(self) -> bool:
        """True if the certainty of a row takes no longer than its prediction."""
        return self.is_posterior and not self.estimator.model_.weighter.draws_agreement(len(self.classes))

    @property
    def explains(self) -> bool:
        """True if the model knows the contributions of its members."""
        return hasattr(self.estimator, "contributions")

    @cached_property
    def outputs(self) -> list[TensorMetadata]:
        """The metadata of the output tensors."""
        kind = self.estimator.classes_.dtype.kind
        found = [
            TensorMetadata("label", {"i": "INT64", "u": "UINT64", "f": "FP64", "b": "BOOL"}.get(kind, "BYTES"), [-1]),
            TensorMetadata("probability", "FP64", [-1, len(self.classes)]),
        ]
        if self.is_posterior:
            found.append(TensorMetadata("certainty", "FP64", [-1]))
        if self.explains:
            found.append(TensorMetadata("contributions", "FP64", [-1, self.estimator.model_.total_members]))
        return found

    def metadata(self) -> ModelMetadata:
        """Return the metadata of the Open Inference Protocol."""
        return ModelMetadata(
            self.name,
            [VERSION],
            "bayesvote",
            self.format.inputs(),
            self.outputs,
            self.classes,
            self.format.kinds,
            self.rows,
            self.pending,
        )

    def codes(self, labels: list[Label]) -> Labels:
        """Return the class indices of labels."""
        found = [self._codes.get(_key(label), -1) for label in labels]
        if -1 in found:
            place = found.index(-1)
            shown = ", ".join(repr(label) for label in self.classes[:10]) + (", ..." if len(self.classes) > 10 else "")
            raise RequestError(400, f"labels[{place}]", f"must be one of {shown}", f"{labels[place]!r:.100}")
        return np.array(found, dtype=np.intp)

    @contextmanager
    def locked(self, wait: bool = True) -> Iterator[bool]:
        """Hold the lock for a prediction or for learning a chunk. Yield False if it is taken and ``wait`` is False."""
        acquired = self._lock.acquire(blocking=wait)
        try:
            yield acquired
        finally:
            if acquired:
                self._lock.release()

    def require_usable(self) -> None:
        """Raise an error if the model failed to learn, or was retired."""
        if self.failed:
            raise RequestError(503, f"the model {self.name!r}", self.failed)

    def predict(self, rows: Any, *, certainty: bool = False, contributions: bool = False) -> ModelOutputs:
        """Return the outputs of the model. The caller must hold the lock."""
        return self.format.outputs(self.estimator, rows, certainty=certainty, contributions=contributions)

    @cached_property
    def forecast_size(self) -> int:
        """Number of floats in the packed forecast of a row."""
        packed: Array = self.estimator.model_.empty_forecast(1).packed()
        return packed.size

    def check_room(self, n_rows: int) -> None:
        """Raise an error if the model cannot learn that many further rows."""
        try:
            self.estimator.model_.check_weights(np.ones(n_rows))
        except ValueError as error:
            raise from_error(409, error) from error

    def learn(
        self, rows: Any, codes: Labels, made: Array | None, forecasts: Forecasts | None = None
    ) -> NDArray[np.bool_]:
        """Learn rows; return a flag for each row that was predicted wrongly.

        The prediction is that of ``made`` or, where this is NaN, the one just before the row is learned. Rows with a
        forecast are learned as rows with late labels.
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
            with self.locked():
                given = self.format.learn(self.estimator, rows[part], chunk, own)
            if made is not None:
                given = np.where(np.isnan(made[part]), given, made[part])
            self.scores.add(chunk, given)
            wrong.append(given.argmax(axis=1) != chunk)
        self.rows += len(codes)
        return np.concatenate(wrong)


def from_error(status: int, error: Exception) -> RequestError:
    """Return the HTTP error for an exception of the library."""
    if isinstance(error, InvalidInputError):
        return RequestError(status, error.subject, error.must, error.got, error.do)
    return RequestError(status, "", (str(error) or type(error).__name__).removesuffix("."))


def _parts(late: NDArray[np.bool_]) -> Iterator[slice]:
    """Split rows into chunks in which either all labels or no labels are late."""
    first, n = 0, len(late)
    changes = [*(np.flatnonzero(late[1:] != late[:-1]) + 1).tolist(), n]
    for last in changes:
        while first < last:
            yield slice(first, min(first + CHUNK, last))
            first = min(first + CHUNK, last)


def _key(label: Label) -> tuple[bool, Label]:
    return isinstance(label, bool), label  # because True == 1


def _names(estimator: OnlineClassifier[Any]) -> list[str]:
    names = getattr(estimator, "feature_names_in_", None)
    return [f"x{k}" for k in range(estimator.n_features_in_)] if names is None else [str(name) for name in names]


def from_request(asked: ModelRequest, limits: Limits) -> OnlineClassifier[Any]:
    """Create a model from JSON."""
    kinds, classes = _kinds(asked, limits), _classes(asked, limits)
    if asked.model not in CLASSIFIERS:
        raise RequestError(400, "model", f"must be one of {', '.join(CLASSIFIERS)}", repr(asked.model))
    kind = CLASSIFIERS[asked.model]
    known = inspect.signature(kind).parameters
    options: dict[str, Any] = {"random_state": asked.seed}
    for name in _PARAMETERS:
        value = getattr(asked, name)
        if isinstance(value, UnsetType):
            continue
        parameter = name if name in known else name.removesuffix("s")
        if parameter not in known:
            raise RequestError(400, name, f"is not a parameter of the model {asked.model!r}", do="Leave it out.")
        options[parameter] = value
    try:
        width = sum(_FEATURES.get(each, 1) for each in kinds.values())
        _check_size(asked.model, known, options, (width, len(classes)), limits)
        return _started(kind, options, kinds, classes, is_table=isinstance(asked.columns, dict))
    except (ValueError, TypeError, RecursionError, MemoryError, OverflowError) as error:
        raise from_error(400, error) from error


def _started(
    kind: type[OnlineClassifier[Any]],
    options: dict[str, Any],
    kinds: dict[str, str],
    classes: NDArray[Any],
    *,
    is_table: bool,
) -> OnlineClassifier[Any]:
    """Create a model that can predict before it has seen a row. With kinds of columns, it is a model of tables."""
    if not is_table:
        return kind(**options).start(len(kinds), classes, names=list(kinds))
    # A row of weight 0 defines the columns and is not learned.
    estimator = kind(**options | {"columns": kinds})
    estimator.predict_proba_then_learn({name: [None] for name in kinds}, classes[:1], classes, sample_weight=[0.0])
    return estimator


def _kinds(asked: ModelRequest, limits: Limits) -> dict[str, str]:
    given, most = asked.columns, limits.columns
    names = [f"x{k}" for k in range(min(given, most + 1))] if isinstance(given, int) else list(given)
    if not 1 <= len(names) <= most:
        raise RequestError(400, "columns", f"must be from 1 to {most:,}")
    if len({*names}) < len(names) or {"", MATRIX, IDS} & {*names}:
        must = f"must have different names, none of them empty, {MATRIX!r} or {IDS!r}"
        raise RequestError(400, "columns", must)
    kinds = dict(given) if isinstance(given, dict) else dict.fromkeys(names, "number")
    wrong = next((kind for kind in kinds.values() if kind not in KINDS), None)
    if wrong is not None:
        raise RequestError(400, "columns: the kind of a column", f"must be one of {', '.join(KINDS)}", repr(wrong))
    return kinds


def _classes(asked: ModelRequest, limits: Limits) -> NDArray[Any]:
    if len(asked.classes) > limits.classes:
        raise RequestError(400, "classes", f"must be at most {limits.classes:,}", f"{len(asked.classes):,}")
    kinds = {type(label) for label in asked.classes}
    classes = np.unique(np.asarray(label_array(asked.classes))) if len(kinds) == 1 else np.empty(0)
    if len(classes) < len(asked.classes) or classes.dtype.kind not in "iufbU":
        raise RequestError(
            400, "classes", "must be two or more different labels: all strings, all numbers or all booleans"
        )
    if classes.dtype.kind == "U" and any(not 0 < len(str(label)) <= 200 or "\0" in str(label) for label in classes):
        raise RequestError(400, "classes", "must have from 1 to 200 characters each")
    return classes


def _check_size(
    who: str, known: Mapping[str, inspect.Parameter], options: dict[str, Any], shape: tuple[int, int], limits: Limits
) -> None:
    """Raise an error for a model that would take too much memory, before it is created."""
    given = {name: parameter.default for name, parameter in known.items()} | options
    count, size = given["n_members"], 8 * given["n_members"] * shape[0] * shape[1]
    if count > limits.members:
        raise RequestError(400, "n_members", f"must be at most {limits.members:,}", f"{count:,}")
    if isinstance(given.get("members"), str):
        bank = make(who, "members", given["members"], members.named(), count)
        size = max(size, bank.least_bytes(*shape))
    if isinstance(given.get("weighter"), str):
        size += make(who, "weighter", given["weighter"], weighting.named()).least_bytes(count)
    if size > limits.model_bytes:
        raise RequestError(400, "the model", f"must take at most {limits.model_bytes:,} bytes", f"{size:,} or more")


def from_file(data: bytes) -> OnlineClassifier[Any]:
    """Load a model of any kind that has learned something."""
    model = loads(data)
    if model.learned() is None:
        raise ModelFileError("load", "the file", "must hold a fitted model", "one that was never fitted")
    shell: OnlineClassifier[Any] = model if isinstance(model, OnlineClassifier) else around(model)
    # A row of weight 0 makes the model learn the rows that it held back for its horizon, and nothing else. The service
    # knows how late labels are. All forecasts have the same size from then on.
    shell.model_.advance(as_rows("serve", np.zeros((1, shell.model_.n_features))), np.zeros(1, np.intp), np.zeros(1))
    if shell.classes_.dtype.kind not in "iufbU" and not all(type(label) is str for label in shell.classes_.tolist()):
        raise InputError("serve", "the classes", "must be strings, numbers or booleans", str(shell.classes_.dtype))
    return shell
