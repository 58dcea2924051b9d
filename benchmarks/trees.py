"""Error and time of an ensemble of trees, compared with mixed members, on one core and on all.

``python -m benchmarks trees [SET ...]``. The slowest single row is measured too. Each figure is measured in a separate
process that is bound to the cores. Times are wall time and CPU time of all threads. Wall time is meaningful only on a
quiet machine.
"""

import json
import os
import subprocess
import sys
import time
from collections.abc import Callable, Iterator
from typing import Any

import numpy as np
from scipy.sparse import csr_array

import results
from bayesvote import Ensemble, JointGaussian, TreeBank, decided, load_dataset, mixed
from bayesvote.core.checks import Array, Labels
from bayesvote.datasets import scale
from bayesvote.members import Bank

SETS = ("covtype", "changing", "mushrooms", "splice", "german", "diabetes", "breast-cancer", "heart", "sonar")
MEMBERS: dict[str, Callable[[], Bank[Any]]] = {"mixed": mixed, "trees": TreeBank}
ROWS = 30_000
SEEDS = 3
REPEATS = 4


def rows(name: str, seed: int) -> tuple[Array, Labels]:
    """Return a data set in random order, features in [-1, 1], or a stream whose classes change every 5,000 rows."""
    rng = np.random.default_rng(seed)
    if name == "changing":
        X = rng.uniform(-1, 1, size=(20_000, 4))
        above = X[:, 1] > np.where(np.arange(20_000) % 10_000 < 5000, np.sin(2 * X[:, 0]), np.cos(4 * X[:, 0]) / 2)
        return X, (above ^ (np.arange(20_000) >= 10_000)).astype(np.intp)
    data = load_dataset(name)
    order = rng.permutation(len(data.y))[:ROWS]
    X = np.asarray(scale(csr_array(data.X).toarray()))
    return np.ascontiguousarray(X[order]), data.y[order]


def model(members: str, n_features: int) -> Ensemble:
    return Ensemble(MEMBERS[members](), JointGaussian()).start(n_features, rng=0)


def stream(members: str, name: str) -> dict[str, float]:
    """Return error and time of streams in several orders, in chunks."""
    errors, clock, processor, n = [], 0.0, 0.0, 0
    for seed in range(SEEDS):
        X, y = rows(name, seed)
        ensemble = model(members, X.shape[1])
        start = time.perf_counter(), time.process_time()
        losses = ensemble.decide_then_learn(X, y)
        clock += time.perf_counter() - start[0]
        processor += time.process_time() - start[1]
        errors.append(float(np.mean(decided(losses) != y)))
        n += len(y)
    return {"error": float(np.mean(errors)), "clock": clock / n * 1e6, "processor": processor / n * 1e6}


def one_by_one(members: str, name: str) -> dict[str, float]:
    """Return microseconds of single rows, decided and learned in one call, as the best of some runs for each row.

    The same row costs the same in every run, so the best run removes disturbances by the machine.
    """
    X, y = rows(name, 0)
    clock, processor = np.full(len(y), np.inf), np.full(len(y), np.inf)
    for _ in range(REPEATS):
        ensemble = model(members, X.shape[1])
        for t in range(len(y)):
            start = time.perf_counter_ns(), time.thread_time_ns()
            ensemble.decide_then_learn(X[t : t + 1], y[t : t + 1])
            processor[t] = min(processor[t], (time.thread_time_ns() - start[1]) / 1000)
            clock[t] = min(clock[t], (time.perf_counter_ns() - start[0]) / 1000)
    return {
        f"{what} {mark}": float(np.percentile(times, percent))
        for what, times in (("clock", clock), ("processor", processor))
        for mark, percent in (("median", 50), ("99.9%", 99.9), ("worst", 100))
    }


def measured(what: str, members: str, name: str, n_cores: int) -> dict[str, float]:
    command = [sys.executable, __file__, "--measure", what, members, name, str(n_cores)]
    found: dict[str, float] = json.loads(subprocess.run(command, capture_output=True, text=True, check=True).stdout)
    return found


def main(names: list[str]) -> None:
    n_cores = min(2, len(os.sched_getaffinity(0)))
    print(f"Ensembles with JointGaussian(); errors are means of {SEEDS} orders, at most {ROWS:,} rows.")
    found: dict[str, dict[str, dict[str, float]]] = {}
    for name in names or SETS:
        found[name] = {}
        for members in MEMBERS:
            one, more = (measured("stream", members, name, cores) for cores in (1, n_cores))
            single = measured("one_by_one", members, name, 1)
            print(
                f"{name:10} {members:6} error {one['error']:.4f}; us a row: one core {one['clock']:.1f} "
                f"(CPU time {one['processor']:.1f}), {n_cores} cores {more['clock']:.1f} "
                f"({more['processor']:.1f}); single rows: "
                + ", ".join(f"{label} {value:.0f}" for label, value in single.items()),
                flush=True,
            )
            found[name][members] = {"error": one["error"], "us": one["processor"]} | single
            if more["error"] != one["error"]:
                raise SystemExit(f"{name}: the error depends on the cores: {one['error']} and {more['error']}.")
    results.write("trees", found)


def beside_mixed(result: results.Result) -> Iterator[str]:
    """Yield the table of docs/choosing.md: CPU times, on one core."""
    yield (
        "| weighed by `JointGaussian` | mixed: error | trees: error | mixed: us a row | trees: us a row "
        "| one row of trees: median, us | worst, us |"
    )
    yield "|---|" + "---:|" * 6
    for name, of in result.figures.items():
        mixed, trees = of["mixed"], of["trees"]
        errors = [
            f"**{one['error']:.4f}**" if one["error"] <= min(mixed["error"], trees["error"]) else f"{one['error']:.4f}"
            for one in (mixed, trees)
        ]
        times = (mixed["us"], trees["us"], trees["processor median"], trees["processor worst"])
        yield f"| {name} | " + " | ".join([*errors, *("" if time is None else f"{time:.0f}" for time in times)]) + " |"


if __name__ == "__main__":
    if sys.argv[1:2] == ["--measure"]:
        _, _, what, members, name, cores = sys.argv
        os.sched_setaffinity(0, sorted(os.sched_getaffinity(0))[: int(cores)])
        work = {"stream": stream, "one_by_one": one_by_one}[what]
        print(json.dumps(work(members, name)))
    else:
        main(sys.argv[1:])
