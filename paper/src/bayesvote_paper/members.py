"""The members of the paper's ensembles, and ours.

The paper says that a member sees a random subset of the features, but not its size. Here it is half of the features,
the members' default. The passes of frozen Perceptrons over their training rows were chosen among 1, 5 and 20 by the
lowest mean error of uniform voting, on orders of the rows that no table reports. This improves the members of every
method, including voting. ``reproduce settings`` runs the comparison, also for other sizes of the subsets.
"""

from collections.abc import Callable, Mapping
from functools import cached_property
from typing import Any, NamedTuple

from bayesvote.ensemble import Ensemble
from bayesvote.members import Bank, Frozen, NaiveBayesBank, PerceptronBank, pretrain
from bayesvote.weighting import Weighter
from bayesvote_paper.experiment import Job
from bayesvote_paper.streams import stream, stream_settings

N_MEMBERS = 100
MAX_FEATURES = 0.5
TRAIN_SHARE = 0.1  # of the rows, for members that are frozen afterwards


class Members(NamedTuple):
    """Members of one of the paper's two kinds, in the paper's form or in ours.

    ``passes`` is the number of passes over the training rows. Naive Bayes has one, as it would only count rows again.
    """

    make: Callable[[int, float | None], Bank[Any]]
    kind: str
    papers: bool
    label: str
    detail: str = ""
    passes: int = 1

    @property
    def owner(self) -> str:
        """Return "the paper's" or "ours"."""
        return "the paper's" if self.papers else "ours"

    @property
    def caption(self) -> str:
        """Return the heading of their table."""
        whose = "The paper's" if self.papers else "Our"
        return f"{whose} members: {self.label}{self.detail}"


MEMBERS: Mapping[str, Members] = {
    "perceptron": Members(PerceptronBank, "perceptron", True, "plain Perceptrons", passes=20),
    "averaged_perceptron": Members(
        lambda m, f: PerceptronBank(m, f, averaged=True), "perceptron", False, "averaged Perceptrons", passes=20
    ),
    "gaussian_naive_bayes": Members(
        lambda m, f: NaiveBayesBank(m, f, kinds="gaussian"), "naive_bayes", True, "Gaussian naive Bayes"
    ),
    "naive_bayes": Members(
        NaiveBayesBank, "naive_bayes", False, "naive Bayes", ", Gaussian or Bernoulli as the feature is"
    ),
}
PERCEPTRONS = ("perceptron", "averaged_perceptron")
NAIVE_BAYES = ("gaussian_naive_bayes", "naive_bayes")
THE_PAPERS = ("perceptron", "gaussian_naive_bayes")


def in_words(members: str) -> str:
    """Return a name with spaces instead of underscores."""
    return members.replace("_", " ")


def ensemble_settings(job: Job, loss: str = "ramp") -> dict[str, Any]:
    """Return the settings of experiments with a hundred members; alpha, beta and theta are GammaRate's."""
    own = {"n_members": N_MEMBERS, "max_features": MAX_FEATURES, "loss": loss, "alpha": 1, "beta": 1, "theta": 0.1}
    return stream_settings(job) | own


def frozen_settings(job: Job, loss: str = "ramp", **more: Any) -> dict[str, Any]:
    """Return the settings of experiments with frozen members."""
    trained = {"train_share": TRAIN_SHARE, "epochs": MEMBERS[job.members].passes}
    return ensemble_settings(job, loss) | more | trained


class FrozenMembers:
    """The paper's static setting: frozen members trained on the first tenth of the rows, and a stream of the rest."""

    def __init__(self, job: Job) -> None:
        data = stream(job.dataset, job.trial)
        n = int(TRAIN_SHARE * len(data.y))
        self.kind, self.seed = MEMBERS[job.members], job.trial
        self.training, self.stream = data.rows(0, n), data.rows(n, None)

    @cached_property
    def members(self) -> Frozen:
        """Return the members that all methods share."""
        return self.train(N_MEMBERS, MAX_FEATURES)

    def train(self, n_members: int, max_features: float | None, passes: int | None = None) -> Frozen:
        """Return trained and frozen members."""
        X, y, _ = self.training
        members = self.kind.make(n_members, max_features).start(X.shape[1], 2, self.seed)
        return pretrain(members, X, y, epochs=passes or self.kind.passes)

    def ensemble(self, weighter: Weighter[Any], loss: str = "ramp", members: Frozen | None = None) -> Ensemble:
        """Return an ensemble, of the shared members by default."""
        return Ensemble(members or self.members, weighter, loss).start(self.stream.X.shape[1])
