"""Reader-writer lock of a model, and sections that no signal interrupts.

This code is compiled, because a signal handler or another thread can run between any two steps of Python code, but not
within a compiled function that holds the interpreter lock.
"""

import os
import threading

from cpython.exc cimport PyErr_CheckSignals
from cpython.pythread cimport PyThread_get_thread_ident

cdef extern from *:
    """
    #include <signal.h>
    #include <time.h>

    /* Signals whose handlers may raise an exception in the main thread. While they are held back, they are recorded,
     * and sent again once at the end. In a yielding section, which may never end, the second signal of a kind is
     * delivered. */
    #ifdef _WIN32
    enum { N_HELD = 2 };
    static const int held_signals[N_HELD] = {SIGINT, SIGTERM};
    typedef void (*handler_type)(int);
    static handler_type handlers_before[N_HELD];
    #else
    enum { N_HELD = 3 };
    static const int held_signals[N_HELD] = {SIGINT, SIGTERM, SIGALRM};
    static struct sigaction handlers_before[N_HELD];
    #endif
    static volatile sig_atomic_t is_held[N_HELD], times_sent[N_HELD], is_due[N_HELD], is_yielding;
    static volatile time_t yields_from; /* time from which second signals are delivered */

    #ifdef _WIN32
    static void note_signal(int sent) {
    #else
    static void note_signal(int sent, siginfo_t *about, void *context) {
    #endif
        for (int k = 0; k < N_HELD; k++)
            if (held_signals[k] == sent && is_held[k]) {
                if (times_sent[k] < 2)
                    times_sent[k] = times_sent[k] + 1;
                is_due[k] = times_sent[k] == 1 || !is_yielding || time(NULL) < yields_from;
    #ifdef _WIN32
                signal(sent, note_signal);
    #endif
                if (is_due[k])
                    continue;
    #ifdef _WIN32
                handlers_before[k](sent);
    #else
                if (handlers_before[k].sa_flags & SA_SIGINFO) /* set by another library */
                    handlers_before[k].sa_sigaction(sent, about, context);
                else
                    handlers_before[k].sa_handler(sent);
    #endif
            }
    }

    static void hold_signals(void) {
        for (int k = 0; k < N_HELD; k++) {
    #ifdef _WIN32
            handler_type old = signal(held_signals[k], note_signal);
            if (old == SIG_DFL || old == SIG_IGN || old == SIG_ERR || old == note_signal) {
                signal(held_signals[k], old);
                continue;
            }
            handlers_before[k] = old;
            times_sent[k] = is_due[k] = 0;
            is_held[k] = 1;
    #else
            struct sigaction old;
            if (sigaction(held_signals[k], NULL, &old) || old.sa_handler == SIG_DFL || old.sa_handler == SIG_IGN ||
                ((old.sa_flags & SA_SIGINFO) && old.sa_sigaction == note_signal))
                continue;
            handlers_before[k] = old;
            times_sent[k] = is_due[k] = 0;
            is_held[k] = 1;
            old.sa_flags |= SA_SIGINFO;
            old.sa_sigaction = note_signal;
            sigaction(held_signals[k], &old, NULL);
    #endif
        }
    }

    /* Members of other libraries may have changed a handler, as asyncio.run does. */
    static void hold_signals_again(void) {
        for (int k = 0; k < N_HELD; k++) {
    #ifdef _WIN32
            handler_type now = is_held[k] ? signal(held_signals[k], note_signal) : note_signal;
            if (now != note_signal)
                handlers_before[k] = now;
    #else
            struct sigaction now;
            if (!is_held[k] || sigaction(held_signals[k], NULL, &now) ||
                ((now.sa_flags & SA_SIGINFO) && now.sa_sigaction == note_signal))
                continue;
            handlers_before[k] = now;
            now.sa_flags |= SA_SIGINFO;
            now.sa_sigaction = note_signal;
            sigaction(held_signals[k], &now, NULL);
    #endif
        }
    }

    static int is_signal_noted(void) {
        for (int k = 0; k < N_HELD; k++)
            if (is_held[k] && times_sent[k])
                return 1;
        return 0;
    }

    static void let_signals_through(void) {
        for (int k = 0; k < N_HELD; k++)
            if (is_held[k]) {
    #ifdef _WIN32
                signal(held_signals[k], handlers_before[k]);
    #else
                sigaction(held_signals[k], &handlers_before[k], NULL);
    #endif
                is_held[k] = 0;
                if (is_due[k])
                    raise(held_signals[k]);
            }
    }

    static void forget_interrupts(void) {
        for (int k = 0; k < N_HELD; k++)
            if (held_signals[k] == SIGINT)
                is_due[k] = 0;
    }

    static time_t yield_in(int seconds) {
        time_t before = yields_from;
        yields_from = seconds ? time(NULL) + seconds + 1 : 0; /* whole seconds are counted */
        return before;
    }

    static void yield_again_from(time_t when) { yields_from = when; }

    static void yield_to_signals(int yielding) {
        is_yielding = yielding;
        for (int k = 0; k < N_HELD; k++)
            if (yielding && is_held[k] && is_due[k] && times_sent[k] == 2 && time(NULL) >= yields_from)
                raise(held_signals[k]);
    }
    """
    void hold_signals() nogil
    void hold_signals_again() nogil
    int is_signal_noted() nogil
    void let_signals_through() nogil
    ctypedef long time_t
    time_t yield_in(int seconds) nogil
    void yield_again_from(time_t when) nogil
    void yield_to_signals(int yielding) nogil
    void forget_interrupts() nogil


cdef unsigned long main_thread = threading.main_thread().ident
cdef int n_held = 0  # number of nested sections of the main thread that hold signals back
cdef int yielding = 0  # depth of the section that yields to a second signal, if it is the innermost one
cdef long n_forks = 0
_PATIENCE = 0.1  # seconds between two checks for signals while waiting; people notice delays above this


cdef void hold() noexcept:
    global n_held
    if PyThread_get_thread_ident() == main_thread:
        n_held += 1
        yield_to_signals(n_held == yielding)
        if n_held == 1:
            hold_signals()


cdef void let_through() noexcept:
    global n_held, yielding
    if PyThread_get_thread_ident() == main_thread and n_held:
        n_held -= 1
        yield_to_signals(n_held > 0 and n_held == yielding)
        if n_held == 0:
            yielding = 0
            let_signals_through()


def _forked():
    """Make the only thread of a forked process its main thread."""
    global main_thread, n_forks, yielding
    main_thread = PyThread_get_thread_ident()
    yielding = 0
    n_forks += 1


if hasattr(os, "register_at_fork"):
    os.register_at_fork(after_in_child=_forked)


cdef class Uninterrupted:
    """Section of the main thread in which signals are held back; other threads get none."""

    def __enter__(self):
        hold()
        try:
            PyErr_CheckSignals()  # raise an earlier signal before the section
        except BaseException:
            let_through()
            raise

    def __exit__(self, _=None, error=None, __=None):
        if isinstance(error, KeyboardInterrupt) and PyThread_get_thread_ident() == main_thread:
            forget_interrupts()  # the exception itself is an interrupt, so drop a second one
        let_through()
        PyErr_CheckSignals()


cdef class Yielding:
    """Section within an uninterrupted one that may never end: the second signal of a kind is delivered.

    With ``seconds``, it is only delivered after that time.
    """

    cdef int before, seconds
    cdef time_t before_from

    def __cinit__(self, int seconds=0):
        self.seconds = seconds

    def __enter__(self):
        global yielding
        self.before = yielding
        if PyThread_get_thread_ident() == main_thread:
            self.before_from = yield_in(self.seconds)
            yielding = n_held + 1
            hold()

    def __exit__(self, *_):
        global yielding
        if PyThread_get_thread_ident() == main_thread:
            yielding = self.before
            yield_again_from(self.before_from)
            hold_signals_again()
            let_through()
            PyErr_CheckSignals()  # raise a delivered signal within the section


def report_rows_learned(part, method, args, kwargs, note_progress):
    """Call a method that learns; if it raises, call ``note_progress`` with the error and the earlier progress."""
    before = None
    try:
        before = part.progress()
        return method(part, *args, **kwargs)
    except BaseException as error:
        caught = error
        hold()
        try:
            try:
                PyErr_CheckSignals()
            except KeyboardInterrupt as again:  # Ctrl-C since then
                caught = again
            note_progress(caught, part, before)
        finally:
            if isinstance(caught, KeyboardInterrupt) and PyThread_get_thread_ident() == main_thread:
                forget_interrupts()
            let_through()
        raise caught


cdef class _Waiter:
    cdef object turn  # a lock, held until it is this thread's turn
    cdef unsigned long thread
    cdef bint writes, granted

    def __cinit__(self, bint writes):
        self.turn = threading.Lock()
        self.turn.acquire()
        self.thread = PyThread_get_thread_ident()
        self.writes = writes


cdef class _Reading:
    cdef RWLock lock

    def __cinit__(self, RWLock lock):
        self.lock = lock

    def __enter__(self):
        self.lock.enter_reading()

    def __exit__(self, *_):
        self.lock.leave_reading()


cdef class _Writing:
    cdef RWLock lock

    def __cinit__(self, RWLock lock):
        self.lock = lock

    def __enter__(self):
        self.lock.enter_writing()

    def __exit__(self, *_):
        self.lock.leave_writing()


cdef class RWLock:
    """Reentrant lock for many readers or one writer, in order of arrival.

    ``with lock.read`` and ``with lock.write``. A copy or a pickle of a lock is a new one.
    """

    cdef dict readers  # nesting depth of each reading thread
    cdef list queue
    cdef unsigned long writer
    cdef int depth
    cdef long forks
    cdef readonly Py_ssize_t writes  # number of times the write lock was acquired
    cdef readonly object read, write

    def __cinit__(self):
        self.readers = {}
        self.queue = []
        self.forks = n_forks
        self.read = _Reading(self)
        self.write = _Writing(self)

    def __reduce__(self):
        return RWLock, ()

    def __copy__(self):
        return RWLock()

    def __deepcopy__(self, _):
        return RWLock()

    @property
    def wanted(self):
        """True if another thread or a signal is waiting, so that the writer should release the lock soon."""
        return len(self.queue) > 0 or (n_held > 0 and is_signal_noted())

    cdef int look(self) except -1:
        """Forget the threads that a forked process does not have."""
        if self.forks == n_forks:
            return 0
        if self.writer:
            raise RuntimeError(
                "bayesvote: a model must not be learning when the process is forked, because its state would be "
                "incomplete in the new process. Fork before, or pass a copy."
            )
        self.readers.clear()
        self.queue.clear()
        self.forks = n_forks
        return 0

    cdef int enter_reading(self) except -1:
        cdef unsigned long me = PyThread_get_thread_ident()
        self.look()
        if self.writer == me:
            self.depth += 1
            return 0
        depth = self.readers.get(me)
        if depth is not None:
            self.readers[me] = depth + 1
        elif self.writer == 0 and not self.queue:
            self.readers[me] = 1
        else:
            self.wait(_Waiter(False))
        return 0

    cdef int leave_reading(self) except -1:
        cdef unsigned long me = PyThread_get_thread_ident()
        if self.writer == me:
            self.depth -= 1
            return 0
        depth = self.readers[me]
        if depth > 1:
            self.readers[me] = depth - 1
        else:
            del self.readers[me]
            self.wake()
        return 0

    cdef int enter_writing(self) except -1:
        cdef unsigned long me = PyThread_get_thread_ident()
        self.look()
        if self.writer == me:
            self.depth += 1
            return 0
        if me in self.readers:
            raise RuntimeError("bayesvote: a model must not learn while the same thread predicts with it.")
        if self.writer == 0 and not self.readers and not self.queue:
            self.writer = me
            self.depth = 1
        else:
            self.wait(_Waiter(True))
        self.writes += 1
        return 0

    cdef int leave_writing(self) except -1:
        self.depth -= 1
        if self.depth == 0:
            self.writer = 0
            self.wake()
        return 0

    cdef int wait(self, _Waiter waiter) except -1:
        self.queue.append(waiter)
        try:
            # The handler of another library may let the wait continue after a signal without Python noticing it.
            while not waiter.turn.acquire(True, _PATIENCE):
                PyErr_CheckSignals()
        except BaseException:  # raised by a signal while waiting
            if not waiter.granted:
                self.queue.remove(waiter)
            elif waiter.writes:
                self.writer = 0
            else:
                del self.readers[waiter.thread]
            self.wake()
            raise
        return 0

    cdef int wake(self) except -1:
        """Grant the lock to the next writer, or to all readers up to the next writer."""
        cdef _Waiter first
        while self.queue and self.writer == 0:
            first = self.queue[0]
            if first.writes and self.readers:
                return 0
            del self.queue[0]
            first.granted = True
            if first.writes:
                self.writer = first.thread
                self.depth = 1
            else:
                self.readers[first.thread] = 1
            first.turn.release()
        return 0
