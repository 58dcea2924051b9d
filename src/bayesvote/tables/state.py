"""State of the columns of a table and of their features."""

from typing import NamedTuple

import numpy as np
from numpy.typing import NDArray

from bayesvote.core.checks import Array
from bayesvote.core.rows import LARGEST
from bayesvote.core.state import require, within
from bayesvote.tables.date_texts import Order
from bayesvote.tables.kinds import CIRCLES, NUMERIC, Kind, Role
from bayesvote.tables.statistics import FIRST, Statistics

_CIRCULAR = [Role.SIN, Role.COS]

# For every column, the index of each feature by its role and its circle, bucket or text.
Places = list[dict[tuple[Role, int | str], int]]


class ColumnsState(NamedTuple):
    """State of c columns and their f features."""

    kinds: NDArray[np.int8]  # (c,)
    numbers: Array  # (c,): number of numbers that were learned
    total: Array  # (c,): sum of these numbers
    base: NDArray[np.int16]  # (c, 3): hour, weekday and month of the first date; -1 before it
    source: NDArray[np.int32]  # (f,): column of the feature
    role: NDArray[np.int8]  # (f,): role of the feature
    place: NDArray[np.int32]  # (f,): circle or bucket
    width: NDArray[np.int64]  # (1,): reserved features, of which f are in use
    order: NDArray[np.int8]  # (c,): order of day and month in dates such as 01/02/2020


def empty(n_columns: int, n_features: int) -> ColumnsState:
    """Return the state of columns before any row."""
    return ColumnsState(
        np.zeros(n_columns, dtype=np.int8),
        np.zeros(n_columns),
        np.zeros(n_columns),
        np.full((n_columns, len(CIRCLES)), -1, dtype=np.int16),
        np.zeros(n_features, dtype=np.int32),
        np.zeros(n_features, dtype=np.int8),
        np.zeros(n_features, dtype=np.int32),
        np.zeros(1, dtype=np.int64),
        np.zeros(n_columns, dtype=np.int8),
    )


def check(
    state: ColumnsState,
    statistics: Statistics,
    names: list[str],
    texts: list[str],
    stated: dict[str, Kind],
    max_texts: int,
    n_buckets: int,
) -> None:
    """Raise an error for a state that cannot result from learning."""
    c, f = len(names), len(texts)
    require(c > 0 and len(set(names)) == c, "names must be different")
    require(bool(np.all((state.kinds >= 0) & (state.kinds <= max(Kind)))), "kinds must be those of columns")
    for name, kind in stated.items():
        require(name in names and state.kinds[names.index(name)] == kind, "kinds must be those stated")
    require(bool(np.all(np.isfinite(state.total) & (state.numbers >= 0))), "numbers must be at least 0, total finite")
    reach = LARGEST * (1 + 1e-9) * state.numbers
    require(bool(np.all(np.abs(state.total) <= reach)), "total must be within reach of the numbers")
    require(bool(np.all((state.base >= -1) & (state.base < [24, 7, 12]))), "base must be of hours, weekdays, months")
    require(bool(np.all((state.source >= 0) & (state.source < c))), "source must be among the columns")
    require(bool(np.all((state.role >= 0) & (state.role <= max(Role)))), "role must be one of those known")
    most = np.where(state.role == Role.BUCKET, n_buckets, np.where(np.isin(state.role, _CIRCULAR), len(CIRCLES), 1))
    most[state.role == Role.STATISTIC] = statistics.width
    require(bool(np.all((state.place >= 0) & (state.place < most))), "place must be of a circle or bucket")
    is_text = state.role == Role.TEXT
    require(all((text != "") == bool(flag) for text, flag in zip(texts, is_text, strict=True)), "texts must fit")
    per_column = np.bincount(state.source[is_text], minlength=c)
    require(not np.any(per_column > max_texts), "texts must not be more than max_texts")
    require(within(state.order, 0, max(Order)), "order must be one of those known")
    require(f <= state.width[0] <= 2**31 - 1, "width must be at least that of the features in use")
    _check_kinds(state, c)
    _check_statistics(state, statistics, c)


def _check_kinds(state: ColumnsState, c: int) -> None:
    """Raise an error if the state of a column does not fit its kind."""
    features = np.zeros((c, len(Role)), dtype=np.intp)
    np.add.at(features, (state.source, state.role), 1)
    numeric = np.isin(state.kinds, list(NUMERIC))
    require(np.array_equal(features[:, Role.NUMBER], numeric), "columns of numbers must have one number each")
    require(not np.any(state.numbers[~numeric]), "numbers must be 0 in columns of none")
    require(bool(np.all(features[state.kinds == Kind.CATEGORY, Role.NEW])), "categories must tell new texts")
    of_none = np.isin(state.kinds, [Kind.UNKNOWN, Kind.DROP])
    require(not np.any(features[of_none]), "columns of no kind must have no features")
    dated = (state.kinds == Kind.DATE) & (state.numbers > 0)
    require(np.array_equal(state.base >= 0, np.repeat(dated[:, None], len(CIRCLES), axis=1)), "base must be of dates")
    require(not np.any(features[~dated][:, _CIRCULAR]), "circles must be of dates")


def _check_statistics(state: ColumnsState, statistics: Statistics, c: int) -> None:
    """Raise an error for statistics of columns without counts, or hashes of columns with counts."""
    features = np.zeros((c, len(Role)), dtype=np.intp)
    np.add.at(features, (state.source, state.role), 1)
    counted = np.isin(np.arange(c), list(statistics.values))
    found = features[:, Role.STATISTIC]
    require(not np.any(features[counted, Role.BUCKET]), "columns with statistics must have no hashes")
    some = np.isin(np.arange(c), [j for j, values in statistics.values.items() if len(values.slots) > FIRST])
    require(np.array_equal(found, np.where(some, statistics.width, 0)), "statistics must be of many values")


class NewFeature(NamedTuple):
    """A new feature for the rows after a row."""

    row: int
    column: int
    role: Role
    place: int = 0
    text: str = ""


def feature_name(name: str, role: Role, place: int, text: str) -> str:
    """Return the name of a feature."""
    return {
        Role.NUMBER: name,
        Role.MISSING: f"{name} is missing",
        Role.NEW: f"{name} is new",
        Role.TEXT: f"{name} = {text}",
        Role.BUCKET: f"{name} has hash {place}",
        Role.SIN: f"sine of the {CIRCLES[place % 3]} of {name}",
        Role.STATISTIC: f"{name} speaks for class {place}",
        Role.COS: f"cosine of the {CIRCLES[place % 3]} of {name}",
    }[role]
