"""Connections: the short way gives what the usual one does, in order, and lets go of whom it should."""

import asyncio
import json
import socket
from collections.abc import Iterator
from typing import Any

import pytest
import uvicorn
from uvicorn.server import ServerState

from bayesvote.service.app import make_app
from bayesvote.service.guard import Guard
from bayesvote.service.http import protocol
from service.helpers import Api, objects, rows_of


class Raw:
    """The application of a service on a port, and bytes to and from it; ``usual`` counts what went the usual way."""

    def __init__(self, api: Api, monkeypatch: pytest.MonkeyPatch) -> None:
        self.usual = 0
        before = Guard.__call__

        async def counted(guard: Guard, scope: Any, receive: Any, send: Any) -> None:
            self.usual += 1
            await before(guard, scope, receive, send)

        monkeypatch.setattr(Guard, "__call__", counted)
        app = make_app(api.service, None, frozenset({"127.0.0.1"}))
        options: Any = {"lifespan": "off", "log_config": None, "server_header": False, "proxy_headers": False}
        self.kind = protocol(app, 30.0)
        config = uvicorn.Config(app, http=self.kind, interface="asgi3", **options)
        config.load()
        self._loop, state = api._loop, ServerState()

        async def start() -> asyncio.Server:
            return await self._loop.create_server(
                lambda: config.http_protocol_class(config=config, server_state=state, app_state={}),  # type: ignore[call-arg]
                "127.0.0.1",
                0,
            )

        self._server = asyncio.run_coroutine_threadsafe(start(), self._loop).result(30)
        self.port = int(self._server.sockets[0].getsockname()[1])

    def close(self) -> None:
        self._loop.call_soon_threadsafe(self._server.close)

    def ask(self, *requests: bytes) -> bytes:
        """All that comes back until the connection is closed, which the last request must ask for."""
        found = b""
        with socket.create_connection(("127.0.0.1", self.port), timeout=30) as connection:
            connection.sendall(b"".join(requests))
            while part := connection.recv(65536):
                found += part
        return found


@pytest.fixture
def raw(api: Api, monkeypatch: pytest.MonkeyPatch) -> Iterator[Raw]:
    found = Raw(api, monkeypatch)
    yield found
    found.close()


def post(path: str, body: bytes, *headers: str, version: str = "1.1", kind: str = "application/json") -> bytes:
    lines = [f"POST {path} HTTP/{version}", "Host: 127.0.0.1", f"Content-Type: {kind}", *headers]
    return "\r\n".join((*lines, f"Content-Length: {len(body)}", "", "")).encode() + body


def parted(answer: bytes) -> tuple[bytes, set[bytes], bytes]:
    """Status line, headers but the date, and body."""
    head, _, body = answer.partition(b"\r\n\r\n")
    first, *headers = head.split(b"\r\n")
    return first, {header for header in headers if not header.startswith(b"date:")}, body


def infer(**more: Any) -> bytes:
    return json.dumps({"rows": objects(rows_of(2)[0]), **more}).encode()


BODIES = [
    infer(),
    infer(id="\u00e9"),
    infer(parameters={"binary_data_output": True}),
    infer(outputs=[{"name": "nothing"}]),
    b"{",
    b"",
    b'{"rows": [{"a": 1, "b": 2, "c": "three"}]}',
]


@pytest.mark.parametrize("body", BODIES)
def test_both_ways_answer_alike(raw: Raw, body: bytes) -> None:
    short = parted(raw.ask(post("/v2/models/m/infer", body, "Connection: close")))
    assert raw.usual == 0
    usual = parted(raw.ask(post("/v2/models/m/versions/1/infer", body, "Connection: close")))
    assert raw.usual == 1
    assert short == usual
    assert b"connection: close" in short[1]
    assert any(header.startswith(b"content-security-policy: default-src 'none'") for header in short[1])


def test_both_ways_refuse_alike(raw: Raw, api: Api) -> None:
    for headers, kind in (
        (("Origin: http://evil.example",), "application/json"),
        ((), "text/plain"),
        (("Inference-Header-Content-Length: 999",), "application/json"),
    ):
        ways = [
            parted(raw.ask(post(f"/v2/models/m/{path}", infer(), *headers, "Connection: close", kind=kind)))
            for path in ("infer", "versions/1/infer")
        ]
        assert ways[0] == ways[1]
        assert ways[0][0].startswith(b"HTTP/1.1 4")
    assert b'status="415"' in api.service.metrics.text()


def test_a_client_that_sends_too_much_sees_why_it_is_refused(raw: Raw) -> None:
    sent = post("/v2/models/m/infer", b" " * 12_000_000)
    with socket.create_connection(("127.0.0.1", raw.port), timeout=30) as connection:
        connection.sendall(sent)  # all of it, before it looks
        answer = connection.recv(65536)
    assert answer.startswith(b"HTTP/1.1 413")
    assert b"at most 8,000,000 bytes, got 12,000,000" in answer


def test_who_goes_on_after_a_refusal_is_not_listened_to_for_ever(
    raw: Raw, api: Api, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(raw.kind, "seconds", 0.5)
    head = b"POST /v2/models/m/infer HTTP/1.1\r\nHost: 127.0.0.1\r\nContent-Length: 99999999\r\n\r\n"
    answer = raw.ask(head, b'{"rows": ', post("/v2/models/m/learn", infer(labels=["no", "no"])))
    assert answer.count(b"HTTP/1.1 ") == 1  # neither a 408 after it, nor an answer to what is part of the body
    assert api.learner.models["m"].rows == 0


def test_requests_sent_at_once_are_answered_in_order(raw: Raw) -> None:
    sent = []
    for k in range(12):
        sent.append(post("/v2/models/m/infer", infer(id=f"request-{k}", ids=[f"{k} a", f"{k} b"])))
        sent.append(post("/v2/models/m/label", json.dumps({"ids": [f"{k} b"], "labels": ["no"]}).encode()))
        sent.append(b"GET /v2/health/live HTTP/1.1\r\nHost: 127.0.0.1\r\n\r\n")
        sent.append(post("/v2/models/m/versions/1/infer", infer(id=f"usual-{k}")))
    sent.append(post("/v2/models/m/label", b'{"ids": ["0 a"], "labels": ["no"]}', version="1.0"))
    answers = raw.ask(*sent).split(b"HTTP/1.1 ")[1:]
    assert len(answers) == 49
    for k in range(12):
        one, two, three, four = answers[4 * k : 4 * k + 4]
        assert f'"id":"request-{k}"'.encode() in one
        assert b'"learned":1' in two
        assert b'"live":true' in three
        assert f'"id":"usual-{k}"'.encode() in four
    assert b"connection: close" in answers[48]


def test_what_follows_the_last_answer_is_not_done(raw: Raw, api: Api) -> None:
    """The client was told that the connection ends there: it cannot know whether the rest was done."""
    learn = post("/v2/models/m/learn", infer(labels=["no", "no"]))
    many = {"inputs": [{"name": "X", "shape": [10**6, 3], "datatype": "FP64", "data": []}]}
    for first in (
        post("/v2/models/m/infer", json.dumps(many).encode()),
        post("/v2/models/m/infer", infer(), "Connection: close"),
        post("/v2/models/m/infer", b"{", version="1.0"),
        post("/v2/models/m/infer", b" " * 8_000_001),
    ):
        assert raw.ask(first, learn).count(b"HTTP/1.1 ") == 1
    assert api.learner.models["m"].rows == 0


def test_a_body_that_comes_in_parts(raw: Raw, api: Api) -> None:
    body = infer(labels=["no", "no"])
    whole = post("/v2/models/m/learn", body, "Connection: close")
    head = b"POST /v2/models/m/learn HTTP/1.1\r\nHost: 127.0.0.1\r\n"
    head += b"Transfer-Encoding: chunked\r\nConnection: close\r\n\r\n"
    parts = [body[:9], body[9:]]
    chunked = head + b"".join(b"%x\r\n%b\r\n" % (len(part), part) for part in (*parts, b""))
    for sent in (whole, chunked):
        with socket.create_connection(("127.0.0.1", raw.port), timeout=30) as connection:
            connection.setsockopt(socket.IPPROTO_TCP, socket.TCP_NODELAY, 1)
            for k in range(0, len(sent), 40):
                connection.sendall(sent[k : k + 40])
            assert b'"learned":2' in connection.recv(65536)
    assert (raw.usual, api.learner.models["m"].rows) == (0, 4)


def test_chunks_without_end_are_refused_when_they_are_too_many(raw: Raw) -> None:
    with socket.create_connection(("127.0.0.1", raw.port), timeout=30) as connection:
        connection.sendall(b"POST /v2/models/m/infer HTTP/1.1\r\nHost: 127.0.0.1\r\nTransfer-Encoding: chunked\r\n\r\n")
        for _ in range(9):
            connection.sendall(b"f4240\r\n" + b" " * 1_000_000 + b"\r\n")
        assert b"at most 8,000,000 bytes, got more" in connection.recv(65536)


def test_a_client_that_asks_first_whether_to_go_on(raw: Raw) -> None:
    head = post("/v2/models/m/infer", b"", "Expect: 100-continue", "Connection: close")
    body = infer()
    head = head.replace(b"Content-Length: 0", b"Content-Length: %d" % len(body))
    with socket.create_connection(("127.0.0.1", raw.port), timeout=30) as connection:
        connection.sendall(head)
        assert connection.recv(100) == b"HTTP/1.1 100 Continue\r\n\r\n"
        connection.sendall(body)
        assert connection.recv(100).startswith(b"HTTP/1.1 200 OK")


def test_who_goes_away_disturbs_nobody(raw: Raw, api: Api) -> None:
    for k in range(20):
        with socket.create_connection(("127.0.0.1", raw.port), timeout=30) as connection:
            connection.sendall(post("/v2/models/m/infer", infer(ids=[f"{k} a", f"{k} b"]))[: None if k % 2 else -9])
    assert raw.ask(post("/v2/models/m/infer", infer(), "Connection: close")).startswith(b"HTTP/1.1 200 OK")
    assert api.learner.is_alive()
