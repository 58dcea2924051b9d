"""A small HTTP client for the benchmarks of the service, and a server in a separate process."""

import asyncio
import json
import multiprocessing
import os
import re
import signal
import socket
import subprocess
import sys
import time
import urllib.request
from collections.abc import Callable, Coroutine, Sequence
from importlib import import_module
from pathlib import Path
from typing import Any, TypeVar, cast

import numpy as np

from bayesvote.core.checks import Array, Labels

T = TypeVar("T")
_LENGTH = re.compile(rb"(?i)\ncontent-length: *(\d+)")
PAPER = {"members": "perceptron", "weighter": "gamma_rate", "n_members": 100}


class Lost(Exception):  # noqa: N818 - expected, as the benchmarks kill the server
    """The connection ended before the response was complete."""


class Connection(asyncio.Protocol):
    """A connection that stays open, with one request at a time. It is minimal, so that one core can load the server."""

    def __init__(self, port: int) -> None:
        self.port = port
        self._transport: asyncio.Transport | None = None
        self._answer: asyncio.Future[tuple[int, bytes]] | None = None
        self._found = b""

    def connection_made(self, transport: asyncio.BaseTransport) -> None:
        """Keep the transport."""
        self._transport = cast(asyncio.Transport, transport)

    def data_received(self, data: bytes) -> None:
        """Receive a part of a response."""
        self._found += data
        head, found, body = self._found.partition(b"\r\n\r\n")
        length = _LENGTH.search(head)
        if not found or len(body) < (int(length[1]) if length else 0):
            return
        self._found = b""
        if self._answer is not None and not self._answer.done():
            self._answer.set_result((int(head[9:12]), body))

    def connection_lost(self, exc: Exception | None) -> None:  # noqa: ARG002
        """Raise Lost in the waiting request."""
        self._transport, self._found = None, b""
        if self._answer is not None and not self._answer.done():
            self._answer.set_exception(Lost())

    async def request(
        self, method: str, path: str, body: bytes = b"", kind: str = "application/json"
    ) -> tuple[int, bytes]:
        """Return status and body of the response."""
        loop = asyncio.get_running_loop()
        if self._transport is None:
            try:
                await loop.create_connection(lambda: self, "127.0.0.1", self.port)
            except OSError as error:
                raise Lost from error
        self._answer = loop.create_future()
        head = f"{method} {path} HTTP/1.1\r\nHost: 127.0.0.1\r\nContent-Type: {kind}\r\n"
        head += f"Content-Length: {len(body)}\r\n\r\n"
        cast(asyncio.Transport, self._transport).write(head.encode() + body)
        return await self._answer

    async def json(self, method: str, path: str, body: Any = None) -> Any:
        """Return the decoded response; raise RuntimeError if the request fails."""
        status, found = await self.request(method, path, b"" if body is None else json.dumps(body).encode())
        if status >= 400:
            raise RuntimeError(f"{method} {path}: {status} {found.decode()}")
        return json.loads(found) if found else None

    def close(self) -> None:
        """Close the connection; the next request opens another."""
        if self._transport is not None:
            self._transport.abort()
        self._transport = None


def run(work: Coroutine[Any, Any, T]) -> T:
    """Run a client, on uvloop if it is installed."""
    try:
        factory = import_module("uvloop").new_event_loop
    except ImportError:
        factory = None
    with asyncio.Runner(loop_factory=factory) as runner:
        return runner.run(work)


def free_port() -> int:
    """Return a free port."""
    with socket.socket() as found:
        found.bind(("127.0.0.1", 0))
        return int(found.getsockname()[1])


class Server:
    """A server in a separate process, optionally bound to one core."""

    def __init__(self, command: Sequence[str], port: int, core: int | None = None, log: Path | None = None) -> None:
        self.port = port
        environment = os.environ | {"BAYESVOTE_THREADS": "1", "OPENBLAS_NUM_THREADS": "1", "OMP_NUM_THREADS": "1"}
        with open(os.devnull if log is None else log, "ab") as errors:
            self.process = subprocess.Popen(command, stderr=errors, stdout=errors, env=environment)
        if core is not None:
            os.sched_setaffinity(self.process.pid, {core})

    @classmethod
    def of(cls, folder: Path, *options: str, port: int | None = None, **more: Any) -> "Server":
        """Start ``bayesvote serve`` on a folder."""
        port = free_port() if port is None else port
        command = [sys.executable, "-m", "bayesvote", "serve", str(folder), "--port", str(port), *options]
        return cls(command, port, **more)

    def wait(self, seconds: float = 300.0) -> None:
        """Wait until it listens."""
        wait(self.port, lambda: self.process.poll() is None, seconds)

    def seconds(self) -> float:
        """Return its CPU time."""
        fields = Path(f"/proc/{self.process.pid}/stat").read_text().rpartition(")")[2].split()
        return (int(fields[11]) + int(fields[12])) / os.sysconf("SC_CLK_TCK")

    def memory(self) -> int:
        """Return its resident memory in bytes."""
        return int(Path(f"/proc/{self.process.pid}/statm").read_text().split()[1]) * os.sysconf("SC_PAGE_SIZE")

    def kill(self) -> None:
        """Send SIGKILL and wait for its end."""
        self.process.kill()
        self.process.wait()

    def stop(self, seconds: float = 30.0) -> int:
        """Send SIGTERM; return its exit code."""
        self.process.send_signal(signal.SIGTERM)
        return self.process.wait(seconds)


class Forked:
    """The service in a process forked from one that has imported everything, so that it starts at once."""

    def __init__(self, folder: Path, port: int, **options: Any) -> None:
        context = multiprocessing.get_context("forkserver")
        context.set_forkserver_preload(["service_client", "bayesvote.apps.service"])
        self.port = port
        self.process = context.Process(target=_serve, args=(folder, port, options), daemon=True)
        self.process.start()

    def wait(self, seconds: float = 300.0) -> None:
        """Wait until it listens."""
        wait(self.port, self.process.is_alive, seconds)

    def text(self, path: str, method: str = "GET", body: bytes | None = None) -> str:
        """Return the response as text; raise an error if the request fails."""
        headers = {"Content-Type": "application/json"}
        request = urllib.request.Request(f"http://127.0.0.1:{self.port}{path}", body, headers, method=method)
        with urllib.request.urlopen(request, timeout=60) as answer:
            found: str = answer.read().decode()
        return found

    def json(self, method: str, path: str, body: Any = None) -> Any:
        """Return the decoded JSON response; raise an error if the request fails."""
        return json.loads(self.text(path, method, None if body is None else json.dumps(body).encode()))

    def kill(self) -> None:
        """Send SIGKILL and wait for its end."""
        self.process.kill()
        self.process.join()


def _serve(folder: Path, port: int, options: dict[str, Any]) -> None:
    from bayesvote.apps.service import Options, serve

    with open(folder.parent / "log", "ab", buffering=0) as log:
        os.dup2(log.fileno(), 2)
    serve(Options(folder, port=port, **options))


def wait(port: int, alive: Callable[[], bool], seconds: float) -> None:
    """Wait until a port accepts connections."""
    end = time.monotonic() + seconds
    while time.monotonic() < end:
        try:
            socket.create_connection(("127.0.0.1", port), timeout=1).close()
            return
        except OSError:
            if not alive():
                raise RuntimeError("The server has ended.") from None
            time.sleep(0.02)
    raise RuntimeError(f"The server did not start in {seconds:g} seconds.")


def stream(n: int, d: int = 20, seed: int = 0) -> tuple[Array, Labels]:
    """Return rows whose label depends on the first two features, with noise."""
    rng = np.random.default_rng(seed)
    X = rng.normal(size=(n, d))
    return X, (X[:, 0] + X[:, 1] + 0.5 * rng.normal(size=n) > 0).astype(np.intp)


def tensor(X: Array) -> dict[str, Any]:
    """Return rows as an input of the protocol."""
    return {"name": "X", "shape": list(X.shape), "datatype": "FP64", "data": X.ravel().tolist()}
