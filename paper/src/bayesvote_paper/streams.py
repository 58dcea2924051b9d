"""The paper's data sets as scaled streams in the order of a trial, and the errors of models on them."""

from collections.abc import Mapping
from functools import lru_cache
from typing import Any, NamedTuple

import numpy as np

from bayesvote.core.checks import Array, Labels
from bayesvote.datasets import load_dataset, scale
from bayesvote.evaluation import prequential
from bayesvote_paper.experiment import Job, Result

# The sets of the paper's tables: with frozen members, and with members that learn.
STATIC = (
    "heart",
    "breast-cancer",
    "australian",
    "diabetes",
    "german",
    "splice",
    "mushrooms",
    "ionosphere",
    "sonar",
    "svmguide3",
)
ONLINE = (*STATIC[:7], "adult", "cod-rna", "covtype")


class Stream(NamedTuple):
    """A data set in the order of a trial."""

    X: Array
    y: Labels
    partial: bool

    def rows(self, start: int, stop: int | None) -> "Stream":
        """Return some of its rows."""
        return Stream(self.X[start:stop], self.y[start:stop], self.partial)


@lru_cache(maxsize=1)
def _scaled(dataset: str) -> Stream:
    data = load_dataset(dataset, progress=False)
    X = data.X if isinstance(data.X, np.ndarray) else data.X.toarray()
    return Stream(np.asarray(scale(X)), data.y, data.partial)


def stream(dataset: str, trial: int) -> Stream:
    """Return a data set in the order of a trial, with features in [-1, 1]."""
    data = _scaled(dataset)
    order = np.random.default_rng(trial).permutation(len(data.y))
    return Stream(data.X[order], data.y[order], data.partial)


def stream_settings(job: Job) -> dict[str, Any]:
    """Return the settings of all experiments on data sets."""
    return {"order_seed": job.trial, "members_seed": job.trial, "scaling": "each feature to [-1, 1]"}


def measure(models: Mapping[str, Any], data: Stream) -> Result:
    """Return errors and seconds of models on the same stream."""
    done = prequential(models, data.X, data.y)
    return {
        "rows": len(data.y),
        "partial": data.partial,
        "errors": {name: one.error for name, one in done.items()},
        "seconds": {name: round(one.seconds, 4) for name, one in done.items()},
    }
