"""Speed of members, ensembles and boosters beside a bare matrix product and other libraries, in one run: `make bench`.

The stream is covtype, or a synthetic one of its shape. Everything runs test-then-train; loading and the first call
are not counted (the first call is reported apart). Figures are ratios within this run.
"""

import copy
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
from bayesvote._checks import Array, Labels
from bayesvote.boosting import Booster
from bayesvote.cli.bench import product_seconds
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
    """One of the paper's sets, in random order, dense in [-1, 1] and sparse; or a synthetic one of its shape."""
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
    """Seconds for the whole stream, the best of some runs, and the error."""
    prequential(make(), X[:300], y[:300])
    runs = [prequential(make(), X, y) for _ in range(repeats)]
    return min(run.seconds for run in runs), runs[0].error


def started(bank: Bank[Any], weighter: Weighter[Any], features: int) -> Callable[[], Model[Any]]:
    """Make ensembles anew, each with a copy of the bank."""
    return lambda: Ensemble(copy.deepcopy(bank), weighter).start(features, rng=0)


def ensembles(X: Array, y: Labels, sparse: csr_array, name: str) -> float:
    """Ensembles against the product. Returns the seconds of the one that the peers are compared with."""
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

    reference = 0.0
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
        reference = reference or seconds
        print(
            f"  {title:32} {seconds / n * 1e6:5.2f} us a row, {seconds / product:5.2f} times the product, "
            f"{seconds / one_core:5.2f} times that of one core, error {error:.4f}",
            flush=True,
        )
    return float(reference / n)


def boosters(X: Array, y: Labels, reference: float) -> dict[str, float]:
    """Boosters; returns the rows per second of everything that the peers are compared with."""
    d = X.shape[1]
    ours = {ENSEMBLE: 1 / reference}
    print("\nBoosters:")
    for member, rows, peers_rows in (("perceptron", 100_000, 10_000), ("naive_bayes", 20_000, 2000)):
        for kind in (OzaBoost, OGBoost, OSBoost):
            X_, y_ = X[:rows], y[:rows]

            def booster(kind: type[Booster] = kind, member: str = member) -> Booster:
                return kind(member, MEMBERS).start(d, rng=0)

            seconds, error = stream_seconds(booster, X_, y_)
            short = prequential(booster(), X[:peers_rows], y[:peers_rows]).error
            label = f"{kind.__name__}({member})"
            ours[label] = len(y_) / seconds
            also = f"on the peers' {peers_rows:,} rows {short:.4f}"
            print(f"  {label:40} {ours[label]:12,.0f} rows/s, error {error:.4f}; {also}", flush=True)
    return ours


def beside_peers(X: Array, y: Labels, ours: dict[str, float]) -> None:
    """The peers, last: a Java machine, once started, keeps a core busy now and then."""
    print("\nPeers:")
    for name in PEERS:
        result = measure(name, X, y)
        if result is None:
            print(f"  {name:40} missing here")
            continue
        speed, error = result
        times = ", ".join(f"{label} {ours[label] / speed:,.0f} times" for label in COUNTERPARTS[name])
        rows = PEERS[name][1]
        print(f"  {name:40} {speed:12,.0f} rows/s, error {error:.4f} on {rows:,} rows. Ours: {times}", flush=True)


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


def weighters(X: Array, y: Labels) -> None:
    d, n = X.shape[1], 20_000
    print("\nWeighters on online Perceptrons, microseconds a row:")
    choices: list[Weighter[Any]] = [GammaRate(), JointGaussian(100.0), JointGaussian()]
    for weighter in choices:
        seconds, error = stream_seconds(started(PerceptronBank(MEMBERS), weighter, d), X[:n], y[:n])
        print(f"  {weighter!s:75} {seconds / n * 1e6:6.1f} us, error {error:.4f}", flush=True)
    seconds, error = stream_seconds(started(mixed(MEMBERS), JointGaussian(), d), X[:n], y[:n])
    print(f"  {'mixed members, JointGaussian()':75} {seconds / n * 1e6:6.1f} us, error {error:.4f}")


def saving(X: Array, y: Labels) -> None:
    print("\nSaving, both fsyncs included (median of 50):")
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
        print(f"  {type(weighter).__name__:14} {1e3 * statistics.median(times):.1f} ms, {size / 1000:.0f} KB")


def scaling() -> None:
    """Cost over three decades of rows, members and non-zeros: microseconds per row, per member, per non-zero."""
    rng = np.random.default_rng(0)
    print("\nLinear cost: online Perceptrons with GammaRate.")
    for what, sizes in (
        ("rows", [(10**k, 100, 50) for k in (3, 4, 5, 6)]),
        ("members", [(2000, 10**k, 50) for k in (1, 2, 3, 4)]),
        ("non-zeros", [(2000, 100, 10**k) for k in (1, 2, 3, 4)]),
    ):
        cells = []
        for n, m, nonzeros in sizes:
            X = rng.standard_normal((min(n, 10_000), nonzeros))
            y = rng.integers(0, 2, len(X))
            X, y = np.tile(X, (n // len(X), 1)), np.tile(y, n // len(y))
            seconds, _ = stream_seconds(started(PerceptronBank(m), GammaRate(), nonzeros), X, y)
            size = {"rows": n, "members": m, "non-zeros": nonzeros}[what]
            cells.append(f"{size:,}: {seconds / n * 1e6:.2f}")
        print(f"  us a row by {what}: " + "; ".join(cells), flush=True)


def start_up() -> None:
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


if __name__ == "__main__":
    stream, sparse, labels, title = load("covtype", 581_012, 54)
    speeds = boosters(stream, labels, ensembles(stream, labels, sparse, title))
    one_at_a_time(stream, labels)
    weighters(stream, labels)
    saving(stream, labels)
    adult, adult_sparse, adult_labels, adult_title = load("adult", 48_842, 123)
    ensembles(adult, adult_labels, adult_sparse, adult_title)
    scaling()
    start_up()
    beside_peers(stream, labels, speeds)
