"""The learning thread of a folder: all requests that wait are journalled in one commit, then learned as one chunk."""

import asyncio
import logging
import queue
import sqlite3
import threading
import time
from collections.abc import Callable, Iterator
from concurrent.futures import Future as Promise
from concurrent.futures import ThreadPoolExecutor
from contextlib import suppress
from dataclasses import dataclass, field
from typing import Any

from bayesvote.apps.service.folder import Folder, snapshot_of
from bayesvote.apps.service.group import AnyJob, Group
from bayesvote.apps.service.journal import Snapshot
from bayesvote.apps.service.models import CHUNK, Served, from_request
from bayesvote.apps.service.types import Limits, ModelRequest, Refusal
from bayesvote.io.model_file import dumps

log = logging.getLogger("bayesvote.serve")
_TICK = 1.0  # seconds between two looks at what has expired
_LONGEST_STAY = 0.01  # seconds

Call = Callable[[], Any]


@dataclass
class Counters:
    """What the thread has done since it was started."""

    commits: int = 0
    snapshots: int = 0
    disk_errors: int = 0
    grouped: int = 0  # requests in all commits
    trouble: str = ""  # why the disk refused the last commit


@dataclass
class Policy:
    """How often snapshots are taken, and whether the journal before them goes."""

    snapshot_every: int = 10_000
    prune: bool = False
    limits: Limits = field(default_factory=Limits)


class Learner(threading.Thread):
    """Owns the folder and its journal; nobody else writes."""

    def __init__(self, folder: Folder, policy: Policy) -> None:
        super().__init__(name="bayesvote-learner", daemon=True)
        self.folder, self.policy = folder, policy
        self.models = {served.name: served for served in folder.open_models()}
        self.counters = Counters()
        self._queue: queue.SimpleQueue[list[AnyJob] | tuple[Call, Promise[Any]] | None] = queue.SimpleQueue()
        self._open = 0  # requests that wait
        self._batch: list[AnyJob] = []
        self._loop: asyncio.AbstractEventLoop
        self._expected, self._stays_until = 0, 0.0
        self._now = folder.journal.latest()
        self._writer = ThreadPoolExecutor(1, thread_name_prefix="bayesvote-snapshots")
        self._writing: set[int] = set()

    # Called from the event loop

    def submit(self, job: AnyJob, answer: Callable[[Any], None]) -> None:
        """Take a request; ``answer`` is called with the result or the refusal once it is durable and learned."""
        self._check_room()
        if not self._batch:  # all requests that this turn of the event loop brings go together
            self._loop = asyncio.get_running_loop()
            self._loop.call_soon(self._hand_over)
        job.answer = answer
        self._batch.append(job)
        self._open += 1

    async def do(self, job: AnyJob) -> Any:
        """Wait until a request is durable and learned."""
        future = asyncio.get_running_loop().create_future()

        def answer(result: Any) -> None:
            if future.done():  # nobody waits any more
                return
            if isinstance(result, Exception):
                future.set_exception(result)
            else:
                future.set_result(result)

        self.submit(job, answer)
        return await future

    def _hand_over(self) -> None:
        self._queue.put(self._batch)
        self._batch = []

    def _deliver(self, results: list[tuple[AnyJob, Any]]) -> None:
        self._open -= len(results)
        for job, result in results:
            job.answer(result)

    async def call(self, work: Call) -> Any:
        """Run something in the learning thread, between two chunks."""
        self._check_room()
        promise: Promise[Any] = Promise()
        self._queue.put((work, promise))
        return await asyncio.wrap_future(promise)

    def _check_room(self) -> None:
        if not self.is_alive():
            raise Refusal(503, "the service is stopping.")
        if self._open >= self.policy.limits.waiting:
            raise Refusal(503, "too many requests wait for the disk. Try again in a second.")

    def stop(self, seconds: float) -> bool:
        """Finish what waits, take snapshots, close the folder; tell whether that was done in time."""
        self._queue.put(None)
        self.join(seconds)
        return not self.is_alive()

    # The thread

    def run(self) -> None:
        """Take what waits, until told to stop."""
        tick = time.monotonic() + _TICK
        going = True
        while going:
            jobs, calls, going = self._waiting(max(0.0, tick - time.monotonic()))
            for part in _portions(jobs):
                self._together(part)
            for work, promise in calls:
                _fulfil(work, promise)
            if time.monotonic() >= tick:
                self._tidy()
                tick = time.monotonic() + _TICK
        self._close()

    def _waiting(self, seconds: float) -> tuple[list[AnyJob], list[tuple[Call, "Promise[Any]"]], bool]:
        """All that waits, up to a chunk."""
        jobs: list[AnyJob] = []
        rows = 0
        try:
            given = self._queue.get(timeout=seconds) if seconds else self._queue.get_nowait()
            while True:
                if given is None:
                    return jobs, [], False
                if isinstance(given, tuple):  # what came before it goes first
                    return jobs, [given], True
                jobs += given
                rows += sum(job.size for job in given)
                if rows >= CHUNK:
                    break
                given = self._more(len(jobs))
        except queue.Empty:
            pass
        return jobs, [], True

    def _more(self, count: int) -> Any:
        """What else waits.

        Who was answered just now is likely to ask again, and a commit for all is cheaper than two: stay for them, but
        no longer than the last one took, with all that goes with it.
        """
        left = self._stays_until - time.monotonic()
        if count >= self._expected or left <= 0:
            return self._queue.get_nowait()
        return self._queue.get(timeout=left)

    def _together(self, jobs: list[AnyJob]) -> None:
        results: list[tuple[AnyJob, Any]]
        start = time.monotonic()
        try:
            results = self._done(jobs)
        except Exception as error:
            reason = self._reason(error)
            results = [(job, reason) for job in jobs]
        with suppress(RuntimeError):  # if the loop was closed, nobody waits
            self._loop.call_soon_threadsafe(self._deliver, results)
        self._expected = max(len(jobs), self._open)
        now = time.monotonic()
        self._stays_until = now + min(now - start, _LONGEST_STAY)

    def _done(self, jobs: list[AnyJob]) -> list[tuple[AnyJob, Any]]:
        """Journal and learn; nothing is changed if that fails before the commit."""
        groups: dict[int, Group] = {}
        for job in jobs:
            groups.setdefault(job.served.number, Group(job.served, [])).jobs.append(job)
        for group in groups.values():
            if group.served.failed:
                group.results = [(job, Refusal(503, group.served.failed)) for job in group.jobs]
            else:
                group.prepare(self.folder.journal)
        self._now = max(self._now, time.time())  # a clock that is set back keeps rows longer, never shorter
        if any(group.writes for group in groups.values()):
            with self.folder.journal.transaction():
                for group in groups.values():
                    group.write(self.folder.journal, self._now, self.policy.limits.pending)
            self.counters.commits += 1
            self.counters.grouped += len(jobs)
            self.counters.trouble = ""
        for group in groups.values():
            self._learn(group)
        return [result for group in groups.values() for result in group.results]

    def _learn(self, group: Group) -> None:
        served = group.served
        try:
            group.learn()
        except Exception:
            served.failed = (
                f"the model {served.name} could not learn rows that are safe in the journal. "
                "Restart the service to go on from there; the log has the reason."
            )
            log.exception("a model failed to learn", extra={"model": served.name})
            group.results = [(job, Refusal(500, served.failed)) for job in group.jobs]
            return
        if served.rows - served.saved >= self.policy.snapshot_every and served.number not in self._writing:
            self._snapshot(served)

    def _reason(self, error: Exception) -> Refusal:
        """What to answer when nothing could be done."""
        if isinstance(error, sqlite3.Error | OSError):
            self.counters.disk_errors += 1
            if self.counters.trouble != str(error):  # once, however many requests it meets
                log.error("the disk refuses", extra={"reason": str(error)})
            self.counters.trouble = str(error)
            return Refusal(507, f"the folder cannot be written to: {error}. Nothing was changed; try again later.")
        log.exception("a request failed")
        return Refusal(500, "the request failed; the log has the reason. Nothing was changed.")

    # Snapshots, and what is old

    def _snapshot(self, served: Served) -> None:
        """Take a snapshot here, and write it elsewhere."""
        snapshot, data = snapshot_of(served), dumps(served.estimator)
        self._writing.add(served.number)

        def write() -> None:
            try:
                self.folder.write_file(snapshot, data)
            except OSError as error:
                log.error("a snapshot failed", extra={"model": served.name, "reason": str(error)})
                self._queue.put((lambda: self._written(served, None), Promise()))
            else:
                self._queue.put((lambda: self._written(served, snapshot), Promise()))

        self._writer.submit(write)

    def _written(self, served: Served, snapshot: Snapshot | None) -> None:
        self._writing.discard(served.number)
        if snapshot is not None and self.models.get(served.name) is served:
            try:
                self.folder.note(served, snapshot, prune=self.policy.prune)
            except sqlite3.Error as error:
                self._reason(error)
                return
            self.counters.snapshots += 1
            log.info("took a snapshot", extra={"model": served.name, "rows": snapshot.rows})

    def _tidy(self) -> None:
        """Drop rows whose labels did not come in time, and what pruning lets go of."""
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
        while True:  # what the writer has left, and who came too late
            try:
                given = self._queue.get_nowait()
            except queue.Empty:
                break
            if isinstance(given, tuple):
                _fulfil(*given)
            elif given is not None:
                late = Refusal(503, "the service is stopping.")
                self._loop.call_soon_threadsafe(self._deliver, [(job, late) for job in given])
        for served in self.models.values():
            if served.rows > served.saved and not served.failed:
                try:
                    snapshot = self.folder.write(served, dumps(served.estimator))
                    self.folder.note(served, snapshot, prune=self.policy.prune)
                    log.info("took a snapshot", extra={"model": served.name, "rows": served.rows})
                except (sqlite3.Error, OSError) as error:
                    log.error("a snapshot failed", extra={"model": served.name, "reason": str(error)})
        self.folder.close()

    # Models; these run in the thread

    def create(self, name: str, asked: ModelRequest, spec: str) -> tuple[Served, bool]:
        """Make a model, or find the one that was made from the same words; tell whether it is new."""
        known = self.models.get(name)
        if known is not None:
            if self.folder.journal.spec(known.number) == spec:
                return known, False
            raise Refusal(409, f"there is a model {name!r} already, and it is another one. DELETE it first.")
        try:
            served = self.folder.add(name, from_request(asked, self.policy.limits), spec)
        except (sqlite3.Error, OSError) as error:
            raise self._reason(error) from error
        self.models[name] = served
        log.info("made a model", extra={"model": name})
        return served, True

    def retire(self, name: str) -> None:
        """Serve a model no longer."""
        served = self.models.get(name)
        if served is None:
            raise Refusal(404, f"there is no model {name!r}.")
        try:
            self.folder.retire(served)
        except (sqlite3.Error, OSError) as error:
            raise self._reason(error) from error
        del self.models[name]
        served.failed = f"the model {name!r} was retired."
        log.info("retired a model", extra={"model": name})


def _portions(jobs: list[AnyJob]) -> Iterator[list[AnyJob]]:
    """Requests in their order, in parts that are about a chunk together."""
    part: list[AnyJob] = []
    rows = 0
    for job in jobs:
        part.append(job)
        rows += job.size
        if rows >= CHUNK:
            yield part
            part, rows = [], 0
    if part:
        yield part


def _fulfil(work: Call, promise: "Promise[Any]") -> None:
    if not promise.set_running_or_notify_cancel():
        return
    try:
        promise.set_result(work())
    except Exception as error:
        if not isinstance(error, Refusal):
            log.exception("a request failed")
        promise.set_exception(error)
