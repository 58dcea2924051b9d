"""Tables of docs/distributed.md from the results of shards.py, which pages.py inserts."""

from collections.abc import Iterator
from typing import Any

import results


def weights(result: Any) -> Iterator[str]:
    """Yield the sum of the weights of each kind, with and without abstaining."""
    yield from results.grid("", result.figures["weights"], ".4f")


def covtype(result: Any) -> Iterator[str]:
    """Yield errors and times of shards, of one stream and of scikit-learn."""
    yield "| | error | wall time, s | CPU time, s |"
    yield "|---|---:|---:|---:|"
    for name, of in result.figures["models"].items():
        yield f"| {name} | {of['error']:.4f} | {of['wall']:.1f} | {of['cpu']:.1f} |"


def trees(result: Any) -> Iterator[str]:
    """Yield error, time and size by the number of trees per shard."""
    yield "| trees a shard | error | CPU time, s | model file, MB |"
    yield "|---:|---:|---:|---:|"
    for n, of in result.figures.items():
        yield f"| {n} | {of['error']:.4f} | {of['cpu']:.0f} | {of['MB']:.0f} |"


def merging(result: Any) -> Iterator[str]:
    """Yield the cost of merging and scheduling."""
    of = result.figures
    yield f"| {of['shards']:,} shards, {of['members']} members, {of['kB']:.0f} kB each | CPU time | wall time |"
    yield "|---|---:|---:|"
    yield f"| merging all | {of['merged cpu']:.1f} s | {of['merged wall']:.1f} s |"
    yield f"| scheduling one shard | {of['scheduling ms, cpu']:.1f} ms | {of['scheduling ms, wall']:.1f} ms |"
