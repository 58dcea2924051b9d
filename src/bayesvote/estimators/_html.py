"""HTML summary of a fitted classifier for notebooks."""

from html import escape
from typing import Any

import numpy as np

from bayesvote.estimators.summary import facts_of

_TOP = 5  # number of members and columns to show

_WHOLE = "font-size:0.9em;margin:0.5em 0;border-collapse:collapse"
_CELL = "text-align:left;padding:0.15em 0.8em 0.15em 0;border:none;background:none"


def summary(model: Any) -> str:
    """Return the summary of a fitted classifier as HTML, with escaped names and labels."""
    about = facts_of(model)
    about["classes"] = _listed(model.classes_.tolist())
    about["features"] = model.n_features_in_
    facts = [(name.replace("_", " "), value) for name, value in about.items() if value is not None]
    parts = [_table(None, facts)]
    if hasattr(model, "weights_"):
        parts.append(_weights(model.weights_))
    if hasattr(model, "feature_importances_"):
        table = model.importances()
        pairs = zip(np.asarray(table["column"])[:_TOP], np.asarray(table["importance"])[:_TOP], strict=True)
        parts.append(_table(("most important columns", "share"), [(n, f"{s:.1%}") for n, s in pairs]))
    return f'<details class="bayesvote-summary" open><summary>Fitted model</summary>{"".join(parts)}</details>'


def _weights(table: Any) -> str:
    names = table.dtype.names if isinstance(table, np.ndarray) else list(table.columns)
    end = "" if "mean" in names else "_1"
    mean = np.asarray(table[f"mean{end}"])
    order = np.argsort(-mean, kind="stable")[:_TOP]
    rows = []
    for member in order:
        interval = ""
        if f"lower{end}" in names:
            lower, upper = (np.asarray(table[f"{side}{end}"])[member] for side in ("lower", "upper"))
            interval = f", 95% from {lower:.3g} to {upper:.3g}"
        rows.append((f"{np.asarray(table['kind'])[member]} {member}", f"{mean[member]:.3g}{interval}"))
    return _table(("members with the largest weights", "weight"), rows)


def _table(head: tuple[str, str] | None, rows: list[tuple[Any, Any]]) -> str:
    lines = [_line("th", head)] if head else []
    lines += [_line("td", row) for row in rows]
    return f'<table style="{_WHOLE}">{"".join(lines)}</table>'


def _line(tag: str, texts: tuple[Any, Any]) -> str:
    return f"<tr>{''.join(f'<{tag} style={_CELL!r}>{escape(str(text))}</{tag}>' for text in texts)}</tr>"


def _listed(values: list[Any]) -> str:
    shown = ", ".join(map(str, values[:20]))
    return shown if len(values) <= 20 else f"{shown}, and {len(values) - 20} more"
