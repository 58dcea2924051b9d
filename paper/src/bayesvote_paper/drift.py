"""Figure 6: a stream that changes half-way, with and without forgetting."""

from dataclasses import dataclass
from typing import Any

import numpy as np

from bayesvote.ensemble import Ensemble
from bayesvote.evaluation import prequential
from bayesvote.members import Frozen, PerceptronBank
from bayesvote.weighting import JointGaussian
from bayesvote_paper.experiment import Job, Result
from bayesvote_paper.figure import Figure, spaced

ROWS, FEATURES = 10_000, 20


@dataclass(frozen=True, kw_only=True, eq=False)
class Drift(Figure):
    """Windowed error on a stream in which right members become wrong half-way, and wrong ones right.

    Twenty frozen Perceptrons see one feature each; the label follows the first ten features, then the last ten.
    """

    def settings(self, job: Job) -> dict[str, Any]:
        """Return the seed."""
        return {"seed": job.trial}

    def run(self, job: Job) -> Result:
        """Return a curve for each rate of forgetting."""
        rng = np.random.default_rng(job.trial)
        X = rng.uniform(-1, 1, (ROWS, FEATURES))
        first_half = np.arange(ROWS)[:, None] < ROWS // 2
        followed = np.where(first_half, np.arange(FEATURES) < FEATURES // 2, np.arange(FEATURES) >= FEATURES // 2)
        y = ((X * followed).sum(axis=1) > 0).astype(np.intp)
        bank = PerceptronBank(FEATURES, max_features=1).start(FEATURES, 2, job.trial)
        X_old = rng.uniform(-1, 1, (500, FEATURES))
        bank.scores_then_learn(X_old, (X_old.sum(axis=1) > 0).astype(np.intp))
        models = {
            f"forgetting {forgetting:g}": Ensemble(Frozen(bank), JointGaussian(forgetting=forgetting)).start(FEATURES)
            for forgetting in (1.0, 0.999, 0.99)
        }
        done = prequential(models, X, y)
        at = spaced(ROWS)
        return {"x": (at + 1).tolist(), "series": {name: one.windowed(500)[at].tolist() for name, one in done.items()}}


FIGURE6 = Drift(
    name="figure6",
    title="A stream that changes, with and without forgetting",
    members=("perceptron",),
    sets=("drift",),
    simulated_rows=ROWS,
    x_label="rows",
    y_label="error of the last 500 rows",
)
