"""Everything that a fitted classifier knows, as one record."""

from copy import deepcopy
from dataclasses import dataclass, replace
from typing import Any, Generic, Self, TypeVar

import numpy as np
from numpy.typing import NDArray

from bayesvote.core.checks import Array, InputError
from bayesvote.core.state import MOST_TOTAL, Learned, Part, within
from bayesvote.estimators._calibration import Calibration
from bayesvote.model import Model
from bayesvote.tables import Columns, difference

M = TypeVar("M", bound=Model[Any])

_NAMES = "feature_names_in_"
_FACTS = ("classes_", "n_features_in_", _NAMES)  # in model files


@dataclass(frozen=True, eq=False)
class Fitted(Generic[M]):
    """The record behind the fitted attributes of a classifier.

    A classifier replaces the whole record in one assignment, so other threads see the old record or the new one.
    Learning further rows changes the model, the calibration, the class counts and the columns in place, under the write
    lock of the model. No other code changes them.
    """

    model: M
    classes: NDArray[Any]
    calibration: Calibration
    class_counts: Array  # (K,), the sums of the weights of the rows of each class, if the classes are balanced
    names: NDArray[Any] | None = None  # of the columns of X; None if it had none
    columns: Columns | None = None  # the encoding of a table; None for rows of numbers

    @classmethod
    def of(
        cls,
        model: M,
        classes: NDArray[Any] | None = None,
        *,
        names: NDArray[Any] | None = None,
        columns: Columns | None = None,
        calibration: Calibration | None = None,
    ) -> Self:
        """Return the record of a started model; by default the classes are the class indices."""
        k = model.n_classes
        return cls(
            model,
            np.arange(k) if classes is None else classes,
            Calibration.start() if calibration is None else calibration,
            np.zeros(k),
            names,
            columns,
        )

    @property
    def n_features(self) -> int:
        """Number of columns of X. The model has more features if columns are encoded."""
        return self.model.n_features if self.columns is None else len(self.columns.names)

    @property
    def width(self) -> int:
        """Number of features of the model."""
        return self.model.n_features if self.columns is None else self.columns.width

    def replace(self, **changes: Any) -> Self:
        """Return a record with some fields changed; the others are shared."""
        return replace(self, **changes)

    def copy(self) -> Self:
        """Return a record that shares nothing with this one, in memory that can be written."""
        copied = deepcopy(self)
        # joblib may load memory maps, and a copy of one is still of that type.
        names = None if copied.names is None else np.array(copied.names)
        return copied.replace(classes=np.array(copied.classes), names=names)

    def learned(self) -> Learned:
        """Return the content of a model file."""
        self.calibration.check()
        facts = {"classes_": self.classes, "n_features_in_": int(self.n_features)}
        if self.names is not None:
            facts[_NAMES] = self.names
        parts: dict[str, Part] = {"model_": self.model}
        if self.columns is not None:
            parts["columns_"] = self.columns
        return Learned(facts, self.calibration._asdict() | {"class_counts": self.class_counts}, parts)

    @classmethod
    def restored(cls, learned: Learned) -> "Fitted[Any]":
        """Return the record of a model file, after checking that its parts fit together."""
        facts, parts = learned.facts, dict(learned.parts)
        model, columns = parts.pop("model_"), parts.pop("columns_", None)
        width, classes = facts["n_features_in_"], facts["classes_"]
        if parts or not isinstance(columns, Columns | None) or (columns and len(columns.names) != width):
            raise ValueError("columns that do not fit the features")
        inside = columns.width if columns else width
        ordered = isinstance(classes, np.ndarray) and np.array_equal(np.unique(classes), classes)
        if (
            not isinstance(model, Model)
            or not ordered
            or type(width) is not int
            or model.shape != (inside, len(classes))
        ):
            raise ValueError("classes_ or n_features_in_ that do not fit the model")
        names = facts.get(_NAMES)
        wrong = _NAMES in facts and (not isinstance(names, np.ndarray) or names.shape != (width,))
        if wrong or facts.keys() - {*_FACTS}:
            raise ValueError(f"feature names that are not {width}")
        arrays = {"class_counts": np.zeros(len(classes)), **learned.arrays}  # version 0.1 saved none
        counts = arrays.pop("class_counts")
        if counts.shape != classes.shape or counts.dtype != np.float64 or not within(counts, 0, MOST_TOTAL):
            raise ValueError(f"class counts that are not {len(classes)} sums of weights")
        calibration = Calibration(**arrays)
        for found, wanted in zip(calibration, Calibration.start(), strict=True):
            if found.shape != wanted.shape or found.dtype != wanted.dtype:
                raise ValueError(f"a calibration of {found.dtype} {found.shape}")
        calibration.check()
        return Fitted(model, classes, calibration, counts, names, columns)


def check_mergeable(who: str, mine: Fitted[Any], theirs: Fitted[Any]) -> None:
    """Reject a record with other classes or columns, or another encoding of columns."""
    own, given = mine.columns, theirs.columns
    if (own is None) != (given is None):
        raise InputError(who, "both", "must have learned tables, or both rows of numbers", "one of each")
    for name, one, other in (
        ("classes_", mine.classes, theirs.classes),
        ("n_features_in_", mine.n_features, theirs.n_features),
        (_NAMES, mine.names, theirs.names),
    ):
        if one is not None and other is not None and not np.array_equal(one, other):
            raise InputError(who, "both", f"must have the same {name}", f"{one} and {other}")
    if own is not None and given is not None:
        with theirs.model.lock.read:
            given = deepcopy(given)
        with mine.model.lock.read:
            wrong = difference(own, given)
        if wrong is not None:
            raise InputError(who, wrong.subject, wrong.must, wrong.got, "Merge copies of one model.")
