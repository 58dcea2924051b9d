"""Work of ``datasets``: the paper's thirteen data sets, and where to find them."""

from typing import Any

from rich.table import Table

from bayesvote.apps.cli import show
from bayesvote.core.checks import one_of
from bayesvote.datasets import DATASETS, load_dataset, locate
from bayesvote.datasets.registry import SITE
from bayesvote.io.open_stream import open_bytes

_PLACES = {
    "folder": "BAYESVOTE_DATA",
    "cache": "your cache",
    "embedded": "this package",
    "download": "to be downloaded",
}


def list_all(*, as_json: bool) -> None:
    """Show all data sets."""
    found = [_entry(name) for name in DATASETS]
    if as_json:
        show.as_json(found)
        return
    table = Table(box=None, padding=(0, 2), pad_edge=False, header_style="dim")
    table.add_column("name", no_wrap=True)
    table.add_column("rows", justify="right")
    table.add_column("features", justify="right")
    table.add_column("found in")
    table.add_column("")
    for entry in found:
        table.add_row(
            entry["name"],
            f"{entry['rows']:,}",
            str(entry["features"]),
            _PLACES[entry["source"]],
            f"partial, of {DATASETS[entry['name']].whole.rows:,}" if entry["partial"] else "",
        )
    show.console().print(table)


def check(name: str) -> None:
    """Raise an error for an unknown name."""
    one_of("datasets", "name", name, DATASETS)


def describe(name: str, *, as_json: bool) -> None:
    """Show one data set: its size and its source."""
    entry = _entry(name)
    if entry["source"] == "download":
        pieces = ", ".join(DATASETS[name].pieces)
        entry |= {"positives": DATASETS[name].whole.positives, "provenance": f"{pieces} of {SITE}"}
    else:
        data = load_dataset(name)
        entry |= {"positives": int(data.y.sum()), "provenance": data.provenance.strip()}
    if as_json:
        show.as_json(entry)
        return
    texts = {
        key: f"{value:,}" if type(value) is int else str(value) for key, value in entry.items() if value is not None
    }
    texts |= {"source": _PLACES[entry["source"]], "partial": "yes" if entry["partial"] else "no"}
    screen = show.console()
    provenance = texts.pop("provenance")
    screen.print(show.facts(texts))
    screen.print()
    screen.print(provenance, markup=False)


def _entry(name: str) -> dict[str, Any]:
    entry = DATASETS[name]
    source, path = locate(name)
    rows = entry.whole.rows
    if entry.part and source != "download":
        with open_bytes(str(path)) as file:
            rows = sum(1 for line in file if line.strip())
    return {
        "name": name,
        "rows": rows,
        "features": entry.features,
        "source": source,
        "partial": rows != entry.whole.rows,
        "path": None if source == "download" else str(path),
    }
