"""Table 6: the default classifier, what its members and weights are worth, and the best of other libraries."""

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np

from bayesvote_paper.experiment import Job, Result
from bayesvote_paper.shown import Aim, ErrorTable, Method, TextTable, listed, out_of
from bayesvote_paper.streams import measure, stream, stream_settings
from bayesvote_paper.table import Table

MOST_ROWS = 30_000
# The default classifier, members without trees, its members with simpler weights, and the default of version 0.1.
ABLATION: Mapping[str, dict[str, Any]] = {
    "default": {},
    "fast": {"members": "fast"},
    "JointGaussian": {"weighter": "joint_gaussian"},
    "GammaRate": {"weighter": "gamma_rate"},
    "Voting": {"weighter": "voting"},
    "default of 0.1": {"members": "mixed", "weighter": "joint_gaussian", "scale": False},
}
# The best of 34 configurations of river, CapyMOA, Vowpal Wabbit and scikit-learn on the same streams: mistakes in all
# orders, over orders times rows. They are not rounded, so that one mistake decides which classifier is below the other.
PEERS: Mapping[str, float] = {
    "heart": 240 / (5 * 270),
    "breast-cancer": 110 / (5 * 683),
    "australian": 477 / (5 * 690),
    "diabetes": 970 / (5 * 768),
    "german": 1285 / (5 * 1000),
    "splice": 176 / 3175,
    "mushrooms": 93 / (5 * 8124),
    "ionosphere": 159 / (5 * 351),
    "sonar": 238 / (5 * 208),
    "svmguide3": 1193 / (5 * 1284),
    "adult": 9452 / (2 * 30_000),
    "cod-rna": 1804 / 30_000,
    "covtype": 5815 / 30_000,
}


@dataclass(frozen=True, kw_only=True, eq=False)
class DefaultTable(Table):
    """The default classifier beside parts of it."""

    def settings(self, job: Job) -> dict[str, Any]:
        """The classifiers and the rows."""
        own = {"model": "BayesianEnsembleClassifier()", "rows_at_most": MOST_ROWS, "ablation": dict(ABLATION)}
        return stream_settings(job) | own

    def run(self, job: Job) -> Result:
        """Errors on the first rows."""
        from bayesvote.estimators import BayesianEnsembleClassifier

        models = {
            name: BayesianEnsembleClassifier(**options, random_state=job.trial) for name, options in ABLATION.items()
        }
        return measure(models, stream(job.dataset, job.trial).rows(0, MOST_ROWS))

    def lead(self, trials: int) -> str:
        """What the figures are, those of others included."""
        return (
            "Small, with the default: the best of 34 configurations of river, CapyMOA, Vowpal Wabbit and scikit-learn, "
            "chosen for each set in hindsight among those that were fast enough for it. "
            f"Error of every row predicted before it is learned; up to {trials} orders of the rows."
        )

    def caption(self, members: str) -> str:  # noqa: ARG002
        """What its columns are."""
        return (
            "The default: adaptive members, weighed by JointLogistic, drifting; then members without trees; then "
            "simpler weights of the same members; then what was the default of version 0.1"
        )

    def comparison(self, tables: Sequence[ErrorTable]) -> TextTable:
        """Each column beside the best others."""
        rows: list[tuple[str, ...]] = []
        for table in tables:
            peers = [PEERS[row.dataset] for row in table.rows]
            rows.append(("the best other, chosen for each set in hindsight", f"{np.mean(peers):.4f}", "", ""))
            for method in table.methods:
                above = [row.dataset for row in table.rows if not row.entries[method.name].reaches(PEERS[row.dataset])]
                reached = out_of(len(table.rows) - len(above), table.rows)
                mean = f"{table.mean(method.name):.4f}"
                rows.append((method.heading or method.name, mean, reached, listed(above, table.rows)))
        return TextTable(
            "Table 6: the default classifier beside the best of 34 configurations of others",
            ("classifier", "mean error", "at or below the best other", "above it on"),
            rows,
            "One configuration on every set against the least of 34 on each. Configurations of others that were too "
            "slow for a set are not among its 34.",
        )

    def aim(self, tables: Sequence[ErrorTable]) -> Aim | None:
        """On how many sets the default reaches the best other, within a standard error; only if all were run."""
        if not tables or len(tables[0].rows) < len(PEERS):
            return None
        rows = {row.dataset: row.entries["default"] for row in tables[0].rows}
        reached = sum(one.reaches(PEERS[name]) for name, one in rows.items())
        above = [name for name, one in rows.items() if one.mean - np.nan_to_num(one.standard_error) > PEERS[name]]
        but = f", not on {listed(above, tables[0].rows)}" if above else ""
        mean, others = tables[0].mean("default"), np.mean(list(PEERS.values()))
        return Aim(
            "The default classifier at or below the best of 34 configurations of others, within one standard error, "
            f"on all {len(PEERS)} sets",
            f"{len(PEERS) - len(above)} of {len(PEERS)}{but}; at or below it on {reached}; mean error {mean:.4f}, "
            f"of the best other on each set {others:.4f}",
            not above,
        )


TABLE6 = DefaultTable(
    name="table6",
    title="The default classifier beside the best of other libraries",
    members=("default",),
    sets=tuple(PEERS),
    most_trials={"adult": 2, "cod-rna": 2, "covtype": 2},
    methods=(
        Method("default", "the default", "the default"),
        Method("fast", "fast, without trees", "fast"),
        *(Method(name) for name in list(ABLATION)[2:]),
    ),
    published={"default": {"default": PEERS}},
    reference="default",
    publisher="others",
)
