"""Options for reading files: format, label column, kinds of columns, bad lines."""

from collections.abc import Mapping, Sequence
from dataclasses import dataclass

from bayesvote.core.checks import InputError, integer, one_of
from bayesvote.io.columns import ColumnRequest
from bayesvote.tables.kinds import STATED

FORMATS = ("auto", "csv", "libsvm", "parquet")
BAD_LINES = ("error", "skip")


@dataclass(frozen=True)
class ReadOptions:
    """Options for reading a file of rows; :func:`bayesvote.datasets.stream` documents each of them.

    The command line, ``stream`` and distributed learning build one of these and pass it on unchanged.
    """

    # Distributed learning identifies its finished shards by these fields, in this order.
    format: str = "auto"
    target: str | int | None = None
    bad_lines: str = "error"
    chunk_size: int = 4096
    columns: Mapping[str, str] | None = None
    header: bool | None = None
    decimal: str | None = None
    features: Sequence[str] | None = None
    labels: str = "auto"

    def check(self, who: str) -> None:
        """Raise an error for a value that is not valid; ``who`` names the function that was called."""
        one_of(who, "format", self.format, FORMATS)
        one_of(who, "bad_lines", self.bad_lines, BAD_LINES)
        one_of(who, "labels", self.labels, ("auto", "text"))
        integer(who, "chunk_size", self.chunk_size)
        for name, kind in (self.columns or {}).items():
            one_of(who, f"columns[{name!r}]", kind, STATED)
        if self.decimal not in (None, ".", ","):
            raise InputError(who, "decimal", "must be '.', ',' or None", repr(self.decimal))

    @property
    def request(self) -> ColumnRequest:
        """The kinds of columns and the features that these options ask for."""
        return ColumnRequest(self.columns or {}, self.features)
