"""Error of the default classifier and the strongest models of other libraries, on the data sets of table 6.

``python -m benchmarks beside [--sets heart sonar]`` runs all models in one run and prints the table of docs/peers.md.
Every row is predicted before it is learned. All models get the same rows in the same orders, with features in [-1, 1],
and the order's number as seed. The settings of the other libraries are those of configurations.py.
"""

import argparse
from collections.abc import Callable, Iterator, Mapping
from typing import Any

import numpy as np

import results
from bayesvote import BayesianEnsembleClassifier, OGBoostClassifier, OSBoostClassifier, OzaBoostClassifier
from bayesvote_paper.default_classifier import TABLE6
from bayesvote_paper.streams import stream
from configurations import CONFIGURATIONS, LIBRARIES
from table6 import orders, stream_rows

Mistakes = Callable[[int, Any, Any], int]
OTHERS = (
    "CapyMOA ARF(10)",
    "CapyMOA SRP(10)",
    "CapyMOA OnlineSmoothBoost(NaiveBayes,100)",
    "river ARF(10)",
    "Vowpal Wabbit logistic",
)


def ours(kind: Any, **options: Any) -> Mistakes:
    def mistakes(seed: int, X: Any, y: Any) -> int:
        model = kind(**options, random_state=seed)
        p = model.predict_proba_then_learn(X, y, classes=[0, 1])
        return int(np.count_nonzero(p.argmax(axis=1) != y))

    return mistakes


def other(name: str) -> Mistakes:
    return lambda seed, X, y: CONFIGURATIONS[name].scored(seed, X, y).mistakes


MODELS: Mapping[str, Mistakes] = {
    "default": ours(BayesianEnsembleClassifier),
    **{name: other(name) for name in OTHERS},
    "our OzaBoost(naive Bayes)": ours(OzaBoostClassifier, member="naive_bayes"),
    "our OGBoost(naive Bayes)": ours(OGBoostClassifier, member="naive_bayes"),
    "our OSBoost(naive Bayes)": ours(OSBoostClassifier, member="naive_bayes"),
}


def main() -> None:
    parser = argparse.ArgumentParser(description=(__doc__ or "").partition("\n")[0])
    parser.add_argument("--sets", nargs="+", choices=TABLE6.sets, default=list(TABLE6.sets), metavar="NAME")
    asked = parser.parse_args()
    print("| set | " + " | ".join(MODELS) + " |")
    print("|---" * (1 + len(MODELS)) + "|")
    found: dict[str, list[float]] = {name: [] for name in MODELS}
    for dataset in asked.sets:
        n = stream_rows(dataset)
        for name, mistakes in MODELS.items():
            of_orders = []
            for seed in range(orders(dataset)):
                X, y, _ = stream(dataset, seed)
                of_orders.append(mistakes(seed, X[:n], y[:n]) / n)
            found[name].append(float(np.mean(of_orders)))
        row = [errors[-1] for errors in found.values()]
        shown = [f"**{error:.4f}**" if error == min(row) else f"{error:.4f}" for error in row]
        print(f"| {dataset} | " + " | ".join(shown) + " |", flush=True)
    print("| mean | " + " | ".join(f"{np.mean(errors):.4f}" for errors in found.values()) + " |")
    by_set = {name: dict(zip(asked.sets, errors, strict=True)) for name, errors in found.items()}
    results.write(
        "beside", {"errors": by_set}, [LIBRARIES[name].package for name in ("CapyMOA", "river", "Vowpal Wabbit")]
    )


def errors_table(result: results.Result) -> Iterator[str]:
    """Yield the table of docs/peers.md, with the lowest error of each row in bold."""
    models = result.figures["errors"]
    yield "| set | " + " | ".join(models) + " |"
    yield "|---|" + "---:|" * len(models)
    for name in models["default"]:
        row = [of[name] for of in models.values()]
        cells = [f"**{error:.4f}**" if error == min(row) else f"{error:.4f}" for error in row]
        yield f"| {name} | " + " | ".join(cells) + " |"
    yield "| mean | " + " | ".join(f"{np.mean(list(of.values())):.4f}" for of in models.values()) + " |"


if __name__ == "__main__":
    main()
