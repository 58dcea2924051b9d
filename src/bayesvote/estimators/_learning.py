"""Learning of one call's rows: the model, calibration, class counts and columns learn the same rows."""

from collections.abc import Callable
from typing import Any, NamedTuple

import numpy as np

from bayesvote.core.checks import Array, Labels
from bayesvote.core.lock import Uninterrupted
from bayesvote.core.rollback import Chunk, Forecast, note_progress
from bayesvote.core.rows import Rows
from bayesvote.estimators._calibration import Calibration, trust_in
from bayesvote.estimators._class_weight import counted, weighted
from bayesvote.estimators.fitted import Fitted
from bayesvote.tables import Columns, Table

_AT_ONCE = 1024  # rows of a table between two releases of the write lock


class LearningOptions(NamedTuple):
    """Parameters of a classifier that learning depends on."""

    who: str
    class_weight: Any
    calibrates: bool
    forgetting: float


class LearningCall:
    """One call's rows while they are learned. Other threads see the classifier before or after a chunk of them.

    Balanced class weights are computed once per call, from the class counts at its start and the rows of the call. Rows
    that other threads learn during the call do not change them.
    """

    def __init__(
        self,
        options: LearningOptions,
        fitted: Fitted[Any],
        codes: Labels,
        w: Array,
        forecast: Forecast | None = None,
        horizon: int = 0,
    ) -> None:
        self._options, self._fitted, self._model, self._codes, self._own = options, fitted, fitted.model, codes, w
        self._forecast, self._horizon = forecast, horizon
        self._w = weighted(options.who, options.class_weight, fitted.classes, fitted.class_counts, codes, w)
        self._learned = 0
        self._means = [np.empty((0, 2))] if options.calibrates else []
        self._model.check_weights(self._w)

    def learn(self, rows: Rows | Table) -> tuple[Array, Array | None]:
        """Return the losses (n, K) of every row before it was learned, and the calibration (n, 2) at that time."""
        if isinstance(rows, Rows):
            given = rows, self._codes, self._w, self._after
            losses: Array = self._model.advance(*given, forecast=self._forecast, horizon=self._horizon)
        else:
            assert self._fitted.columns is not None  # as the rows are a table
            losses = self._learn_table(rows, self._fitted.columns)
        return losses, np.concatenate(self._means) if self._means else None

    def _advance(self, rows: Rows, part: slice) -> Array:
        forecast = None if self._forecast is None else Forecast(*(array[part] for array in self._forecast))
        given = rows, self._codes[part], self._w[part], self._after
        losses: Array = self._model.advance(*given, forecast=forecast, horizon=self._horizon)
        return losses

    def _after(self, chunk: Chunk, losses: Array) -> Callable[[], None]:
        """Learn the rest of a chunk that the model has learned. The returned function stores it and cannot fail."""
        options, fitted, last = self._options, self._fitted, self._learned + chunk.rows.n
        part = slice(self._learned, last)
        counts = counted(options.class_weight, fitted.class_counts, self._codes[part], self._own[part])
        known = new = fitted.calibration
        if options.calibrates:
            new = Calibration(known.mean.copy(), known.information.copy())
            # Late labels: learn from the prediction as it was. Otherwise learn from rows like the next predicted ones.
            given = losses if chunk.forecast is None else chunk.forecast.losses
            judged = self._model.judged
            w = chunk.w if judged is None else np.where(judged, chunk.w, 0.0)
            trust = trust_in(self._model.loss_scale)
            self._means.append(new.learn(self._model.shares(given), given, chunk.y, w, options.forgetting, trust))

        def store() -> None:
            known.mean[:], known.information[:], fitted.class_counts[:] = new.mean, new.information, counts
            self._learned = last

        return store

    def _learn_table(self, table: Table, columns: Columns) -> Array:
        found, kinds = [np.empty((0, self._model.n_classes))], columns.kinds
        before = self._model.progress()
        try:
            for first in range(0, table.n, _AT_ONCE):
                with self._model.lock.write, Uninterrupted():
                    if not np.array_equal(kinds, columns.kinds):
                        table, kinds = columns.checked(table), columns.kinds
                    found += self._learn_part(table.part(first, min(first + _AT_ONCE, table.n)), first, columns)
        except BaseException as error:
            note_progress(error, self._options.who, self._model.progress().since(before), table.n)
            raise
        return np.concatenate(found)

    def _learn_part(self, table: Table, start: int, columns: Columns) -> list[Array]:
        """Learn some rows of a table: the columns learn the rows that the model has learned."""
        found = list[Array]()
        learning = (self._w[start : start + table.n] != 0) & self._model.learns
        codes = self._codes[start : start + table.n]
        try:
            for first, last, rows in columns.advance(table, learning, codes):
                self._widen(rows.width)
                found.append(self._advance(rows, slice(start + first, start + last)))
        except BaseException:
            n = self._learned - start
            for piece in columns.advance(table.part(0, n), learning[:n], codes[:n]):
                self._widen(piece.rows.width)
            raise
        return found

    def _widen(self, width: int) -> None:
        if width > self._model.n_features:
            # The seed is the width, so that a saved model is widened in the same way.
            self._model.widen(width, width)
