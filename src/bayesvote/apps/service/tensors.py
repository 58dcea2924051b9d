"""Tensors of the Open Inference Protocol, as flat or nested JSON or as bytes."""

import math
from collections.abc import Sequence
from typing import Any

import numpy as np
from msgspec import UnsetType
from numpy.typing import NDArray

from bayesvote.apps.service.types import RequestError, Tensor
from bayesvote.core.checks import Array

_NUMBERS = {
    **{f"INT{8 * size}": f"<i{size}" for size in (1, 2, 4, 8)},
    **{f"UINT{8 * size}": f"<u{size}" for size in (1, 2, 4, 8)},
    **{f"FP{8 * size}": f"<f{size}" for size in (2, 4, 8)},
}


def numbers(tensor: Tensor, binary: bytes | None) -> Array:
    """Return the numbers of a tensor as a flat array; null becomes NaN."""
    dtype = _NUMBERS.get(tensor.datatype)
    if dtype is None:
        known = ", ".join(_NUMBERS)
        raise _wrong(tensor, f"must have one of the datatypes {known}", repr(tensor.datatype))
    if binary is not None:
        return np.asarray(_from_bytes(tensor, binary, dtype), dtype=np.float64)
    flat = _flat(tensor, {float, int, type(None)}, "numbers or null")
    try:
        found = np.array(flat, dtype=np.float64)  # null becomes NaN
    except OverflowError:
        raise _wrong(tensor, "must hold smaller numbers") from None
    if dtype[1] in "iu":
        _check_integers(tensor, flat, dtype)
    return found


def exact_numbers(tensor: Tensor, binary: bytes | None) -> list[int | float | None]:
    """Return the numbers of a tensor as a flat list, without rounding integers; null and NaN become None."""
    found = numbers(tensor, binary)
    if tensor.datatype.startswith("FP"):
        return [None if value != value else value for value in found.tolist()]
    if binary is not None:
        whole: list[int | float | None] = _from_bytes(tensor, binary, _NUMBERS[tensor.datatype]).tolist()
        return whole
    return _flat(tensor, {float, int, type(None)}, "numbers or null")


def _check_integers(tensor: Tensor, values: list[int | float | None], dtype: str) -> None:
    least, most = int(np.iinfo(dtype).min), int(np.iinfo(dtype).max)
    for value in values:
        if value is not None and not (least <= value <= most and value == int(value)):
            raise _wrong(tensor, f"must hold numbers of {tensor.datatype}", f"{value:g}")


def truths(tensor: Tensor, binary: bytes | None) -> list[bool | None]:
    """Return the booleans of a tensor as a flat list."""
    if tensor.datatype != "BOOL":
        raise _wrong(tensor, "must have the datatype BOOL", repr(tensor.datatype))
    if binary is not None:
        values = _from_bytes(tensor, binary, "<u1")
        if np.any(values > 1):
            raise _wrong(tensor, "must hold bytes that are 0 or 1", str(values.max()))
        return list(map(bool, values.tolist()))
    return _flat(tensor, {bool, type(None)}, "booleans or null")


def texts(tensor: Tensor, binary: bytes | None) -> list[str]:
    """Return the strings of a tensor as a flat list. Null becomes None, which the caller must check."""
    if tensor.datatype != "BYTES":
        raise _wrong(tensor, "must have the datatype BYTES", repr(tensor.datatype))
    if binary is None:
        return _flat(tensor, {str, type(None)}, "strings or null")
    found = _split_texts(tensor, binary)
    _check_count(tensor, len(found), "strings")
    return found


def encoded_texts(values: Sequence[str]) -> bytes:
    """Encode strings as the binary tensors of the protocol: each after its length."""
    return b"".join(len(data := value.encode()).to_bytes(4, "little") + data for value in values)


def _from_bytes(tensor: Tensor, binary: bytes, dtype: str) -> NDArray[Any]:
    size = np.dtype(dtype).itemsize
    if len(binary) % size:
        raise _wrong(tensor, f"must have {size} bytes per value", str(len(binary)))
    _check_count(tensor, len(binary) // size, "values")
    return np.frombuffer(binary, dtype=dtype)


def _flat(tensor: Tensor, types: set[type], must: str) -> list[Any]:
    """Return the values of flat or nested lists."""
    data: Any = tensor.data
    if isinstance(data, UnsetType):
        raise _wrong(tensor, "must have data")
    kinds = {*map(type, data)}
    if kinds == {list}:
        data = [value for row in data for value in row]
        kinds = {*map(type, data)}
    if not kinds <= types:
        raise _wrong(tensor, f"must hold {must}, flat or row by row")
    _check_count(tensor, len(data), "values")
    return list(data)


def _wrong(tensor: Tensor, must: str, got: str = "") -> RequestError:
    return RequestError(400, f"inputs: {tensor.name!r}", must, got)


def _check_count(tensor: Tensor, count: int, what: str) -> None:
    if count != math.prod(tensor.shape):
        raise _wrong(tensor, f"must hold as many values as its shape {tensor.shape} says", f"{count} {what}")


def _split_texts(tensor: Tensor, binary: bytes) -> list[str]:
    found, at = [], 0
    while at < len(binary):
        end = at + 4 + int.from_bytes(binary[at : at + 4], "little")
        if at + 4 > len(binary) or end > len(binary):
            raise _wrong(tensor, "must hold strings, each after four bytes with its length")
        try:
            found.append(binary[at + 4 : end].decode())
        except UnicodeDecodeError:
            raise _wrong(tensor, "must hold strings in UTF-8") from None
        at = end
    return found
