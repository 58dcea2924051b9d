"""The tables of docs/peers.md from the result of table6.py, which pages.py inserts."""

from collections.abc import Iterator
from typing import Any

from table6 import Figure, configurations_table, runs_table, strongest_table


def _figures(result: Any) -> list[Figure]:
    return [Figure(**line) for line in result.lines]


def configurations(result: Any) -> Iterator[str]:  # noqa: ARG001
    """Yield the configurations."""
    return configurations_table()


def strongest_of_each(result: Any) -> Iterator[str]:
    """Yield the strongest configuration on each data set, and the number of configurations that were compared."""
    return strongest_table(_figures(result))


def runs(result: Any) -> Iterator[str]:
    """Yield the runs that were cut short, with their dates."""
    return runs_table(_figures(result))
