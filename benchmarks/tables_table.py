"""The table of docs/tables.md from the result of tables.py; see pages.py."""

from collections.abc import Iterator, Mapping
from typing import Any

from tables import MODELS, OURS, TABLES

ROWS = 2000


def _shown(line: Mapping[str, Any]) -> bool:
    """Return True for lines of the first order, of all rows that the page shows."""
    return bool((line["trial"], line["most"]) == (0, ROWS))


def _errors(result: Any) -> dict[str, dict[str, float]]:
    """Return errors by table and model, of the first order."""
    found: dict[str, dict[str, float]] = {name: {} for name in TABLES}
    for line in result.lines:
        if _shown(line) and line["model"] in MODELS:
            found[line["table"]][line["model"]] = line["mistakes"] / line["rows"]
    return found


def errors(result: Any) -> Iterator[str]:
    """Yield errors by table and model, the least of a row in bold."""
    found = _errors(result)
    names = [name for name in MODELS if all(name in row for row in found.values())]
    rows = {line["table"]: line["rows"] for line in result.lines if _shown(line)}
    yield "| table | rows | " + " | ".join(names) + " |"
    yield "|---|" + "---:|" * (1 + len(names))
    for table, row in found.items():
        least = min(row[name] for name in names)
        cells = [f"**{row[name]:.3f}**" if row[name] == least else f"{row[name]:.3f}" for name in names]
        yield f"| {table} | {rows[table]:,} | " + " | ".join(cells) + " |"
    means = [sum(row[name] for row in found.values()) / len(found) for name in names]
    yield "| mean | | " + " | ".join(f"{mean:.3f}" for mean in means) + " |"
    missing = [
        sum(line["unanswered"] for line in result.lines if line["model"] == name and _shown(line)) for name in names
    ]
    yield f"| rows without a prediction | {sum(rows.values()):,} | {' | '.join(f'{n:,}' for n in missing)} |"


def figures(result: Any) -> dict[str, Any]:
    """Return on how many tables bayesvote has the least error, and where it has not."""
    behind = {
        table: row[OURS] - min(error for name, error in row.items() if name != OURS)
        for table, row in _errors(result).items()
    }
    worse = {table: points for table, points in behind.items() if points > 0}
    missing = {
        (line["model"], line["table"]): line["unanswered"]
        for line in result.lines
        if _shown(line) and line["model"] in MODELS
    }
    libraries: dict[str, dict[str, int]] = {}
    for (model, table), count in missing.items():
        of = libraries.setdefault(model.split()[0], {"all": 0})
        of["all"] += count
        if count > of.get("most", 0):
            of |= {"most": count, "on": table, "of": model}
    return {
        "unanswered": libraries,
        "tables": len(behind),
        "least": len(behind) - len(worse),
        "not least on": ", ".join(worse) or "none",
        "most behind": max(behind.values()),
    }
