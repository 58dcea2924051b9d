"""Conversion of the forecasts of rows with late labels between the journal and a model."""

from collections.abc import Sequence
from typing import Any, NamedTuple, Self

import numpy as np
from numpy.typing import NDArray

from bayesvote.core.checks import Array
from bayesvote.core.rollback import Forecast
from bayesvote.model import Model


def to_bytes(lines: Sequence[bytes | None], size: int) -> bytes | None:
    """Return one bit per row, set if the row has a forecast, followed by the forecasts.

    None stands for a row without a forecast. A forecast that does not have ``size`` numbers is left out: another
    version of the program made it.
    """
    flags = [line is not None and len(line) == 8 * size for line in lines]
    if not any(flags):
        return None
    return np.packbits(flags).tobytes() + b"".join(
        line for line, flag in zip(lines, flags, strict=True) if line and flag
    )


class Forecasts(NamedTuple):
    """Packed forecasts of some of the rows of a chunk."""

    flags: NDArray[np.bool_]  # (n,), set for rows that have one
    packed: Array  # (k, numbers)

    @classmethod
    def from_bytes(cls, parts: Sequence[tuple[int, bytes | None]], size: int) -> Self | None:
        """Read what ``to_bytes`` returned for the n rows of each part; None if no row has a forecast.

        Forecasts that do not have ``size`` numbers are left out.
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
        """Return a flag for each row that has a forecast that fits the model, and these forecasts."""
        try:
            return self.flags, model.unpacked(self.packed)
        except ValueError:  # one of them is wrong; check each, so that the others are used for any chunk size
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
