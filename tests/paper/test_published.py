"""The paper's figures are those of its tables: by a checksum, and from the paper's source where it is at hand."""

import hashlib
import json
import re
from collections.abc import Mapping
from pathlib import Path

import pytest

from bayesvote.datasets import DATASETS
from bayesvote_paper.registry import EXPERIMENTS
from bayesvote_paper.streams import ONLINE, STATIC
from bayesvote_paper.table import Table

SOURCE = Path(__file__).parents[3] / "shared" / "paper" / "bai-lam-sclaroff.tex"  # beside the checkout
# Of the figures that `tables_of` finds in the paper's source.
CHECKSUM = "f990e98c5487477264758a95eab7102ea15849ba8afc3e01ae3025cb4b09cebb"

BASELINES = ("single", "Voting", "SGD", "AveragedSGD", "SAG", "GammaRate")
BOOSTERS = ("single", "OzaBoost", "OGBoost", "OSBoost", "GammaRate")
LOSSES = ("GammaRate", "GammaShape", "GammaShapeRate")
# The paper's tables by their labels there: our keys, each with the methods of its columns, from left to right.
COLUMNS: dict[str, dict[tuple[str, str], tuple[str, ...]]] = {
    "tab:P_static": {("table1", "perceptron"): BASELINES},
    "tab:NB_static": {("table2", "naive_bayes"): BASELINES},
    "tab:P_online": {("table3", "perceptron"): BOOSTERS},
    "tab:NB_online": {("table4", "naive_bayes"): BOOSTERS},
    "tab:loss1": {("table5", "perceptron"): LOSSES, ("table5", "naive_bayes"): LOSSES},
}
Tables = Mapping[tuple[str, str], Mapping[str, Mapping[str, float]]]
PAPER: Tables = {
    (name, kind): figures
    for name, table in EXPERIMENTS.items()
    if isinstance(table, Table) and table.publisher == "paper"
    for kind, figures in table.published.items()
}


def checksum(tables: Tables) -> str:
    figures = sorted(
        [table, members, method, dataset, f"{error:.4f}"]
        for (table, members), methods in tables.items()
        for method, errors in methods.items()
        for dataset, error in errors.items()
    )
    return hashlib.sha256(json.dumps(figures).encode()).hexdigest()


def tables_of(source: str) -> Tables:
    """Figures of the tables in the paper's source: of every row its name, its length and its numbers."""
    found: dict[tuple[str, str], dict[str, dict[str, float]]] = {}
    for part in source.split(r"\begin{tabular}")[1:]:
        label = re.search(r"\\label\{(tab:\w+)\}", part)
        if label is None or label[1] not in COLUMNS:
            continue
        keys = COLUMNS[label[1]]
        for line in part.split(r"\end{tabular}")[0].splitlines():
            name, *cells = line.split("&")
            numbers = [re.search(r"0\.\d+", cell) for cell in cells[1:]]
            if not cells or not all(numbers):
                continue
            dataset = {"covertype": "covtype"}.get(name.strip().lower(), name.strip().lower())
            errors = iter([float(number[0]) for number in numbers if number])
            for key, methods in keys.items():
                for method in methods:
                    found.setdefault(key, {}).setdefault(method, {})[dataset] = next(errors)
            assert next(errors, None) is None
    return found


def test_the_figures_are_those_of_the_papers_tables() -> None:
    assert checksum(PAPER) == CHECKSUM


def test_every_table_has_every_method_and_set() -> None:
    keys = {key: methods for table in COLUMNS.values() for key, methods in table.items()}
    assert {key: set(methods) for key, methods in PAPER.items()} == {key: set(names) for key, names in keys.items()}
    for (table, _), methods in PAPER.items():
        for errors in methods.values():
            assert set(errors) == set(ONLINE if table in ("table3", "table4") else STATIC) <= set(DATASETS)


def test_the_figures_are_read_from_the_papers_source() -> None:
    if not SOURCE.is_file():
        pytest.skip("the paper's source is not beside the checkout")
    tables = tables_of(SOURCE.read_text(encoding="utf-8"))
    assert sum(len(errors) for methods in tables.values() for errors in methods.values()) == 280
    assert tables == PAPER
    assert checksum(tables) == CHECKSUM
