"""``reproduce``: the paper's tables and figures."""

from collections.abc import Sequence
from pathlib import Path

from rich.progress import BarColumn, TaskProgressColumn, TextColumn, TimeRemainingColumn
from rich.table import Table
from rich.text import Text

from bayesvote import experiments
from bayesvote._checks import one_of
from bayesvote.cli import show
from bayesvote.experiments import DEFAULT, EXPERIMENTS, read
from bayesvote.experiments.aims import claims
from bayesvote.experiments.comparisons import Comparison, comparisons
from bayesvote.experiments.summary import Block, Entry, blocks

SHORT = {
    "AveragedSGD": "SGD avg.",
    "GammaRate": "Gamma Rate",
    "GammaShape": "Gamma Shape",
    "GammaShapeRate": "G. Shape Rate",
    "GammaShape, capped": "Shape, capped",
    "GammaShapeRate, capped": "Sh. Rate, capped",
    "JointGaussian": "Joint",
    "default": "the default",
    "averaged Perceptrons": "Percep- trons",
}


def check(name: str) -> None:
    """Refuse a name that no table or figure has."""
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
) -> None:
    """Run the experiments, by default all; write the results and, if asked for, a page."""
    if report is not None:
        show.require_report()
    columns = (TextColumn("{task.description}"), BarColumn(bar_width=20), TaskProgressColumn(), TimeRemainingColumn())
    with show.progress(*columns) as bar:
        task = bar.add_task("Starting", total=None)

        def on_progress(done: int, total: int, what: str) -> None:
            bar.update(task, completed=done, total=total, description=what)

        records = experiments.reproduce(
            tables or DEFAULT, folder, trials=trials, jobs=jobs, datasets=datasets, on_progress=on_progress
        )
    if report is not None:
        from bayesvote.report import write
        from bayesvote.report.paper import paper_report

        write(paper_report(records), report)
    tables_found = blocks(read(records))
    compared, found = comparisons(tables_found), claims(tables_found)
    written = [str(path) for path in (records, report) if path is not None]
    if as_json:
        means = [
            {
                "table": block.experiment,
                "members": block.members,
                "errors": {row.dataset: {name: cell.mean for name, cell in row.entries.items()} for row in block.rows},
            }
            for block in tables_found
        ]
        findings = {"comparisons": [one._asdict() for one in compared], "aims": [claim._asdict() for claim in found]}
        show.as_json({"written": written, "tables": means, **findings})
        return
    for block in tables_found:
        show.console().print(_table(block))
    for one in compared:
        show.console().print(_comparison(one))
    for claim in found:
        show.console().print(f"\n{'Reached' if claim.reached else 'Not reached'}: {claim.what}. {claim.found}.")
    show.note(f"Wrote {' and '.join(written)}.")


def _table(block: Block) -> Table:
    """Mean errors, the best of each row in bold, what is tied with it underlined, and the paper's figures."""
    title = f"{block.experiment.replace('table', 'Table ')}. {EXPERIMENTS[block.experiment].title}"
    members = "" if block.members == "default" else f": {block.members.replace('_', ' ')}"
    table = Table(title=f"\n{title}{members}", title_justify="left", box=None, padding=(0, 1, 0, 0))
    table.add_column("set", no_wrap=True)
    names = [name for name in block.methods if name in block.rows[0].entries]
    for name in names:
        table.add_column(SHORT.get(name, name), justify="right")
    table.add_column("others" if block.experiment == "table6" else "paper", style="dim", justify="right", no_wrap=True)
    for row in block.rows:
        cells = [_cell(row.entries[name]) for name in names]
        published = next((cell.published for name in ("GammaRate", "default") if (cell := row.entries.get(name))), None)
        table.add_row(row.dataset, *cells, "" if published is None else f"{published:.3f}")
    return table


def _comparison(compared: Comparison) -> Table:
    """Counts, means and names; what is the same as in the row above is left out."""
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
