"""Figure 1: the error so far of the weighters of frozen members."""

from dataclasses import dataclass
from typing import Any

from bayesvote.evaluation import prequential
from bayesvote_paper.experiment import Job, Result
from bayesvote_paper.figure import Figure, spaced
from bayesvote_paper.frozen_members import weighters
from bayesvote_paper.members import THE_PAPERS, FrozenMembers, frozen_settings


@dataclass(frozen=True, kw_only=True, eq=False)
class LearningCurves(Figure):
    """Error curves of all methods but voting."""

    methods: tuple[str, ...] = ("GammaRate", "SGD", "AveragedSGD", "SAG", "JointGaussian")

    def settings(self, job: Job) -> dict[str, Any]:
        """Return the settings of frozen members."""
        return frozen_settings(job)

    def run(self, job: Job) -> Result:
        """Return a curve for each method."""
        frozen = FrozenMembers(job)
        X, y, _ = frozen.stream
        named = weighters(len(y))
        done = prequential({name: frozen.ensemble(named[name]) for name in self.methods}, X, y)
        at = spaced(len(y))
        return {"x": (at + 1).tolist(), "series": {name: one.curve[at].tolist() for name, one in done.items()}}


FIGURE1 = LearningCurves(
    name="figure1",
    title="Error as learning goes on",
    members=THE_PAPERS,
    sets=("mushrooms", "breast-cancer", "australian"),
    x_label="rows",
    y_label="error so far",
)
