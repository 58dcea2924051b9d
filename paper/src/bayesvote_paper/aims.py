"""Aims of the experiments, with the results of the methods and of other methods with the same members."""

from collections.abc import Iterator, Sequence

import numpy as np

from bayesvote_paper.comparisons import WEIGHT_TABLES, select
from bayesvote_paper.frozen_members import TABLE1, TABLE2
from bayesvote_paper.members import MEMBERS, in_words
from bayesvote_paper.online_members import TABLE3, TABLE4
from bayesvote_paper.registry import EXPERIMENTS
from bayesvote_paper.shown import Aim, ErrorTable, count_reaching

BASELINES = {
    "SGD and SAG with the best step for each set, in hindsight": (
        "Voting",
        "AveragedSGD",
        "SGD, best step",
        "SAG, best step",
    ),
    "SGD and SAG with step 1 on every set": ("Voting", "SGD", "AveragedSGD", "SAG"),
}
CELLS = sum(len(table.sets) for table in WEIGHT_TABLES)


def aims(tables: Sequence[ErrorTable]) -> list[Aim]:
    """Return the aims across tables, then those of single tables, without aims whose experiments were not all run."""
    own = (experiment.aim(select(tables, [experiment])) for experiment in EXPERIMENTS.values())
    return [*_baselines(tables), *_papers_figures(tables), *(one for one in own if one is not None)]


def _baselines(tables: Sequence[ErrorTable]) -> Iterator[Aim]:
    """Compare GammaRate with the baselines of tables 1 and 2."""
    blocks = select(tables, (TABLE1, TABLE2))
    if len(blocks) < len(TABLE1.members + TABLE2.members):
        return
    for given, baselines in BASELINES.items():
        if not all(table.has(name) for table in blocks for name in baselines):
            continue
        parts, reached = [], []
        for table in blocks:
            ours, means = table.mean("GammaRate"), {name: table.mean(name) for name in baselines}
            rival = min(means, key=means.__getitem__)
            parts.append(f"{in_words(table.members)} {ours:.4f} against {means[rival]:.4f} ({rival})")
            reached.append(ours <= means[rival])
        what = f"GammaRate's mean error over the sets at or below every weighting baseline of tables 1 and 2: {given}"
        yield Aim(what, f"{sum(reached)} of {len(reached)} blocks: {'; '.join(parts)}", all(reached))


def _papers_figures(tables: Sequence[ErrorTable]) -> Iterator[Aim]:
    """Compare our members with the paper's figures for (11) in tables 1 to 4, and with voting in tables 3 and 4."""
    papers, ours = (
        [table for table in select(tables, WEIGHT_TABLES) if MEMBERS[table.members].papers is whose]
        for whose in (True, False)
    )
    cells, papers_cells = ([row for table in blocks for row in table.rows] for blocks in (ours, papers))
    if not len(cells) == len(papers_cells) == CELLS:
        return
    for method, aim in (("GammaRate", 30), ("JointGaussian", 36)):
        reached, voting, single = (count_reaching(cells, name) for name in (method, "Voting", "single"))
        yield Aim(
            f"{method} with our members at or below the paper's figure for (11) in at least {aim} of {CELLS} cells",
            f"{reached} of {CELLS}; with the same members uniform voting {voting}, a single one {single}; "
            f"{method} with the paper's members {count_reaching(papers_cells, method)}",
            reached >= aim,
        )
    online = [row.entries for table in select(ours, (TABLE3, TABLE4)) for row in table.rows]
    to_voting, to_single = (
        float(np.mean([one["JointGaussian"].mean / one[other].mean for one in online]))
        for other in ("Voting", "single")
    )
    what = "JointGaussian's error at most 0.88 times that of voting, mean over tables 3 and 4 with our members"
    yield Aim(what, f"{to_voting:.3f}; {to_single:.3f} times that of a single classifier", to_voting <= 0.88)
