"""Figures and tables of docs/reproduced.md for other pages, which pages.py inserts."""

import re
from collections.abc import Iterator, Sequence
from functools import cache
from typing import Any

from reproduced import PAGE

Table = dict[str, dict[str, str]]  # cells by row and column
NUMBER = re.compile(r"-?\d[\d,]*(?:\.\d+)?")


@cache
def parsed() -> dict[tuple[str, str], Table]:
    """Return the tables of the page by section and by the line above the table."""
    tables: dict[tuple[str, str], Table] = {}
    section = caption = ""
    head: list[str] = []
    for line in PAGE.read_text(encoding="utf-8").replace("\N{SOFT HYPHEN}", "").splitlines():
        if not line.startswith("|"):
            head = []
            if line.startswith("## "):
                section = line.removeprefix("## ").partition(".")[0]
            caption = line or caption
            continue
        cells = [cell.strip() for cell in line.strip("|").split("|")]
        if not head:
            head = cells
            tables[section, caption] = {}
        elif not cells[0].startswith("---"):
            row = ", ".join(cells[:2]) if head[1] in ("weights", "method") else cells[0]
            tables[section, caption][row] = dict(zip(head, cells, strict=True))
    return tables


def table(section: str, caption: str) -> Table:
    return next(cells for (of, above), cells in parsed().items() if of == section and above.startswith(caption))


def number(cell: str) -> float:
    """Return the first number of a cell."""
    found = NUMBER.search(cell)
    if found is None:
        raise ValueError(f"{cell!r} has no number.")
    return float(found[0].replace(",", ""))


def means(section: str, caption: str) -> dict[str, float]:
    """Return the mean errors of a table by method."""
    of = table(section, caption)["mean"].items()
    return {
        name.removesuffix(" (ours)").removesuffix(" (the paper's)"): number(cell)
        for name, cell in of
        if NUMBER.search(cell)
    }


def figures(result: Any) -> dict[str, Any]:  # noqa: ARG001
    """Return mean errors by table, kind of members and method, and the figures of tables 6 and 7 about the default."""
    out: dict[str, Any] = {}
    for k in range(1, 6):
        of = f"Table {k}"
        captions = [caption for section, caption in parsed() if section == of]
        out[of] = {caption.partition(": ")[2]: means(of, caption) for caption in captions}
    told = table("What the tables say", "Table 6: the default classifier")
    out["Table 6"] = {name: number(row["mean error"]) for name, row in told.items()}
    out["at or below"] = {
        name: int(number(row["at or below the best other"])) for name, row in told.items() if row["above it on"]
    }
    out["above on"] = {name: row["above it on"] for name, row in told.items()}
    out["Table 7"] = {"all rows": means("Table 7", "All rows"), "after": means("Table 7", "The 1,000 rows after")}
    reached = table("What the tables say", "Cells of tables 1 to 4")
    out["reached"] = {name: int(number(row["all"])) for name, row in reached.items()}
    return out


def excerpt(section: str, caption: str, columns: Sequence[str]) -> Iterator[str]:
    """Yield some columns of a table."""
    yield "| " + " | ".join(columns) + " |"
    yield "|---" * len(columns) + "|"
    for row in table(section, caption).values():
        yield "| " + " | ".join(row[name] for name in columns) + " |"


def best_steps(result: Any) -> Iterator[str]:  # noqa: ARG001
    """Yield (11) and gradient methods with their best step."""
    columns = ["table and members", "GammaRate", "SAG, best step", "SGD, best step"]
    last = "best of voting and SGD, SGD-avg, SAG with step 1"
    return excerpt("What the tables say", "GammaRate (11) and gradient methods", [*columns, last])


def reached(result: Any) -> Iterator[str]:  # noqa: ARG001
    """Yield the numbers of cells of tables 1 to 4, of 40, at or below the paper's figure."""
    return excerpt("What the tables say", "Cells of tables 1 to 4", ["members", "weights", "all"])


def single(result: Any) -> Iterator[str]:  # noqa: ARG001
    """Yield the numbers of data sets on which methods are below a single classifier."""
    columns = ["table and members", "Voting", "GammaRate", "JointGaussian", "OzaBoost", "OGBoost", "OSBoost"]
    return excerpt("What the tables say", "Sets on which a method's error is below", columns)


def aims(result: Any) -> Iterator[str]:  # noqa: ARG001
    """Yield the aims and their results."""
    return excerpt("What was aimed at", "Aims and results", ["aim", "result", "reached"])


def weights(result: Any) -> Iterator[str]:
    """Yield the mean errors of weighters by table, with the lowest in bold."""
    found = figures(result)
    ours = {
        "frozen averaged Perceptrons, ten sets (table 1)": ("Table 1", "averaged Perceptrons"),
        "frozen naive Bayes, ten sets (table 2)": ("Table 2", "naive Bayes, Gaussian or Bernoulli as the feature is"),
        "online averaged Perceptrons, ten sets (table 3)": ("Table 3", "averaged Perceptrons"),
        "online naive Bayes, ten sets (table 4)": ("Table 4", "naive Bayes, Gaussian or Bernoulli as the feature is"),
    }
    rows = {title: found[of][members] for title, (of, members) in ours.items()}
    names = ["Voting", "SGD", "SAG", "SAG, best step", "GammaRate", "JointGaussian"]
    rows["the default's members, thirteen sets (table 6)"] = found["Table 6"]
    yield "| mean error | " + " | ".join(f"`{name}`".replace(", best step`", "`, best step") for name in names) + " |"
    yield "|---" * (1 + len(names)) + "|"
    for title, row in rows.items():
        least = min(row[name] for name in names if name in row)
        cells = [f"{row[name]:.4f}" if name in row else "" for name in names]
        yield f"| {title} | " + " | ".join(f"**{cell}**" if cell == f"{least:.4f}" else cell for cell in cells) + " |"


def members(result: Any) -> Iterator[str]:  # noqa: ARG001
    """Yield the mean errors of table 6."""
    return excerpt(
        "What the tables say",
        "Table 6: the default classifier",
        ["classifier", "mean error", "at or below the best other"],
    )
