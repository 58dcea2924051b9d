"""A batch of requests for one model: checked in order, written to the journal, and learned as one chunk."""

from collections.abc import Callable, Sequence
from dataclasses import dataclass, field
from typing import Any

import numpy as np

from bayesvote.apps.service.forecasts import Forecasts, to_bytes
from bayesvote.apps.service.journal import Journal, JournalEntry, PendingRow, as_json, checksum
from bayesvote.apps.service.models import ServedModel
from bayesvote.apps.service.row_formats import ModelOutputs
from bayesvote.apps.service.types import LearnAnswer, RequestError
from bayesvote.core.checks import Labels


@dataclass
class LearnerTask:
    """The part of a request that the learning thread does. The event loop calls ``answer`` with its result."""

    served: ServedModel
    ids: Sequence[str]
    answer: Callable[[Any], None] = field(init=False, repr=False)

    @property
    def size(self) -> int:
        """Number of rows."""
        return len(self.ids)


@dataclass
class PredictTask(LearnerTask):
    """Rows to predict, and to keep until their labels arrive. ``outputs`` are given if they are predicted already."""

    rows: Any
    certainty: bool = False
    outputs: ModelOutputs | None = None


@dataclass
class LabelTask(LearnerTask):
    """Labels of rows that were predicted earlier."""

    codes: Labels


@dataclass
class LearnTask(LearnerTask):
    """Rows with their labels, with or without ids."""

    rows: Any
    codes: Labels

    @property
    def size(self) -> int:
        """Number of rows."""
        return len(self.codes)


AnyTask = PredictTask | LabelTask | LearnTask


@dataclass
class NewRows:
    """Rows that a request adds to the chunk to learn, in the format of the journal."""

    rows: bytes
    codes: list[int]
    made: bytes | None
    ids: Sequence[str]
    repeated: int
    forecasts: list[bytes | None] = field(default_factory=list)  # one per row, or empty


@dataclass
class TaskBatch:
    """Requests for one model that are processed together."""

    served: ServedModel
    tasks: list[AnyTask]
    results: list[tuple[AnyTask, Any]] = field(default_factory=list)
    new_rows: list[tuple[AnyTask, NewRows]] = field(default_factory=list)
    new: dict[str, PendingRow] = field(default_factory=dict)
    gone: list[str] = field(default_factory=list)
    new_codes: dict[str, int] = field(default_factory=dict)
    crowded: int = 0

    def prepare(self, journal: Journal) -> None:
        """Check every request against the journal and the requests before it. A rejected one changes nothing."""
        ids = [id_ for task in self.tasks for id_ in task.ids]
        number = self.served.number
        self.waiting = journal.pending(number, ids) if ids else {}
        self.codes = journal.learned(number, ids) if ids else {}
        unpredicted = [task for task in self.tasks if isinstance(task, PredictTask) and task.outputs is None]
        for certainty in (False, True):
            self._predict([task for task in unpredicted if task.certainty == certainty], certainty)
        count = sum(task.size for task in self.tasks if not isinstance(task, PredictTask))
        try:
            self.served.check_room(count)
            nearly_full = False
        except RequestError:
            nearly_full = True
        learned = 0
        for task in self.tasks:
            try:
                if isinstance(task, PredictTask):
                    self.results.append((task, self._keep(task)))
                    continue
                added, taken = self._label(task) if isinstance(task, LabelTask) else self._learn_new(task)
                if nearly_full:
                    self.served.check_room(learned + len(added.codes))
            except RequestError as error:
                self.results.append((task, error))
                continue
            learned += len(added.codes)
            self.new_rows.append((task, added))
            self._take(added, taken)

    def _predict(self, tasks: list[PredictTask], certainty: bool) -> None:
        if not tasks:
            return
        rows = self.served.format.concatenate([task.rows for task in tasks])
        with self.served.locked():
            found = self.served.predict(rows, certainty=certainty)
        at = 0
        for task in tasks:
            task.outputs = found.part(at, at + task.size)
            at += task.size

    def _keep(self, task: PredictTask) -> ModelOutputs:
        assert task.outputs is not None
        assert task.outputs.forecast is not None
        found, forecasts, fresh = task.outputs.probabilities, task.outputs.forecast, {}
        for place, (id_, row) in enumerate(zip(task.ids, self.served.format.split(task.rows), strict=True)):
            if id_ in self.codes:
                do = "Use a new id for another row."
                raise RequestError(409, f"ids[{place}]: the row {id_!r}", "has its label and was learned", do=do)
            waiting = self.waiting.get(id_)
            if waiting is None:
                fresh[id_] = PendingRow(row, found[place].tobytes(), forecasts[place].tobytes())
            elif waiting.row != row:
                raise RequestError(
                    409, f"ids[{place}]: {id_!r}", "is the id of another pending row", do="Use a new id."
                )
            else:  # a repeated request gets the first prediction again
                found[place] = np.frombuffer(waiting.probabilities)
        self.waiting |= fresh
        self.new |= fresh
        return task.outputs

    def _label(self, task: LabelTask) -> tuple[NewRows, list[str]]:
        taken, codes, repeated = [], [], 0
        for place, (id_, code) in enumerate(zip(task.ids, task.codes.tolist(), strict=True)):
            if id_ in self.codes:
                self._check_same(place, id_, code)
                repeated += 1
            elif id_ in self.waiting:
                taken.append(id_)
                codes.append(code)
            else:
                do = "It was never predicted, or was dropped."
                raise RequestError(404, f"ids[{place}]: the row {id_!r}", "is not waiting for its label", do=do)
        found = [self.waiting[id_] for id_ in taken]
        rows, made = b"".join([each.row for each in found]), b"".join([each.probabilities for each in found])
        return NewRows(rows, codes, made, taken, repeated, [each.forecast for each in found]), taken

    def _learn_new(self, task: LearnTask) -> tuple[NewRows, list[str]]:
        if not task.ids:
            return NewRows(self.served.format.pack(task.rows), task.codes.tolist(), None, (), 0), []
        kept = []
        for place, (id_, code) in enumerate(zip(task.ids, task.codes.tolist(), strict=True)):
            if id_ in self.codes:
                self._check_same(place, id_, code)
            elif id_ in self.waiting:
                do = "Send its label to the label route."
                raise RequestError(409, f"ids[{place}]: the row {id_!r}", "is waiting for its label", do=do)
            else:
                kept.append(place)
        ids, rows = [task.ids[place] for place in kept], self.served.format.split(task.rows)
        chosen = b"".join(rows[place] for place in kept)
        return NewRows(chosen, task.codes[kept].tolist(), None, ids, len(task.ids) - len(kept)), []

    def _check_same(self, place: int, id_: str, code: int) -> None:
        if self.codes[id_] != code:
            before, now = self.served.classes[self.codes[id_]], self.served.classes[code]
            must = f"was learned with the label {before!r}, not {now!r}"
            raise RequestError(409, f"labels[{place}]: the row {id_!r}", must)

    def _take(self, added: NewRows, taken: list[str]) -> None:
        for id_ in taken:
            del self.waiting[id_]
            if self.new.pop(id_, None) is None:
                self.gone.append(id_)
        for id_, code in zip(added.ids, added.codes, strict=False):
            self.codes[id_] = self.new_codes[id_] = code

    @property
    def count(self) -> int:
        """Number of rows to learn."""
        return sum(len(added.codes) for _, added in self.new_rows)

    @property
    def writes(self) -> bool:
        """True if there is something to write to the journal."""
        return bool(self.new or self.gone or self.count)

    def write(self, journal: Journal, now: float, most: int) -> None:
        """Write everything to the journal, in a transaction. Of more than ``most`` pending rows, drop the oldest."""
        number = self.served.number
        if self.new:
            journal.keep(number, self.new, now)
        if self.gone:
            journal.drop(number, self.gone)
        extra = self.served.pending + len(self.new) - len(self.gone) - most
        self.crowded = journal.crowd_out(number, extra) if extra > 0 else 0
        if self.count:
            self.entry = self._entry()
            journal.append(number, self.entry, self.new_codes)

    def _entry(self) -> JournalEntry:
        k = len(self.served.classes)
        new_rows = [added for _, added in self.new_rows]
        rows = b"".join(added.rows for added in new_rows)
        codes = np.array([code for added in new_rows for code in added.codes], dtype=np.int32).tobytes()
        made = None
        if any(added.made is not None for added in new_rows):
            made = b"".join(_unknown(k * len(each.codes)) if each.made is None else each.made for each in new_rows)
        ids = as_json(list(self.new_codes)) if self.new_codes else None
        forecasts = to_bytes(
            [line for each in new_rows for line in each.forecasts or [None] * len(each.codes)],
            self.served.forecast_size,
        )
        total = checksum(self.served.sum, rows, codes, made, ids, forecasts)
        return JournalEntry(self.served.rows, len(codes) // 4, rows, codes, made, ids, total, forecasts)

    def learn(self) -> None:
        """Learn what was written to the journal, and set the results of the requests."""
        self.served.pending += len(self.new) - len(self.gone) - self.crowded
        self.served.crowded += self.crowded
        at, wrong = 0, list[bool]()
        if self.count:
            entry, k = self.entry, len(self.served.classes)
            codes = np.frombuffer(entry.codes, dtype=np.int32).astype(np.intp)
            made = None if entry.made is None else np.frombuffer(entry.made).reshape(-1, k)
            forecasts = Forecasts.from_bytes([(entry.n, entry.forecasts)], self.served.forecast_size)
            rows = self.served.format.unpack(entry.rows, entry.n)
            wrong = self.served.learn(rows, codes, made, forecasts).tolist()
            self.served.sum = entry.sum
        for task, added in self.new_rows:
            n = len(added.codes)
            mistakes = sum(wrong[at : at + n])
            self.results.append((task, LearnAnswer(self.served.name, n, added.repeated, mistakes)))
            at += n


def _unknown(count: int) -> bytes:
    """Return NaNs: these rows had no prediction before their labels were known."""
    return np.full(count, np.nan).tobytes()
