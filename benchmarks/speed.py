"""Speed of ensembles and boosters, compared with a matrix product and other libraries in one run.

``python -m benchmarks speed``. The stream is covtype, or a synthetic one of its shape. Everything runs test-then-train.
Loading and the first call are not counted (the first call is reported separately). Compare figures of one run only.
"""

import argparse
import copy
import math
import os
import statistics
import subprocess
import sys
import tempfile
import time
from collections.abc import Callable
from pathlib import Path
from typing import Any

import numpy as np
from scipy.sparse import csr_array, random_array
from threadpoolctl import threadpool_limits

import results
from bayesvote import (
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
    prequential,
    save,
)
from bayesvote.apps.cli.bench import product_seconds
from bayesvote.boosting import Booster
from bayesvote.core.checks import Array, Labels
from bayesvote.datasets import load_dataset, scale
from bayesvote.members import Bank
from bayesvote.model import Model
from bayesvote.weighting import Weighter
from peers import MEMBERS, PEERS, measure

ENSEMBLE = "ensemble of online Perceptrons"
COUNTERPARTS = {
    "CapyMOA OzaBoost(Perceptron)": (ENSEMBLE, "OzaBoost(perceptron)", "OGBoost(perceptron)"),
    "CapyMOA OnlineSmoothBoost(Perceptron)": ("OSBoost(perceptron)",),
    "CapyMOA OzaBoost(NaiveBayes)": ("OzaBoost(naive_bayes)", "OGBoost(naive_bayes)"),
    "CapyMOA OnlineSmoothBoost(NaiveBayes)": ("OSBoost(naive_bayes)",),
    "Vowpal Wabbit boosting": (ENSEMBLE,),
    "river AdaBoost(Perceptron)": (ENSEMBLE,),
}


def load(name: str, rows: int, features: int) -> tuple[Array, csr_array, Labels, str]:
    """Return a data set of the paper in random order, dense in [-1, 1] and sparse, or a synthetic one of its shape."""
    rng = np.random.default_rng(0)
    folder = os.environ.get("BAYESVOTE_DATA")
    if folder or name == "adult":
        data = load_dataset(name)
        raw, y, title = csr_array(data.X), data.y, name
    else:
        raw = csr_array(random_array((rows, features), density=12 / 54, rng=rng).tocsr())
        y = (np.asarray(raw @ rng.standard_normal(features)) > 0).astype(np.intp)
        title = f"synthetic, of the shape of {name}"
    order = rng.permutation(len(y))
    dense, sparse = np.asarray(scale(raw.toarray())), csr_array(scale(raw))
    return np.ascontiguousarray(dense[order]), sparse[order], y[order], title


def best(work: Callable[[], float], repeats: int = 3) -> float:
    return min(work() for _ in range(repeats))


def stream_seconds(
    make: Callable[[], Model[Any]], X: Array | csr_array, y: Labels, repeats: int = 2
) -> tuple[float, float]:
    """Return the seconds for the whole stream, the best of some runs, and the error."""
    prequential(make(), X[:300], y[:300])
    runs = [prequential(make(), X, y) for _ in range(repeats)]
    return min(run.seconds for run in runs), runs[0].error


def started(bank: Bank[Any], weighter: Weighter[Any], features: int) -> Callable[[], Model[Any]]:
    """Return a function that makes new ensembles, each with a copy of the bank."""
    return lambda: Ensemble(copy.deepcopy(bank), weighter).start(features, rng=0)


def ensembles(X: Array, y: Labels, sparse: csr_array, name: str) -> dict[str, Any]:
    """Time ensembles and the product, in microseconds a row; the first one is compared with the peers."""
    n, d = X.shape
    product = product_seconds(X, MEMBERS)
    with threadpool_limits(1):
        one_core = product_seconds(X, MEMBERS)
    print(f"\n{name}: {n:,} x {d}, {sparse.nnz / n:.1f} non-zeros a row, {MEMBERS} members.")
    print(f"  The product X @ W takes {product * 1e6 / n:.2f} us a row, {one_core * 1e6 / n:.2f} us on one core.")

    def frozen() -> Ensemble:
        bank = PerceptronBank(MEMBERS).start(d, rng=0)
        bank.scores_then_learn(X[: n // 100], y[: n // 100])
        return Ensemble(Frozen(bank), GammaRate()).start(d)

    found = {}
    for title, make, rows in (
        ("online Perceptrons", started(PerceptronBank(MEMBERS), GammaRate(), d), X),
        (
            "the same, sparse rows as CSR",
            started(PerceptronBank(MEMBERS), GammaRate(), d),
            sparse,
        ),
        ("frozen Perceptrons", frozen, X),
        ("online naive Bayes", started(NaiveBayesBank(MEMBERS), GammaRate(), d), X),
    ):
        seconds, error = stream_seconds(make, rows, y)
        found[title] = seconds / n * 1e6
        print(
            f"  {title:32} {seconds / n * 1e6:5.2f} us a row, {seconds / product:5.2f} times the product, "
            f"{seconds / one_core:5.2f} times that of one core, error {error:.4f}",
            flush=True,
        )
    return {"set": name, "rows": n, "features": d, "product": one_core / n * 1e6, "us": found}


def boosters(X: Array, y: Labels, reference: float) -> dict[str, tuple[float, float | None]]:
    """Return rows per second of the ensemble and the boosters, and errors on the peers' rows."""
    d = X.shape[1]
    ours: dict[str, tuple[float, float | None]] = {ENSEMBLE: (1 / reference, None)}
    print("\nBoosters:")
    for member, rows, peers_rows in (("perceptron", 100_000, 10_000), ("naive_bayes", 20_000, 2000)):
        for kind in (OzaBoost, OGBoost, OSBoost):
            X_, y_ = X[:rows], y[:rows]

            def booster(kind: type[Booster] = kind, member: str = member) -> Booster:
                return kind(member, MEMBERS).start(d, rng=0)

            seconds, error = stream_seconds(booster, X_, y_)
            short = prequential(booster(), X[:peers_rows], y[:peers_rows]).error
            label = f"{kind.__name__}({member})"
            ours[label] = len(y_) / seconds, short
            also = f"on the peers' {peers_rows:,} rows {short:.4f}"
            print(f"  {label:40} {ours[label][0]:12,.0f} rows/s, error {error:.4f}; {also}", flush=True)
    return ours


def beside_peers(X: Array, y: Labels, ours: dict[str, tuple[float, float | None]]) -> dict[str, list[Any]]:
    """Time the peers. This must come last, because a started Java machine uses CPU time now and then."""
    print("\nPeers:")
    found = {}
    for name in PEERS:
        result = measure(name, X, y)
        if result is None:
            print(f"  {name:40} not installed")
            continue
        speed, error = result
        times = ", ".join(f"{label} {ours[label][0] / speed:,.0f} times" for label in COUNTERPARTS[name])
        rows = PEERS[name][1]
        found[name] = [speed, error, {label: [ours[label][0] / speed, ours[label][1]] for label in COUNTERPARTS[name]}]
        print(f"  {name:40} {speed:12,.0f} rows/s, error {error:.4f} on {rows:,} rows. Ours: {times}", flush=True)
    return found


def one_at_a_time(X: Array, y: Labels) -> None:
    d, n = X.shape[1], 3000
    model = Ensemble(PerceptronBank(MEMBERS), GammaRate()).start(d, rng=0)
    model.decide_then_learn(X[:300], y[:300])
    model.decide(X[:1])
    rows = [X[t : t + 1] for t in range(n)]
    labels = [y[t : t + 1] for t in range(n)]

    def each(work: Callable[[Array, Labels], object]) -> float:
        times = []
        for row, label in zip(rows, labels, strict=True):
            start = time.perf_counter()
            work(row, label)
            times.append(time.perf_counter() - start)
        return 1e6 * statistics.median(times)

    predict, learn = each(lambda row, _: model.decide(row)), each(model.decide_then_learn)
    print(f"\nOne sample at a time: predict {predict:.0f} us; predict and learn in one call {learn:.0f} us (medians).")


def weighters(X: Array, y: Labels) -> dict[str, float]:
    d, n = X.shape[1], min(20_000, len(y))
    found = {}
    print("\nWeighters on online Perceptrons, microseconds a row:")
    choices: dict[str, Weighter[Any]] = {
        "`GammaRate()`": GammaRate(),
        "`JointGaussian(100.0)`": JointGaussian(100.0),
        "`JointGaussian()`": JointGaussian(),
    }
    for name, weighter in choices.items():
        seconds, error = stream_seconds(started(PerceptronBank(MEMBERS), weighter, d), X[:n], y[:n])
        found[name] = seconds / n * 1e6
        print(f"  {name:75} {seconds / n * 1e6:6.1f} us, error {error:.4f}", flush=True)
    seconds, error = stream_seconds(started(mixed(MEMBERS), JointGaussian(), d), X[:n], y[:n])
    print(f"  {'mixed members, JointGaussian()':75} {seconds / n * 1e6:6.1f} us, error {error:.4f}")
    return {**found, "`JointGaussian()`, mixed members": seconds / n * 1e6}


def saving(X: Array, y: Labels) -> dict[str, list[float]]:
    print("\nSaving, both fsyncs included (median of 50):")
    found = {}
    choices: list[Weighter[Any]] = [GammaRate(), JointGaussian()]
    for weighter in choices:
        model = Ensemble(PerceptronBank(MEMBERS), weighter).start(X.shape[1], rng=0)
        model.decide_then_learn(X[:1000], y[:1000])
        times = []
        with tempfile.TemporaryDirectory() as folder:
            path = Path(folder) / "model.safetensors"
            for _ in range(50):
                start = time.perf_counter()
                save(model, path)
                times.append(time.perf_counter() - start)
            size = path.stat().st_size
        found[type(weighter).__name__] = [1e3 * statistics.median(times), size / 1000]
        print(f"  {type(weighter).__name__:14} {1e3 * statistics.median(times):.1f} ms, {size / 1000:.0f} KB")
    return found


def scaling(most: float) -> dict[str, dict[str, float]]:
    """Return microseconds a row, over three decades of rows, members and non-zeros."""
    rng = np.random.default_rng(0)
    print("\nLinear cost: online Perceptrons with GammaRate.")
    found: dict[str, dict[str, float]] = {}
    for what, sizes in (
        ("rows", [(10**k, 100, 50) for k in (3, 4, 5, 6)]),
        ("members", [(2000, 10**k, 50) for k in (1, 2, 3, 4)]),
        ("non-zeros", [(2000, 100, 10**k) for k in (1, 2, 3, 4)]),
    ):
        found[what] = {}
        for n, m, nonzeros in sizes:
            if n * m * nonzeros > most * 100 * 54:
                continue
            X = rng.standard_normal((min(n, 10_000), nonzeros))
            y = rng.integers(0, 2, len(X))
            X, y = np.tile(X, (n // len(X), 1)), np.tile(y, n // len(y))
            seconds, _ = stream_seconds(started(PerceptronBank(m), GammaRate(), nonzeros), X, y)
            size = {"rows": n, "members": m, "non-zeros": nonzeros}[what]
            found[what][f"{size:,}"] = seconds / n * 1e6
        print(f"  us a row by {what}: {found[what]}", flush=True)
    return found


def start_up() -> list[float]:
    timed = "import time; start = time.perf_counter(); {}; print(time.perf_counter() - start)"
    first_call = (
        "import numpy as np; from bayesvote import Ensemble, PerceptronBank; "
        "Ensemble(PerceptronBank()).start(5, rng=0).decide_then_learn(np.eye(5), [0, 1, 0, 1, 0])"
    )

    def run(code: str) -> float:
        command = [sys.executable, "-c", timed.format(code)]
        return float(subprocess.run(command, capture_output=True, text=True, check=True).stdout)

    light, whole = best(lambda: run("import bayesvote")), best(lambda: run(first_call))
    print(f"\nimport bayesvote: {light:.2f} s; import and first call: {whole:.2f} s.")
    return [light, whole]


def main() -> None:
    parser = argparse.ArgumentParser(description=(__doc__ or "").partition("\n")[0])
    parser.add_argument("--rows", type=int, help="of each stream, at most")
    asked = parser.parse_args()
    X, sparse, y, title = load("covtype", 581_012, 54)
    X, sparse, y = X[: asked.rows], sparse[: asked.rows], y[: asked.rows]
    found: dict[str, Any] = {"covtype": ensembles(X, y, sparse, title)}
    speeds = boosters(X, y, found["covtype"]["us"]["online Perceptrons"] / 1e6)
    one_at_a_time(X, y)
    found |= {"weighters": weighters(X, y), "saved": saving(X, y)}
    adult, adult_sparse, adult_y, adult_title = load("adult", 48_842, 123)
    n = asked.rows
    found["adult"] = ensembles(adult[:n], adult_y[:n], adult_sparse[:n], adult_title)
    found |= {"scaling": scaling(asked.rows or math.inf), "start-up s": start_up(), "peers": beside_peers(X, y, speeds)}
    results.write("speed", found, ["capymoa", "river", "vowpalwabbit"])


if __name__ == "__main__":
    main()
