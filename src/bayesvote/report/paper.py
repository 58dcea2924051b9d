"""The report of the reproduced tables and figures."""

import os
from collections.abc import Mapping, Sequence
from typing import Any

import numpy as np

from bayesvote.experiments import EXPERIMENTS, read
from bayesvote.experiments.aims import claims
from bayesvote.experiments.comparisons import comparisons
from bayesvote.experiments.summary import Block, Entry, Results, Row
from bayesvote.experiments.summary import blocks as blocks_of
from bayesvote.report.blocks import Block as Part
from bayesvote.report.blocks import Cell, Chart, Charts, Facts, Report, Section, Series, Table, Text, number

MEMBERS = {
    "perceptron": "The paper's members: plain Perceptrons",
    "averaged_perceptron": "Our members: averaged Perceptrons",
    "gaussian_naive_bayes": "The paper's members: Gaussian naive Bayes",
    "naive_bayes": "Our members: naive Bayes, Gaussian or Bernoulli as the feature is",
    "default": "The default: mixed members, weighed by JointGaussian; then one kind of members, then simpler weights",
}
HEADINGS = {
    "AveragedSGD": "SGD-avg",
    "SGD, best step": "SGD, best step",
    "GammaRate": "Gamma\u00adRate (the paper's)",
    "GammaShape, capped": "(19), capped",
    "GammaShapeRate, capped": "(22), capped",
    "JointGaussian": "Joint\u00adGaussian (ours)",
    "default": "the default",
}
LOSSES = {"GammaRate": "loss (8)", "GammaShape": "loss (19)", "GammaShapeRate": "loss (22)"}
AXES = {
    "figure1": ("rows", "error so far"),
    "figure2": ("beta", "error"),
    "figure3": ("theta", "error"),
    "figure4": ("rows", "rows times squared distance"),
    "figure5": ("rows", "weight"),
    "figure6": ("rows", "error of the last 500 rows"),
}
# What differs between the columns of a table, and what a figure does not show by itself.
STEPS = "SGD, SGD-avg and SAG have step 1; the best step is the best of six for each set, in hindsight."
REMARKS = {
    "table1": STEPS,
    "table2": STEPS,
    "table3": (
        "Members that are weighed see half of the features; the single one and the boosters' see all. The boosters "
        "have plain Perceptrons of their own in both blocks; those of OzaBoost and OSBoost step by one over the root "
        "of the row's number."
    ),
    "table4": (
        "Members that are weighed see half of the features; the single one and the boosters' see all. The boosters "
        "have Bernoulli features where they are binary in both blocks, beside Gaussian members, too."
    ),
    "table5": "All have logistic g but JointGaussian, which has the ramp loss.",
    "figure2": "Decisions of (11) depend on beta / theta only: Figure 3 shows five of these six ratios, mirrored.",
    "figure3": "Decisions of (11) depend on beta / theta only: these are ratios of Figure 2, mirrored.",
    "figure4": (
        "Losses are simulated, uniform from 0 to 0.6, in 1,000 streams a run; theta is 1. The limits are those of "
        "endless streams, which the best step is slow to reach. Steps of four times the best can leave the positive "
        "weights in the first rows, and one stream thrown far off from there decides the mean: they are not shown."
    ),
}
SAME = (
    "The same on every data set, and for every method that has the setting: alpha and beta are GammaRate's, theta is "
    "that of GammaRate, SGD, SGD-avg and SAG. JointGaussian has settings of its own. Single classifiers and the "
    "boosters' members see all features."
)
LOGARITHMIC = {"figure2": (True, False), "figure3": (True, False), "figure4": (True, True), "figure5": (True, True)}


def paper_report(path: str | os.PathLike[str]) -> Report:
    """The page of a file of results, as ``experiments.reproduce`` writes it."""
    results = read(path)
    if not results:
        raise ValueError(f"paper_report: {os.fspath(path)} must hold results, got none. Run bayesvote reproduce first.")
    tables = blocks_of(results)
    sections = []
    if compared := comparisons(tables):
        parts = [Table(one.title, one.header, one.rows, one.note) for one in compared]
        sections.append(
            Section(
                "What the tables say",
                parts,
                lead="Mean errors are compared unrounded; with the paper's and other libraries' figures, rounded as "
                "those are printed. What cannot be told from the best of its row is marked in the tables below.",
            )
        )
    if aims := claims(tables):
        rows = [[aim.what, aim.found, "yes" if aim.reached else "no"] for aim in aims]
        sections.append(Section("What was aimed at", [Table("Aims and results", ["aim", "result", "reached"], rows)]))
    for experiment, facts in EXPERIMENTS.items():
        # Jobs end in any order; sums of floats and the order of the charts would follow it.
        lines = sorted(
            (line for line in results if line["experiment"] == experiment),
            key=lambda line: (facts.sets.index(line["dataset"]), facts.members.index(line["members"]), line["trial"]),
        )
        if not lines:
            continue
        blocks: list[Part] = [_table(block) for block in tables if block.experiment == experiment]
        if experiment.startswith("figure"):
            blocks = [Charts(_charts(experiment, lines))]
        elif experiment == "settings":
            blocks = [_choice(lines)]
        name = experiment.replace("table", "Table ").replace("figure", "Figure ").capitalize()
        sections.append(Section(f"{name}. {facts.title}", blocks, lead=_lead(experiment, lines)))
    sections.append(Section("Settings", [_settings(results)], lead=SAME))
    sections.append(Section("Versions", [Facts(results[0]["versions"])]))
    lead = (
        "Bai, Lam and Sclaroff, A Bayesian Approach for Online Classifier Ensemble: its tables and figures, run anew."
    )
    return Report("The paper, reproduced", lead, sections)


def _lead(experiment: str, lines: Results) -> str:
    trials = 1 + max(line["trial"] for line in lines)
    if experiment == "table6":
        return (
            "Small, with the default: the best of 32 configurations of river, CapyMOA, Vowpal Wabbit and scikit-learn, "
            "chosen for each set in hindsight among those that were fast enough for it. "
            f"Error of every row predicted before it is learned; up to {trials} orders of the rows."
        )
    if experiment.startswith("table"):
        return (
            f"Mean error over {trials} orders of the rows, with its standard error and the paper's figure. "
            f"Ties are by a paired t-test at 0.05. {REMARKS[experiment]}"
        )
    return " ".join(filter(None, (f"Mean over {trials} runs." if trials > 1 else "", REMARKS.get(experiment))))


def _table(block: Block) -> Table:
    named = LOSSES if block.experiment == "table5" else {}
    shown = [name for name in block.methods if name in block.rows[0].entries]
    rows: list[list[str | Cell]] = [
        [
            row.dataset + (" (part)" if row.partial else ""),
            f"{row.rows:,}",
            *(_cell(row.entries[name], 4 if block.experiment in ("table3", "table4") else 3) for name in shown),
        ]
        for row in block.rows
    ]
    rows.append(["mean", "", *(_mean(block.rows, name) for name in shown)])
    note = "cod-rna is partial: 216,948 of the paper's 488,565 rows." if any(row.partial for row in block.rows) else ""
    header = ["set", "rows", *(named.get(name, HEADINGS.get(name, name)) for name in shown)]
    return Table(MEMBERS[block.members], header, rows, note)


def _cell(entry: Entry, digits: int) -> Cell:
    """A mean with its standard error and the published figure, with one more digit where it is small."""
    digits += entry.mean < 0.01 and digits == 3
    return Cell(
        number(entry.mean, digits),
        bold=entry.best,
        tied=entry.tied,
        note="" if entry.published is None else number(entry.published, digits),
        spread="" if np.isnan(entry.error) else f"±{number(entry.error, digits)}",
    )


def _mean(rows: Sequence[Row], method: str) -> Cell:
    entries = [row.entries[method] for row in rows]
    published = [entry.published for entry in entries if entry.published is not None]
    note = f"{np.mean(published):.4f}" if len(published) == len(rows) else ""
    return Cell(number(float(np.mean([entry.mean for entry in entries])), 4), note=note)


def _charts(experiment: str, lines: Results) -> list[Chart]:
    """A chart for each set, and for each kind of members where the chart has more than one line; means over trials."""
    x_label, y_label = AXES[experiment]
    log_x, log_y = LOGARITHMIC.get(experiment, (False, False))
    charts: dict[str, list[Series]] = {}
    for members, dataset in dict.fromkeys((line["members"], line["dataset"]) for line in lines):
        runs = [line for line in lines if (line["members"], line["dataset"]) == (members, dataset)]
        x, kind = np.array(runs[0]["x"]), members.replace("_", " ")
        # The first rows of a curve would take its whole height.
        seen = x >= 20 if x_label == "rows" and not log_x else x > 0
        alone = len(runs[0]["series"]) == 1
        series = charts.setdefault(dataset if alone or members == "simulated" else f"{dataset}, {kind}", [])
        for name in runs[0]["series"]:
            series.append(
                Series(kind if alone else name, x[seen], _over(runs, "series", name)[seen], *_band(runs, name))
            )
        for name, value in runs[0].get("limits", {}).items():
            series.append(Series(name, x[seen], np.full(int(seen.sum()), value)))
    zero = experiment in ("figure2", "figure3")
    return [Chart(caption, x_label, y_label, series, log_x, log_y, zero) for caption, series in charts.items()]


def _over(runs: Results, key: str, name: str) -> Any:
    return np.mean([run[key][name] for run in runs], axis=0)


def _band(runs: Results, name: str) -> list[Any]:
    return [_over(runs, key, name) for key in ("lower", "upper") if key in runs[0]]


def _choice(lines: Results) -> Table:
    """Mean error over the sets by setting, kind of members and method."""
    errors: dict[str, dict[tuple[str, str], list[float]]] = {}
    for line in lines:
        for name, error in line["errors"].items():
            setting, _, method = name.partition(": ")
            errors.setdefault(setting, {}).setdefault((line["members"], method), []).append(error)
    columns = list(dict.fromkeys(column for by_column in errors.values() for column in by_column))
    header = ["setting", *(f"{method}, {members.replace('_', ' ')}" for members, method in columns)]
    rows = [
        [setting, *(number(float(np.mean(found[column])), 4) if column in found else "" for column in columns)]
        for setting, found in sorted(errors.items())
    ]
    return Table("Mean error over the sets, on orders of the rows that no table reports", header, rows)


def _settings(results: Results) -> Part:
    """What the jobs of each experiment were run with; what differs from job to job, as a seed does, is left out."""
    order = list(EXPERIMENTS)
    by_experiment: dict[str, Mapping[str, Any]] = {}
    for line in sorted(results, key=lambda line: order.index(line["experiment"])):
        known = by_experiment.setdefault(line["experiment"], line["settings"])
        by_experiment[line["experiment"]] = {
            name: value for name, value in line["settings"].items() if known.get(name) == value
        }
    if not any(by_experiment.values()):
        return Text("Seeds only: the number of the trial.")
    return Facts(
        {
            name: ", ".join(f"{key} {value}" for key, value in facts.items())
            for name, facts in by_experiment.items()
            if facts
        }
    )
