"""Error with missing values, for arrays, and for tables in which the mean so far replaces them.

`python -m benchmarks missing` removes cells at random, in all columns with the same probability. With "learned and
predicted", every row is predicted before it is learned. With "predicted only", chunks of ten rows are predicted with
missing cells and then learned in full. Errors are means over data sets and orders. Columns of a table are encoded if
the kind of one of them is stated.
"""

import argparse
from collections.abc import Iterator
from typing import Any

import numpy as np

import results
from bayesvote import BayesianEnsembleClassifier, OzaBoostClassifier, load_dataset
from bayesvote.core.checks import Array, Labels

SETS = ("australian", "breast-cancer", "diabetes", "german", "heart", "ionosphere", "sonar", "svmguide3")
MODELS = {"default": BayesianEnsembleClassifier, "OzaBoost": OzaBoostClassifier}
CHUNK = 10


def tabled(X: Array) -> dict[str, Array]:
    return {f"x{j}": column for j, column in enumerate(X.T)}


def mistakes(model: Any, full: Array, holed: Array, y: Labels, raw: bool, learned: bool) -> float:
    """Return the error of one model on one order of the rows."""
    made = tabled if raw else np.asarray
    if learned:
        return float(np.mean(model.predict_proba_then_learn(made(holed), y, classes=[0, 1]).argmax(axis=1) != y))
    model.partial_fit(made(full[:CHUNK]), y[:CHUNK], classes=[0, 1])
    wrong = 0
    for first in range(CHUNK, len(y), CHUNK):
        part = slice(first, first + CHUNK)
        wrong += int(np.count_nonzero(model.predict(made(holed[part])) != y[part]))
        model.partial_fit(made(full[part]), y[part])
    return wrong / (len(y) - CHUNK)


def errors(name: str, share: float, learned: bool, most: int, seed: int) -> list[float]:
    """Return the errors of every model, on the array and on the table."""
    data, rng = load_dataset(name), np.random.default_rng(seed)
    dense = data.X.toarray() if hasattr(data.X, "toarray") else np.asarray(data.X)
    order = rng.permutation(len(data.y))[:most]
    X, y = dense[order], data.y[order]
    holed = np.where(rng.random(X.shape) < share, np.nan, X)
    return [
        mistakes(kind(columns={"x0": "number"} if raw else None, random_state=seed), X, holed, y, raw, learned)
        for kind in MODELS.values()
        for raw in (False, True)
    ]


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--rows", type=int, default=2000, help="of each set, at most")
    parser.add_argument("--orders", type=int, default=2, help="orders of the rows")
    given = parser.parse_args()
    heads = [f"{model}, {how}" for model in MODELS for how in ("array", "table")]
    found = {}
    for share in (0.0, 0.1, 0.3):
        for learned in (True, False):
            each = [errors(name, share, learned, given.rows, seed) for name in SETS for seed in range(given.orders)]
            where = f"{share:.0%} | {'learned and predicted' if learned else 'predicted only'}"
            found[where] = dict(zip(heads, np.mean(each, axis=0).tolist(), strict=True))
            print(where, found[where], flush=True)
    results.write("missing", {"errors": found})


def errors_table(result: results.Result) -> Iterator[str]:
    """Yield the table of docs/tables.md."""
    errors = result.figures["errors"]
    heads = [*next(iter(errors.values()))]
    yield "| missing cells | in rows that are | " + " | ".join(heads) + " |"
    yield "|---:|---|" + "---:|" * len(heads)
    for where, found in errors.items():
        yield f"| {where} | " + " | ".join(f"{found[head]:.3f}" for head in heads) + " |"


if __name__ == "__main__":
    main()
