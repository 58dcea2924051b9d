"""Models that give no prediction for some rows, and the pages that count these rows."""

import json
from pathlib import Path
from typing import Any

import numpy as np
import pytest

answers = pytest.importorskip("answers")
results = pytest.importorskip("results")
table6 = pytest.importorskip("table6")
tables_table = pytest.importorskip("tables_table", reason="needs pandas")


def test_the_commonest_label_so_far_stands_in_for_a_missing_prediction() -> None:
    assert answers.scored([None] * 5, ["b", "b", "a", "a", "a"]) == (4, 5)  # "a", then "b" four times
    assert answers.scored(["b", None, "a"], ["b", "b", "b"]) == (1, 1)
    assert answers.scored([0, 1, None], [0, 0, 0]) == (1, 1)  # 0 is a prediction


def test_a_generator_learns_a_row_after_its_answer_was_scored() -> None:
    seen: list[int] = []

    def model(labels: list[int]) -> Any:
        for label in labels:
            yield seen[-1] if seen else None
            seen.append(label)

    assert answers.scored(model([1, 1, 0, 0]), [1, 1, 0, 0]) == (2, 1)


def test_shares_of_the_labels_so_far_replace_missing_probabilities() -> None:
    given = np.array([[0.9, 0.1], [np.nan, np.nan], [np.nan, np.nan]])
    filled, unanswered = answers.with_shares(given, np.array([0, 0, 1]))
    assert unanswered == 2
    np.testing.assert_allclose(filled, [[0.9, 0.1], [2 / 3, 1 / 3], [3 / 4, 1 / 4]])


def line(model: str, table: str, mistakes: int, unanswered: int) -> dict[str, Any]:
    facts = {"table": table, "trial": 0, "most": 2000, "rows": 100, "model": model}
    return facts | {"mistakes": mistakes, "unanswered": unanswered}


def test_the_table_of_raw_tables_counts_rows_without_a_prediction(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(tables_table, "TABLES", ["a", "b"])
    lines = [line("bayesvote", "a", 10, 0), line("bayesvote", "b", 20, 0)]
    lines += [line("CapyMOA forest", "a", 9, 30), line("CapyMOA forest", "b", 40, 5)]
    found = results.Result("tables", {}, {}, lines)
    *_, mean, missing = tables_table.errors(found)
    assert mean == "| mean | | 0.150 | 0.245 |"
    assert missing == "| rows without a prediction | 200 | 0 | 35 |"
    assert tables_table.figures(found)["not least on"] == "a"


def test_the_table_of_runs_names_what_was_cut_short(tmp_path: Path) -> None:
    first, second, *_ = table6.CONFIGURATIONS
    path = tmp_path / "figures.jsonl"
    figures = [
        {"set": "heart", "configuration": first, "rows": 270, "mistakes": [50] * 5},
        {"set": "sonar", "configuration": first, "rows": 208, "mistakes": [60] * 2},
        {
            "set": "adult",
            "configuration": first,
            "rows": 400,
            "mistakes": [60],
            "unanswered": [7],
            "date": "2026-12-24",
        },
        {"set": "heart", "configuration": second, "rows": 270, "mistakes": [40] * 5, "unanswered": [1, 0, 0, 0, 0]},
    ]
    path.write_text("\n".join(map(json.dumps, [{"versions": {}}, *figures])))
    _, _, one, two, *_ = table6.runs_table(table6.read(path)[1])
    assert one == (
        f"| {first} | 1 of 13 | sonar (2 of 5) | adult (400) | 7 of 400, on 1 of 3 sets | 2026-12-24, by 2026-11-16 |"
    )
    assert two == f"| {second} | 1 of 13 |  |  | 1 of 1,350 | by 2026-11-16 |"
