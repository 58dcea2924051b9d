"""The tables of docs/peers.md from the result of table6.py; see pages.py."""

from collections.abc import Iterator
from typing import Any

from table6 import Figure, configurations_table, runs_table, strongest_table


def _figures(result: Any) -> list[Figure]:
    return [Figure(**line) for line in result.lines]


def configurations(result: Any) -> Iterator[str]:  # noqa: ARG001
    """Yield what each configuration is."""
    return configurations_table()


def strongest_of_each(result: Any) -> Iterator[str]:
    """Yield the strongest of the configurations on each set, and how many could be compared."""
    return strongest_table(_figures(result))


def runs(result: Any) -> Iterator[str]:
    """Yield what was cut short, and when it was measured."""
    return runs_table(_figures(result))
