"""Plots of weights and explanations. They need matplotlib: ``pip install 'bayesvote[plots]'``."""

from typing import TYPE_CHECKING, Any

import numpy as np

from bayesvote.core.checks import InputError, InputTypeError, integer
from bayesvote.estimators import BayesianEnsembleClassifier

if TYPE_CHECKING:
    from matplotlib.axes import Axes

_FOR, _AGAINST = "#1f77b4", "#d62728"


def plot_weights(model: BayesianEnsembleClassifier, top: int = 20, ax: "Axes | None" = None) -> "Axes":
    """Plot the largest weights, with 95% credible intervals if the weighter has a posterior.

    Parameters
    ----------
    model
        A fitted classifier.
    top
        Number of members to show.
    ax
        Axes to draw on; by default new ones.
    """
    table = _classifier("plot_weights", model).weights_
    integer("plot_weights", "top", top)
    names = table.dtype.names if isinstance(table, np.ndarray) else list(table.columns)
    end = "" if "mean" in names else "_1"
    mean = np.asarray(table[f"mean{end}"])
    order = np.argsort(-mean, kind="stable")[:top]
    axes = _axes("plot_weights", ax, len(order))
    place = np.arange(len(order))
    if f"lower{end}" in names:
        lower, upper = (np.asarray(table[f"{side}{end}"])[order] for side in ("lower", "upper"))
        axes.hlines(place, lower, upper, color=_FOR, alpha=0.4, linewidth=3)
    axes.plot(mean[order], place, "o", color=_FOR, markersize=5)
    axes.axvline(0.0, color="0.6", linewidth=0.8, zorder=0)
    kinds = np.asarray(table["kind"])[order]
    _name(axes, [f"{kind} {member}" for kind, member in zip(kinds, order, strict=True)])
    axes.set_xlabel("weight" + (", with its 95% interval" if f"lower{end}" in names else ""))
    return axes


def plot_explanation(
    model: BayesianEnsembleClassifier, X: Any, row: int = 0, top: int = 10, ax: "Axes | None" = None
) -> "Axes":
    """Plot how much each column moved the decision for a row: to the right for it, to the left against it.

    Parameters
    ----------
    model
        A fitted classifier.
    X
        Rows, as in ``explain``.
    row
        Index of the row.
    top
        Number of columns to show, those that moved it most. The others are summed.
    ax
        Axes to draw on; by default new ones.
    """
    table = _classifier("plot_explanation", model).explain(X, top=top)
    chosen = np.flatnonzero(np.asarray(table["row"]) == row)
    if not len(chosen):
        n = int(np.asarray(table["row"]).max()) + 1
        raise InputError("plot_explanation", "row", f"must be from 0 to {n - 1}", repr(row))
    column, value, moved = (np.asarray(table[name])[chosen] for name in ("column", "value", "moved"))
    # Skip extra lines of value 0.
    kept = [k for k in range(len(chosen)) if moved[k] or not str(column[k]).startswith("(")]
    axes = _axes("plot_explanation", ax, len(kept))
    colours = [_FOR if moved[k] >= 0 else _AGAINST for k in kept]
    axes.barh(np.arange(len(kept)), moved[kept], color=colours, height=0.7)
    axes.axvline(0.0, color="0.4", linewidth=0.8)
    _name(axes, [_line(column[k], value[k]) for k in kept])
    label, over, lead = (np.asarray(table[name])[chosen[0]] for name in ("label", "over", "lead"))
    axes.set_title(_plain(f"{label}, ahead of {over} by {lead:.3g}"))
    axes.set_xlabel("moved the lead by")
    return axes


def _classifier(who: str, model: Any) -> Any:
    if not hasattr(model, "explain"):
        must = "must be a BayesianEnsembleClassifier"
        raise InputTypeError(who, "model", must, type(model).__name__, "Boosters have no such weights.")
    return model


def _axes(who: str, ax: "Axes | None", n_lines: int) -> "Axes":
    if ax is not None:
        return ax
    try:
        from matplotlib import pyplot
    except ImportError as error:
        do = "Run: pip install 'bayesvote[plots]'"
        raise ImportError(f"{who}: matplotlib must be installed, got none. {do}") from error
    return pyplot.subplots(figsize=(7, 1.2 + 0.3 * n_lines), layout="constrained")[1]


def _name(axes: "Axes", names: list[str]) -> None:
    """Label the lines, the first on top."""
    axes.set_yticks(np.arange(len(names)), labels=[_plain(name) for name in names])
    axes.invert_yaxis()
    axes.spines[["top", "right"]].set_visible(False)


def _line(column: Any, value: Any) -> str:
    empty = value is None or value != value
    if empty:
        return str(column)
    return f"{column} = {value:.4g}" if isinstance(value, float | np.floating) else f"{column} = {value}"


def _plain(text: str) -> str:
    """Escape text that matplotlib would read as a formula."""
    return text.replace("$", r"\$")
