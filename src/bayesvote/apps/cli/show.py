"""Output of the commands: tables, JSON, progress, notes, and weights drawn in a terminal."""

import json
import math
import sys
from collections.abc import Iterator, Mapping, Sequence
from contextlib import AbstractContextManager, contextmanager, redirect_stdout
from typing import IO, Any

import numpy as np
from rich.console import Console
from rich.progress import Progress, ProgressColumn
from rich.table import Table
from rich.text import Text

from bayesvote.core.files import naming
from bayesvote.io.open_stream import require_extra

OUTPUT = "standard output"  # its name in errors


class _Output:
    """Standard output whose errors name it, also the one for a full disk."""

    def __init__(self, file: Any) -> None:
        self._file = file

    def write(self, text: str) -> Any:
        with naming(OUTPUT):
            return self._file.write(text)

    def flush(self) -> None:
        with naming(OUTPUT):
            self._file.flush()

    def __getattr__(self, name: str) -> Any:
        return getattr(self._file, name)


def output() -> AbstractContextManager[Any]:
    """Make errors of standard output name it."""
    named: Any = _Output(sys.stdout)
    return redirect_stdout(named)


def console() -> Console:
    """Return a console on standard output."""
    return Console(highlight=False)


def note(sentence: str) -> None:
    """Print a note on standard error."""
    Console(stderr=True, highlight=False).print(plain(sentence), markup=False, soft_wrap=True)


def plain(text: str) -> str:
    r"""Escape control characters, so that text cannot control a terminal.

    Newlines are escaped, too, or a label could imitate other lines of the output.

    >>> plain("caf\xe9 \x1b[31m\u202e\n")
    'caf\xe9 \\x1b[31m\\u202e\\n'
    """
    if text.isprintable():
        return text
    return "".join(c if c.isprintable() else ascii(c)[1:-1] for c in text)


def shown(labels: Sequence[Any], file: IO[Any]) -> list[Any]:
    """Return labels unchanged for a file, and with control characters escaped for a terminal."""
    if not file.isatty():
        return list(labels)
    return [plain(label) if isinstance(label, str) else label for label in labels]


def cell(text: str) -> Text:
    """Return text for a table, without interpreting markup or control characters."""
    return Text(plain(text))


def as_json(value: Any) -> None:
    """Print a result as JSON; NaN and infinity become null."""
    print(json.dumps(_plain(value), indent=2, allow_nan=False))


def _plain(value: Any) -> Any:
    if isinstance(value, Mapping):
        return {str(key): _plain(part) for key, part in value.items()}
    if isinstance(value, (list, tuple, np.ndarray)):
        return [_plain(part) for part in value]
    if isinstance(value, np.generic):
        value = value.item()
    if isinstance(value, float) and not math.isfinite(value):
        return None
    return value


def facts(pairs: Mapping[str, str]) -> Table:
    """Return a table of names and values, without lines."""
    table = Table.grid(padding=(0, 2))
    table.add_column(style="dim", no_wrap=True)
    table.add_column(overflow="fold")
    for name, value in pairs.items():
        table.add_row(cell(name), cell(value))
    return table


@contextmanager
def progress(*columns: str | ProgressColumn) -> Iterator[Progress]:
    """Show progress on standard error if it is a terminal; remove it at the end."""
    with Progress(*columns, console=Console(stderr=True), transient=True, disable=not sys.stderr.isatty()) as bar:
        yield bar


def interval_bar(lower: float, mean: float, upper: float, low: float, high: float, width: int, ascii_only: bool) -> str:
    """Draw an interval and its mean on a line from ``low`` to ``high``, with a mark at 0.

    >>> interval_bar(0.2, 0.5, 0.8, 0.0, 1.0, 11, ascii_only=True)
    ': |--o--|  '
    """
    end, line, point, zero, crossed = "|-o:+" if ascii_only else "│─●┊┼"
    span = (high - low) or 1.0

    def place(value: float) -> int:
        return min(width - 1, max(0, round((value - low) / span * (width - 1))))

    cells = [" "] * width
    if low <= 0 <= high:
        cells[place(0.0)] = zero
    first, last = place(lower), place(upper)
    cells[first : last + 1] = [line if cell == " " else crossed for cell in cells[first : last + 1]]
    cells[first] = cells[last] = end
    cells[place(mean)] = point
    return "".join(cells)


def skipped(count: int, reports: list[str]) -> None:
    """Print the number of skipped lines, and the error of the first one."""
    if count:
        note(f"Skipped {count:,} bad line{'s' if count > 1 else ''}. The first: {reports[0]}.")


def require_report() -> None:
    """Raise an error before any work is done if a report cannot be written."""
    for module in ("jinja2", "matplotlib"):
        require_extra("report", module, "cli", "to write one")
