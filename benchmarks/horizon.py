"""Error on unshuffled folds and future rows, with late labels and chunks, and after wrong labels.

`python -m benchmarks horizon` runs all parts. `python -m benchmarks horizon late chunks` runs two of them.

- folds: cross_val_score with unshuffled folds, on the data sets of table 6 and eight raw tables in file order.
- future: fit on the past and predict the next 5,000 rows, at 21 cuts of four real streams.
- late: labels that arrive 0, 50, 500 and 2,000 rows late, on real streams and on those of table 7.
- chunks: predict 50, 500 or 2,000 rows, then learn them, on the same streams.
- burst: error after a burst of flipped labels, and rows until half of a true change is followed.
- online: test-then-train, to compare versions of bayesvote.

Results are lines of JSON in horizon.jsonl. Stored results of other libraries are not measured again without --again.
bayesvote is always measured again; --ours measures nothing else. --table prints the tables of docs/horizon.md.
"""

import argparse
import copy
import json
import sys
import time
from collections.abc import Callable, Iterator, Mapping, Sequence
from datetime import UTC, datetime
from functools import partial
from importlib import import_module
from pathlib import Path
from typing import Any, NamedTuple

import numpy as np
from numpy.typing import NDArray

import horizon_models as models
import results
import streams_real
import tables
from bayesvote import prequential
from bayesvote_paper.streams import stream
from horizon_models import BOOSTING, CONSTANT, FOREST, LOGISTIC, NO_CHANGE, OURS
from streams_real import Data

STORED = Path(__file__).parent / "results" / "horizon.jsonl"
FOLDS, DELAYS, CHUNKS = (3, 5, 10), (0, 50, 500, 2000), (50, 500, 2000)
CUTS, AHEAD, EVERY = 21, 5000, 5  # the forest predicts every fifth of the rows ahead
CUT = 20_000  # rows that the forest sees in the parts late and chunks
GOOD, FLIPPED, NOISE, CLEAN = 50_000, (0, 10, 30, 100, 300), 0.05, 5000
STREAMS = (*streams_real.REAL, *streams_real.GENERATED)
ONLINE_ROWS = 5000

Line = dict[str, Any]
Found = Iterator[tuple[str, Line]]  # settings with what was measured


class Job(NamedTuple):
    """A model on a data set, in one setting of a part."""

    part: str
    data: str
    model: str
    setting: str
    run: Callable[[], Found]


def run_folds(data: str, model: str, k: int, shuffled: bool) -> Found:
    """Shuffle the rows themselves, because a fold's rows stay in their order with ``shuffle=True``."""
    X, y = streams_real.load(data)
    if shuffled:
        order = np.random.default_rng(0).permutation(len(y))
        X, y = X[order] if isinstance(X, np.ndarray) else X.iloc[order].reset_index(drop=True), y[order]
    others = {LOGISTIC: models.logistic, BOOSTING: models.boosting}
    if model in others:
        X = models.without_dates(X)
    estimator = others[model](X) if model in others else models.ours(model)
    selection = import_module("sklearn.model_selection")
    errors = 1 - selection.cross_val_score(estimator, X, y, cv=selection.StratifiedKFold(k), error_score="raise")
    facts = {"error": float(errors.mean()), "worst": float(errors.max()), "folds": errors.round(5).tolist()}
    yield f"{k} folds{', shuffled' * shuffled}", facts | {"rows": len(y)}


def folds(ours: Sequence[str]) -> Iterator[Job]:
    for data in (*streams_real.PAPER, *streams_real.RAW):
        for k in FOLDS:
            peers = (LOGISTIC, BOOSTING) if data in streams_real.RAW else (LOGISTIC,)
            for model in (*peers, *ours):
                yield Job("folds", data, model, f"{k} folds", partial(run_folds, data, model, k, False))
            for model in ours:
                yield Job("folds", data, model, f"{k} folds, shuffled", partial(run_folds, data, model, k, True))


def cuts(n: int) -> list[int]:
    """Return 21 numbers of past rows, from an eighth of the rows to all but the last 5,000."""
    return np.linspace(n // 8, n - AHEAD, CUTS).astype(int).tolist()  # type: ignore[no-any-return]


def run_future(data: str, model: str) -> Found:
    X, y = streams_real.load(data)
    errors, learned, note = [], 0, {}
    refitted = model == BOOSTING or model.startswith(OURS)
    if model == BOOSTING:
        X = models.without_dates(X)
    if model == FOREST:
        note = {"note": f"every {EVERY}th of the rows ahead"}
    online, rows = (None, []) if refitted else (models.ONLINE[model](), models.rows(model, X))
    for n in cuts(len(y)):
        ahead = slice(n, n + AHEAD, EVERY if model == FOREST else 1)
        if online is None:
            fitted = (models.boosting(X) if model == BOOSTING else models.ours(model)).fit(X[:n], y[:n])
            answers = fitted.predict(X[n : n + AHEAD])
        else:
            for t in range(learned, n):
                online.learn_one(rows[t], y[t])
            answers = [online.predict_one(x) for x in rows[ahead]]
            learned = n
        errors.append(float(np.mean(np.asarray(answers) != y[ahead])))
    facts = {"error": float(np.mean(errors)), "worst": max(errors), "errors": np.round(errors, 4).tolist()}
    yield f"{CUTS} cuts", facts | {"rows": len(y)} | note


def future(ours: Sequence[str]) -> Iterator[Job]:
    for data in streams_real.REAL:
        for model in (CONSTANT, BOOSTING, FOREST, *ours):
            yield Job("future", data, model, f"{CUTS} cuts", partial(run_future, data, model))


def _both(setting: str, wrong: NDArray[np.bool_], start: int) -> Found:
    """Yield the error from row ``start`` on, and that of the first 20,000 rows if there are more."""
    if len(wrong) > CUT:
        yield f"{setting}, first {CUT:,} rows", {"error": float(wrong[start:CUT].mean()), "rows": CUT}
    yield setting, {"error": float(wrong[start:].mean()), "rows": len(wrong)}


def _forest_cut(setting: str, data: Data, whole: bool) -> tuple[str, Data]:
    if whole or len(data.y) <= CUT:
        return setting, data
    return f"{setting}, first {CUT:,} rows", data.first(CUT)


def run_late(data: str, model: str, delay: int, whole: bool) -> Found:
    """Measure models with late labels, without the rows before the first known label."""
    X, y = streams_real.load(data)
    if model.startswith(OURS):
        wrong = prequential(models.ours(model), X, y, delay=delay).mistakes
        yield from _both(f"delay {delay}", wrong, delay + 1)
        return
    setting, part = _forest_cut(f"delay {delay}", Data(X, y), whole or model != FOREST)
    answers = models.predict_late(models.ONLINE[model](), models.rows(model, part.X), part.y, delay)
    wrong = np.array([a != b for a, b in zip(answers, part.y.tolist(), strict=True)])
    if len(part.y) < len(y):
        yield setting, {"error": float(wrong[delay + 1 :].mean()), "rows": len(part.y)}
    else:
        yield from _both(setting, wrong, delay + 1)


def run_chunks(data: str, model: str, size: int, whole: bool) -> Found:
    """Measure models on chunks, without the first chunk."""
    X, y = streams_real.load(data)
    if model.startswith(OURS):
        classifier, classes = models.ours(model), np.unique(y)
        answers: list[Any] = []
        for start in range(0, len(y), size):
            chunk = slice(start, start + size)
            answers.extend(classifier.predict(X[chunk]).tolist() if start else [None] * size)
            classifier.partial_fit(X[chunk], y[chunk], classes=classes)
        wrong = np.array([a != b for a, b in zip(answers, y.tolist(), strict=True)])
        yield from _both(f"chunks of {size}", wrong, size)
        return
    setting, part = _forest_cut(f"chunks of {size}", Data(X, y), whole or model != FOREST)
    answers = models.predict_chunks(models.ONLINE[model](), models.rows(model, part.X), part.y, size)
    wrong = np.array([a != b for a, b in zip(answers, part.y.tolist(), strict=True)])
    if len(part.y) < len(y):
        yield setting, {"error": float(wrong[size:].mean()), "rows": len(part.y)}
    else:
        yield from _both(setting, wrong, size)


def _streams(part: str, word: str, numbers: Sequence[int], peers: Sequence[str], run: Any) -> Any:
    def jobs(ours: Sequence[str], whole: bool = False) -> Iterator[Job]:
        for data in STREAMS:
            for number in numbers:
                for model in (*peers, *ours):
                    setting = f"{word} {number}"
                    if model == FOREST and not whole and data in ("flights", "Elec2", "covtype"):
                        setting += f", first {CUT:,} rows"
                    yield Job(part, data, model, setting, partial(run, data, model, number, whole))

    return jobs


late = _streams("late", "delay", DELAYS, (CONSTANT, NO_CHANGE, FOREST), run_late)
chunks = _streams("chunks", "chunks of", CHUNKS, (CONSTANT, FOREST), run_chunks)


def concept(X: NDArray[Any], first: int, rng: np.random.Generator) -> NDArray[Any]:
    """Return labels by three or four features from ``first`` on, one in twenty of them wrong."""
    a, b, c, d = X[:, first : first + 4].T
    labels = (a + 0.7 * b * c + 0.5 * np.sin(2 * d) > 0) ^ (rng.random(len(X)) < NOISE)
    return np.asarray(labels, dtype=np.intp)


def _learned(model: Any, X: NDArray[Any], y: NDArray[Any], way: str) -> Any:
    """Learn rows in the given way; return True for each wrong prediction, if they were predicted."""
    if way == "online":
        return prequential(model, X, y, classes=[0, 1]).mistakes if len(y) else np.empty(0, dtype=bool)
    for start in range(0, len(y), 50):
        model.partial_fit(X[start : start + 50], y[start : start + 50], classes=[0, 1])
    return None


def run_burst(model: str, way: str) -> Found:
    """Measure errors after flipped labels, and after changes of the relevant features or of the labels."""
    rng = np.random.default_rng(0)
    X = rng.standard_normal((GOOD + CLEAN, 10))
    y = concept(X, 0, rng)
    trained = models.ours(model)
    _learned(trained, X[:GOOD], y[:GOOD], way)
    bad = rng.standard_normal((max(FLIPPED), 10))
    flipped = 1 - concept(bad, 0, rng)
    for b in FLIPPED:
        after = copy.deepcopy(trained)
        _learned(after, bad[:b], flipped[:b], way)
        error = float(np.mean(after.predict(X[GOOD:]) != y[GOOD:]))
        yield f"{b} flipped, {way}", {"error": error, "rows": CLEAN}
    steps = [20] * 100 + [200] * 40
    new = rng.standard_normal((sum(steps) + CLEAN, 10))
    other, same = concept(new, 5, rng), concept(new, 0, rng)
    for name, labels in (("other features", other), ("swapped labels", 1 - same)):
        changed, at, curve, wrong = copy.deepcopy(trained), 0, [], []
        for step in (0, *steps):
            part = slice(at, at + step)
            wrong.append(_learned(changed, new[part], labels[part], way))
            at += step
            curve.append((at, float(np.mean(changed.predict(new[-CLEAN:]) != labels[-CLEAN:]))))
        start, end = curve[0][1], curve[-1][1]
        half = next(rows for rows, error in curve if error <= (start + end) / 2)
        facts: Line = {"error": end, "start": start, "half_followed": half, "rows": at, "curve": curve[:101:5]}
        if way == "online":
            facts["first_1000"] = float(np.concatenate(wrong)[:1000].mean())
        yield f"{name}, {way}", facts


def burst(ours: Sequence[str]) -> Iterator[Job]:
    for model in ours:
        for way in ("online", "partial_fit"):
            yield Job("burst", "synthetic", model, way, partial(run_burst, model, way))


def _digits() -> Data:
    X, y = import_module("sklearn.datasets").load_digits(return_X_y=True)
    order = np.random.default_rng(0).permutation(len(y))
    return Data(X[order], y[order])


def _paper_order(name: str) -> Data:
    return Data(*stream(name, 0)[:2]).first(ONLINE_ROWS)


ONLINE: Mapping[str, Callable[[], Data]] = {
    **{name: partial(_paper_order, name) for name in streams_real.PAPER},
    **{f"{name} (table 7)" if name == "weather" else name: partial(streams_real.generated, name)
       for name in ("weather", *streams_real.GENERATED)},
    **{f"{name} (raw)": partial(lambda name: Data(*tables.load(name, 0, ONLINE_ROWS)), name)
       for name in ("adult", "german credit", "credit", "churn", "hotel", "flights")},
    "digits": _digits,
}  # fmt: skip


def run_online(data: str, model: str) -> Found:
    X, y = ONLINE[data]()
    done = prequential(models.ours(model), X, y)
    yield "delay 0", {"error": done.error, "log_loss": done.log_loss, "rows": len(y)}


def online(ours: Sequence[str]) -> Iterator[Job]:
    for data in ONLINE:
        for model in ours:
            yield Job("online", data, model, "delay 0", partial(run_online, data, model))


PARTS: Mapping[str, Callable[..., Iterator[Job]]] = {
    "folds": folds,
    "future": future,
    "late": late,
    "chunks": chunks,
    "burst": burst,
    "online": online,
}
PROBES = {
    "folds": ["batch"],
    "future": ["batch"],
    "late": ["late"],
    "chunks": ["chunks"],
}  # probes on which the parts depend
VOTING = ("future", "late", "chunks")  # parts that compare voting


def read(path: Path) -> dict[tuple[str, ...], Line]:
    """Return the stored lines by part, data, model and setting."""
    lines = map(json.loads, path.read_text().splitlines()) if path.exists() else ()
    return {tuple(line[name] for name in ("part", "data", "model", "setting")): line for line in lines}


def write(path: Path, new: Line) -> None:
    """Add a line to a file, or replace the one of the same part, data, model and setting."""
    lines = read(path)
    lines[new["part"], new["data"], new["model"], new["setting"]] = new
    other = path.with_suffix(".new")
    other.write_text("".join(json.dumps(lines[key]) + "\n" for key in sorted(lines)))
    other.replace(path)


def run(jobs: Sequence[Job], path: Path, again: bool, label: str) -> None:
    """Run the jobs and store their lines; those of other libraries only if they are missing."""
    stored = read(path)
    for part, data, model, setting, measure in jobs:
        mine = model.startswith(OURS)
        if (part, data, model, setting) in stored and not mine and not again:
            continue
        name, day = label + model.removeprefix(OURS) if mine else model, datetime.now(UTC).date().isoformat()
        start = time.process_time()
        for found, facts in measure():
            seconds = round(time.process_time() - start, 2)
            line: Line = {"part": part, "data": data, "model": name, "setting": found}
            about = {"seconds": seconds, "version": models.version_of(model), "date": day}
            if mine:
                about |= results.stamp(*PROBES.get(part, ["default"]))
            write(path, line | facts | {"error": round(facts["error"], 5)} | about)
            print(f"{part:7} {data:20} {name:28} {found:32} {facts['error']:.4f} {seconds:7.1f} s", flush=True)


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("parts", nargs="*", metavar="PART", help=f"default: all of {', '.join(PARTS)}")
    parser.add_argument("--data", nargs="+", metavar="NAME", help="default: all data sets of the parts")
    parser.add_argument("--models", nargs="+", metavar="NAME", help="default: all models of the parts")
    parser.add_argument("--ours", action="store_true", help="run bayesvote only, without voting")
    parser.add_argument("--weighter", nargs="+", default=[], metavar="NAME", help="also run bayesvote with these")
    parser.add_argument("--as", dest="label", default=OURS, metavar="NAME", help="store bayesvote under this name")
    parser.add_argument("--again", action="store_true", help="measure stored results of other libraries again")
    parser.add_argument("--whole", action="store_true", help="run the forest on all rows in the parts late and chunks")
    parser.add_argument("--store", type=Path, default=STORED, help="default: %(default)s")
    parser.add_argument("--table", action="store_true", help="print the tables, and measure nothing")
    asked = parser.parse_args()
    if unknown := set(asked.parts) - PARTS.keys():
        parser.error(f"Unknown parts: {', '.join(sorted(unknown))}. Choose from {', '.join(PARTS)}.")
    parts = asked.parts or list(PARTS)
    if asked.table:
        print("\n".join(import_module("horizon_table").show(list(read(asked.store).values()), parts)))
        return
    models.quiet()
    added = {f"{OURS}, {name}": {"weighter": name} for name in asked.weighter}
    models.OPTIONS.update(added)
    jobs: list[Job] = []
    for part in parts:
        ours = [OURS, *(models.ROBUST if part == "burst" else ()), *added]
        ours += [models.IN_ORDER] if part == "future" else []
        if part in VOTING and not asked.ours:
            ours.append(models.VOTING)
        more = {"whole": True} if asked.whole and part in ("late", "chunks") else {}
        jobs += PARTS[part](ours, **more)
    jobs = [job for job in jobs if not asked.data or job.data in asked.data]
    jobs = [job for job in jobs if not asked.models or job.model in asked.models]
    if not jobs:
        parser.error("Nothing to run. Check the names after --data and --models.")
    run([job for job in jobs if not asked.ours or job.model.startswith(OURS)], asked.store, asked.again, asked.label)
    sys.stdout.flush()


if __name__ == "__main__":
    main()
