"""HTTP of uvicorn, with limits for who is slow or sends too much, and a short way for what comes by the thousand."""

import asyncio
from typing import Any, ClassVar

from uvicorn.protocols.http.httptools_impl import STATUS_LINE, HttpToolsProtocol

from bayesvote.apps.service.guard import HEADERS, Exchange, Guard, Headers, Lean
from bayesvote.apps.service.types import Refusal

_HEADERS = b"".join(b"%b: %b\r\n" % header for header in HEADERS) + b"\r\n"
_MOST_HEAD = 131_072  # bytes before a body, about
_MOST_AT_ONCE = 1_000  # requests of a connection that wait for the one before them


class Protocol(HttpToolsProtocol):
    """A connection."""

    guard: ClassVar[Guard]
    seconds: ClassVar[float]
    most: ClassVar[int]  # connections at a time; who comes with one more is sent away
    _deadline: asyncio.TimerHandle | None = None
    _is_head = False  # whether the head of a request is coming
    _is_message = False  # whether a request is coming, and has a cycle
    _head_size = 0
    _active: Any = None  # cycle that is being answered
    # Nothing that comes is listened to any more, until the client closes the connection or its time is up; the last
    # words are said when all that was asked before is answered.
    _deaf = False
    _last_words: bytes | None = None
    _has_ended = False  # the client, who sends no more

    # A client whose request does not come whole in time is no client.

    def connection_made(self, transport: asyncio.Transport) -> None:  # type: ignore[override]
        """Expect a request."""
        super().connection_made(transport)
        self._expect()

    def on_message_begin(self) -> None:
        """Expect the rest of it."""
        self.url, self.headers, self.expect_100_continue = b"", [], False
        self._is_head, self._head_size = True, 0
        self._expect()

    def on_header(self, name: bytes, value: bytes) -> None:
        """Take a header; what follows a body in chunks is none."""
        if self._is_head:
            super().on_header(name, value)

    def on_message_complete(self) -> None:
        """Expect nothing."""
        self._is_message = False
        if self._deaf:
            if not self._is_busy():
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
        """Expect nothing; nobody waits for the answers."""
        if self._deadline is not None:
            self._deadline.cancel()
        for cycle in (self._active, *(cycle for cycle, _ in self.pipeline)):
            if cycle is not None and not cycle.response_complete:
                cycle.disconnected = True
                cycle.message_event.set()
        self.pipeline.clear()
        super().connection_lost(exc)

    def eof_received(self) -> bool:  # type: ignore[override]
        """Answer whoever has said all but listens still."""
        self._deaf = self._has_ended = True
        if self._last_words is None:
            self._last_words = b""
        return self._is_busy()

    def _expect(self) -> None:
        if self._deadline is not None:
            self._deadline.cancel()
        self._deadline = self.loop.call_later(self.seconds, self._give_up)

    def _give_up(self) -> None:
        if self._deaf and not self._is_busy():
            self.transport.close()
        elif not self._deaf:
            self._refuse(Refusal(408, "the request did not come whole in time."))

    def data_received(self, data: bytes) -> None:
        """Take what comes, unless the rest of it was refused."""
        if self._deaf:
            return
        super().data_received(data)
        if self._is_head and not self._deaf:
            self._head_size += len(data)
            if self._head_size > _MOST_HEAD:
                self._refuse(Refusal(431, f"the address and the headers must have at most {_MOST_HEAD:,} bytes."))

    def send_400_response(self, msg: str) -> None:
        """Refuse what is not HTTP."""
        self._refuse(Refusal(400, f"the request must be HTTP/1.1. {msg}"))

    # Refusals that end a connection. What was asked before is done, and so is answered first.

    def _refuse(self, refusal: Refusal) -> None:
        self._deaf = True
        if self._is_message:  # the request that is refused is not waited for
            self._is_message = False
            if self.pipeline and self.pipeline[0][0] is self.cycle:
                self.pipeline.popleft()
            elif self._active is self.cycle:
                self.cycle.disconnected = True
                self.cycle.message_event.set()
                self._active = None
        status, headers, body = self.guard.unrouted(refusal)
        self._last_words = _answer(self, status, [*headers, (b"connection", b"close")], body)
        if not self._is_busy():
            self._speak()

    def _is_busy(self) -> bool:
        return bool(self.pipeline) or (self._active is not None and not self._active.response_complete)

    def _speak(self) -> None:
        words, self._last_words = self._last_words, None
        if not self.transport.is_closing():
            self.transport.write(words or b"")
            self._fall_silent()

    def _fall_silent(self) -> None:
        # Closed while something still comes, the connection would be reset, and the client never see the answer.
        self._deaf = True
        if self._has_ended:
            self.transport.close()
        else:
            self.transport.write_eof()
            self._expect()

    def on_response_complete(self) -> None:
        """Go on with the next request, or say the last words; read no more while others wait."""
        if self.pipeline:
            self._active = self.pipeline[-1][0]
        super().on_response_complete()
        if self.pipeline:
            self.flow.pause_reading()
        if self._last_words is not None and not self._is_busy():
            self._speak()

    # Between the parser and a lean route stand neither tasks nor Starlette's routes nor ASGI's messages, which take
    # longer than the rest. What is less common than a request that comes when the one before it was answered goes the
    # usual way.

    def on_headers_complete(self) -> None:
        """Choose the way; what follows the last answer of a connection goes none."""
        self._is_head = False
        if self._deaf or self.transport.is_closing():
            return
        if self.parser.should_upgrade():  # of which the parser would take the body for the next request
            self._refuse(Refusal(400, "the request must not ask for another protocol: leave out Upgrade."))
        elif [name for name, _ in self.headers].count(b"host") > 1:
            self._refuse(Refusal(400, "the request must have one Host."))
        elif len(self.pipeline) >= _MOST_AT_ONCE:
            self._refuse(Refusal(429, f"at most {_MOST_AT_ONCE:,} requests may wait for the answer to one before."))
        else:
            self._is_message = True
            self._choose()

    def _choose(self) -> None:
        exchange = self._short_way()
        if exchange is not None:
            self.cycle = self._active = exchange  # type: ignore[assignment]
            if int(exchange.headers.get(b"content-length", b"0")) > self.guard.service.limits.body:
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

    def _short_way(self) -> "Short | None":
        usual = (
            self.expect_100_continue
            or self.flow.write_paused
            or self._is_crowded()
            or not (self.cycle is None or self.cycle.response_complete)
            or self.parser.get_method() != b"POST"
        )
        found = None if usual else self.guard.lean(self.url)
        return None if found is None else Short(self, *found)

    def on_body(self, body: bytes) -> None:
        """Take a part of the body."""
        if self._deaf:
            return
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
            self._fall_silent()
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
        connection.transport.write(_answer(connection, status, headers, body))
        connection.answered(self)


def _answer(connection: Protocol, status: int, headers: Headers, body: bytes) -> bytes:
    lines = [b"%b: %b\r\n" % header for header in (*connection.server_state.default_headers, *headers)]
    return b"".join((STATUS_LINE[status], *lines, _HEADERS, body))


def protocol(guard: Guard, seconds: float, most: int = 1_000) -> type[Protocol]:
    """Connections to an application, so many at most, whose requests must come whole within so many seconds."""
    return type("Protocol", (Protocol,), {"guard": guard, "seconds": seconds, "most": most})
