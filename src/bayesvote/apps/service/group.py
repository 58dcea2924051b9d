"""What waiting requests do to one model: checked one after the other, journalled and learned as one chunk."""

from collections.abc import Callable, Sequence
from dataclasses import dataclass, field
from typing import Any

import numpy as np

from bayesvote.apps.service.columns import Answers
from bayesvote.apps.service.forecasts import Forecasts, to_bytes
from bayesvote.apps.service.journal import Entry, Journal, Waiting, as_json, checksum
from bayesvote.apps.service.models import Served
from bayesvote.apps.service.types import LearnAnswer, Refusal
from bayesvote.core.checks import Labels


@dataclass
class Job:
    """A request that waits; ``answer`` is called in the event loop with what ``Group`` returns for it."""

    served: Served
    ids: Sequence[str]
    answer: Callable[[Any], None] = field(init=False, repr=False)

    @property
    def size(self) -> int:
        """How many rows it is about."""
        return len(self.ids)


@dataclass
class Ask(Job):
    """Rows to predict, with the certainty or not, and to keep until their labels come; ``answers`` if known already."""

    rows: Any
    certainty: bool = False
    answers: Answers | None = None


@dataclass
class Reveal(Job):
    """Labels of rows that were kept."""

    codes: Labels


@dataclass
class Teach(Job):
    """Rows with their labels, with ids or without."""

    rows: Any
    codes: Labels

    @property
    def size(self) -> int:
        """How many rows it is about."""
        return len(self.codes)


AnyJob = Ask | Reveal | Teach


@dataclass
class Lesson:
    """Rows that a request adds to the chunk that is learned: as the journal has them."""

    rows: bytes
    codes: list[int]
    made: bytes | None
    ids: Sequence[str]
    repeated: int
    forecasts: list[bytes | None] = field(default_factory=list)  # of all rows, or of none


@dataclass
class Group:
    """Requests about one model, taken together."""

    served: Served
    jobs: list[AnyJob]
    results: list[tuple[AnyJob, Any]] = field(default_factory=list)
    lessons: list[tuple[AnyJob, Lesson]] = field(default_factory=list)
    new: dict[str, Waiting] = field(default_factory=dict)
    gone: list[str] = field(default_factory=list)
    new_codes: dict[str, int] = field(default_factory=dict)
    crowded: int = 0

    def prepare(self, journal: Journal) -> None:
        """Check every request against the journal and those before it; a refused one changes nothing."""
        ids = [id_ for job in self.jobs for id_ in job.ids]
        number = self.served.number
        self.waiting = journal.pending(number, ids) if ids else {}
        self.codes = journal.learned(number, ids) if ids else {}
        asks = [job for job in self.jobs if isinstance(job, Ask) and job.answers is None]
        for certainty in (False, True):
            self._predict([job for job in asks if job.certainty == certainty], certainty)
        count = sum(job.size for job in self.jobs if not isinstance(job, Ask))
        try:
            self.served.check_room(count)
            tight = False
        except Refusal:
            tight = True
        learned = 0
        for job in self.jobs:
            try:
                if isinstance(job, Ask):
                    self.results.append((job, self._ask(job)))
                    continue
                lesson, taken = self._reveal(job) if isinstance(job, Reveal) else self._teach(job)
                if tight:
                    self.served.check_room(learned + len(lesson.codes))
            except Refusal as refusal:
                self.results.append((job, refusal))
                continue
            learned += len(lesson.codes)
            self.lessons.append((job, lesson))
            self._take(lesson, taken)

    def _predict(self, asks: list[Ask], certainty: bool) -> None:
        if not asks:
            return
        rows = self.served.columns.joined([job.rows for job in asks])
        with self.served.turn():
            found = self.served.predict(rows, certainty=certainty, forecast=True)
        at = 0
        for job in asks:
            job.answers = found.part(at, at + job.size)
            at += job.size

    def _ask(self, job: Ask) -> Answers:
        assert job.answers is not None
        assert job.answers.forecast is not None
        found, forecasts, fresh = job.answers.probabilities, job.answers.forecast, {}
        for place, (id_, row) in enumerate(zip(job.ids, self.served.columns.split(job.rows), strict=True)):
            if id_ in self.codes:
                raise Refusal(
                    409, f"ids[{place}]: the row {id_!r} has its label and was learned. Another row needs a new id."
                )
            waiting = self.waiting.get(id_)
            if waiting is None:
                fresh[id_] = Waiting(row, found[place].tobytes(), forecasts[place].tobytes())
            elif waiting.row != row:
                raise Refusal(409, f"ids[{place}]: {id_!r} is the id of another row that waits. Choose a new id.")
            else:  # a repeated request: the prediction stays as it was made
                found[place] = np.frombuffer(waiting.probabilities)
        self.waiting |= fresh
        self.new |= fresh
        return job.answers

    def _reveal(self, job: Reveal) -> tuple[Lesson, list[str]]:
        taken, codes, repeated = [], [], 0
        for place, (id_, code) in enumerate(zip(job.ids, job.codes.tolist(), strict=True)):
            if id_ in self.codes:
                self._check_same(place, id_, code)
                repeated += 1
            elif id_ in self.waiting:
                taken.append(id_)
                codes.append(code)
            else:
                raise Refusal(
                    404, f"ids[{place}]: no row {id_!r} waits for its label. It was never predicted, or was dropped."
                )
        found = [self.waiting[id_] for id_ in taken]
        rows, made = b"".join([each.row for each in found]), b"".join([each.probabilities for each in found])
        return Lesson(rows, codes, made, taken, repeated, [each.forecast for each in found]), taken

    def _teach(self, job: Teach) -> tuple[Lesson, list[str]]:
        if not job.ids:
            return Lesson(self.served.columns.pack(job.rows), job.codes.tolist(), None, (), 0), []
        kept = []
        for place, (id_, code) in enumerate(zip(job.ids, job.codes.tolist(), strict=True)):
            if id_ in self.codes:
                self._check_same(place, id_, code)
            elif id_ in self.waiting:
                raise Refusal(409, f"ids[{place}]: the row {id_!r} waits for its label. Send that to label.")
            else:
                kept.append(place)
        ids, rows = [job.ids[place] for place in kept], self.served.columns.split(job.rows)
        chosen = b"".join(rows[place] for place in kept)
        return Lesson(chosen, job.codes[kept].tolist(), None, ids, len(job.ids) - len(kept)), []

    def _check_same(self, place: int, id_: str, code: int) -> None:
        if self.codes[id_] != code:
            before, now = self.served.classes[self.codes[id_]], self.served.classes[code]
            raise Refusal(409, f"labels[{place}]: the row {id_!r} was learned with the label {before!r}, not {now!r}.")

    def _take(self, lesson: Lesson, taken: list[str]) -> None:
        for id_ in taken:
            del self.waiting[id_]
            if self.new.pop(id_, None) is None:
                self.gone.append(id_)
        for id_, code in zip(lesson.ids, lesson.codes, strict=False):
            self.codes[id_] = self.new_codes[id_] = code

    @property
    def count(self) -> int:
        """Rows that are to be learned."""
        return sum(len(lesson.codes) for _, lesson in self.lessons)

    @property
    def writes(self) -> bool:
        """Whether the journal has to note anything."""
        return bool(self.new or self.gone or self.count)

    def write(self, journal: Journal, now: float, most: int) -> None:
        """Note everything in the journal, in a transaction; of more than ``most`` rows that wait, the oldest go."""
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

    def _entry(self) -> Entry:
        k = len(self.served.classes)
        lessons = [lesson for _, lesson in self.lessons]
        rows = b"".join(lesson.rows for lesson in lessons)
        codes = np.array([code for lesson in lessons for code in lesson.codes], dtype=np.int32).tobytes()
        made = None
        if any(lesson.made is not None for lesson in lessons):
            made = b"".join(_unknown(k * len(each.codes)) if each.made is None else each.made for each in lessons)
        ids = as_json(list(self.new_codes)) if self.new_codes else None
        forecasts = to_bytes(
            [line for each in lessons for line in each.forecasts or [None] * len(each.codes)], self.served.forecast_size
        )
        total = checksum(self.served.sum, rows, codes, made, ids, forecasts)
        return Entry(self.served.rows, len(codes) // 4, rows, codes, made, ids, total, forecasts)

    def learn(self) -> None:
        """Learn what was journalled; the answers follow from it."""
        self.served.pending += len(self.new) - len(self.gone) - self.crowded
        self.served.crowded += self.crowded
        at, wrong = 0, list[bool]()
        if self.count:
            entry, k = self.entry, len(self.served.classes)
            codes = np.frombuffer(entry.codes, dtype=np.int32).astype(np.intp)
            made = None if entry.made is None else np.frombuffer(entry.made).reshape(-1, k)
            forecasts = Forecasts.from_bytes([(entry.n, entry.forecasts)], self.served.forecast_size)
            rows = self.served.columns.unpack(entry.rows, entry.n)
            wrong = self.served.learn(rows, codes, made, forecasts).tolist()
            self.served.sum = entry.sum
        for job, lesson in self.lessons:
            n = len(lesson.codes)
            mistakes = sum(wrong[at : at + n])
            self.results.append((job, LearnAnswer(self.served.name, n, lesson.repeated, mistakes)))
            at += n


def _unknown(count: int) -> bytes:
    """What stands for probabilities that were not given before the label was known."""
    return np.full(count, np.nan).tobytes()
