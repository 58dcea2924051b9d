"""Reader of LIBSVM text: a label, then index:value pairs."""

import re
from collections.abc import Iterator

import numpy as np
from numpy.typing import NDArray

from bayesvote.core.checks import Argument, Array, InputError
from bayesvote.io.chunks import MOST_FEATURES, Chunk, ChunkAssembler
from bayesvote.io.faults import BadLines, fault, too_long
from bayesvote.io.labels import LabelReader
from bayesvote.io.lines import LONGEST_LINE, LineReader, TooLong
from bayesvote.io.values import finite

_CONTROLS = bytes(code for code in range(32) if code not in b"\t\n\v\f\r") + b"\x7f"


def read_libsvm(
    lines: LineReader,
    chunk_size: int,
    n_features: int | None,
    bad: BadLines,
    labels: LabelReader,
    *,
    labelled: bool = True,
    stated: bool = True,
) -> Iterator[Chunk]:
    """Read lines of a label and index:value pairs. Indices start at 1 and may be in any order.

    Parameters
    ----------
    lines, chunk_size, bad
        The text, the number of lines per chunk, and the policy for bad lines.
    n_features
        The width of the rows; None for that of each chunk.
    labels
        Reader of the labels.
    labelled
        True to read the labels, which every line must have; False to ignore them.
    stated
        True if the number of features was stated, not counted in the file.
    """
    from scipy.sparse import csr_array

    from bayesvote.io import _libsvm_kernels as kernels

    # If the width was counted in the file, bad lines did not count: their indices can be larger.
    widest = n_features if n_features is not None and stated else max(n_features or 0, MOST_FEATURES)

    def fault_of(line: bytes, code: int) -> InputError:
        if code == kernels.NO_LABEL:
            return fault("it", "must start with a label", "an index:value pair")
        if code == kernels.NOT_A_PAIR:
            return fault("the text after the label", "must be index:value pairs", "something else")
        if code == kernels.ZERO:
            return fault("feature indices", "must start at 1", "0", "Add 1 to every index of the file.")
        largest = max((int(index) for index in re.findall(rb"\s(\d{1,10}):", line)), default=0)
        if stated and n_features is not None:
            return fault("feature indices", f"must be at most {widest}", str(largest))
        do = ("If there are more features, state their number with ", Argument("n_features"), ".")
        return fault("feature indices", f"must be at most {widest}", str(largest), do)

    assembler = ChunkAssembler(bad, labels)
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

        for i in np.flatnonzero((codes > kernels.GOOD) & (codes != kernels.UNSORTED)).tolist():
            faults[read + 1 + i] = fault_of(batch[i], codes[i])
        for i, k, first, last in odd[:n_odd].tolist():
            try:
                values[k] = finite(f"feature {columns[k] + 1}", raw[first:last].decode("utf-8", "replace"))
            except InputError as error:
                faults.setdefault(read + 1 + i, error)
        for i in np.flatnonzero(codes == kernels.UNSORTED).tolist():
            codes[i], twice = kernels.GOOD, _sort_pairs(columns, values, slice(starts[i], starts[i + 1]))
            if twice is not None:
                faults.setdefault(read + 1 + i, fault("feature indices", "must differ", f"{twice} twice"))
        if n_features is not None and n_features < widest:
            places = np.flatnonzero(columns[: starts[n]] >= n_features)
            for i in np.unique(np.searchsorted(starts, places, side="right") - 1).tolist():
                must = f"must be at most {n_features}, as when the file was first read"
                faults.setdefault(read + 1 + i, fault("feature indices", must, "a larger one"))
        codes[np.array([*faults], dtype=np.int64) - read - 1] = kernels.BLANK
        good = np.flatnonzero(codes == kernels.GOOD)
        texts = [raw[first:last].decode("utf-8", "surrogateescape") for first, last in spans[good].tolist()]
        X = csr_array((values[: starts[n]], columns[: starts[n]], starts), shape=(n, widest))
        X = X if len(good) == n else X[good]
        width = n_features if n_features is not None else int(X.indices.max(initial=-1)) + 1
        X = csr_array((X.data, X.indices, X.indptr), shape=(len(good), width))
        yield from assembler.chunk(X, texts, read + 1 + good, faults)
        read += n


def _sort_pairs(columns: NDArray[np.int32], values: Array, line: slice) -> int | None:
    """Sort the pairs of a line by their indices; return an index that occurs twice, or None."""
    order = np.argsort(columns[line], kind="stable")
    columns[line], values[line] = columns[line][order], values[line][order]
    twice = columns[line][:-1][np.diff(columns[line]) == 0]
    return int(twice[0]) + 1 if len(twice) else None


def _unreadable(batch: list[bytes], first: int) -> dict[int, InputError]:
    """Empty the lines that are too long, not text, or contain carriage returns; return their errors by line number."""
    faults: dict[int, InputError] = {}
    for i, line in enumerate(batch):
        if type(line) is TooLong:
            faults[first + i] = too_long(LONGEST_LINE)
        elif len(line.translate(None, _CONTROLS)) < len(line):
            faults[first + i] = fault("it", "must be text without control characters", "some")
        elif b"\r" in line and b"\r" in line.rstrip(b"\r"):  # the kernel would skip the rest after a comment
            must = "must end with a newline, not with a carriage return only"
            faults[first + i] = fault("it", must, "carriage returns inside", "Convert the line endings.")
        else:
            continue
        batch[i] = b""
    return faults


def _relabelled(line: bytes) -> bytes:
    """Put a label at the start of a line, which the kernel expects, replacing any."""
    first, *rest = line.split(None, 1) or [b"#"]
    if first.startswith(b"#"):
        return line
    return b"0 " + (line if b":" in first else b"".join(rest))
