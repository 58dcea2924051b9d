"""Tables 3 and 4: weighted online members, and online boosting."""

from dataclasses import dataclass
from typing import Any

from bayesvote.boosting import OGBoost, OSBoost, OzaBoost
from bayesvote.ensemble import Ensemble
from bayesvote.weighting import GammaRate, JointGaussian, Voting
from bayesvote_paper.experiment import Job, Result, Results
from bayesvote_paper.members import (
    MAX_FEATURES,
    MEMBERS,
    N_MEMBERS,
    NAIVE_BAYES,
    PERCEPTRONS,
    ensemble_settings,
)
from bayesvote_paper.shown import Method
from bayesvote_paper.streams import ONLINE, measure, stream
from bayesvote_paper.table import GAMMA_RATE, JOINT_GAUSSIAN, SINGLE, VOTING, Table, columns

BOOSTERS = (OzaBoost, OGBoost, OSBoost)
FEATURES = "Weighted members see half of the features; the single one and the boosters' see all. The boosters have"


@dataclass(frozen=True, kw_only=True, eq=False)
class OnlineTable(Table):
    """Weighted online members and boosters; boosters have separate members, so they run in the paper's block only."""

    sets: tuple[str, ...] = ONLINE
    methods: tuple[Method, ...] = (
        SINGLE,
        *(Method(boost.__name__) for boost in BOOSTERS),
        VOTING,
        GAMMA_RATE,
        JOINT_GAUSSIAN,
    )
    digits: int = 4

    def settings(self, job: Job) -> dict[str, Any]:
        """Return the settings of every ensemble."""
        return ensemble_settings(job)

    def run(self, job: Job) -> Result:
        """Return the errors of all methods."""
        data, members = stream(job.dataset, job.trial), MEMBERS[job.members]
        models: dict[str, Any] = {"single": Ensemble(members.make(1, None), Voting())}
        for weighter in (Voting(), GammaRate(), JointGaussian()):
            models[type(weighter).__name__] = Ensemble(members.make(N_MEMBERS, MAX_FEATURES), weighter)
        if members.papers:
            models |= {boost.__name__: boost(members.kind, N_MEMBERS) for boost in BOOSTERS}
        for model in models.values():
            model.start(data.X.shape[1], 2, job.trial)
        return measure(models, data)

    def lines(self, results: Results, members: str) -> Results:
        """Add the boosters of the paper's block to our block."""
        papers = {
            (line["dataset"], line["trial"]): line["errors"] for line in results if MEMBERS[line["members"]].papers
        }
        return [
            {**line, "errors": papers.get((line["dataset"], line["trial"]), {}) | line["errors"]}
            for line in super().lines(results, members)
        ]


TABLE3 = OnlineTable(
    name="table3",
    title="Online Perceptrons and online boosting",
    members=PERCEPTRONS,
    remark=(
        f"{FEATURES} plain Perceptrons of their own in both blocks; those of OzaBoost and OSBoost step by one over the "
        "root of the row's number."
    ),
    published={
        "perceptron": columns(
            ONLINE,
            single="0.2489 0.0592 0.2099 0.3216 0.3256 0.2717 0.0148 0.2093 0.2096 0.3437",
            OzaBoost="0.2356 0.0501 0.2012 0.3169 0.3364 0.2759 0.0080 0.2045 0.2170 0.3449",
            OGBoost="0.2267 0.0445 0.1962 0.3313 0.3142 0.2625 0.0068 0.2080 0.2241 0.3482",
            OSBoost="0.2356 0.0466 0.1872 0.3185 0.3148 0.2605 0.0060 0.1994 0.2075 0.3334",
            GammaRate="0.2134 0.0419 0.1655 0.3098 0.3105 0.2584 0.0062 0.1682 0.1934 0.3115",
        )
    },
)
TABLE4 = OnlineTable(
    name="table4",
    title="Online naive Bayes and online boosting",
    members=NAIVE_BAYES,
    remark=f"{FEATURES} Bernoulli features where they are binary in both blocks, beside Gaussian members, too.",
    published={
        "naive_bayes": columns(
            ONLINE,
            single="0.1904 0.0474 0.1751 0.2664 0.2988 0.2520 0.0076 0.2001 0.2206 0.3518",
            OzaBoost="0.2570 0.0635 0.2133 0.3091 0.3206 0.1563 0.0049 0.1912 0.0796 0.3293",
            OGBoost="0.3037 0.1004 0.2826 0.3292 0.3598 0.1863 0.0229 0.1878 0.0568 0.3732",
            OSBoost="0.2059 0.0489 0.1849 0.2622 0.2730 0.1370 0.0029 0.1581 0.0581 0.3634",
            GammaRate="0.1755 0.0408 0.1611 0.2467 0.2667 0.1344 0.0054 0.1658 0.2552 0.3269",
        )
    },
)
