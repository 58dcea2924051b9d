"""The report of the reproduced tables and figures."""

import os
from collections.abc import Mapping, Sequence
from typing import Any

import numpy as np

from bayesvote.apps.report.blocks import Block, Cell, Chart, Charts, Facts, Report, Section, Series, Table, Text, number
from bayesvote.datasets import DATASETS
from bayesvote_paper.aims import aims
from bayesvote_paper.comparisons import comparisons, error_tables
from bayesvote_paper.experiment import Experiment, Results
from bayesvote_paper.registry import EXPERIMENTS
from bayesvote_paper.runner import read
from bayesvote_paper.shown import Entry, ErrorTable, Plot, Shown, TextTable

COMPARED = (
    "Mean errors are compared unrounded; with the paper's figures, rounded as those are printed. "
    "What cannot be told from the best of its row is marked in the tables below."
)
SETTINGS = (
    "The same on every data set, and for every method that has the setting: alpha and beta are GammaRate's, theta is "
    "that of GammaRate, SGD, SGD-avg and SAG. JointGaussian has settings of its own. Single classifiers and the "
    "boosters' members see all features."
)


def paper_report(path: str | os.PathLike[str]) -> Report:
    """The page of a file of results, as ``experiments.reproduce`` writes it."""
    results = read(path)
    if not results:
        raise ValueError(f"paper_report: {os.fspath(path)} must hold results, got none. Run bayesvote reproduce first.")
    tables = error_tables(results)
    sections = []
    if compared := comparisons(tables):
        sections.append(Section("What the tables say", [Table(*one) for one in compared], lead=COMPARED))
    if aimed := aims(tables):
        rows = [[aim.what, aim.found, "yes" if aim.reached else "no"] for aim in aimed]
        sections.append(Section("What was aimed at", [Table("Aims and results", ["aim", "result", "reached"], rows)]))
    run = [(experiment, lines) for experiment in EXPERIMENTS.values() if (lines := experiment.own_results(results))]
    for experiment, lines in run:
        lead = experiment.lead(trials=1 + max(line["trial"] for line in lines))
        sections.append(Section(experiment.heading, _blocks(experiment.show(lines)), lead=lead))
    sections.append(Section("Settings", [_settings(run)], lead=SETTINGS))
    sections.append(Section("Versions", [Facts(results[0]["versions"])]))
    lead = (
        "Bai, Lam and Sclaroff, A Bayesian Approach for Online Classifier Ensemble: its tables and figures, run anew."
    )
    return Report("The paper, reproduced", lead, sections)


def _blocks(shown: Sequence[Shown]) -> list[Block]:
    """What an experiment shows; its plots stand side by side."""
    blocks: list[Block] = []
    for one in shown:
        if isinstance(one, ErrorTable):
            blocks.append(_errors(one))
        elif isinstance(one, TextTable):
            blocks.append(Table(*one))
    charts = [_chart(one) for one in shown if isinstance(one, Plot)]
    return [*blocks, Charts(charts)] if charts else blocks


def _errors(table: ErrorTable) -> Table:
    rows: list[list[str | Cell]] = [
        [
            row.dataset + (" (part)" if row.partial else ""),
            f"{row.n_rows:,}",
            *(_cell(row.entries[method.name], table.digits) for method in table.methods),
        ]
        for row in table.rows
    ]
    rows.append(["mean", "", *(_mean(table, method.name) for method in table.methods)])
    header = ["set", "rows", *(method.heading or method.name for method in table.methods)]
    return Table(table.caption, header, rows, " ".join(_part(row.dataset) for row in table.rows if row.partial))


def _part(dataset: str) -> str:
    entry = DATASETS[dataset]
    held = f"{entry.part.rows:,}" if entry.part else "some"
    return f"{dataset} is partial: {held} of the paper's {entry.whole.rows:,} rows."


def _cell(entry: Entry, digits: int) -> Cell:
    """A mean with its standard error and the published figure, with one more digit where it is small."""
    digits += entry.mean < 0.01 and digits == 3
    return Cell(
        number(entry.mean, digits),
        bold=entry.best,
        tied=entry.tied,
        note="" if entry.published is None else number(entry.published, digits),
        spread="" if np.isnan(entry.standard_error) else f"±{number(entry.standard_error, digits)}",
    )


def _mean(table: ErrorTable, method: str) -> Cell:
    entries = [row.entries[method] for row in table.rows]
    published = [entry.published for entry in entries if entry.published is not None]
    note = f"{np.mean(published):.4f}" if len(published) == len(entries) else ""
    return Cell(number(table.mean(method), 4), note=note)


def _chart(plot: Plot) -> Chart:
    lines = [Series(*line) for line in plot.lines]
    return Chart(plot.caption, plot.x_label, plot.y_label, lines, plot.log_x, plot.log_y, plot.from_zero)


def _settings(run: Sequence[tuple[Experiment, Results]]) -> Block:
    """What the jobs of each experiment were run with; what differs from job to job, as a seed does, is left out."""
    common = {experiment.name: _common([line["settings"] for line in lines]) for experiment, lines in run}
    if not any(common.values()):
        return Text("Seeds only: the number of the trial.")
    return Facts(
        {
            name: ", ".join(f"{key} {value}" for key, value in settings.items())
            for name, settings in common.items()
            if settings
        }
    )


def _common(settings: Sequence[Mapping[str, Any]]) -> dict[str, Any]:
    first, *others = settings
    return {name: value for name, value in first.items() if all(one.get(name) == value for one in others)}
