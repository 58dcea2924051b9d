"""Engine on Dask: worker processes of this machine or of a cluster."""

import os
import signal
import time
import warnings
from collections.abc import Iterator, Sequence
from contextlib import ExitStack, suppress
from types import TracebackType
from typing import Any, Self
from urllib.parse import urlsplit

from bayesvote.apps.distributed.engines import Failure, T, Work, attempted
from bayesvote.core.checks import Argument, InputError, integer
from bayesvote.core.threads import n_threads
from bayesvote.io.open_stream import require_extra

WHO = "Dask"
_LOOPBACK = {"127.0.0.1", "::1", "localhost"}
_SETTINGS = {
    # The nanny restarts a killed worker. With the default of 15 s, the cluster can drop the worker before it is back,
    # and then waits for it forever.
    "distributed.deploy.lost-worker-timeout": "1 hour",
    "distributed.scheduler.allowed-failures": 5,  # lost workers before a shard is suspected
    "distributed.scheduler.no-workers-timeout": "1 hour",
    "distributed.comm.timeouts.connect": "60 s",
    "distributed.admin.system-monitor.gil.enabled": False,
}
_KILLED = Failure("KilledWorker", "its workers were killed, perhaps because memory ran out")
_PATIENCE = 20  # seconds in which a local cluster must close
_CALLS = 10  # resubmissions of a shard that the scheduler has lost


class Dask:
    """Engine that runs work on Dask workers: processes of this machine, or those of a scheduler.

    Dask's scheduler and workers run code from anyone who can connect. So only local connections and TLS are allowed,
    unless ``insecure=True``.

    Parameters
    ----------
    workers : int, optional
        Number of worker processes on this machine; one per core by default.
    scheduler : str, optional
        Address of a running scheduler, such as "tls://node1:8786".
    client : distributed.Client, optional
        A client to use. It is not closed.
    memory_limit : str
        Memory of each started worker process.
    insecure : bool
        Allow connections to other machines without TLS.

    Examples
    --------
    >>> with Dask(workers=2) as engine:  # doctest: +SKIP
    ...     model = fit("data/*.parquet", engine=engine)
    """

    def __init__(
        self,
        workers: int | None = None,
        *,
        scheduler: str | None = None,
        client: Any = None,
        memory_limit: str = "auto",
        insecure: bool = False,
    ) -> None:
        if workers is not None:
            integer(WHO, "workers", workers)
        if sum(given is not None for given in (workers, scheduler, client)) > 1:
            raise InputError(WHO, "workers", "must not be combined with scheduler or client")
        if scheduler is not None:
            check_address(scheduler, insecure)
        require_extra(WHO, "distributed", "dask", "to run on Dask")
        self._workers = workers or n_threads()
        self._scheduler = scheduler
        self._given = client
        self._memory_limit = memory_limit
        self._insecure = insecure
        self._client: Any = None
        self._depth = 0

    def __enter__(self) -> Self:
        self._depth += 1
        if self._depth == 1:
            self._stack = ExitStack()
            try:
                self._client = self._connected(self._stack)
            except BaseException:
                self._depth = 0
                self._stack.close()
                raise
        return self

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        self._depth -= 1
        if self._depth == 0:
            self._client = None
            with suppress(TimeoutError):  # the work is complete
                self._stack.close()

    @property
    def link(self) -> str | None:
        """Address of Dask's dashboard."""
        return None if self._client is None else self._client.dashboard_link

    @property
    def client(self) -> Any:
        """Dask's client, while the engine is in use."""
        return self._client

    def worker_pids(self) -> list[int]:
        """Return the process ids of the running workers on this machine."""
        return _pids(getattr(self._client, "cluster", None))

    def map(
        self, work: Work[T], items: Sequence[T], shared: Sequence[Any] = (), deadline: float | None = None
    ) -> Iterator[tuple[int, Any]]:
        """Run the work on the workers, yielding results as they arrive."""
        client = self._client
        # As tasks, the shared values survive lost workers: the scheduler can send them again.
        held = [_submitted(client, _itself, [one])[0] for one in shared]
        suspects = []
        for place, answer in self._answers(work, items, held, range(len(items)), deadline):
            if answer == _KILLED:
                suspects.append(place)
            else:
                yield place, answer
        # A lost worker counts against every item that waited there. Run each one alone to find the cause.
        for suspect in suspects:
            for place, answer in self._answers(work, items, held, [suspect], deadline):
                yield place, answer

    def _answers(
        self, work: Work[T], items: Sequence[T], held: Sequence[Any], chosen: Sequence[int], deadline: float | None
    ) -> Iterator[tuple[int, Any]]:
        """Yield the results of the chosen items as they arrive."""
        from distributed import as_completed

        client, calls = self._client, dict.fromkeys(chosen, 0)
        futures = _submitted(client, attempted, [items[place] for place in chosen], work=work, shared=held)
        places = dict(zip(futures, chosen, strict=True))
        left = None if deadline is None else max(0.0, deadline - time.monotonic())
        ready = as_completed(futures, loop=client.loop, timeout=left)
        try:
            for future in ready:
                place = places.pop(future)
                if future.cancelled() or future.status == "lost":
                    calls[place] += 1
                    if calls[place] > _CALLS:
                        raise ConnectionError(f"{WHO}: the scheduler has stopped, or has lost a shard {_CALLS} times.")
                    (again,) = _submitted(client, attempted, [items[place]], work=work, shared=held)
                    places[again] = place
                    ready.add(again)
                    continue
                yield place, _answer(future, deadline)
        finally:
            client.cancel(list(places), force=True)

    def _connected(self, stack: ExitStack) -> Any:
        import dask
        from distributed import Client, LocalCluster

        if self._given is not None:
            check_address(self._given.scheduler.address, self._insecure)
            return self._given
        stack.enter_context(dask.config.set(_SETTINGS))
        if self._scheduler is not None:
            return stack.enter_context(Client(self._scheduler, set_as_default=False))
        threads = max(1, n_threads() // self._workers)
        cluster = LocalCluster(
            n_workers=self._workers,
            threads_per_worker=1,
            processes=True,
            host="127.0.0.1",
            dashboard_address="127.0.0.1:0",
            worker_dashboard_address=None,
            memory_limit=self._memory_limit,
            silence_logs=50,  # the run reports the shards itself
            env={"BAYESVOTE_THREADS": str(threads)},
        )
        stack.callback(_end, cluster)
        return stack.enter_context(Client(cluster, set_as_default=False))


def check_address(address: str, insecure: bool) -> None:
    """Reject an address over which anyone on the network could run code."""
    found = urlsplit(address if "://" in address else f"tcp://{address}")
    if found.scheme in ("tls", "inproc", "wss") or insecure or found.hostname in _LOOPBACK:
        return
    raise InputError(
        WHO,
        "scheduler",
        "must be on this machine or use TLS, as Dask runs any code that it receives",
        repr(address),
        "Pass a tls:// address or, on a trusted network,",
        Argument("insecure"),
    )


def _end(cluster: Any) -> None:
    """Close a local cluster.

    Up to Dask 2026.3, a cluster that was restarting a killed worker waits for it forever, so its processes are killed.
    """
    try:
        cluster.close(timeout=_PATIENCE)
    except TimeoutError:
        for pid in _pids(cluster):
            with suppress(ProcessLookupError):
                os.kill(pid, getattr(signal, "SIGKILL", signal.SIGTERM))


def _pids(cluster: Any) -> list[int]:
    pids = [getattr(nanny, "pid", None) for nanny in getattr(cluster, "workers", {}).values()]
    return [pid for pid in pids if pid is not None]


def _answer(future: Any, deadline: float | None) -> Any:
    """Return the result, or the failure of its workers."""
    from distributed.scheduler import KilledWorker

    try:
        return future.result(timeout=None if deadline is None else max(0.1, deadline - time.monotonic()))
    except KilledWorker:
        return _KILLED
    except TimeoutError:
        raise
    except Exception as error:  # of Dask itself, such as work that cannot be unpickled
        return Failure(type(error).__name__, str(error)[:2000])


def _submitted(client: Any, call: Any, items: Sequence[Any], **shared: Any) -> list[Any]:
    with warnings.catch_warnings():
        # Dask warns about large tasks, but the members are large.
        warnings.filterwarnings("ignore", message="Sending large graph")
        return list(client.map(call, items, pure=False, **shared))


def _itself(one: Any) -> Any:
    return one
