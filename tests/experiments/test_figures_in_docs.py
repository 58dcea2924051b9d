"""The counts and means quoted in docs/paper.md and the README are those the command wrote into docs/reproduced.md."""

import re
from pathlib import Path

import pytest

ROOT = Path(__file__).parents[2]
PAGE = (ROOT / "docs" / "paper.md").read_text(encoding="utf-8")
README = (ROOT / "README.md").read_text(encoding="utf-8")
REPRODUCED = (ROOT / "docs" / "reproduced.md").read_text(encoding="utf-8")


def table(text: str, after: str) -> list[list[str]]:
    """Rows of the first table after some words, the header first, without marks of emphasis."""
    lines = text[text.index(after) :].splitlines()
    start = next(i for i, line in enumerate(lines) if line.startswith("|"))
    rows = []
    for line in lines[start:]:
        if not line.startswith("|"):
            break
        rows.append([cell.strip().strip("*`") for cell in line.strip("|").split("|")])
    return [rows[0], *rows[2:]]


def test_counts_against_the_papers_figures() -> None:
    written = {(row[0], row[1]): row[-1] for row in table(REPRODUCED, "Cells of tables 1 to 4 at or below")[1:]}
    names = {
        "a single classifier": "a single classifier",
        "uniform voting": "uniform voting",
        "(11)": "GammaRate (11)",
        "JointGaussian": "JointGaussian",
    }
    shown = table(PAGE, "How many of the 40 cells")[1:]
    assert len(shown) == len(names)
    for name, ours, papers in shown:
        assert written["ours", names[name]] == f"{ours} of 40"
        assert written["the paper's", names[name]] == f"{papers} of 40"
    said = re.search(
        r"in (\d+) of 40 cells.*?in (\d+), with.*?reach (\d+).*?it is (\d+) and (\d+)\.", README, re.DOTALL
    )
    assert said
    cells = [("ours", "GammaRate (11)"), ("ours", "JointGaussian"), ("ours", "uniform voting")]
    cells += [("the paper's", "GammaRate (11)"), ("the paper's", "JointGaussian")]
    assert [f"{count} of 40" for count in said.groups()] == [written[cell] for cell in cells]
    assert written["ours", "a single classifier"] == written["ours", "uniform voting"]  # the README says both at once


def test_gradient_methods() -> None:
    written = table(REPRODUCED, "GammaRate (11) beside gradient methods")[1:]
    shown = table(PAGE, "**Against gradient methods")[1:]
    assert len(shown) == len(written) == 4
    for (_, *means), (_, gamma, sag, sgd, _, plain) in zip(shown, written, strict=True):
        assert [mean.strip("*") for mean in means] == [gamma, sag, sgd, plain]
    assert sum(sag < gamma for _, gamma, sag, *_ in written) == 3


def test_counts_against_a_single_classifier() -> None:
    header, *written = table(REPRODUCED, "below that of a single classifier")
    shown_header, *shown = table(PAGE, "**Against a single classifier")
    assert len(shown) == 8
    named = {"(11)": "GammaRate", "voting": "Voting"}
    for row, source in zip(shown, written[:8], strict=True):
        number, members = row[0].split(", ")
        assert source[0].startswith(f"{number}: {members}")
        for name, count in zip(shown_header[1:], row[1:], strict=True):
            found = source[header.index(named.get(name.strip("`"), name.strip("`")))]
            assert found == (f"{count} of 10" if count else "")


@pytest.mark.parametrize("page", [README, PAGE, (ROOT / "docs" / "peers.md").read_text(encoding="utf-8")])
def test_the_means_of_table_6(page: str) -> None:
    written = {row[0]: row[1] for row in table(REPRODUCED, "Table 6: the default classifier beside")[1:]}
    assert written["the default"] in page
    assert written["the best other, chosen for each set in hindsight"] in page
