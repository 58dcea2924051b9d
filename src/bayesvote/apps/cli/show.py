"""What the commands show: tables, JSON, progress, and weights drawn in a terminal."""

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

OUTPUT = "standard output"  # what errors call it


class _Output:
    """Standard output, whose errors name it: those of a full disk name nothing."""

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
    """Let errors of standard output name it."""
    named: Any = _Output(sys.stdout)
    return redirect_stdout(named)


def console() -> Console:
    """Standard output."""
    return Console(highlight=False)


def note(sentence: str) -> None:
    """Say something besides the result, on standard error."""
    Console(stderr=True, highlight=False).print(plain(sentence), markup=False, soft_wrap=True)


def plain(text: str) -> str:
    r"""Text that cannot steer a terminal: characters that are not printed are written as escapes.

    A new line is one of them, or a label could imitate the lines that are printed after it.

    >>> plain("caf\xe9 \x1b[31m\u202e\n")
    'caf\xe9 \\x1b[31m\\u202e\\n'
    """
    if text.isprintable():
        return text
    return "".join(c if c.isprintable() else ascii(c)[1:-1] for c in text)


def shown(labels: Sequence[Any], file: IO[Any]) -> list[Any]:
    """Labels as they are written to a file: as they are, but such that they cannot steer a terminal."""
    if not file.isatty():
        return list(labels)
    return [plain(label) if isinstance(label, str) else label for label in labels]


def cell(text: str) -> Text:
    """Text as it is, in a table: neither markup nor control characters mean anything."""
    return Text(plain(text))


def as_json(value: Any) -> None:
    """Print a result for machines; what is not a finite number becomes null."""
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
    """A table of names and values, without lines."""
    table = Table.grid(padding=(0, 2))
    table.add_column(style="dim", no_wrap=True)
    table.add_column(overflow="fold")
    for name, value in pairs.items():
        table.add_row(cell(name), cell(value))
    return table


@contextmanager
def progress(*columns: str | ProgressColumn) -> Iterator[Progress]:
    """Progress on standard error, if that is a terminal; it leaves no trace."""
    with Progress(*columns, console=Console(stderr=True), transient=True, disable=not sys.stderr.isatty()) as bar:
        yield bar


def interval_bar(lower: float, mean: float, upper: float, low: float, high: float, width: int, ascii_only: bool) -> str:
    """Draw an interval and its middle on a line from ``low`` to ``high``, with a mark at 0.

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
    """Say how many lines could not be read, and what was wrong with the first of them."""
    if count:
        note(f"Skipped {count:,} bad line{'s' if count > 1 else ''}. The first: {reports[0]}.")


def require_report() -> None:
    """Check before any work is done that a report can be written."""
    for module in ("jinja2", "matplotlib"):
        require_extra("report", module, "cli", "to write one")
