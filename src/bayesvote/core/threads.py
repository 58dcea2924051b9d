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
_DEEPEST = 1000
_PATIENCE = 10.0  # seconds for a thread to begin


def n_threads() -> int:
    """How many threads may be used: BAYESVOTE_THREADS, or the cores this process may run on."""
    given = os.environ.get("BAYESVOTE_THREADS", "")
    if given.isdecimal() and int(given) > 0:
        return int(given)
    return len(os.sched_getaffinity(0)) if hasattr(os, "sched_getaffinity") else os.cpu_count() or 1


class Job(Generic[_T]):
    """Work for another thread, and what came of it.

    Ending one asks for no memory: whoever waits for it would wait for ever if that could fail, as in the standard
    library it can.
    """

    def __init__(self, work: Callable[[], _T]) -> None:
        self.work = work
        self.value: _T | None = None
        self.error: BaseException | None = None
        self.end = threading.Lock()  # free once it is done
        self.end.acquire()

    def done(self) -> bool:
        """Whether it is."""
        return not self.end.locked()

    def wait(self) -> None:
        """Wait until it is done, asking for no memory: whoever failed to would leave it at work."""
        self.end.acquire()
        self.end.release()

    def result(self) -> _T:
        """What came of it, once it is done."""
        self.wait()
        if self.error is not None:
            raise self.error
        return cast(_T, self.value)


def _do(jobs: "SimpleQueue[Job[Any]]", begun: threading.Lock) -> None:
    """Do one job after the other, until the process ends."""
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
    """Threads that take jobs in their order."""

    def __init__(self) -> None:
        self._n, self._lock = 0, threading.Lock()
        self._jobs = SimpleQueue[Job[Any]]()

    def hire(self, n: int) -> None:
        """See that there are so many."""
        with self._lock:
            while self._n < n:
                begun = threading.Lock()
                begun.acquire()
                # Not threading.Thread, whose start waits for ever for a thread that found no memory to begin.
                _thread.start_new_thread(_do, (self._jobs, begun))
                if not begun.acquire(timeout=_PATIENCE):
                    raise MemoryError("a thread could not begin")
                self._n += 1

    def put(self, job: Job[Any]) -> None:
        self._jobs.put(job)


def parallel_for(work: Callable[[int, int], None], n_items: int, block: int = 1, *, worth: bool = True) -> None:
    """Run ``work(first, last)`` over the items, on all cores if it is worth it, each with a number of whole blocks.

    Plain threads around kernels without the interpreter lock can be used
    from several threads at once and after a fork. How the items are divided must not change the results.
    """
    n_blocks = -(-n_items // block)
    n_shares = min(n_threads(), n_blocks) if worth else 1
    if n_shares <= 1:
        work(0, n_items)
        return
    edges = [min(n_items, block * (n_blocks * k // n_shares)) for k in range(n_shares + 1)]
    others = [Job(partial(work, edges[k], edges[k + 1])) for k in range(1, n_shares)]
    workers, n_begun = _pool(), 0
    workers.hire(n_shares - 1)
    with Uninterrupted():  # or the others would go on with arrays that nobody guards any more
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


def in_background(work: Callable[[], _T]) -> Job[_T]:
    """Start work in another thread, always the same one, which takes one job after the other.

    While it has jobs of another thread the work is done here and now: a member may use the library itself, in the
    background or in threads of its own, and would wait for the very job that it is part of.
    """
    return _background().submit(work)


def finish_background() -> None:
    """Wait until everything that this thread has started in the background is done."""
    if _background.cache_info().currsize:
        with Uninterrupted():
            _background().finish()


class _Background:
    """A thread that works for one other at a time."""

    def __init__(self) -> None:
        self._worker = _Workers()
        self._lock = threading.Lock()
        self._owner = 0  # the thread that it works for, or did last
        self._last: Callable[[], Job[Any] | None] = lambda: None  # job, which nobody else keeps once it is done

    def submit(self, work: Callable[[], _T]) -> Job[_T]:
        job, me = Job(work), threading.get_ident()
        reference = ref(job)
        self._worker.hire(1)
        with self._lock:
            last = self._last()
            if self._owner == me or last is None or last.done():
                self._owner = me  # first, as a signal may come after the next line
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
            after_all = Job(_nothing)
            self._worker.put(after_all)
            last = after_all
        except MemoryError:
            pass  # what was begun last will do
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
    """Leave the sections of the parent's main thread, which hold signals back and which nobody else would leave."""
    for _ in range(_DEEPEST):  # more than that are nowhere nested, and to leave none does nothing
        with suppress(BaseException):  # of a signal that was sent to the parent, before the fork
            Uninterrupted().__exit__()


if hasattr(os, "register_at_fork"):  # a forked process has none of its parent's threads
    os.register_at_fork(after_in_child=_forget_threads)
    os.register_at_fork(after_in_child=_let_signals_through)
