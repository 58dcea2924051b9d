"""Markdown tables of docs/horizon.md from the results of horizon.py."""

import textwrap
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from typing import Any

from horizon_models import BOOSTING, CONSTANT, FOREST, LOGISTIC, NO_CHANGE, OURS, VOTING

Line = Mapping[str, Any]
ORDER = (CONSTANT, NO_CHANGE, LOGISTIC, BOOSTING, FOREST, VOTING)  # columns of others, from left to right
SLACK = 1.02  # "within 2% of the best"


def _versions(lines: Iterable[Line]) -> list[str]:
    """Return the names of bayesvote's stored results, with those without options last."""
    names = dict.fromkeys(line["model"] for line in lines if line["model"].startswith(OURS))
    return [name for name in names if name not in ORDER]


def _columns(lines: Sequence[Line]) -> list[str]:
    stored = {line["model"] for line in lines}
    return [name for name in ORDER if name in stored] + _versions(lines)


def _header(names: Sequence[str], left: int) -> Iterator[str]:
    yield "| " + " | ".join(names) + " |"
    yield "|---" * left + "|---:" * (len(names) - left) + "|"


def _cells(errors: Mapping[str, float], names: Sequence[str], text: Callable[[str], str]) -> str:
    best = min(errors.values())
    cells = [text(name) if name in errors else "" for name in names]
    return " | ".join(
        f"**{cell}**" if name in errors and errors[name] == best else cell
        for name, cell in zip(names, cells, strict=True)
    )


def _grid(lines: Sequence[Line], title: str) -> Iterator[str]:
    """Yield a table of errors by data set and setting, then each version of bayesvote compared with the best model."""
    names, rows = _columns(lines), dict.fromkeys((line["data"], line["setting"]) for line in lines)
    yield f"\n{title}\n"
    yield from _header(("data", "setting", *names), 2)
    ratios: dict[str, list[tuple[float, str]]] = {name: [] for name in _versions(lines)}  # where the forest was run
    points: dict[str, list[tuple[float, str]]] = {name: [] for name in _versions(lines)}
    for data, setting in sorted(rows, key=lambda row: (row[0], _number(row[1]), row[1])):
        errors = {line["model"]: line["error"] for line in lines if (line["data"], line["setting"]) == (data, setting)}
        shown = _cells(errors, names, lambda name, errors=errors: f"{errors[name]:.4f}")  # type: ignore[misc]
        yield f"| {data} | {setting} | {shown} |"
        best = min((error for name, error in errors.items() if name in ORDER), default=0.0)
        for name in ratios.keys() & errors.keys():
            if best and FOREST in errors:
                ratios[name].append((errors[name] / best, f"{data}, {setting}"))
            if CONSTANT in errors:
                points[name].append((100 * (errors[name] - errors[CONSTANT]), f"{data}, {setting}"))
    for name, found in ratios.items():
        if found:
            within, (most, where) = sum(ratio <= SLACK for ratio, _ in found), max(found)
            yield f"\n{name}: best or within 2% of the best other in {within} of {len(found)} rows with {FOREST};"
            yield f"at most {most:.3f} times the best other ({where})."
        if points[name]:
            most, where = max(points[name])
            yield f"Worse than the constant by more than one point in {sum(one[0] > 1 for one in points[name])} of"
            yield f"{len(points[name])} rows; at most {most:+.2f} points ({where})."


def _number(setting: str) -> int:
    return next((int(word) for word in setting.replace(",", "").split() if word.isdigit()), 0)


def folds(lines: Sequence[Line]) -> Iterator[str]:
    """Yield for each version the worst fold of 3, 5 and 10, and its distance to the two references."""
    found = {(line["data"], line["model"], line["setting"]): line for line in lines}
    for name in _versions(lines):
        yield f"\nUnshuffled folds, {name}: accuracy points below are of the worst of 3, 5 and 10 folds\n"
        head = ("mean, 3/5/10", "worst fold", f"{LOGISTIC} mean", f"{LOGISTIC} worst fold", "shuffled rows, mean")
        below = (f"below {LOGISTIC} on the same fold", "below shuffled", "below both")
        yield from _header(("data", *head, *below), 1)
        over = []
        for data in dict.fromkeys(line["data"] for line in lines):
            sets = [
                (found[data, name, k], found[data, LOGISTIC, k], found[data, name, f"{k}, shuffled"])
                for k in ("3 folds", "5 folds", "10 folds")
                if {(data, name, k), (data, LOGISTIC, k), (data, name, f"{k}, shuffled")} <= found.keys()
            ]
            if not sets:
                continue
            pairs = [
                (a - b, a - shuffled["error"])
                for mine, other, shuffled in sets
                for a, b in zip(mine["folds"], other["folds"], strict=True)
            ]
            points = [100 * max(values) for values in ((p[0] for p in pairs), (p[1] for p in pairs), map(min, pairs))]
            over.append(points)
            means = ["/".join(f"{one[k]['error']:.3f}" for one in sets) for k in range(3)]
            worst = [max(one[k]["worst"] for one in sets) for k in range(2)]
            yield (
                f"| {data} | {means[0]} | {worst[0]:.3f} | {means[1]} | {worst[1]:.3f} | {means[2]} | "
                + " | ".join(f"{value:.1f}" for value in points)
                + " |"
            )
        if over:
            counts = [sum(points[k] > 3 for points in over) for k in range(3)]
            yield f"\nMore than 3 points below, of {len(over)} data sets: {LOGISTIC} on the same fold {counts[0]},"
            most = max(points[2] for points in over)
            yield f"shuffled rows {counts[1]}, both {counts[2]}; at most {most:.1f} points below both."


def future(lines: Sequence[Line]) -> Iterator[str]:
    """Yield mean and largest errors of the rows after each cut."""
    names = _columns(lines)
    yield "\nError on the 5,000 rows after each of 21 cuts: mean, and of the worst cut\n"
    yield from _header(("data", *names), 1)
    for data in dict.fromkeys(line["data"] for line in lines):
        of = {line["model"]: line for line in lines if line["data"] == data}
        errors = {name: line["error"] for name, line in of.items()}
        shown = _cells(errors, names, lambda name, of=of: f"{of[name]['error']:.3f} / {of[name]['worst']:.3f}")  # type: ignore[misc]
        yield f"| {data} | {shown} |"


def burst(lines: Sequence[Line]) -> Iterator[str]:
    """Yield errors after bursts, and the rows that a change takes, by the way in which rows are learned."""
    for way in ("online", "partial_fit"):
        of = {(line["model"], line["setting"]): line for line in lines if line["setting"].endswith(way)}
        bursts = sorted((key[1] for key in of if "flipped" in key[1]), key=_number)
        bursts = list(dict.fromkeys(bursts))
        changes = [f"other features, {way}", f"swapped labels, {way}"]
        yield f"\nError on clean rows after flipped labels, and rows until half of a change is followed ({way})\n"
        head = [one.removesuffix(f", {way}") for one in (*bursts, *changes)]
        yield from _header(("model", *head, "error in 1,000 rows after other features", "after swapped labels"), 1)
        for name in sorted({key[0] for key in of}):
            cells = [f"{of[name, one]['error']:.3f}" if (name, one) in of else "" for one in bursts]
            cells += [str(of[name, one]["half_followed"]) if (name, one) in of else "" for one in changes]
            rates = [of.get((name, one), {}).get("first_1000") for one in changes]
            cells += ["" if rate is None else f"{rate:.4f}" for rate in rates]
            yield f"| {name} | " + " | ".join(cells) + " |"


def online(lines: Sequence[Line]) -> Iterator[str]:
    """Yield test-then-train errors by version, and geometric means of the ratios to the first version."""
    names = _versions(lines)
    yield "\nTest-then-train error\n"
    yield from _header(("data", *names), 1)
    ratios: dict[str, list[float]] = {name: [] for name in names}
    for data in dict.fromkeys(line["data"] for line in lines):
        errors = {line["model"]: line["error"] for line in lines if line["data"] == data}
        for name in names:
            if name in errors and errors.get(names[0]):
                ratios[name].append(max(errors[name], 1e-5) / errors[names[0]])
        shown = _cells(errors, names, lambda name, errors=errors: f"{errors[name]:.4f}")  # type: ignore[misc]
        yield f"| {data} | {shown} |"
    for name, of in list(ratios.items())[1:]:
        product = 1.0
        for ratio in of:
            product *= ratio ** (1 / len(of))
        most = max(of, default=1.0)
        yield f"\n{name}: {product:.4f} times the error of {names[0]}, geometric mean; at most {most:.3f} times."


def show(lines: Sequence[Line], parts: Sequence[str]) -> Iterator[str]:
    """Yield the tables of some parts, and the versions and dates of their measurements."""
    kinds: dict[str, Callable[[Sequence[Line]], Iterator[str]]] = {
        "folds": folds,
        "future": future,
        "late": lambda of: _grid(of, "Error with labels that come late, next to the forest"),
        "chunks": lambda of: _grid(of, "Error of chunks that are predicted, then learned, next to the forest"),
        "burst": burst,
        "online": online,
    }
    for part in parts:
        of_part = [line for line in lines if line["part"] == part]
        if of_part:
            yield from kinds[part](of_part)
    measured = sorted({(line["version"], line["date"]) for line in lines if line["part"] in parts and line["version"]})
    yield "\nMeasured: " + ", ".join(f"{version} on {date}" for version, date in measured) + "."


# What docs/horizon.md shows; see pages.py.

REAL = ("flights", "Elec2", "weather", "covtype")
EARLIER = f"{OURS} 0.1.0"
SHOWN = {CONSTANT: "constant", FOREST: FOREST, VOTING: "voting", EARLIER: "0.1.0", OURS: "bayesvote"}
FIRST = "first 20,000 rows"


def _errors(result: Any, part: str) -> dict[tuple[str, str], dict[str, float]]:
    """Return the errors of a part by data and setting, then by model."""
    found: dict[tuple[str, str], dict[str, float]] = {}
    for line in result.lines:
        if line["part"] == part:
            found.setdefault((line["data"], line["setting"]), {})[line["model"]] = line["error"]
    return found


def _real(result: Any, part: str, head: str) -> Iterator[str]:
    """Yield the errors on real streams, of all rows if the forest ran on them, otherwise of the first 20,000."""
    found = _errors(result, part)
    yield from _header(("data", head, *SHOWN.values()), 1)
    for data in REAL:
        for setting in sorted({key[1].partition(",")[0] for key in found if key[0] == data}, key=_number):
            whole = FOREST in found[data, setting]
            errors = found[data, setting if whole else f"{setting}, {FIRST}"]
            title = data if whole else f"{data} ({FIRST.removeprefix('first ')})"
            cells = " | ".join(f"{errors[name]:.4f}" for name in SHOWN)
            yield f"| {title} | {_number(setting):,} | {cells} |"


def _changing(result: Any, part: str) -> Iterator[str]:
    """Yield the errors on the streams of table 7: the default, and in brackets 0.1.0 and the forest."""
    found = _errors(result, part)
    streams = sorted({data for data, _ in found} - set(REAL))
    settings = sorted({setting for data, setting in found if data in streams}, key=_number)
    yield from _header(("stream", *(_thousands(setting) for setting in settings)), 1)
    for data in streams:
        cells = [
            f"{errors[OURS]:.4f} ({errors[EARLIER]:.4f}, {errors[FOREST]:.4f})"
            for errors in (found[data, setting] for setting in settings)
        ]
        yield f"| {data} | " + " | ".join(cells) + " |"


def _thousands(setting: str) -> str:
    words, number = setting.rsplit(" ", 1)
    return f"{words} {int(number):,}"


def late_errors(result: Any) -> Iterator[str]:
    """Yield the table of late labels on real streams."""
    return _real(result, "late", "rows late")


def late_streams(result: Any) -> Iterator[str]:
    """Yield the table of late labels on the streams of table 7."""
    return _changing(result, "late")


def chunk_errors(result: Any) -> Iterator[str]:
    """Yield the table of chunks on real streams."""
    return _real(result, "chunks", "rows")


def chunk_streams(result: Any) -> Iterator[str]:
    """Yield the table of chunks on the streams of table 7."""
    return _changing(result, "chunks")


def future_errors(result: Any) -> Iterator[str]:
    """Yield the table of fit on the past: mean and worst errors."""
    of = {(line["data"], line["model"]): line for line in result.lines if line["part"] == "future"}
    names = {CONSTANT: "constant", BOOSTING: BOOSTING, FOREST: FOREST, VOTING: "voting", EARLIER: "0.1.0"}
    names |= {OURS: "default", f"{OURS}, shuffle=False": "default, `shuffle=False`"}
    yield from _header(("data", *names.values()), 1)
    for data in REAL:
        cells = [f"{of[data, name]['error']:.3f} / {of[data, name]['worst']:.3f}" for name in names]
        yield f"| {data} | " + " | ".join(cells) + " |"


def burst_errors(result: Any) -> Iterator[str]:
    """Yield the table of errors after a burst of wrong labels."""
    of = {(line["model"], line["setting"]): line for line in result.lines if line["part"] == "burst"}
    flipped = (0, 10, 30, 100, 300)
    head = ("no wrong label", *map(str, flipped[1:]), "half of a change followed after")
    yield from _header(("model", *head), 1)
    models = {"default": OURS, "default of 0.1.0": EARLIER}
    models |= {name: f"{OURS}, {name}" for name in ("fast", "joint_gaussian", "gamma_rate")}
    rows = [(title, name, "online") for title, name in models.items()]
    for title, name, way in [*rows, ("default, by `partial_fit`", OURS, "partial_fit")]:
        cells = [f"{of[name, f'{k} flipped, {way}']['error']:.3f}" for k in flipped]
        half = of[name, f"other features, {way}"]["half_followed"]
        yield f"| {title} | " + " | ".join(cells) + f" | {half:,} rows |"


def fold_errors(result: Any) -> Iterator[str]:
    """Yield the table of unshuffled folds: the worst fold of 3, 5 and 10."""
    found = {(line["data"], line["model"], line["setting"]): line for line in result.lines if line["part"] == "folds"}
    below = (f"points below {LOGISTIC} on the same fold", "points below shuffled rows")
    yield from _header(("data", "worst fold", f"of {LOGISTIC}", "of 0.1.0", *below), 1)
    for data in sorted({key[0] for key in found}):
        worst = [max(found[data, name, k]["worst"] for k in FOLDS) for name in (OURS, LOGISTIC, EARLIER)]
        points = _points_below(found, data)
        cells = [*(f"{error:.3f}" for error in worst), *(f"{point:.1f}" for point in points)]
        yield f"| {data} | " + " | ".join(cells) + " |"


FOLDS = ("3 folds", "5 folds", "10 folds")


def _points_below(found: Mapping[tuple[str, str, str], Line], data: str) -> tuple[float, float]:
    """Return the largest differences of a fold to LogisticRegression on it and to shuffled rows, in points."""
    logistic, shuffled = -1.0, -1.0
    for k in FOLDS:
        mine, other = found[data, OURS, k]["folds"], found[data, LOGISTIC, k]["folds"]
        logistic = max(logistic, *(a - b for a, b in zip(mine, other, strict=True)))
        if whole := found.get((data, OURS, f"{k}, shuffled")):
            shuffled = max(shuffled, max(mine) - whole["error"])
    return 100 * logistic, 100 * shuffled


def figures(result: Any) -> dict[str, Any]:
    """Return the number of data sets on which a fold is over 3 points below LogisticRegression."""
    found = {(line["data"], line["model"], line["setting"]): line for line in result.lines if line["part"] == "folds"}
    behind = [_points_below(found, data)[0] for data in dict.fromkeys(key[0] for key in found)]
    return {"folds": {"behind": sum(points > 3 for points in behind), "sets": len(behind)}}


def _summary(result: Any, part: str, name: str, said: str, was: str) -> str:
    """Return sentences that compare a version in a part with the best other model and with the constant."""
    ratios, points = [], []
    for (data, setting), errors in _errors(result, part).items():
        where = f"{data}, {setting}"
        if FOREST in errors:
            ratios.append((errors[name] / min(error for model, error in errors.items() if model in ORDER), where))
        points.append((100 * (errors[name] - errors[CONSTANT]), where))
    within, worse = sum(ratio <= SLACK for ratio, _ in ratios), sum(point > 1 for point, _ in points)
    return (
        f"{said} {was} best or within 2% of the best other in {within} of {len(ratios)} rows with {FOREST}; at most "
        f"{max(ratios)[0]:.3f} times the best other ({max(ratios)[1]}). It {was} worse than the constant by more than "
        f"one point in {worse} of {len(points)} rows; at most {max(points)[0]:+.2f} points ({max(points)[1]})."
    )


def late_summary(result: Any) -> Iterator[str]:
    """Yield comparisons of both versions with other models on late labels."""
    return _summaries(result, "late")


def chunk_summary(result: Any) -> Iterator[str]:
    """Yield comparisons of both versions with other models on chunks."""
    return _summaries(result, "chunks")


def _summaries(result: Any, part: str) -> Iterator[str]:
    for name, said, was in ((OURS, "The default", "is"), (EARLIER, "Version 0.1.0", "was")):
        yield from textwrap.wrap(_summary(result, part, name, said, was), 120)
