"""Error, time per row and model size of the default classifier on all rows of covtype and cod-rna.

``python -m benchmarks whole``. BAYESVOTE_DATA names the folder of the data sets. Rows are shuffled by seed 0, and
features are scaled to [-1, 1]. Every row is predicted before it is learned.
"""

import argparse
import time
from collections.abc import Iterator

import numpy as np

import results
from bayesvote import BayesianEnsembleClassifier
from bayesvote.io.model_file import dumps
from bayesvote_paper.streams import stream

CHUNK = 50_000


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--rows", type=int, help="maximum number of rows of each data set")
    asked, found = parser.parse_args(), {}
    for name in ("cod-rna", "covtype"):
        X, y, partial = stream(name, 0)
        X, y = X[: asked.rows], y[: asked.rows]
        model, wrong, clock, processor = BayesianEnsembleClassifier(random_state=0), 0, 0.0, 0.0
        for first in range(0, len(y), CHUNK):
            part = slice(first, first + CHUNK)
            start = time.perf_counter(), time.process_time()
            p = model.predict_proba_then_learn(X[part], y[part], classes=[0, 1])
            clock += time.perf_counter() - start[0]
            processor += time.process_time() - start[1]
            wrong += int(np.count_nonzero(p.argmax(axis=1) != y[part]))
            n = min(first + CHUNK, len(y))
            print(
                f"{name}{' (part)' if partial else ''}: {n:,} rows, error {wrong / n:.4f}, "
                f"{clock / n * 1e6:.1f} us a row (CPU time {processor / n * 1e6:.1f}), "
                f"saved {len(dumps(model)) / 1e6:.0f} MB",
                flush=True,
            )
        found[name] = {
            "rows": n,
            "error": wrong / n,
            "us": clock / n * 1e6,
            "us of CPU time": processor / n * 1e6,
            "MB": len(dumps(model)) / 1e6,
        }
    results.write("whole", found)


def sets(result: results.Result) -> Iterator[str]:
    """Yield a line of figures for each set."""
    yield "| set | rows | error | us a row | CPU time, us a row | model file, MB |"
    yield "|---|---:|---:|---:|---:|---:|"
    for name, of in result.figures.items():
        yield (
            f"| {name} | {of['rows']:,} | {of['error']:.4f} | {of['us']:.1f} | {of['us of CPU time']:.1f} "
            f"| {of['MB']:.0f} |"
        )


if __name__ == "__main__":
    main()
