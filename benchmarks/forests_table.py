"""Tables of docs/drift.md and docs/choosing.md from the result of forests.py; pages.py inserts them."""

from collections.abc import Iterator
from typing import Any

import results
from forests import MODELS, SETS

OURS = [name for name in MODELS if name.split()[0] not in results.LIBRARIES]


def _by_set(result: Any, changes: bool, what: str) -> dict[str, dict[str, float]]:
    """Return a figure by data set and model, without a forest that was run on two data sets only."""
    found = {(line["set"], line["model"]): line[what] for line in result.lines}
    models = [name for name in MODELS if name != "CapyMOA ARF(100)"]
    sets = [name for name, one in SETS.items() if one.changes is changes and found.get((name, "default")) is not None]
    return {name: {model: found[name, model] for model in models if (name, model) in found} for name in sets}


def _table(rows: dict[str, dict[str, float]]) -> Iterator[str]:
    """Yield a table with the lowest value of each row in bold."""
    names = [name for name in MODELS if any(name in row for row in rows.values())]
    yield "| stream | " + " | ".join(names) + " |"
    yield "|---|" + "---:|" * len(names)
    for stream, row in rows.items():
        least = f"{min(row.values()):.4f}"
        cells = [f"{row[name]:.4f}" if name in row else "" for name in names]
        yield f"| {stream} | " + " | ".join(f"**{cell}**" if cell == least else cell for cell in cells) + " |"


def changing(result: Any) -> Iterator[str]:
    """Yield errors on streams that change."""
    return _table(_by_set(result, True, "error"))


def after_changes(result: Any) -> Iterator[str]:
    """Yield errors in the 1,000 rows after each change."""
    return _table(_by_set(result, True, "after"))


def several(result: Any) -> Iterator[str]:
    """Yield errors with several classes."""
    return _table(_by_set(result, False, "error"))


def figures(result: Any) -> dict[str, Any]:
    """Return comparisons of the default with the best other library, by kind of stream and figure."""
    out: dict[str, Any] = {}
    for kind, changes in (("changing", True), ("several", False)):
        for what in ("error", "after", "log_loss", "brier"):
            rows = _by_set(result, changes, what)
            if not rows:
                continue
            others = {
                name: min((v, model) for model, v in row.items() if model not in OURS) for name, row in rows.items()
            }
            ratios = {name: row["default"] / others[name][0] for name, row in rows.items()}
            out[f"{kind}, {what}"] = {
                "streams": len(rows),
                "lower": sum(ratio < 1 for ratio in ratios.values()),
                "not lower on": "; ".join(name for name, ratio in ratios.items() if ratio >= 1) or "none",
                "least ratio": min(ratios.values()),
                "largest ratio": max(ratios.values()),
                "fast lower on": "; ".join(n for n, row in rows.items() if row["fast"] < row["default"]) or "none",
            }
    return out
