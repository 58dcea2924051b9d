"""Figures 2 and 3: the error of (11) over the prior's rate beta, and over theta."""

from dataclasses import dataclass
from typing import Any

from bayesvote.weighting import GammaRate
from bayesvote_paper.experiment import Job, Result
from bayesvote_paper.figure import Figure
from bayesvote_paper.members import THE_PAPERS, FrozenMembers, frozen_settings
from bayesvote_paper.streams import measure


@dataclass(frozen=True, kw_only=True, eq=False)
class Sensitivity(Figure):
    """The error by values of a parameter of GammaRate."""

    values: tuple[float, ...]
    members: tuple[str, ...] = THE_PAPERS
    sets: tuple[str, ...] = ("heart", "mushrooms")
    y_label: str = "error"
    log_x: bool = True
    from_zero: bool = True

    def settings(self, job: Job) -> dict[str, Any]:
        """Return the settings of frozen members."""
        return frozen_settings(job)

    def run(self, job: Job) -> Result:
        """Return the error of each value."""
        frozen = FrozenMembers(job)
        models = {f"{value:g}": frozen.ensemble(GammaRate(**{self.x_label: value})) for value in self.values}
        return {
            "x": list(self.values),
            "series": {"GammaRate": list(measure(models, frozen.stream)["errors"].values())},
        }


FIGURE2 = Sensitivity(
    name="figure2",
    title="Sensitivity to the prior's rate beta",
    x_label="beta",
    values=tuple(10.0**k for k in range(-2, 4)),
    remark="Decisions of (11) depend on beta / theta only: Figure 3 shows five of these six ratios, mirrored.",
)
FIGURE3 = Sensitivity(
    name="figure3",
    title="Sensitivity to theta",
    x_label="theta",
    values=tuple(10.0**k for k in range(-3, 2)),
    remark="Decisions of (11) depend on beta / theta only: these are ratios of Figure 2, mirrored.",
)
