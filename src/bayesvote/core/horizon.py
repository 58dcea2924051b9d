"""Weights for predictions some rows after the last label, learned from labels that are not late.

``partial_fit`` does not know when the next predictions will be made. So a model divides the stream into periods, and
holds back the last fifth of the rows of each: the gap. It predicts these rows without learning them, as if their labels
were late, and learns them when the period ends. The weights are learned from the later half of these predictions.
"""

from typing import Any, NamedTuple

import numpy as np

from bayesvote.core.rollback import Chunk, Forecast
from bayesvote.core.rows import Rows, as_rows
from bayesvote.core.state import MOST_ROWS, Arrays, require, within

AUTO = 150  # rows: the default horizon of ``partial_fit``; docs/horizon.md has the errors at this and other distances
WAITING = "waiting_"  # prefix of the array names of waiting rows in files
_PERIODS = 5  # horizons per period: members learn four fifths of the rows at once
_FIRST = 10  # rows of the first period: the least of which a fifth has two halves
_GROWTH = 4  # a period has at most a quarter of the rows before it, so that early gaps are short


class Period(NamedTuple):
    """Lengths of a period, counted in rows that are learned."""

    n_rows: int
    n_held: int  # rows of the gap, at the end of the period

    @classmethod
    def after(cls, rows: int, horizon: int) -> "Period":
        """Return the period that starts after this number of rows; early periods are shorter.

        >>> Period.after(0, 100), Period.after(400, 100), Period.after(10_000, 100)
        (Period(n_rows=10, n_held=2), Period(n_rows=100, n_held=20), Period(n_rows=500, n_held=100))
        """
        n_rows = min(_PERIODS * horizon, max(_FIRST, rows // _GROWTH))
        return cls(n_rows, max(2, n_rows // _PERIODS))

    @property
    def n_learned(self) -> int:
        """Number of rows before the gap."""
        return self.n_rows - self.n_held


class Gap(NamedTuple):
    """Position in the current period, and the rows of its gap, which wait to be learned."""

    horizon: int
    before: int  # rows before the period
    seen: int  # rows of the period
    waiting: Chunk | None

    @classmethod
    def start(cls, horizon: int) -> "Gap":
        """Return the start of the first period."""
        return cls(horizon, 0, 0, None)

    @property
    def period(self) -> Period:
        """The current period."""
        return Period.after(self.before, self.horizon)

    def next_part(self, n: int) -> tuple[bool, int]:
        """Return True in the gap, and how many of the next n rows come before it starts or ends."""
        n_rows, n_held = self.period
        is_held = self.seen >= n_rows - n_held
        return is_held, min(n, (n_rows if is_held else n_rows - n_held) - self.seen)

    def passed(self, rows: int) -> "Gap":
        """Return the position after further rows."""
        return Gap(self.horizon, self.before, self.seen + rows, self.waiting)

    def with_waiting(self, chunk: Chunk) -> "Gap":
        """Return the position after further rows of the gap; rows of weight 0 do not wait."""
        learned = np.flatnonzero(chunk.w != 0)
        if not len(learned):
            return self
        assert chunk.forecast is not None
        forecast = chunk.forecast.take(learned)
        new = Chunk(chunk.rows.take(learned), chunk.y[learned], chunk.w[learned], forecast)
        if self.waiting is not None:
            old, before = self.waiting, self.waiting.forecast
            assert before is not None
            rows = old.rows.widened(new.rows.width).followed_by(new.rows)
            forecast = before.followed_by(forecast)
            new = Chunk(rows, np.concatenate((old.y, new.y)), np.concatenate((old.w, new.w)), forecast)
        return self._replace(waiting=new, seen=self.seen + len(learned))

    @property
    def first_judged(self) -> int:
        """Index in the gap of the first row from which weights are learned at the horizon."""
        return self.period.n_held // 2

    def finished(self) -> "Gap":
        """Return the start of the next period."""
        return Gap(self.horizon, self.before + self.seen, 0, None)

    def facts(self) -> list[int]:
        """Return the position for a file."""
        return [self.horizon, self.before, self.seen]

    def arrays(self) -> Arrays:
        """Return the waiting rows for a file."""
        if self.waiting is None:
            return {}
        rows, y, w, forecast, _ = self.waiting
        assert forecast is not None
        columns = rows.columns if rows.sparse else np.tile(rows.columns, rows.n)
        found: dict[str, Any] = {"values": rows.values, "columns": columns, "starts": rows.starts}
        found |= {"y": y.astype(np.int64), "w": w, **forecast._asdict()}
        return {WAITING + name: array for name, array in found.items()}

    @classmethod
    def restored(cls, facts: Any, arrays: Arrays, n_features: int, blank: Forecast) -> "Gap":
        """Return the checked position of a file; ``blank`` has forecasts of no rows."""
        require(
            type(facts) is list and len(facts) == 3 and all(type(x) is int for x in facts), "gap must be 3 integers"
        )
        horizon, before, seen = facts
        require(1 <= horizon <= MOST_ROWS and 0 <= before <= MOST_ROWS and seen >= 0, "gap must count rows")
        gap = cls(horizon, before, seen, None)
        require(seen < gap.period.n_rows, "seen must be less than the rows of the period")
        n = max(0, seen - gap.period.n_learned)
        given = {name.removeprefix(WAITING): array for name, array in arrays.items()}
        if n == 0:
            require(not given, "no rows must wait before the gap")
            return gap
        names = ("values", "columns", "starts", "y", "w", *Forecast._fields)
        require(given.keys() == set(names), f"waiting rows must have {', '.join(names)}")
        y, w = given["y"], given["w"]
        require(y.dtype == np.int64 and y.shape == (n,) and within(y, 0, blank.losses.shape[1] - 1), "y must be labels")
        require(w.dtype == np.float64 and w.shape == (n,) and within(w, 5e-324, 1e9), "w must be weights")
        forecast = Forecast(*(given[name] for name in Forecast._fields))
        for array, like in zip(forecast, blank, strict=True):
            fits = array.dtype == np.float64 and array.shape == (n, *like.shape[1:])
            require(fits, "forecasts must fit the model")
        rows = _rows(given["values"], given["columns"], given["starts"], n, n_features)
        return gap._replace(waiting=Chunk(rows, y.astype(np.intp), w, forecast))


def _rows(values: Any, columns: Any, starts: Any, n: int, n_features: int) -> Rows:
    from scipy.sparse import csr_array

    require(
        values.dtype == np.float64 and columns.dtype == np.int32 and starts.dtype == np.int64, "rows must be sparse"
    )
    require(starts.shape == (n + 1,) and values.ndim == columns.ndim == 1, "waiting rows must have starts")
    ordered = starts[0] == 0 and bool(np.all(np.diff(starts) >= 0)) and starts[-1] == len(values) == len(columns)
    require(ordered and within(columns, 0, n_features - 1), "waiting rows must have columns of the model")
    return as_rows("Gap", csr_array((values, columns, starts), shape=(n, n_features)))
