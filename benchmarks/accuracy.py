"""Error and speed of the default classifier, compared with classifiers of river and scikit-learn.

`python -m benchmarks accuracy [TRIALS [MODEL ...]]` runs all models, or only those named, on the data sets of table 6.
Every model sees the same rows in the same order, test-then-train, through `prequential`. Large data sets are cut to
their first 2,000 rows, because a forest takes some ten milliseconds per row. bayesvote gets all rows in one call. It is
also timed with one row per call, which is what the other libraries get.
"""

import sys
import warnings
from collections.abc import Callable, Iterator
from importlib import import_module
from typing import Any

import numpy as np
from joblib import Parallel, delayed

import results
from bayesvote import BayesianEnsembleClassifier, prequential
from bayesvote.datasets import DATASETS, locate
from bayesvote_paper.default_classifier import TABLE6
from bayesvote_paper.streams import stream

MOST_ROWS = 2_000
OURS, ROW_BY_ROW = "bayesvote", "bayesvote, row by row"
FORESTS = ("river forest, 10 trees", "river random patches, 10 trees")


def river(module: str, name: str, **options: Any) -> Any:
    return getattr(import_module(f"river.{module}"), name)(**options)


def linear(**options: Any) -> Any:
    return getattr(import_module("sklearn.linear_model"), "SGDClassifier")(random_state=0, **options)  # noqa: B009


MODELS: dict[str, Callable[[int], Any]] = {
    OURS: lambda seed: BayesianEnsembleClassifier(random_state=seed),
    FORESTS[0]: lambda seed: river("forest", "ARFClassifier", n_models=10, seed=seed),
    FORESTS[1]: lambda seed: river("ensemble", "SRPClassifier", n_models=10, seed=seed),
    "river Hoeffding tree": lambda _: river("tree", "HoeffdingTreeClassifier"),
    "river adaptive tree": lambda seed: river("tree", "HoeffdingAdaptiveTreeClassifier", seed=seed),
    "river naive Bayes": lambda _: river("naive_bayes", "GaussianNB"),
    "river nearest neighbours": lambda _: river("neighbors", "KNNClassifier"),
    "river logistic": lambda _: river("linear_model", "LogisticRegression"),
    "scikit-learn logistic": lambda _: linear(loss="log_loss"),
    "scikit-learn SVM": lambda _: linear(loss="hinge"),
    # According to scikit-learn's documentation, these settings are its Perceptron.
    "scikit-learn Perceptron": lambda _: linear(loss="perceptron", learning_rate="constant", eta0=1.0, penalty=None),
}


def run(dataset: str, trial: int, names: list[str]) -> tuple[str, int, dict[str, tuple[float, float]]]:
    warnings.simplefilter("ignore")  # river's models divide by zero on their first rows
    X, y, _ = stream(dataset, trial)
    X, y = X[:MOST_ROWS], y[:MOST_ROWS]
    prequential(BayesianEnsembleClassifier(random_state=0), X[:600], y[:600], classes=[0, 1])  # imports the kernels
    done = prequential({name: MODELS[name](trial) for name in names}, X, y)
    found = {name: (one.error, one.seconds) for name, one in done.items()}
    if OURS in names:
        singly = prequential(MODELS[OURS](trial), X, y, chunk_size=1)
        found[ROW_BY_ROW] = singly.error, singly.seconds
    return dataset, trial, found


def main(trials: int, names: list[str]) -> None:
    sets = [name for name in DATASETS if locate(name)[0] != "download"]
    jobs = [
        (name, trial)
        for name in sorted(sets, key=TABLE6.rows, reverse=True)
        for trial in range(trials if TABLE6.rows(name) <= MOST_ROWS else min(trials, 2))
    ]
    errors: dict[str, dict[str, list[float]]] = {name: {model: [] for model in [*names, ROW_BY_ROW]} for name in sets}
    seconds = dict.fromkeys([*names, ROW_BY_ROW], 0.0)
    n = 0
    for dataset, trial, found in Parallel(n_jobs=-1, batch_size=1, return_as="generator_unordered")(
        delayed(run)(*job, names) for job in jobs
    ):
        print(f"  done: {dataset}, trial {trial + 1}", file=sys.stderr)
        n += min(TABLE6.rows(dataset), MOST_ROWS)
        for model, (error, took) in found.items():
            errors[dataset][model].append(error)
            seconds[model] += took
    means = np.array([[np.mean(errors[name][model]) for model in names] for name in sets])
    ranks = (
        (means[:, :, None] > means[:, None, :]).sum(axis=2)
        + (means[:, :, None] == means[:, None, :]).sum(axis=2) / 2
        + 0.5
    )
    print(f"\nMean error over {trials} orders of the rows (2 for large data sets, cut to {MOST_ROWS:,} rows).\n")
    print("| model | " + " | ".join(sets) + " | mean rank | rows/s |")
    print("|" + "---|" * (len(sets) + 3))
    for k in np.argsort(ranks.mean(axis=0)):
        model = names[k]
        figures = " | ".join(
            f"{'**' if error == row.min() else ''}{error:.3f}{'**' if error == row.min() else ''}"
            for error, row in zip(means[:, k], means, strict=True)
        )
        print(f"| {model} | {figures} | {ranks[:, k].mean():.2f} | {n / seconds[model]:,.0f} |")
    if OURS in names:
        assert all(errors[name][OURS] == errors[name][ROW_BY_ROW] for name in sets)
        print(f"\nRow by row, bayesvote runs at {n / seconds[ROW_BY_ROW]:,.0f} rows/s, with the same errors.")
        for forest in [name for name in FORESTS if name in names]:
            in_one, singly = (seconds[forest] / seconds[mine] for mine in (OURS, ROW_BY_ROW))
            print(f"bayesvote is {in_one:.0f} times as fast as {forest}, and {singly:.1f} times row by row.")
    speeds = {model: n / taken for model, taken in seconds.items() if taken}
    found = {
        model: {
            "rank": float(ranks[:, k].mean()),
            "rows/s": speeds[model],
            "errors": dict(zip(sets, means[:, k].tolist(), strict=True)),
        }
        for k, model in enumerate(names)
    }
    results.write("accuracy", {"models": found, "row by row": speeds.get(ROW_BY_ROW)}, ["river", "scikit-learn"])


def ranks_and_errors(result: results.Result) -> Iterator[str]:
    """Yield the table of docs/paper.md, by mean rank, with the lowest error of each data set in bold."""
    models = result.figures["models"]
    sets = list(next(iter(models.values()))["errors"])
    yield "| model | " + " | ".join(sets) + " | mean rank | rows/s |"
    yield "|---|" + "---:|" * (len(sets) + 2)
    for model, of in sorted(models.items(), key=lambda item: item[1]["rank"]):
        cells = [
            f"**{of['errors'][name]:.3f}**"
            if of["errors"][name] == min(one["errors"][name] for one in models.values())
            else f"{of['errors'][name]:.3f}"
            for name in sets
        ]
        yield f"| {model} | " + " | ".join(cells) + f" | {of['rank']:.2f} | {of['rows/s']:,.0f} |"


if __name__ == "__main__":
    main(int(sys.argv[1]) if len(sys.argv) > 1 else 5, sys.argv[2:] or list(MODELS))
