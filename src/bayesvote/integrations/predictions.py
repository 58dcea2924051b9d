"""Forecasts of predicted rows for late labels, looked up by the rows' names and values."""

from collections import Counter, OrderedDict, deque
from collections.abc import Callable, Hashable, Sequence
from contextlib import suppress
from typing import Any, NamedTuple

from bayesvote.core.checks import Array
from bayesvote.core.rollback import Forecast

_MOST_ROWS = 10_000
_MOST_NUMBERS = 2**22  # 32 MB
_AT_ONCE = 256  # rows per forecast, which needs a dense matrix


class Row(NamedTuple):
    """A row that was predicted since the last row was learned."""

    asked: str  # "label" or "probabilities"; asking for both is one prediction
    names: tuple[Hashable, ...]
    values: Array  # (1, n)

    @property
    def key(self) -> int:
        """Hash of the names and values."""
        return key_of(self.names, self.values)


def key_of(names: tuple[Hashable, ...], values: Array) -> int:
    """Return the hash of a row; two rows with the same hash count as equal.

    >>> import numpy as np
    >>> key_of(("a",), np.array([[1.0]])) == key_of(("a",), np.array([[1.0]]))
    True
    """
    return hash((names, values.tobytes()))


class PredictedRows:
    """The last predicted rows that were not learned, in bounded memory. Copies and pickles are empty.

    A prediction only appends its row. Its forecast is computed before the next row is learned, so by the model that
    predicted it. A row that is learned right after its prediction needs no forecast.
    """

    def __init__(self) -> None:
        self._new = deque[Row](maxlen=_MOST_ROWS)  # append and popleft are safe in several threads
        self.clear()

    def clear(self) -> None:
        """Remove all forecasts. Another model cannot use them."""
        self._forecasts = OrderedDict[int, deque[Forecast]]()
        self._rows = self._numbers = 0

    def __deepcopy__(self, _: Any) -> "PredictedRows":
        return PredictedRows()

    def __reduce__(self) -> Any:
        return PredictedRows, ()

    def __len__(self) -> int:
        """Return the number of forecasts."""
        return self._rows

    def add(self, asked: str, names: tuple[Hashable, ...], values: Array) -> None:
        """Add a predicted row."""
        if len(self._new) * values.size > _MOST_NUMBERS:
            with suppress(IndexError):  # another thread has removed it
                self._new.popleft()
        self._new.append(Row(asked, names, values))

    def drop_if_last(self, key: int) -> bool:
        """Remove the last prediction if it was of this row and nothing was learned since; return True if so."""
        new = self._new
        if not new or key in self._forecasts or new[-1].key != key:
            return False
        asked = set[str]()
        while new and new[-1].asked not in asked and new[-1].key == key:
            asked.add(new.pop().asked)
        return True

    def make_forecasts(self, forecast: Callable[[Sequence[Row]], Forecast]) -> None:
        """Compute the forecasts of the rows that were predicted since the last call."""
        if not self._new:
            return
        times, rows = Counter[tuple[int, str]](), dict[int, Row]()
        for row in self._new:
            key = row.key
            times[key, row.asked] += 1
            rows.setdefault(key, row)
        self._new.clear()  # first, as a member may fail
        keys, distinct = list(rows), list(rows.values())
        for first in range(0, len(keys), _AT_ONCE):
            found = forecast(distinct[first : first + _AT_ONCE])
            for t, key in enumerate(keys[first : first + _AT_ONCE]):
                own = Forecast(*(array[t : t + 1].copy() for array in found))
                for _ in range(max(times[key, "label"], times[key, "probabilities"])):
                    self._forecasts.setdefault(key, deque()).append(own)
                    self._count(1, own)
        while self._rows > _MOST_ROWS or self._numbers > _MOST_NUMBERS:
            self.take(next(iter(self._forecasts)))

    def take(self, key: int) -> Forecast | None:
        """Remove and return the oldest forecast of equal rows, or None if there is none."""
        of_row = self._forecasts.get(key)
        if of_row is None:
            return None
        forecast = of_row.popleft()
        if not of_row:
            del self._forecasts[key]
        self._count(-1, forecast)
        return forecast

    def put_back(self, key: int, forecast: Forecast) -> None:
        """Keep the forecast of a row that could not be learned."""
        self._forecasts.setdefault(key, deque()).appendleft(forecast)
        self._count(1, forecast)

    def _count(self, rows: int, forecast: Forecast) -> None:
        self._rows += rows
        self._numbers += rows * sum(array.size for array in forecast)
