"""A file that is being read, chunk by chunk."""

from collections.abc import Iterator
from typing import Any

from numpy.typing import NDArray

from bayesvote.core.checks import InputError
from bayesvote.io.chunks import Chunk, OpenedFile
from bayesvote.io.faults import BadLines
from bayesvote.io.lines import LineReader
from bayesvote.io.sources import DAMAGE, MOST_MEMORY, Source, TooMuchMemoryError


class Stream(Iterator[Chunk]):
    """Iterator over the chunks of a file, in order; returned by `stream` and `stream_unlabelled`.

    Attributes
    ----------
    n_features
        The number of features of every row.
    feature_names, label_name
        The names of the features and of the label's column, or None if the file has none.
    skipped
        Number of bad lines skipped so far.
    ignored
        For `stream_unlabelled`: names of columns that are neither features nor the label named by ``target``.
    unit
        What row numbers count: "line", or "row" for a Parquet file.
    reports
        The line number and the error of the first bad lines.
    """

    def __init__(self, file: Source, lines: LineReader, opened: OpenedFile, bad: BadLines) -> None:
        self._file = file
        self._lines = lines
        self._opened = opened
        self._bad = bad
        self.n_features = opened.n_features
        self.feature_names = opened.feature_names
        self.label_name = opened.label_name
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
        """The line number and the error of the first skipped lines."""
        return list(self._bad.reports)

    @property
    def n_rows(self) -> int | None:
        """Number of rows that the file declares, or None."""
        return self._opened.n_rows

    @property
    def met_codes(self) -> bool:
        """True if a label such as 01 was rejected because the labels before it are numbers."""
        return self._opened.labels is not None and self._opened.labels.met_codes

    def categories(self) -> NDArray[Any] | None:
        """Return the labels that the file declares, sorted (a categorical Parquet column), or None."""
        return self._opened.categories()

    def __next__(self) -> Chunk:
        try:
            return next(self._opened.chunks)
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
        """Seconds after which a live stream returns a chunk with the rows that have arrived."""
        return self._lines.flush_after

    @flush_after.setter
    def flush_after(self, seconds: float | None) -> None:
        self._lines.flush_after = seconds

    def close(self) -> None:
        """Close the file; done automatically at its end."""
        self._file.close()


def damaged(bad: BadLines, error: BaseException) -> InputError:
    """Return the error for a file that cannot be read to its end."""
    if isinstance(error, TooMuchMemoryError):
        return InputError(bad.who, bad.source, MOST_MEMORY, "more", "Compress it again, for example with xz -9.")
    return InputError(
        bad.who, bad.source, "must be a complete file", f"a damaged or truncated one: {error}", "Download it again."
    )
