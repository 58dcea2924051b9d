"""The paper's tables, one job at a time: a data set, its members, and one order of its rows."""

from functools import cached_property
from typing import Any

from bayesvote.boosting import OGBoost, OSBoost, OzaBoost
from bayesvote.ensemble import Ensemble
from bayesvote.evaluate import prequential
from bayesvote.experiments import setup
from bayesvote.experiments.published import ONLINE, STATIC
from bayesvote.experiments.setup import Job, Stream
from bayesvote.members import Frozen, pretrain
from bayesvote.weighting import GammaRate, JointGaussian, Voting, Weighter

Found = dict[str, Any]


def run(models: dict[str, Any], data: Stream) -> Found:
    """Errors and seconds of models on the same stream."""
    done = prequential(models, data.X, data.y)
    return {
        "rows": len(data.y),
        "partial": data.partial,
        "errors": {name: one.error for name, one in done.items()},
        "seconds": {name: round(one.seconds, 4) for name, one in done.items()},
    }


class Static:
    """The paper's static setting: members that learned the first tenth of the rows, and the stream of the others."""

    def __init__(self, job: Job) -> None:
        data = setup.stream(job.dataset, job.trial)
        n = int(setup.TRAIN_SHARE * len(data.y))
        self.job = job
        self.train = Stream(data.X[:n], data.y[:n], data.partial)
        self.test = Stream(data.X[n:], data.y[n:], data.partial)

    @cached_property
    def members(self) -> Frozen:
        """The members that all methods share."""
        return self.frozen(setup.N_MEMBERS, setup.MAX_FEATURES)

    def frozen(self, n_members: int, share: float | None, epochs: int = setup.EPOCHS) -> Frozen:
        """Members that have learned; naive Bayes goes over the rows once, since it would only count them again."""
        X, y, _ = self.train
        members = setup.MEMBERS[self.job.members](n_members, share).start(X.shape[1], 2, self.job.trial)
        return pretrain(members, X, y, epochs=epochs if "perceptron" in self.job.members else 1)

    def ensemble(self, weighter: Weighter[Any], loss: str = "ramp") -> Ensemble:
        """An ensemble of the members."""
        return Ensemble(self.members, weighter, loss).start(self.test.X.shape[1])


def static(job: Job) -> Found:
    """Tables 1 and 2: ways to weigh frozen members, beside a single one that sees all features."""
    setting = Static(job)
    models = {name: setting.ensemble(one) for name, one in setup.weighters(len(setting.test.y)).items()}
    models["single"] = Ensemble(setting.frozen(1, None), Voting()).start(setting.test.X.shape[1])
    return run(models, setting.test)


def online(job: Job) -> Found:
    """Tables 3 and 4: members that learn. The boosters have members of their own, so the paper's block has them."""
    data = setup.stream(job.dataset, job.trial)
    make, n = setup.MEMBERS[job.members], setup.N_MEMBERS
    models: dict[str, Any] = {
        "single": Ensemble(make(1, None), Voting()),
        "Voting": Ensemble(make(n, setup.MAX_FEATURES), Voting()),
        "GammaRate": Ensemble(make(n, setup.MAX_FEATURES), GammaRate()),
        "JointGaussian": Ensemble(make(n, setup.MAX_FEATURES), JointGaussian()),
    }
    for kind, (papers, _) in setup.BLOCKS.items():
        if job.members == papers:
            models |= {boost.__name__: boost(kind, n) for boost in (OzaBoost, OGBoost, OSBoost)}
    for model in models.values():
        model.start(data.X.shape[1], 2, job.trial)
    return run(models, data)


def losses(job: Job) -> Found:
    """Table 5: the losses (8), (19) and (22) with logistic g; JointGaussian wants a bounded one."""
    setting = Static(job)
    models = {name: setting.ensemble(weighter, "logistic") for name, weighter in setup.LOSSES.items()}
    models["JointGaussian"] = setting.ensemble(JointGaussian())
    return run(models, setting.test)


def default(job: Job) -> Found:
    """Table 6: the default classifier, and what its members and weights are worth."""
    from bayesvote.estimators import BayesianEnsembleClassifier

    X, y, partial = setup.stream(job.dataset, job.trial)
    models = {
        name: BayesianEnsembleClassifier(**options, random_state=job.trial) for name, options in setup.ABLATION.items()
    }
    rows = setup.TABLE6_ROWS
    return run(models, Stream(X[:rows], y[:rows], partial))


def settings(job: Job) -> Found:
    """Shares of the features and numbers of passes, on orders of the rows that no table reports."""
    job = job._replace(trial=setup.CHOICE_TRIALS + job.trial)
    X, y, partial = setup.stream(job.dataset, job.trial)
    data = Stream(X[: setup.CHOICE_ROWS], y[: setup.CHOICE_ROWS], partial)
    weighters: dict[str, Weighter[Any]] = {
        "Voting": Voting(),
        "GammaRate": GammaRate(),
        "JointGaussian": JointGaussian(),
    }
    found: Found = {"errors": {}}
    setting = Static(job)
    for share in setup.CHOICE_SHARES:
        if job.dataset in ONLINE:
            make = setup.MEMBERS[job.members]
            models = {
                name: Ensemble(make(setup.N_MEMBERS, share), one).start(X.shape[1], 2, job.trial)
                for name, one in weighters.items()
            }
            add(found, f"online, {share:g} of the features", run(models, data))
        if job.dataset in STATIC:
            for epochs in setup.CHOICE_EPOCHS if "perceptron" in job.members else (1,):
                setting.members = setting.frozen(setup.N_MEMBERS, share, epochs)
                models = {name: setting.ensemble(one) for name, one in weighters.items()}
                passes = f", {epochs} passes" if "perceptron" in job.members else ""
                add(found, f"frozen, {share:g} of the features{passes}", run(models, setting.test))
    return found


def add(found: Found, setting: str, part: Found) -> None:
    """Put the errors under one setting beside those under others."""
    found["errors"] |= {f"{setting}: {method}": error for method, error in part["errors"].items()}
