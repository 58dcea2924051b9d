"""The learning thread of a folder: it commits all waiting requests to the journal, then learns them as one chunk."""

import asyncio
import logging
import queue
import sqlite3
import threading
import time
from collections.abc import Callable, Iterator
from concurrent.futures import Future as ThreadFuture
from concurrent.futures import ThreadPoolExecutor
from contextlib import suppress
from dataclasses import dataclass, field
from typing import Any

from bayesvote.apps.service.batch import AnyTask, TaskBatch
from bayesvote.apps.service.folder import Folder, snapshot_of
from bayesvote.apps.service.journal import Snapshot
from bayesvote.apps.service.models import CHUNK, ServedModel, from_request
from bayesvote.apps.service.types import Limits, ModelRequest, RequestError
from bayesvote.io.model_file import dumps

log = logging.getLogger("bayesvote.serve")
_TICK = 1.0  # seconds between two checks for expired rows
_LONGEST_WAIT = 0.01  # seconds

Call = Callable[[], Any]


@dataclass
class Counters:
    """Counts since the start of the thread."""

    commits: int = 0
    snapshots: int = 0
    disk_errors: int = 0
    grouped: int = 0  # requests in all commits
    disk_error: str = ""  # of the latest commit


@dataclass
class Policy:
    """Settings of the learning thread: rows between snapshots, pruning of the journal, and limits."""

    snapshot_every: int = 10_000
    prune: bool = False
    limits: Limits = field(default_factory=Limits)


class LearningThread(threading.Thread):
    """The only thread that writes to the folder and its journal."""

    def __init__(self, folder: Folder, policy: Policy) -> None:
        super().__init__(name="bayesvote-learner", daemon=True)
        self.folder, self.policy = folder, policy
        self.models = {served.name: served for served in folder.open_models()}
        self.counters = Counters()
        self._queue: queue.SimpleQueue[list[AnyTask] | tuple[Call, ThreadFuture[Any]] | None] = queue.SimpleQueue()
        self._open = 0  # requests that are not answered yet
        self._batch: list[AnyTask] = []
        self._loop: asyncio.AbstractEventLoop
        self._expected, self._waits_until = 0, 0.0
        self._now = folder.journal.latest()
        self._writer = ThreadPoolExecutor(1, thread_name_prefix="bayesvote-snapshots")
        self._writing: set[int] = set()

    # Called from the event loop

    def submit(self, task: AnyTask, answer: Callable[[Any], None]) -> None:
        """Add a task. ``answer`` is called with the result or the error when the task is on disk and learned."""
        self._check_room()
        if not self._batch:  # one batch for all tasks of this iteration of the event loop
            self._loop = asyncio.get_running_loop()
            self._loop.call_soon(self._hand_over)
        task.answer = answer
        self._batch.append(task)
        self._open += 1

    async def do(self, task: AnyTask) -> Any:
        """Add a task, and wait until it is on disk and learned."""
        future = asyncio.get_running_loop().create_future()

        def answer(result: Any) -> None:
            if future.done():  # it was cancelled
                return
            if isinstance(result, Exception):
                future.set_exception(result)
            else:
                future.set_result(result)

        self.submit(task, answer)
        return await future

    def _hand_over(self) -> None:
        self._queue.put(self._batch)
        self._batch = []

    def _deliver(self, results: list[tuple[AnyTask, Any]]) -> None:
        self._open -= len(results)
        for task, result in results:
            task.answer(result)

    async def call(self, work: Call) -> Any:
        """Run a function in the learning thread, between two chunks."""
        self._check_room()
        promise: ThreadFuture[Any] = ThreadFuture()
        self._queue.put((work, promise))
        return await asyncio.wrap_future(promise)

    def _check_room(self) -> None:
        if not self.is_alive():
            raise RequestError(503, "the service", "is stopping")
        if self._open >= self.policy.limits.waiting:
            raise RequestError(
                503, "the service", "has too many requests that wait for the disk", do="Retry in a second."
            )

    def stop(self, seconds: float) -> bool:
        """Finish the waiting tasks, save snapshots and close the folder. Return False if this took too long."""
        self._queue.put(None)
        self.join(seconds)
        return not self.is_alive()

    # The thread

    def run(self) -> None:
        """Process tasks until the thread is stopped."""
        tick = time.monotonic() + _TICK
        running = True
        while running:
            tasks, calls, running = self._waiting(max(0.0, tick - time.monotonic()))
            for part in _portions(tasks):
                self._together(part)
            for work, promise in calls:
                _fulfil(work, promise)
            if time.monotonic() >= tick:
                self._tidy()
                tick = time.monotonic() + _TICK
        self._close()

    def _waiting(self, seconds: float) -> tuple[list[AnyTask], list[tuple[Call, "ThreadFuture[Any]"]], bool]:
        """Return the waiting tasks, up to a chunk."""
        tasks: list[AnyTask] = []
        rows = 0
        try:
            given = self._queue.get(timeout=seconds) if seconds else self._queue.get_nowait()
            while True:
                if given is None:
                    return tasks, [], False
                if isinstance(given, tuple):  # after the tasks before it
                    return tasks, [given], True
                tasks += given
                rows += sum(task.size for task in given)
                if rows >= CHUNK:
                    break
                given = self._more(len(tasks))
        except queue.Empty:
            pass
        return tasks, [], True

    def _more(self, count: int) -> Any:
        """Return further tasks.

        Clients that have just got an answer are likely to send the next request soon, and one commit for all is cheaper
        than two. So wait for them, but no longer than the last batch took.
        """
        left = self._waits_until - time.monotonic()
        if count >= self._expected or left <= 0:
            return self._queue.get_nowait()
        return self._queue.get(timeout=left)

    def _together(self, tasks: list[AnyTask]) -> None:
        results: list[tuple[AnyTask, Any]]
        start = time.monotonic()
        try:
            results = self._done(tasks)
        except Exception as error:
            reason = self._reason(error)
            results = [(task, reason) for task in tasks]
        with suppress(RuntimeError):  # the loop is closed
            self._loop.call_soon_threadsafe(self._deliver, results)
        self._expected = max(len(tasks), self._open)
        now = time.monotonic()
        self._waits_until = now + min(now - start, _LONGEST_WAIT)

    def _done(self, tasks: list[AnyTask]) -> list[tuple[AnyTask, Any]]:
        """Write tasks to the journal and learn them. If this fails before the commit, nothing is changed."""
        batches: dict[int, TaskBatch] = {}
        for task in tasks:
            batches.setdefault(task.served.number, TaskBatch(task.served, [])).tasks.append(task)
        for batch in batches.values():
            if batch.served.failed:
                batch.results = [(task, _unusable(503, batch.served)) for task in batch.tasks]
            else:
                batch.prepare(self.folder.journal)
        self._now = max(self._now, time.time())  # if the clock is set back, rows are kept longer
        if any(batch.writes for batch in batches.values()):
            with self.folder.journal.transaction():
                for batch in batches.values():
                    batch.write(self.folder.journal, self._now, self.policy.limits.pending)
            self.counters.commits += 1
            self.counters.grouped += len(tasks)
            self.counters.disk_error = ""
        for batch in batches.values():
            self._learn(batch)
        return [result for batch in batches.values() for result in batch.results]

    def _learn(self, batch: TaskBatch) -> None:
        served = batch.served
        try:
            batch.learn()
        except Exception:
            served.failed = (
                "failed to learn rows, which are safe in the journal: see the log for the reason, "
                "and restart the service to learn them"
            )
            log.exception("a model failed to learn", extra={"model": served.name})
            batch.results = [(task, _unusable(500, served)) for task in batch.tasks]
            return
        if served.rows - served.saved >= self.policy.snapshot_every and served.number not in self._writing:
            self._snapshot(served)

    def _reason(self, error: Exception) -> RequestError:
        """Return the HTTP error for an exception before the commit."""
        if isinstance(error, sqlite3.Error | OSError):
            self.counters.disk_errors += 1
            if self.counters.disk_error != str(error):  # log it once
                log.error("disk error", extra={"reason": str(error)})
            self.counters.disk_error = str(error)
            do = "Nothing was changed; retry later."
            return RequestError(507, "the folder", f"could not be written to: {error}", do=do)
        log.exception("a request failed")
        return RequestError(500, "the request", "failed", do="Nothing was changed. See the log for the reason.")

    # Snapshots and expired rows

    def _snapshot(self, served: ServedModel) -> None:
        """Copy the model in this thread, and write the snapshot in another."""
        snapshot, data = snapshot_of(served), dumps(served.estimator)
        self._writing.add(served.number)

        def write() -> None:
            try:
                self.folder.write_file(snapshot, data)
            except OSError as error:
                log.error("a snapshot failed", extra={"model": served.name, "reason": str(error)})
                self._queue.put((lambda: self._written(served, None), ThreadFuture()))
            else:
                self._queue.put((lambda: self._written(served, snapshot), ThreadFuture()))

        self._writer.submit(write)

    def _written(self, served: ServedModel, snapshot: Snapshot | None) -> None:
        self._writing.discard(served.number)
        if snapshot is not None and self.models.get(served.name) is served:
            try:
                self.folder.note(served, snapshot, prune=self.policy.prune)
            except sqlite3.Error as error:
                self._reason(error)
                return
            self.counters.snapshots += 1
            log.info("saved a snapshot", extra={"model": served.name, "rows": snapshot.rows})

    def _tidy(self) -> None:
        """Drop rows whose labels did not arrive in time, and prune the journal."""
        limits, journal = self.policy.limits, self.folder.journal
        self._now = max(self._now, time.time())
        numbers = {served.number: served for served in self.models.values()}
        try:
            if (
                any(served.pending for served in numbers.values())
                and journal.oldest() < self._now - limits.pending_seconds
            ):
                with journal.transaction():
                    dropped = journal.expire(self._now - limits.pending_seconds)
                for number, count in dropped.items():
                    numbers[number].pending -= count
                    numbers[number].expired += count
            for served in numbers.values():
                if self.policy.prune:
                    self.folder.prune(served)
        except (sqlite3.Error, OSError) as error:
            self._reason(error)

    def _close(self) -> None:
        self._writer.shutdown()
        while True:  # tasks of the writer, and requests that came too late
            try:
                given = self._queue.get_nowait()
            except queue.Empty:
                break
            if isinstance(given, tuple):
                _fulfil(*given)
            elif given is not None:
                late = RequestError(503, "the service", "is stopping")
                self._loop.call_soon_threadsafe(self._deliver, [(task, late) for task in given])
        for served in self.models.values():
            if served.rows > served.saved and not served.failed:
                try:
                    snapshot = self.folder.write(served, dumps(served.estimator))
                    self.folder.note(served, snapshot, prune=self.policy.prune)
                    log.info("saved a snapshot", extra={"model": served.name, "rows": served.rows})
                except (sqlite3.Error, OSError) as error:
                    log.error("a snapshot failed", extra={"model": served.name, "reason": str(error)})
        self.folder.close()

    # Creation and retirement of models, called in this thread

    def create(self, name: str, asked: ModelRequest, spec: str) -> tuple[ServedModel, bool]:
        """Create a model; return it and True, or the model that an equal request has created and False."""
        known = self.models.get(name)
        if known is not None:
            if self.folder.journal.spec(known.number) == spec:
                return known, False
            raise RequestError(409, f"the model {name!r}", "exists, with another definition", do="DELETE it first.")
        try:
            served = self.folder.add(name, from_request(asked, self.policy.limits), spec)
        except (sqlite3.Error, OSError) as error:
            raise self._reason(error) from error
        self.models[name] = served
        log.info("created a model", extra={"model": name})
        return served, True

    def retire(self, name: str) -> None:
        """Stop serving a model."""
        served = self.models.get(name)
        if served is None:
            raise RequestError(404, f"the model {name!r}", "does not exist")
        try:
            self.folder.retire(served)
        except (sqlite3.Error, OSError) as error:
            raise self._reason(error) from error
        del self.models[name]
        served.failed = "was retired"
        log.info("retired a model", extra={"model": name})


def _unusable(status: int, served: ServedModel) -> RequestError:
    return RequestError(status, f"the model {served.name!r}", served.failed)


def _portions(tasks: list[AnyTask]) -> Iterator[list[AnyTask]]:
    """Split tasks, in order, into parts of about one chunk of rows."""
    part: list[AnyTask] = []
    rows = 0
    for task in tasks:
        part.append(task)
        rows += task.size
        if rows >= CHUNK:
            yield part
            part, rows = [], 0
    if part:
        yield part


def _fulfil(work: Call, promise: "ThreadFuture[Any]") -> None:
    if not promise.set_running_or_notify_cancel():
        return
    try:
        promise.set_result(work())
    except Exception as error:
        if not isinstance(error, RequestError):
            log.exception("a request failed")
        promise.set_exception(error)
