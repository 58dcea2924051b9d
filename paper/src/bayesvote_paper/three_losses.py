"""Table 5: the losses (8), (19) and (22) for the weights of frozen members."""

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np

from bayesvote.weighting import GammaRate, GammaShape, GammaShapeRate, JointGaussian, Voting, Weighter
from bayesvote_paper.experiment import Job, Result
from bayesvote_paper.members import (
    MEMBERS,
    NAIVE_BAYES,
    PERCEPTRONS,
    FrozenMembers,
    frozen_settings,
    in_words,
)
from bayesvote_paper.shown import ErrorTable, Method, TextTable, listed
from bayesvote_paper.streams import STATIC, measure
from bayesvote_paper.table import JOINT_GAUSSIAN, VOTING, Table, columns

# The caps are the paper's bounds on the counts of (19) and (22), beyond which its integrals did not converge.
LOSSES: Mapping[str, Weighter[Any]] = {
    "GammaRate": GammaRate(),
    "GammaShape": GammaShape(),
    "GammaShapeRate": GammaShapeRate(),
    "GammaShape, capped": GammaShape(cap=1000.0),
    "GammaShapeRate, capped": GammaShapeRate(cap=200.0),
    "Voting": Voting(),
}
PRIORS = {"a": 1, "b": 1, "c": 1, "p": 1, "q": 1, "r": 1.5, "s": 1}


@dataclass(frozen=True, kw_only=True, eq=False)
class LossTable(Table):
    """The losses with logistic g; JointGaussian needs a bounded one."""

    def settings(self, job: Job) -> dict[str, Any]:
        """Return the settings of frozen members, and the priors of (19) and (22)."""
        return frozen_settings(job, "logistic", **PRIORS, loss_of_JointGaussian="ramp")

    def run(self, job: Job) -> Result:
        """Return the errors of all methods."""
        frozen = FrozenMembers(job)
        models = {name: frozen.ensemble(weighter, "logistic") for name, weighter in LOSSES.items()}
        models["JointGaussian"] = frozen.ensemble(JointGaussian())
        return measure(models, frozen.stream)

    def comparison(self, tables: Sequence[ErrorTable]) -> TextTable:
        """Compare the three losses here with the published figures."""
        losses = ("GammaRate", "GammaShape", "GammaShapeRate")
        rows: list[tuple[str, ...]] = []
        for table in tables:
            members = MEMBERS[table.members]
            means = (f"{table.mean(name):.4f}" for name in losses)
            lower = listed(table.below("GammaShapeRate", "GammaRate"), table.rows)
            rows.append((f"{members.label}, {members.owner}", *means, lower))
        for kind, figures in self.published.items() if rows else ():
            means = (f"{np.mean(list(figures[name].values())):.4f}" for name in losses)
            names = [name for name, error in figures["GammaShapeRate"].items() if error < figures["GammaRate"][name]]
            rows.append((f"{in_words(kind)}, as printed", *means, listed(names, figures["GammaRate"])))
        header = ("members", "(8)", "(19)", "(22)", "(22) is below (8) on")
        return TextTable("Table 5: the three losses, mean error", header, rows)


TABLE5 = LossTable(
    name="table5",
    title="Three losses for the weights of frozen members",
    members=PERCEPTRONS + NAIVE_BAYES,
    sets=STATIC,
    methods=(
        Method("GammaRate", "loss (8)", "Gamma Rate"),
        Method("GammaShape", "loss (19)", "Gamma Shape"),
        Method("GammaShapeRate", "loss (22)", "G. Shape Rate"),
        Method("GammaShape, capped", "(19), capped", "Shape, capped"),
        Method("GammaShapeRate, capped", "(22), capped", "Sh. Rate, capped"),
        VOTING,
        JOINT_GAUSSIAN,
    ),
    remark="All have logistic g but JointGaussian, which has the ramp loss.",
    published={
        "perceptron": columns(
            STATIC,
            GammaRate="0.203 0.065 0.183 0.301 0.338 0.390 0.028 0.293 0.385 0.265",
            GammaShape="0.208 0.070 0.207 0.307 0.347 0.418 0.032 0.295 0.391 0.278",
            GammaShapeRate="0.198 0.068 0.200 0.300 0.348 0.418 0.031 0.259 0.380 0.276",
        ),
        "naive_bayes": columns(
            STATIC,
            GammaRate="0.197 0.045 0.191 0.285 0.292 0.144 0.025 0.171 0.301 0.222",
            GammaShape="0.204 0.050 0.209 0.287 0.292 0.150 0.047 0.172 0.302 0.226",
            GammaShapeRate="0.196 0.046 0.203 0.284 0.293 0.150 0.046 0.171 0.303 0.225",
        ),
    },
)
