"""HTTP of uvicorn, with a limit for clients that are slow, and a short way for requests that come by the thousand."""

import asyncio
from typing import Any, ClassVar

from uvicorn.protocols.http.httptools_impl import STATUS_LINE, HttpToolsProtocol

from bayesvote.service.guard import Guard, Lean

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
        super().on_message_begin()
        self._expect()

    def on_message_complete(self) -> None:
        """Expect nothing."""
        if self._deadline is not None:
            self._deadline.cancel()
        super().on_message_complete()

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

    # Between the parser and a lean route stand neither Starlette's routes nor ASGI's messages, which take longer than
    # the rest. The method is uvicorn's own: where a version has none of this name, all goes the usual way.

    def _start_asgi_task(self, cycle: Any, app: Any) -> None:
        route = self.guard.lean(cycle.scope) if app is self.guard else None
        if route is None:
            super()._start_asgi_task(cycle, app)
            return
        task = self.loop.create_task(self._answer(cycle, route))
        task.add_done_callback(self.tasks.discard)
        self.tasks.add(task)

    async def _answer(self, cycle: Any, route: Lean) -> None:
        status, headers, body = await self.guard.answer(cycle.scope, cycle.receive, route)
        if self.flow.write_paused and not cycle.disconnected:
            await self.flow.drain()
        if cycle.disconnected:
            return
        cycle.response_started = cycle.response_complete = True
        if (b"connection", b"close") in headers:
            cycle.keep_alive = False
        elif not cycle.keep_alive:
            headers = [*headers, (b"connection", b"close")]
        lines = [b"%b: %b\r\n" % header for header in (*self.server_state.default_headers, *headers)]
        self.transport.write(b"".join((STATUS_LINE[status], *lines, b"\r\n", body)))
        if cycle.more_body and not cycle.keep_alive:
            # Closed while the body still comes, the connection would be reset, and the client never see the answer.
            self._deaf = True
            self.flow.resume_reading()
        elif not cycle.keep_alive:
            self.transport.close()
        self.on_response_complete()


def protocol(guard: Guard, seconds: float) -> type[Protocol]:
    """Connections to an application, whose requests must come whole within so many seconds."""
    return type("Protocol", (Protocol,), {"guard": guard, "seconds": seconds})
