"""Tables 1 and 2: the weights of frozen members, learned online."""

from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any

from bayesvote.core.checks import Array
from bayesvote.weighting import SAG, SGD, AveragedSGD, GammaRate, JointGaussian, Voting, Weighter
from bayesvote_paper.experiment import Job, Result
from bayesvote_paper.members import NAIVE_BAYES, PERCEPTRONS, FrozenMembers, frozen_settings
from bayesvote_paper.shown import Method
from bayesvote_paper.streams import STATIC, measure
from bayesvote_paper.table import GAMMA_RATE, JOINT_GAUSSIAN, SINGLE, VOTING, Table, columns

STEPS = (0.1, 1.0, 10.0, 100.0, 1_000.0, 10_000.0)  # steps of SGD and SAG, of which the best is selected in hindsight


def weighters(horizon: int) -> dict[str, Weighter[Any]]:
    """Return the weighters that the paper compares, and ours."""
    return {
        "Voting": Voting(),
        "SGD": SGD(),
        "AveragedSGD": AveragedSGD(),
        "SAG": SAG(horizon=horizon),
        "GammaRate": GammaRate(),
        "JointGaussian": JointGaussian(),
    }


@dataclass(frozen=True, kw_only=True, eq=False)
class FrozenTable(Table):
    """Weighters of frozen members, compared with a single member that sees all features."""

    sets: tuple[str, ...] = STATIC
    methods: tuple[Method, ...] = (
        SINGLE,
        VOTING,
        Method("SGD"),
        Method("AveragedSGD", "SGD-avg", "SGD avg."),
        Method("SAG"),
        Method("SGD, best step"),
        Method("SAG, best step"),
        GAMMA_RATE,
        JOINT_GAUSSIAN,
    )
    remark: str = "SGD, SGD-avg and SAG have step 1; the best step is the best of six for each set, in hindsight."

    def settings(self, job: Job) -> dict[str, Any]:
        """Return the settings of frozen members."""
        return frozen_settings(job)

    def run(self, job: Job) -> Result:
        """Return the errors of all methods, SGD and SAG with all their steps."""
        frozen = FrozenMembers(job)
        horizon = len(frozen.stream.y)
        compared = weighters(horizon)
        compared |= {f"SGD, step {step:g}": SGD(step) for step in STEPS}
        compared |= {f"SAG, step {step:g}": SAG(step, horizon=horizon) for step in STEPS}
        models = {name: frozen.ensemble(one) for name, one in compared.items()}
        models["single"] = frozen.ensemble(Voting(), members=frozen.train(1, None))
        return measure(models, frozen.stream)

    def with_derived(self, errors: Mapping[str, Array]) -> Mapping[str, Array]:
        """Add SGD and SAG with the step that is best in hindsight on these trials."""
        found = dict(errors)
        for name in ("SGD", "SAG"):
            steps = [errors[key] for step in STEPS if (key := f"{name}, step {step:g}") in errors]
            if steps:
                found[f"{name}, best step"] = min(steps, key=lambda values: float(values.mean()))
        return found


TABLE1 = FrozenTable(
    name="table1",
    title="Frozen Perceptrons, weights learned online",
    members=PERCEPTRONS,
    published={
        "perceptron": columns(
            STATIC,
            single="0.258 0.068 0.204 0.389 0.388 0.410 0.058 0.297 0.404 0.382",
            Voting="0.268 0.056 0.193 0.373 0.324 0.349 0.034 0.247 0.379 0.301",
            SGD="0.265 0.056 0.186 0.371 0.321 0.335 0.034 0.240 0.376 0.299",
            AveragedSGD="0.266 0.055 0.187 0.372 0.323 0.338 0.034 0.241 0.379 0.299",
            SAG="0.245 0.055 0.171 0.364 0.315 0.301 0.031 0.240 0.370 0.292",
            GammaRate="0.239 0.050 0.166 0.363 0.309 0.299 0.030 0.236 0.369 0.289",
        )
    },
)
TABLE2 = FrozenTable(
    name="table2",
    title="Frozen naive Bayes, weights learned online",
    members=NAIVE_BAYES,
    published={
        "naive_bayes": columns(
            STATIC,
            single="0.232 0.065 0.204 0.259 0.343 0.155 0.037 0.199 0.338 0.315",
            Voting="0.207 0.049 0.201 0.258 0.338 0.156 0.066 0.196 0.337 0.316",
            SGD="0.214 0.050 0.200 0.256 0.338 0.155 0.064 0.195 0.337 0.304",
            AveragedSGD="0.215 0.049 0.200 0.256 0.338 0.155 0.064 0.195 0.337 0.316",
            SAG="0.206 0.048 0.187 0.254 0.320 0.152 0.046 0.193 0.337 0.236",
            GammaRate="0.202 0.044 0.184 0.253 0.315 0.152 0.031 0.192 0.336 0.215",
        )
    },
)
