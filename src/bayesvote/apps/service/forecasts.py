"""Forecasts of rows whose labels came late, as the journal keeps them and as a model takes them."""

from collections.abc import Sequence
from typing import Any, NamedTuple, Self

import numpy as np
from numpy.typing import NDArray

from bayesvote.core.checks import Array
from bayesvote.core.rollback import Forecast
from bayesvote.model import Model


def to_bytes(lines: Sequence[bytes | None], size: int) -> bytes | None:
    """Return a flag for each row, set if it has a forecast, packed eight to a byte, then the forecasts in order.

    None stands for a row without one. A forecast that does not have ``size`` numbers is left out: the row was predicted
    by another version of the program.
    """
    flags = [line is not None and len(line) == 8 * size for line in lines]
    if not any(flags):
        return None
    return np.packbits(flags).tobytes() + b"".join(
        line for line, flag in zip(lines, flags, strict=True) if line and flag
    )


class Forecasts(NamedTuple):
    """Packed forecasts of some rows."""

    flags: NDArray[np.bool_]  # (n,), set for rows that have one
    packed: Array  # (k, numbers)

    @classmethod
    def from_bytes(cls, parts: Sequence[tuple[int, bytes | None]], size: int) -> Self | None:
        """Return forecasts of ``size`` numbers each from what ``to_bytes`` made of n rows each.

        Those of an entry whose forecasts have another size are left out. None if no row has one.
        """
        if all(data is None for _, data in parts):
            return None
        flags, found = [np.zeros(0, dtype=bool)], [np.empty((0, size))]
        for n, data in parts:
            flags.append(np.zeros(n, dtype=bool))
            if data is None:
                continue
            n_bytes = (n + 7) // 8
            own = np.unpackbits(np.frombuffer(data[:n_bytes], dtype=np.uint8), count=n).astype(bool)
            if len(data) - n_bytes == 8 * size * np.count_nonzero(own):
                flags[-1] = own
                found.append(np.frombuffer(data[n_bytes:]).reshape(-1, size))
        return cls(np.concatenate(flags), np.concatenate(found))

    def of(self, model: Model[Any]) -> tuple[NDArray[np.bool_], Forecast]:
        """Return which rows have a forecast that fits a model, and these forecasts."""
        try:
            return self.flags, model.unpacked(self.packed)
        except ValueError:  # a line is wrong; look at them one by one, so that the others count whatever the chunk
            fits = np.array([_fits(model, line) for line in self.packed])
            flags = self.flags.copy()
            flags[flags] = fits
            return flags, model.unpacked(self.packed[fits])


def _fits(model: Model[Any], line: Array) -> bool:
    try:
        model.unpacked(line[None])
    except ValueError:
        return False
    return True
