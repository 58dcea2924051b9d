"""Figure 4: convergence of the posterior mean and SGD to the best weights, with the limits (15) and (18)."""

from dataclasses import dataclass
from typing import Any

import numpy as np

from bayesvote import theory
from bayesvote.weighting import SGD, AveragedSGD, GammaRate, Weighter
from bayesvote_paper.experiment import Job, Result
from bayesvote_paper.figure import Figure

STREAMS = 1000
ROWS = 10_000
THETA = 1.0
LARGEST_LOSS = 0.6


@dataclass(frozen=True, kw_only=True, eq=False)
class Convergence(Figure):
    """Squared distance to the best weights, times the rows.

    One member has losses uniform on [0, 0.6]. Each of a thousand streams is a column, because the weights of members do
    not interact. SGD has its best step and twice that. With four times the best step, (14) can leave the positive
    weights in its first rows, and the few streams that do dominate the mean. With twice the best step it cannot.
    """

    def settings(self, job: Job) -> dict[str, Any]:
        """Return the parameters of the simulated losses."""
        return {
            "seed": job.trial,
            "streams": STREAMS,
            "rows": ROWS,
            "theta": THETA,
            "losses_to": LARGEST_LOSS,
            "sgd_steps": "the best one, twice the best one",
        }

    def run(self, job: Job) -> Result:
        """Return means over the streams."""
        mean, variance = LARGEST_LOSS / 2, LARGEST_LOSS**2 / 12
        best, step = theory.optimal_weights(mean, THETA), float(theory.best_step(mean, THETA))
        rng = np.random.default_rng(job.trial)
        weighters: dict[str, Weighter[Any]] = {
            "posterior mean": GammaRate(theta=THETA),
            "SGD, best step": SGD(step, THETA),
            "SGD, twice the best step": SGD(2 * step, THETA),
            "averaged SGD, best step": AveragedSGD(step, THETA),
        }
        states: dict[str, Any] = {name: one.init(STREAMS) for name, one in weighters.items()}
        at = np.unique(np.geomspace(10, ROWS, 40).astype(int))
        series: dict[str, list[float]] = {name: [] for name in weighters}
        for start, stop in zip([0, *at[:-1]], at, strict=True):
            g = rng.uniform(0, LARGEST_LOSS, (stop - start, STREAMS))
            for name, weighter in weighters.items():
                states[name] = weighter.update(states[name], g)
                distance = weighter.mean(states[name]) - best
                series[name].append(float(stop * np.mean(distance**2)))
        limits = {
            "limit (15), that of the best step, too": theory.bayes_variance(mean, variance, THETA),
            "limit (18) of twice the best step": theory.sgd_variance(mean, variance, 2 * step, THETA),
        }
        return {"x": at.tolist(), "series": series, "limits": {name: float(value) for name, value in limits.items()}}


FIGURE4 = Convergence(
    name="figure4",
    title="Convergence to the best weights",
    members=("simulated",),
    sets=("losses",),
    simulated_rows=ROWS,
    x_label="rows",
    y_label="rows times squared distance",
    log_x=True,
    log_y=True,
    remark=(
        "Losses are simulated, uniform from 0 to 0.6, in 1,000 streams a run; theta is 1. The limits are those of "
        "endless streams, which the best step is slow to reach. Steps of four times the best can leave the positive "
        "weights in the first rows, and one stream thrown far off from there decides the mean: they are not shown."
    ),
)
