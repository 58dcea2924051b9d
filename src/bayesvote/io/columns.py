"""Selection of a table's columns: the features and the label."""

from collections.abc import Callable, Mapping, Sequence
from typing import NamedTuple

from bayesvote.core.checks import InputError, did_you_mean


class ColumnChoice(NamedTuple):
    """Positions of the columns to read: the features, and the label unless there is none.

    ``default`` is True if the label is the last column because no target was given.
    """

    features: list[int]
    label: int | None
    default: bool = False


class Header(NamedTuple):
    """The names of a table's columns, and the positions of those in which pandas saved the index."""

    names: list[str]
    pandas_index: frozenset[int] = frozenset()


Choose = Callable[[Header], ColumnChoice]


class ColumnRequest(NamedTuple):
    """The user's choice of columns: the kinds of some, "drop" among them, and the names of the features."""

    kinds: Mapping[str, str]
    features: Sequence[str] | None = None

    def check(self, who: str, source: str, names: Sequence[str]) -> None:
        """Raise an error for a column that the table does not have."""
        for subject, requested in (("columns", self.kinds), ("features", self.features or ())):
            for name in requested:
                if name not in names:
                    must = f"must name columns of {source}, {listed(names)}"
                    raise InputError(who, subject, must, repr(name), did_you_mean(name, names))

    def has(self, name: str) -> bool:
        """Return True if the model learns from this column."""
        return self.kinds.get(name) != "drop" and (self.features is None or name in self.features)

    @property
    def stated(self) -> dict[str, str]:
        """The kinds of the columns that are not dropped."""
        return {name: kind for name, kind in self.kinds.items() if kind != "drop"}


def labelled_columns(
    who: str, source: str, header: Header, target: str | int | None, request: ColumnRequest
) -> ColumnChoice:
    """Choose the label's column, by name or position (None for the last one), and all others as features."""
    names = header.names
    request.check(who, source, names)
    data = [j for j in range(len(names)) if j not in header.pandas_index]
    label: int | None = None
    if target is None:
        label = data[-1] if data else None
    elif isinstance(target, str):
        label = names.index(target) if target in names else None
    elif -len(data) <= target < len(data):
        label = data[target]
    if label is None:
        must = f"must be a column of {source}, {listed(names)}"
        raise InputError(who, "target", must, repr(target), did_you_mean(str(target), names))
    if target is None:
        label = next((j for j in reversed(data) if request.kinds.get(names[j]) != "drop"), label)
    candidates = data if request.features is None else range(len(names))
    features = [j for j in candidates if j != label and request.has(names[j])]
    if not features:
        raise InputError(who, source, "must have a label and at least one feature", f"only {names[label]!r}")
    return ColumnChoice(features, label, target is None)


def feature_columns(
    who: str,
    source: str,
    header: Header,
    n_features: int,
    feature_names: Sequence[str] | None,
    target: str | int | None,
) -> ColumnChoice:
    """Choose features only: by name, or else all columns except the label's, which may be missing."""
    names = header.names
    labelled = None if target is None else labelled_columns(who, source, header, target, ColumnRequest({}))
    if feature_names is not None:
        for name in feature_names:
            if name not in names:
                must = f"must have the column {name!r} of the model"
                raise InputError(who, source, must, listed(names), did_you_mean(name, names))
        return ColumnChoice([names.index(name) for name in feature_names], None)
    if labelled is not None:
        features = labelled.features
    else:
        features = [j for j in range(len(names)) if j not in header.pandas_index]
        # A single extra column is the label.
        features = features[:n_features] if len(features) == n_features + 1 else features
    if len(features) != n_features:
        must = f"must have the model's {n_features} features, with or without a label"
        left = "" if labelled is None else f", of which target={target!r} leaves {len(features)}"
        raise InputError(who, source, must, f"{len(names)} columns{left}")
    return ColumnChoice(features, None)


def listed(names: Sequence[str], most: int = 40) -> str:
    """Join names with commas, showing only the first of many.

    >>> listed(["a", "b", "c"], most=2)
    'a, b, and 1 more'
    """
    first = ", ".join(names[:most])
    return first if len(names) <= most else f"{first}, and {len(names) - most} more"
