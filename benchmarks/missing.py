"""Holes in tables of numbers: as an array, whose members abstain, and as a raw table, which has the mean so far.

`python benchmarks/missing.py`. Values are taken out at random, in all columns alike. Every row is predicted before it
is learned, in one order, with seed 0. A table is read as a raw one when a column is stated.
"""

import argparse

import numpy as np

from bayesvote import BayesianEnsembleClassifier, OzaBoostClassifier, load_dataset

SETS = ("breast-cancer", "german", "heart", "ionosphere", "sonar", "svmguide3")
MODELS = {"default": BayesianEnsembleClassifier, "OzaBoost": OzaBoostClassifier}


def errors(name: str, share: float, most: int) -> list[float]:
    """Errors of every model, on the array and on the table."""
    data, rng = load_dataset(name), np.random.default_rng(0)
    dense = data.X.toarray() if hasattr(data.X, "toarray") else np.asarray(data.X)
    order = rng.permutation(len(data.y))[:most]
    X, y = dense[order], data.y[order]
    X[rng.random(X.shape) < share] = np.nan
    table = {f"x{j}": column for j, column in enumerate(X.T)}
    found = []
    for model in MODELS.values():
        for rows, columns in ((X, None), (table, {"x0": "number"})):
            one = model(columns=columns, random_state=0)
            chances = one.predict_proba_then_learn(rows, y, classes=[0, 1])
            found.append(float(np.mean(chances.argmax(axis=1) != y)))
    return found


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--rows", type=int, default=2000, help="of each set, at most")
    given = parser.parse_args()
    heads = [f"{model}, {how}" for model in MODELS for how in ("array", "table")]
    print("| holes | " + " | ".join(heads) + " |")
    print("|---:|" + "---:|" * len(heads))
    for share in (0.0, 0.02, 0.1, 0.3):
        means = np.mean([errors(name, share, given.rows) for name in SETS], axis=0)
        print(f"| {share:.0%} | " + " | ".join(f"{mean:.3f}" for mean in means) + " |", flush=True)


if __name__ == "__main__":
    main()
