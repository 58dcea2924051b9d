"""Explanations as tables, by the columns of X."""

from collections.abc import Iterator, Mapping
from importlib import import_module
from importlib.util import find_spec
from typing import Any, NamedTuple

import numpy as np
from numpy.typing import NDArray

from bayesvote.core.checks import Array, InputError, Labels
from bayesvote.core.rows import Rows
from bayesvote.ensemble import Ensemble
from bayesvote.estimators._validation import encoded_rows, given_table
from bayesvote.estimators.fitted import Fitted
from bayesvote.members.attribution import Explanation
from bayesvote.tables import Sort, Table

START, OTHERS, NOT_TOLD = "(start)", "(other columns)", "(not told)"
RECENT = 512  # rows kept by members, over which importances are averaged
_PIECE = 4_000_000  # most values of the rows that are explained at a time

Arrays = dict[str, NDArray[Any]]


class ColumnMap(NamedTuple):
    """Names of the columns of X, and the column behind every feature of the model."""

    names: NDArray[Any]  # (columns,)
    of_feature: Labels | None = None  # (d,), -1 for unused features; None if every column is a feature


def as_table(columns: Mapping[str, NDArray[Any]], index: str = "") -> Any:
    """Return columns as a DataFrame, or as a structured array if pandas is not installed.

    Both support ``table["mean"]`` and ``len``. ``index`` is the name of the index.
    """
    if find_spec("pandas"):
        pandas = import_module("pandas")
        n = len(next(iter(columns.values())))
        return pandas.DataFrame(dict(columns), index=pandas.RangeIndex(n, name=index or None))
    table = np.empty(
        len(next(iter(columns.values()))), dtype=[(name, values.dtype) for name, values in columns.items()]
    )
    for name, values in columns.items():
        table[name] = values
    return table


def by_column(found: Explanation, columns: ColumnMap) -> Explanation:
    """Return an explanation by columns: the sums of the features' parts, and the maximum of their shares."""
    if columns.of_feature is None:
        return found
    used, unused = np.flatnonzero(columns.of_feature >= 0), np.flatnonzero(columns.of_feature < 0)
    order = used[np.argsort(columns.of_feature[used], kind="stable")]
    owners, first = np.unique(columns.of_feature[order], return_index=True)
    parts, looked = (np.zeros((len(found.lead), len(columns.names))) for _ in range(2))
    if len(order):
        parts[:, owners] = np.add.reduceat(found.parts[:, order], first, axis=1)
        looked[:, owners] = np.maximum.reduceat(found.looked[:, order], first, axis=1)
    # Unused features belong to no column and move almost nothing, so they count to the start.
    start = found.start + found.parts[:, unused].sum(axis=1)
    return found._replace(parts=parts, looked=looked, start=start)


def pieces(model: Ensemble, rows: Rows, columns: ColumnMap) -> Iterator[tuple[int, Explanation]]:
    """Yield explanations of blocks of rows that fit into memory, each with the index of its first row."""
    size = max(1, _PIECE // max(rows.width, 1))
    for first in range(0, rows.n, size):
        yield first, by_column(model.explain(rows.part(first, min(first + size, rows.n))), columns)


def importances(model: Ensemble, rows: Rows, columns: ColumnMap) -> Array:
    """Return the mean absolute part of each column in the leads of these rows, as shares of the sum."""
    total = np.zeros(len(columns.names))
    for _, found in pieces(model, rows, columns):
        total += np.abs(found.parts).sum(axis=0)
    return total / total.sum() if total.any() else total


def ranked(found: Explanation, first: int, columns: ColumnMap, values: NDArray[Any], top: int | None) -> Arrays:
    """Return table columns for a block of rows: its columns by how much they moved each row, then the rest."""
    n, d = found.parts.shape
    kept = d if top is None else min(top, d)
    order = np.argsort(-np.abs(found.parts), axis=1, kind="stable")[:, :kept]
    row = np.arange(n)[:, None]
    moved = found.parts[row, order]
    rest = {START: found.start, NOT_TOLD: found.remainder}
    if kept < d:
        rest = {OTHERS: found.parts.sum(axis=1) - moved.sum(axis=1)} | rest
    gap = np.full((n, len(rest)), np.nan)
    names = np.broadcast_to(np.array([*rest], dtype=object), (n, len(rest)))
    shown = values[row, order]
    empty = gap if shown.dtype.kind == "f" else np.full(gap.shape, None, dtype=object)
    table = {
        "row": np.broadcast_to(first + row, (n, kept + len(rest))),
        "column": np.hstack([columns.names[order].astype(object), names]),
        "value": np.hstack([shown, empty]),
        "moved": np.hstack([moved, np.column_stack([*rest.values()])]),
        "looked": np.hstack([found.looked[row, order], gap]),
    }
    return {name: values.reshape(-1) for name, values in table.items()}


def given_values(table: Table, names: list[str]) -> NDArray[Any]:
    """Return the cells (n, columns) of a table as values; None for missing ones and dropped columns."""
    out = np.empty((table.n, len(names)), dtype=object)
    for name, cells in table.columns.items():
        j = names.index(name)
        for t, (number, sort, code) in enumerate(
            zip(cells.numbers.tolist(), cells.sorts.tolist(), cells.codes.tolist(), strict=True)
        ):
            if code >= 0:
                out[t, j] = cells.texts[code]
            elif number == number:
                out[t, j] = _read(number, sort)
    return out


def _read(number: float, sort: int) -> Any:
    if sort == Sort.BOOLEAN:
        return bool(number)
    return str(np.datetime64(round(number), "s")) if sort == Sort.DATE else number


def joined(parts: list[Arrays]) -> Arrays:
    """Concatenate the columns of several tables, with names as strings of one width."""
    whole = {name: np.concatenate([part[name] for part in parts]) for name in parts[0]}
    return whole | {"column": whole["column"].astype(str)}


def column_map(fitted: Fitted[Ensemble]) -> ColumnMap:
    """Return the user's columns; no other code knows which of them a feature of the model was made of."""
    names = [f"x{j}" for j in range(fitted.n_features)] if fitted.names is None else fitted.names
    if fitted.columns is None:
        return ColumnMap(np.asarray(names))
    of_feature = np.full(fitted.width, -1, dtype=np.intp)
    source = fitted.columns.source_columns()
    of_feature[: len(source)] = source
    return ColumnMap(np.asarray(names), of_feature)


def kept_rows(who: str, fitted: Fitted[Ensemble]) -> Rows:
    """Return the last of the rows that members keep."""
    bank = fitted.model.bank
    kept = bank.kept_rows()
    if kept is None:
        raise AttributeError(
            f"{who}: feature_importances_ needs members that keep rows, trees or ferns, got {bank.who}. "
            "Pass rows: importances(X)."
        )
    return fitted.model.checked(kept[-RECENT:])


def explanation(who: str, fitted: Fitted[Ensemble], X: Any, top: int | None) -> Any:
    """Return the table of ``BayesianEnsembleClassifier.explain``. The caller holds the read lock."""
    rows, columns = encoded_rows(who, fitted, X), column_map(fitted)
    if not rows.n:
        raise InputError(f"{who}.explain", "X", "must have at least one row", "none")
    parts: list[Arrays] = []
    for first, found in pieces(fitted.model, rows, columns):
        last = first + len(found.lead)
        if fitted.columns is None:
            values: NDArray[Any] = rows.todense(first, last)
        else:
            values = given_values(given_table(who, fitted, X).part(first, last), fitted.columns.names)
        part = ranked(found, first, columns, values, top)
        each = np.repeat(np.arange(len(found.lead)), len(part["row"]) // max(len(found.lead), 1))
        head = {
            "row": part.pop("row"),
            "label": fitted.classes[found.decision][each],
            "over": fitted.classes[found.runner_up][each],
            "lead": found.lead[each],
        }
        parts.append(head | part)
    return as_table(joined(parts))
