"""Connections: the direct path gives what the usual one does, in order, and lets go of whom it should."""

import asyncio
import json
import socket
import time
from collections.abc import Iterator
from contextlib import ExitStack, suppress
from typing import Any

import pytest
import uvicorn
from uvicorn.server import ServerState

from bayesvote.apps.service.access import AccessMiddleware
from bayesvote.apps.service.app import make_app
from bayesvote.apps.service.http import protocol
from bayesvote.apps.service.journal import Journal
from service.conftest import wait_until
from service.helpers import Api, objects, rows_of


class Raw:
    """The application of a service on a port, and bytes to and from it; ``usual`` counts what went by uvicorn."""

    def __init__(self, api: Api, monkeypatch: pytest.MonkeyPatch) -> None:
        self.usual = 0
        before = AccessMiddleware.__call__

        async def counted(guard: AccessMiddleware, scope: Any, receive: Any, send: Any) -> None:
            self.usual += 1
            await before(guard, scope, receive, send)

        monkeypatch.setattr(AccessMiddleware, "__call__", counted)
        app = make_app(api.service, None, frozenset({"127.0.0.1"}))
        options: Any = {"lifespan": "off", "log_config": None, "server_header": False, "proxy_headers": False}
        self.kind = protocol(app, 30.0)
        config = uvicorn.Config(app, http=self.kind, interface="asgi3", **options)
        config.load()
        self._loop, self._state = api._loop, ServerState()

        async def start() -> asyncio.Server:
            return await self._loop.create_server(
                lambda: config.http_protocol_class(config=config, server_state=self._state, app_state={}),  # type: ignore[call-arg]
                "127.0.0.1",
                0,
            )

        self._server = asyncio.run_coroutine_threadsafe(start(), self._loop).result(30)
        self.port = int(self._server.sockets[0].getsockname()[1])

    def close(self) -> None:
        async def end() -> None:
            self._server.close()
            for connection in [*self._state.connections]:
                connection.transport.abort()
            await asyncio.sleep(0.01)

        asyncio.run_coroutine_threadsafe(end(), self._loop).result(30)

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
def test_both_paths_answer_alike(raw: Raw, body: bytes) -> None:
    short = parted(raw.ask(post("/v2/models/m/infer", body, "Connection: close")))
    assert raw.usual == 0
    usual = parted(raw.ask(post("/v2/models/m/versions/1/infer", body, "Connection: close")))
    assert raw.usual == 1
    assert short == usual
    assert b"connection: close" in short[1]
    assert any(header.startswith(b"content-security-policy: default-src 'none'") for header in short[1])


def test_both_paths_refuse_alike(raw: Raw, api: Api) -> None:
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
    assert b'"learned":1' in answers[48]  # after which it was closed, as HTTP/1.0 is


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


LEARN = json.dumps({"rows": objects(rows_of(2)[0]), "labels": ["no", "no"]}).encode()


def sent_apart(raw: Raw, *parts: bytes) -> bytes:
    """All that comes back, if each part is sent when the one before it was read."""
    found = b""
    with socket.create_connection(("127.0.0.1", raw.port), timeout=30) as connection:
        for part in parts:
            connection.sendall(part)
            time.sleep(0.2)
        connection.settimeout(5)
        with suppress(OSError):
            while part := connection.recv(65536):
                found += part
    return found


@pytest.mark.parametrize("protocol", ["h2c", "websocket"])
def test_a_body_is_never_taken_for_a_request(raw: Raw, api: Api, protocol: str) -> None:
    """The parser does not read the body of a request that asks for another protocol."""
    inner = post("/v2/models/m/learn", LEARN)
    for path in ("/v2/models/m/infer", "/v2/health/live"):
        outer = post(path, inner, "Connection: Upgrade", f"Upgrade: {protocol}")
        found = sent_apart(raw, outer[: -len(inner)], inner)
        assert found.count(b"HTTP/1.1 ") == 1
        assert found.startswith(b"HTTP/1.1 400")
        assert b"Leave out the header Upgrade" in found
    assert api.learner.models["m"].rows == 0


def test_what_was_learned_is_answered_before_what_follows_is_refused(raw: Raw, api: Api) -> None:
    learn = post("/v2/models/m/learn", LEARN)
    usual = post("/v2/models/m/learn?x", LEARN)
    for k, first in enumerate((learn, usual, learn + usual + learn), start=1):
        found = raw.ask(first, b"\0nonsense\r\n\r\n")
        assert found.count(b'"learned":2') == found.count(b"HTTP/1.1 200") == max(1, 3 * (k == 3))
        assert found.split(b"HTTP/1.1 ")[-1].startswith(b"400")
        assert b'{"error":"the request must be HTTP/1.1.' in found
    assert api.learner.models["m"].rows == 10


def test_a_slow_second_request_does_not_take_the_answer_of_the_first(
    raw: Raw, api: Api, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(raw.kind, "seconds", 0.3)
    before = Journal.transaction

    def slow(journal: Journal) -> Any:
        time.sleep(1.0)
        return before(journal)

    monkeypatch.setattr(Journal, "transaction", slow)
    for path in ("learn", "learn?x"):
        found = raw.ask(post(f"/v2/models/m/{path}", LEARN), b"GET /v2 HT").split(b"HTTP/1.1 ")[1:]
        assert [each[:3] for each in found] == [b"200", b"408"]
        assert b'{"error":"the request did not arrive completely in time."}' in found[1]
    assert api.learner.models["m"].rows == 4


def test_who_has_said_all_but_listens_is_answered(raw: Raw) -> None:
    for path in ("learn", "learn?x"):
        with socket.create_connection(("127.0.0.1", raw.port), timeout=30) as connection:
            connection.sendall(post(f"/v2/models/m/{path}", LEARN))
            connection.shutdown(socket.SHUT_WR)
            found = b""
            while part := connection.recv(65536):
                found += part
            assert b'"learned":2' in found


def test_heads_and_requests_at_once_are_limited(raw: Raw) -> None:
    for begun in (b"GET /v2 HTTP/1.1\r\nX: ", b"GET /", b"GET /v2 HTTP/1.1\r\n" + b"X: y\r\n" * 60_000):
        assert sent_apart(raw, begun, b"a" * 200_000).startswith(b"HTTP/1.1 431")
    first = post("/v2/models/m/learn?x", LEARN)
    found = sent_apart(raw, first + b"GET /v2/health/live HTTP/1.1\r\nHost: 127.0.0.1\r\n\r\n" * 1_500)
    assert found.count(b"HTTP/1.1 200") == 1_001
    assert found.count(b"HTTP/1.1 429") == 1


def test_headers_after_a_body_and_a_second_host_are_not_taken(raw: Raw) -> None:
    for path in ("infer", "infer?x"):
        head = f"POST /v2/models/m/{path} HTTP/1.1\r\nHost: evil.example\r\nTransfer-Encoding: chunked\r\n\r\n".encode()
        body = b"%x\r\n%b\r\n0\r\nHost: 127.0.0.1\r\nConnection: close\r\n\r\n" % (len(infer()), infer())
        assert sent_apart(raw, head + body).startswith(b"HTTP/1.1 403")
        twice = post(f"/v2/models/m/{path}", infer()).replace(b"Host:", b"Host: evil.example\r\nHost:")
        assert raw.ask(twice).startswith(b"HTTP/1.1 400")


def test_pages_that_go_away_amid_many_requests_watch_no_longer(raw: Raw, api: Api) -> None:
    ask = b"GET /events HTTP/1.1\r\nHost: 127.0.0.1\r\n\r\nGET /v2 HTTP/1.1\r\nHost: 127.0.0.1\r\n\r\n"
    for _ in range(5):
        with socket.create_connection(("127.0.0.1", raw.port), timeout=30) as connection:
            connection.sendall(ask)
            connection.recv(1000)
    wait_until(lambda: api.service.watchers == 0)
    head = b"HEAD /events HTTP/1.1\r\nHost: 127.0.0.1\r\nConnection: close\r\n\r\n"
    assert raw.ask(head).startswith(b"HTTP/1.1 200")


def test_too_many_connections_are_sent_away_in_words(raw: Raw, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(raw.kind, "most", 2)
    with ExitStack() as stack:
        for _ in range(2):
            stack.enter_context(socket.create_connection(("127.0.0.1", raw.port), timeout=30))
        time.sleep(0.2)
        found = raw.ask(post("/v2/models/m/infer", infer()))
        assert found.startswith(b"HTTP/1.1 503")
        assert b"too many connections" in found
        live = raw.ask(b"GET /v2/health/live HTTP/1.1\r\nHost: 127.0.0.1\r\nConnection: close\r\n\r\n")
        assert live.startswith(b"HTTP/1.1 200")
    time.sleep(0.2)
    assert raw.ask(post("/v2/models/m/infer", infer(), "Connection: close")).startswith(b"HTTP/1.1 200")


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
