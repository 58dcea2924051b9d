"""The server process: options, logging, signals, and shutdown within a time limit."""

import asyncio
import gc
import json
import logging
import os
import signal
import socket
import sqlite3
import sys
import threading
import time
from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import dataclass, field
from pathlib import Path
from types import FrameType
from typing import Any

import uvicorn

from bayesvote.apps.service.app import make_app
from bayesvote.apps.service.folder import Folder
from bayesvote.apps.service.http import protocol
from bayesvote.apps.service.learner import LearningThread, Policy
from bayesvote.apps.service.service import Service
from bayesvote.apps.service.types import Limits
from bayesvote.core.checks import InputError

TOKEN = "BAYESVOTE_TOKEN"  # the environment variable
_LOCAL = frozenset({"127.0.0.1", "localhost", "[::1]"})
_SHORTEST_TOKEN = 16

log = logging.getLogger("bayesvote.serve")


@dataclass(frozen=True)
class Options:
    """Options of the server."""

    folder: Path
    host: str = "127.0.0.1"
    port: int = 8000
    token_file: Path | None = None
    snapshot_every: int = 10_000
    prune: bool = False
    shutdown_seconds: float = 10.0
    connections: int = 1_000
    log_json: bool = False
    limits: Limits = field(default_factory=Limits)

    def token(self) -> str | None:
        """Return the token for clients, from the file or the environment. Other hosts than localhost require one."""
        if self.token_file is not None:
            try:
                token = self.token_file.read_text(encoding="utf-8").strip()
            except (OSError, UnicodeDecodeError) as error:
                raise InputError(
                    "serve", str(self.token_file), "must be a text file with the token", str(error)
                ) from error
        else:
            token = os.environ.get(TOKEN, "").strip()
        if not token:
            if self.token_file is not None or self.host not in ("127.0.0.1", "localhost", "::1"):
                must = f"is required to listen on {self.host}"
                raise InputError("serve", "a token", must, do=f"Pass --token-file, or set {TOKEN}.")
            return None
        if len(token) < _SHORTEST_TOKEN:
            do = "Create one with: python -c 'import secrets; print(secrets.token_urlsafe())'"
            raise InputError(
                "serve", "the token", f"must have at least {_SHORTEST_TOKEN} characters", str(len(token)), do
            )
        return token


def serve(options: Options) -> int:
    """Serve a folder until a signal stops the server; return the exit code."""
    _set_up_log(options.log_json)
    token = options.token()
    listening = _listen(options)
    try:
        folder = Folder(options.folder)
        try:
            learner = LearningThread(folder, Policy(options.snapshot_every, options.prune, options.limits))
        except BaseException:
            folder.close()
            raise
    except sqlite3.DatabaseError as error:
        listening.close()
        do = "Check it with --check, and restore it from a backup."
        raise InputError(
            "serve", str(options.folder), "must hold a journal that SQLite can use", str(error), do
        ) from error
    except BaseException:
        listening.close()
        raise
    # By default, a thread that returns from the disk may wait 5 ms for the interpreter lock.
    sys.setswitchinterval(0.0005)
    # Existing objects stay alive, and requests create no reference cycles. Garbage collection took a fifth of the time
    # of a request.
    gc.collect()
    gc.freeze()
    gc.set_threshold(10_000, 10, 10)
    learner.start()
    with asyncio.Runner(loop_factory=_loop_factory()) as runner:
        return runner.run(_serve(options, learner, token, listening))


def _loop_factory() -> Any:
    try:
        import uvloop
    except ImportError:
        return None
    return uvloop.new_event_loop


def _listen(options: Options) -> socket.socket:
    family = socket.AF_INET6 if ":" in options.host else socket.AF_INET
    listening = socket.socket(family, socket.SOCK_STREAM)
    listening.setsockopt(socket.SOL_SOCKET, socket.SO_REUSEADDR, 1)
    try:
        listening.bind((options.host, options.port))
        listening.listen(1024)
    except OSError as error:
        listening.close()
        got = f"{options.host}:{options.port} ({error.strerror or error})"
        raise InputError(
            "serve", "host and port", "must be available", got, "Choose another --host or --port."
        ) from error
    return listening


async def _serve(options: Options, learner: LearningThread, token: str | None, listening: socket.socket) -> int:
    service = Service(learner)
    app = make_app(service, token, _LOCAL if token is None else None)
    config = uvicorn.Config(
        app,
        http=protocol(app, options.limits.request_seconds, options.connections),
        ws="none",
        lifespan="off",
        log_config=None,
        access_log=False,
        server_header=False,
        proxy_headers=False,
        timeout_keep_alive=75,
        timeout_graceful_shutdown=max(1, round(options.shutdown_seconds)),
    )
    server = _Server(config, service, options.shutdown_seconds)
    host, port = listening.getsockname()[:2]
    address = f"http://{f'[{host}]' if ':' in host else host}:{port}/"
    names = ", ".join(learner.models) or "none yet"
    log.info("serving", extra={"address": address, "folder": str(options.folder), "models": names})
    await server.serve([listening])
    in_time = await asyncio.to_thread(learner.stop, server.seconds_left())
    log.info("stopped" if in_time else "stopped before the last snapshot was saved; the journal has all rows")
    return 0


class _Server(uvicorn.Server):
    """A uvicorn server that ends the event streams of open pages on shutdown, so that they do not delay it."""

    def __init__(self, config: uvicorn.Config, service: Service, seconds: float) -> None:
        super().__init__(config)
        self._service, self._seconds = service, seconds
        self._end: float | None = None

    def seconds_left(self) -> float:
        """Return the remaining time for the shutdown."""
        return self._seconds if self._end is None else max(self._end - time.monotonic(), 0.1)

    @contextmanager
    def capture_signals(self) -> Iterator[None]:
        """Handle signals until the process ends, because the last snapshot is saved after the server has stopped."""
        if threading.current_thread() is threading.main_thread():
            for number in (signal.SIGINT, signal.SIGTERM):
                signal.signal(number, self.handle_exit)
        yield

    def handle_exit(self, sig: int, frame: FrameType | None) -> None:
        """Stop the server; a second signal stops it immediately."""
        self._service.stopping.set()
        if self._end is None:
            self._end = time.monotonic() + self._seconds
        super().handle_exit(sig, frame)


class _LogFormatter(logging.Formatter):
    """One line per event, as text or as JSON."""

    def __init__(self, as_json: bool) -> None:
        super().__init__()
        self._json = as_json
        self._usual = {*logging.makeLogRecord({}).__dict__, "message", "asctime", "taskName", "color_message"}

    def format(self, record: logging.LogRecord) -> str:
        more = {name: value for name, value in record.__dict__.items() if name not in self._usual}
        when = time.strftime("%Y-%m-%dT%H:%M:%S", time.gmtime(record.created)) + f".{int(record.msecs):03d}Z"
        trace = self.formatException(record.exc_info) if record.exc_info else ""
        if self._json:
            line = {"time": when, "level": record.levelname.lower(), "message": record.getMessage(), **more}
            return json.dumps(line | ({"trace": trace} if trace else {}), default=str)
        figures = " ".join(f"{name}={json.dumps(value, default=str)}" for name, value in more.items())
        text = f"{when} {record.levelname.lower()}: {record.getMessage()}"
        return "\n".join(part for part in (f"{text} {figures}".rstrip(), trace) if part)


def _set_up_log(as_json: bool) -> None:
    handler = logging.StreamHandler(sys.stderr)
    handler.setFormatter(_LogFormatter(as_json))
    for name, level in (("bayesvote.serve", logging.INFO), ("uvicorn", logging.ERROR)):
        logger = logging.getLogger(name)
        logger.handlers, logger.propagate = [handler], False
        logger.setLevel(level)
