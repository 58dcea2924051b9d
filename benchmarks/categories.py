"""Error and CPU time on categories with many values, compared with scikit-learn's target encoder.

`python -m benchmarks categories` generates rows with ten columns of 500 values each. Every value has an effect, and
their sum is the log-odds of the label. Values are equally likely, or follow Zipf's law. The last quarter of the rows is
predicted. Times are CPU time, with one thread.
"""

import argparse
import os
import time
import warnings
from collections.abc import Iterator
from importlib import import_module
from typing import Any

import numpy as np
from numpy.typing import NDArray

os.environ.setdefault("BAYESVOTE_THREADS", "1")
os.environ.setdefault("OMP_NUM_THREADS", "1")

import results
from bayesvote import BayesianEnsembleClassifier

COLUMNS, VALUES = 10, 500
# How unequal the values are, and the standard deviation of their effects, by name.
CASES = {"equally likely": (0.0, 1.0), "Zipf's law": (1.0, 1.0)}
Table = dict[str, NDArray[np.object_]]


def rows(n: int, power: float, scale: float, seed: int) -> tuple[Table, NDArray[np.intp], NDArray[np.intp]]:
    """Return a table, its labels, and the predictions of the best possible classifier."""
    rng = np.random.default_rng(seed)
    effects = rng.normal(0, scale, (COLUMNS, VALUES))
    shares = np.arange(1, VALUES + 1) ** -power
    codes = rng.choice(VALUES, size=(n, COLUMNS), p=shares / shares.sum())
    log_odds = effects[np.arange(COLUMNS), codes].sum(axis=1)
    y = (rng.random(n) < 1 / (1 + np.exp(-log_odds))).astype(np.intp)
    texts = np.array([f"v{k}" for k in range(VALUES)], dtype=object)
    return {f"c{j}": texts[codes[:, j]] for j in range(COLUMNS)}, y, (log_odds > 0).astype(np.intp)


def part(table: Table, first: int, last: int) -> Table:
    """Return the rows from ``first`` to before ``last``."""
    return {name: values[first:last] for name, values in table.items()}


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--rows", type=int, default=200_000)
    parser.add_argument("--seed", type=int, default=0)
    given = parser.parse_args()
    warnings.simplefilter("ignore", FutureWarning)  # TargetEncoder's random_state
    warnings.simplefilter("ignore", UserWarning)  # many values in a column whose kind is not stated
    stated = {f"c{j}": "category" for j in range(COLUMNS)}
    linear, pipeline, preprocessing = (
        import_module(f"sklearn.{name}") for name in ("linear_model", "pipeline", "preprocessing")
    )
    models: dict[str, Any] = {
        "stated categories": lambda: BayesianEnsembleClassifier(columns=stated, random_state=given.seed),
        "not stated": lambda: BayesianEnsembleClassifier(random_state=given.seed),
        "TargetEncoder + LogisticRegression": lambda: pipeline.make_pipeline(
            preprocessing.TargetEncoder(random_state=given.seed), linear.LogisticRegression()
        ),
    }
    frame = import_module("pandas").DataFrame
    rows_shown: list[tuple[str, str, float, float | None]] = []
    for case, (power, scale) in CASES.items():
        X, y, best = rows(given.rows, power, scale, given.seed)
        n = given.rows * 3 // 4
        rows_shown.append((case, "best possible", float(np.mean(best[n:] != y[n:])), None))
        for name, make in models.items():
            start = time.process_time()
            train, test = (frame(part(X, *ends)) for ends in ((0, n), (n, given.rows)))
            found = make().fit(train, y[:n]).predict(test)
            seconds = time.process_time() - start
            rows_shown.append((case, name, float(np.mean(found != y[n:])), seconds))
            print(*rows_shown[-1], flush=True)
    results.write("categories", {"rows": rows_shown}, ["scikit-learn"])


def errors(result: results.Result) -> Iterator[str]:
    """Yield the table of docs/tables.md."""
    yield "| values | model | error | CPU time, s |"
    yield "|---|---|---:|---:|"
    for case, name, error, seconds in result.figures["rows"]:
        yield f"| {case} | {name} | {error:.3f} | {'' if seconds is None else f'{seconds:.1f}'} |"


if __name__ == "__main__":
    main()
