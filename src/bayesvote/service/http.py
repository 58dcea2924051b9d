"""HTTP of uvicorn, with a limit for clients that are slow, and a short way for requests that come by the thousand."""

import asyncio
import math
from typing import ClassVar

from uvicorn.protocols.http.httptools_impl import STATUS_LINE, HttpToolsProtocol

from bayesvote.service.guard import HEADERS, Exchange, Guard, Headers, Lean

_HEADERS = b"".join(b"%b: %b\r\n" % header for header in HEADERS) + b"\r\n"
_TOO_SLOW = b"HTTP/1.1 408 Request Timeout\r\nconnection: close\r\ncontent-length: 0\r\n\r\n"


class Protocol(HttpToolsProtocol):
    """A connection."""

    guard: ClassVar[Guard]
    seconds: ClassVar[float]
    _deadline: asyncio.TimerHandle | None = None
    _deaf = False  # until the client closes the connection, or its time is up

    # A client whose request does not come whole in time is no client.

    def connection_made(self, transport: asyncio.Transport) -> None:  # type: ignore[override]
        """Expect a request."""
        super().connection_made(transport)
        self._expect()

    def on_message_begin(self) -> None:
        """Expect the rest of it."""
        self.url, self.headers, self.expect_100_continue = b"", [], False
        self._expect()

    def on_message_complete(self) -> None:
        """Expect nothing."""
        if self._deaf:
            self.transport.close()
            return
        if self._deadline is not None:
            self._deadline.cancel()
        if not isinstance(self.cycle, Short):
            super().on_message_complete()
        elif not self.cycle.begun:
            self.cycle.whole = True
            self._begin(self.cycle)

    def connection_lost(self, exc: Exception | None) -> None:
        """Expect nothing."""
        if self._deadline is not None:
            self._deadline.cancel()
        super().connection_lost(exc)

    def _expect(self) -> None:
        if self._deadline is not None:
            self._deadline.cancel()
        self._deadline = self.loop.call_later(self.seconds, self._give_up)

    def _give_up(self) -> None:
        if not self._deaf:
            self.transport.write(_TOO_SLOW)
        self.transport.close()

    def data_received(self, data: bytes) -> None:
        """Take what comes, unless the rest of it was refused."""
        if not self._deaf:
            super().data_received(data)

    # Between the parser and a lean route stand neither tasks nor Starlette's routes nor ASGI's messages, which take
    # longer than the rest. What is less common than a request that comes when the one before it was answered goes the
    # usual way.

    def on_headers_complete(self) -> None:
        """Choose the way; what follows the last answer of a connection goes none."""
        if self._deaf or self.transport.is_closing():
            return
        exchange = self._short_way()
        if exchange is not None:
            self.cycle = exchange  # type: ignore[assignment]
            if int(exchange.headers.get(b"content-length", b"0")) > self.guard.service.limits.body:
                self._begin(exchange)
            return
        url, headers, expects = self.url, self.headers, self.expect_100_continue
        super().on_message_begin()
        self.url, self.expect_100_continue = url, expects
        self.headers += headers
        super().on_headers_complete()

    def _short_way(self) -> "Short | None":
        usual = (
            self.expect_100_continue
            or self.flow.write_paused
            or len(self.connections) >= (self.limit_concurrency or math.inf)
            or not (self.cycle is None or self.cycle.response_complete)
            or self.parser.get_method() != b"POST"
            or self.parser.should_upgrade()
        )
        found = None if usual else self.guard.lean(self.url)
        return None if found is None else Short(self, *found)

    def on_body(self, body: bytes) -> None:
        """Take a part of the body."""
        if not isinstance(self.cycle, Short):
            super().on_body(body)
        elif not self.cycle.begun:
            self.cycle.size += len(body)
            self.cycle.parts.append(body)
            if self.cycle.size > self.guard.service.limits.body:
                self._begin(self.cycle)

    def _begin(self, exchange: "Short") -> None:
        exchange.begun = True
        work = exchange.begin(b"".join(exchange.parts))
        if work is not None:
            task = self.loop.create_task(work)
            task.add_done_callback(self.tasks.discard)
            self.tasks.add(task)

    def answered(self, exchange: "Short") -> None:
        """Go on after an answer."""
        if not exchange.whole and not exchange.keep_alive:
            # Closed while the body still comes, the connection would be reset, and the client never see the answer.
            self._deaf = True
        elif not exchange.keep_alive:
            self.transport.close()
        self.on_response_complete()


class Short(Exchange):
    """A request on the short way; uvicorn takes it for a cycle of its own."""

    message_event = asyncio.Event()  # for which nobody waits
    disconnected = response_complete = begun = whole = False
    size = 0

    def __init__(self, connection: Protocol, route: Lean, name: str) -> None:
        super().__init__(connection.guard, route, name, dict(connection.headers))
        self._connection, self.parts = connection, list[bytes]()
        parser = connection.parser
        self.keep_alive = parser.should_keep_alive() and parser.get_http_version() != "1.0"

    def write(self, status: int, headers: Headers, body: bytes) -> None:
        """Write the answer in one piece."""
        self.response_complete = True
        connection = self._connection
        if connection.transport.is_closing():
            return
        if (b"connection", b"close") in headers:
            self.keep_alive = False
        elif not self.keep_alive:
            headers = [*headers, (b"connection", b"close")]
        lines = [b"%b: %b\r\n" % header for header in (*connection.server_state.default_headers, *headers)]
        connection.transport.write(b"".join((STATUS_LINE[status], *lines, _HEADERS, body)))
        connection.answered(self)


def protocol(guard: Guard, seconds: float) -> type[Protocol]:
    """Connections to an application, whose requests must come whole within so many seconds."""
    return type("Protocol", (Protocol,), {"guard": guard, "seconds": seconds})
