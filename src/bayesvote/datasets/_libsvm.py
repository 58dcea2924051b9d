"""Reader of LIBSVM text: a label, then index:value pairs."""

import re
from collections.abc import Iterator

import numpy as np

from bayesvote._checks import InputError
from bayesvote.datasets._lines import LONGEST_LINE, Lines, TooLong
from bayesvote.datasets._readers import MOST_FEATURES, Assembler, BadLines, Chunk, fault, finite, too_long

_CONTROLS = bytes(code for code in range(32) if code not in b"\t\n\v\f\r") + b"\x7f"


def read_libsvm(
    lines: Lines, chunk_size: int, n_features: int | None, bad: BadLines, *, labelled: bool = True, stated: bool = True
) -> Iterator[Chunk]:
    """Read lines of a label and index:value pairs, indices rising from 1.

    Parameters
    ----------
    lines, chunk_size, bad
        The text, how many lines to read at a time, and what to do with bad ones.
    n_features
        The width of the rows; None for that of each chunk.
    labelled
        Whether there are labels; if not, they may be there, and are left out.
    stated
        Whether the number of features was stated, not found in the file.
    """
    from scipy.sparse import csr_array

    from bayesvote.datasets import _libsvm_kernels as kernels

    widest = MOST_FEATURES if n_features is None else n_features

    def fault_of(line: bytes, code: int) -> InputError:
        if code == kernels.NO_LABEL:
            return fault("it", "must start with a label", "an index:value pair")
        if code == kernels.NOT_A_PAIR:
            return fault("after the label", "must come index:value pairs", "something else")
        if code == kernels.NOT_RISING:
            return fault("feature indices", "must rise, starting at 1 or above")
        largest = max((int(index) for index in re.findall(rb"\s(\d{1,10}):", line)), default=0)
        if stated and n_features is not None:
            return fault("feature indices", f"must be at most {widest}", str(largest))
        do = "State the number of features if there are more."
        return fault("feature indices", f"must be at most {max(widest, MOST_FEATURES)}", str(largest), do)

    assembler = Assembler(bad)
    read = 0
    while batch := lines.batch(chunk_size):
        faults = _unreadable(batch, read + 1)
        if not labelled:
            batch = [_relabelled(line) for line in batch]
        raw = b"\n".join(batch) + b"\n"
        text = np.frombuffer(raw, dtype=np.uint8)
        n, n_pairs = len(batch), raw.count(b":")
        codes, starts, spans = np.empty(n, np.int8), np.empty(n + 1, np.int64), np.empty((n, 2), np.int64)
        columns, values, odd = np.empty(n_pairs, np.int32), np.empty(n_pairs), np.empty((n_pairs, 4), np.int64)
        n_odd = kernels.parse(text, widest, codes, spans, starts, columns, values, odd)

        for i in np.flatnonzero(codes > kernels.GOOD).tolist():
            faults[read + 1 + i] = fault_of(batch[i], codes[i])
        for i, k, first, last in odd[:n_odd].tolist():
            try:
                values[k] = finite(f"feature {columns[k] + 1}", raw[first:last].decode("utf-8", "replace"))
            except InputError as error:
                faults.setdefault(read + 1 + i, error)
        good = np.flatnonzero(codes == kernels.GOOD)
        labels = [raw[first:last].decode("utf-8", "surrogateescape") for first, last in spans[good].tolist()]
        n_pairs = int(starts[n])
        width = n_features if n_features is not None else int(columns[:n_pairs].max(initial=-1)) + 1
        X = csr_array((values[:n_pairs], columns[:n_pairs], starts), shape=(n, width))
        yield from assembler.chunk(X if len(good) == n else X[good], labels, read + 1 + good, faults)
        read += n


def _unreadable(batch: list[bytes], first: int) -> dict[int, InputError]:
    """Empty the lines that are too long, no text, or several in one; return their faults, by the lines' numbers."""
    faults: dict[int, InputError] = {}
    for i, line in enumerate(batch):
        if type(line) is TooLong:
            faults[first + i] = too_long(LONGEST_LINE)
        elif len(line.translate(None, _CONTROLS)) < len(line):
            faults[first + i] = fault("it", "must be text, without control characters", "one with some")
        elif b"\r" in line and b"\r" in line.rstrip(b"\r"):  # after a comment, the kernel would pass over the rest
            must = "must end with a newline, not with a carriage return only"
            faults[first + i] = fault("it", must, "carriage returns inside", "Convert the ends of the lines.")
        else:
            continue
        batch[i] = b""
    return faults


def _relabelled(line: bytes) -> bytes:
    """Put a label at the start of a line, replacing any: the reader expects one."""
    first, *rest = line.split(None, 1) or [b"#"]
    if first.startswith(b"#"):
        return line
    return b"0 " + (line if b":" in first else b"".join(rest))
