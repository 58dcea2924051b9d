"""What a call teaches a classifier: its model, calibration, class counts and columns learn the same rows."""

from collections.abc import Callable
from typing import TYPE_CHECKING, Any

import numpy as np

from bayesvote.core.checks import Array, Labels
from bayesvote.core.lock import Uninterrupted
from bayesvote.core.rollback import Chunk, Forecast, note_progress
from bayesvote.core.rows import Rows
from bayesvote.estimators._calibration import Calibration, trust_in
from bayesvote.estimators._class_weight import weighted
from bayesvote.tables import Table

if TYPE_CHECKING:
    from bayesvote.estimators.base import OnlineClassifier

_AT_ONCE = 1024  # rows of a table, between which others may predict


class Lesson:
    """Rows that a classifier is to learn. Others see it before or after a chunk of them, with all that it has learned.

    Balanced classes weigh what they did when the call began and by its own rows; so do those of calls in other threads.
    """

    def __init__(
        self,
        shell: "OnlineClassifier[Any]",
        codes: Labels,
        w: Array,
        forecast: Forecast | None = None,
        horizon: int = 0,
    ) -> None:
        self._shell, self._model, self._codes, self._own = shell, shell.model_, codes, w
        self._forecast, self._horizon = forecast, horizon
        self._w = self._weighted(slice(None))[0]
        self._learned = 0
        self._means = [np.empty((0, 2))] if shell.calibrates else []
        self._model.check_weights(self._w)

    def learn(self, rows: Rows | Table) -> tuple[Array, Array | None]:
        """Losses (n, K) of every row before it was learned, and the calibration (n, 2) then, if there is one."""
        losses = self._advance(rows, slice(None)) if isinstance(rows, Rows) else self._learn_table(rows)
        return losses, np.concatenate(self._means) if self._means else None

    def _advance(self, rows: Rows, part: slice) -> Array:
        forecast = None if self._forecast is None else Forecast(*(array[part] for array in self._forecast))
        given = rows, self._codes[part], self._w[part], self._after
        losses: Array = self._model.advance(*given, forecast=forecast, horizon=self._horizon)
        return losses

    def _weighted(self, part: slice) -> tuple[Array, Array]:
        shell = self._shell
        given = shell.class_counts_, self._codes[part], self._own[part]
        return weighted(shell.who, shell.class_weight, shell.classes_, *given)

    def _after(self, chunk: Chunk, losses: Array) -> Callable[[], None]:
        """Learn what else there is to learn of a chunk; the model's journal has it taken up with the model."""
        shell, last = self._shell, self._learned + chunk.rows.n
        counts = self._weighted(slice(self._learned, last))[1]
        known, new = shell.calibration_, shell.calibration_
        if shell.calibrates:
            new = Calibration(known.mean.copy(), known.information.copy())
            # Of late labels, learn from what was predicted then; otherwise from rows like those that will be predicted.
            given = losses if chunk.forecast is None else chunk.forecast.losses
            judged = self._model.judged
            w = chunk.w if judged is None else np.where(judged, chunk.w, 0.0)
            trust = trust_in(self._model.loss_scale)
            self._means.append(new.learn(self._model.shares(given), given, chunk.y, w, shell._forgetting, trust))

        def take_up() -> None:
            known.mean[:], known.information[:], shell.class_counts_[:] = new.mean, new.information, counts
            self._learned = last

        return take_up

    def _learn_table(self, table: Table) -> Array:
        found, columns, kinds = [np.empty((0, self._model.n_classes))], self._shell.columns_, self._shell.columns_.kinds
        before = self._model.progress()
        try:
            for first in range(0, table.n, _AT_ONCE):
                with self._model.lock.write, Uninterrupted():
                    if not np.array_equal(kinds, columns.kinds):
                        table, kinds = columns.checked(table), columns.kinds
                    found += self._learn_part(table.part(first, min(first + _AT_ONCE, table.n)), first)
        except BaseException as error:
            note_progress(error, self._shell.who, self._model.progress().since(before), table.n)
            raise
        return np.concatenate(found)

    def _learn_part(self, table: Table, start: int) -> list[Array]:
        """Learn some rows of a table: the columns learn the rows that the model has learned."""
        columns, found = self._shell.columns_, list[Array]()
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
            # Drawn by the width alone, so that a saved model is widened in the same way.
            self._model.widen(width, width)
