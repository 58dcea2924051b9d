"""Choice of the settings: shares of the features and passes, on orders of the rows that no table reports."""

from collections.abc import Iterator
from dataclasses import dataclass
from typing import Any

import numpy as np

from bayesvote.ensemble import Ensemble
from bayesvote.weighting import GammaRate, JointGaussian, Voting, Weighter
from bayesvote_paper.experiment import Experiment, Job, Result, Results
from bayesvote_paper.members import (
    MEMBERS,
    N_MEMBERS,
    NAIVE_BAYES,
    PERCEPTRONS,
    FrozenMembers,
    in_words,
)
from bayesvote_paper.shown import TextTable
from bayesvote_paper.streams import ONLINE, STATIC, measure, stream, stream_settings

FIRST_TRIAL = 100  # further than any table goes
MOST_ROWS = 10_000
SHARES = (0.2, 0.35, 0.5, 0.65, 0.8)
PASSES = (1, 5, 20)
WEIGHTERS: dict[str, Weighter[Any]] = {
    "Voting": Voting(),
    "GammaRate": GammaRate(),
    "JointGaussian": JointGaussian(),
}


@dataclass(frozen=True, kw_only=True, eq=False)
class ChoiceOfSettings(Experiment):
    """Errors by setting and method, of online and frozen members, on the data sets of the tables with such members."""

    def settings(self, job: Job) -> dict[str, Any]:
        """Return the settings of the rows."""
        return stream_settings(job) | {"order_seed": FIRST_TRIAL + job.trial, "rows_at_most": MOST_ROWS}

    def run(self, job: Job) -> Result:
        """Return the errors by setting and method."""
        return {
            "errors": {
                f"{setting}: {method}": error
                for setting, errors in _errors(job._replace(trial=FIRST_TRIAL + job.trial))
                for method, error in errors.items()
            }
        }

    def show(self, results: Results) -> list[TextTable]:
        """Return mean errors over the data sets by setting, kind of members and method."""
        errors: dict[str, dict[tuple[str, str], list[float]]] = {}
        for line in results:
            for name, error in line["errors"].items():
                setting, _, method = name.partition(": ")
                errors.setdefault(setting, {}).setdefault((line["members"], method), []).append(error)
        columns = list(dict.fromkeys(column for by_column in errors.values() for column in by_column))
        header = ("setting", *(f"{method}, {in_words(members)}" for members, method in columns))
        rows = [
            (setting, *(f"{np.mean(found[column]):.4f}" if column in found else "" for column in columns))
            for setting, found in sorted(errors.items())
        ]
        title = "Mean error over the sets, on orders of the rows that no table reports"
        return [TextTable(title, header, rows)] if rows else []


def _errors(job: Job) -> Iterator[tuple[str, dict[str, float]]]:
    """Yield each setting with the errors of the methods."""
    data, frozen, members = stream(job.dataset, job.trial), FrozenMembers(job), MEMBERS[job.members]
    for share in SHARES:
        if job.dataset in ONLINE:
            models = {
                name: Ensemble(members.make(N_MEMBERS, share), one).start(data.X.shape[1], 2, job.trial)
                for name, one in WEIGHTERS.items()
            }
            yield f"online, {share:g} of the features", measure(models, data.rows(0, MOST_ROWS))["errors"]
        if job.dataset in STATIC:
            several = members.passes > 1
            for passes in PASSES if several else (1,):
                trained = frozen.train(N_MEMBERS, share, passes)
                models = {name: frozen.ensemble(one, members=trained) for name, one in WEIGHTERS.items()}
                setting = f"frozen, {share:g} of the features" + (f", {passes} passes" if several else "")
                yield setting, measure(models, frozen.stream)["errors"]


SETTINGS = ChoiceOfSettings(
    name="settings",
    title="How the settings were chosen",
    members=PERCEPTRONS + NAIVE_BAYES,
    sets=tuple(dict.fromkeys(STATIC + ONLINE)),
    by_name_only=True,
)
