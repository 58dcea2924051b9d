"""Error and speed of the default classifier beside classifiers of river and scikit-learn, on the streams of table 6.

`make accuracy [TRIALS=n]`. Every model sees the same rows in the same order, test-then-train, all through
`prequential`. The large sets are cut to their first rows, since a forest does some hundred rows a second.
"""

import sys
import warnings
from collections.abc import Callable
from importlib import import_module
from typing import Any

import numpy as np
from joblib import Parallel, delayed

from bayesvote import BayesianEnsembleClassifier, prequential
from bayesvote.datasets import DATASETS, locate
from bayesvote.experiments.default_classifier import TABLE6
from bayesvote.experiments.streams import stream

MOST_ROWS = 2_000
FORESTS = ("river forest, 10 trees", "river random patches, 10 trees")


def river(module: str, name: str, **options: Any) -> Any:
    return getattr(import_module(f"river.{module}"), name)(**options)


def linear(**options: Any) -> Any:
    return getattr(import_module("sklearn.linear_model"), "SGDClassifier")(random_state=0, **options)  # noqa: B009


MODELS: dict[str, Callable[[int], Any]] = {
    "bayesvote": lambda seed: BayesianEnsembleClassifier(random_state=seed),
    FORESTS[0]: lambda seed: river("forest", "ARFClassifier", n_models=10, seed=seed),
    FORESTS[1]: lambda seed: river("ensemble", "SRPClassifier", n_models=10, seed=seed),
    "river Hoeffding tree": lambda _: river("tree", "HoeffdingTreeClassifier"),
    "river adaptive tree": lambda seed: river("tree", "HoeffdingAdaptiveTreeClassifier", seed=seed),
    "river naive Bayes": lambda _: river("naive_bayes", "GaussianNB"),
    "river nearest neighbours": lambda _: river("neighbors", "KNNClassifier"),
    "river logistic": lambda _: river("linear_model", "LogisticRegression"),
    "scikit-learn logistic": lambda _: linear(loss="log_loss"),
    "scikit-learn SVM": lambda _: linear(loss="hinge"),
    "scikit-learn Perceptron": lambda _: linear(loss="perceptron", learning_rate="constant", eta0=1.0),
}


def run(dataset: str, trial: int) -> tuple[str, int, dict[str, tuple[float, float]]]:
    warnings.simplefilter("ignore")  # river's models divide by zero on their first rows
    X, y, _ = stream(dataset, trial)
    prequential(BayesianEnsembleClassifier(random_state=0), X[:600], y[:600], classes=[0, 1])  # compiles
    models = {name: make(trial) for name, make in MODELS.items()}
    done = prequential(models, X[:MOST_ROWS], y[:MOST_ROWS])
    return dataset, trial, {name: (one.error, one.seconds) for name, one in done.items()}


def main(trials: int) -> None:
    sets = [name for name in DATASETS if locate(name)[0] != "download"]
    jobs = [
        (name, trial)
        for name in sorted(sets, key=TABLE6.rows, reverse=True)
        for trial in range(trials if TABLE6.rows(name) <= MOST_ROWS else min(trials, 2))
    ]
    errors: dict[str, dict[str, list[float]]] = {name: {model: [] for model in MODELS} for name in sets}
    seconds = dict.fromkeys(MODELS, 0.0)
    n = 0
    for dataset, trial, found in Parallel(n_jobs=-1, batch_size=1, return_as="generator_unordered")(
        delayed(run)(*job) for job in jobs
    ):
        print(f"  done: {dataset}, trial {trial + 1}", file=sys.stderr)
        n += min(TABLE6.rows(dataset), MOST_ROWS)
        for model, (error, took) in found.items():
            errors[dataset][model].append(error)
            seconds[model] += took
    means = np.array([[np.mean(errors[name][model]) for model in MODELS] for name in sets])
    ranks = (
        (means[:, :, None] > means[:, None, :]).sum(axis=2)
        + (means[:, :, None] == means[:, None, :]).sum(axis=2) / 2
        + 0.5
    )
    print(
        f"\nMean error over the orders of the rows, {trials} of them (2 for large sets, of which {MOST_ROWS:,} rows).\n"
    )
    print("| model | " + " | ".join(sets) + " | mean rank | rows/s |")
    print("|" + "---|" * (len(sets) + 3))
    for k in np.argsort(ranks.mean(axis=0)):
        model = list(MODELS)[k]
        figures = " | ".join(
            f"{'**' if error == row.min() else ''}{error:.3f}{'**' if error == row.min() else ''}"
            for error, row in zip(means[:, k], means, strict=True)
        )
        print(f"| {model} | {figures} | {ranks[:, k].mean():.2f} | {n / seconds[model]:,.0f} |")
    for forest in FORESTS:
        print(f"\nbayesvote is {seconds[forest] / seconds['bayesvote']:.0f} times as fast as {forest}.", end="")
    print()


if __name__ == "__main__":
    main(int(sys.argv[1]) if len(sys.argv) > 1 else 5)
