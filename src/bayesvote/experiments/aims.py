"""What was aimed at, whether the results reach it, and beside it what others reach with the same members."""

from collections.abc import Sequence
from typing import NamedTuple

import numpy as np

from bayesvote.experiments.comparisons import WEIGHT_TABLES, count_reaching, mean
from bayesvote.experiments.published import PEERS
from bayesvote.experiments.setup import EXPERIMENTS
from bayesvote.experiments.summary import Block, Row

TUNED = ("Voting", "AveragedSGD", "SGD, best step", "SAG, best step")
AT_STEP_1 = ("Voting", "SGD", "AveragedSGD", "SAG")


class Claim(NamedTuple):
    """Something that was aimed at, and what the results say."""

    what: str
    found: str
    reached: bool


def claims(found: Sequence[Block]) -> list[Claim]:
    """What was aimed at in tables 1 to 4 and 6; only if all that it is about was run."""
    tables = {(block.experiment, block.members): block.rows for block in found}
    answers = []
    static = [(table, members) for table in ("table1", "table2") for members in EXPERIMENTS[table].members]
    if all(place in tables for place in static):
        blocks = {members: tables[table, members] for table, members in static}
        for baselines, given in (
            (TUNED, "SGD and SAG with the best step for each set, in hindsight"),
            (AT_STEP_1, "SGD and SAG with step 1 on every set"),
        ):
            if all(name in row.entries for rows in blocks.values() for row in rows for name in baselines):
                answers.append(_least(blocks, baselines, given))
    papers, ours = (
        {table: tables.get((table, EXPERIMENTS[table].members[place]), []) for table in WEIGHT_TABLES}
        for place in (0, 1)
    )
    if all(sum(map(len, rows.values())) == 40 for rows in (papers, ours)):
        counts = {
            (method, whose): sum(count_reaching(rows, method) for rows in whole.values())
            for method in ("single", "Voting", "GammaRate", "JointGaussian")
            for whose, whole in (("ours", ours), ("papers", papers))
        }
        for method, aim in (("GammaRate", 30), ("JointGaussian", 36)):
            what = f"{method} with our members at or below the paper's figure for (11) in at least {aim} of 40 cells"
            reached, voting, single = (counts[name, "ours"] for name in (method, "Voting", "single"))
            beside = (
                f"with the same members uniform voting {voting}, a single one {single}; "
                f"{method} with the paper's members {counts[method, 'papers']}"
            )
            answers.append(Claim(what, f"{reached} of 40; {beside}", reached >= aim))
        both = [row.entries for row in ours["table3"] + ours["table4"]]
        ratio, to_single = (
            float(np.mean([one["JointGaussian"].mean / one[other].mean for one in both]))
            for other in ("Voting", "single")
        )
        what = "JointGaussian's error at most 0.88 times that of voting, mean over tables 3 and 4 with our members"
        answers.append(Claim(what, f"{ratio:.3f}; {to_single:.3f} times that of a single classifier", ratio <= 0.88))
    default = tables.get(("table6", "default"), [])
    if len(default) == len(PEERS):
        reached = sum(row.entries["default"].reaches(PEERS[row.dataset]) for row in default)
        what = "The default classifier at or below the best of 32 configurations of others on at least 8 of 13 sets"
        others = np.mean(list(PEERS.values()))
        means = f"mean error {mean(default, 'default'):.4f}, of the best other on each set {others:.4f}"
        answers.append(Claim(what, f"{reached} of 13; {means}", reached >= 8))
    return answers


def _least(blocks: dict[str, list[Row]], baselines: Sequence[str], given: str) -> Claim:
    """GammaRate against the weighting baselines of tables 1 and 2."""
    parts, reached = [], []
    for members, rows in blocks.items():
        ours, means = mean(rows, "GammaRate"), {name: mean(rows, name) for name in baselines}
        rival = min(means, key=means.__getitem__)
        parts.append(f"{members.replace('_', ' ')} {ours:.4f} against {means[rival]:.4f} ({rival})")
        reached.append(ours <= means[rival])
    what = f"GammaRate's mean error over the sets at or below every weighting baseline of tables 1 and 2: {given}"
    return Claim(what, f"{sum(reached)} of {len(reached)} blocks: {'; '.join(parts)}", all(reached))
