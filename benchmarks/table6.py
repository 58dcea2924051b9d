"""The errors of 34 configurations of other libraries on the streams of table 6: `make peers [ARGS="--sets heart"]`.

Every row is predicted before it is learned. By default each configuration runs over the rows and orders that its stored
figure, in table6.jsonl, is of. Libraries that cannot be run here are skipped, and it says why. Results are lines of
JSON, as the stored ones are. `--table` prints what docs/peers.md shows of a file of figures, and measures nothing.
"""

import argparse
import json
import math
import platform
import time
from collections.abc import Iterable, Iterator, Mapping, Sequence
from datetime import UTC, datetime
from itertools import product
from pathlib import Path
from typing import Any, NamedTuple

from answers import Scored, scored
from bayesvote.datasets import DATASETS, locate
from bayesvote_paper.default_classifier import MOST_ROWS, TABLE6
from bayesvote_paper.streams import stream
from configurations import CONFIGURATIONS, LIBRARIES

STORED = Path(__file__).parent / "results" / "table6.jsonl"
ORDERS = 5
EARLIER = "by 2026-11-16"  # figures without a date


class Figure(NamedTuple):
    """The mistakes of a configuration on the first rows of a set, in the orders with seeds 0, 1, ...

    ``unanswered`` counts rows without a prediction, for which the commonest label so far stands in. It is empty for
    figures measured before 0.2.0, which took class 0 instead.
    """

    set: str
    configuration: str
    rows: int
    mistakes: Sequence[int]
    unanswered: Sequence[int] = ()
    date: str = ""  # empty for figures measured before 0.2.0

    @property
    def error(self) -> float:
        """The share of the rows that were predicted wrongly, mean over the orders."""
        return sum(self.mistakes) / len(self.mistakes) / self.rows

    @property
    def whole(self) -> bool:
        """Whether it is of all rows that table 6 has of the set."""
        return self.rows == stream_rows(self.set)


def stream_rows(dataset: str) -> int:
    return min(TABLE6.rows(dataset), MOST_ROWS)


def orders(dataset: str) -> int:
    return TABLE6.most_trials.get(dataset, ORDERS)


def read(path: Path) -> tuple[dict[str, Any], list[Figure]]:
    """A file of figures: what they were measured with, in its first line, and the figures."""
    with path.open() as lines:
        about = json.loads(next(lines))
        return about, [Figure(**json.loads(line)) for line in lines]


def strongest(figures: Iterable[Figure]) -> dict[str, Figure]:
    """For each set the figure of least error, among those of all its rows; in as many orders as it was run in."""
    best: dict[str, Figure] = {}
    for one in figures:
        if one.whole and (one.set not in best or one.error < best[one.set].error):
            best[one.set] = one
    return {name: best[name] for name in DATASETS if name in best}


def configurations_table() -> Iterator[str]:
    """Yield the table of the configurations in docs/peers.md."""
    yield "| configuration | what is made |"
    yield "|---|---|"
    for name, configuration in CONFIGURATIONS.items():
        yield f"| {name} | `{configuration.library.module.partition('.')[0]}.{configuration.what}` |"


def strongest_table(figures: Sequence[Figure]) -> Iterator[str]:
    """Yield the strongest configuration of each set, and how many could be compared."""
    yield "| set | rows | strongest configuration | error | its orders | ran over all rows | and in all orders |"
    yield "|---|---|---|---|---|---|---|"
    best = strongest(figures)
    for name, one in best.items():
        whole = [other for other in figures if other.set == name and other.whole]
        full = sum(len(other.mistakes) >= orders(name) for other in whole)
        yield (
            f"| {name} | {one.rows:,} | {one.configuration} | {one.error:.4f} | {len(one.mistakes)} of {orders(name)} "
            f"| {len(whole)} | {full} |"
        )
    yield f"| mean | | | {sum(one.error for one in best.values()) / len(best):.4f} | | | |"


def runs_table(figures: Sequence[Figure]) -> Iterator[str]:
    """Yield, for each configuration, what was cut short, rows without a prediction, and when it was measured."""
    yield "| configuration | complete on | fewer orders on | fewer rows on | rows without a prediction | measured |"
    yield "|---|---:|---|---|---|---|"
    for name in CONFIGURATIONS:
        own = [one for one in figures if one.configuration == name]
        complete = sum(one.whole and len(one.mistakes) >= orders(one.set) for one in own)
        orders_cut = [
            f"{one.set} ({len(one.mistakes)} of {orders(one.set)})"
            for one in own
            if one.whole and len(one.mistakes) < orders(one.set)
        ]
        rows_cut = [f"{one.set} ({one.rows:,})" for one in own if not one.whole]
        counted = [one for one in own if one.unanswered]
        missing = sum(sum(one.unanswered) for one in counted)
        of = sum(one.rows * len(one.mistakes) for one in counted)
        told = f"{missing:,} of {of:,}" if counted else "not counted"
        told += f", on {len(counted)} of {len(own)} sets" if 0 < len(counted) < len(own) else ""
        days = sorted({one.date or EARLIER for one in own})
        yield (
            f"| {name} | {complete} of {len(DATASETS)} | {', '.join(orders_cut)} | {', '.join(rows_cut)} | {told} "
            f"| {', '.join(days)} |"
        )


def tables(path: Path) -> Iterator[str]:
    """Yield the tables of docs/peers.md."""
    _, figures = read(path)
    yield from configurations_table()
    yield ""
    yield from strongest_table(figures)
    yield ""
    yield from runs_table(figures)


def measure(dataset: str, name: str, n: int, seeds: int, seconds: float = math.inf) -> Figure:
    """Count the mistakes of a configuration on the first rows of a set, order by order.

    An order is begun only if it will probably end within ``seconds`` of the start. The first order is cut short then.
    """
    found, start = list[Scored](), time.monotonic()
    for seed in range(seeds):
        if found and (time.monotonic() - start) * (1 + 1 / len(found)) > seconds:
            break
        X, y, _ = stream(dataset, seed)
        start = start if found else time.monotonic()  # loading a set takes none of its time
        answers = list(
            until(start + seconds if not found else math.inf, CONFIGURATIONS[name].answers(seed, X[:n], y[:n]))
        )
        n = len(answers)
        found.append(scored(answers, y[:n].tolist()))
    today = datetime.now(UTC).date().isoformat()
    return Figure(dataset, name, n, [one.mistakes for one in found], [one.unanswered for one in found], today)


def until(end: float, answers: Iterator[Any]) -> Iterator[Any]:
    for answer in answers:
        yield answer
        if time.monotonic() > end:
            break


def agreement(new: Figure, old: Figure | None) -> str:
    """How a new figure compares with the stored one, in the orders that both have."""
    if old is None or old.rows != new.rows:
        return "nothing stored for these rows"
    pairs = list(zip(new.mistakes, old.mistakes, strict=False))
    if all(a == b for a, b in pairs):
        return f"as stored (orders: {len(pairs)})"
    return f"differs from the stored mistakes: {[b for _, b in pairs]}"


def store(path: Path) -> None:
    """Replace stored figures by those of a file, where these are of as many rows and orders."""
    about, stored = read(STORED)
    kept = {(one.configuration, one.set): one for one in stored}
    for new in read(path)[1]:
        old = kept.get((new.configuration, new.set))
        if old is None or (new.rows, len(new.mistakes)) >= (old.rows, len(old.mistakes)):
            kept[new.configuration, new.set] = new
    about["versions"] |= read(path)[0]["versions"]
    lines = [json.dumps(about)]
    for dataset, name in product(DATASETS, CONFIGURATIONS):
        if (name, dataset) in kept:
            fields = kept[name, dataset]._asdict()
            lines.append(json.dumps({key: value for key, value in fields.items() if value not in ((), "")}))
    STORED.write_text("\n".join(lines) + "\n")


def run(
    sets: Sequence[str], names: Sequence[str], versions: Mapping[str, str], whole: bool, seconds: float, path: Path
) -> None:
    """Measure some configurations on some sets, write their figures and compare them with the stored ones."""
    stored = {(one.set, one.configuration): one for one in read(STORED)[1]}
    about = {
        "date": datetime.now(UTC).date().isoformat(),
        "python": platform.python_version(),
        "versions": versions,
    }
    verdicts = []
    path.parent.mkdir(parents=True, exist_ok=True)
    with path.open("w") as out:
        print(json.dumps(about), file=out, flush=True)
        for dataset, name in product(sets, names):
            old = stored.get((dataset, name))
            n, seeds = stream_rows(dataset), orders(dataset)
            if old and not whole:
                n, seeds = old.rows, len(old.mistakes)
            try:
                new = measure(dataset, name, n, seeds, seconds)
            except Exception as error:  # another release may lack a parameter; the rest of a long run goes on
                print(f"{dataset:14} {name:42} failed, {type(error).__name__}: {error}", flush=True)
                continue
            print(json.dumps(new._asdict()), file=out, flush=True)
            verdicts.append(agreement(new, old))
            print(f"{dataset:14} {name:42} {new.error:.4f}  {verdicts[-1]}", flush=True)
    equal, other = (sum(one.startswith(word) for one in verdicts) for word in ("as stored", "differs"))
    print(f"{len(verdicts)} figures in {path}: {equal} equal the stored ones in every order, {other} differ.")


def main(arguments: Sequence[str] | None = None) -> None:
    parser = argparse.ArgumentParser(description=(__doc__ or "").partition("\n")[0])
    parser.add_argument("--sets", nargs="+", choices=DATASETS, help="default: all that are at hand")
    parser.add_argument("--configurations", nargs="+", choices=CONFIGURATIONS, metavar="NAME", help="default: all 34")
    parser.add_argument("--libraries", nargs="+", choices=LIBRARIES, default=list(LIBRARIES), help="default: all four")
    parser.add_argument("--whole", action="store_true", help="all rows in all orders, where the stored runs were cut")
    parser.add_argument("--seconds", type=float, default=math.inf, help="of a configuration on a set, then it is cut")
    parser.add_argument("--store", type=Path, help="write this file of new figures over the stored ones; no measuring")
    parser.add_argument("--out", type=Path, default=Path("reproduced/peers.jsonl"), help="default: %(default)s")
    parser.add_argument("--table", type=Path, nargs="?", const=STORED, help="print the tables of a file of figures")
    asked = parser.parse_args(arguments)
    if asked.store:
        store(asked.store)
        return
    if asked.table:
        print("\n".join(tables(asked.table)))
        return
    missing = {name: why for name in asked.libraries if (why := LIBRARIES[name].missing())}
    for name, why in missing.items():
        print(f"skipped: {name}, {sum(key.startswith(name) for key in CONFIGURATIONS)} configurations ({why})")
    far = [name for name in DATASETS if not asked.sets and locate(name)[0] == "download"]
    if far:
        print(f"skipped: {', '.join(far)} (not at hand; BAYESVOTE_DATA names the folder to look in)")
    libraries = [LIBRARIES[name] for name in asked.libraries if name not in missing]
    run(
        asked.sets or [name for name in DATASETS if name not in far],
        [name for name in asked.configurations or CONFIGURATIONS if CONFIGURATIONS[name].library in libraries],
        {library.package: library.version for library in libraries},
        asked.whole,
        asked.seconds,
        asked.out,
    )


if __name__ == "__main__":
    main()
