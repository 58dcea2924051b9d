"""Bytes of a model file: the safetensors format with a strict reader, and a checksum of the whole file.

The format is 8 bytes with the length of a JSON header, the header, and the bytes of the arrays. The package
``safetensors`` can read these files. It is not used here, because for data in memory it does not return the header. Two
readers of one header could disagree.
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
LARGEST = 2**63 - 1  # the largest integer in a file; kernels use 64-bit integers
_NO_DIGEST = "0" * 64  # stands for the checksum while it is computed
DTYPES = {
    "BOOL": np.dtype("?"),
    **{f"{letter.upper()}{8 * size}": np.dtype(f"<{letter}{size}") for letter in "iu" for size in (1, 2, 4, 8)},
    "F32": np.dtype("<f4"),
    "F64": np.dtype("<f8"),
}
# Dates and durations are written as integers in these units.
_UNITS = ("Y", "M", "W", "D", "h", "m", "s", "ms", "us", "ns", "ps", "fs", "as")
TIMES = {f"{kind}64[{unit}]" for kind in ("datetime", "timedelta") for unit in _UNITS}
_CODES = {dtype: code for code, dtype in DTYPES.items()}


class ModelFileError(InputError):
    """Invalid model file, or objects that do not match it."""


def pack(model: dict[str, Any], arrays: Arrays) -> bytes:
    """Return the bytes of a file with a model's description and arrays."""
    about = {"format": FORMAT, "version": str(VERSION), "library": __version__, "sha256": _NO_DIGEST}
    try:
        described = json.dumps(model, allow_nan=False)
    except (TypeError, ValueError) as error:
        must = "must be finite numbers or strings"
        raise InputError("save", "parameters and labels", must, f"others: {error}") from error
    header: dict[str, Any] = {"__metadata__": {**about, "model": described}}
    parts, end = [], 0
    # The largest item sizes come first, so that all arrays are aligned.
    for name, array in sorted(arrays.items(), key=lambda item: (-item[1].dtype.itemsize, item[0])):
        little = array.astype(array.dtype.newbyteorder("<"), copy=False)
        start, end = end, end + array.nbytes
        header[name] = {"dtype": code_of(array), "shape": list(array.shape), "data_offsets": [start, end]}
        parts.append(little.tobytes())
    text = json.dumps(header, separators=(",", ":")).encode()
    text += b" " * (-len(text) % 8)
    blank = len(text).to_bytes(8, "little") + text
    digest = hashlib.sha256(b"".join((blank, *parts))).hexdigest()
    return b"".join((blank.replace(_place(_NO_DIGEST), _place(digest), 1), *parts))


def unpack(data: bytes) -> tuple[int, Any, Arrays]:
    """Return the version, description and arrays of a model file, after checking its checksum."""
    text = data[8 : 8 + int.from_bytes(data[:8], "little")]
    header = _header(text)
    about = header.pop("__metadata__", None)
    if not isinstance(about, dict) or about.get("format") != FORMAT:
        raise ModelFileError("load", "the file", "must be a model saved by bayesvote", "another safetensors file")
    version = str(about.get("version"))
    if version not in ("1", str(VERSION)):
        must = f"must have the format version {VERSION}"
        got = f"{version[:20]!r}, written by bayesvote {str(about.get('library'))[:20]}"
        raise ModelFileError("load", "the file", must, got, "Update bayesvote.")
    digest = str(about.get("sha256"))
    blank = data[: 8 + len(text)].replace(_place(digest), _place(_NO_DIGEST), 1)
    whole = hashlib.sha256(blank)
    whole.update(memoryview(data)[8 + len(text) :])
    if whole.hexdigest() != digest:
        must = "must be as it was saved, but its checksum differs: it was truncated or changed"
        raise ModelFileError("load", "the file", must, do="Copy it again, or save the model again.")
    with as_model_file_errors():
        return int(version), _json(about["model"]), _arrays(header, data[8 + len(text) :])


@contextmanager
def as_model_file_errors() -> Iterator[None]:
    """Convert any error that invalid contents of a file cause to a ModelFileError."""
    try:
        yield
    except ModelFileError:
        raise
    except (ValueError, TypeError, LookupError, ArithmeticError, AttributeError, RecursionError, MemoryError) as error:
        got = f"{type(error).__name__}: {error}"[:500].rstrip(".")
        raise ModelFileError("load", "the file", "must describe a model of this library", got) from error


def _place(digest: str) -> bytes:
    return f'"sha256":"{digest}"'.encode()


def code_of(array: NDArray[Any]) -> str:
    """Return the safetensors name of the dtype."""
    code = _CODES.get(array.dtype.newbyteorder("<"))
    if code is None:
        raise InputTypeError("save", "arrays", "must contain numbers or booleans", str(array.dtype))
    return code


def _header(text: bytes) -> dict[str, Any]:
    try:
        header = _json(text.decode())
    except (ValueError, RecursionError) as error:
        do = "It is truncated, or has another format."
        raise ModelFileError("load", "the file", "must be a safetensors file", "no valid header", do) from error
    if not isinstance(header, dict):
        raise ModelFileError("load", "the file", "must be a safetensors file, but its header is not a JSON object")
    return header


def _json(text: str) -> Any:
    def once(pairs: list[tuple[str, Any]]) -> dict[str, Any]:
        found = dict(pairs)
        if len(found) < len(pairs):
            raise ValueError("a key occurs twice")
        return found

    def real(text: str) -> float:
        value = float(text)
        if not math.isfinite(value):
            raise ValueError(f"numbers must be finite, not {text[:20]}")
        return value

    def integer(text: str) -> int:
        value = int(text)
        if abs(value) > LARGEST:
            raise ValueError(f"integers must be from {-LARGEST} to {LARGEST}, not {text[:20]}")
        return value

    return json.loads(text, object_pairs_hook=once, parse_float=real, parse_int=integer, parse_constant=real)


def _arrays(table: dict[str, Any], data: bytes) -> Arrays:
    """Return the arrays that a header describes; they must fill the data without gaps."""
    arrays, end = {}, 0
    for name, entry in sorted(table.items(), key=lambda item: tuple(item[1]["data_offsets"])):
        dtype, shape = DTYPES[entry["dtype"]], entry["shape"]
        start, stop = entry["data_offsets"]
        if not isinstance(shape, list) or any(type(n) is not int or n < 0 for n in (*shape, start, stop)):
            raise ValueError(f"the shape {shape} of {name} is invalid")
        if start != end or stop - start != dtype.itemsize * math.prod(shape) or stop > len(data):
            raise ValueError(f"the bytes {start} to {stop} of {name} do not match its shape or position")
        # Copy the data, because kernels need aligned and writeable arrays.
        array = np.empty(shape, dtype=dtype.newbyteorder("="))
        array[...] = np.ndarray(shape, dtype, buffer=data[start:stop])
        if dtype.kind == "b" and np.any(array.view(np.uint8) > 1):
            raise ValueError(f"booleans must be 0 or 1 in {name}")
        arrays[name] = array
        end = stop
    if end != len(data):
        raise ValueError(f"the last {len(data) - end} bytes belong to no array")
    return arrays


def read(path: str | os.PathLike[str], max_bytes: int) -> bytes:
    """Return the bytes of a file of at most ``max_bytes`` bytes."""
    with open(path, "rb") as file:
        data = file.read(min(max_bytes, os.fstat(file.fileno()).st_size) + 1)
    if len(data) > max_bytes:
        must = f"must have at most max_bytes={max_bytes} bytes"
        raise ModelFileError("load", "the file", must, "more", "Increase max_bytes if you trust the file.")
    return data
