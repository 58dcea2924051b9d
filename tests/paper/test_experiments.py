"""The facts of every experiment; and that a new experiment, or a new data set, is its own things and one line."""

import json
import lzma
import re
from dataclasses import replace
from pathlib import Path
from types import ModuleType
from typing import Any

import numpy as np
import pytest

from bayesvote.apps.cli import main
from bayesvote.apps.report.blocks import TableBlock
from bayesvote.datasets import DATASETS, load_dataset
from bayesvote.datasets.registry import DatasetEntry, DatasetFacts
from bayesvote_paper.comparisons import comparisons, error_tables
from bayesvote_paper.experiment import Experiment, Job
from bayesvote_paper.figure import Figure
from bayesvote_paper.frozen_members import TABLE1
from bayesvote_paper.members import MEMBERS
from bayesvote_paper.registry import EXPERIMENTS
from bayesvote_paper.report import paper_report
from bayesvote_paper.runner import read, reproduce
from bayesvote_paper.table import Table

PAGE = Path(__file__).parents[2] / "docs" / "architecture.md"


@pytest.mark.parametrize("name", EXPERIMENTS)
def test_facts(name: str) -> None:
    experiment = EXPERIMENTS[name]
    assert experiment.name == name
    assert experiment.simulated_rows or set(experiment.sets) <= set(DATASETS)
    assert set(experiment.most_trials) <= set(experiment.sets)
    for trials in (1, 5):
        lead = experiment.lead(trials)
        assert not lead or lead.endswith(".")
    jobs = experiment.jobs(DATASETS, 2)
    assert {job.members for job in jobs} == set(experiment.members)
    assert {job.dataset for job in jobs} == set(experiment.sets)
    for job in jobs:
        assert experiment.includes(job)
        assert experiment.rows(job.dataset) > 0
        settings = experiment.settings(job)
        assert json.loads(json.dumps(settings)) == settings
    assert not experiment.includes(Job(name, "others", experiment.sets[0], 0))
    assert not experiment.show([])


@pytest.mark.parametrize("name", [name for name, one in EXPERIMENTS.items() if isinstance(one, Table)])
def test_published_figures_stand_beside_a_method_and_a_set(name: str) -> None:
    table = EXPERIMENTS[name]
    assert isinstance(table, Table)
    kinds = {MEMBERS[members].kind if members in MEMBERS else members for members in table.members}
    assert set(table.published) <= kinds
    for figures in table.published.values():
        assert table.reference in figures
        assert set(figures) <= {method.name for method in table.methods}
        assert all(set(errors) <= set(table.sets) for errors in figures.values())


@pytest.mark.parametrize("kind", [Experiment, Table, Figure])
def test_what_an_experiment_must_fill_in_cannot_be_forgotten(kind: Any) -> None:
    with pytest.raises(TypeError, match=r"abstract methods? .*run.*settings"):
        kind(name="table8", title="", members=(), sets=())


def module_of_the_page() -> ModuleType:
    (source,) = re.findall(r"```python\n(\"\"\"Table 8.*?)```", PAGE.read_text(encoding="utf-8"), re.DOTALL)
    module = ModuleType("table8")
    exec(compile(source, str(PAGE), "exec"), module.__dict__)
    return module


@pytest.fixture
def new_table(monkeypatch: pytest.MonkeyPatch) -> Table:
    table: Table = module_of_the_page().TABLE8
    monkeypatch.setitem(EXPERIMENTS, table.name, table)  # the one line
    return table


def test_the_table_of_the_page_is_run_and_shown(
    new_table: Table, tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    test_facts(new_table.name)
    page = tmp_path / "page.md"
    ask = ["reproduce", "table8", "--trials", "2", "--folder", str(tmp_path)]
    assert main([*ask, "--jobs", "2", "--report", str(page)]) == 0
    shown = " ".join(capsys.readouterr().out.split())
    assert "Table 8. The cost of forgetting on streams that do not change: averaged perceptron" in shown
    assert "paper" not in shown  # nothing is published of it
    path = tmp_path / "results.jsonl"
    results, before = read(path), path.read_bytes()
    assert len(results) == 2 * 2 * 2
    assert all(line["settings"]["forgetting"] == [1.0, 0.999, 0.99] for line in results)
    assert main([*ask, "--jobs", "1", "--json"]) == 0
    assert path.read_bytes() == before  # all of it was there
    said = json.loads(capsys.readouterr().out)
    assert [table["members"] for table in said["tables"]] == list(new_table.members)
    table, _ = next(one for one in paper_report(path).sections if one.title.startswith("Table 8.")).blocks
    assert isinstance(table, TableBlock)
    heart = table.cells[0]
    errors = [
        line["errors"]["forgetting 1"]
        for line in results
        if (line["members"], line["dataset"]) == ("perceptron", "heart")
    ]
    assert (heart[0].text, heart[2].text) == ("heart", f"{np.mean(errors):.3f}")
    assert "with its standard error. Ties" in page.read_text(encoding="utf-8")
    assert comparisons(error_tables(results)) == []


def test_results_of_an_experiment_that_is_gone_are_left_out(new_table: Table, tmp_path: Path) -> None:
    path = reproduce(["table8", "figure3"], tmp_path, trials=1, datasets=["heart"], jobs=1)
    del EXPERIMENTS[new_table.name]
    assert not [one for one in paper_report(path).sections if "Table 8" in one.title]
    reproduce(["figure3"], tmp_path, trials=1, datasets=["heart"], jobs=1)
    assert {line["experiment"] for line in read(path)} == {"figure3"}
    EXPERIMENTS[new_table.name] = new_table  # for monkeypatch to take away


def test_a_new_data_set_is_an_entry_and_a_file(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    X = np.random.default_rng(0).normal(size=(120, 3)).round(2)
    text = "".join(f"{1 if x[0] > 0 else -1} 1:{x[0]} 2:{x[1]} 3:{x[2]}\n" for x in X)
    (tmp_path / "toy.libsvm.xz").write_bytes(lzma.compress(text.encode()))
    monkeypatch.setenv("BAYESVOTE_DATA", str(tmp_path))
    facts = DatasetFacts(120, int((X[:, 0] > 0).sum()), "")
    monkeypatch.setitem(DATASETS, "toy", DatasetEntry(3, facts, ("toy",)))
    with pytest.raises(ValueError, match="the SHA-256 of the values of 'toy' must be") as refused:
        load_dataset("toy")
    (found,) = re.findall("[0-9a-f]{64}", str(refused.value))
    monkeypatch.setitem(DATASETS, "toy", DatasetEntry(3, facts._replace(sha256=found), ("toy",)))
    np.testing.assert_array_equal(load_dataset("toy").X, X)
    assert main(["datasets", "toy", "--json"]) == 0
    assert json.loads(capsys.readouterr().out)["rows"] == 120

    monkeypatch.setitem(EXPERIMENTS, "table1", replace(TABLE1, sets=(*TABLE1.sets, "toy")))
    ask = ["reproduce", "table1", "--dataset", "toy", "--trials", "1", "--jobs", "1", "--folder", str(tmp_path)]
    assert main([*ask, "--json"]) == 0
    papers, _ = json.loads(capsys.readouterr().out)["tables"]
    assert list(papers["errors"]) == ["toy"]
    assert papers["errors"]["toy"]["GammaRate"] < 0.4
