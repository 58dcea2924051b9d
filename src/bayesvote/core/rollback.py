"""Learning in chunks: a chunk is learned completely or not at all, and readers can use the model between two chunks."""

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

CHUNK = 2048  # most rows of a chunk: enough work to share among threads, few enough for the cache
_FIRST_CHUNK = 128  # rows of the first chunk, before the time per row is known; also least growth of the next ones
_SECONDS_PER_CHUNK = 0.1  # readers and Ctrl-C wait for the end of a chunk; people notice delays above this
_MOST_VALUES = 2**17  # numbers in the rows kept since the snapshot: 1 MB
_SNAPSHOT_SHARE = 0.02  # of the learning time: snapshots slow learning down by at most 2%
_MIN_SECONDS = 0.5  # of learning between two snapshots, even if they are quick
_PATIENCE = 5  # seconds after which Ctrl-C may interrupt a rollback; most repeat half a second of learning or less


class Forecast(NamedTuple):
    """Intermediate results of predictions, from which a model learns when the labels arrive later.

    The first axis of every array is the row.
    """

    losses: Array  # (n, K): ensemble loss of every label
    scores: Array  # (n, m) or (n, m, K): scores of the members; (n, 0) for models without members
    log_likelihoods: Array  # (n, f): of the labels, by each posterior
    decisions: Array  # (n, 3) or (n, 0): what a threshold learns from; see ``bayesvote.weighting.threshold``

    def part(self, first: int, last: int) -> "Forecast":
        """Return the forecasts of rows first to last, as views."""
        return Forecast(*(array[first:last] for array in self))

    def take(self, order: NDArray[np.intp]) -> "Forecast":
        """Return the forecasts in this order."""
        return Forecast(*(array[order] for array in self))

    def followed_by(self, other: "Forecast") -> "Forecast":
        """Return these forecasts, then the others."""
        return Forecast(*map(np.concatenate, zip(self, other, strict=True)))

    def packed(self) -> Array:
        """Return all arrays as one, with a row per prediction; ``Model.unpacked`` is the inverse."""
        return np.concatenate([array.reshape(len(array), -1) for array in self], axis=1)


class Chunk(NamedTuple):
    """Checked rows to learn, with their labels and weights.

    With a ``forecast`` the labels are late: the weights learn from the intermediate results of the predictions, which
    the chunk brings. For rows of weight 0, which are only predicted, learning writes the forecast. With a ``horizon``
    the labels are not late, and the weights are learned for predictions that many rows after the last label.
    """

    rows: Rows
    y: Labels
    w: Array
    forecast: Forecast | None = None
    horizon: int = 0

    def part(self, first: int, last: int) -> "Chunk":
        """Return rows first to last, as views."""
        if first == 0 and last == self.rows.n:
            return self
        forecast = None if self.forecast is None else self.forecast.part(first, last)
        return Chunk(self.rows.part(first, last), self.y[first:last], self.w[first:last], forecast, self.horizon)

    def copy(self) -> "Chunk":
        """Return a copy that shares no memory."""
        forecast = None if self.forecast is None else Forecast(*(array.copy() for array in self.forecast))
        return Chunk(self.rows.copy(), self.y.copy(), self.w.copy(), forecast, self.horizon)


# Called with a chunk that was learned and its result. Learns further things from them, but changes nothing yet: it
# returns a function that commits what was learned, which must not fail and may be called twice.
After = Callable[[Chunk, Array], Callable[[], None]]


class Learnable(Protocol):
    """A model or a bank, as ``Rollback`` sees it."""

    @property
    def lock(self) -> RWLock:
        """Reader-writer lock of the model."""

    @property
    def who(self) -> str:
        """Name in error messages."""

    @property
    def shape(self) -> Any:
        """Numbers of features and classes."""

    def snapshot(self) -> Any:
        """Copy what learning changes."""

    def revert(self, snapshot: Any) -> None:
        """Restore a snapshot, taking ownership of it."""

    def learn_chunk(self, chunk: Chunk) -> Array:
        """Learn a chunk; return its result."""

    def pipeline(self, chunks: Iterable[Chunk]) -> Iterator[Array]:
        """Learn chunks in order and yield their results; may read the next chunk before it yields a result."""


class _RowCount(threading.local):
    """Number of rows that each thread has learned."""

    rows = 0


class Rollback:
    """Undoes failed learning, from a snapshot of an earlier state and the chunks learned since.

    A rollback restores the snapshot and learns these chunks again. A new snapshot is taken once learning has taken so
    much longer than copying that the copy does not matter. So single rows do not cost a copy each.
    """

    def __init__(self) -> None:
        self._chunk_rows = _FIRST_CHUNK  # most rows of the next chunk
        self.count = _RowCount()
        self.forget()

    def __deepcopy__(self, _: Any) -> "Rollback":
        return Rollback()

    def __reduce__(self) -> Any:
        return Rollback, ()

    def forget(self) -> None:
        """Drop the snapshot, so that the next chunk takes a new one."""
        self._needs_snapshot = True
        self._snapshot: Any = None
        self._chunks: list[Chunk] = []  # learned since the snapshot
        self._n_values = 0  # numbers in their rows
        self._writes = -1  # ``lock.writes`` after the last chunk: more of them mean that others changed the state
        self._seconds = 0.0  # of learning since the snapshot
        self._max_seconds = 0.0  # after which a new snapshot may be taken
        # While something is learned: the thread's row count and the number of chunks before it.
        self._before: tuple[int, int] | None = None
        # While a chunk is added: the number of chunks before it, and the commit function of ``After``.
        self._adding: tuple[int, Callable[[], None]] | None = None

    def learn(self, part: Learnable, given: Chunk, after: After | None = None) -> Array:
        """Learn checked rows, at least one, and return the result; an error reports the number of rows learned."""
        before, shape, lock, rows = self.count.rows, part.shape, part.lock, given.rows
        if rows.width != shape.n_features:
            check_width(part.who, rows, shape.n_features)
        try:
            if rows.n <= self._chunk_rows:
                with lock.write:
                    self._begin(part, shape, lock)
                    try:
                        return self._learn_one(part, given, after, lock)
                    finally:
                        if self._before is not None:
                            self._restore_snapshot(part)
            todo, found = _Remaining(given), list[Array]()
            while todo.at < rows.n:
                with lock.write:
                    self._begin(part, shape, lock)
                    try:
                        self._learn_many(part, todo, after, lock, found)
                    finally:
                        if self._before is not None:
                            self._restore_snapshot(part)
            return np.concatenate(found)
        except BaseException as error:
            self.forget()  # the kept chunks may be views of the caller's arrays, which may change after this call
            note_progress(error, part.who, self.count.rows - before, rows.n)
            raise

    def _begin(self, part: Learnable, shape: Any, lock: RWLock) -> None:
        """Take a snapshot, unless there is one that is still valid."""
        if part.shape != shape:
            raise InputError(part.who, "", "must not be started again or widened by other threads while it learns")
        if self._needs_snapshot or self._writes + 1 != lock.writes:
            self.forget()
            start = time.perf_counter()
            self._snapshot = part.snapshot()
            self._max_seconds = max(_MIN_SECONDS, (time.perf_counter() - start) / _SNAPSHOT_SHARE)
            self._needs_snapshot = False

    def _learn_one(self, part: Learnable, chunk: Chunk, after: After | None, lock: RWLock) -> Array:
        """Learn a single chunk; cheaper than ``_learn_many`` for rows that arrive one by one."""
        start = time.perf_counter()
        self._n_values += len(chunk.rows.values)
        is_kept = self._n_values <= _MOST_VALUES
        own = chunk.copy() if is_kept else chunk
        with Uninterrupted():
            try:
                self._before = self.count.rows, len(self._chunks)
                with Yielding():
                    result = part.learn_chunk(chunk)
                self._add(own, chunk, result, after)
                self._before = None
            except BaseException:
                self._undo(part)
                raise
        self._writes = lock.writes
        self._seconds += time.perf_counter() - start
        if not is_kept or self._seconds > self._max_seconds:
            self.forget()
        return result

    def _learn_many(
        self, part: Learnable, todo: "_Remaining", after: After | None, lock: RWLock, found: list[Array]
    ) -> None:
        """Learn chunk after chunk, until another thread waits for the lock or a signal arrives."""
        begun = deque[Chunk]()

        def chunks() -> Iterator[Chunk]:
            more = True
            while more:
                begun.append(todo.take(self._chunk_rows))
                yield begun[-1]
                more = todo.at < todo.rows.n and not (lock.wanted or self._seconds > self._max_seconds)

        start = time.perf_counter()
        with Uninterrupted():
            try:
                self._before = self.count.rows, len(self._chunks)
                results = part.pipeline(chunks())
                while True:
                    with Yielding():
                        result = next(results, None)
                    if result is None:
                        break
                    chunk = begun.popleft()
                    found.append(result)
                    self._add(chunk, chunk, result, after)
                    now = time.perf_counter()
                    self._seconds += now - start
                    self._adapt_chunk_rows(chunk.rows.n, now - start)
                    start = now
                self._before = None
            except BaseException:
                self._undo(part)
                raise
        if todo.at < todo.rows.n and self._seconds <= self._max_seconds:
            self._writes = lock.writes
        else:
            self.forget()  # the kept chunks are views of the caller's arrays

    def _add(self, own: Chunk, chunk: Chunk, result: Array, after: After | None) -> None:
        """Commit a chunk: once it is in the list, a rollback keeps it."""
        commit = _nothing if after is None else after(chunk, result)
        self._adding = len(self._chunks), commit
        self._chunks.append(own)
        self.count.rows += chunk.rows.n
        commit()
        self._adding = None

    def _adapt_chunk_rows(self, n: int, seconds: float) -> None:
        """Set the rows of the next chunk from the time of the last one; they grow fourfold at most."""
        rows = int(n * _SECONDS_PER_CHUNK / max(seconds, 1e-9))  # not 0, which a coarse clock may give
        self._chunk_rows = max(1, min(CHUNK, rows, max(4 * self._chunk_rows, _FIRST_CHUNK)))

    def _undo(self, part: Learnable) -> None:
        """Restore a copy of the snapshot and learn the chunks since; leave ``_before`` set if that fails.

        It can fail when memory is short, or by Ctrl-C when it takes long. Chunks count as learned once they are in
        the list, whatever the row count says.
        """
        if self._before is None:  # nothing was begun
            return
        with Uninterrupted():
            finish_background()
            part.revert(deepcopy(self._snapshot))
            with Yielding(_PATIENCE):
                for chunk in self._chunks:
                    part.learn_chunk(chunk)
            if self._adding is not None and len(self._chunks) > self._adding[0]:
                self._adding[1]()
            rows, first = self._before
            self.count.rows = rows + _n_rows(self._chunks[first:])
            self._before = None

    def _restore_snapshot(self, part: Learnable) -> None:
        """Restore the snapshot itself after ``_undo`` failed; the chunks since are lost."""
        assert self._before is not None
        with Uninterrupted():
            try:
                finish_background()
            finally:
                part.revert(self._snapshot)
                rows, first = self._before
                self.count.rows = rows - _n_rows(self._chunks[:first])
                self._before = None


def _n_rows(chunks: list[Chunk]) -> int:
    return sum(chunk.rows.n for chunk in chunks)


def _nothing() -> None:
    pass


class _Remaining:
    """The rows of a call that are not learned yet."""

    def __init__(self, chunk: Chunk) -> None:
        self.chunk, self.rows = chunk, chunk.rows
        self.at = 0

    def take(self, most: int) -> Chunk:
        """Return the next rows and move on."""
        first, last = self.at, min(self.at + most, self.rows.n)
        self.at = last
        return self.chunk.part(first, last)


class ReportsProgress(Protocol):
    """An object with methods that learn rows."""

    @property
    def who(self) -> str:
        """Name in error messages."""

    def progress(self) -> "RowsLearned":
        """Number of rows learned so far."""


class RowsLearned(NamedTuple):
    """Number of rows that this thread has learned so far with a model.

    The model is known by its ``Rollback``: a classifier that is fitted again has another model.
    """

    rollback: Rollback | None
    rows: int

    @classmethod
    def of(cls, rollback: Rollback | None) -> "RowsLearned":
        """Return the number of rows learned so far; 0 without a model."""
        return cls(rollback, 0 if rollback is None else rollback.count.rows)

    def since(self, before: "RowsLearned") -> int:
        """Return the number of rows learned since an earlier count."""
        return self.rows - (before.rows if before.rollback is self.rollback else 0)


T = TypeVar("T", bound=ReportsProgress)
A = ParamSpec("A")
R = TypeVar("R")


def reports_progress(method: Callable[Concatenate[T, A], R]) -> Callable[Concatenate[T, A], R]:
    """Add the number of rows learned to every exception that leaves the method, wherever it was raised."""

    @wraps(method)
    def reporting(self: T, /, *args: A.args, **kwargs: A.kwargs) -> R:
        return report_rows_learned(self, method, args, kwargs, _add_rows_learned)  # type: ignore[no-any-return]

    return reporting


def _add_rows_learned(error: BaseException, part: ReportsProgress, before: RowsLearned | None) -> None:
    learned = 0 if before is None else part.progress().since(before)
    # Rejected input changes nothing, which need not be said.
    is_rejection = isinstance(error, Exception) and not isinstance(error, MemoryError)
    if not hasattr(error, "rows_learned") and (learned or not is_rejection):
        note_progress(error, part.who, learned)


def note_progress(error: BaseException, who: str, learned: int, n_rows: int | None = None) -> None:
    """Note on an exception how many rows of a call were learned before it, replacing an earlier note.

    >>> error = ValueError("no")
    >>> note_progress(error, "Ensemble", 2048, 5000)
    >>> note_progress(error, "Classifier", 0, 5000)
    >>> error.rows_learned, error.__notes__
    (0, ['Classifier: 0 of 5000 rows were learned before this error; the model is as after them.'])
    """
    noted: Any = error
    if learned < 0:
        note = f"{who}: the model could not be restored, and is as it was {-learned} rows before this call."
    else:
        rows = "rows of the call" if n_rows is None else f"of {n_rows} rows"
        note = f"{who}: {learned} {rows} were learned before this error; the model is as after them."
    earlier = getattr(error, "_rows_learned_note", None)
    noted.__notes__ = [*(one for one in getattr(error, "__notes__", []) if one != earlier), note]
    noted._rows_learned_note, noted.rows_learned = note, learned
