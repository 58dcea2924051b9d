"""Work on several cores, and in the background."""

import _thread
import os
import threading
from collections.abc import Callable
from contextlib import suppress
from functools import lru_cache, partial
from queue import SimpleQueue
from typing import Any, Generic, TypeVar, cast
from weakref import ref

from bayesvote.core.lock import Uninterrupted

_T = TypeVar("_T")
_DEEPEST = 1000  # more nested sections than there ever are; leaving none has no effect
_PATIENCE = 10.0  # seconds for a thread to start, which takes milliseconds; short of memory, it may never start


def n_threads() -> int:
    """Return the number of threads to use: BAYESVOTE_THREADS, or the cores available to this process."""
    given = os.environ.get("BAYESVOTE_THREADS", "")
    if given.isdecimal() and int(given) > 0:
        return int(given)
    return len(os.sched_getaffinity(0)) if hasattr(os, "sched_getaffinity") else os.cpu_count() or 1


class ThreadJob(Generic[_T]):
    """A function call in another thread, and its result.

    Finishing a job allocates no memory. Otherwise it could fail, and the waiting thread would wait forever, as with
    futures of the standard library.
    """

    def __init__(self, work: Callable[[], _T]) -> None:
        self.work = work
        self.value: _T | None = None
        self.error: BaseException | None = None
        self.end = threading.Lock()  # released when the job has finished
        self.end.acquire()

    def done(self) -> bool:
        """Return True once the job has finished."""
        return not self.end.locked()

    def wait(self) -> None:
        """Wait until the job has finished, without allocating memory, so that waiting cannot fail."""
        self.end.acquire()
        self.end.release()

    def result(self) -> _T:
        """Wait for the job and return its result, or raise its exception."""
        self.wait()
        if self.error is not None:
            raise self.error
        return cast(_T, self.value)


def _do(jobs: "SimpleQueue[ThreadJob[Any]]", begun: threading.Lock) -> None:
    """Run one job after the other, until the process ends."""
    begun.release()
    while True:
        job = jobs.get()
        try:
            job.value = job.work()
        except BaseException as error:
            job.error = error
        finally:
            job.end.release()
            del job


class _Workers:
    """Threads that run jobs in order."""

    def __init__(self) -> None:
        self._n, self._lock = 0, threading.Lock()
        self._jobs = SimpleQueue[ThreadJob[Any]]()

    def hire(self, n: int) -> None:
        """Start threads until there are n."""
        with self._lock:
            while self._n < n:
                begun = threading.Lock()
                begun.acquire()
                # Not threading.Thread: its start waits forever for a thread that cannot start for lack of memory.
                _thread.start_new_thread(_do, (self._jobs, begun))
                if not begun.acquire(timeout=_PATIENCE):
                    raise MemoryError("a thread could not begin")
                self._n += 1

    def put(self, job: ThreadJob[Any]) -> None:
        self._jobs.put(job)


def parallel_for(work: Callable[[int, int], None], n_items: int, block: int = 1, *, worth: bool = True) -> None:
    """Run ``work(first, last)`` over the items, on all cores if ``worth``, each with a number of whole blocks.

    The division of the items must not change the results. These plain threads, unlike OpenMP, can be used from several
    threads at once and after a fork.
    """
    n_blocks = -(-n_items // block)
    n_shares = min(n_threads(), n_blocks) if worth else 1
    if n_shares <= 1:
        work(0, n_items)
        return
    edges = [min(n_items, block * (n_blocks * k // n_shares)) for k in range(n_shares + 1)]
    others = [ThreadJob(partial(work, edges[k], edges[k + 1])) for k in range(1, n_shares)]
    workers, n_begun = _pool(), 0
    workers.hire(n_shares - 1)
    with Uninterrupted():  # a signal must not leave threads running on arrays that the caller may free
        try:
            for other in others:
                workers.put(other)
                n_begun += 1
            work(edges[0], edges[1])
        finally:
            while n_begun:
                n_begun -= 1
                others[n_begun].wait()
    for other in others:
        other.result()


@lru_cache(maxsize=1)
def _pool() -> _Workers:
    return _Workers()


def in_background(work: Callable[[], _T]) -> ThreadJob[_T]:
    """Start work in the background thread, which runs one job after the other.

    While that thread works for another caller, the work is done at once in this thread. Otherwise a member that uses
    the library itself could wait for the job that it is part of.
    """
    return _background().submit(work)


def finish_background() -> None:
    """Wait until all background jobs of this thread have finished."""
    if _background.cache_info().currsize:
        with Uninterrupted():
            _background().finish()


class _Background:
    """A thread that works for one caller at a time."""

    def __init__(self) -> None:
        self._worker = _Workers()
        self._lock = threading.Lock()
        self._owner = 0  # the calling thread, or the last one
        self._last: Callable[[], ThreadJob[Any] | None] = lambda: None  # weak reference to the last job

    def submit(self, work: Callable[[], _T]) -> ThreadJob[_T]:
        job, me = ThreadJob(work), threading.get_ident()
        reference = ref(job)
        self._worker.hire(1)
        with self._lock:
            last = self._last()
            if self._owner == me or last is None or last.done():
                self._owner = me  # first, because a signal may arrive after the next line
                self._worker.put(job)
                self._last = reference
                return job
        try:
            job.value = work()
        except Exception as error:
            job.error = error
        job.end.release()
        return job

    def finish(self) -> None:
        if self._owner != threading.get_ident():
            return
        last = self._last()
        try:
            after_all = ThreadJob(_nothing)
            self._worker.put(after_all)
            last = after_all
        except MemoryError:
            pass  # wait for the last job instead
        if last is not None:
            last.wait()


def _nothing() -> None:
    pass


@lru_cache(maxsize=1)
def _background() -> _Background:
    return _Background()


def _forget_threads() -> None:
    _pool.cache_clear()
    _background.cache_clear()


def _let_signals_through() -> None:
    """Leave the uninterrupted sections of the parent's main thread, which no code of the child leaves."""
    for _ in range(_DEEPEST):
        with suppress(BaseException):  # raised by a signal that the parent got before the fork
            Uninterrupted().__exit__()


if hasattr(os, "register_at_fork"):  # a forked process has none of its parent's threads
    os.register_at_fork(after_in_child=_forget_threads)
    os.register_at_fork(after_in_child=_let_signals_through)
