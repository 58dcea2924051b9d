"""Work on several cores, and in the background."""

import os
import threading
from collections.abc import Callable
from concurrent.futures import Future, ThreadPoolExecutor, wait
from contextlib import suppress
from functools import lru_cache
from typing import Any, TypeVar
from weakref import ref

from bayesvote._guard import Uninterrupted

_T = TypeVar("_T")
_DEEPEST = 1000


def n_threads() -> int:
    """How many threads may be used: BAYESVOTE_THREADS, or the cores this process may run on."""
    given = os.environ.get("BAYESVOTE_THREADS", "")
    if given.isdecimal() and int(given) > 0:
        return int(given)
    return len(os.sched_getaffinity(0)) if hasattr(os, "sched_getaffinity") else os.cpu_count() or 1


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
    with Uninterrupted():  # or the others would go on with arrays that nobody guards any more
        others = list[Future[None]]()
        try:
            for k in range(1, n_shares):
                others.append(_pool(n_shares - 1).submit(work, edges[k], edges[k + 1]))
            work(edges[0], edges[1])
        finally:
            wait(others)
    for other in others:
        other.result()


@lru_cache(maxsize=1)
def _pool(n_workers: int) -> ThreadPoolExecutor:
    return ThreadPoolExecutor(n_workers, thread_name_prefix="bayesvote")


def in_background(work: Callable[[], _T]) -> Future[_T]:
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
        self._worker = ThreadPoolExecutor(1, thread_name_prefix="bayesvote-background")
        self._lock = threading.Lock()
        self._owner = 0  # the thread that it works for, or did last
        self._last: Callable[[], Future[Any] | None] = lambda: None  # job, which nobody else keeps once it is done

    def submit(self, work: Callable[[], _T]) -> Future[_T]:
        with self._lock:
            last, me = self._last(), threading.get_ident()
            if self._owner == me or last is None or last.done():
                self._owner = me  # first, as a signal may come after the next line
                job = self._worker.submit(work)
                self._last = ref(job)
                return job
        here = Future[_T]()
        try:
            here.set_result(work())
        except Exception as error:
            here.set_exception(error)
        return here

    def finish(self) -> None:
        if self._owner == threading.get_ident():
            self._worker.submit(lambda: None).result()


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
