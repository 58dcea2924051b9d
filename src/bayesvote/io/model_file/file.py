"""The file: the safetensors format with our own strict reader, and a checksum over all of it.

The format is 8 bytes with the length of a JSON header, the header, and the bytes of the arrays. The package
``safetensors`` reads these files, too; it is not used here because it gives no header with the arrays of a file that
is checked in memory, and two readers of one header could disagree.
"""

import hashlib
import json
import math
import os
from collections.abc import Iterator
from contextlib import contextmanager
from typing import Any

import numpy as np
from numpy.typing import NDArray

from bayesvote.core.checks import InputError, InputTypeError
from bayesvote.core.version import __version__

Arrays = dict[str, NDArray[Any]]

FORMAT = "bayesvote"
VERSION = 2
LARGEST = 2**63 - 1  # integer; kernels take no larger ones
_NO_SUM = "0" * 64
DTYPES = {
    "BOOL": np.dtype("?"),
    **{f"{letter.upper()}{8 * size}": np.dtype(f"<{letter}{size}") for letter in "iu" for size in (1, 2, 4, 8)},
    "F32": np.dtype("<f4"),
    "F64": np.dtype("<f8"),
}
# Dates and durations, which a description holds as whole numbers of these units.
_UNITS = ("Y", "M", "W", "D", "h", "m", "s", "ms", "us", "ns", "ps", "fs", "as")
TIMES = {f"{kind}64[{unit}]" for kind in ("datetime", "timedelta") for unit in _UNITS}
_CODES = {dtype: code for code, dtype in DTYPES.items()}


class ModelFileError(InputError):
    """A file that is not a model, or not one that can be loaded like this."""


def pack(model: dict[str, Any], arrays: Arrays) -> bytes:
    """Return the file of a model's description and arrays."""
    about = {"format": FORMAT, "version": str(VERSION), "library": __version__, "sha256": _NO_SUM}
    try:
        described = json.dumps(model, allow_nan=False)
    except (TypeError, ValueError) as error:
        must = "must be finite numbers or strings"
        raise InputError("save", "parameters and labels", must, f"others: {error}") from error
    header: dict[str, Any] = {"__metadata__": {**about, "model": described}}
    parts, end = [], 0
    # The format wants wide numbers first, so that all arrays are aligned.
    for name, array in sorted(arrays.items(), key=lambda item: (-item[1].dtype.itemsize, item[0])):
        little = array.astype(array.dtype.newbyteorder("<"), copy=False)
        start, end = end, end + array.nbytes
        header[name] = {"dtype": code_of(array), "shape": list(array.shape), "data_offsets": [start, end]}
        parts.append(little.tobytes())
    text = json.dumps(header, separators=(",", ":")).encode()
    text += b" " * (-len(text) % 8)
    blank = len(text).to_bytes(8, "little") + text
    digest = hashlib.sha256(b"".join((blank, *parts))).hexdigest()
    return b"".join((blank.replace(_place(_NO_SUM), _place(digest), 1), *parts))


def unpack(data: bytes) -> tuple[int, Any, Arrays]:
    """Return the version, description and arrays of a file, if it is whole and one of ours."""
    text = data[8 : 8 + int.from_bytes(data[:8], "little")]
    header = _header(text)
    about = header.pop("__metadata__", None)
    if not isinstance(about, dict) or about.get("format") != FORMAT:
        raise ModelFileError("load", "the file", "must be a model that bayesvote saved", "a file of something else")
    version = str(about.get("version"))
    if version not in ("1", str(VERSION)):
        must = f"must have the format version {VERSION}"
        got = f"{version[:20]!r}, written by bayesvote {str(about.get('library'))[:20]}"
        raise ModelFileError("load", "the file", must, got, "Update bayesvote.")
    digest = str(about.get("sha256"))
    blank = data[: 8 + len(text)].replace(_place(digest), _place(_NO_SUM), 1)
    whole = hashlib.sha256(blank)
    whole.update(memoryview(data)[8 + len(text) :])
    if whole.hexdigest() != digest:
        must = "must be as it was saved, but its checksum differs: it was cut off or altered"
        raise ModelFileError("load", "the file", must, do="Copy it again, or save the model again.")
    with refusing():
        return int(version), _json(about["model"]), _arrays(header, data[8 + len(text) :])


@contextmanager
def refusing() -> Iterator[None]:
    """Turn whatever is wrong with the contents of a file into one kind of error."""
    try:
        yield
    except ModelFileError:
        raise
    except (ValueError, TypeError, LookupError, ArithmeticError, AttributeError, RecursionError, MemoryError) as error:
        got = f"one with {type(error).__name__}: {error}"[:500].rstrip(".")
        raise ModelFileError("load", "the file", "must describe a model of this library", got) from error


def _place(digest: str) -> bytes:
    return f'"sha256":"{digest}"'.encode()


def code_of(array: NDArray[Any]) -> str:
    """Return the format's name for the type of the numbers."""
    code = _CODES.get(array.dtype.newbyteorder("<"))
    if code is None:
        raise InputTypeError("save", "arrays", "must hold numbers or truth values", str(array.dtype))
    return code


def _header(text: bytes) -> dict[str, Any]:
    try:
        header = _json(text.decode())
    except (ValueError, RecursionError) as error:
        do = "It was cut off, or is of another kind."
        raise ModelFileError("load", "the file", "must be a safetensors file", "one without its header", do) from error
    if not isinstance(header, dict):
        raise ModelFileError("load", "the file", "must be a safetensors file, but its header is not a JSON object")
    return header


def _json(text: str) -> Any:
    def once(pairs: list[tuple[str, Any]]) -> dict[str, Any]:
        found = dict(pairs)
        if len(found) < len(pairs):
            raise ValueError("a key that occurs twice")
        return found

    def real(said: str) -> float:
        value = float(said)
        if not math.isfinite(value):
            raise ValueError(f"the number {said[:20]}")
        return value

    def integer(said: str) -> int:
        value = int(said)
        if abs(value) > LARGEST:
            raise ValueError(f"the number {said[:20]}")
        return value

    return json.loads(text, object_pairs_hook=once, parse_float=real, parse_int=integer, parse_constant=real)


def _arrays(table: dict[str, Any], data: bytes) -> Arrays:
    """Return the arrays of a header: side by side, without gap or rest."""
    arrays, end = {}, 0
    for name, entry in sorted(table.items(), key=lambda item: tuple(item[1]["data_offsets"])):
        dtype, shape = DTYPES[entry["dtype"]], entry["shape"]
        start, stop = entry["data_offsets"]
        if not isinstance(shape, list) or any(type(n) is not int or n < 0 for n in (*shape, start, stop)):
            raise ValueError(f"the shape {shape} for {name}")
        if start != end or stop - start != dtype.itemsize * math.prod(shape) or stop > len(data):
            raise ValueError(f"the bytes {start} to {stop} for {name}")
        # Copied, so that it is aligned and writeable for the kernels.
        array = np.empty(shape, dtype=dtype.newbyteorder("="))
        array[...] = np.ndarray(shape, dtype, buffer=data[start:stop])
        if dtype.kind == "b" and np.any(array.view(np.uint8) > 1):
            raise ValueError(f"truth values that are neither 0 nor 1 in {name}")
        arrays[name] = array
        end = stop
    if end != len(data):
        raise ValueError(f"{len(data) - end} bytes that belong to no array")
    return arrays


def read(path: str | os.PathLike[str], max_bytes: int) -> bytes:
    """Return the bytes of a file that is not too large."""
    with open(path, "rb") as file:
        data = file.read(min(max_bytes, os.fstat(file.fileno()).st_size) + 1)
    if len(data) > max_bytes:
        must = f"must have at most max_bytes={max_bytes} bytes"
        raise ModelFileError("load", "the file", must, "more", "Raise max_bytes if you trust it.")
    return data
