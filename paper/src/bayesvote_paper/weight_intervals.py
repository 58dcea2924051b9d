"""Figure 5: weights of members along a stream, with their 95% intervals."""

from dataclasses import dataclass
from typing import Any

import numpy as np

from bayesvote.core.checks import Array
from bayesvote.weighting import GammaRate
from bayesvote_paper.experiment import Job, Result
from bayesvote_paper.figure import Figure
from bayesvote_paper.members import FrozenMembers, frozen_settings


@dataclass(frozen=True, kw_only=True, eq=False)
class WeightIntervals(Figure):
    """Weights of the members with the largest, the middle and the smallest weight at the end."""

    def settings(self, job: Job) -> dict[str, Any]:
        """Return the settings of frozen members."""
        return frozen_settings(job)

    def run(self, job: Job) -> Result:
        """Return weights and intervals at rows that are evenly spaced on a logarithmic axis."""
        frozen, weighter = FrozenMembers(job), GammaRate()
        X, y, _ = frozen.stream
        model = frozen.ensemble(weighter)
        at = np.unique(np.geomspace(20, len(y), 60).astype(int))
        seen: list[tuple[Array, tuple[Array, Array]]] = []
        for start, stop in zip([0, *at[:-1]], at, strict=True):
            model.decide_then_learn(X[start:stop], y[start:stop])
            seen.append((weighter.mean(model.state), weighter.interval(model.state)))
        order = np.argsort(seen[-1][0])[::-1]
        found: Result = {"x": at.tolist(), "series": {}, "lower": {}, "upper": {}}
        for name, place in (("highest", 0), ("median", len(order) // 2), ("lowest", -1)):
            member = order[place]
            found["series"][name] = [float(mean[member]) for mean, _ in seen]
            found["lower"][name] = [float(lower[member]) for _, (lower, _) in seen]
            found["upper"][name] = [float(upper[member]) for _, (_, upper) in seen]
        return found


FIGURE5 = WeightIntervals(
    name="figure5",
    title="Weights with their 95% intervals along a stream",
    members=("perceptron",),
    sets=("mushrooms",),
    most_trials={"mushrooms": 1},
    x_label="rows",
    y_label="weight",
    log_x=True,
    log_y=True,
)
