"""HTTP connections: uvicorn's, with limits for slow clients and large requests, and a direct path for model routes.

The direct path calls the handlers of the model routes from the parser, without a task, ASGI messages and Starlette's
router. It saves 30 to 55 µs of CPU time per request, which is a fifth to a third; see docs/service.md.
"""

import asyncio
from typing import Any, ClassVar

from uvicorn.protocols.http.httptools_impl import STATUS_LINE, HttpToolsProtocol

from bayesvote.apps.service.access import HEADERS, AccessMiddleware, DirectExchange, Headers, ModelRoute
from bayesvote.apps.service.types import RequestError

_HEADERS = b"".join(b"%b: %b\r\n" % header for header in HEADERS) + b"\r\n"
_MAX_HEAD = 131_072  # bytes of the URL and the headers, counted by received parts
_MAX_PIPELINED = 1_000  # requests of a connection that wait for the response to an earlier one


class Protocol(HttpToolsProtocol):
    """A connection."""

    access: ClassVar[AccessMiddleware]
    seconds: ClassVar[float]  # in which a request must arrive completely
    most: ClassVar[int]  # connections; requests on further ones get the status 503
    _deadline: asyncio.TimerHandle | None = None
    _in_head = False  # the head of a request is being received
    _in_message = False  # a request is being received, and has a cycle
    _head_size = 0
    _active: Any = None  # cycle whose response is pending
    # After an error, further input is ignored until the client closes the connection or its time is up. The final
    # response is sent when all earlier requests are answered.
    _ignores_input = False
    _final_response: bytes | None = None
    _got_eof = False

    # A client must send each request completely within the time limit, or its connection is closed.

    def connection_made(self, transport: asyncio.Transport) -> None:  # type: ignore[override]
        """Start the time limit."""
        super().connection_made(transport)
        self._restart_deadline()

    def on_message_begin(self) -> None:
        """Restart the time limit for the rest of the request."""
        self.url, self.headers, self.expect_100_continue = b"", [], False
        self._in_head, self._head_size = True, 0
        self._restart_deadline()

    def on_header(self, name: bytes, value: bytes) -> None:
        """Add a header. Trailers, which follow a chunked body, are ignored."""
        if self._in_head:
            super().on_header(name, value)

    def on_message_complete(self) -> None:
        """Stop the time limit, and handle a request on the direct path."""
        self._in_message = False
        if self._ignores_input:
            if not self._is_busy():
                self.transport.close()
            return
        if self._deadline is not None:
            self._deadline.cancel()
        if not isinstance(self.cycle, DirectCycle):
            super().on_message_complete()
        elif not self.cycle.begun:
            self.cycle.complete = True
            self._begin(self.cycle)

    def connection_lost(self, exc: Exception | None) -> None:
        """Stop the time limit, and disconnect the pending requests."""
        if self._deadline is not None:
            self._deadline.cancel()
        for cycle in (self._active, *(cycle for cycle, _ in self.pipeline)):
            if cycle is not None and not cycle.response_complete:
                cycle.disconnected = True
                cycle.message_event.set()
        self.pipeline.clear()
        super().connection_lost(exc)

    def eof_received(self) -> bool:  # type: ignore[override]
        """Answer pending requests of a client that has closed its side of the connection."""
        self._ignores_input = self._got_eof = True
        if self._final_response is None:
            self._final_response = b""
        return self._is_busy()

    def _restart_deadline(self) -> None:
        if self._deadline is not None:
            self._deadline.cancel()
        self._deadline = self.loop.call_later(self.seconds, self._time_out)

    def _time_out(self) -> None:
        if self._ignores_input and not self._is_busy():
            self.transport.close()
        elif not self._ignores_input:
            self._fail(RequestError(408, "the request", "did not arrive completely in time"))

    def data_received(self, data: bytes) -> None:
        """Parse input, unless the connection has failed."""
        if self._ignores_input:
            return
        super().data_received(data)
        if self._in_head and not self._ignores_input:
            self._head_size += len(data)
            if self._head_size > _MAX_HEAD:
                must = f"must have at most {_MAX_HEAD:,} bytes"
                self._fail(RequestError(431, "the URL and the headers", must))

    def send_400_response(self, msg: str) -> None:
        """Respond to invalid HTTP."""
        self._fail(RequestError(400, "the request", "must be HTTP/1.1", do=msg))

    # Errors that end a connection. Earlier requests are answered first.

    def _fail(self, error: RequestError) -> None:
        self._ignores_input = True
        if self._in_message:  # do not wait for the request that caused the error
            self._in_message = False
            if self.pipeline and self.pipeline[0][0] is self.cycle:
                self.pipeline.popleft()
            elif self._active is self.cycle:
                self.cycle.disconnected = True
                self.cycle.message_event.set()
                self._active = None
        status, headers, body = self.access.connection_error(error)
        self._final_response = _encoded(self, status, [*headers, (b"connection", b"close")], body)
        if not self._is_busy():
            self._send_final_response()

    def _is_busy(self) -> bool:
        return bool(self.pipeline) or (self._active is not None and not self._active.response_complete)

    def _send_final_response(self) -> None:
        response, self._final_response = self._final_response, None
        if not self.transport.is_closing():
            self.transport.write(response or b"")
            self._end_output()

    def _end_output(self) -> None:
        # If the connection were closed while input still arrives, the client would get a reset instead of the response.
        self._ignores_input = True
        if self._got_eof:
            self.transport.close()
        else:
            self.transport.write_eof()
            self._restart_deadline()

    def on_response_complete(self) -> None:
        """Continue with the next request or the final response. Pause reading while other requests wait."""
        if self.pipeline:
            self._active = self.pipeline[-1][0]
        super().on_response_complete()
        if self.pipeline:
            self.flow.pause_reading()
        if self._final_response is not None and not self._is_busy():
            self._send_final_response()

    # The direct path is for a POST request to a model route when no earlier request is pending. All others are handled
    # by uvicorn.

    def on_headers_complete(self) -> None:
        """Check the headers and choose the path. Requests after the last response of a connection are ignored."""
        self._in_head = False
        if self._ignores_input or self.transport.is_closing():
            return
        if self.parser.should_upgrade():  # the parser would take the body of such a request for the next request
            must = "must not switch to another protocol"
            self._fail(RequestError(400, "the request", must, do="Leave out the header Upgrade."))
        elif [name for name, _ in self.headers].count(b"host") > 1:
            self._fail(RequestError(400, "the request", "must have one Host"))
        elif len(self.pipeline) >= _MAX_PIPELINED:
            must = f"may have at most {_MAX_PIPELINED:,} requests that wait for the response to an earlier one"
            self._fail(RequestError(429, "the connection", must))
        else:
            self._in_message = True
            self._choose_path()

    def _choose_path(self) -> None:
        exchange = self._direct_cycle()
        if exchange is not None:
            self.cycle = self._active = exchange  # type: ignore[assignment]
            if int(exchange.headers.get(b"content-length", b"0")) > self.access.service.limits.body:
                self._begin(exchange)
            return
        url, headers, expects = self.url, self.headers, self.expect_100_continue
        super().on_message_begin()
        self.scope["crowded"] = self._is_crowded()  # type: ignore[typeddict-unknown-key]
        self.url, self.expect_100_continue = url, expects
        self.headers += headers
        is_next = self.cycle is None or self.cycle.response_complete
        super().on_headers_complete()
        if is_next:
            self._active = self.cycle

    def _is_crowded(self) -> bool:
        return len(self.connections) > self.most

    def _direct_cycle(self) -> "DirectCycle | None":
        needs_uvicorn = (
            self.expect_100_continue
            or self.flow.write_paused
            or self._is_crowded()
            or not (self.cycle is None or self.cycle.response_complete)
            or self.parser.get_method() != b"POST"
        )
        found = None if needs_uvicorn else self.access.find_model_route(self.url)
        return None if found is None else DirectCycle(self, *found)

    def on_body(self, body: bytes) -> None:
        """Add a part of the body."""
        if self._ignores_input:
            return
        if not isinstance(self.cycle, DirectCycle):
            super().on_body(body)
        elif not self.cycle.begun:
            self.cycle.size += len(body)
            self.cycle.parts.append(body)
            if self.cycle.size > self.access.service.limits.body:
                self._begin(self.cycle)

    def _begin(self, exchange: "DirectCycle") -> None:
        exchange.begun = True
        work = exchange.begin(b"".join(exchange.parts))
        if work is not None:
            task = self.loop.create_task(work)
            task.add_done_callback(self.tasks.discard)
            self.tasks.add(task)

    def direct_response_sent(self, exchange: "DirectCycle") -> None:
        """Continue after a response on the direct path."""
        if not exchange.complete and not exchange.keep_alive:
            self._end_output()
        elif not exchange.keep_alive:
            self.transport.close()
        self.on_response_complete()


class DirectCycle(DirectExchange):
    """A request on the direct path. It has the attributes of uvicorn's cycles that uvicorn uses."""

    message_event = asyncio.Event()  # uvicorn sets it; nothing waits for it
    disconnected = response_complete = begun = complete = False
    size = 0

    def __init__(self, connection: Protocol, route: ModelRoute, name: str) -> None:
        super().__init__(connection.access, route, name, dict(connection.headers))
        self._connection, self.parts = connection, list[bytes]()
        parser = connection.parser
        self.keep_alive = parser.should_keep_alive() and parser.get_http_version() != "1.0"

    def write(self, status: int, headers: Headers, body: bytes) -> None:
        """Write the response in one piece."""
        self.response_complete = True
        connection = self._connection
        if connection.transport.is_closing():
            return
        if (b"connection", b"close") in headers:
            self.keep_alive = False
        elif not self.keep_alive:
            headers = [*headers, (b"connection", b"close")]
        connection.transport.write(_encoded(connection, status, headers, body))
        connection.direct_response_sent(self)


def _encoded(connection: Protocol, status: int, headers: Headers, body: bytes) -> bytes:
    lines = [b"%b: %b\r\n" % header for header in (*connection.server_state.default_headers, *headers)]
    return b"".join((STATUS_LINE[status], *lines, _HEADERS, body))


def protocol(access: AccessMiddleware, seconds: float, most: int = 1_000) -> type[Protocol]:
    """Return the class of the connections to an application.

    Parameters
    ----------
    access
        The application.
    seconds
        Time in which a request must arrive completely.
    most
        Maximum number of connections.
    """
    return type("Protocol", (Protocol,), {"access": access, "seconds": seconds, "most": most})
