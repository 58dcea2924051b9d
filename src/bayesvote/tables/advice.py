"""Warnings about columns whose kind is probably wrong, or that should be left out."""

from collections.abc import Iterator, Mapping

import numpy as np
from numpy.typing import NDArray

from bayesvote.core.checks import Advice, Argument, Array, Labels
from bayesvote.tables.cells import Cells, Sort, Table
from bayesvote.tables.date_texts import of_digits
from bayesvote.tables.kinds import Kind

_LEAST_ROWS = 50  # fewer rows are not enough
_LEAST_FOR_LEAKS = 150
_SOME_ROWS = 2000  # rows to check, spread over the table
_DIFFERENT = 0.95  # share of different values in a column of identifiers
_MAJORITY = 0.95  # share of a label beyond which nearly every column predicts it
_ALONE = 0.999  # share of the rows whose label a column predicts by itself


def advice(table: Table, kinds: Mapping[str, Kind], y: Labels) -> Iterator[tuple[str, Advice]]:
    """Yield the names of suspicious columns and a warning for each. ``kinds`` names the columns to check."""
    if table.n < _LEAST_ROWS:
        return
    some = np.unique(np.linspace(0, table.n - 1, min(table.n, _SOME_ROWS)).astype(np.intp))
    for name, kind in kinds.items():
        found = _suspicion(name, table.columns[name], kind, y, some)
        if found:
            yield name, found


def _suspicion(name: str, cells: Cells, kind: Kind, y: Labels, some: NDArray[np.intp]) -> Advice:
    part, labels = cells.take(some), y[some]
    known = ~part.missing()
    part, labels = part.take(np.flatnonzero(known)), labels[known]
    if len(labels) < _LEAST_ROWS:
        return ""
    if kind == Kind.CATEGORY:
        values = np.unique(part.as_texts().codes, return_inverse=True)[1]
    elif np.any(part.codes >= 0):
        return ""
    else:
        values = np.unique(part.numbers, return_inverse=True)[1]
    if _tells(values, labels, ordered=kind != Kind.CATEGORY):
        return (
            "predicts the label alone. If it is known only after the label, leave it out with ",
            _stated(name, "drop"),
            ".",
        )
    if kind == Kind.DATE:
        return ""
    if kind == Kind.NUMBER and _are_dates(part):
        return (
            f"holds numbers such as {part.numbers[0]:.0f}, which look like dates and are read as numbers. ",
            "State ",
            _stated(name, "date"),
            " to read dates, or ",
            _stated(name, "number"),
            " if numbers are meant.",
        )
    whole = bool(np.all(part.numbers == np.floor(part.numbers)))
    if (kind == Kind.CATEGORY or (kind == Kind.NUMBER and whole)) and _differ(values):
        n, different = _counts(cells, kind)
        if different >= _DIFFERENT * n:
            return (
                f"looks like an identifier: {different:,} of {n:,} values are different. Leave it out with ",
                _stated(name, "drop"),
                ", or state its kind, for example ",
                _stated(name, kind.name.lower()),
                ". Turn free text into numbers first, for example with scikit-learn's HashingVectorizer.",
            )
    return ""


def _stated(name: str, kind: str) -> Argument:
    return Argument("columns", {name: kind})


def _differ(values: NDArray[np.intp]) -> bool:
    return bool(values.max() + 1 >= _DIFFERENT * len(values))


def _counts(cells: Cells, kind: Kind) -> tuple[int, int]:
    """Return the number of values of a column, and of different values."""
    if kind == Kind.CATEGORY:
        codes = cells.as_texts().codes
        return int(np.count_nonzero(codes >= 0)), len(np.unique(codes[codes >= 0]))
    numbers: Array = cells.numbers[~np.isnan(cells.numbers)]
    return len(numbers), len(np.unique(numbers))


def _are_dates(cells: Cells) -> bool:
    numbers = cells.numbers
    if np.any(cells.sorts != Sort.NUMBER) or not 19000101 <= numbers.min() <= numbers.max() <= 21001231:
        return False
    return all(of_digits(number) is not None for number in np.unique(numbers).tolist())


def _tells(values: NDArray[np.intp], y: Labels, *, ordered: bool) -> bool:
    """Return True if repeated values, or thresholds of numbers, predict nearly all labels."""
    n, n_classes = len(y), int(y.max()) + 1
    if n < _LEAST_FOR_LEAKS or np.bincount(y).max() > _MAJORITY * n:
        return False
    counts = np.zeros((int(values.max()) + 1, n_classes))
    np.add.at(counts, (values, y), 1)
    rows = counts.sum(axis=1)
    repeated = rows > 1
    right = counts.max(axis=1)
    if rows[repeated].sum() >= 0.9 * n and right.sum() >= _ALONE * n and len(rows) <= n / 4:
        return True
    if not ordered or right.sum() < _ALONE * n:
        return False
    best = counts.argmax(axis=1)
    return bool(np.count_nonzero(np.diff(best)) < len(np.unique(y)))
