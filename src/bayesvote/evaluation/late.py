"""Late labels: a model learns its weights from the forecasts that it made when it predicted the rows."""

from collections import deque
from collections.abc import Iterator
from typing import TYPE_CHECKING, Any

import numpy as np
from numpy.typing import NDArray

from bayesvote.core.checks import Array
from bayesvote.core.rollback import Forecast
from bayesvote.model import Model

if TYPE_CHECKING:
    from bayesvote.evaluation.models import Batch, Flags


class LateForecasts:
    """Forecasts of the rows whose labels have not arrived, the oldest first."""

    def __init__(self) -> None:
        self._blocks = deque[Forecast]()
        self.n = 0
        self.missing = 0  # rows without label and without forecast; they are older than those with one

    def add(self, forecast: Forecast) -> None:
        """Add the forecasts of further rows."""
        if len(forecast.losses):
            self._blocks.append(forecast)
            self.n += len(forecast.losses)

    def _take(self, n: int) -> list[Forecast]:
        """Remove the forecasts of the n oldest rows."""
        found = []
        self.n -= n
        while n:
            block = self._blocks.popleft()
            size = len(block.losses)
            found.append(block.part(0, min(n, size)))
            if n < size:
                self._blocks.appendleft(block.part(n, size))
            n -= len(found[-1].losses)
        return found

    def all(self) -> Forecast | None:
        """Return all forecasts, or None if there are none."""
        if not self._blocks:
            return None
        return Forecast(*map(np.concatenate, zip(*self._blocks, strict=True)))

    def learn(
        self, learner: Any, model: Model[Any], rows: Any, batch: "Batch", codes: NDArray[Any]
    ) -> tuple[Array, ...]:
        """Predict and learn the rows of a batch in their order; return the result of ``learner.advance`` for all rows.

        ``learner`` is the model or its classifier. Rows that were predicted before this object existed have no
        forecasts. Theirs are computed when the rows are learned.
        """
        if batch.predict is None or batch.learn is None:
            return _arrays(learner.advance(rows, codes, batch.weights))
        found = []
        for part in self._parts(batch.learn):
            here, forecast = rows.part(part.start, part.stop), model.empty_forecast(part.stop - part.start)
            late = np.flatnonzero(batch.learn[part])
            if self.missing and len(late):
                self.missing -= 1
                blocks = [learner.forecast(here)[0]]
            else:
                blocks = self._take(len(late))
            for array, values in zip(forecast, zip(*blocks, strict=True), strict=bool(blocks)):
                array[late] = np.concatenate(values)
            found.append(_arrays(learner.advance(here, codes[part], batch.weights[part], forecast=forecast)))
            self.add(forecast.take(np.flatnonzero(batch.predict[part])))
        return tuple(map(np.concatenate, zip(*found, strict=True)))

    def _parts(self, learned: "Flags") -> Iterator[slice]:
        """Split rows so that every learned row of a part was predicted before the part."""
        first = 0
        while first < len(learned):
            late = np.flatnonzero(learned[first:])
            if self.missing and len(late):  # one by one
                last = first + max(1, int(late[0]))
            else:
                last = len(learned) if len(late) <= self.n else first + int(late[self.n])
            yield slice(first, last)
            first = last


def _arrays(found: Any) -> tuple[Array, ...]:
    """Return losses and, if probabilities are calibrated, the calibration."""
    return tuple(array for array in found if array is not None) if isinstance(found, tuple) else (found,)
