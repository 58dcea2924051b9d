"""Learning by chunks, each of them whole or not at all, with room for readers between two of them."""

import threading
import time
from collections import deque
from collections.abc import Callable, Iterable, Iterator
from copy import deepcopy
from functools import wraps
from typing import Any, Concatenate, NamedTuple, ParamSpec, Protocol, TypeVar

import numpy as np
from numpy.typing import NDArray

from bayesvote.core.checks import Array, InputError, Labels
from bayesvote.core.lock import RWLock, Uninterrupted, Yielding, report_rows_learned
from bayesvote.core.rows import Rows, check_width
from bayesvote.core.threads import finish_background

CHUNK = 2048  # rows learned at a time: enough to be worth a thread's while, few enough for the cache
_FIRST_CHUNK = 128  # before it is known how long a row takes
_SECONDS = 0.1  # that a chunk should take at most, as readers and Ctrl-C wait for it
_MOST_KEPT = 2**17  # numbers in the rows that are kept from call to call
_PRICE = 0.02  # of learning: what copies of the state may take of its time
_PATIENCE = 5  # seconds that going back may take before Ctrl-C interrupts it
_SELDOM = 0.5  # seconds of learning between two copies at least


class Forecast(NamedTuple):
    """The parts of predictions, a line per row, from which a model learns when their labels come late."""

    losses: Array  # (n, K) of the labels
    scores: Array  # (n, m) or (n, m, K) of the members; without members (n, 0)
    log_likelihoods: Array  # (n, f) of the labels by each posterior
    decisions: Array  # (n, 3) or (n, 0): see ``bayesvote.weighting.threshold``

    def part(self, first: int, last: int) -> "Forecast":
        """Return lines first to last, without a copy."""
        return Forecast(*(array[first:last] for array in self))

    def take(self, order: NDArray[np.intp]) -> "Forecast":
        """Return the lines in this order."""
        return Forecast(*(array[order] for array in self))

    def followed_by(self, other: "Forecast") -> "Forecast":
        """Return these lines, then others."""
        return Forecast(*map(np.concatenate, zip(self, other, strict=True)))

    def packed(self) -> Array:
        """Return everything as one array, a line per row; ``Model.unpacked`` reads it."""
        return np.concatenate([array.reshape(len(array), -1) for array in self], axis=1)


class Chunk(NamedTuple):
    """Checked rows to learn, with their labels and weights.

    With a ``forecast`` the labels come late: the weights learn from what the rows' predictions were made of. Lines of
    rows of weight 0, which are predicted only, are written. With a ``horizon`` the labels are known at once, and the
    weights are to suit predictions that many rows later.
    """

    rows: Rows
    y: Labels
    w: Array
    forecast: Forecast | None = None
    horizon: int = 0

    def part(self, first: int, last: int) -> "Chunk":
        """Return rows first to last, without a copy."""
        forecast = None if self.forecast is None else self.forecast.part(first, last)
        return Chunk(self.rows.part(first, last), self.y[first:last], self.w[first:last], forecast, self.horizon)

    def copy(self) -> "Chunk":
        """Return the rows in memory of their own."""
        forecast = None if self.forecast is None else Forecast(*(array.copy() for array in self.forecast))
        return Chunk(self.rows.copy(), self.y.copy(), self.w.copy(), forecast, self.horizon)


# Learns what else there is to learn of a chunk that was learned, and what came of it: changes nothing but returns what
# takes it up, which must not fail, and may be called twice.
After = Callable[[Chunk, Array], Callable[[], None]]


class Learning(Protocol):
    """What learns: a model or a bank."""

    @property
    def lock(self) -> RWLock:
        """Who may use it when."""

    @property
    def who(self) -> str:
        """The name by which errors speak of it."""

    @property
    def shape(self) -> Any:
        """Features and classes."""

    def snapshot(self) -> Any:
        """Copy what learning changes."""

    def revert(self, snapshot: Any) -> None:
        """Take up such a copy, which is given up."""

    def learn_chunk(self, chunk: Chunk) -> Array:
        """Learn a chunk; return what came of it."""

    def pipeline(self, chunks: Iterable[Chunk]) -> Iterator[Array]:
        """Learn chunks in their order; give what came of each. The next may be begun before that."""


class _Count(threading.local):
    """A number for each thread."""

    rows = 0


class Journal:
    """What a model needs to be as before when learning fails: a copy of an earlier state, and the rows since.

    The state is copied anew when learning has taken long enough since for the copy not to matter. A failure then costs
    learning the rows since once more, and rows that come one by one cost no copy each.
    """

    def __init__(self) -> None:
        self._size = _FIRST_CHUNK
        self.count = _Count()  # of the rows that each thread has had learned, in all
        self.forget()

    def __deepcopy__(self, _: Any) -> "Journal":
        return Journal()

    def __reduce__(self) -> Any:
        return Journal, ()

    def forget(self) -> None:
        """Have no copy of the state, so that the next chunk takes one."""
        self._due = True  # for a new copy
        self._snapshot: Any = None
        self._log: list[Chunk] = []  # learned since
        # Length of the log before the chunk that is being noted, and what takes up what else was learned of it.
        self._half: tuple[int, Callable[[], None]] | None = None
        self._numbers = 0  # in those rows
        self._writes = -1  # of the lock, when the last chunk was learned: somebody else may have written since
        self._spent = 0.0  # seconds of learning since the copy
        self._enough = 0.0  # seconds after which there may be another
        self._open: tuple[int, int] | None = None  # count and length of the log before what is being learned

    def learn(self, part: Learning, given: Chunk, after: After | None = None) -> Array:
        """Learn checked rows, at least one; return what came of them. An error tells how many were learned."""
        before, shape, lock, rows = self.count.rows, part.shape, part.lock, given.rows
        check_width(part.who, rows, shape.n_features)
        todo, found = _Todo(given), list[Array]()
        try:
            if rows.n <= self._size:
                with lock.write:
                    self._begin(part, shape)
                    try:
                        self._at_once(part, todo.take(rows.n), after, found)
                    finally:
                        self._settle(part)
                return found[0]
            while todo.at < rows.n:
                with lock.write:
                    self._begin(part, shape)
                    try:
                        self._stretch(part, todo, after, found)
                    finally:
                        self._settle(part)
            return np.concatenate(found)
        except BaseException as error:
            self.forget()  # the log may hold rows that the caller goes on to change
            note_progress(error, part.who, self.count.rows - before, rows.n)
            raise

    def _begin(self, part: Learning, shape: Any) -> None:
        """See that the state is as the last chunk left it, or copied."""
        if part.shape != shape:
            raise InputError(part.who, "", "must not be started anew or widened by others while it learns")
        if self._due or self._writes + 1 != part.lock.writes:
            self.forget()
            start = time.perf_counter()
            self._snapshot = part.snapshot()
            self._enough = max(_SELDOM, (time.perf_counter() - start) / _PRICE)
            self._due = False

    def _at_once(self, part: Learning, chunk: Chunk, after: After | None, found: list[Array]) -> None:
        """Learn a single chunk: what a stretch does, at less cost for rows that come one by one."""
        start, rows = time.perf_counter(), chunk.rows
        self._numbers += len(rows.values)
        is_kept = self._numbers <= _MOST_KEPT
        own = chunk.copy() if is_kept else chunk
        with Uninterrupted():
            try:
                self._open = self.count.rows, len(self._log)
                with Yielding():
                    found.append(part.learn_chunk(chunk))
                self._note(own, chunk, found[0], after)
                self._open = None
            except BaseException:
                self._undo(part)
                raise
        self._writes = part.lock.writes
        self._spent += time.perf_counter() - start
        if not is_kept or self._spent > self._enough:
            self.forget()

    def _stretch(self, part: Learning, todo: "_Todo", after: After | None, found: list[Array]) -> None:
        """Learn chunk after chunk, until somebody else wants to come in or a signal does."""
        begun = deque[Chunk]()

        def chunks() -> Iterator[Chunk]:
            go_on = True
            while go_on:
                begun.append(todo.take(self._size))
                yield begun[-1]
                go_on = todo.at < todo.rows.n and not (part.lock.wanted or self._spent > self._enough)

        start = time.perf_counter()
        with Uninterrupted():
            try:
                self._open = self.count.rows, len(self._log)
                learning = part.pipeline(chunks())
                while True:
                    with Yielding():
                        of_chunk = next(learning, None)
                    if of_chunk is None:
                        break
                    chunk = begun.popleft()
                    found.append(of_chunk)
                    self._note(chunk, chunk, of_chunk, after)
                    now = time.perf_counter()
                    self._spent += now - start
                    self._resize(chunk.rows.n, now - start)
                    start = now
                self._open = None
            except BaseException:
                self._undo(part)
                raise
        if todo.at < todo.rows.n and self._spent <= self._enough:
            self._writes = part.lock.writes
        else:
            self.forget()  # the rows are the caller's

    def _note(self, own: Chunk, chunk: Chunk, of_chunk: Array, after: After | None) -> None:
        """Let a chunk be learned: once it is in the log, going back does not lose it."""
        take_up = _nothing if after is None else after(chunk, of_chunk)
        self._half = len(self._log), take_up
        self._log.append(own)
        self.count.rows += chunk.rows.n
        take_up()
        self._half = None

    def _resize(self, n: int, seconds: float) -> None:
        rows = int(n * _SECONDS / max(seconds, 1e-9))
        self._size = max(1, min(CHUNK, rows, max(4 * self._size, _FIRST_CHUNK)))

    def _undo(self, part: Learning) -> None:
        """Go back to the copy, and learn again what was learned since: what is in the log, wherever the count is.

        If that fails, too, for want of memory or by Ctrl-C after it has taken long, what is still open is settled.
        """
        if self._open is None:  # nothing was begun
            return
        with Uninterrupted():
            finish_background()
            part.revert(deepcopy(self._snapshot))
            with Yielding(_PATIENCE):
                for chunk in self._log:
                    part.learn_chunk(chunk)
            if self._half is not None and len(self._log) > self._half[0]:
                self._half[1]()
            before, first = self._open
            self.count.rows = before + _n_rows(self._log[first:])
            self._open = None

    def _settle(self, part: Learning) -> None:
        """Take up the copy itself if what was begun is neither learned nor undone, without the rows since."""
        if self._open is None:
            return
        with Uninterrupted():
            try:
                finish_background()
            finally:
                part.revert(self._snapshot)
                before, first = self._open
                self.count.rows = before - _n_rows(self._log[:first])
                self._open = None


def _n_rows(chunks: list[Chunk]) -> int:
    return sum(chunk.rows.n for chunk in chunks)


def _nothing() -> None:
    pass


class _Todo:
    """Rows that are still to learn."""

    def __init__(self, chunk: Chunk) -> None:
        self.chunk, self.rows = chunk, chunk.rows
        self.at = 0

    def take(self, most: int) -> Chunk:
        """Take the next rows away."""
        first, last = self.at, min(self.at + most, self.rows.n)
        self.at = last
        return self.chunk.part(first, last)


class Teachable(Protocol):
    """Whose methods learn rows."""

    @property
    def who(self) -> str:
        """The name by which errors speak of it."""

    def progress(self) -> "Progress":
        """How far it has come."""


class Progress(NamedTuple):
    """How far something has come that learns: the journal of its model now, and the rows that this thread had learned.

    A classifier that is fitted anew has another model, and so another journal.
    """

    journal: Journal | None
    rows: int

    @classmethod
    def of(cls, journal: Journal | None) -> "Progress":
        """How far a journal has come, if there is one."""
        return cls(journal, 0 if journal is None else journal.count.rows)

    def since(self, before: "Progress") -> int:
        """How many rows were learned."""
        return self.rows - (before.rows if before.journal is self.journal else 0)


T = TypeVar("T", bound=Teachable)
A = ParamSpec("A")
R = TypeVar("R")


def reports_progress(method: Callable[Concatenate[T, A], R]) -> Callable[Concatenate[T, A], R]:
    """Let whatever interrupts a method that learns tell how many rows were learned, wherever in the method it comes."""

    @wraps(method)
    def reporting(self: T, /, *args: A.args, **kwargs: A.kwargs) -> R:
        return report_rows_learned(self, method, args, kwargs, _tell_rows)  # type: ignore[no-any-return]

    return reporting


def _tell_rows(error: BaseException, part: Teachable, before: Progress | None) -> None:
    learned = 0 if before is None else part.progress().since(before)
    # A refusal changes nothing, and need not tell so.
    is_refusal = isinstance(error, Exception) and not isinstance(error, MemoryError)
    if not hasattr(error, "rows_learned") and (learned or not is_refusal):
        note_progress(error, part.who, learned)


def note_progress(error: BaseException, who: str, learned: int, n_rows: int | None = None) -> None:
    """Let an error say how many rows of a call were learned before it, in place of what it said before.

    >>> error = ValueError("no")
    >>> note_progress(error, "Ensemble", 2048, 5000)
    >>> note_progress(error, "Classifier", 0, 5000)
    >>> error.rows_learned, error.__notes__
    (0, ['Classifier: 0 of 5000 rows were learned before this error; the model is as after them.'])
    """
    told: Any = error
    before, note = getattr(error, "_told", None), f"{who}: {learned} {_of(n_rows)} {_TOLD}"
    if learned < 0:
        note = f"{who}: the model could not be restored, and is as it was {-learned} rows before this call."
    told.__notes__ = [*(one for one in getattr(error, "__notes__", []) if one != before), note]
    told._told, told.rows_learned = note, learned


def _of(n_rows: int | None) -> str:
    return "rows of the call" if n_rows is None else f"of {n_rows} rows"


_TOLD = "were learned before this error; the model is as after them."
