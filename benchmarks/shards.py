"""Error, time and memory of training on shards with Dask, and results when workers are killed.

Run ``python -m benchmarks shards covtype``, or ``trees``, ``memory``, ``kills``, ``merge`` or ``abstain``. Wall time is
meaningful only on a quiet machine. CPU time is that of all processes.
"""

import argparse
import os
import random
import resource
import sys
import tempfile
import threading
import time
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from dataclasses import replace
from importlib import import_module
from itertools import pairwise
from pathlib import Path
from typing import Any

import numpy as np
from scipy.sparse import csr_array

import results
from bayesvote import BayesianEnsembleClassifier, Committees, Ensemble, JointGaussian, TreeBank, Union, load_dataset
from bayesvote.apps.distributed import Dask, Loop, Progress, fit, shard_members
from bayesvote.apps.distributed.order import InOrder
from bayesvote.core.checks import Array, Labels
from bayesvote.io.model_file import dumps

SHARDS = 16


def covtype(n_rows: int | None = None) -> tuple[Array, Labels, Array, Labels]:
    """Return the rows to learn and a held-out tenth, in random order."""
    data = load_dataset("covtype")
    order = np.random.default_rng(0).permutation(len(data.y))[:n_rows]
    X, y = np.ascontiguousarray(csr_array(data.X).toarray()[order]), data.y[order]
    tenth = len(y) // 10
    return X[tenth:], y[tenth:], X[:tenth], y[:tenth]


def write_shards(folder: Path, X: Array, y: Labels, n_shards: int) -> None:
    """Write the rows to Parquet files of equal size."""
    import pyarrow
    import pyarrow.parquet

    edges = np.linspace(0, len(y), n_shards + 1).astype(int)
    for k, (first, last) in enumerate(pairwise(edges.tolist())):
        columns = {f"x{j:02d}": X[first:last, j] for j in range(X.shape[1])}
        table = pyarrow.table({**columns, "label": y[first:last]})
        pyarrow.parquet.write_table(table, folder / f"{k:03d}.parquet")


@contextmanager
def timed(what: str, found: dict[str, float]) -> Iterator[None]:
    """Measure wall time and CPU time, of this process and of the ended processes that it started."""

    def used() -> float:
        both = [resource.getrusage(who) for who in (resource.RUSAGE_SELF, resource.RUSAGE_CHILDREN)]
        return sum(one.ru_utime + one.ru_stime for one in both)

    clock, processor = time.perf_counter(), used()
    yield
    found[f"{what} clock"], found[f"{what} processor"] = time.perf_counter() - clock, used() - processor


def measure_covtype(n_rows: int | None, n_shards: int) -> None:
    """Compare the error with one stream and scikit-learn, and time and bits with 1, 2 and 3 workers."""
    X, y, held, truth = covtype(n_rows)
    times: dict[str, float] = {}
    found: dict[str, dict[str, float]] = {}

    def report(what: str, predict: Callable[[Any], Any], times: dict[str, float] = times, name: str = "") -> None:
        name = name or what
        seconds = f"{times[f'{name} clock']:7.1f} s, CPU time {times[f'{name} processor']:7.1f} s"
        error = float(np.mean(predict(held) != truth))
        found[what] = {"error": error, "wall": times[f"{name} clock"], "cpu": times[f"{name} processor"]}
        print(f"{what:44s} error {error:.4f}  {seconds}", flush=True)

    print(f"covtype: {len(y):,} rows in {n_shards} shards, {len(truth):,} held out; {os.cpu_count()} cores", flush=True)
    with tempfile.TemporaryDirectory() as folder:
        write_shards(Path(folder), X, y, n_shards)
        files, bits, clocks = f"{folder}/*.parquet", {}, {}
        with timed("loop", times):
            model = fit(files, engine=Loop())
        bits["loop"] = dumps(model)
        report(f"{n_shards} shards, one process", named(model.predict), name="loop")
        for workers in (1, 2, 3):
            with timed("start", times), Dask(workers) as engine, timed("workers", times):
                model = fit(files, engine=engine)
            bits[f"{workers} workers"] = dumps(model)
            times["workers processor"] = times["start processor"]  # includes workers that have ended only
            clocks[f"{workers} of Dask"] = times["workers clock"]
            report(f"{n_shards} shards, {workers} workers of Dask", named(model.predict), name="workers")
            print(f"{'':44s} including start and end of the cluster: {times['start clock']:.1f} s")
        beside = ", ".join(f"{name} {seconds:.1f} s" for name, seconds in clocks.items())
        gained = clocks["1 of Dask"] / clocks["2 of Dask"]
        print(f"wall time after the start of the cluster: {beside}; two workers are {gained:.2f} times as fast as one")
        print("same bits:", {name: data == bits["loop"] for name, data in bits.items()})
        size, members = len(bits["loop"]) / 1e6, model.model_.total_members
        print(f"model file: {size:.1f} MB, {members} members", flush=True)
        voting = BayesianEnsembleClassifier(shard_members(X.shape[1]), n_members=128, weighter="voting")
        with timed("voting", times):
            voting = fit(files, voting)
        report("the same members, voting", named(voting.predict), name="voting")
    for name, other in {
        "HistGradientBoosting": sklearn("ensemble").HistGradientBoostingClassifier(random_state=0),
        "SGD on scaled features": sklearn("pipeline").make_pipeline(
            sklearn("preprocessing").StandardScaler(), sklearn("linear_model").SGDClassifier(random_state=0)
        ),
    }.items():
        with timed(name, times):
            other.fit(X, y)
        report(f"scikit-learn's {name}", other.predict, name=name)
    copies = Union([shard_members(X.shape[1]) for _ in range(n_shards)])
    with timed("stream", times):
        single = BayesianEnsembleClassifier(copies, random_state=0).fit(X, y)
    report("the same ensemble in one stream", single.predict, name="stream")
    about = {"rows": len(y), "held out": len(truth), "shards": n_shards, "members": members, "MB": size}
    results.write("shards_covtype", {**about, "two workers": gained, "models": found}, ["dask", "scikit-learn"])


def measure_trees(n_rows: int | None, n_shards: int) -> None:
    """Measure more trees per shard, in committees, so that the number of weights stays the same."""
    X, y, held, truth = covtype(n_rows)
    edges = np.linspace(0, len(y), n_shards + 1).astype(int)
    shards = [(X[a:b], y[a:b]) for a, b in pairwise(edges.tolist())]
    found = {}
    for n_trees in (5, 16):
        trees, *others = shard_members(X.shape[1]).banks
        assert isinstance(trees, TreeBank)
        committees = [n_trees // 5 + (k < n_trees % 5) for k in range(5)]
        bank = Union([Committees(replace(trees, n_trees=n_trees), [*committees, 1]), *others])
        times: dict[str, float] = {}
        with timed("fit", times):
            model = fit(shards, BayesianEnsembleClassifier(bank, n_members=bank.n_members * n_shards))
        error, size = np.mean(model.predict(held) != truth), len(dumps(model)) / 1e6
        seconds = times["fit processor"]
        print(f"{n_trees} trees a shard: error {error:.4f}, CPU time {seconds:.0f} s, {size:.0f} MB", flush=True)
        found[str(n_trees)] = {"error": float(error), "cpu": seconds, "MB": size}
    results.write("shards_trees", found)


def sklearn(name: str) -> Any:
    """Return a module of scikit-learn."""
    return import_module(f"sklearn.{name}")


def named(predict: Callable[[Any], Any]) -> Callable[[Any], Any]:
    """Return a function that predicts rows as a table with the model's column names."""
    frame = import_module("pandas").DataFrame
    return lambda X: predict(frame(X, columns=[f"x{j:02d}" for j in range(X.shape[1])]))


def measure_abstaining(n_rows: int, n_shards: int = 8) -> None:
    """Compare the weights of members that abstain on the shard that trained them with those of unseen rows."""
    X, y, held, truth = covtype(n_rows)
    found: dict[str, dict[str, float]] = {}
    fresh: Array | None = None
    edges = np.linspace(0, len(y) // 2, n_shards + 1).astype(int)
    shards = [(X[a:b], y[a:b]) for a, b in pairwise(edges.tolist())]
    model = fit(shards)
    bank, weighter = model.model_.bank, model.model_.weighter
    kinds = [name.rpartition(" ")[2].partition("(")[0] for name in bank.member_names()]
    for name, rows in {
        "unseen rows": slice(edges[-1], None),
        "abstaining (as `fit` does)": None,
        "not abstaining": slice(0, edges[-1]),
    }.items():
        other = model.model_
        if rows is not None:
            other = Ensemble(bank, weighter, model.model_.loss).start(X.shape[1], 2, rng=0)
            other.decide_then_learn(X[rows], y[rows])
        weights = other.weights()
        fresh = weights if fresh is None else fresh
        found[name] = {
            **{kind: float(weights[[one == kind for one in kinds]].sum()) for kind in dict.fromkeys(kinds)},
            "correlation with unseen rows": float(np.corrcoef(fresh, weights)[0, 1]),
            f"error, {len(truth):,} held out": float(np.mean(other.decide(held).argmin(axis=1) != truth)),
        }
        print(name, found[name], flush=True)
    results.write("shards_abstain", {"rows": int(edges[-1] // n_shards), "weights": found})


def measure_merging(n_shards: int = 10_000, n_members: int = 100) -> None:
    """Measure the time to merge the statistics of many shards, and to schedule shards."""
    weighter, rng = JointGaussian(), np.random.default_rng(0)
    parts = [
        weighter.summed(weighter.sums(n_members), rng.uniform(size=(200, n_members)), np.ones(200)) for _ in range(50)
    ]
    start = time.process_time(), time.perf_counter()
    merged = InOrder(n_shards, weighter.added)
    for place in range(n_shards):
        merged.add(place, parts[place % len(parts)])
    weighter.mean(weighter.from_sums(merged.result))
    processor, clock = time.process_time() - start[0], time.perf_counter() - start[1]
    size = sum(array.nbytes for array in parts[0])
    print(f"{n_shards:,} shards' statistics of {n_members} members, {size / 1e3:.0f} kB each: merged in {clock:.2f} s")
    print(f"CPU time {processor:.2f} s, {processor / n_shards * 1e6:.0f} us a shard", flush=True)
    about = {"shards": n_shards, "members": n_members, "kB": size / 1e3, "merged cpu": processor, "merged wall": clock}
    with Dask(workers=2) as engine:
        list(engine.map(nothing, range(100)))
        for n in (n_shards // 10, n_shards // 2):
            start = time.process_time(), time.perf_counter()
            list(engine.map(nothing, range(n)))
            processor, clock = time.process_time() - start[0], time.perf_counter() - start[1]
            print(
                f"scheduling {n:,} shards: {clock / n * 1e3:.2f} ms a shard, {processor / n * 1e3:.2f} ms of the driver"
            )
    scheduling = {"scheduling ms, cpu": processor / n * 1e3, "scheduling ms, wall": clock / n * 1e3}
    results.write("shards_merge", {**about, **scheduling, "merging us": about["merged cpu"] / n_shards * 1e6})


def nothing(item: int, shared: Any) -> bytes:  # noqa: ARG001
    """Do nothing."""
    return b""


def measure_kills(n_kills: int, pause: float, seed: int) -> None:
    """Repeat a job while workers are killed at random; the bits must be the same every time."""
    rng = np.random.default_rng(seed)
    X = rng.normal(size=(48_000, 12))
    y = (X[:, 0] * X[:, 1] + 0.3 * rng.normal(size=len(X)) > 0).astype(int)
    shards = [(X[k::24], y[k::24]) for k in range(24)]
    classifier = BayesianEnsembleClassifier(shard_members(12), n_members=96, random_state=1)
    expected, jobs, slowest = dumps(fit(shards, classifier)), 0, 0.0
    with Dask(workers=3) as engine:
        killer = Killer(engine, n_kills, pause, seed)
        killer.start()
        while killer.is_alive():
            start = time.perf_counter()
            model = fit(shards, classifier, engine=engine, time_limit=1800)
            jobs, slowest = jobs + 1, max(slowest, time.perf_counter() - start)
            if dumps(model) != expected:
                sys.exit(f"wrong bits after {killer.kills} kills")
            print(
                f"job {jobs}: same bits, {killer.kills} kills so far, {time.perf_counter() - start:.1f} s", flush=True
            )
    print(f"{killer.kills} kills over {jobs} jobs: the same bits every time, no stall; slowest job {slowest:.1f} s")


class Killer(threading.Thread):
    """Kill random worker processes at random times."""

    def __init__(self, engine: Dask, n_kills: int, pause: float, seed: int) -> None:
        super().__init__(daemon=True)
        self.kills = 0
        self._engine, self._n_kills, self._pause, self._random = engine, n_kills, pause, random.Random(seed)

    def run(self) -> None:
        """Kill until the number of kills is reached."""
        while self.kills < self._n_kills:
            time.sleep(self._pause * self._random.uniform(0.2, 1.8))
            pids = self._engine.worker_pids()
            if pids:
                os.kill(self._random.choice(pids), 9)
                self.kills += 1


def measure_memory(n_rows: int, limit: str) -> None:
    """Measure the workers' largest memory on generated Parquet files that are larger than it."""
    import pyarrow
    import pyarrow.parquet

    per_file, n_features = 100_000, 20
    with tempfile.TemporaryDirectory(dir=os.environ.get("BAYESVOTE_SCRATCH")) as folder:
        for k in range(n_rows // per_file):
            rng = np.random.default_rng(k)
            X = rng.normal(size=(per_file, n_features))
            y = (X[:, 0] * X[:, 1] + X[:, 2] + 0.5 * rng.normal(size=per_file) > 0).astype(np.int64)
            table = pyarrow.table({**{f"x{j:02d}": X[:, j] for j in range(n_features)}, "label": y})
            pyarrow.parquet.write_table(table, f"{folder}/{k:04d}.parquet")
        size = sum(path.stat().st_size for path in Path(folder).iterdir())
        in_memory = n_rows * (n_features + 1) * 8
        print(f"{n_rows:,} rows, {size / 1e9:.2f} GB on disk, {in_memory / 1e9:.2f} GB in memory", flush=True)
        with Dask(workers=2, memory_limit=limit) as engine:
            watch = Watch(engine)
            watch.start()
            start = time.perf_counter()
            classifier = BayesianEnsembleClassifier(shard_members(n_features), n_members=32)
            model = fit(f"{folder}/*.parquet", classifier, engine=engine, on_progress=watch.at)
            print(f"done in {time.perf_counter() - start:.0f} s of wall time; workers restarted: {watch.restarts}")
        watch.report()
        rng = np.random.default_rng(10**6)
        X = rng.normal(size=(100_000, n_features))
        y = (X[:, 0] * X[:, 1] + X[:, 2] > 0).astype(np.int64)
        print(f"error compared with the labels without noise: {np.mean(named(model.predict)(X) != y):.4f}")


class Watch(threading.Thread):
    """Record the memory of the workers, by tenths of each stage."""

    def __init__(self, engine: Dask) -> None:
        super().__init__(daemon=True)
        self._engine, self._now = engine, ("start", 0)
        self._most: dict[tuple[str, int], float] = {}
        self._pids: set[int] = set()

    @property
    def restarts(self) -> int:
        """Number of workers that were started after the first two."""
        return len(self._pids) - 2

    def at(self, progress: Progress) -> None:
        """Record the progress of the run, and print it at every tenth of a stage."""
        tenth = 10 * progress.done // max(progress.total, 1)
        if (progress.stage, tenth) != self._now:
            most = max(self._most.values(), default=0.0)
            print(f"{progress.stage}: {progress.done} of {progress.total}, {most:.0f} MB at most so far", flush=True)
        self._now = (progress.stage, tenth)

    def run(self) -> None:
        """Read the memory twice a second."""
        while True:
            for pid in self._engine.worker_pids():
                self._pids.add(pid)
                try:
                    pages = int(Path(f"/proc/{pid}/statm").read_text().split()[1])
                except OSError:
                    continue
                size = pages * resource.getpagesize() / 1e6
                self._most[self._now] = max(self._most.get(self._now, 0.0), size)
            time.sleep(0.5)

    def report(self) -> None:
        """Print the largest memory of a worker, by stage and tenth."""
        for stage in dict.fromkeys(stage for stage, _ in self._most):
            print(f"MB of the largest worker, {stage}:", [round(v) for (s, _), v in self._most.items() if s == stage])


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("what", choices=["covtype", "trees", "abstain", "merge", "kills", "memory"])
    parser.add_argument("--rows", type=int)
    parser.add_argument("--shards", type=int, default=SHARDS)
    parser.add_argument("--kills", type=int, default=100)
    parser.add_argument("--pause", type=float, default=4.0, help="seconds between two kills, on average")
    parser.add_argument("--seed", type=int, default=0)
    parser.add_argument("--memory-limit", default="1GB")
    asked = parser.parse_args()
    if asked.what == "covtype":
        measure_covtype(asked.rows, asked.shards)
    elif asked.what == "trees":
        measure_trees(asked.rows, asked.shards)
    elif asked.what == "abstain":
        measure_abstaining(asked.rows or 100_000)
    elif asked.what == "merge":
        measure_merging(asked.shards if asked.shards != SHARDS else 10_000)
    elif asked.what == "kills":
        measure_kills(asked.kills, asked.pause, asked.seed)
    else:
        measure_memory(asked.rows or 20_000_000, asked.memory_limit)


if __name__ == "__main__":
    main()
