"""Work of ``bench``: the speed of the models on this machine, compared with a matrix product."""

import time
from collections.abc import Callable, Iterator
from functools import partial
from typing import Any, NamedTuple

import numpy as np
from rich.table import Table

from bayesvote import (
    BayesianEnsembleClassifier,
    Ensemble,
    Frozen,
    GammaRate,
    JointGaussian,
    NaiveBayesBank,
    OGBoost,
    OSBoost,
    OzaBoost,
    PerceptronBank,
    mixed,
)
from bayesvote.apps.cli import show
from bayesvote.boosting import Booster
from bayesvote.core.checks import Array, Labels
from bayesvote.evaluation import prequential

_FEATURES, _MEMBERS = 54, 100


class Speed(NamedTuple):
    """Time per row of one model in microseconds, and as a multiple of the matrix product."""

    model: str
    us_per_row: float
    products: float


def bench(*, as_json: bool) -> None:
    """Measure the models and show a table."""
    X, y = _synthetic(100_000)
    product = product_seconds(X, _MEMBERS) / len(X)
    speeds = []
    with show.progress("[progress.description]{task.description}") as bar:
        task = bar.add_task("")
        for name, make, rows in _models(X, y):
            bar.update(task, description=f"Measuring {name}")
            seconds = _seconds(make, X[:rows], y[:rows]) / rows
            speeds.append(Speed(name, 1e6 * seconds, seconds / product))
    if as_json:
        rows_of = [{**speed._asdict(), "rows_per_second": 1e6 / speed.us_per_row} for speed in speeds]
        show.as_json({"product_us_per_row": 1e6 * product, "features": _FEATURES, "models": rows_of})
        return
    table = Table(box=None, padding=(0, 2), pad_edge=False, header_style="dim")
    table.add_column("model, test-then-train", no_wrap=True)
    for head in ("us per row", "rows/s", "times X @ W"):
        table.add_column(head, justify="right", no_wrap=True)
    for speed in speeds:
        table.add_row(speed.model, f"{speed.us_per_row:.2f}", f"{1e6 / speed.us_per_row:,.0f}", f"{speed.products:.1f}")
    screen = show.console()
    screen.print(
        f"{_MEMBERS} members, {_FEATURES} features, 12 of them non-zero. "
        f"The product X @ W takes {1e6 * product:.2f} us per row.\n"
    )
    screen.print(table)


def _synthetic(n: int) -> tuple[Array, Labels]:
    rng = np.random.default_rng(0)
    X = rng.uniform(-1, 1, (n, _FEATURES)) * (rng.random((n, _FEATURES)) < 12 / _FEATURES)
    return X, (X @ rng.standard_normal(_FEATURES) > 0).astype(np.intp)


def product_seconds(X: Array, n_members: int) -> float:
    """Return the time of the product of all rows with a weight matrix: the limit for the models."""
    W = np.random.default_rng(0).standard_normal((X.shape[1], n_members))

    def once() -> float:
        start = time.perf_counter()
        X @ W
        return time.perf_counter() - start

    seconds = min(once() for _ in range(5))
    time.sleep(1)  # BLAS threads spin for a while and would slow down the next measurement
    return seconds


def _seconds(make: Callable[[], Any], X: Array, y: Labels) -> float:
    prequential(make(), X[:300], y[:300])
    return min(float(prequential(make(), X, y).seconds) for _ in range(2))


def _models(X: Array, y: Labels) -> Iterator[tuple[str, Callable[[], Any], int]]:
    """Yield the name of each model, its factory, and the number of rows to measure it with."""
    d = _FEATURES

    def frozen() -> Ensemble:
        bank = PerceptronBank(_MEMBERS).start(d, rng=0)
        bank.scores_then_learn(X[:1000], y[:1000])
        return Ensemble(Frozen(bank), GammaRate()).start(d)

    yield "the default classifier", partial(BayesianEnsembleClassifier, n_members=_MEMBERS, random_state=0), 20_000
    yield 'members="fast"', partial(BayesianEnsembleClassifier, "fast", _MEMBERS, random_state=0), 50_000
    yield "Perceptrons, GammaRate", lambda: Ensemble(PerceptronBank(_MEMBERS), GammaRate()).start(d, rng=0), 100_000
    yield "the same, frozen", frozen, 100_000
    yield "naive Bayes, GammaRate", lambda: Ensemble(NaiveBayesBank(_MEMBERS), GammaRate()).start(d, rng=0), 50_000
    yield "mixed, JointGaussian", lambda: Ensemble(mixed(_MEMBERS), JointGaussian()).start(d, rng=0), 20_000
    for member, rows in (("perceptron", 20_000), ("naive_bayes", 5_000)):
        for kind in (OzaBoost, OGBoost, OSBoost):
            yield f"{kind.__name__}({member})", partial(_booster, kind, member), rows


def _booster(kind: type[Booster], member: str) -> Booster:
    return kind(member, _MEMBERS).start(_FEATURES, rng=0)
