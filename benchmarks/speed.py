"""Speed of members, ensembles and boosters beside a bare matrix product and other libraries, in one run: `make bench`.

The stream is covtype, or a synthetic one of its shape. Everything runs test-then-train; loading and the first call,
which compiles, are not counted (the first call is reported apart). Figures are ratios within this run.
"""

import copy
import lzma
import os
import statistics
import subprocess
import sys
import time
from collections.abc import Callable
from pathlib import Path
from typing import Any

import numpy as np
from scipy.sparse import csr_array, random_array
from sklearn.datasets import load_svmlight_file

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
)
from bayesvote._checks import Array, Labels
from bayesvote.boosting._booster import Booster
from bayesvote.evaluate import Model
from bayesvote.members import Bank
from bayesvote.weighting import Weighter
from peers import MEMBERS, PEERS, measure


def load(name: str, rows: int, features: int) -> tuple[csr_array, Labels, str]:
    """One of the paper's sets, its rows in random order; a synthetic one of its shape where it is not at hand."""
    folder = os.environ.get("BAYESVOTE_DATA")
    rng = np.random.default_rng(0)
    if folder:
        with lzma.open(Path(folder) / f"{name}.libsvm.xz") as file:
            X, y = load_svmlight_file(file, n_features=features)
        order = rng.permutation(X.shape[0])
        return csr_array(X)[order], (y[order] > 0).astype(np.intp), name
    made = csr_array(random_array((rows, features), density=12 / 54, rng=rng).tocsr())
    signs = np.asarray(made @ rng.standard_normal(features))
    return made, (signs > 0).astype(np.intp), f"synthetic, of the shape of {name}"


def scaled(X: csr_array) -> Array:
    """Dense, every feature in [-1, 1]."""
    dense = X.toarray()
    low, high = dense.min(axis=0), dense.max(axis=0)
    return np.ascontiguousarray(2 * (dense - low) / np.maximum(high - low, 1e-12) - 1)


def best(work: Callable[[], float], repeats: int = 3) -> float:
    return min(work() for _ in range(repeats))


def product_seconds(X: Array, features: int) -> float:
    """The bare product of all rows with a weight matrix, the limit we measure against."""
    W = np.random.default_rng(0).standard_normal((features, MEMBERS))

    def once() -> float:
        start = time.perf_counter()
        X @ W
        return time.perf_counter() - start

    return best(once, 5)


def stream_seconds(make: Callable[[], Model], X: Array | csr_array, y: Labels, repeats: int = 2) -> tuple[float, float]:
    """Seconds for the whole stream, the best of some runs, and the error."""
    prequential(make(), X[:300], y[:300])
    runs = [prequential(make(), X, y) for _ in range(repeats)]
    return min(run.seconds for run in runs), runs[0].error


def started(bank: Bank, weighter: Weighter[Any], features: int) -> Callable[[], Model]:
    """Make ensembles anew, each with a copy of the bank."""
    return lambda: Ensemble(copy.deepcopy(bank), weighter).start(features, rng=0)


def ensembles(X: Array, y: Labels, sparse: csr_array, name: str) -> float:
    """Ensembles against the product. Returns the seconds of the one that the peers are compared with."""
    n, d = X.shape
    product = product_seconds(X, d)
    print(f"\n{name}: {n:,} x {d}, {MEMBERS} members. The product X @ W takes {product * 1e6 / n:.2f} us a row.")

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
        per_row, ratio = seconds / n * 1e6, seconds / product
        print(f"  {title:36} {per_row:6.2f} us a row, {ratio:5.2f} times the product, error {error:.4f}", flush=True)
    return float(reference / n)


def boosters(X: Array, y: Labels, reference: float) -> None:
    d = X.shape[1]
    ours = {"ensemble of online Perceptrons": 1 / reference}
    print("\nBoosters, and the ensemble, beside the peers (rows per second):")
    for member, rows in (("perceptron", 100_000), ("naive_bayes", 20_000)):
        for kind in (OzaBoost, OGBoost, OSBoost):
            X_, y_ = X[:rows], y[:rows]

            def booster(kind: type[Booster] = kind, member: str = member) -> Booster:
                return kind(member, MEMBERS).start(d, rng=0)

            seconds, error = stream_seconds(booster, X_, y_)
            short = prequential(booster(), X[:2000], y[:2000]).error
            label = f"{kind.__name__}({member})"
            ours[label] = len(y_) / seconds
            print(
                f"  {label:40} {ours[label]:12,.0f} rows/s, error {error:.4f}; on the first 2,000 rows {short:.4f}",
                flush=True,
            )
    for name in PEERS:
        result = measure(name, X, y)
        if result is None:
            print(f"  {name:40} missing here")
            continue
        speed, error = result
        times = ", ".join(f"{label} {rate / speed:,.0f} x" for label, rate in ours.items())
        print(
            f"  {name:40} {speed:12,.0f} rows/s, error {error:.4f} on its {PEERS[name][1]:,} rows: {times}", flush=True
        )


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
    print(f"\nimport bayesvote: {light:.2f} s; import and first call, compiled code in the cache: {whole:.2f} s.")


if __name__ == "__main__":
    raw, labels, title = load("covtype", 581_012, 54)
    stream = scaled(raw)
    if "synthetic" in title or raw.nnz / raw.shape[0] > 13:
        print(f"{raw.nnz / raw.shape[0]:.1f} non-zeros a row")
    per_row = ensembles(stream, labels, raw, title)
    boosters(stream, labels, per_row)
    one_at_a_time(stream, labels)
    weighters(stream, labels)
    adult, adult_labels, adult_title = load("adult", 48_842, 123)
    ensembles(adult.toarray(), adult_labels, adult, adult_title)
    scaling()
    start_up()
