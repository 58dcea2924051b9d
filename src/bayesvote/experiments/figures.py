"""The paper's figures and three of our own, one job at a time."""

from typing import Any

import numpy as np

from bayesvote import theory
from bayesvote._checks import Array
from bayesvote.ensemble import Ensemble
from bayesvote.evaluate import prequential
from bayesvote.experiments import setup
from bayesvote.experiments.setup import Job
from bayesvote.experiments.tables import Found, Static, run
from bayesvote.members import Frozen, PerceptronBank
from bayesvote.weighting import SGD, AveragedSGD, GammaRate, JointGaussian, Weighter

POINTS = 200  # of a curve


def curves(job: Job) -> Found:
    """Figure 1: the error so far of the ways to weigh frozen members."""
    setting = Static(job)
    named = setup.weighters(len(setting.test.y))
    shown = ("GammaRate", "SGD", "AveragedSGD", "SAG", "JointGaussian")
    done = prequential({name: setting.ensemble(named[name]) for name in shown}, setting.test.X, setting.test.y)
    at = spaced(len(setting.test.y))
    return {"x": (at + 1).tolist(), "series": {name: one.curve[at].tolist() for name, one in done.items()}}


def sensitivity(job: Job) -> Found:
    """Figures 2 and 3: the error of (11) over the prior's rate beta, and over theta."""
    setting = Static(job)
    name, values = ("beta", setup.BETAS) if job.experiment == "figure2" else ("theta", setup.THETAS)
    models = {f"{value:g}": setting.ensemble(GammaRate(**{name: value})) for value in values}
    return {"x": list(values), "series": {"GammaRate": list(run(models, setting.test)["errors"].values())}}


def convergence(job: Job) -> Found:
    """Figure 4: squared distance of posterior mean and SGD to the best weights, times the rows, beside (15) and (18).

    One member has losses uniform on [0, 0.6]; each of a thousand streams is a column, as weights do not mix. SGD has
    its best step and twice that. At four times it, (14) can leave the positive weights in its first rows, and the odd
    stream that is thrown far off from there decides the mean; at twice it cannot.
    """
    streams, length, theta, width = (setup.CONVERGENCE[name] for name in ("streams", "rows", "theta", "losses_to"))
    mean, variance = width / 2, width**2 / 12
    best, step = theory.optimal_weights(mean, theta), float(theory.best_step(mean, theta))
    rng = np.random.default_rng(job.trial)
    weighters: dict[str, Weighter[Any]] = {
        "posterior mean": GammaRate(theta=theta),
        "SGD, best step": SGD(step, theta),
        "SGD, twice the best step": SGD(2 * step, theta),
        "averaged SGD, best step": AveragedSGD(step, theta),
    }
    states: dict[str, Any] = {name: one.init(streams) for name, one in weighters.items()}
    at = np.unique(np.geomspace(10, length, 40).astype(int))
    series: dict[str, list[float]] = {name: [] for name in weighters}
    for start, stop in zip([0, *at[:-1]], at, strict=True):
        g = rng.uniform(0, width, (stop - start, streams))
        for name, weighter in weighters.items():
            states[name] = weighter.update(states[name], g)
            distance = weighter.mean(states[name]) - best
            series[name].append(float(stop * np.mean(distance**2)))
    limits = {
        "limit (15), that of the best step, too": theory.bayes_variance(mean, variance, theta),
        "limit (18) of twice the best step": theory.sgd_variance(mean, variance, 2 * step, theta),
    }
    return {"x": at.tolist(), "series": series, "limits": {name: float(value) for name, value in limits.items()}}


def weights(job: Job) -> Found:
    """Figure 5: the weights of the members that end first, in the middle and last, with their 95% intervals."""
    setting = Static(job)
    model = setting.ensemble(GammaRate())
    at = np.unique(np.geomspace(20, len(setting.test.y), 60).astype(int))
    seen: list[tuple[Array, tuple[Array, Array]]] = []
    weighter = GammaRate()
    for start, stop in zip([0, *at[:-1]], at, strict=True):
        model.decide_then_learn(setting.test.X[start:stop], setting.test.y[start:stop])
        seen.append((weighter.mean(model.state), weighter.interval(model.state)))
    order = np.argsort(seen[-1][0])[::-1]
    found: Found = {"x": at.tolist(), "series": {}, "lower": {}, "upper": {}}
    for name, place in (("highest", 0), ("median", len(order) // 2), ("lowest", -1)):
        member = order[place]
        found["series"][name] = [float(mean[member]) for mean, _ in seen]
        found["lower"][name] = [float(lower[member]) for _, (lower, _) in seen]
        found["upper"][name] = [float(upper[member]) for _, (_, upper) in seen]
    return found


def drift(job: Job) -> Found:
    """Figure 6: windowed error where, half-way, the members that were right become wrong, and the others right.

    Twenty frozen Perceptrons see one feature each; the label follows the first ten features, then the last ten.
    """
    rng = np.random.default_rng(job.trial)
    n, d = 10_000, 20
    X = rng.uniform(-1, 1, (n, d))
    halves = np.where(np.arange(n)[:, None] < n // 2, np.arange(d) < d // 2, np.arange(d) >= d // 2)
    y = ((X * halves).sum(axis=1) > 0).astype(np.intp)
    bank = PerceptronBank(d, max_features=1).start(d, 2, job.trial)
    X_old = rng.uniform(-1, 1, (500, d))
    bank.scores_then_learn(X_old, (X_old.sum(axis=1) > 0).astype(np.intp))
    models = {
        f"forgetting {forgetting:g}": Ensemble(Frozen(bank), JointGaussian(forgetting=forgetting)).start(d)
        for forgetting in (1.0, 0.999, 0.99)
    }
    done = prequential(models, X, y)
    at = spaced(n)
    return {"x": (at + 1).tolist(), "series": {name: one.windowed(500)[at].tolist() for name, one in done.items()}}


def spaced(length: int) -> Any:
    """Places of a curve's points."""
    return np.unique(np.linspace(0, length - 1, min(POINTS, length)).astype(int))
