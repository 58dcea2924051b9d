import json
from itertools import permutations
from pathlib import Path

import numpy as np
import pytest

from bayesvote.apps.report import (
    Cell,
    Chart,
    Facts,
    Report,
    Section,
    Series,
    TableBlock,
    Text,
    render,
    render_markdown,
    write,
)
from bayesvote.apps.report.blocks import Charts
from bayesvote_paper.comparisons import comparisons, error_tables
from bayesvote_paper.report import paper_report
from bayesvote_paper.runner import read, reproduce

SOME = ("table1", "table3", "table6", "figure1", "figure3", "figure4", "figure5", "settings")


@pytest.fixture(scope="module")
def results(tmp_path_factory: pytest.TempPathFactory) -> Path:
    folder = tmp_path_factory.mktemp("run")
    reproduce(("figure1", "figure3", "figure5"), folder, trials=1, datasets=["mushrooms"], jobs=1)
    return reproduce(SOME, folder, trials=2, datasets=["heart"], jobs=1)


def test_every_number_of_the_page_is_one_of_the_results(results: Path) -> None:
    report = paper_report(results)
    section = next(section for section in report.sections if section.title.startswith("Table 1"))
    papers, ours = section.blocks
    assert isinstance(papers, TableBlock)
    assert isinstance(ours, TableBlock)
    for table, members in ((papers, "perceptron"), (ours, "averaged_perceptron")):
        heart = next(row for row in table.cells if row[0].text == "heart")
        errors = [
            line["errors"]["Voting"]
            for line in read(results)
            if (line["experiment"], line["members"], line["dataset"]) == ("table1", members, "heart")
        ]
        cell = heart[table.header.index("Voting")]
        assert cell.text == f"{np.mean(errors):.3f}"
        assert cell.note == "0.268"
        assert cell.spread == f"±{np.std(errors, ddof=1) / np.sqrt(2):.3f}"
        assert sum(cell.bold for cell in heart) >= 1


def test_there_is_a_section_for_everything(results: Path) -> None:
    report = paper_report(results)
    for name in SOME:
        title = name.replace("table", "Table ").replace("figure", "Figure ").replace("settings", "Settings")
        assert any(section.title.startswith(title) for section in report.sections)
    charts = [block for section in report.sections for block in section.blocks if isinstance(block, Charts)]
    assert [len(block.charts) for block in charts] == [2, 2, 1, 1]
    bands = [series for series in charts[-1].charts[0].series if series.lower is not None]
    assert len(bands) == 3
    page = render(report)
    assert "The paper, reproduced" in page
    assert page == render(paper_report(results))


def test_comparisons_come_first(results: Path) -> None:
    first = paper_report(results).sections[0]
    assert first.title == "What the tables say"
    expected = comparisons(error_tables(read(results)))
    assert len(expected) == 5
    for block, compared in zip(first.blocks, expected, strict=True):
        assert isinstance(block, TableBlock)
        assert block.caption == compared.title
        assert [[cell.text for cell in row] for row in block.cells] == [list(row) for row in compared.rows]
        assert block.note == compared.note


def test_the_order_in_which_jobs_end_changes_no_figure(tmp_path: Path) -> None:
    errors = [0.282, 0.756, 0.618, 0.251]  # their mean is 0.47675, and added in different orders rounds differently
    pages = set()
    for number, order in enumerate(permutations(range(len(errors)))):
        lines = [
            {
                "experiment": "settings",
                "members": "perceptron",
                "dataset": "heart",
                "trial": trial,
                "settings": {},
                "versions": {},
                "errors": {"frozen: Voting": errors[trial]},
            }
            for trial in order
        ]
        path = tmp_path / f"{number}.jsonl"
        path.write_text("".join(json.dumps(line) + "\n" for line in lines))
        pages.add(render_markdown(paper_report(path)))
    assert len(pages) == 1


def test_no_lead_says_that_all_is_the_same_for_all(results: Path) -> None:
    leads = {section.title.partition(".")[0]: section.lead for section in paper_report(results).sections}
    assert "boosters' see all" in leads["Table 3"]
    assert "in hindsight" in leads["Table 1"]
    assert "in hindsight" in leads["Table 6"]
    assert "see all features" in leads["Settings"]
    assert "slow to reach" in leads["Figure 4"]


def test_results_must_be_there(tmp_path: Path) -> None:
    with pytest.raises(ValueError, match="must hold results"):
        paper_report(tmp_path / "none.jsonl")


def test_markdown_has_what_the_page_has(tmp_path: Path) -> None:
    report = Report(
        "A *run*",
        "Lead.",
        [
            Section("One|two", [TableBlock("T", ["a", "b"], [["x", Cell("1", tied=True, spread="±0.1")]], note="N")]),
            Section(
                "Rest",
                [Facts({"seed": 1}), Text("<b>"), Chart("C", "rows", "error", [Series("s", [1, 2], [0.5, 0.25])])],
            ),
            Section("Empty", [Chart("Nothing", "rows", "error", [Series("s", [], [])])]),
        ],
    )
    text = render_markdown(report)
    for part in (
        r"# A \*run\*",
        r"## One\|two",
        "| x | *1* ±0.1 |",
        "- seed: 1",
        r"\<b\>",
        "| s | 0.5 at 1 | 0.25 at 2 |",
    ):
        assert part in text
    write(report, tmp_path / "page.md")
    assert (tmp_path / "page.md").read_text(encoding="utf-8") == text
    write(report, tmp_path / "page.html")
    assert (tmp_path / "page.html").read_text(encoding="utf-8").startswith("<!DOCTYPE html>")


def test_a_chart_from_zero_shows_zero() -> None:
    lines = [Series("s", [1, 2, 3], [0.50, 0.51, 0.52])]
    near = render(Report("", "", [Section("", [Chart("", "x", "y", lines)])]))
    far = render(Report("", "", [Section("", [Chart("", "x", "y", lines, from_zero=True)])]))
    assert ">0.0<" in far.replace("\n", "") or ">0.00<" in far.replace("\n", "")
    assert ">0.00<" not in near.replace("\n", "")
