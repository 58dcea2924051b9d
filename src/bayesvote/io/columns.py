"""Which columns of a table are the features, and which is the label."""

from collections.abc import Callable, Mapping, Sequence
from typing import NamedTuple

from bayesvote.core.checks import InputError, did_you_mean


class Columns(NamedTuple):
    """Which columns of a table to read, by their places: the features, and the label unless there is none.

    ``default`` says that the label is the last column because nobody has named it.
    """

    features: list[int]
    label: int | None
    default: bool = False


class Header(NamedTuple):
    """The names of a table's columns, and the places of those that pandas keeps as the rows' index."""

    names: list[str]
    kept: frozenset[int] = frozenset()


Choose = Callable[[Header], Columns]


class Wanted(NamedTuple):
    """What the user says of the columns: the kinds of some, "drop" among them, and the names of the features."""

    kinds: Mapping[str, str]
    features: Sequence[str] | None = None

    def check(self, who: str, source: str, names: Sequence[str]) -> None:
        """Refuse columns that the table does not have."""
        for subject, asked in (("columns", self.kinds), ("features", self.features or ())):
            for name in asked:
                if name not in names:
                    must = f"must name columns of {source}, {listed(names)}"
                    raise InputError(who, subject, must, repr(name), did_you_mean(name, names))

    def has(self, name: str) -> bool:
        """Whether a column is to be learned from."""
        return self.kinds.get(name) != "drop" and (self.features is None or name in self.features)

    @property
    def stated(self) -> dict[str, str]:
        """The kinds of the columns that are to be learned from."""
        return {name: kind for name, kind in self.kinds.items() if kind != "drop"}


def labelled_columns(who: str, source: str, header: Header, target: str | int | None, wanted: Wanted) -> Columns:
    """All columns: the label's by its name or place, the last one for None, and the others as features."""
    names = header.names
    wanted.check(who, source, names)
    data = [j for j in range(len(names)) if j not in header.kept]
    place: int | None = None
    if target is None:
        place = data[-1] if data else None
    elif isinstance(target, str):
        place = names.index(target) if target in names else None
    elif -len(data) <= target < len(data):
        place = data[target]
    if place is None:
        must = f"must be a column of {source}, {listed(names)}"
        raise InputError(who, "target", must, repr(target), did_you_mean(str(target), names))
    if target is None:
        place = next((j for j in reversed(data) if wanted.kinds.get(names[j]) != "drop"), place)
    chosen = data if wanted.features is None else range(len(names))
    features = [j for j in chosen if j != place and wanted.has(names[j])]
    if not features:
        raise InputError(who, source, "must have a label and at least one feature", f"only {names[place]!r}")
    return Columns(features, place, target is None)


def feature_columns(
    who: str,
    source: str,
    header: Header,
    n_features: int,
    feature_names: Sequence[str] | None,
    target: str | int | None,
) -> Columns:
    """Features only: by their names, or else all columns but that of the label, which may be there or not."""
    names = header.names
    asked = None if target is None else labelled_columns(who, source, header, target, Wanted({}))
    if feature_names is not None:
        for name in feature_names:
            if name not in names:
                must = f"must have the column {name!r} of the model"
                raise InputError(who, source, must, listed(names), did_you_mean(name, names))
        return Columns([names.index(name) for name in feature_names], None)
    if asked is not None:
        features = asked.features
    else:
        features = [j for j in range(len(names)) if j not in header.kept]
        # If there is one column too many, the last one is the label.
        features = features[:n_features] if len(features) == n_features + 1 else features
    if len(features) != n_features:
        must = f"must have the model's {n_features} features, with or without a label"
        left = "" if asked is None else f", of which target={target!r} leaves {len(features)}"
        raise InputError(who, source, must, f"{len(names)} columns{left}")
    return Columns(features, None)


def listed(names: Sequence[str], most: int = 40) -> str:
    """Names in a sentence, the first of many.

    >>> listed(["a", "b", "c"], most=2)
    'a, b, and 1 more'
    """
    first = ", ".join(names[:most])
    return first if len(names) <= most else f"{first}, and {len(names) - most} more"
