"""CPU time and error of every named mixture on wide sparse rows, compared with scikit-learn's SGDClassifier.

``python -m benchmarks sparse_rows [--widths 65536 1000000] [--rows 3000] [--held 20] [--members adaptive fast]``

The rows of the first table are generated. Their columns follow a Zipf distribution, as words do. Those of the second
table are text messages (spam or not), hashed into 65,536 columns; ``sms-spam.tsv.xz`` must be in the folder that
BAYESVOTE_DATA names. There, every row is predicted before it is learned.
"""

import argparse
import lzma
import os
import time
from collections.abc import Callable, Iterator
from importlib import import_module
from pathlib import Path
from typing import Any

import numpy as np
from threadpoolctl import threadpool_limits

import results
from bayesvote import BayesianEnsembleClassifier
from bayesvote.core.checks import Labels

SGD = "SGDClassifier"
MEMBERS = ("adaptive", "fast", "mixed")
FILE = "sms-spam.tsv.xz"


def text(n: int, width: int, held: int) -> tuple[Any, Labels]:
    """Return rows with ones in ``held`` columns, of which few are frequent, and a noisy linear label."""
    rng = np.random.default_rng(0)
    columns = rng.permutation(width)[(rng.zipf(1.3, size=(n, held)) - 1) % width].astype(np.int32)
    starts = np.arange(0, n * held + 1, held, dtype=np.int32)
    X = import_module("scipy.sparse").csr_array((np.ones(n * held), columns.ravel(), starts), (n, width))
    X.sum_duplicates()
    return X, np.asarray(X @ rng.normal(size=width) + 0.5 * rng.normal(size=n) > 0, dtype=np.intp)


def messages(folder: Path) -> tuple[Any, Labels]:
    """Return text messages, hashed by scikit-learn into 65,536 columns."""
    with lzma.open(folder / FILE, "rt", encoding="utf-8") as file:
        kinds, texts = zip(*(line.rstrip("\n").split("\t", 1) for line in file), strict=True)
    hashed = import_module("sklearn.feature_extraction.text").HashingVectorizer(n_features=2**16)
    return hashed.transform(texts), np.array([kind == "spam" for kind in kinds], dtype=np.intp)


def classifier(name: str) -> Any:
    if name == SGD:
        return import_module("sklearn.linear_model").SGDClassifier(loss="log_loss", random_state=0)
    return BayesianEnsembleClassifier(members=name, random_state=0)


def per_row(n: int, act: Callable[..., object], *args: Any) -> float:
    """Return microseconds of CPU time per row, of all threads."""
    start = time.process_time()
    act(*args)
    return (time.process_time() - start) / n * 1e6


def each(act: Callable[..., object], *columns: Any) -> None:
    for arguments in zip(*columns, strict=True):
        act(*arguments)


def megabytes(model: Any) -> float:
    if not isinstance(model, BayesianEnsembleClassifier):
        return float(model.coef_.nbytes / 1e6)
    return _bytes(model.model_.bank.state) / 1e6


def _bytes(state: Any) -> int:
    return sum(map(_bytes, state)) if isinstance(state, tuple) else int(state.nbytes)


def speed(widths: list[int], n: int, held: int, names: list[str]) -> list[tuple[int, str, list[float]]]:
    found = []
    for width in widths:
        X, y = text(n, width, held)
        ones, labels = zip(*((X[t : t + 1], y[t : t + 1]) for t in range(min(n, 300))), strict=True)
        for name in names:
            model = classifier(name)
            model.partial_fit(X[:1], y[:1], classes=[0, 1])
            cells = [
                per_row(n, model.partial_fit, X, y),
                per_row(len(ones), each, model.partial_fit, ones, labels),
                per_row(n, model.predict, X),
                per_row(len(ones), each, model.predict, ones),
            ]
            found.append((width, name, [*cells, megabytes(model)]))
            print(*found[-1], flush=True)
    return found


def mistakes(name: str, X: Any, y: Labels) -> int:
    model = classifier(name)
    if name != SGD:
        first = model.predict_proba_then_learn(X[:1], y[:1], classes=[0, 1])
        p = np.concatenate([first, model.predict_proba_then_learn(X[1:], y[1:])])
        return int(np.count_nonzero(p.argmax(axis=1) != y))
    model.partial_fit(X[:1], y[:1], classes=[0, 1])
    wrong = int(y[0])
    for t in range(1, len(y)):
        wrong += int(model.predict(X[t : t + 1])[0] != y[t])
        model.partial_fit(X[t : t + 1], y[t : t + 1])
    return wrong


def errors(X: Any, y: Labels, names: list[str]) -> dict[str, list[float]]:
    found = {}
    for name in names:
        start = time.process_time()
        error = mistakes(name, X, y) / len(y)
        cost = (time.process_time() - start) / len(y) * 1e6
        found[name] = [error, cost]
        print(f"{name}: error {error:.4f}, {cost:,.0f} us a row", flush=True)
    return found


def main() -> None:
    parser = argparse.ArgumentParser(description=(__doc__ or "").partition("\n")[0])
    parser.add_argument("--widths", nargs="+", type=int, default=[2**16, 1_000_000], metavar="COLUMNS")
    parser.add_argument("--rows", type=int, default=3_000, help="number of generated rows")
    parser.add_argument("--held", type=int, default=20, help="number of values in each generated row")
    parser.add_argument("--members", nargs="+", default=list(MEMBERS), metavar="NAME")
    asked = parser.parse_args()
    names = [*asked.members, SGD]
    threadpool_limits(1)  # OpenBLAS's threads use CPU time while they wait
    found: dict[str, Any] = {"speed": speed(asked.widths, asked.rows, asked.held, names)}
    folder = Path(os.environ.get("BAYESVOTE_DATA", "."))
    if (folder / FILE).exists():
        X, y = messages(folder)
        found["messages"] = {"rows": len(y), "columns": X.nnz / len(y), "models": errors(X, y, names)}
    else:
        print(f"\n{FILE} was not found in {folder}, so text messages are skipped. Set BAYESVOTE_DATA to its folder.")
    results.write("sparse_rows", found, ["scikit-learn"])


def speeds(result: results.Result) -> Iterator[str]:
    """Yield the table of generated rows."""
    heads = ("learn, us a row", "one row at a time", "predict, us a row", "one row at a time", "state, MB")
    yield "| columns | members | " + " | ".join(heads) + " |"
    yield "|---:|---|" + "---:|" * len(heads)
    for width, name, cells in result.figures["speed"]:
        shown = ["" if cell is None else f"{cell:,.0f}" if cell >= 10 else f"{cell:.1f}" for cell in cells]
        yield f"| {width:,} | {name} | " + " | ".join(shown) + " |"


def text_messages(result: results.Result) -> Iterator[str]:
    """Yield the table of text messages."""
    of = result.figures["messages"]
    yield f"| {of['rows']:,} messages, {of['columns']:.0f} columns each | error | us a row |"
    yield "|---|---:|---:|"
    for name, (error, cost) in of["models"].items():
        yield f"| {name} | {error:.4f} | {cost:,.0f} |"


if __name__ == "__main__":
    main()
