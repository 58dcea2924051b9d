"""Contents of shards, and checks that they agree: columns, width, labels."""

import json
from typing import Any, NamedTuple

import numpy as np
from numpy.typing import ArrayLike, NDArray

from bayesvote.apps.distributed.engines import Failure
from bayesvote.core.checks import InputError, label_array
from bayesvote.io.labels import is_code
from bayesvote.tables import Columns

WHO = "distributed"
MOST_LABELS = 100  # more labels that the user did not name probably come from a wrong column


class Contents(NamedTuple):
    """Contents of a shard, found in a first pass."""

    n_rows: int
    labels: list[Any]
    n_features: int
    names: list[str] | None  # of the features
    may_be_wider: bool = False  # LIBSVM text shows only the features that it has
    has_text: bool = False  # columns must be encoded
    written: bool = False  # labels come from a file, where numbers are texts

    def to_json(self) -> bytes:
        """Return the contents as bytes."""
        return json.dumps(self._asdict()).encode()

    @classmethod
    def from_json(cls, data: bytes) -> "Contents":
        """Return the contents that ``to_json`` wrote."""
        return cls(**json.loads(data))


class ShardSchema(NamedTuple):
    """Columns and classes of all shards."""

    n_features: int
    names: list[str] | None
    classes: NDArray[Any]
    columns: Columns | None = None  # their encoding, if they are encoded


def agreed(
    found: dict[int, Contents], classes: ArrayLike | None, known: ShardSchema | None
) -> tuple[ShardSchema, dict[int, Failure]]:
    """Return the schema of all shards, and the failures of shards that do not fit it, or do not fit a known one."""
    if not found:
        raise InputError(WHO, "data", "must have at least one readable shard", "none")
    found = _with_codes(found, classes, known)
    first = _usual(found) if known is None else Contents(0, known.classes.tolist(), known.n_features, known.names)
    as_in = "as in most shards" if known is None else "as in the fitted model"
    named = None if classes is None else np.unique(np.asarray(label_array(classes, "classes")))
    text = any(isinstance(label, str) for one in (first, *found.values()) for label in one.labels[:1])
    good, faults = [], {}
    for place, one in sorted(found.items()):
        try:
            _check_columns(one, first, as_in)
            _check_labels(one, text, named)
            good.append(one)
        except InputError as error:
            faults[place] = Failure(type(error).__name__, error.sentence())
    if known is not None:
        return known, faults
    labels = np.asarray(label_array(sorted({label for one in good for label in one.labels})))
    labels = labels if named is None else named
    if good and len(labels) < 2:
        got = f"only {labels.tolist()[0]!r}" if len(labels) else "no rows"
        raise InputError(
            WHO, "the shards", "must have at least two labels in total", got, "Check that target is the right column."
        )
    if named is None and len(labels) > MOST_LABELS:
        raise InputError(
            WHO,
            "the shards",
            f"must have at most {MOST_LABELS} labels if classes are not named",
            f"{len(labels)}, the first {labels.tolist()[0]!r}",
            "Check that target is the right column. If it is, pass all labels as classes.",
        )
    return ShardSchema(max((one.n_features for one in good), default=0), first.names, labels), faults


def _with_codes(found: dict[int, Contents], classes: Any, known: ShardSchema | None) -> dict[int, Contents]:
    """Convert integer labels of files to text if other files have labels such as 01."""
    labels = [label for one in found.values() for label in one.labels] if known is None else known.classes.tolist()
    texts = [label for label in (labels if classes is None else np.asarray(classes).tolist()) if isinstance(label, str)]
    if not any(map(is_code, texts)):
        return found
    return {
        place: one._replace(labels=[str(label) if type(label) is int else label for label in one.labels])
        if one.written
        else one
        for place, one in found.items()
    }


def _usual(found: dict[int, Contents]) -> Contents:
    """Return the first shard whose columns are the most frequent ones."""
    ordered = [found[place] for place in sorted(found)]
    kinds = [sorted(one.names) if one.names is not None else one.may_be_wider or one.n_features for one in ordered]
    return ordered[max(range(len(kinds)), key=lambda place: (kinds.count(kinds[place]), -place))]


def _check_columns(one: Contents, first: Contents, as_in: str) -> None:
    if first.names is not None:
        order_of(one.names, first.names, as_in)
    elif one.names is not None:
        raise InputError("", "the columns", f"must have no names, {as_in}", _some(one.names))
    elif one.n_features != first.n_features and not (
        one.may_be_wider and (first.may_be_wider or one.n_features < first.n_features)
    ):
        raise InputError("", "its rows", f"must have {first.n_features} features, {as_in}", str(one.n_features))


def _check_labels(one: Contents, text: bool, named: NDArray[Any] | None) -> None:
    strange = [label for label in one.labels if isinstance(label, str) != text]
    if strange:
        what = "text" if text else "numbers"
        raise InputError("", "its labels", f"must be {what}, as in other shards", repr(strange[0]))
    unknown = [] if named is None else [label for label in one.labels if label not in named.tolist()]
    if named is not None and unknown:
        must = f"must be among the classes {named.tolist()[:20]}"
        raise InputError("", "its labels", must, repr(unknown[0]), "Pass all possible labels as classes.")


def order_of(found: list[str] | None, names: list[str], as_in: str = "as in other shards") -> list[int] | None:
    """Return the positions of the named columns among those found, or None if they are the same."""
    if found == names:
        return None
    if found is None or sorted(found) != sorted(names):
        got = "columns without names" if found is None else _difference(found, names)
        raise InputError("", "the columns", f"must be {_some(names)}, {as_in}", got)
    return [found.index(name) for name in names]


def _difference(found: list[str], names: list[str]) -> str:
    less, more = [name for name in names if name not in found], [name for name in found if name not in names]
    return " and ".join([f"none named {_some(less)}"] * bool(less) + [f"others, {_some(more)}"] * bool(more))


def _some(names: list[str]) -> str:
    return ", ".join(map(repr, names[:5])) + (f" and {len(names) - 5} others" if len(names) > 5 else "")
