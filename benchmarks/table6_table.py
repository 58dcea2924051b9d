"""The table of docs/peers.md from the result of table6.py, which pages.py inserts."""

from collections.abc import Iterator
from typing import Any

from table6 import STORED, tables


def strongest_of_each(result: Any) -> Iterator[str]:  # noqa: ARG001
    """Yield the strongest configuration on each data set, and the number of configurations that were compared."""
    lines = list(tables(STORED))
    yield from lines[lines.index("") + 1 :]
