"""A file that is being read, chunk by chunk."""

from collections.abc import Iterator
from typing import Any

from numpy.typing import NDArray

from bayesvote.core.checks import InputError
from bayesvote.io.lines import Lines
from bayesvote.io.readers import BadLines, Chunk, Reading
from bayesvote.io.sources import DAMAGE, MOST_MEMORY, Source, TooMuchMemoryError


class Stream(Iterator[Chunk]):
    """Chunks of a file's rows, in order; made by `stream` and `stream_unlabelled`.

    Attributes
    ----------
    n_features
        The number of features of every row.
    feature_names, label_name
        Their names and that of the label's column, if the file has them.
    skipped
        How many bad lines were skipped so far.
    ignored
        Names of columns that are neither features nor the label that ``target`` names; of `stream_unlabelled`.
    unit
        What the numbers of rows count: "line", or "row" of a Parquet file.
    reports
        The number and the fault of the first of them.
    """

    def __init__(self, file: Source, lines: Lines, reading: Reading, bad: BadLines) -> None:
        self._file = file
        self._lines = lines
        self._reading = reading
        self._bad = bad
        self.n_features = reading.n_features
        self.feature_names = reading.feature_names
        self.label_name = reading.label_name
        self.ignored: list[str] = []

    @property
    def skipped(self) -> int:
        """Number of bad lines that were skipped so far."""
        return self._bad.count

    @property
    def unit(self) -> str:
        """Unit of the rows' numbers: "line", or "row" of a Parquet file."""
        return self._bad.unit

    @property
    def reports(self) -> list[str]:
        """The number and the fault of the first skipped lines."""
        return list(self._bad.reports)

    @property
    def n_rows(self) -> int | None:
        """Number of rows that the file states; None if it does not."""
        return self._reading.n_rows

    @property
    def met_codes(self) -> bool:
        """True if a label such as 01 was refused because the labels before it are numbers."""
        return self._reading.labels is not None and self._reading.labels.met_codes

    def categories(self) -> NDArray[Any] | None:
        """The labels that the file announces, in order: those of a categorical Parquet column; None if it does not."""
        return self._reading.categories()

    def __next__(self) -> Chunk:
        try:
            return next(self._reading.chunks)
        except DAMAGE as error:
            self.close()
            raise damaged(self._bad, error) from error
        except BaseException:
            self.close()
            raise

    @property
    def live(self) -> bool:
        """True if the rows come from a pipe or a terminal, as they arrive."""
        return self._file.live is not None

    @property
    def flush_after(self) -> float | None:
        """Seconds after which a chunk of a live stream is handed over with the rows that have come."""
        return self._lines.flush_after

    @flush_after.setter
    def flush_after(self, seconds: float | None) -> None:
        self._lines.flush_after = seconds

    def close(self) -> None:
        """Close the file; happens by itself at its end."""
        self._file.close()


def damaged(bad: BadLines, error: BaseException) -> InputError:
    """Return what is wrong with a file that cannot be read to its end."""
    if isinstance(error, TooMuchMemoryError):
        return InputError(bad.who, bad.source, MOST_MEMORY, "more", "Compress it again, for example with xz -9.")
    return InputError(bad.who, bad.source, "must be a whole file", f"a damaged or cut one: {error}", "Fetch it again.")
