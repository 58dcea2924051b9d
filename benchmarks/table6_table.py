"""The table of docs/peers.md from the result of table6.py; see pages.py."""

from collections.abc import Iterator
from typing import Any

from table6 import STORED, tables


def strongest_of_each(result: Any) -> Iterator[str]:  # noqa: ARG001
    """Yield the strongest of the configurations on each set, and how many could be compared."""
    lines = list(tables(STORED))
    yield from lines[lines.index("") + 1 :]
