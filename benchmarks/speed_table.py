"""Tables of docs/performance.md from the result of speed.py, which pages.py inserts."""

from collections.abc import Iterator
from typing import Any


def ensembles(result: Any) -> Iterator[str]:
    """Yield times of ensembles, compared with the matrix product."""
    yield "| stream | ensemble, weights by `GammaRate` | us a row | times the product on one core |"
    yield "|---|---|---:|---:|"
    for of in (result.figures[name] for name in ("covtype", "adult") if name in result.figures):
        for title, us in of["us"].items():
            yield f"| {of['set']}, {of['rows']:,} x {of['features']} | {title} | {us:.2f} | {us / of['product']:.1f} |"


def weighters(result: Any) -> Iterator[str]:
    """Yield microseconds a row by weighter."""
    yield "| weighter, online Perceptrons | us a row |"
    yield "|---|---:|"
    for name, us in result.figures["weighters"].items():
        yield f"| {name} | {us:.1f} |"


def scaling(result: Any) -> Iterator[str]:
    """Yield the time per row by numbers of rows, members and non-zeros."""
    columns = result.figures["scaling"]
    yield "| " + " | ".join(f"{name} | us a row" for name in columns) + " |"
    yield "|" + "---:|" * 2 * len(columns)
    for cells in zip(*(of.items() for of in columns.values()), strict=False):
        yield "| " + " | ".join(f"{size} | {us:.1f}" for size, us in cells) + " |"


def peers(result: Any) -> Iterator[str]:
    """Yield the rows per second of other libraries, and the ratios of bayesvote's to them."""
    yield "| other library | rows/s | its error | ours: times as fast; error on the same rows |"
    yield "|---|---:|---:|---|"
    for name, (speed, error, ours) in result.figures["peers"].items():
        told = [f"{label} {times:.0f} times{'' if e is None else f'; {e:.3f}'}" for label, (times, e) in ours.items()]
        yield f"| {name} | {speed:,.0f} | {'' if error is None else f'{error:.3f}'} | {', '.join(told)} |"


def saved(result: Any) -> Iterator[str]:
    """Yield size and time of saved models."""
    yield "| 100 Perceptrons on 54 features | KB | ms, both fsyncs included |"
    yield "|---|---:|---:|"
    for name, (ms, size) in result.figures["saved"].items():
        yield f"| `{name}` | {size:.0f} | {ms:.1f} |"
