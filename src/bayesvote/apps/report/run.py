"""The report of one run over a stream."""

import math
from collections.abc import Callable, Mapping
from typing import Any

import numpy as np
from numpy.typing import NDArray

from bayesvote.apps.report._decisions import by_label, calibration
from bayesvote.apps.report.blocks import (
    DASH,
    Block,
    Cell,
    Chart,
    Charts,
    Facts,
    Report,
    Section,
    Series,
    TableBlock,
    Text,
    number,
)
from bayesvote.core.version import versions
from bayesvote.evaluation import Tally

_TOP = 20  # members in the table of weights

ColumnArrays = dict[str, NDArray[Any]]


def run_report(
    title: str, tallies: Mapping[str, Tally], weights: Any, settings: Mapping[str, object], importances: Any = None
) -> Report:
    """Make the report of a run: metrics, error curves, labels, calibration, weights, columns, settings, versions.

    Parameters
    ----------
    title
        Title of the page.
    tallies
        Metrics of each model by its name; empty for a model that is only inspected.
    weights
        Table of weights from ``BayesianEnsembleClassifier.weights_``, or None.
    settings
        Settings of the run.
    importances
        Table of columns from ``BayesianEnsembleClassifier.importances``, or None.
    """
    sections = []
    if tallies:
        sections.append(Section("Metrics", [_figures(tallies)], lead="Each row was predicted before it was learned."))
        sections.append(Section("Error along the stream", [_curves(tallies)]))
        sections.append(by_label(tallies))
        sections += [section for section in [calibration(tallies)] if section is not None]
    if weights is not None:
        sections.append(_weights(weights))
    if importances is not None:
        sections.append(_columns(importances))
    sections.append(Section("Settings", [Facts(settings) if settings else Text("No settings were given.")]))
    sections.append(Section("Versions", [Facts(versions())]))
    return Report(title, _lead(tallies), sections)


def _lead(tallies: Mapping[str, Tally]) -> str:
    if not tallies:
        return ""
    name, best = min(tallies.items(), key=lambda item: item[1].error)
    lead = f"{len(tallies)} models on one stream. {name} has the lowest error, {number(best.error)}."
    if len(tallies) == 1:
        lead = f"{best.mistakes:,} of {best.rows:,} predictions were wrong: an error of {number(best.error)}."
    if not best.rows:
        return lead
    baseline = f"Always predicting {best.majority}, the most frequent label, has an error of"
    return f"{lead} {baseline} {number(best.majority_error)}."


def _figures(tallies: Mapping[str, Tally]) -> TableBlock:
    columns: dict[str, tuple[Callable[[Tally], float], int, Callable[[list[float]], float] | None]] = {
        "rows": (lambda tally: tally.rows, 0, None),
        "error": (lambda tally: tally.error, 4, np.nanmin),
        "kappa": (lambda tally: tally.kappa, 4, np.nanmax),
        "balanced accuracy": (lambda tally: tally.balanced_accuracy, 4, np.nanmax),
        "Brier score": (lambda tally: tally.brier, 4, np.nanmin),
        "log-loss": (lambda tally: tally.log_loss, 4, np.nanmin),
        "rows/s": (lambda tally: tally.rows / tally.seconds if tally.seconds else np.nan, 0, np.nanmax),
    }
    rows: list[list[str | Cell]] = [[name] for name in tallies]
    for read, digits, best_of in columns.values():
        values = [read(tally) for tally in tallies.values()]
        compared = best_of is not None and np.count_nonzero(~np.isnan(values)) > 1
        best = best_of(values) if best_of is not None and compared else np.nan
        for row, value in zip(rows, values, strict=True):
            row.append(Cell(number(value, digits), bold=value == best))
    first = next(iter(tallies.values()))
    if first.rows:
        of_majority = [first.rows, first.majority_error, 0.0, 1 / np.count_nonzero(first.confusion.sum(axis=1))]
        cells = [number(value, digits) for value, digits in zip(of_majority, (0, 4, 4, 4), strict=True)]
        rows.append([f"always {first.majority}", *cells, *[DASH] * (len(columns) - len(cells))])
    return TableBlock("Metrics of the models", ["model", *columns], rows)


def _curves(tallies: Mapping[str, Tally]) -> Charts:
    cumulative, windowed = [], []
    for name, tally in tallies.items():
        rows, error, recent = tally.curve
        # The errors of the first few rows would dominate the scale.
        shown = rows * 50 >= tally.rows
        cumulative.append(Series(name, rows[shown], error[shown]))
        windowed.append(Series(name, rows[shown], recent[shown]))
    first = next(iter(tallies.values()))
    ends = np.asarray(cumulative[0].x)[[0, -1]] if first.rows else np.zeros(0)
    always = [Series(f"always {first.majority}", ends, np.full(2, first.majority_error))] if first.rows else []
    charts = [Chart("Error of all rows so far", "rows", "error", cumulative + always)]
    # A window of all rows would show the same curve again.
    if any(tally.rows > tally.window for tally in tallies.values()):
        windows = " or ".join(f"{window:,}" for window in sorted({tally.window for tally in tallies.values()}))
        charts.append(Chart(f"Error of the last {windows} rows", "rows", "error", windowed))
    return Charts(charts)


def weight_columns(weights: Any) -> ColumnArrays:
    """Return the columns of a table of weights, which is a DataFrame or a structured array."""
    names = weights.dtype.names if isinstance(weights, np.ndarray) else weights.columns
    return {name: np.asarray(weights[name]) for name in names}


def _weights(weights: Any) -> Section:
    table = weight_columns(weights)
    parameters = [name.removeprefix("mean") for name in table if name.startswith("mean")]
    order = np.argsort(-table[f"mean{parameters[0]}"], kind="stable")
    table = {"member": np.arange(len(order))[order]} | {name: values[order] for name, values in table.items()}
    blocks: list[Block] = [Charts([_weight_chart(table, parameter) for parameter in parameters])]
    blocks.append(_weight_table(table))
    return Section("Weights", blocks, lead="Members in the order of their weights.")


def _columns(importances: Any) -> Section:
    table = weight_columns(importances)
    rows = [
        [str(name), number(float(share))]
        for name, share in zip(table["column"][:_TOP], table["importance"][:_TOP], strict=True)
    ]
    n = len(table["column"])
    note = f"The other {n - _TOP:,} columns are left out." if n > _TOP else ""
    lead = (
        "Mean absolute effect of each column on the decisions about the rows that the members keep, as a share of the "
        "sum."
    )
    return Section(
        "Columns", [TableBlock("Columns with the largest effect on decisions", ["column", "share"], rows, note)], lead
    )


def importances_of(model: Any) -> Any:
    """Return the importances of a classifier's columns; None if it keeps no rows to compute them from."""
    try:
        return model.importances()
    except AttributeError:
        return None


def _weight_chart(table: ColumnArrays, parameter: str) -> Chart:
    rank = np.arange(1, len(table["member"]) + 1)
    band = [table[side + parameter] for side in ("lower", "upper") if side + parameter in table]
    name = "posterior mean and 95% credible interval" if band else "weight"
    series = Series(name, rank, table[f"mean{parameter}"], *band)
    caption = "Weights" if not parameter else f"Weights, parameter {parameter.removeprefix('_')}"
    return Chart(caption, "rank of the member", "weight", [series])


def _weight_table(table: ColumnArrays) -> TableBlock:
    n = len(table["member"])
    numbers = {
        name: [number(value, _decimals(values)) for value in values[:_TOP]]
        for name, values in table.items()
        if name not in ("member", "kind")
    }
    rows = [
        [str(member), str(kind), *(texts[k] for texts in numbers.values())]
        for k, (member, kind) in enumerate(zip(table["member"][:_TOP], table["kind"][:_TOP], strict=True))
    ]
    note = f"The other {n - _TOP:,} members are left out." if n > _TOP else ""
    header = ["member", "kind", *(name.replace("_", " ") for name in numbers)]
    return TableBlock("Largest weights" if note else "Weights of all members", header, rows, note)


def _decimals(values: NDArray[Any]) -> int:
    """Return the number of decimals that shows four digits of the largest value."""
    known = np.abs(values[np.isfinite(values)])
    top = float(known.max(initial=0))
    return min(max(3 - math.floor(math.log10(top)), 0), 12) if top else 4
