"""Run the command ``reproduce`` and print its results."""

from collections.abc import Sequence
from contextlib import nullcontext
from pathlib import Path

from rich.progress import BarColumn, TaskProgressColumn, TextColumn, TimeRemainingColumn
from rich.table import Table
from rich.text import Text

from bayesvote.apps.cli import show
from bayesvote.apps.distributed.engines import Engine
from bayesvote.core.checks import one_of
from bayesvote_paper.aims import aims
from bayesvote_paper.comparisons import comparisons, error_tables
from bayesvote_paper.registry import EXPERIMENTS
from bayesvote_paper.runner import read
from bayesvote_paper.runner import reproduce as run
from bayesvote_paper.shown import Entry, ErrorTable, TextTable


def check(name: str) -> None:
    """Raise an error for a name that no experiment has."""
    one_of("reproduce", "tables", name, EXPERIMENTS)


def reproduce(
    tables: Sequence[str],
    folder: Path,
    *,
    trials: int,
    jobs: int | None,
    datasets: Sequence[str] | None,
    report: Path | None,
    as_json: bool,
    engine: Engine | None = None,
) -> None:
    """Run the named experiments, or all, and write the results and optionally the page."""
    if report is not None:
        show.require_report()
    columns = (TextColumn("{task.description}"), BarColumn(bar_width=20), TaskProgressColumn(), TimeRemainingColumn())
    with show.progress(*columns) as bar:
        task = bar.add_task("Starting", total=None)

        def on_progress(done: int, total: int, what: str) -> None:
            bar.update(task, completed=done, total=total, description=what)

        with engine or nullcontext():
            if engine is not None and engine.link:
                show.note(f"Dask's dashboard: {engine.link}")
            records = run(
                tables or None,
                folder,
                trials=trials,
                jobs=jobs,
                datasets=datasets,
                on_progress=on_progress,
                engine=None if engine is None else engine.map,
            )
    if report is not None:
        from bayesvote.apps.report import write
        from bayesvote_paper.report import paper_report

        write(paper_report(records), report)
    shown = error_tables(read(records))
    compared, aimed = comparisons(shown), aims(shown)
    written = [str(path) for path in (records, report) if path is not None]
    if as_json:
        means = [
            {
                "table": table.experiment,
                "members": table.members,
                "errors": {row.dataset: {name: cell.mean for name, cell in row.entries.items()} for row in table.rows},
            }
            for table in shown
        ]
        counts = {"comparisons": [one._asdict() for one in compared], "aims": [aim._asdict() for aim in aimed]}
        show.as_json({"written": written, "tables": means, **counts})
        return
    for table in shown:
        show.console().print(_errors(table))
    for one in compared:
        show.console().print(_comparison(one))
    for aim in aimed:
        show.console().print(f"\n{'Reached' if aim.reached else 'Not reached'}: {aim.what}. {aim.found}.")
    show.note(f"Wrote {' and '.join(written)}.")


def _errors(found: ErrorTable) -> Table:
    """Print mean errors and published ones, with the best of each row in bold and its ties underlined."""
    table = Table(title=f"\n{found.title}", title_justify="left", box=None, padding=(0, 1, 0, 0))
    table.add_column("set", no_wrap=True)
    for method in found.methods:
        table.add_column(method.narrow or method.name, justify="right")
    if found.published:
        table.add_column(found.publisher, style="dim", justify="right", no_wrap=True)
    for row in found.rows:
        cells = [_cell(row.entries[method.name]) for method in found.methods]
        figure = found.published.get(row.dataset)
        table.add_row(row.dataset, *cells, f"{figure:.3f}" if figure is not None else None)
    return table


def _comparison(compared: TextTable) -> Table:
    """Print a table of counts, means and names, without cells that equal the one above."""
    table = Table(
        title=f"\n{compared.title}", title_justify="left", caption=compared.note, caption_justify="left", box=None
    )
    for name in compared.header:
        table.add_column(name, vertical="top")
    above = ""
    for first, *others in compared.rows:
        table.add_row(first if first != above else "", *others)
        above = first
    return table


def _cell(entry: Entry) -> Text:
    return Text(f"{entry.mean:.3f}", "bold" if entry.best else "underline" if entry.tied else "")
